/*
 * A worker: a thread, its event loop, the tasks that other threads hand it, and the time-outs of
 * its connections.
 */
#include "rpc/internal.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/container_of.h"
#include "rpc/throttle.h"

/* Time-outs are looked at this often: an eighth of the shortest, within these bounds. */
#define TICK_MIN_US ((int64_t)10000)
#define TICK_MAX_US ((int64_t)1000000)

/* A reply that has waited no longer than this is not given up for want of memory. */
#define RELIEF_AGE_US ((int64_t)1000000)

/* Each look for one passes over all connections, so it is not repeated before this time. */
#define RELIEF_EVERY_US ((int64_t)10000)

/* Connections that rpc_worker_shed_partial() looks at, at most, before it finds one to close. */
#define MOST_PASSED 64u

/* ---- tasks ----------------------------------------------------------------------------------- */

static void
wake(struct rpc_worker *worker)
{
    uint64_t one = 1;

    /* Fails only when the counter is full, and then the worker is awake. */
    while (write(worker->wake_fd, &one, sizeof(one)) < 0 && errno == EINTR)
        ;
}

void
rpc_worker_post(struct rpc_worker *worker, struct rpc_task *task)
{
    struct rpc_task *latest = atomic_load_explicit(&worker->tasks, memory_order_relaxed);

    do {
        task->next = latest;
    } while (!atomic_compare_exchange_weak_explicit(&worker->tasks, &latest, task,
                                                    memory_order_release, memory_order_relaxed));
    if (!latest)
        wake(worker);
}

bool
rpc_worker_run_tasks(struct rpc_worker *worker)
{
    struct rpc_task *latest = atomic_exchange_explicit(&worker->tasks, NULL, memory_order_acquire);
    struct rpc_task *first = NULL;
    bool any = latest != NULL;

    while (latest) {
        struct rpc_task *next = latest->next;

        latest->next = first;
        first = latest;
        latest = next;
    }
    worker->now_us = clock_monotonic_us();
    while (first) {
        struct rpc_task *task = first;

        first = task->next;
        task->run(task);
    }
    rpc_worker_settle(worker);
    return any;
}

static void
on_wake(evutil_socket_t fd, short what, void *context)
{
    uint64_t count;

    (void)what;
    /* Cleared before the tasks are taken: one that is posted meanwhile wakes again. */
    (void)!read(fd, &count, sizeof(count));
    ((struct rpc_worker *)context)->now_us = clock_monotonic_us();
    (void)rpc_worker_run_tasks(context);
}

void
rpc_worker_settle(struct rpc_worker *worker)
{
    struct rpc_connection *c;

    while ((c = STAILQ_FIRST(&worker->marked))) {
        STAILQ_REMOVE_HEAD(&worker->marked, mark);
        c->marked = false;
        rpc_connection_look(c);
    }
}

/* ---- time-outs ------------------------------------------------------------------------------- */

static void
time_out(struct rpc_connection *c)
{
    rpc_counter_add(&c->worker->timed_out, 1);
    rpc_connection_close(c);
}

/* We do not read it: not the peer's fault. */
static void
excuse_partial(struct rpc_connection *c)
{
    struct rpc_worker *worker = c->worker;

    c->partial_since_us = worker->now_us;
    TAILQ_REMOVE(&worker->partial, c, partial);
    TAILQ_INSERT_TAIL(&worker->partial, c, partial);
}

static void
check_partial(struct rpc_worker *worker, int64_t timeout_us)
{
    struct rpc_connection *c, *next;

    for (c = TAILQ_FIRST(&worker->partial); c && worker->now_us - c->partial_since_us >= timeout_us;
         c = next) {
        next = TAILQ_NEXT(c, partial);
        if (c->paused)
            excuse_partial(c);
        else
            time_out(c);
    }
}

static void
check_idle(struct rpc_worker *worker, int64_t timeout_us)
{
    struct rpc_connection *c, *next;

    for (c = TAILQ_FIRST(&worker->open); c && worker->now_us - c->active_us >= timeout_us;
         c = next) {
        next = TAILQ_NEXT(c, link);
        if (c->deferred || rpc_throttle_waits(c)) {
            /* It waits for us. */
            c->active_us = worker->now_us;
            TAILQ_REMOVE(&worker->open, c, link);
            TAILQ_INSERT_TAIL(&worker->open, c, link);
        } else {
            time_out(c);
        }
    }
}

