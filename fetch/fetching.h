/*
 * A fetch from its submission to its end: waiting for its turn, hop after hop through resolving,
 * connecting and receiving, redirects, time limits. The fetcher's loop drives it.
 *
 * Everything here happens on the fetcher's thread, and never from inside libcurl.
 */
#ifndef SUNPROXY_FETCH_FETCHING_H
#define SUNPROXY_FETCH_FETCHING_H

#include <pthread.h>

#include "fetch/poller.h"
#include "fetch/queue.h"
#include "fetch/registry.h"
#include "fetch/timers.h"
#include "fetch/transfer.h"

enum fetch_stage {
    FETCH_QUEUED,
    FETCH_RESOLVING,
    FETCH_TRANSFER /* its own stages are the transfer's */
};

struct fetch {
    struct fetch_loop *loop;
    TAILQ_ENTRY(fetch) link; /* in the loop's inbox, then in loop->all */
    /* given, constant */
    struct fetch_request asked; /* its spans are in text */
    struct fetch_sink sink;
    void *context;
    uint64_t id;
    int64_t submitted_us;
    /* protected by loop->lock */
    bool signalled;
    TAILQ_ENTRY(fetch) signal_link; /* in loop->signals while it is */
    /* set by any thread, cleared by the fetcher's */
    _Atomic bool resume_receive;
    _Atomic bool resume_send;
    _Atomic bool cancelled; /* never cleared */
    /* the fetcher thread's */
    enum fetch_stage stage;
    int64_t stage_since_us;
    struct timer timer;
    struct queue_item item;
    struct resolver_query query;
    struct transfer transfer;
    bool begun;                       /* in loop->all */
    bool paused;                      /* until the next turn */
    TAILQ_ENTRY(fetch) paused_link; /* in loop->paused while it is */
    bool held;                        /* by the consumer, since held_since_us */
    int64_t held_since_us;
    int64_t held_us;      /* in earlier pauses */
    struct target target; /* of this hop */
    struct route route;
    char **visited; /* the URLs of earlier hops, owned */
    unsigned redirects;
    size_t charged;   /* to settings.config.memory, for its transfer */
    bool complete;    /* its answer is, though not its request */
    bool left_origin; /* a redirect led away from the origin of the request */
    char text[];
};

TAILQ_HEAD(fetch_list, fetch);

/* What all requests of a fetcher work with. */
struct fetch_loop {
    struct settings settings; /* constant */
    CURLM *multi;
    pthread_mutex_t lock;
    /* protected by lock */
    struct fetch_list inbox;
    struct fetch_list signals; /* resumed or cancelled */
    size_t signal_count;
    struct registry registry;
    bool stopping;
    bool closed; /* nothing is taken from the inbox any more */
    /* the fetcher thread's */
    struct fetch_list all;
    struct fetch_list paused; /* their transfers wait for the next turn */
    uint64_t turn;              /* the number of this one */
    struct poller poller;
    struct connections connections;
    struct queue *queue;
    struct timers timers;
    struct resolver *resolver;
    /* shared */
    _Atomic uint64_t active;
    _Atomic uint64_t waiting;
    _Atomic uint64_t queued;
    _Atomic uint64_t displaced;
    _Atomic uint64_t started;
    _Atomic uint64_t received;
};

/*
 * Checks a request that is in loop->all already, and queues it; it may start at once.
 * When too many are queued then, one of them ends with FETCH_DISPLACED.
 */
void fetching_begin(struct fetch *fetch);

/* Starts all whose turn has come. */
void fetching_start_next(struct fetch_loop *loop);

/* Its name has been looked up. */
void fetching_take_addresses(struct fetch *fetch);

/* Begins the next turn: lets all transfers go on that paused in the last one. */
void fetching_resume_paused(struct fetch_loop *loop);

/* libcurl is done with its hop. */
void fetching_take_result(struct fetch *fetch, CURLcode code);

/* Its timer has come due: ends it, or arms the timer anew. */
void fetching_check_time(struct fetch *fetch, int64_t now_us);

/* It has been resumed or cancelled. */
void fetching_take_signal(struct fetch *fetch);

/* Ends it with its last call-back, and frees it. */
void fetching_finish(struct fetch *fetch, enum fetch_error error, const char *sentence);

void fetching_update_stats(struct fetch_loop *loop);

#endif
