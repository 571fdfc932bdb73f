#include "proxy/origin_fill.h"

#include <errno.h>
#include <stdio.h>

#include "base/container_of.h"
#include "base/units.h"
#include "proxy/sharing.h"

/* The fetcher's thread's from its submission on. */
struct origin_fill {
    struct cache_fill base; /* first */
    struct proxy *proxy;
    struct client_key client; /* that it is fetched for */
    struct sharing sharing;
    struct relay *relay; /* a reference, or NULL */
    struct shedding_body body;
    uint64_t fetch;       /* the fetch's id */
    size_t charged;       /* to the account, */
    size_t counted;       /* and for the client */
    enum failure failure; /* the object has failed, before the fetch's end; 0: it has not */
    const char *sentence; /* then: static text */
    bool bypass;
    bool no_store; /* the fetch says so */
    bool streams;  /* the leader's front does */
    bool safe;     /* the method is GET or HEAD: ending the fetch has no effect on the origin */
    _Atomic bool may_keep; /* false once it is known that the object will not be stored */
    uint64_t max_whole;    /* bytes of the body that are kept whole. After the head */
    int64_t unwanted_us;   /* since when no request waits for it, as far as was seen; 0: some did */
};

size_t
origin_fill_size(void)
{
    return sizeof(struct origin_fill);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static const char out_of_memory[] = "Cannot allocate memory";

const char *
origin_fill_refusal(int error, enum failure *why)
{
    *why = error == ENOMEM ? FAILURE_INTERNAL : FAILURE_OVERLOADED;
    switch (error) {
    case EDQUOT:
        return "too many requests of this client wait already; try again";
    case ENOBUFS:
        return "too many requests wait already; try again";
    default:
        return out_of_memory;
    }
}

/* 0, or an error for origin_fill_refusal(). */
static int
charge(struct origin_fill *fill, const struct fetch_request *fetch, size_t waiting_bytes)
{
    struct proxy *proxy = fill->proxy;
    /* The object without a head, and as much for its failure. */
    size_t bytes = sizeof(*fill) + 2 * object_size(fill->base.object) + OBJECT_MAX_FAILURE +
                   fetcher_request_bytes(fetch);

    if (!client_tally_take(proxy->waiting, &fill->client, bytes + waiting_bytes))
        return errno;
    if (!memory_charge(proxy->config.account, MEMORY_REQUESTS, bytes)) {
        client_tally_give_back(proxy->waiting, &fill->client, bytes + waiting_bytes);
        return ENOBUFS;
    }
    fill->charged = bytes;
    fill->counted = bytes + waiting_bytes;
    return 0;
}

/* The fill has ended: nothing refers to it any more. */
static void
free_fill(struct origin_fill *fill)
{
    struct proxy *proxy = fill->proxy;

    relay_close(&fill->relay);
    if (fill->counted) {
        memory_uncharge(proxy->config.account, MEMORY_REQUESTS, fill->charged);
        client_tally_give_back(proxy->waiting, &fill->client, fill->counted);
    }
    cache_fill_free(&fill->base);
}

/* ---- on the fetcher's thread ----------------------------------------------------------------- */

static void
fill_begin(void *context)
{
    struct origin_fill *fill = context;

    shedding_charge_for(&fill->proxy->shedding, &fill->client, NULL);
}

/* The other waiters look up again. A bypass has none, and proves nothing for other requests. */
static void
isolate(struct origin_fill *fill)
{
    atomic_store(&fill->may_keep, false);
    if (!fill->bypass)
        cache_fill_isolate(&fill->base, proxy_now_us(fill->proxy) + ORIGIN_FILL_MARKER_US);
}

static void
fill_hop(void *context, const struct fetch_hop *hop)
{
    struct origin_fill *fill = context;
    const struct proxy_config *config = &fill->proxy->config;

    metrics_observe(config->metrics, metrics_fetcher_slot(config->metrics),
                    HISTOGRAM_ORIGIN_FIRST_BYTE, hop->waited_us);
    sharing_add_hop(&fill->sharing, hop, proxy_now_us(fill->proxy),
                    config->clock.wall_us(config->clock.context));
    if (fill->sharing.unshared)
        isolate(fill);
}

/* Do the origin and the request allow that the object is stored? */
static bool
may_store(const struct origin_fill *fill, unsigned status)
{
    /* Only 200: storing responses of other status codes needs more of HTTP's rules. */
    return status == 200 && !fill->bypass && !fill->no_store && !fill->sharing.unshared;
}

/* Fails the object now, since the memory that it takes is needed; the fetch ends later. */
static void
fail_early(struct origin_fill *fill, int error)
{
    switch (error) {
    case ENOBUFS:
        fill->failure = FAILURE_OVERLOADED;
        fill->sentence =
            "too many bytes are being fetched, or wait for clients to read them; try again";
        break;
    case EFBIG:
        fill->failure = FAILURE_TOO_LARGE;
        fill->sentence = "the response is larger than the proxy takes";
        break;
    case EINVAL:
        fill->failure = FAILURE_INTERNAL;
        fill->sentence = "the head of the response is larger than the proxy takes";
        break;
    case ECANCELED:
        fill->failure = FAILURE_CANCELLED;
        fill->sentence = "no request waits for the response any more";
        break;
    default:
        fill->failure = FAILURE_INTERNAL;
        fill->sentence = out_of_memory;
        break;
    }
    shedding_remove(&fill->proxy->shedding, &fill->body);
    cache_fill_fail(&fill->base, fill->failure, fill->sentence, NULL, NULL);
}

/* Memory is short, and this body is stalled, or the largest of the client that holds most. */
static void
give_up(struct shedding_body *body)
{
    struct origin_fill *fill = container_of(body, struct origin_fill, body);
    const struct origin *origin = &fill->proxy->config.origin;

    fail_early(fill, ENOBUFS);
    origin->ops->cancel(origin->context, fill->fetch);
}

/* ---- bodies that are not stored -------------------------------------------------------------- */

/* The largest body that is stored. */
static uint64_t
largest_stored(const struct origin_fill *fill)
{
    const struct proxy_config *config = &fill->proxy->config;
    struct cache_config cache;

    if (config->max_page)
        return config->max_page;
    if (!fill->streams)
        return config->max_body;
    cache_get_config(config->cache, &cache);
    return cache.capacity_bytes ? cache.capacity_bytes / 8 : config->max_body;
}

static void
resume(struct cache_fill *base)
{
    struct origin_fill *fill = (struct origin_fill *)base;
    const struct origin *origin = &fill->proxy->config.origin;

    origin->ops->resume(origin->context, fill->fetch);
}

/* Can the body get a window? An inline one has all its memory already. */
static bool
can_open_window(const struct origin_fill *fill)
{
    return fill->streams && fill->base.object->segmented && !object_is_windowed(fill->base.object);
}

/*
 * The object is not stored, and has a window from now on: 0 or an errno. Waiters that do not stream
 * fail for the reason `why`; 0: if there are any, the answer is EBUSY.
 */
static int
open_window(struct origin_fill *fill, enum failure why)
{
    static const char *const sentences[] = {
        [FAILURE_TOO_LARGE] = "the response is larger than the proxy takes for this client",
        [FAILURE_OVERLOADED] = "too many bytes are being fetched; try again",
    };
    const struct cache_window window = {
        .size = ORIGIN_FILL_WINDOW,
        .lag = ORIGIN_FILL_LAG,
        .lags = {FAILURE_OVERLOADED,
                 "the response is not stored, and another client reads it much faster; try again"},
        .whole = {why, why ? sentences[why] : NULL},
        .resume = resume,
    };

    atomic_store(&fill->may_keep, false);
    if (!fill->sharing.unshared)
        cache_fill_unmark(&fill->base);
    return cache_fill_unstore(&fill->base, &window);
}

/* The body has or is going to have `length` bytes: opens the window if that is too much. */
static int
open_window_for(struct origin_fill *fill, uint64_t length)
{
    uint64_t max_body = fill->proxy->config.max_body;
    int error;

    if (length <= fill->max_whole || !can_open_window(fill))
        return 0;
    error = open_window(fill, length > max_body ? FAILURE_TOO_LARGE : 0);
    return error == EBUSY ? 0 : error;
}

/* ---- fetches that no request waits for ------------------------------------------------------- */

/* With the lock of the cache, or on the fetcher's thread. */
static bool
is_worth_finishing(const struct origin_fill *fill)
{
    const struct cache_fill *base = &fill->base;
    uint64_t length = object_length(base->object), declared;

    if (!base->has_head && !fill->safe)
        return true;
    if (!atomic_load(&fill->may_keep))
        return false;
    if (!base->has_head || base->declared < 0)
        return length < ORIGIN_FILL_LITTLE;
    declared = (uint64_t)base->declared;
    return declared - length < ORIGIN_FILL_LITTLE || length > declared / 4 * 3;
}

static bool
unwanted(struct cache_fill *base)
{
    struct origin_fill *fill = (struct origin_fill *)base;
    const struct origin *origin = &fill->proxy->config.origin;

    if (is_worth_finishing(fill))
        return false;
    origin->ops->cancel(origin->context, fill->fetch);
    return true;
}

/* ECANCELED if the fetch is to end because no request waits for it; 0: it goes on. */
static int
check_wanted(struct origin_fill *fill)
{
    int64_t now_us = proxy_now_us(fill->proxy);

    if (!cache_fill_is_unwanted(&fill->base)) {
        fill->unwanted_us = 0;
        return 0;
    }
    if (!fill->unwanted_us)
        fill->unwanted_us = now_us;
    if (is_worth_finishing(fill) && now_us - fill->unwanted_us <= ORIGIN_FILL_UNWANTED_US)
        return 0;
    return cache_fill_abandon(&fill->base) ? ECANCELED : 0;
}

/* ---- the response ---------------------------------------------------------------------------- */

static enum fetch_flow
fill_head(void *context, const struct fetch_head *head)
{
    struct origin_fill *fill = context;
    struct proxy *proxy = fill->proxy;
    struct span url = object_url(fill->base.object);
    uint64_t largest = largest_stored(fill);
    int error;

    shedding_charge_for(&proxy->shedding, &fill->client, NULL);
    fill->no_store = head->no_store;
    if (!may_store(fill, head->status) ||
        (head->content_length > 0 && (uint64_t)head->content_length > largest))
        atomic_store(&fill->may_keep, false);
    fill->max_whole = atomic_load(&fill->may_keep) ? largest : ORIGIN_FILL_WINDOW;
    error = cache_fill_head(
        &fill->base,
        &(struct object_head){
            .status = head->status,
            .final_url = span_equal(head->final_url, url) ? span_of(NULL, 0) : head->final_url,
            .fields = head->headers,
            .length = head->content_length,
            .max_length = fill->streams ? UINT64_MAX : proxy->config.max_body,
            .account = proxy->config.account,
        });
    if (!error && head->content_length > 0)
        error = open_window_for(fill, (uint64_t)head->content_length);
    if (!error)
        error = check_wanted(fill);
    fill->body.give_up = give_up;
    if (!error && !shedding_add(&proxy->shedding, &fill->body, &fill->client,
                                object_size(fill->base.object), proxy_now_us(proxy)))
        error = ENOMEM;
    if (!error)
        return FETCH_CONTINUE;
    fail_early(fill, error);
    return FETCH_ABORT;
}

static enum fetch_flow
fill_body(void *context, const void *bytes, size_t len)
{
    struct origin_fill *fill = context;
    struct shedding *shedding = &fill->proxy->shedding;
    int error;

    shedding_charge_for(shedding, &fill->client, &fill->body);
    error = check_wanted(fill);
    if (!error)
        error = open_window_for(fill, object_length(fill->base.object) + len);
    if (!error)
        error = cache_fill_append(&fill->base, bytes, len);
    /* Out of memory the object is passed on and not stored. */
    if ((error == ENOBUFS || error == ENOMEM) && can_open_window(fill)) {
        error = open_window(fill, FAILURE_OVERLOADED);
        if (!error)
            error = cache_fill_append(&fill->base, bytes, len);
    }
    if (error && error != CACHE_FILL_PAUSE) {
        fail_early(fill, error);
        return FETCH_ABORT;
    }
    shedding_grow(shedding, &fill->body, object_size(fill->base.object),
                  (size_t)object_length(fill->base.object), proxy_now_us(fill->proxy));
    return error ? FETCH_PAUSE : FETCH_CONTINUE;
}

static enum fetch_supply
fill_supply(void *context, void *buffer, size_t size, size_t *len)
{
    struct origin_fill *fill = context;

    return relay_supply(fill->relay, fill->fetch, buffer, size, len);
}

static void
finish(struct origin_fill *fill, int64_t total_us)
{
    int64_t now_us = proxy_now_us(fill->proxy);
    int64_t lifetime_us = sharing_lifetime(&fill->sharing, now_us);
    bool store = atomic_load(&fill->may_keep) && may_store(fill, fill->base.object->status) &&
                 object_length(fill->base.object) <= fill->max_whole;

    shedding_charge_for(&fill->proxy->shedding, &fill->client, NULL);
    /* The response may have become stale while it arrived. */
    if (fill->sharing.unshared)
        isolate(fill);
    else if (!store)
        cache_fill_unmark(&fill->base);
    cache_fill_finish(&fill->base, store, (uint64_t)total_us, now_us, lifetime_us);
}

static bool
is_of_another_client(const struct object_waiter *base, void *context)
{
    const struct origin_waiter *waiter = (const struct origin_waiter *)base;
    const struct client_key *client = context;

    return client_key_compare(&waiter->client, client) != 0;
}

static void
fill_done(void *context, enum fetch_error error, const char *sentence, int64_t total_us)
{
    struct origin_fill *fill = context;
    const struct proxy_config *config = &fill->proxy->config;
    enum failure failure = fill->failure;

    shedding_remove(&fill->proxy->shedding, &fill->body);
    if (failure) {
        sentence = fill->sentence;
    } else if (error == FETCH_OK) {
        finish(fill, total_us);
    } else {
        failure = error == FETCH_CANCELLED && cache_fill_is_unwanted(&fill->base)
                      ? FAILURE_CANCELLED
                      : failure_of_fetch(error);
        cache_fill_fail(&fill->base, failure, sentence,
                        error == FETCH_DISPLACED ? is_of_another_client : NULL, &fill->client);
    }
    if (config->fetched)
        config->fetched(&(struct proxy_fetched){
            .url = object_url(fill->base.object),
            .total_us = total_us,
            .failure = failure,
            .sentence = sentence,
            .unshared = fill->sharing.unshared,
        });
    free_fill(fill);
}

static const struct fetch_sink sink = {
    .begin = fill_begin,
    .hop = fill_hop,
    .head = fill_head,
    .body = fill_body,
    .supply = fill_supply,
    .done = fill_done,
};

/* ---- submission ------------------------------------------------------------------------------ */

/*
 * Is there user information in the authority of the URL (RFC 3986, section 3.2)? The fetcher, which
 * parses the URL exactly, says so again with each response (struct fetch_hop); known now, no
 * request waits for a response that is not shared.
 */
static bool
has_user(struct span url)
{
    const char *end = url.ptr + url.len;
    const char *c = memmem(url.ptr, url.len, "//", 2);

    for (c = c ? c + 2 : end; c < end && *c != '/' && *c != '?' && *c != '#'; c++)
        if (*c == '@')
            return true;
    return false;
}

/* Takes the token of a fetch: 0, or in how many microseconds there will be one. */
static int64_t
take_token(const struct origin_fill_request *request, int64_t now_us)
{
    if (!request->limits)
        return 0;
    if (!request->late)
        return client_entry_take_fetch(request->limits, now_us);
    client_entry_charge_fetch(request->limits, now_us);
    return 0;
}

static bool
always(const struct object_waiter *waiter, void *context)
{
    (void)waiter;
    (void)context;
    return true;
}

static void
ignore(struct object_waiter *waiter)
{
    (void)waiter;
}

bool
origin_fill_start(struct proxy *proxy, struct cache_fill *base,
                  const struct origin_fill_request *request)
{
    struct origin_fill *fill = (struct origin_fill *)base;
    const struct origin *origin = &proxy->config.origin;
    const struct fetch_request fetch = {
        .client = request->leader->client,
        .method = request->method,
        .url = object_url(base->object),
        .headers = request->fields,
        .body = {.kind = request->has_body ? FETCH_BODY_SUPPLIED : FETCH_BODY_NONE,
                 .length = request->body_length},
        .flags = (request->raw ? FETCH_UNDECODED | FETCH_NO_REDIRECTS : 0u) |
                 (request->leader->base.streams ? FETCH_MAY_PAUSE | FETCH_ANY_LENGTH : 0u),
    };
    enum failure why = FAILURE_INTERNAL;
    const char *sentence = out_of_memory;
    char text[FAILURE_SENTENCE];
    enum fetch_error invalid;
    int64_t wait_us;
    int error;

    fill->proxy = proxy;
    fill->client = request->leader->client;
    fill->relay = request->relay;
    fill->bypass = request->bypass;
    fill->streams = request->leader->base.streams;
    fill->safe = request->method.len == 0 || span_equal(request->method, span_str("GET")) ||
                 span_equal(request->method, span_str("HEAD"));
    atomic_init(&fill->may_keep, !request->bypass);
    base->unwanted = unwanted;
    sharing_init(&fill->sharing, !proxy->config.follows_http);
    /* Before anything is charged: a URL that cannot be fetched costs its client nothing. */
    invalid = fetch_check_request(&fetch, text, sizeof(text));
    error = invalid ? 0 : charge(fill, &fetch, request->waiting_bytes);
    if (invalid) {
        why = failure_of_fetch(invalid);
        sentence = text;
    } else if (error) {
        sentence = origin_fill_refusal(error, &why);
    } else if ((wait_us = take_token(request, proxy_now_us(proxy)))) {
        char wait[32];

        why = FAILURE_OVERLOADED;
        snprintf(text, sizeof(text),
                 "the rate of fetches for this client is used up; try again in %s",
                 units_format_duration(wait_us, wait, sizeof(wait)));
        sentence = text;
    } else {
        if (proxy->config.follows_http && has_user(fetch.url))
            isolate(fill);
        if (origin->ops->submit(origin->context, &fetch, &sink, fill, &fill->fetch))
            return true;
        if (errno == ESHUTDOWN) {
            why = FAILURE_STOPPING;
            sentence = "the server is shutting down";
        }
    }
    /* No other thread has the fill yet. */
    request->leader->base.notify = ignore;
    cache_fill_fail(base, why, sentence, always, NULL);
    free_fill(fill);
    return false;
}