void
rpc_worker_tick(struct rpc_worker *worker, int64_t now_us)
{
    const struct rpc_limits *limits = &worker->server->limits;
    struct rpc_connection *c, *next;

    worker->now_us = now_us;
    worker->epoch++;
    if (limits->record_timeout_us)
        check_partial(worker, limits->record_timeout_us);
    if (limits->idle_timeout_us)
        check_idle(worker, limits->idle_timeout_us);
    for (c = TAILQ_FIRST(&worker->lingering); c; c = next) {
        next = TAILQ_NEXT(c, partial);
        rpc_connection_check_lingering(c);
    }
    rpc_worker_settle(worker);
}

static void
on_tick(evutil_socket_t fd, short what, void *context)
{
    (void)fd;
    (void)what;
    rpc_worker_tick(context, clock_monotonic_us());
}

static int64_t
tick_interval(const struct rpc_limits *limits)
{
    int64_t us = TICK_MAX_US;

    if (limits->idle_timeout_us && limits->idle_timeout_us / 8 < us)
        us = limits->idle_timeout_us / 8;
    if (limits->record_timeout_us && limits->record_timeout_us / 8 < us)
        us = limits->record_timeout_us / 8;
    return us < TICK_MIN_US ? TICK_MIN_US : us;
}

static int
set_tick(struct rpc_worker *worker, int64_t us)
{
    struct timeval interval = {.tv_sec = (time_t)(us / 1000000),
                               .tv_usec = (suseconds_t)(us % 1000000)};

    return event_add(worker->tick_event, &interval);
}

/* ---- the end --------------------------------------------------------------------------------- */

/* Waking under the lock, so that the change cannot fall between rpc_server_stop()'s look and sleep.
 */
static void
tell_server(struct rpc_worker *worker)
{
    pthread_mutex_lock(&worker->server->lock);
    pthread_cond_signal(&worker->server->change);
    pthread_mutex_unlock(&worker->server->lock);
}

void
rpc_worker_lost_connection(struct rpc_worker *worker)
{
    if (atomic_fetch_sub(&worker->connections, 1) == 1 && worker->draining)
        tell_server(worker);
}

static void
drain(struct rpc_task *task)
{
    struct rpc_worker *worker = container_of(task, struct rpc_worker, drain_task);
    struct rpc_server *server = worker->server;
    struct rpc_connection *c, *next;

    worker->draining = true;
    if (worker->number == 0) {
        while (!SLIST_EMPTY(&server->listeners))
            rpc_listener_close(SLIST_FIRST(&server->listeners));
    }
    for (c = TAILQ_FIRST(&worker->open); c; c = next) {
        next = TAILQ_NEXT(c, link);
        rpc_connection_finish(c);
    }
    /* Without it lingering connections stay until the server is stopped; nothing else depends on
     * it. */
    (void)set_tick(worker, TICK_MIN_US);
    atomic_store(&worker->drained, true);
    tell_server(worker);
}

/* Whoever waits to write, and since when its next reply waits; INT64_MAX if nothing does. */
static int64_t
waiting_since(const struct rpc_connection *c)
{
    const struct rpc_request *first = STAILQ_FIRST(&c->out);

    return c->writing && first ? first->queued_us : INT64_MAX;
}

static void
relieve(struct rpc_task *task)
{
    struct rpc_worker *worker = container_of(task, struct rpc_worker, relieve_task);
    struct rpc_connection *c, *slowest = NULL;

    atomic_store(&worker->relieving, false);
    if (worker->relieved_us && worker->now_us - worker->relieved_us < RELIEF_EVERY_US)
        return;
    worker->relieved_us = worker->now_us;
    TAILQ_FOREACH(c, &worker->open, link)
    {
        if (waiting_since(c) < (slowest ? waiting_since(slowest) : INT64_MAX))
            slowest = c;
    }
    if (slowest && worker->now_us - waiting_since(slowest) >= RELIEF_AGE_US)
        time_out(slowest);
}

bool
rpc_worker_shed_partial(struct rpc_worker *worker, const struct rpc_connection *but)
{
    struct rpc_connection *c, *next;
    unsigned passed = 0;

    for (c = TAILQ_FIRST(&worker->partial); c && passed < MOST_PASSED; c = next) {
        next = TAILQ_NEXT(c, partial);
        if (c != but && !c->paused) {
            time_out(c);
            return true;
        }
        passed++;
        if (c->paused)
            excuse_partial(c);
    }
    return false;
}

static void
shed_partial(struct rpc_task *task)
{
    struct rpc_worker *worker = container_of(task, struct rpc_worker, shed_task);

    atomic_store(&worker->shedding, false);
    (void)rpc_worker_shed_partial(worker, NULL);
}

void
rpc_worker_ask_to_shed(struct rpc_worker *worker)
{
    if (!atomic_exchange(&worker->shedding, true))
        rpc_worker_post(worker, &worker->shed_task);
}

