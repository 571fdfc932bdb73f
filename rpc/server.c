/*
 * The server as its owner sees it: made, started, stopped in good order, counted.
 */
#include "rpc/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "rpc/admission.h"

static bool
set_up_workers(struct rpc_server *server, unsigned workers)
{
    server->workers = calloc(workers, sizeof(struct rpc_worker *));
    if (!server->workers)
        return false;
    for (unsigned i = 0; i < workers; i++) {
        server->workers[i] = rpc_worker_create(server, i);
        if (!server->workers[i])
            return false;
        server->worker_count++;
    }
    return true;
}

static bool
copy_programs(struct rpc_server *server, const struct rpc_program *programs, size_t count)
{
    server->programs = malloc((count ? count : 1) * sizeof(*programs));
    if (!server->programs)
        return false;
    if (count)
        memcpy(server->programs, programs, count * sizeof(*programs));
    server->program_count = count;
    return true;
}

/* Waiting goes by the monotonic clock. */
static void
set_up_waiting(struct rpc_server *server)
{
    pthread_condattr_t attributes;

    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&server->change, &attributes);
    pthread_condattr_destroy(&attributes);
    pthread_mutex_init(&server->lock, NULL);
}

struct rpc_server *
rpc_server_create(const struct rpc_limits *limits, unsigned workers,
                  const struct rpc_program *programs, size_t program_count, void *context)
{
    struct rpc_server *server;

    if (workers == 0 || !limits->max_record || !limits->max_fragments || !limits->max_requests) {
        errno = EINVAL;
        return NULL;
    }
    server = calloc(1, sizeof(*server));
    if (!server)
        return NULL;
    server->limits = *limits;
    server->context = context;
    server->spare_fd = -1;
    SLIST_INIT(&server->listeners);
    set_up_waiting(server);
    server->admission = rpc_admission_create(limits);
    if (!server->admission || !copy_programs(server, programs, program_count) ||
        !set_up_workers(server, workers)) {
        int error = errno;

        rpc_server_destroy(server);
        errno = error;
        return NULL;
    }
    return server;
}

int
rpc_server_listen(struct rpc_server *server, int fd)
{
    if (server->started || server->stopping)
        return EINVAL;
    return rpc_listener_open(server, fd);
}

int
rpc_server_start(struct rpc_server *server)
{
    int error;

    if (server->started || server->stopping)
        return EINVAL;
    server->started = true;
    for (unsigned i = 0; i < server->worker_count; i++) {
        error = rpc_worker_start(server->workers[i]);
        if (error) {
            (void)rpc_server_stop(server, 0);
            return error;
        }
    }
    return 0;
}

/* ---- the end --------------------------------------------------------------------------------- */

/* Have all workers seen that they are to dispatch no more calls? */
static bool
has_stopped_accepting(struct rpc_server *server)
{
    for (unsigned i = 0; i < server->worker_count; i++) {
        if (server->workers[i]->running && !atomic_load(&server->workers[i]->drained))
            return false;
    }
    return true;
}

void
rpc_server_stop_accepting(struct rpc_server *server)
{
    if (server->stopping)
        return;
    server->stopping = true;
    for (unsigned i = 0; i < server->worker_count; i++) {
        if (server->workers[i]->running)
            rpc_worker_drain(server->workers[i]);
    }
    pthread_mutex_lock(&server->lock);
    while (!has_stopped_accepting(server))
        pthread_cond_wait(&server->change, &server->lock);
    pthread_mutex_unlock(&server->lock);
}

static bool
is_drained(struct rpc_server *server)
{
    for (unsigned i = 0; i < server->worker_count; i++) {
        struct rpc_worker *worker = server->workers[i];

        if (worker->running &&
            (!atomic_load(&worker->drained) || atomic_load(&worker->connections) != 0))
            return false;
    }
    return true;
}

static void
wait_until_drained(struct rpc_server *server, int64_t timeout_us)
{
    int64_t until_us = clock_monotonic_us() + (timeout_us > 0 ? timeout_us : 0);
    struct timespec until = {.tv_sec = (time_t)(until_us / 1000000),
                             .tv_nsec = (long)(until_us % 1000000) * 1000};

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
run_last_tasks(struct rpc_server *server)
{
    bool any;

    do {
        any = false;
        for (unsigned i = 0; i < server->worker_count; i++)
            any |= rpc_worker_run_tasks(server->workers[i]);
    } while (any);
}

unsigned
rpc_server_stop(struct rpc_server *server, int64_t timeout_us)
{
    unsigned cut_off = 0;

    rpc_server_stop_accepting(server);
    wait_until_drained(server, timeout_us);
    for (unsigned i = 0; i < server->worker_count; i++) {
        if (server->workers[i]->running)
            cut_off += rpc_worker_join(server->workers[i]);
    }
    run_last_tasks(server);
    return cut_off;
}

void
rpc_server_destroy(struct rpc_server *server)
{
    if (!server)
        return;
    while (!SLIST_EMPTY(&server->listeners))
        rpc_listener_close(SLIST_FIRST(&server->listeners));
    for (unsigned i = 0; i < server->worker_count; i++)
        rpc_worker_destroy(server->workers[i]);
    free(server->workers);
    free(server->programs);
    rpc_admission_destroy(server->admission);
    if (server->spare_fd >= 0)
        close(server->spare_fd);
    pthread_cond_destroy(&server->change);
    pthread_mutex_destroy(&server->lock);
    free(server);
}

/* ---- counters -------------------------------------------------------------------------------- */

void
rpc_server_relieve(struct rpc_server *server)
{
    for (unsigned i = 0; i < server->worker_count; i++)
        rpc_worker_relieve(server->workers[i]);
}

static uint64_t
read_counter(const rpc_counter *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

void
rpc_server_get_stats(struct rpc_server *server, struct rpc_stats *stats)
{
    *stats = (struct rpc_stats){
        .connections_total = read_counter(&server->accepted),
    };
    rpc_admission_get_stats(server->admission, stats);
    for (unsigned i = 0; i < server->worker_count; i++) {
        struct rpc_worker *worker = server->workers[i];

        stats->connections += atomic_load_explicit(&worker->connections, memory_order_relaxed);
        stats->connections_timed_out += read_counter(&worker->timed_out);
        stats->calls += read_counter(&worker->calls);
        stats->calls_bad += read_counter(&worker->calls_bad);
        stats->bytes_in += read_counter(&worker->bytes_in);
        stats->bytes_out += read_counter(&worker->bytes_out);
    }
}
