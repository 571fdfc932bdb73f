#include "fetch/fetch.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/container_of.h"
#include "base/thread.h"
#include "fetch/request.h"

#define MAX_NAMES 1024u    /* remembered by the resolver */
#define IDLE_WAIT_MS 60000 /* the loop is woken when there is something to do */

struct fetcher {
    struct fetch_loop loop;
    pthread_t thread;
    pthread_mutex_t lock;
    /* protected by lock */
    struct request_list inbox;
    bool stopping;
};

static const char stopping_sentence[] = "the server is shutting down";

/* ---- the loop ------------------------------------------------------------------------ */

/*
 * Takes up what has been submitted by now; what comes meanwhile waits, so that nobody who submits
 * without end keeps the transfers from going on. False once the fetcher is to stop.
 */
static bool
read_inbox(struct fetcher *fetcher)
{
    struct request_list taken = TAILQ_HEAD_INITIALIZER(taken);
    struct request *r;
    bool stopping;

    pthread_mutex_lock(&fetcher->lock);
    stopping = fetcher->stopping;
    TAILQ_CONCAT(&taken, &fetcher->inbox, link);
    pthread_mutex_unlock(&fetcher->lock);
    while ((r = TAILQ_FIRST(&taken))) {
        TAILQ_REMOVE(&taken, r, link);
        TAILQ_INSERT_TAIL(&fetcher->loop.all, r, link);
        if (stopping)
            request_finish(r, FETCH_STOPPING, stopping_sentence);
        else
            request_begin(r);
    }
    return !stopping;
}

static void
read_resolver(struct fetcher *fetcher)
{
    struct resolver_query *query;

    while ((query = resolver_collect(fetcher->loop.resolver)))
        request_take_addresses(container_of(query, struct request, query));
}

static void
read_transfers(struct fetcher *fetcher)
{
    CURLMsg *message;
    int left;

    while ((message = curl_multi_info_read(fetcher->loop.multi, &left))) {
        CURLcode code = message->data.result;
        char *owner = NULL;

        if (message->msg != CURLMSG_DONE)
            continue;
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &owner);
        request_take_result((struct request *)(void *)owner, code);
    }
}

static void
read_timers(struct fetcher *fetcher)
{
    int64_t now = clock_monotonic_us();
    struct timer *timer;

    while ((timer = timers_first(&fetcher->loop.timers)) && timer->due_us <= now)
        request_check_time(container_of(timer, struct request, timer), now);
}

static int
find_wait_ms(struct fetcher *fetcher)
{
    const struct timer *timer = timers_first(&fetcher->loop.timers);
    int64_t left;

    if (!TAILQ_EMPTY(&fetcher->loop.paused))
        return 0;
    if (!timer)
        return IDLE_WAIT_MS;
    left = timer->due_us - clock_monotonic_us();
    if (left <= 0)
        return 0;
    return left / 1000 < IDLE_WAIT_MS ? (int)(left / 1000) + 1 : IDLE_WAIT_MS;
}

static bool
has_mail(struct fetcher *fetcher)
{
    bool mail;

    pthread_mutex_lock(&fetcher->lock);
    mail = !TAILQ_EMPTY(&fetcher->inbox);
    pthread_mutex_unlock(&fetcher->lock);
    return mail;
}

static void *
run(void *argument)
{
    struct fetcher *fetcher = argument;
    struct request *r;
    int running;

    while (read_inbox(fetcher)) {
        read_resolver(fetcher);
        request_resume_paused(&fetcher->loop);
        curl_multi_perform(fetcher->loop.multi, &running);
        read_transfers(fetcher);
        read_timers(fetcher);
        request_start_next(&fetcher->loop);
        request_update_stats(&fetcher->loop);
        curl_multi_poll(fetcher->loop.multi, NULL, 0, find_wait_ms(fetcher), NULL);
    }
    while ((r = TAILQ_FIRST(&fetcher->loop.all)))
        request_finish(r, FETCH_STOPPING, stopping_sentence);
    /* What those call-backs submitted. */
    while (has_mail(fetcher))
        read_inbox(fetcher);
    request_update_stats(&fetcher->loop);
    return NULL;
}

/* ---- from outside -------------------------------------------------------------------- */

static void
wake(void *context)
{
    struct fetcher *fetcher = context;

    curl_multi_wakeup(fetcher->loop.multi);
}

static pthread_once_t curl_once = PTHREAD_ONCE_INIT;
static CURLcode curl_ready;

static void
prepare_curl(void)
{
    curl_ready = curl_global_init(CURL_GLOBAL_DEFAULT);
}

/* Signals are for the threads that the program made for them. */
static bool
start_thread(struct fetcher *fetcher)
{
    int failed;

    failed = thread_start(&fetcher->thread, run, fetcher);
    return !failed;
}

/*
 * A client may use the same part of the resolver's threads as of all fetches, two at least; 0 if
 * there is no bound.
 */
