#include "fetch/fetch.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/container_of.h"
#include "base/thread.h"
#include "fetch/fetching.h"

#define MAX_NAMES 1024u    /* remembered by the resolver */
#define IDLE_WAIT_MS 60000 /* the loop is woken when there is something to do */

struct fetcher {
    struct fetch_loop loop;
    pthread_t thread;
    bool stopped; /* the thread that destroys it */
};

static const char stopping_sentence[] = "the server is shutting down";

/* ---- the loop ------------------------------------------------------------------------ */

/*
 * A client may use the same part of the resolver's threads as of the fetches that wait, two at
 * least; 0 if there is no bound.
 */
static unsigned
share_of_threads(const struct fetch_config *config)
{
    uint64_t share = (uint64_t)config->resolver_threads * config->max_active_per_client;
    unsigned waiting = settings_max_waiting(config);

    if (config->max_active_per_client == 0 || waiting == 0)
        return 0;
    share = (share + waiting - 1) / waiting;
    return share < 2 ? 2 : (unsigned)share;
}

/* The bounds of what is shared by all fetches. */
static void
set_bounds(struct fetch_loop *loop, const struct fetch_config *config)
{
    const struct queue_limits limits = settings_queue_limits(config);

    queue_set_limits(loop->queue, &limits);
    connections_set_most(&loop->place.connections, config->max_active, config->max_idle_per_origin);
    (void)connections_set_bounds(&loop->place.connections, loop->place.multi);
    resolver_configure(loop->resolver, share_of_threads(config), config->dns_ttl_us);
}

static void
take_settings(struct fetch_loop *loop, struct settings *next)
{
    struct transfer_place *place = &loop->place;

    if (!next)
        return;
    fetch_settings_release(&place->settings);
    place->settings = next;
    handles_free(&place->handles);
    set_bounds(loop, &next->config);
}

/*
 * Begins what has been submitted by now. What comes meanwhile waits, so that endless submissions do
 * not keep the transfers from going on. False once the fetcher is to stop.
 */
static bool
read_inbox(struct fetcher *fetcher)
{
    struct fetch_list taken = TAILQ_HEAD_INITIALIZER(taken);
    struct settings *next;
    struct fetch *r;
    bool stopping;

    pthread_mutex_lock(&fetcher->loop.lock);
    stopping = fetcher->loop.stopping;
    TAILQ_CONCAT(&taken, &fetcher->loop.inbox, link);
    next = fetcher->loop.next_settings;
    fetcher->loop.next_settings = NULL;
    pthread_mutex_unlock(&fetcher->loop.lock);
    take_settings(&fetcher->loop, next);
    while ((r = TAILQ_FIRST(&taken))) {
        TAILQ_REMOVE(&taken, r, link);
        TAILQ_INSERT_TAIL(&fetcher->loop.all, r, link);
        if (stopping)
            fetching_finish(r, FETCH_STOPPING, stopping_sentence);
        else
            fetching_begin(r);
    }
    return !stopping;
}

/* The next request that was signalled, NULL if there is none. */
static struct fetch *
next_signalled(struct fetch_loop *loop)
{
    struct fetch *r;

    pthread_mutex_lock(&loop->lock);
    r = TAILQ_FIRST(&loop->signals);
    if (r) {
        TAILQ_REMOVE(&loop->signals, r, signal_link);
        loop->signal_count--;
        r->signalled = false;
    }
    pthread_mutex_unlock(&loop->lock);
    return r;
}

/* Those that were signalled by now; each may be signalled again meanwhile. */
static void
read_signals(struct fetcher *fetcher)
{
    struct fetch_loop *loop = &fetcher->loop;
    struct fetch *r;
    size_t count;

    pthread_mutex_lock(&loop->lock);
    count = loop->signal_count;
    pthread_mutex_unlock(&loop->lock);
    /* One that is still in the inbox has nothing to resume, and sees there that it is cancelled. */
    while (count-- > 0 && (r = next_signalled(loop)))
        if (r->stage != FETCH_SUBMITTED)
            fetching_take_signal(r);
}

static void
read_resolver(struct fetcher *fetcher)
{
    struct resolver_query *query;

    while ((query = resolver_collect(fetcher->loop.resolver)))
        fetching_take_addresses(container_of(query, struct fetch, query));
}

static void
read_transfers(struct fetcher *fetcher)
{
    CURLMsg *message;
    int left;

    while ((message = curl_multi_info_read(fetcher->loop.place.multi, &left))) {
        CURLcode code = message->data.result;
        char *consumer = NULL;

        if (message->msg != CURLMSG_DONE)
            continue;
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &consumer);
        fetching_take_result(
            container_of((struct consumer *)(void *)consumer, struct fetch, consumer), code);
    }
}

static int
find_wait_ms(const struct fetch_loop *loop)
{
    int most = loop->place.connections.open ? (int)(POOL_LOOK_US / 1000) : IDLE_WAIT_MS;
    int64_t left = fetching_next_due(loop) - clock_monotonic_us();

    if (!TAILQ_EMPTY(&loop->paused) || left <= 0)
        return 0;
    return left / 1000 < most ? (int)(left / 1000) + 1 : most;
}

