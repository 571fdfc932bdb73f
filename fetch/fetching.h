/*
 * A fetch from its submission to its end: waiting for its turn, resolving, connecting and
 * receiving, attempt after attempt, time limits. The fetcher's loop drives it.
 *
 * Everything here happens on the fetcher's thread, and never from inside libcurl.
 */
#ifndef SUNPROXY_FETCH_FETCHING_H
#define SUNPROXY_FETCH_FETCHING_H

#include <pthread.h>

#include "base/tree.h"
#include "fetch/poller.h"
#include "base/fair_queue.h"
#include "fetch/transfer.h"

/*
 * SUBMITTED -taken from the inbox-> QUEUED -its turn-> RESOLVING or TRANSFER
 * RESOLVING -addresses-> TRANSFER; TRANSFER -another attempt-> QUEUED
 * any -end-> freed
 */
enum fetch_stage {
    FETCH_SUBMITTED, /* in the loop's inbox */
    FETCH_QUEUED,
    FETCH_RESOLVING,
    FETCH_TRANSFER /* its own stages are the transfer's */
};

struct fetch {
    struct fetch_loop *loop;
    TAILQ_ENTRY(fetch) link;  /* in the loop's inbox, then in loop->all */
    struct consumer consumer; /* its request is a reference; what is not atomic is constant, or the
                                 fetcher thread's */
    uint64_t id;
    /* protected by loop->lock */
    RB_ENTRY(fetch) by_id;
    bool signalled;
    TAILQ_ENTRY(fetch) signal_link; /* in loop->signals while it is */
    /* the fetcher thread's */
    int64_t submitted_us; /* of this attempt */
    enum fetch_stage stage;
    int64_t stage_since_us;
    RB_ENTRY(fetch) by_deadline;
    int64_t due_us; /* the time at which its time limits are looked at; 0: not in by_deadline */
    struct queue_item item;
    struct resolver_query query;
    struct transfer transfer;
    TAILQ_ENTRY(fetch) paused_link; /* in loop->paused while the transfer is WAITING */
    int64_t held_since_us;          /* since when the consumer pauses it; 0: it does not */
    int64_t held_us;                /* in earlier pauses */
    struct settings *settings;      /* with which it has begun; a reference; NULL: it has not */
    struct target target;           /* of this attempt */
    struct route route;
    size_t charged; /* to config.memory, for its transfer */
};

TAILQ_HEAD(fetch_list, fetch);
RB_HEAD(fetch_tree, fetch);
RB_HEAD(deadline_tree, fetch);

/* What all requests of a fetcher work with. */
struct fetch_loop {
    struct transfer_place place;
    struct memory_account *memory; /* of all settings; constant */
    pthread_mutex_t lock;
    /* protected by lock */
    struct settings *next_settings; /* to be in force from the next turn on; owned; NULL: none */
    struct fetch_list inbox;
    struct fetch_list signals; /* resumed or cancelled */
    size_t signal_count;
    struct fetch_tree by_id;
    uint64_t last_id;
    bool stopping;
    bool closed; /* nothing is taken from the inbox any more */
    /* the fetcher thread's */
    struct fetch_list all;
    struct fetch_list paused; /* their transfers wait for the next turn */
    struct queue *queue;
    struct deadline_tree by_deadline;
    struct resolver *resolver;
    /* shared */
    _Atomic uint64_t active;
    _Atomic uint64_t waiting;
    _Atomic uint64_t queued;
    _Atomic uint64_t displaced;
    _Atomic uint64_t started;
    _Atomic uint64_t retried;
    _Atomic uint64_t refused;
};

/* Gives it a number above zero that is never used again; and finds it by that until its end, or
 * NULL. Under loop->lock, on any thread. */
void fetching_add(struct fetch_loop *loop, struct fetch *fetch);
struct fetch *fetching_find(struct fetch_loop *loop, uint64_t id);

/* Checks a request that is in loop->all already, and queues it; it may start at once. */
void fetching_begin(struct fetch *fetch);

/* loop->place.changed. */
void fetching_take_change(struct consumer *consumer, enum transfer_change change);

/* Starts all whose turn has come. Where too many are queued then, some end with FETCH_DISPLACED. */
void fetching_start_next(struct fetch_loop *loop);

/* Its name has been looked up. */
void fetching_take_addresses(struct fetch *fetch);

/* Begins the next turn: lets all transfers go on that paused in the last one. */
void fetching_resume_paused(struct fetch_loop *loop);

/* libcurl is done with its transfer. */
void fetching_take_result(struct fetch *fetch, CURLcode code);

/* Ends all whose time limits have passed. */
void fetching_check_times(struct fetch_loop *loop);

/* When the time limits are to be looked at again; INT64_MAX: never. */
int64_t fetching_next_due(const struct fetch_loop *loop);

/* It has been resumed or cancelled. */
void fetching_take_signal(struct fetch *fetch);

/* Ends it with its last call-back, and frees it. */
void fetching_finish(struct fetch *fetch, enum fetch_error error, const char *sentence);

void fetching_update_stats(struct fetch_loop *loop);

#endif
