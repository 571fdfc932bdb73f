#include "fetch/fetch.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "fetch/queue.h"
#include "fetch/timers.h"
#include "fetch/transfer.h"

#define MAX_NAMES 1024u    /* remembered by the resolver */
#define IDLE_WAIT_MS 60000 /* the loop is woken when there is something to do */
#define container_of(pointer, type, member) \
    ((type *)(void *)((char *)(pointer)-offsetof(type, member)))

enum stage {
    STAGE_QUEUED,
    STAGE_RESOLVING,
    STAGE_TRANSFER /* its own stages are the transfer's */
};

/* A fetch, from its submission to its end. */
struct request {
    struct fetcher *fetcher;
    TAILQ_ENTRY(request) link; /* in inbox, then in all */
    /* given, constant */
    struct fetch_sink sink;
    void *context;
    struct span url;     /* in text */
    struct span headers; /* in text */
    int64_t submitted_us;
    /* the fetcher thread's */
    enum stage stage;
    int64_t stage_since_us;
    struct timer timer;
    struct queue_entry turn;
    struct resolver_query query;
    struct transfer transfer;
    struct target target; /* of this hop */
    struct route route;
    char **visited; /* the URLs of earlier hops, owned */
    unsigned redirects;
    bool no_credentials; /* it has left the origin that they were meant for */
    char text[];
};

TAILQ_HEAD(request_list, request);

struct fetcher {
    struct settings settings; /* constant */
    CURLM *multi;
    pthread_t thread;
    pthread_mutex_t lock;
    /* protected by lock */
    struct request_list inbox;
    bool stopping;
    /* the fetcher thread's */
    struct request_list all;
    struct queue *queue;
    struct timers timers;
    struct resolver *resolver;
    /* shared */
    _Atomic uint64_t active;
    _Atomic uint64_t queued;
    _Atomic uint64_t started;
    _Atomic uint64_t received;
};

static const char stopping_sentence[] = "the server is shutting down";

/* ---- the end of a request ------------------------------------------------------------ */

static void
update_stats(struct fetcher *fetcher)
{
    atomic_store_explicit(&fetcher->active, queue_active(fetcher->queue), memory_order_relaxed);
    atomic_store_explicit(&fetcher->queued, queue_waiting(fetcher->queue), memory_order_relaxed);
}

/* Never from inside libcurl. */
static void
finish(struct request *r, enum fetch_error error, const char *sentence)
{
    struct fetcher *fetcher = r->fetcher;

    timers_disarm(&fetcher->timers, &r->timer);
    resolver_cancel(fetcher->resolver, &r->query);
    resolved_release(&r->query.resolved);
    queue_leave(fetcher->queue, &r->turn);
    TAILQ_REMOVE(&fetcher->all, r, link);
    update_stats(fetcher);
    r->sink.done(r->context, error, error ? sentence : "", clock_monotonic_us() - r->submitted_us);
    transfer_clear(&r->transfer, fetcher->multi);
    target_free(&r->target);
    for (unsigned i = 0; i < r->redirects; i++)
        free(r->visited[i]);
    free(r->visited);
    free(r);
}

