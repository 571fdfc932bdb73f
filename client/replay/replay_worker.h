/*
 * A connection of a replay and its thread: sends requests, counts and logs the answers.
 * For replay_run.c, which runs the threads, and replay_schedule.c. Each function is for the
 * worker's own thread.
 */
#ifndef SUNPROXY_CLIENT_REPLAY_REPLAY_WORKER_H
#define SUNPROXY_CLIENT_REPLAY_REPLAY_WORKER_H

#include <pthread.h>
#include <stdatomic.h>

#include "client/page.h"
#include "client/replay/replay.h"

/* How soon a thread that waits notices the end of the run. */
#define REPLAY_LOOK_AGAIN_US 100000

/* Shared by the threads of a run. */
struct replay_run {
    const struct replay_plan *plan;
    int64_t begun_us;
    uint32_t *times; /* by request; 0: not finished, or failed */

    atomic_size_t next;     /* request to be handed out */
    atomic_size_t finished; /* for the progress line */
    atomic_int status;      /* anything but EX_OK ends the run */
    atomic_uint working;    /* threads */
    int ended;              /* eventfd: a thread has ended */
};

/* A request under way. */
struct replay_exchange {
    struct replay_worker *worker;
    size_t number;   /* of the request, from 0 */
    int64_t from_us; /* when its response time begins */
    int64_t done_us;
    enum rpc_client_status status;
    struct page page;
    uint64_t bytes;               /* of its body, so far */
    struct replay_exchange *next; /* on the worker's list of those done */
};

struct replay_worker {
    struct replay_run *run;
    struct rpc_client *client; /* owned */
    pthread_t thread;
    struct replay_exchange *done, *last_done; /* in the order of their answers */
    struct replay_result tally;               /* the thread's own until it is joined */
    size_t failed;                            /* its first request that failed, from 1; 0: none */
    char failure[512];                        /* its URL and why it failed */
    int failure_status;                       /* its exit status */
};

/* Ends the run with a status. True for the first call: its caller complains. Any thread may. */
bool replay_end_run(struct replay_run *run, int status);

/*
 * Sends exchange->number, and sets what else the exchange has but from_us. It stays where it is
 * until it is on worker->done, which it is at once if it cannot be sent.
 */
void replay_worker_send(struct replay_worker *worker, struct replay_exchange *exchange);

/* Takes the first off worker->done; NULL: the list is empty. */
struct replay_exchange *replay_worker_take_done(struct replay_worker *worker);

/*
 * Counts and logs an exchange that is done, and frees its result. False when the run is over. After
 * a reply that cannot be decoded the connection is of no use: *reconnect is set.
 */
bool replay_worker_account(struct replay_worker *worker, struct replay_exchange *exchange,
                           bool *reconnect);

/* Makes a new connection. False when there is none, which ends the run. */
bool replay_worker_reconnect(struct replay_worker *worker);

/*
 * Sends requests on the plan's schedule, whether or not earlier ones were answered, until they are
 * all answered or the run is over (replay_schedule.c).
 */
void replay_worker_follow_schedule(struct replay_worker *worker);

#endif
