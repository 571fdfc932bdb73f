/*
 * A worker: a thread with an event loop, and the tasks that other threads hand to it. The loop has
 * no locks, so that events belong to the worker's thread; so does everything here but what is
 * marked [any].
 */
#ifndef SUNPROXY_NET_WORKER_H
#define SUNPROXY_NET_WORKER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "net/moderation.h"

struct event;
struct event_base;

/* Something to be done on a worker's thread; the memory is the poster's. */
struct net_task {
    struct net_task *next; /* the worker's, while posted */
    void (*run)(struct net_task *task);
};

struct net_worker {
    unsigned number; /* from 0; constant */
    struct event_base *base;
    int64_t now_us;  /* when the current callback began; callbacks of the loop set it */
    uint64_t turn;   /* of the loop, or of a run of tasks: what is posted runs in another one */
    uint64_t events; /* of connections, that could be read or written; counted by their owner */
    void (*settle)(void *context); /* called after each run of tasks */
    void *context;
    void (*turned)(void *context); /* called after each turn of the loop; NULL: nothing is */
    void *turned_context;
    struct event *wake_event;
    struct net_moderation moderation;
    bool halts; /* the thread ends; its own */
    pthread_t thread;
    bool running; /* the thread is there to be joined; its starter's */

    /* Shared. */
    _Atomic(struct net_task *) tasks; /* latest first */
    int wake_fd;
};

/* A worker whose thread does not run yet. NULL with errno. */
struct net_worker *net_worker_create(unsigned number, void (*settle)(void *context), void *context);

/* NULL is harmless; the thread must not run, and the loop must have no events left. */
void net_worker_destroy(struct net_worker *worker);

/* Before the thread starts: has this called on it after each turn of the loop. */
void net_worker_set_turned(struct net_worker *worker, void (*turned)(void *context),
                           void *context);

/* Starts the thread, with all signals blocked in it: 0 or an errno. [owner] */
int net_worker_start(struct net_worker *worker);

/* The loop ends after the current callback, which may be that of net_worker_set_turned(). [the
 * worker's thread] */
void net_worker_halt(struct net_worker *worker);

/* Waits for the thread's end, after net_worker_halt() or in expectation of it. [owner] */
void net_worker_join(struct net_worker *worker);

/*
 * Runs task->run(task) on the worker's thread soon, in the order of posting. The task must stay
 * until then; run may free it. Never fails. Tasks posted before net_server_stop() has returned are
 * run. [any]
 */
void net_worker_post(struct net_worker *worker, struct net_task *task);

/*
 * From here on, what this thread posts wakes its worker only with net_worker_wake_held(). For a
 * thread that serves many requests in a turn and does not wait within it: the workers then find all
 * that the turn has posted at once. With 16 connections a miss takes 31 us of CPU time, and 42 if
 * each post wakes. A worker that is woken for another cause runs the tasks earlier. The workers
 * must live until net_worker_wake_held(). [any]
 */
void net_worker_hold_wakes(void);
void net_worker_wake_held(void);

/*
 * Instead of net_worker_wake_held(), on a worker's thread: the tasks of that worker are run, without
 * a wake-up. False if there were none.
 */
bool net_worker_run_held(struct net_worker *worker);

/* Runs the tasks posted so far; false if there were none. Also for the owner after the thread's
 * end. */
bool net_worker_run_tasks(struct net_worker *worker);

/* [any] */
static inline unsigned
net_worker_number(const struct net_worker *worker)
{
    return worker->number;
}

#endif