static void
halt(struct rpc_task *task)
{
    struct rpc_worker *worker = container_of(task, struct rpc_worker, halt_task);
    struct rpc_connection *c;

    worker->draining = true;
    while ((c = TAILQ_FIRST(&worker->open))) {
        worker->cut_off++;
        rpc_connection_close(c);
    }
    event_base_loopbreak(worker->base);
}

void
rpc_worker_relieve(struct rpc_worker *worker)
{
    if (!atomic_exchange(&worker->relieving, true))
        rpc_worker_post(worker, &worker->relieve_task);
}

void
rpc_worker_drain(struct rpc_worker *worker)
{
    rpc_worker_post(worker, &worker->drain_task);
}

unsigned
rpc_worker_join(struct rpc_worker *worker)
{
    rpc_worker_post(worker, &worker->halt_task);
    pthread_join(worker->thread, NULL);
    worker->running = false;
    return worker->cut_off;
}

/* ---- the thread ------------------------------------------------------------------------------ */

static void *
run(void *context)
{
    struct rpc_worker *worker = context;
    struct rpc_moderation *m = &worker->moderation;

    rpc_moderation_begin(m, clock_monotonic_us());
    while (event_base_loop(worker->base, EVLOOP_ONCE | EVLOOP_NO_EXIT_ON_EMPTY) == 0 &&
           !event_base_got_break(worker->base)) {
        bool was_on = m->on;

        if (rpc_moderation_turn(m, worker->now_us, worker->reads) != was_on)
            rpc_moderation_apply(m);
    }
    return NULL;
}

int
rpc_worker_start(struct rpc_worker *worker)
{
    sigset_t all, before;
    int error;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    error = pthread_create(&worker->thread, NULL, run, worker);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    worker->running = error == 0;
    return error;
}

/* A base for one thread: no locks. */
static struct event_base *
create_base(void)
{
    struct event_config *config = event_config_new();
    struct event_base *base;

    if (!config)
        return NULL;
    event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK);
    base = event_base_new_with_config(config);
    event_config_free(config);
    return base;
}

static bool
set_up_events(struct rpc_worker *worker)
{
    worker->base = create_base();
    if (!worker->base)
        return false;
    worker->wake_event =
        event_new(worker->base, worker->wake_fd, EV_READ | EV_PERSIST, on_wake, worker);
    worker->tick_event = event_new(worker->base, -1, EV_PERSIST, on_tick, worker);
    return worker->wake_event && worker->tick_event && event_add(worker->wake_event, NULL) == 0 &&
           set_tick(worker, tick_interval(&worker->server->limits)) == 0;
}

struct rpc_worker *
rpc_worker_create(struct rpc_server *server, unsigned number)
{
    struct rpc_worker *worker = calloc(1, sizeof(*worker));

    if (!worker)
        return NULL;
    worker->server = server;
    worker->number = number;
    TAILQ_INIT(&worker->open);
    TAILQ_INIT(&worker->closed);
    TAILQ_INIT(&worker->partial);
    TAILQ_INIT(&worker->lingering);
    STAILQ_INIT(&worker->marked);
    SLIST_INIT(&worker->pool);
    worker->drain_task.run = drain;
    worker->halt_task.run = halt;
    worker->relieve_task.run = relieve;
    worker->shed_task.run = shed_partial;
    worker->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (worker->wake_fd < 0 || !set_up_events(worker)) {
        int error = errno ? errno : ENOMEM;

        rpc_worker_destroy(worker);
        errno = error;
        return NULL;
    }
    return worker;
}

static void
free_connections(struct rpc_worker *worker)
{
    struct rpc_connection *c;

    while ((c = TAILQ_FIRST(&worker->open)))
        rpc_connection_close(c);
    rpc_worker_settle(worker);
    while ((c = TAILQ_FIRST(&worker->closed))) {
        TAILQ_REMOVE(&worker->closed, c, link);
        rpc_connection_free(c);
    }
}

void
rpc_worker_destroy(struct rpc_worker *worker)
{
    struct rpc_request *request;

    if (!worker)
        return;
    free_connections(worker);
    while ((request = SLIST_FIRST(&worker->pool))) {
        SLIST_REMOVE_HEAD(&worker->pool, free);
        free(request);
    }
    if (worker->wake_event)
        event_free(worker->wake_event);
    if (worker->tick_event)
        event_free(worker->tick_event);
    if (worker->base)
        event_base_free(worker->base);
    if (worker->wake_fd >= 0)
        close(worker->wake_fd);
    free(worker);
}

unsigned
rpc_worker_number(const struct rpc_worker *worker)
{
    return worker->number;
}
