#include "proxy/origin_fill.h"

#include <errno.h>
#include <stdio.h>

#include "base/container_of.h"
#include "base/units.h"
#include "proxy/invalidation.h"
#include "proxy/origin_fill_parts.h"

size_t
origin_fill_size(void)
{
    return sizeof(struct origin_fill);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static const char out_of_memory[] = "Cannot allocate memory";
static const char stopping[] = "the server is shutting down";

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
                   fill->lines.capacity + fetcher_request_bytes(fetch);

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
    buf_free(&fill->lines);
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

void
origin_fill_isolate(struct origin_fill *fill)
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
    if (fill->raw)
        origin_raw_hop(fill, hop);
    else
        sharing_add_hop(&fill->sharing, hop, proxy_now_us(fill->proxy),
                        config->clock.wall_us(config->clock.context));
    if (fill->sharing.unshared)
        origin_fill_isolate(fill);
}

static void
fill_interim(void *context, unsigned status, struct span lines)
{
    struct origin_fill *fill = context;

    if (fill->relay)
        relay_add_interim(fill->relay, status, lines);
}

void
origin_fill_fail_early(struct origin_fill *fill, int error)
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
    case ESHUTDOWN:
        fill->failure = FAILURE_STOPPING;
        fill->sentence = stopping;
        break;
    case ECANCELED:
        fill->failure = FAILURE_CANCELLED;
        fill->sentence = "no request waits for the response any more";
        break;
    case EPROTO:
        fill->failure = FAILURE_ORIGIN;
        fill->sentence = "the origin sent 304 to a request without a condition";
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

    origin_fill_fail_early(fill, ENOBUFS);
    origin->ops->cancel(origin->context, origin_fill_fetch(fill));
}

/* ---- the response ---------------------------------------------------------------------------- */

/* Do the rules permit that it is stored? */
static bool
may_store(const struct origin_fill *fill, unsigned status)
{
    /* Only 200 of what is not raw: the status is that of the last of several responses. */
    bool storable = fill->raw ? fill->sharing.storable : status == 200;

    return storable && !fill->bypass && !fill->no_store && !fill->sharing.unshared;
}

/* The object begins: 0 or an errno. */
static int
begin_object(struct origin_fill *fill, const struct fetch_head *head,
             const struct origin_raw_parts *parts)
{
    struct proxy *proxy = fill->proxy;
    struct span url = object_url(fill->base.object);
    uint64_t largest = origin_fill_largest(fill);
    int error;

    if (!may_store(fill, head->status) ||
        (head->content_length > 0 && (uint64_t)head->content_length > largest))
        atomic_store(&fill->may_keep, false);
    fill->max_whole = atomic_load(&fill->may_keep) ? largest : ORIGIN_FILL_WINDOW;
    error = cache_fill_head(
        &fill->base,
        &(struct object_head){
            .status = head->status,
            .final_url = span_equal(head->final_url, url) ? span_of(NULL, 0) : head->final_url,
            .fields = fill->raw ? buf_span(&parts->fields) : head->headers,
            .tags = buf_span(&parts->tags),
            .fetched_us = fill->sharing.born_us,
            .length = head->content_length,
            .max_length = fill->streams ? UINT64_MAX : proxy->config.max_body,
            .account = proxy->config.account,
        });
    if (!error && head->content_length > 0)
        error = origin_fill_open_window_for(fill, (uint64_t)head->content_length);
    if (!error)
        error = origin_fill_check_wanted(fill);
    fill->body.give_up = give_up;
    if (!error && !shedding_add(&proxy->shedding, &fill->body, &fill->client,
                                object_size(fill->base.object), proxy_now_us(proxy)))
        error = ENOMEM;
    return error;
}

static enum fetch_flow
fill_head(void *context, const struct fetch_head *head)
{
    struct origin_fill *fill = context;
    enum origin_raw raw = ORIGIN_RAW_HEAD;
    struct origin_raw_parts parts;
    int error = 0;

    shedding_charge_for(&fill->proxy->shedding, &fill->client, NULL);
    fill->no_store = head->no_store;
    origin_raw_parts_init(&parts);
    if (fill->raw)
        raw = origin_raw_head(fill, head, &parts, &error);
    if (raw == ORIGIN_RAW_HEAD)
        error = begin_object(fill, head, &parts);
    if (raw == ORIGIN_RAW_HEAD && !error)
        origin_own_begin(fill, head, &parts);
    origin_raw_parts_free(&parts);
    if (!error)
        return FETCH_CONTINUE;
    origin_fill_fail_early(fill, error);
    return FETCH_ABORT;
}

