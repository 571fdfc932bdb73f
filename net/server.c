#include "net/server.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/container_of.h"
#include "net/connection.h"
#include "net/listener.h"
#include "net/relief.h"
#include "net/timeouts.h"

/* A worker with its connections. */
struct station {
    struct net_server *server;
    struct net_worker *worker;
    struct net_connections connections;
    struct net_timeouts timeouts;
    struct net_relief relief;
    struct net_task drain_task;
    struct net_task halt_task;
    struct net_task leave_task;
    struct net_task turn_task;
    unsigned cut_off;    /* the worker's; read after its end */
    atomic_bool drained; /* the drain task has run; shared */
    atomic_bool turned;  /* so has the turn task; shared */
};

/* A listener that comes or goes while the workers run. */
struct listener_change {
    struct net_task task; /* worker 0's */
    struct net_acceptor *acceptor;
    int fd;
    const struct net_protocol *protocol; /* NULL: it goes */
    void *context;
    int error;
};

static void
change_listener(struct net_task *task)
{
    struct listener_change *change = container_of(task, struct listener_change, task);

    if (change->protocol)
        change->error =
            net_acceptor_listen(change->acceptor, change->fd, change->protocol, change->context);
    else
        net_acceptor_unlisten(change->acceptor, change->fd);
}

struct net_server {
    struct net_limits kept_limits[2];
    struct net_limits *limits; /* those in force, of these two */
    struct station **stations;
    struct net_connections **sets; /* the stations', by the same numbers */
    unsigned worker_count;
    bool started;
    bool stopping;
    struct net_admission *admission;
    struct net_acceptor acceptor; /* worker 0's, once started */

    /* For net_server_stop() to wait until all is drained. */
    pthread_mutex_t lock;
    pthread_cond_t change;
};

/* Waking under the lock, so that the change cannot fall between net_server_stop()'s look and sleep.
 */
static void
report_change(struct net_server *server)
{
    pthread_mutex_lock(&server->lock);
    pthread_cond_signal(&server->change);
    pthread_mutex_unlock(&server->lock);
}

/* ---- a worker and its connections ------------------------------------------------------------ */

static void
settle(void *context)
{
    net_connections_settle(&((struct station *)context)->connections);
}

static void
drain(struct net_task *task)
{
    struct station *station = container_of(task, struct station, drain_task);
    struct net_connection *c, *next;

    station->connections.draining = true;
    if (net_worker_number(station->worker) == 0)
        net_acceptor_close(&station->server->acceptor);
    for (c = TAILQ_FIRST(&station->connections.open); c; c = next) {
        next = TAILQ_NEXT(c, link);
        net_connection_finish(c);
    }
    net_timeouts_hurry(&station->timeouts);
    atomic_store(&station->drained, true);
    report_change(station->server);
}

static void
leave(struct net_task *task)
{
    struct station *station = container_of(task, struct station, leave_task);

    station->connections.leaving = true;
    if (net_worker_number(station->worker) == 0)
        net_acceptor_close(&station->server->acceptor);
}

static void
halt(struct net_task *task)
{
    struct station *station = container_of(task, struct station, halt_task);
    struct net_connection *c;

    station->connections.draining = true;
    while ((c = TAILQ_FIRST(&station->connections.open))) {
        station->cut_off++;
        net_connection_close(c);
    }
    net_worker_halt(station->worker);
}

static void
note_turn(struct net_task *task)
{
    struct station *station = container_of(task, struct station, turn_task);
    const struct net_limits *limits = station->server->limits;

    if (station->connections.limits != limits) {
        net_connections_set_limits(&station->connections, limits);
        net_timeouts_set(&station->timeouts);
    }
    atomic_store(&station->turned, true);
    report_change(station->server);
}

static void
on_emptied(void *owner)
{
    struct station *station = owner;

    if (station->connections.draining)
        report_change(station->server);
}

/* If this worker has no message to give up, the memory is in the others' hands. */
static bool
free_memory(void *owner, const struct net_connection *but)
{
    struct station *station = owner;
    const struct net_server *server = station->server;

    if (net_relief_close_partial(&station->connections, but))
        return true;
    for (unsigned i = 0; i < server->worker_count; i++) {
        if (server->stations[i] != station)
            net_relief_post(&server->stations[i]->relief, NET_RELIEF_MESSAGES);
    }
    return false;
}

static void
close_lingering(void *owner)
{
    struct station *station = owner;

    net_relief_post(&station->relief, NET_RELIEF_LINGERING);
}

static const struct net_connections_hooks hooks = {
    .free_memory = free_memory,
    .emptied = on_emptied,
    .close_lingering = close_lingering,
};