static void finish_with(struct request *r, enum fetch_error error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void
finish_with(struct request *r, enum fetch_error error, const char *format, ...)
{
    char sentence[SENTENCE_MAX];
    va_list args;

    va_start(args, format);
    sentence_format(sentence, sizeof(sentence), format, args);
    va_end(args);
    finish(r, error, sentence);
}

/* A refused address is a matter of the request at first, and of the redirect later. */
static void
deny(struct request *r, const char *reason)
{
    if (r->redirects)
        finish_with(r, FETCH_BAD_REDIRECT, "redirected to where nobody may go: %s", reason);
    else
        finish(r, FETCH_DENIED, reason);
}

/* ---- time limits --------------------------------------------------------------------- */

/* When this request has waited too long, and for what. */
static int64_t
find_deadline(const struct request *r, const char **what)
{
    const struct fetch_config *config = &r->fetcher->settings.config;
    int64_t total = r->submitted_us + config->total_timeout_us;
    int64_t due = total;

    if (r->stage == STAGE_RESOLVING) {
        due = r->stage_since_us + config->resolve_timeout_us;
        *what = "resolving the name";
    } else if (r->stage == STAGE_TRANSFER) {
        switch (r->transfer.stage) {
        case TRANSFER_CONNECTING:
            due = r->stage_since_us + config->connect_timeout_us;
            *what = "connecting";
            break;
        case TRANSFER_ASKED:
            due = r->stage_since_us + config->first_byte_timeout_us;
            *what = "waiting for the first byte of the answer";
            break;
        case TRANSFER_ANSWERING:
            due = r->transfer.last_byte_us + config->stall_timeout_us;
            *what = "waiting for more of the headers";
            break;
        case TRANSFER_BODY:
            due = r->transfer.last_byte_us + config->stall_timeout_us;
            *what = "waiting for more of the body";
            break;
        }
    }
    if (due < total)
        return due;
    *what = r->stage == STAGE_QUEUED ? "waiting for a turn" : "the whole fetch";
    return total;
}

static void
enter_stage(struct request *r, enum stage stage)
{
    const char *what;

    r->stage = stage;
    r->stage_since_us = clock_monotonic_us();
    timers_arm(&r->fetcher->timers, &r->timer, find_deadline(r, &what));
}

/* ---- one hop ------------------------------------------------------------------------- */

static bool
on_head(void *context, const struct fetch_head *head)
{
    struct request *r = context;

    return r->sink.head(r->context, head);
}

static bool
on_body(void *context, const void *bytes, size_t len)
{
    struct request *r = context;

    return r->sink.body(r->context, bytes, len);
}

static void
on_stage(void *context, enum transfer_stage stage)
{
    (void)stage;
    enter_stage(context, STAGE_TRANSFER);
}

/* What final_url says: the URL as it was asked for, unless a redirect led elsewhere. */
static struct span
current_url(const struct request *r)
{
    return r->redirects ? span_str(r->target.text) : r->url;
}

static void
connect_to(struct request *r, struct resolved *addresses)
{
    struct fetcher *fetcher = r->fetcher;
    struct transfer_owner owner = {
        .context = r,
        .head = on_head,
        .body = on_body,
        .stage = on_stage,
        .received = &fetcher->received,
    };

    if (transfer_start(&r->transfer, fetcher->multi, &fetcher->settings, &r->target, &r->route,
                       addresses, r->headers, !r->no_credentials, current_url(r), &owner))
        enter_stage(r, STAGE_TRANSFER);
    else
        finish(r, FETCH_INTERNAL, "out of memory");
}

/* Keeps of a name's addresses those that may be connected to. NULL without memory. */
static struct resolved *
keep_permitted(const struct address_policy *policy, const struct resolved *from)
{
    struct resolved *kept = resolved_create(from->count);

    if (!kept)
        return NULL;
    kept->count = 0;
    for (size_t i = 0; i < from->count; i++)
        if (address_policy_permits(policy, &from->list[i].any))
            kept->list[kept->count++] = from->list[i];
    return kept;
}

/* The name stands for these addresses. The reference is dropped. */
static void
judge_addresses(struct request *r, struct resolved *addresses)
{
    struct resolved *kept;
    char text[INET6_ADDRSTRLEN], sentence[SENTENCE_MAX];

    if (r->route.by_operator) {
        connect_to(r, addresses);
        resolved_release(&addresses);
        return;
    }
    kept = keep_permitted(r->fetcher->settings.config.addresses, addresses);
    if (!kept) {
        finish(r, FETCH_INTERNAL, "out of memory");
    } else if (kept->count == 0) {
        snprintf(sentence, sizeof(sentence), "%s is at %s, which may not be connected to",
                 r->route.host, address_format(&addresses->list[0], text, sizeof(text)));
        deny(r, sentence);
    } else {
        connect_to(r, kept);
    }
    resolved_release(&kept);
    resolved_release(&addresses);
}

static void
resolve_answered(struct request *r)
{
    struct resolved *addresses = r->query.resolved;

    r->query.resolved = NULL;
    if (r->query.error)
        finish_with(r, r->query.error == EAI_MEMORY ? FETCH_INTERNAL : FETCH_RESOLVE_FAILED,
                    "%s cannot be resolved: %s", r->route.host, gai_strerror(r->query.error));
    else
        judge_addresses(r, addresses);
}

/* With its turn, and r->target in place. */
static void
start_hop(struct request *r)
{
    struct fetcher *fetcher = r->fetcher;
    const struct settings *settings = &fetcher->settings;
    struct resolved *one;
    union address literal;

    r->route = settings_route(settings, &r->target);
    /* Behind a proxy a name is the proxy's to resolve, but an address says itself what it is. */
    if (r->route.proxied && r->target.literal &&
        !address_policy_permits(settings->config.addresses, &r->target.address.any)) {
        char sentence[SENTENCE_MAX];

        snprintf(sentence, sizeof(sentence), "%s may not be connected to", r->target.host);
        deny(r, sentence);
        return;
    }
    if (address_parse(r->route.host, r->route.port, &literal)) {
        one = resolved_create(1);
        if (!one) {
            finish(r, FETCH_INTERNAL, "out of memory");
            return;
        }
        one->list[0] = literal;
        judge_addresses(r, one);
        return;
    }
    enter_stage(r, STAGE_RESOLVING);
    switch (resolver_ask(fetcher->resolver, &r->query, r->route.host)) {
    case RESOLVER_ANSWERED:
        resolve_answered(r);
        break;
    case RESOLVER_PENDING:
        break;
    case RESOLVER_NO_MEMORY:
        finish(r, FETCH_INTERNAL, "out of memory");
        break;
    }
}

/* ---- redirects ----------------------------------------------------------------------- */

static bool
was_visited(const struct request *r, const char *url)
{
    for (unsigned i = 0; i < r->redirects; i++)
        if (strcmp(r->visited[i], url) == 0)
            return true;
    return strcmp(r->target.text, url) == 0;
}

/* Moves on to `next`, whose content it takes. False without memory. */
static bool
move_on(struct request *r, struct target *next)
{
    char **longer = realloc(r->visited, (r->redirects + 1) * sizeof(*longer));

    if (!longer)
        return false;
    r->visited = longer;
    r->visited[r->redirects++] = r->target.text;
    r->target.text = NULL;
    target_free(&r->target);
    r->target = *next;
    *next = (struct target){0};
    return true;
}

static void
redirect(struct request *r)
{
    struct fetcher *fetcher = r->fetcher;
    unsigned max = fetcher->settings.config.max_redirects;
    struct target next;
    char why[256], host[HOST_MAX + 1];
    enum fetch_error error;
    bool same_origin;

    snprintf(host, sizeof(host), "%s", r->target.host);
    error = target_follow(&next, &r->target, r->transfer.head.location, why, sizeof(why));
    if (error) {
        finish_with(r, error == FETCH_BAD_URL ? FETCH_BAD_REDIRECT : error,
                    "%s redirects to \"%.100s\": %s", host, r->transfer.head.location, why);
        return;
    }
    if (was_visited(r, next.text)) {
        finish_with(r, FETCH_BAD_REDIRECT, "redirected in a circle, back to %.300s", next.text);
        target_free(&next);
        return;
    }
    if (r->redirects >= max) {
        finish_with(r, FETCH_BAD_REDIRECT, "redirected more than %u times, last by %s", max, host);
        target_free(&next);
        return;
    }
    transfer_clear(&r->transfer, fetcher->multi);
    same_origin = strcmp(next.origin, r->target.origin) == 0;
    if (!move_on(r, &next)) {
        target_free(&next);
        finish(r, FETCH_INTERNAL, "out of memory");
        return;
    }
    if (same_origin) {
        start_hop(r);
        return;
    }
    /* What the client sent for one origin is no other's business (RFC 9110 section 15.4). */
    r->no_credentials = true;
    queue_leave(fetcher->queue, &r->turn);
    if (queue_enter(fetcher->queue, &r->turn, r->target.origin))
        enter_stage(r, STAGE_QUEUED);
    else
        finish(r, FETCH_INTERNAL, "out of memory");
}

/* A hop is over. */
static void
judge_hop(struct request *r, CURLcode code)
{
    enum fetch_error error;

    /* The rest of a redirect's answer is of no interest, be it broken or endless. */
    if (r->transfer.redirecting) {
        redirect(r);
        return;
    }
    error = transfer_judge(&r->transfer, code);
    if (error == FETCH_DENIED)
        deny(r, r->transfer.sentence);
    else
        finish(r, error, r->transfer.sentence);
}

/* ---- the loop ------------------------------------------------------------------------ */

static void
start_those_whose_turn_it_is(struct fetcher *fetcher)
{
    struct queue_entry *entry;

    while ((entry = queue_next(fetcher->queue))) {
        struct request *r = container_of(entry, struct request, turn);

        if (r->redirects == 0)
            atomic_fetch_add_explicit(&fetcher->started, 1, memory_order_relaxed);
        start_hop(r);
    }
}

static void
begin(struct request *r)
{
    struct fetcher *fetcher = r->fetcher;
    char why[SENTENCE_MAX];
    enum fetch_error error;

    error = target_parse(&r->target, r->url, why, sizeof(why));
    if (!error)
        error = fetch_check_headers(r->headers, why, sizeof(why));
    if (error) {
        finish(r, error, why);
        return;
    }
    /* Turns that were given up since. */
    start_those_whose_turn_it_is(fetcher);
    if (!queue_enter(fetcher->queue, &r->turn, r->target.origin)) {
        finish(r, FETCH_INTERNAL, "out of memory");
        return;
    }
    enter_stage(r, STAGE_QUEUED);
    /* Whoever could start has started, and if anyone can now, it is this one. */
    if (queue_waiting(fetcher->queue) > fetcher->settings.config.max_queued &&
        !queue_could_start(fetcher->queue))
        finish(r, FETCH_OVERLOADED, "too many fetches are waiting already; try again");
    else
        start_those_whose_turn_it_is(fetcher);
}

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
        TAILQ_INSERT_TAIL(&fetcher->all, r, link);
        if (stopping)
            finish(r, FETCH_STOPPING, stopping_sentence);
        else
            begin(r);
    }
    return !stopping;
}

