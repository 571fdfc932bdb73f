#include "net/worker.h"

#include <errno.h>
#include <event2/event.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/thread.h"

/* ---- tasks ----------------------------------------------------------------------------------- */

static void
wake(struct net_worker *worker)
{
    uint64_t one = 1;

    /* Fails only when the counter is full, and then the worker is awake. */
    while (write(worker->wake_fd, &one, sizeof(one)) < 0 && errno == EINTR)
        ;
}

/* Of this thread: between net_worker_hold_wakes() and net_worker_wake_held(). */
static _Thread_local struct {
    bool holds;
    unsigned count;
    struct net_worker *workers[64]; /* to be woken */
} held;

void
net_worker_hold_wakes(void)
{
    held.holds = true;
}

void
net_worker_wake_held(void)
{
    held.holds = false;
    while (held.count)
        wake(held.workers[--held.count]);
}

static void
wake_soon(struct net_worker *worker)
{
    if (held.holds && held.count < sizeof(held.workers) / sizeof(held.workers[0]))
        held.workers[held.count++] = worker;
    else
        wake(worker);
}

void
net_worker_post(struct net_worker *worker, struct net_task *task)
{
    struct net_task *latest = atomic_load_explicit(&worker->tasks, memory_order_relaxed);

    do {
        task->next = latest;
    } while (!atomic_compare_exchange_weak_explicit(&worker->tasks, &latest, task,
                                                    memory_order_release, memory_order_relaxed));
    if (!latest)
        wake_soon(worker);
}

bool
net_worker_run_tasks(struct net_worker *worker)
{
    struct net_task *latest = atomic_exchange_explicit(&worker->tasks, NULL, memory_order_acquire);
    struct net_task *first = NULL;
    bool any = latest != NULL;

    while (latest) {
        struct net_task *next = latest->next;

        latest->next = first;
        first = latest;
        latest = next;
    }
    worker->now_us = clock_monotonic_us();
    worker->turn++;
    while (first) {
        struct net_task *task = first;

        first = task->next;
        task->run(task);
    }
    worker->settle(worker->context);
    return any;
}

bool
net_worker_run_held(struct net_worker *worker)
{
    for (unsigned i = 0; i < held.count; i++) {
        if (held.workers[i] == worker)
            held.workers[i--] = held.workers[--held.count];
    }
    net_worker_wake_held();
    return atomic_load_explicit(&worker->tasks, memory_order_relaxed) &&
           net_worker_run_tasks(worker);
}

static void
on_wake(evutil_socket_t fd, short what, void *context)
{
    uint64_t count;

    (void)what;
    /* Cleared before the tasks are taken: one that is posted meanwhile wakes again. */
    (void)!read(fd, &count, sizeof(count));
    (void)net_worker_run_tasks(context);
}

/* ---- the thread ------------------------------------------------------------------------------ */

static void *
run(void *context)
{
    struct net_worker *worker = context;
    struct net_moderation *m = &worker->moderation;

    net_moderation_begin(m, clock_monotonic_us());
    while (!worker->halts &&
           event_base_loop(worker->base, EVLOOP_ONCE | EVLOOP_NO_EXIT_ON_EMPTY) == 0 &&
           !event_base_got_break(worker->base)) {
        bool was_on = m->on;

        if (worker->turned)
            worker->turned(worker->turned_context);
        worker->turn++;
        if (net_moderation_turn(m, worker->now_us, worker->events) != was_on)
            net_moderation_apply(m);
    }
    return NULL;
}

void
net_worker_set_turned(struct net_worker *worker, void (*turned)(void *context), void *context)
{
    worker->turned = turned;
    worker->turned_context = context;
}

int
net_worker_start(struct net_worker *worker)
{
    int error = thread_start(&worker->thread, run, worker);
    worker->running = error == 0;
    return error;
}

void
net_worker_halt(struct net_worker *worker)
{
    /* A break between two turns is forgotten by the next one. */
    worker->halts = true;
    event_base_loopbreak(worker->base);
}

void
net_worker_join(struct net_worker *worker)
{
    pthread_join(worker->thread, NULL);
    worker->running = false;
}

/* ---- beginning and end ----------------------------------------------------------------------- */

static bool
set_up_loop(struct net_worker *worker)
{
    worker->base = event_base_new();
    if (!worker->base)
        return false;
    worker->wake_event =
        event_new(worker->base, worker->wake_fd, EV_READ | EV_PERSIST, on_wake, worker);
    return worker->wake_event && event_add(worker->wake_event, NULL) == 0;
}

struct net_worker *
net_worker_create(unsigned number, void (*settle)(void *context), void *context)
{
    struct net_worker *worker = calloc(1, sizeof(*worker));

    if (!worker)
        return NULL;
    worker->number = number;
    worker->settle = settle;
    worker->context = context;
    worker->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (worker->wake_fd < 0 || !set_up_loop(worker)) {
        int error = errno ? errno : ENOMEM;

        net_worker_destroy(worker);
        errno = error;
        return NULL;
    }
    return worker;
}

void
net_worker_destroy(struct net_worker *worker)
{
    if (!worker)
        return;
    if (worker->wake_event)
        event_free(worker->wake_event);
    if (worker->base)
        event_base_free(worker->base);
    if (worker->wake_fd >= 0)
        close(worker->wake_fd);
    free(worker);
}