static void
destroy_station(struct station *station)
{
    if (station->worker) {
        net_connections_free(&station->connections);
        net_timeouts_end(&station->timeouts);
    }
    net_worker_destroy(station->worker);
    free(station);
}

/* NULL with errno. */
static struct station *
create_station(struct net_server *server, unsigned number)
{
    struct station *station = calloc(1, sizeof(*station));
    int error;

    if (!station)
        return NULL;
    station->server = server;
    station->drain_task.run = drain;
    station->halt_task.run = halt;
    station->leave_task.run = leave;
    station->turn_task.run = note_turn;
    station->worker = net_worker_create(number, settle, station);
    if (station->worker &&
        net_connections_init(&station->connections, station->worker, server->limits,
                             server->admission, &hooks, station)) {
        net_relief_init(&station->relief, &station->connections);
        if (net_timeouts_begin(&station->timeouts, &station->connections))
            return station;
    }
    error = errno ? errno : ENOMEM;
    destroy_station(station);
    errno = error;
    return NULL;
}

/* ---- beginning ------------------------------------------------------------------------------- */

static bool
set_up_stations(struct net_server *server, unsigned workers)
{
    server->stations = calloc(workers, sizeof(struct station *));
    server->sets = calloc(workers, sizeof(struct net_connections *));
    if (!server->stations || !server->sets)
        return false;
    net_acceptor_init(&server->acceptor, server->admission, server->sets);
    for (unsigned i = 0; i < workers; i++) {
        server->stations[i] = create_station(server, i);
        if (!server->stations[i])
            return false;
        server->sets[i] = &server->stations[i]->connections;
        server->worker_count++;
    }
    server->acceptor.set_count = workers;
    return true;
}

/* Waiting goes by the monotonic clock. */
static void
set_up_waiting(struct net_server *server)
{
    pthread_condattr_t attributes;

    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&server->change, &attributes);
    pthread_condattr_destroy(&attributes);
    pthread_mutex_init(&server->lock, NULL);
}

struct net_server *
net_server_create(const struct net_limits *limits, unsigned workers)
{
    struct net_server *server;

    if (workers == 0 || !limits->max_requests) {
        errno = EINVAL;
        return NULL;
    }
    server = calloc(1, sizeof(*server));
    if (!server)
        return NULL;
    server->acceptor.spare_fd = -1;
    set_up_waiting(server);
    server->limits = &server->kept_limits[0];
    *server->limits = *limits;
    server->admission = net_admission_create(server->limits);
    if (!server->admission || !set_up_stations(server, workers)) {
        int error = errno;

        net_server_destroy(server);
        errno = error;
        return NULL;
    }
    return server;
}

/* The turn that is awaited comes behind the task. */
static void
run_change(struct net_server *server, struct listener_change *change)
{
    net_worker_post(server->stations[0]->worker, &change->task);
    net_server_await_turn(server);
}

int
net_server_listen(struct net_server *server, int fd, const struct net_protocol *protocol,
                  void *context)
{
    struct listener_change change = {.task.run = change_listener,
                                     .acceptor = &server->acceptor,
                                     .fd = fd,
                                     .protocol = protocol,
                                     .context = context};

    if (server->stopping)
        return EINVAL;
    if (!server->started)
        return net_acceptor_listen(&server->acceptor, fd, protocol, context);
    run_change(server, &change);
    return change.error;
}

void
net_server_unlisten(struct net_server *server, int fd)
{
    struct listener_change change = {
        .task.run = change_listener, .acceptor = &server->acceptor, .fd = fd};

    run_change(server, &change);
}

int
net_server_start(struct net_server *server)
{
    int error;

    if (server->started || server->stopping)
        return EINVAL;
    server->started = true;
    for (unsigned i = 0; i < server->worker_count; i++) {
        error = net_worker_start(server->stations[i]->worker);
        if (error) {
            (void)net_server_stop(server, 0);
            return error;
        }
    }
    return 0;
}

static bool
has_turned(const struct net_server *server)
{
    for (unsigned i = 0; i < server->worker_count; i++)
        if (!atomic_load(&server->stations[i]->turned))
            return false;
    return true;
}

void
net_server_await_turn(struct net_server *server)
{
    for (unsigned i = 0; i < server->worker_count; i++) {
        atomic_store(&server->stations[i]->turned, false);
        net_worker_post(server->stations[i]->worker, &server->stations[i]->turn_task);
    }
    pthread_mutex_lock(&server->lock);
    while (!has_turned(server))
        pthread_cond_wait(&server->change, &server->lock);
    pthread_mutex_unlock(&server->lock);
}

