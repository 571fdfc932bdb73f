/*
 * What peers tell each other (origins/origin_peers.h): what a daemon has purged, and once in a
 * while that it is there. So each peer is probed by these messages, and is down while it does not
 * take them.
 *
 * The news of a daemon are numbered from its start on. A message has news, and the number before
 * the first of them; one is under way to each peer at a time. A peer that has not taken all news
 * before a message, since it was away, has just started, or the sender has, expires all that it
 * has stored, so that it is validated before it is used. So does one that is told more than can
 * wait for it.
 *
 * Each news is told twice. A peer that has taken it may still ask one that has not, and store what
 * that had stored before. So once all peers that can be reached have taken it, the daemon purges
 * again itself and tells it again. A request that waits for it (peer_news_wait()) goes on when all
 * of them have taken it for the second time. A peer that does not take a message in PEER_NEWS_US
 * cannot be reached: no request waits for it.
 *
 * Every function is safe on any thread, and none blocks.
 */
#ifndef SUNPROXY_SERVER_PEERS_PEER_NEWS_H
#define SUNPROXY_SERVER_PEERS_PEER_NEWS_H

#include <sys/queue.h>

#include "origins/origin_peers.h"
#include "server/peers/peer_item.h"

#define PEER_NEWS_US ((int64_t)2000000)       /* for a message to be taken */
#define PEER_NEWS_PAUSE_US ((int64_t)1000000) /* between two messages */

struct peer_news;
struct service;

/* NULL without memory. The service outlives it. */
struct peer_news *peer_news_create(struct service *service);

/* The fetcher has stopped. NULL is harmless. */
void peer_news_destroy(struct peer_news *news);

/* Tells what was purged here. Nothing, without peers that can be reached. NULL is harmless. */
void peer_news_tell(struct peer_news *news, const struct peer_item *item);

struct peer_news_stats {
    uint64_t reached; /* peers that take news now */
    uint64_t told;    /* news of this daemon, since its start */
    uint64_t taken;   /* news of peers */
    uint64_t missed;  /* times that all was expired, since news of a peer were missed */
    uint64_t lost;    /* times that a peer, which could not be reached, has missed some */
};

void peer_news_get_stats(struct peer_news *news, struct peer_news_stats *stats);

struct peer_news_wait {
    TAILQ_ENTRY(peer_news_wait) link;
    uint64_t number;
    /* Set by the caller. It posts a task or the like, and calls no function of this header. */
    void (*done)(struct peer_news_wait *wait);
};

/* Waits until all that was told before is known. False: it is, and done() is not called. */
bool peer_news_wait(struct peer_news *news, struct peer_news_wait *wait);

/* True: done() has not been called, and is not. */
bool peer_news_cancel(struct peer_news *news, struct peer_news_wait *wait);

/* Sends what is due, and gives up messages that take too long. Without peers false. [main thread,
 * again and again] */
bool peer_news_look(struct peer_news *news);

/*
 * The daemon ends, and has answered its requests: tells the peers that can be reached that there
 * are no more news, so that they have missed nothing when it starts again. Waits for them, for half
 * a second at most. [main thread; the last call but peer_news_destroy()]
 */
void peer_news_leave(struct peer_news *news);

/*
 * Takes a message of the peer with this URL, its incarnation as peer_auth_check() has it. Appends
 * news for its sender to tell to all: tags of what was written. False: it is malformed.
 */
bool peer_news_take(struct peer_news *news, struct span sender, uint64_t incarnation,
                    struct span message, struct buf *told);

#endif