static void
read_resolver(struct fetcher *fetcher)
{
    struct resolver_query *query;

    while ((query = resolver_collect(fetcher->resolver)))
        resolve_answered(container_of(query, struct request, query));
}

static void
read_transfers(struct fetcher *fetcher)
{
    CURLMsg *message;
    int left;

    while ((message = curl_multi_info_read(fetcher->multi, &left))) {
        CURLcode code = message->data.result;
        char *owner = NULL;

        if (message->msg != CURLMSG_DONE)
            continue;
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &owner);
        judge_hop((struct request *)(void *)owner, code);
    }
}

static void
read_timers(struct fetcher *fetcher)
{
    int64_t now = clock_monotonic_us();
    struct timer *timer;

    while ((timer = timers_first(&fetcher->timers)) && timer->due_us <= now) {
        struct request *r = container_of(timer, struct request, timer);
        const char *what;
        /* Bytes that came meanwhile have moved the deadline without touching the timer. */
        int64_t due = find_deadline(r, &what);

        if (due > now)
            timers_arm(&fetcher->timers, timer, due);
        else if (r->stage == STAGE_TRANSFER && r->transfer.redirecting &&
                 r->submitted_us + fetcher->settings.config.total_timeout_us > now)
            redirect(r);
        else
            finish_with(r, FETCH_TIMED_OUT, "%s: %s took too long", r->target.host, what);
    }
}