void
net_server_leave(struct net_server *server)
{
    for (unsigned i = 0; i < server->worker_count; i++)
        net_worker_post(server->stations[i]->worker, &server->stations[i]->leave_task);
}

void
net_server_set_limits(struct net_server *server, const struct net_limits *limits)
{
    struct net_limits *next = &server->kept_limits[server->limits == &server->kept_limits[0]];

    *next = *limits;
    server->limits = next;
    net_admission_set_limits(server->admission, next);
    net_server_await_turn(server);
}

/* ---- the end --------------------------------------------------------------------------------- */

/* Have all workers seen that no more input is taken? */
static bool
has_stopped_accepting(struct net_server *server)
{
    for (unsigned i = 0; i < server->worker_count; i++) {
        if (server->stations[i]->worker->running && !atomic_load(&server->stations[i]->drained))
            return false;
    }
    return true;
}

void
net_server_stop_accepting(struct net_server *server)
{
    if (server->stopping)
        return;
    server->stopping = true;
    for (unsigned i = 0; i < server->worker_count; i++) {
        if (server->stations[i]->worker->running)
            net_worker_post(server->stations[i]->worker, &server->stations[i]->drain_task);
    }
    pthread_mutex_lock(&server->lock);
    while (!has_stopped_accepting(server))
        pthread_cond_wait(&server->change, &server->lock);
    pthread_mutex_unlock(&server->lock);
}

static bool
is_drained(struct net_server *server)
{
    for (unsigned i = 0; i < server->worker_count; i++) {
        struct station *station = server->stations[i];

        if (station->worker->running &&
            (!atomic_load(&station->drained) || atomic_load(&station->connections.count) != 0))
            return false;
    }
    return true;
}

static void
wait_until_drained(struct net_server *server, int64_t timeout_us)
{
    const struct timespec until =
        clock_timespec(clock_monotonic_us() + (timeout_us > 0 ? timeout_us : 0));

    pthread_mutex_lock(&server->lock);
    while (!is_drained(server)) {
        if (pthread_cond_timedwait(&server->change, &server->lock, &until) != 0)
            break;
    }
    pthread_mutex_unlock(&server->lock);
}

/* What was posted as the threads ended, or by such a task: this thread is all that is left to run
 * it. */
static void
run_last_tasks(struct net_server *server)
{
    bool any;

    do {
        any = false;
        for (unsigned i = 0; i < server->worker_count; i++)
            any |= net_worker_run_tasks(server->stations[i]->worker);
    } while (any);
}

unsigned
net_server_stop(struct net_server *server, int64_t timeout_us)
{
    unsigned cut_off = 0;

    net_server_stop_accepting(server);
    wait_until_drained(server, timeout_us);
    for (unsigned i = 0; i < server->worker_count; i++) {
        struct station *station = server->stations[i];

        if (!station->worker->running)
            continue;
        net_worker_post(station->worker, &station->halt_task);
        net_worker_join(station->worker);
        cut_off += station->cut_off;
    }
    run_last_tasks(server);
    return cut_off;
}

void
net_server_destroy(struct net_server *server)
{
    if (!server)
        return;
    net_acceptor_destroy(&server->acceptor);
    for (unsigned i = 0; i < server->worker_count; i++)
        destroy_station(server->stations[i]);
    free(server->stations);
    free(server->sets);
    net_admission_destroy(server->admission);
    pthread_cond_destroy(&server->change);
    pthread_mutex_destroy(&server->lock);
    free(server);
}

/* ---- for any thread -------------------------------------------------------------------------- */

void
net_server_relieve(struct net_server *server)
{
    for (unsigned i = 0; i < server->worker_count; i++)
        net_relief_post(&server->stations[i]->relief, NET_RELIEF_READERS);
}

void
net_server_get_stats(struct net_server *server, struct net_stats *stats)
{
    *stats = (struct net_stats){
        .connections_total = net_counter_read(&server->acceptor.accepted),
    };
    net_admission_get_stats(server->admission, stats);
    for (unsigned i = 0; i < server->worker_count; i++) {
        struct net_connections *set = server->sets[i];

        stats->connections += atomic_load_explicit(&set->count, memory_order_relaxed);
        stats->connections_timed_out += net_counter_read(&set->timed_out);
        stats->bytes_in += net_counter_read(&set->bytes_in);
        stats->bytes_out += net_counter_read(&set->bytes_out);
    }
}

struct net_connections *
net_server_connections(struct net_server *server, unsigned number)
{
    return server->sets[number];
}