/* Closes the inbox. False if something is in it. */
static bool
close_inbox(struct fetcher *fetcher)
{
    pthread_mutex_lock(&fetcher->loop.lock);
    fetcher->loop.closed = TAILQ_EMPTY(&fetcher->loop.inbox);
    pthread_mutex_unlock(&fetcher->loop.lock);
    return fetcher->loop.closed;
}

static void
begin_turn(struct fetcher *fetcher)
{
    fetcher->loop.place.turn_us = clock_monotonic_us();
    if (fetcher->loop.place.settings->config.turn_begins)
        fetcher->loop.place.settings->config.turn_begins();
}

static void
end_turn(const struct fetcher *fetcher)
{
    if (fetcher->loop.place.settings->config.turn_ends)
        fetcher->loop.place.settings->config.turn_ends();
}

static void *
run(void *argument)
{
    struct fetcher *fetcher = argument;
    struct fetch *r;

    begin_turn(fetcher);
    while (read_inbox(fetcher)) {
        poller_deliver(&fetcher->loop.place.poller);
        read_signals(fetcher);
        read_resolver(fetcher);
        fetching_resume_paused(&fetcher->loop);
        poller_drive(&fetcher->loop.place.poller);
        read_transfers(fetcher);
        fetching_check_times(&fetcher->loop);
        fetching_start_next(&fetcher->loop);
        connections_close_unused(&fetcher->loop.place.connections, fetcher->loop.place.turn_us);
        fetching_update_stats(&fetcher->loop);
        end_turn(fetcher);
        poller_wait(&fetcher->loop.place.poller, find_wait_ms(&fetcher->loop));
        begin_turn(fetcher);
    }
    while ((r = TAILQ_FIRST(&fetcher->loop.all)))
        fetching_finish(r, FETCH_STOPPING, stopping_sentence);
    /* What those call-backs submitted. */
    while (!close_inbox(fetcher))
        read_inbox(fetcher);
    fetching_update_stats(&fetcher->loop);
    end_turn(fetcher);
    return NULL;
}

/* ---- from outside -------------------------------------------------------------------- */

static void
wake(void *context)
{
    struct fetcher *fetcher = context;

    poller_wake(&fetcher->loop.place.poller);
}

static pthread_once_t curl_once = PTHREAD_ONCE_INIT;
static CURLcode curl_ready;

static void
prepare_curl(void)
{
    curl_ready = curl_global_init(CURL_GLOBAL_DEFAULT);
}

static void
dismantle(struct fetcher *fetcher)
{
    resolver_destroy(fetcher->loop.resolver);
    handles_free(&fetcher->loop.place.handles);
    curl_multi_cleanup(fetcher->loop.place.multi);
    connections_free(&fetcher->loop.place.connections);
    poller_free(&fetcher->loop.place.poller);
    queue_destroy(fetcher->loop.queue);
    fetch_settings_release(&fetcher->loop.place.settings);
    fetch_settings_release(&fetcher->loop.next_settings);
    pthread_mutex_destroy(&fetcher->loop.lock);
    free(fetcher);
}

struct fetcher *
fetcher_create(const struct fetch_config *config, char *why, size_t why_size)
{
    struct fetcher *fetcher = calloc(1, sizeof(*fetcher));
    struct resolver_config names = {
        .threads = config->resolver_threads,
        .per_client = share_of_threads(config),
        .max_names = MAX_NAMES,
        .ttl_us = config->dns_ttl_us,
        .notify = wake,
        .context = fetcher,
    };
    const struct queue_limits limits = settings_queue_limits(config);

    pthread_once(&curl_once, prepare_curl);
    if (!fetcher || curl_ready != CURLE_OK || pthread_mutex_init(&fetcher->loop.lock, NULL) != 0) {
        snprintf(why, why_size, "cannot set up libcurl, or out of memory");
        free(fetcher);
        return NULL;
    }
    TAILQ_INIT(&fetcher->loop.inbox);
    TAILQ_INIT(&fetcher->loop.signals);
    TAILQ_INIT(&fetcher->loop.all);
    TAILQ_INIT(&fetcher->loop.paused);
    fetcher->loop.place.poller.epoll = fetcher->loop.place.poller.wakeup = -1;
    fetcher->loop.memory = config->memory;
    fetcher->loop.place.settings = fetch_settings_create(config, why, why_size);
    if (!fetcher->loop.place.settings)
        goto failed;
    connections_init(&fetcher->loop.place.connections, config->max_active,
                     config->max_idle_per_origin);
    snprintf(why, why_size, "cannot start, for lack of memory, descriptors or threads");
    names.getaddrinfo = fetcher->loop.place.settings->config.getaddrinfo;
    names.freeaddrinfo = fetcher->loop.place.settings->config.freeaddrinfo;
    fetcher->loop.queue = queue_create(&limits, CLIENT_FETCHES);
    fetcher->loop.place.multi = curl_multi_init();
    if (!fetcher->loop.queue || !fetcher->loop.place.multi ||
        !poller_init(&fetcher->loop.place.poller, fetcher->loop.place.multi,
                     &fetcher->loop.place.connections))
        goto failed;
    if (connections_set_bounds(&fetcher->loop.place.connections, fetcher->loop.place.multi))
        goto failed;
    fetcher->loop.resolver = resolver_create(&names);
    fetcher->loop.place.changed = fetching_take_change;
    if (!fetcher->loop.resolver || thread_start(&fetcher->thread, run, fetcher) != 0)
        goto failed;
    if (why_size)
        why[0] = '\0';
    return fetcher;

failed:
    if (fetcher->loop.place.settings) /* what is refused stays the caller's */
        fetcher->loop.place.settings->config.owns_addresses = false;
    dismantle(fetcher);
    return NULL;
}

