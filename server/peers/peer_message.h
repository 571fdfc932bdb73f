/*
 * A message with news to one peer (peer_news.h): a request for its root with PEER_FIELD and
 * PEER_NEWS_FIELD. The value of the latter has the number before the first of the news, that of the
 * last one, the news (peer_item.h), and a full stop. The response says that they were taken, and
 * may have the field with news and a full stop: tags that the peer knows of what was written.
 */
#ifndef SUNPROXY_SERVER_PEERS_PEER_MESSAGE_H
#define SUNPROXY_SERVER_PEERS_PEER_MESSAGE_H

#include <stdatomic.h>
#include <sys/queue.h>

#include "fetch/fetch.h"
#include "origins/origin_peers.h"
#include "origins/origin_probe.h"

#define PEER_NEWS_FIELD "Proxy-Peer-News"
#define PEER_MESSAGE_WAITING ((size_t)1 << 20) /* bytes of news that wait for a peer */
#define PEER_MESSAGE_BYTES ((size_t)24 << 10)  /* and that a message has, or one news alone */

struct config;
struct origin;
struct peer_message;
struct service;

/* How a message has ended. */
struct peer_message_end {
    bool taken;                      /* all news in it */
    enum origin_probe_result result; /* what that shows of the peer */
    const char *reason;              /* why it has failed; valid during the call */
};

struct peer_message {
    LIST_ENTRY(peer_message) link;
    struct shared *config; /* a reference: of the row's */
    struct origin_route *route;
    const struct origin_peers *peers;
    unsigned member;
    struct buf text; /* of the field */
    struct buf told; /* of that in the response: news for all */
    struct peer_code code;
    _Atomic int64_t begun_us;  /* 0: the fetcher has not taken it */
    uint64_t fetch;            /* from then on */
    unsigned status;           /* the fetcher's thread's */
    enum peer_outcome outcome; /* likewise */
    /* The last call, on the fetcher's thread, or in peer_message_send(). The message is the
     * callee's. */
    void (*end)(void *context, struct peer_message *message, const struct peer_message_end *end);
    void *context;
};

LIST_HEAD(peer_messages, peer_message);

/* NULL without memory. */
struct peer_message *peer_message_create(struct config *config, unsigned member,
                                         void (*end)(void *context, struct peer_message *message,
                                                     const struct peer_message_end *end),
                                         void *context);
void peer_message_free(struct peer_message *message);

/*
 * Writes as many of the news behind this number as it takes. Returns their number; *len is that of
 * their bytes. message->text says if that failed.
 */
uint64_t peer_message_fill(struct peer_message *message, uint64_t before, struct span news,
                           size_t *len);

/* Writes that the daemon ends, and that there are no news behind this number. And is that the rest
 * of a message? */
void peer_message_leave(struct peer_message *message, uint64_t last);
bool peer_message_is_leave(struct span text);

/* Sends it for this client; message->end() is called. */
void peer_message_send(struct peer_message *message, struct service *service,
                       struct client *client);

/* Cancels those that have been under way for PEER_NEWS_US. The lock that protects the list is held.
 */
void peer_messages_cancel_late(struct peer_messages *messages, const struct origin *origin);

/* What the text of a message begins with. */
struct peer_message_head {
    uint64_t before, last;
};

/* Takes it off the text. False: it is malformed. */
bool peer_message_read(struct span *text, struct peer_message_head *head);

#endif