static int
find_wait_ms(struct fetcher *fetcher)
{
    const struct timer *timer = timers_first(&fetcher->timers);
    int64_t left;

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
        curl_multi_perform(fetcher->multi, &running);
        read_transfers(fetcher);
        read_timers(fetcher);
        start_those_whose_turn_it_is(fetcher);
        update_stats(fetcher);
        curl_multi_poll(fetcher->multi, NULL, 0, find_wait_ms(fetcher), NULL);
    }
    while ((r = TAILQ_FIRST(&fetcher->all)))
        finish(r, FETCH_STOPPING, stopping_sentence);
    /* What those call-backs submitted. */
    while (has_mail(fetcher))
        read_inbox(fetcher);
    update_stats(fetcher);
    return NULL;
}

/* ---- from outside -------------------------------------------------------------------- */

static void
wake(void *context)
{
    struct fetcher *fetcher = context;

    curl_multi_wakeup(fetcher->multi);
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
    sigset_t all, before;
    int failed;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    failed = pthread_create(&fetcher->thread, NULL, run, fetcher);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return !failed;
}

static void
dismantle(struct fetcher *fetcher)
{
    resolver_destroy(fetcher->resolver);
    curl_multi_cleanup(fetcher->multi);
    queue_destroy(fetcher->queue);
    settings_free(&fetcher->settings);
    pthread_mutex_destroy(&fetcher->lock);
    free(fetcher);
}