struct settings *
fetcher_get_settings(struct fetcher *fetcher)
{
    return fetch_settings_retain(fetcher->loop.place.settings);
}

void
fetcher_configure(struct fetcher *fetcher, struct settings *settings)
{
    struct settings *next = fetch_settings_retain(settings), *unread;

    pthread_mutex_lock(&fetcher->loop.lock);
    unread = fetcher->loop.next_settings;
    fetcher->loop.next_settings = next;
    pthread_mutex_unlock(&fetcher->loop.lock);
    fetch_settings_release(&unread);
    wake(fetcher);
}

void
fetcher_stop(struct fetcher *fetcher)
{
    pthread_mutex_lock(&fetcher->loop.lock);
    fetcher->loop.stopping = true;
    pthread_mutex_unlock(&fetcher->loop.lock);
    wake(fetcher);
    pthread_join(fetcher->thread, NULL);
    fetcher->stopped = true;
}

void
fetcher_destroy(struct fetcher *fetcher)
{
    if (!fetcher)
        return;
    if (!fetcher->stopped)
        fetcher_stop(fetcher);
    dismantle(fetcher);
}

/* ---- requests ------------------------------------------------------------------------ */

bool
fetcher_submit(struct fetcher *fetcher, const struct request *request,
               const struct fetch_sink *sink, void *context, uint64_t *id)
{
    struct fetch *r = memory_calloc(fetcher->loop.memory, sizeof(*r));
    bool first, closed;

    if (!r)
        return false;
    r->loop = &fetcher->loop;
    r->consumer.request = request_retain(request);
    r->consumer.sink = *sink;
    r->consumer.context = context;
    r->submitted_us = clock_monotonic_us();
    pthread_mutex_lock(&fetcher->loop.lock);
    first = TAILQ_EMPTY(&fetcher->loop.inbox);
    closed = fetcher->loop.closed;
    if (!closed) {
        fetching_add(&fetcher->loop, r);
        if (id)
            *id = r->id;
        TAILQ_INSERT_TAIL(&fetcher->loop.inbox, r, link);
    }
    pthread_mutex_unlock(&fetcher->loop.lock);
    if (closed) {
        request_release(&r->consumer.request);
        free(r);
        errno = ESHUTDOWN;
    } else if (first) { /* the others are read with the first */
        wake(fetcher);
    }
    return !closed;
}

size_t
fetcher_fetch_bytes(void)
{
    return sizeof(struct fetch);
}

/* Resumes or cancels a fetch, if it has not ended, and has the loop look at it. */
static void
signal_fetch(struct fetcher *fetcher, uint64_t id, bool cancels)
{
    struct fetch_loop *loop = &fetcher->loop;
    struct fetch *f;
    bool wakes;

    pthread_mutex_lock(&loop->lock);
    f = fetching_find(loop, id);
    wakes = f && !f->signalled;
    if (wakes) {
        f->signalled = true;
        TAILQ_INSERT_TAIL(&loop->signals, f, signal_link);
        loop->signal_count++;
    }
    if (f && cancels)
        atomic_store(&f->consumer.cancelled, true);
    else if (f)
        atomic_fetch_add(&f->consumer.resumes, 1);
    pthread_mutex_unlock(&loop->lock);
    if (wakes)
        wake(fetcher);
}

void
fetcher_resume(struct fetcher *fetcher, uint64_t id)
{
    signal_fetch(fetcher, id, false);
}

void
fetcher_cancel(struct fetcher *fetcher, uint64_t id)
{
    signal_fetch(fetcher, id, true);
}

void
fetcher_get_stats(struct fetcher *fetcher, struct fetch_stats *stats)
{
    stats->active = atomic_load_explicit(&fetcher->loop.active, memory_order_relaxed);
    stats->waiting = atomic_load_explicit(&fetcher->loop.waiting, memory_order_relaxed);
    stats->queued = atomic_load_explicit(&fetcher->loop.queued, memory_order_relaxed);
    stats->displaced = atomic_load_explicit(&fetcher->loop.displaced, memory_order_relaxed);
    stats->started = atomic_load_explicit(&fetcher->loop.started, memory_order_relaxed);
    stats->retried = atomic_load_explicit(&fetcher->loop.retried, memory_order_relaxed);
    stats->refused = atomic_load_explicit(&fetcher->loop.refused, memory_order_relaxed);
    stats->bytes = atomic_load_explicit(&fetcher->loop.place.received, memory_order_relaxed);
}