static unsigned
share_of_threads(const struct fetch_config *config)
{
    uint64_t share = (uint64_t)config->resolver_threads * config->max_active_per_client;

    if (config->max_active_per_client == 0 || config->max_active == 0)
        return 0;
    share = (share + config->max_active - 1) / config->max_active;
    return share < 2 ? 2 : (unsigned)share;
}

static void
dismantle(struct fetcher *fetcher)
{
    resolver_destroy(fetcher->loop.resolver);
    curl_multi_cleanup(fetcher->loop.multi);
    connections_free(&fetcher->loop.connections);
    queue_destroy(fetcher->loop.queue);
    settings_free(&fetcher->loop.settings);
    pthread_mutex_destroy(&fetcher->lock);
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
    const struct queue_limits limits = {
        .active = config->max_active,
        .opening = settings_max_waiting(config),
        .per_origin = config->max_active_per_origin,
        .per_client = config->max_active_per_client,
    };

    pthread_once(&curl_once, prepare_curl);
    if (!fetcher || curl_ready != CURLE_OK || pthread_mutex_init(&fetcher->lock, NULL) != 0) {
        snprintf(why, why_size, "cannot set up libcurl, or out of memory");
        free(fetcher);
        return NULL;
    }
    TAILQ_INIT(&fetcher->inbox);
    TAILQ_INIT(&fetcher->loop.all);
    TAILQ_INIT(&fetcher->loop.paused);
    connections_init(&fetcher->loop.connections);
    timers_init(&fetcher->loop.timers);
    if (!settings_init(&fetcher->loop.settings, config, why, why_size))
        goto failed;
    snprintf(why, why_size, "cannot start, for want of memory or threads");
    names.getaddrinfo = fetcher->loop.settings.config.getaddrinfo;
    names.freeaddrinfo = fetcher->loop.settings.config.freeaddrinfo;
    fetcher->loop.queue = queue_create(&limits);
    fetcher->loop.multi = curl_multi_init();
    if (!fetcher->loop.queue || !fetcher->loop.multi)
        goto failed;
    if (curl_multi_setopt(fetcher->loop.multi, CURLMOPT_MAXCONNECTS, (long)config->max_active))
        goto failed;
    fetcher->loop.resolver = resolver_create(&names);
    if (!fetcher->loop.resolver || !start_thread(fetcher))
        goto failed;
    if (why_size)
        why[0] = '\0';
    return fetcher;

failed:
    dismantle(fetcher);
    return NULL;
}

void
fetcher_destroy(struct fetcher *fetcher)
{
    if (!fetcher)
        return;
    pthread_mutex_lock(&fetcher->lock);
    fetcher->stopping = true;
    pthread_mutex_unlock(&fetcher->lock);
    wake(fetcher);
    pthread_join(fetcher->thread, NULL);
    dismantle(fetcher);
}

bool
fetcher_submit(struct fetcher *fetcher, const struct client_key *client, struct span url,
               struct span headers, const struct fetch_sink *sink, void *context)
{
    struct request *r =
        memory_calloc(fetcher->loop.settings.config.memory, fetcher_request_bytes(url, headers));
    bool first;

    if (!r)
        return false;
    r->loop = &fetcher->loop;
    r->client = *client;
    r->sink = *sink;
    r->context = context;
    r->url = span_of(r->text, url.len);
    r->headers = span_of(r->text + url.len, headers.len);
    if (url.len)
        memcpy(r->text, url.ptr, url.len);
    if (headers.len)
        memcpy(r->text + url.len, headers.ptr, headers.len);
    r->submitted_us = clock_monotonic_us();
    pthread_mutex_lock(&fetcher->lock);
    first = TAILQ_EMPTY(&fetcher->inbox);
    TAILQ_INSERT_TAIL(&fetcher->inbox, r, link);
    pthread_mutex_unlock(&fetcher->lock);
    /* The others are taken up with the first. */
    if (first)
        wake(fetcher);
    return true;
}

size_t
fetcher_request_bytes(struct span url, struct span headers)
{
    return sizeof(struct request) + url.len + headers.len;
}

void
fetcher_end(struct fetcher *fetcher, const void *context)
{
    struct request *r;

    TAILQ_FOREACH(r, &fetcher->loop.all, link)
    {
        if (r->context == context) {
            request_end_soon(r);
            return;
        }
    }
}

void
fetcher_get_stats(struct fetcher *fetcher, struct fetch_stats *stats)
{
    stats->active = atomic_load_explicit(&fetcher->loop.active, memory_order_relaxed);
    stats->waiting = atomic_load_explicit(&fetcher->loop.waiting, memory_order_relaxed);
    stats->queued = atomic_load_explicit(&fetcher->loop.queued, memory_order_relaxed);
    stats->displaced = atomic_load_explicit(&fetcher->loop.displaced, memory_order_relaxed);
    stats->started = atomic_load_explicit(&fetcher->loop.started, memory_order_relaxed);
    stats->bytes = atomic_load_explicit(&fetcher->loop.received, memory_order_relaxed);
}