struct fetcher *
fetcher_create(const struct fetch_config *config, char *why, size_t why_size)
{
    struct fetcher *fetcher = calloc(1, sizeof(*fetcher));
    struct resolver_config names = {
        .threads = config->resolver_threads,
        .max_names = MAX_NAMES,
        .ttl_us = config->dns_ttl_us,
        .notify = wake,
        .context = fetcher,
    };

    pthread_once(&curl_once, prepare_curl);
    if (!fetcher || curl_ready != CURLE_OK || pthread_mutex_init(&fetcher->lock, NULL) != 0) {
        snprintf(why, why_size, "cannot set up libcurl, or out of memory");
        free(fetcher);
        return NULL;
    }
    TAILQ_INIT(&fetcher->inbox);
    TAILQ_INIT(&fetcher->all);
    timers_init(&fetcher->timers);
    if (!settings_init(&fetcher->settings, config, why, why_size))
        goto failed;
    snprintf(why, why_size, "cannot start, for want of memory or threads");
    names.getaddrinfo = fetcher->settings.config.getaddrinfo;
    names.freeaddrinfo = fetcher->settings.config.freeaddrinfo;
    fetcher->queue = queue_create(config->max_active, config->max_active_per_origin);
    fetcher->multi = curl_multi_init();
    if (!fetcher->queue || !fetcher->multi)
        goto failed;
    if (curl_multi_setopt(fetcher->multi, CURLMOPT_MAXCONNECTS, (long)config->max_active))
        goto failed;
    fetcher->resolver = resolver_create(&names);
    if (!fetcher->resolver || !start_thread(fetcher))
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
fetcher_submit(struct fetcher *fetcher, struct span url, struct span headers,
               const struct fetch_sink *sink, void *context)
{
    struct request *r = calloc(1, sizeof(*r) + url.len + headers.len);
    bool first;

    if (!r)
        return false;
    r->fetcher = fetcher;
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

void
fetcher_get_stats(struct fetcher *fetcher, struct fetch_stats *stats)
{
    stats->active = atomic_load_explicit(&fetcher->active, memory_order_relaxed);
    stats->queued = atomic_load_explicit(&fetcher->queued, memory_order_relaxed);
    stats->started = atomic_load_explicit(&fetcher->started, memory_order_relaxed);
    stats->bytes = atomic_load_explicit(&fetcher->received, memory_order_relaxed);
}