static enum fetch_flow
fill_body(void *context, const void *bytes, size_t len)
{
    struct origin_fill *fill = context;
    struct shedding *shedding = &fill->proxy->shedding;
    int error;

    if (fill->ended || fill->again)
        return FETCH_CONTINUE;
    shedding_charge_for(shedding, &fill->client, &fill->body);
    origin_own_append(fill, bytes, len);
    error = origin_fill_check_wanted(fill);
    if (!error)
        error = origin_fill_open_window_for(fill, object_length(fill->base.object) + len);
    if (!error)
        error = cache_fill_append(&fill->base, bytes, len);
    /* Out of memory the object is passed on and not stored. */
    if ((error == ENOBUFS || error == ENOMEM) && origin_fill_can_open_window(fill)) {
        error = origin_fill_open_window(fill, FAILURE_OVERLOADED);
        if (!error)
            error = cache_fill_append(&fill->base, bytes, len);
    }
    if (error && error != CACHE_FILL_PAUSE) {
        origin_fill_fail_early(fill, error);
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

    return relay_supply(fill->relay, origin_fill_fetch(fill), buffer, size, len);
}

static void
finish(struct origin_fill *fill, int64_t total_us)
{
    int64_t born_us = fill->raw ? fill->sharing.born_us : proxy_now_us(fill->proxy);
    int64_t lifetime_us = sharing_lifetime(&fill->sharing, born_us);
    bool store = atomic_load(&fill->may_keep) && may_store(fill, fill->base.object->status) &&
                 object_length(fill->base.object) <= fill->max_whole;

    shedding_charge_for(&fill->proxy->shedding, &fill->client, NULL);
    /* The response may have become stale while it arrived. */
    if (fill->sharing.unshared)
        origin_fill_isolate(fill);
    else if (!store)
        cache_fill_unmark(&fill->base);
    cache_fill_finish(&fill->base, store, (uint64_t)total_us, born_us, lifetime_us);
}

static bool
is_of_another_client(const struct object_waiter *base, void *context)
{
    const struct origin_waiter *waiter = (const struct origin_waiter *)base;
    const struct client_key *client = context;

    return client_key_compare(&waiter->client, client) != 0;
}

static struct fetch_request fetch_request_of(const struct origin_fill *fill, struct span lines);
static const struct fetch_sink sink;

/* The origin's 304 concerned nothing that the cache has: without conditions it sends an object. */
static bool
fetch_again(struct origin_fill *fill)
{
    const struct origin *origin = &fill->proxy->config.origin;
    const struct fetch_request fetch =
        fetch_request_of(fill, span_of(fill->lines.data, fill->plain));
    uint64_t id;

    fill->again = fill->conditional = false;
    if (!origin->ops->submit(origin->context, &fetch, &sink, fill, &id))
        return false;
    /* No call-back of it comes before this thread's next turn. */
    atomic_store(&fill->second_fetch, id);
    return true;
}

/* Is there no way to the origin now, or no response from it? */
static bool
is_disconnected(enum fetch_error error)
{
    return error == FETCH_RESOLVE_FAILED || error == FETCH_CONNECT_FAILED ||
           error == FETCH_TLS_FAILED || error == FETCH_TIMED_OUT || error == FETCH_ORIGIN_BROKE;
}

/* The fetch has failed. Returns the failure, also if an older object is used instead. */
static enum failure
fail(struct origin_fill *fill, enum fetch_error error, const char *sentence)
{
    enum failure failure = error == FETCH_CANCELLED && cache_fill_is_unwanted(&fill->base)
                               ? FAILURE_CANCELLED
                               : failure_of_fetch(error);

    if (fill->unsafe && !fill->base.has_head)
        invalidation_unanswered(fill->proxy, object_url(fill->base.object));
    if (fill->base.has_head ||
        !origin_raw_fall_back(fill,
                              is_disconnected(error) ? STALENESS_DISCONNECTED : STALENESS_IF_ERROR))
        cache_fill_fail(&fill->base, failure, sentence,
                        error == FETCH_DISPLACED ? is_of_another_client : NULL, &fill->client);
    return failure;
}

static void
fill_done(void *context, enum fetch_error error, const char *sentence, int64_t total_us)
{
    struct origin_fill *fill = context;
    const struct proxy_config *config = &fill->proxy->config;
    enum failure failure;

    if (fill->again && error == FETCH_OK) {
        if (fetch_again(fill))
            return;
        origin_fill_fail_early(fill, errno);
    }
    shedding_remove(&fill->proxy->shedding, &fill->body);
    failure = fill->failure;
    origin_own_end(fill, !failure && error == FETCH_OK, total_us);
    if (failure)
        sentence = fill->sentence;
    else if (fill->ended)
        sentence = "";
    else if (error == FETCH_OK)
        finish(fill, total_us);
    else
        failure = fail(fill, error, sentence);
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
    .interim = fill_interim,
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

static struct fetch_request
fetch_request_of(const struct origin_fill *fill, struct span lines)
{
    return (struct fetch_request){
        .client = fill->client,
        .url = object_url(fill->base.object),
        .headers = lines,
        .flags = (fill->raw ? FETCH_UNDECODED | FETCH_NO_REDIRECTS : 0u) |
                 (fill->streams ? FETCH_MAY_PAUSE | FETCH_ANY_LENGTH : 0u),
    };
}

/*
 * Submits the fetch. False: refused, with the reason; `text`, of FAILURE_SENTENCE bytes, may have
 * the sentence.
 */
static bool
submit(struct origin_fill *fill, const struct origin_fill_request *request, char *text,
       enum failure *why, const char **sentence)
{
    struct proxy *proxy = fill->proxy;
    const struct origin *origin = &proxy->config.origin;
    struct fetch_request fetch;
    enum fetch_error invalid;
    int64_t wait_us;
    int error;

    *why = FAILURE_INTERNAL;
    *sentence = out_of_memory;
    if (fill->raw && !origin_raw_request(fill, request->fields))
        return false;
    fetch = fetch_request_of(fill, fill->raw ? buf_span(&fill->lines) : request->fields);
    fetch.method = request->method;
    if (request->has_body)
        fetch.body =
            (struct fetch_body){.kind = FETCH_BODY_SUPPLIED, .length = request->body_length};
    /* Before anything is charged: a URL that cannot be fetched costs its client nothing. */
    invalid = fetch_check_request(&fetch, text, FAILURE_SENTENCE);
    if (invalid) {
        *why = failure_of_fetch(invalid);
        *sentence = text;
        return false;
    }
    error = charge(fill, &fetch, request->waiting_bytes);
    if (error) {
        *sentence = origin_fill_refusal(error, why);
        return false;
    }
    wait_us = take_token(request, proxy_now_us(proxy));
    if (wait_us) {
        char wait[32];

        *why = FAILURE_OVERLOADED;
        snprintf(text, FAILURE_SENTENCE,
                 "the rate of fetches for this client is used up; try again in %s",
                 units_format_duration(wait_us, wait, sizeof(wait)));
        *sentence = text;
        return false;
    }
    if (proxy->config.follows_http && has_user(fetch.url))
        origin_fill_isolate(fill);
    if (fill->unsafe)
        invalidation_before(proxy, fetch.url);
    if (origin->ops->submit(origin->context, &fetch, &sink, fill, &fill->first_fetch))
        return true;
    if (errno == ESHUTDOWN) {
        *why = FAILURE_STOPPING;
        *sentence = stopping;
    }
    return false;
}

bool
origin_fill_start(struct proxy *proxy, struct cache_fill *base,
                  const struct origin_fill_request *request)
{
    struct origin_fill *fill = (struct origin_fill *)base;
    enum failure why = FAILURE_INTERNAL;
    const char *sentence = "";
    char text[FAILURE_SENTENCE];

    fill->proxy = proxy;
    fill->client = request->client;
    fill->relay = request->relay;
    fill->bypass = request->bypass;
    fill->raw = request->raw;
    fill->owned = request->owned;
    fill->as_is = request->as_is;
    fill->unsafe = request->unsafe;
    fill->background = request->background;
    fill->posts = request->raw && span_equal(request->method, span_str("POST"));
    sharing_init(&fill->own_sharing, false);
    fill->streams = request->streams;
    fill->safe = request->method.len == 0 || span_equal(request->method, span_str("GET")) ||
                 span_equal(request->method, span_str("HEAD"));
    atomic_init(&fill->may_keep, !request->bypass);
    base->unwanted = origin_fill_unwanted;
    sharing_init(&fill->sharing, !proxy->config.follows_http);
    if ((!request->background || !backoff_holds(&proxy->backoff, base->key, proxy_now_us(proxy))) &&
        submit(fill, request, text, &why, &sentence))
        return true;
    /* No other thread has the fill yet. */
    request->leader->base.notify = ignore;
    cache_fill_fail(base, why, sentence, always, NULL);
    free_fill(fill);
    return false;
}
