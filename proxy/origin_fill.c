#include "proxy/origin_fill.h"

#include <errno.h>
#include <stdio.h>

#include "base/container_of.h"
#include "base/units.h"
#include "http/known_fields.h"
#include "http/reference.h"
#include "proxy/filling.h"
#include "proxy/invalidation.h"
#include "proxy/tag_rules.h"

static const char out_of_memory[] = "Cannot allocate memory";
static const char stopping[] = "the server is shutting down";

size_t
origin_fill_size(void)
{
    return sizeof(struct origin_fill);
}

/* ---- memory ---------------------------------------------------------------------------------- */

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
charge(struct origin_fill *fill)
{
    const size_t waiting_bytes = fill->request->waiting_bytes;
    struct proxy *proxy = fill->proxy;
    /* The object without a head, and as much for its failure. */
    size_t bytes = sizeof(*fill) + 2 * object_size(fill->base.object) + OBJECT_MAX_FAILURE +
                   fill->lines.capacity + fetcher_fetch_bytes();

    if (!client_share_take(&proxy->waiting, fill->request->client, bytes + waiting_bytes))
        return errno;
    if (!memory_charge(proxy->config.account, MEMORY_REQUESTS, bytes)) {
        client_share_give_back(&proxy->waiting, fill->request->client, bytes + waiting_bytes);
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
    invalidation_free(&fill->write);
    buf_free(&fill->lines);
    if (fill->counted) {
        memory_uncharge(proxy->config.account, MEMORY_REQUESTS, fill->charged);
        client_share_give_back(&proxy->waiting, fill->request->client, fill->counted);
    }
    request_release(&fill->request);
    cache_fill_free(&fill->base);
}

/* ---- on the fetcher's thread ----------------------------------------------------------------- */

static void
fill_member(void *context, unsigned member)
{
    struct origin_fill *fill = context;

    fill->member = member;
}

static struct span
fill_fields(void *context)
{
    return origin_fill_fields(context);
}

static void
fill_begin(void *context)
{
    struct origin_fill *fill = context;

    shedding_charge_for(&fill->proxy->shedding, fill->request->client, NULL);
}

static void
fill_response(void *context, const struct fetch_response *response)
{
    struct origin_fill *fill = context;
    const struct proxy_config *config = &fill->proxy->config;

    metrics_observe(config->metrics, metrics_fetcher_slot(config->metrics),
                    HISTOGRAM_ORIGIN_FIRST_BYTE, response->waited_us);
    if (response->passed_over)
        return;
    origin_response_arrived(fill, response);
}

static void
fill_interim(void *context, unsigned status, struct span lines)
{
    struct origin_fill *fill = context;

    if (fill->relay)
        relay_add_interim(fill->relay, status, lines);
}

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
    case ESHUTDOWN:
        fill->failure = FAILURE_STOPPING;
        fill->sentence = stopping;
        break;
    case ECANCELED:
        fill->failure = FAILURE_CANCELLED;
        fill->sentence = "no request waits for the response any more";
        break;
    case EPERM:
        fill->failure = FAILURE_ORIGIN;
        fill->sentence = "the origin, or the upstream proxy, asked for a proxy's credentials";
        break;
    default:
        fill->failure = FAILURE_INTERNAL;
        fill->sentence = out_of_memory;
        break;
    }
    shedding_remove(&fill->proxy->shedding, &fill->body);
    fill->stage = ORIGIN_FILL_FAILED;
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

/* ---- the response ---------------------------------------------------------------------------- */

static unsigned
notes_of(const struct origin_fill *fill, const struct fetch_head *head, struct span fields)
{
    return origin_response_notes(head, fields, &fill->sharing) |
           (origin_fill_may_keep(fill) ? 0u : HTTP_KNOWN_PASSING);
}

/* The object begins: 0 or an errno; EAGAIN if the leader's range is the origin's. */
static int
begin_object(struct origin_fill *fill, const struct fetch_head *head,
             const struct response_parts *parts)
{
    struct proxy *proxy = fill->proxy;
    uint64_t largest = origin_fill_largest(fill);
    int error;

    origin_fill_explain(fill, origin_fill_why_unstored(fill, head->no_store));
    if (head->content_length > 0 && (uint64_t)head->content_length > largest)
        origin_fill_explain(fill, HTTP_REASON_TOO_LARGE);
    if (fill->reason)
        atomic_store(&fill->keeping, KEEPING_NOT);
    if (origin_fill_misses_range(fill, head))
        return EAGAIN;
    fill->max_whole = origin_fill_may_keep(fill) ? largest : ORIGIN_FILL_WINDOW;
    error = cache_fill_head(
        &fill->base,
        &(struct object_head){
            .status = head->status,
            .notes = notes_of(fill, head, buf_span(&parts->fields)),
            .fields = buf_span(&parts->fields),
            .tags = buf_span(&parts->tags),
            .fetched_us = fill->sharing.born_us,
            .fresh_until_us = fill->sharing.fresh_until_us,
            .while_revalidate_us = fill->sharing.while_revalidate_us,
            .length = head->content_length,
            .max_length = request_streams(fill->request) ? UINT64_MAX : proxy->config.max_body,
            .account = proxy->config.account,
        });
    if (!error && head->content_length > 0)
        error = origin_fill_open_window_for(fill, (uint64_t)head->content_length);
    if (!error)
        error = origin_fill_check_wanted(fill);
    fill->body.give_up = give_up;
    if (!error)
        shedding_add(&proxy->shedding, &fill->body, fill->request->client,
                     object_size(fill->base.object), proxy_now_us(proxy));
    return error;
}

static enum fetch_flow
fill_head(void *context, const struct fetch_head *head)
{
    struct origin_fill *fill = context;
    struct response_parts parts;
    enum origin_response use;
    int error;

    shedding_charge_for(&fill->proxy->shedding, fill->request->client, NULL);
    response_parts_init(&parts);
    use = origin_response_head(fill, head, &parts, &error);
    if (use == ORIGIN_RESPONSE_HEAD)
        error = begin_object(fill, head, &parts);
    if (use == ORIGIN_RESPONSE_HEAD && !error)
        origin_own_begin(fill, head, &parts);
    response_parts_free(&parts);
    if (!error)
        return use == ORIGIN_RESPONSE_REPEAT ? FETCH_REPEAT : FETCH_CONTINUE;
    if (error == EAGAIN)
        origin_fill_give_up_range(fill);
    else
        fail_early(fill, error);
    return FETCH_ABORT;
}

static enum fetch_flow
fill_body(void *context, const void *bytes, size_t len)
{
    struct origin_fill *fill = context;
    struct shedding *shedding = &fill->proxy->shedding;
    int error;

    if (fill->stage == ORIGIN_FILL_ENDED)
        return FETCH_CONTINUE;
    shedding_charge_for(shedding, fill->request->client, &fill->body);
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
    const int64_t born_us = fill->sharing.born_us;
    bool store;

    origin_fill_explain(fill, origin_fill_why_unstored(fill, false));
    if (object_length(fill->base.object) > fill->max_whole)
        origin_fill_explain(fill, HTTP_REASON_TOO_LARGE);
    store = origin_fill_may_keep(fill) && !fill->reason;

    shedding_charge_for(&fill->proxy->shedding, fill->request->client, NULL);
    if (fill->sharing.unshared)
        origin_fill_isolate(fill);
    else if (!store)
        origin_fill_unmark(fill);
    cache_fill_finish(&fill->base, store, (uint64_t)total_us, born_us,
                      sharing_lifetime(&fill->sharing, born_us));
}

static bool
is_of_another_client(const struct object_waiter *base, void *context)
{
    const struct origin_waiter *waiter = (const struct origin_waiter *)base;

    return atomic_load(&waiter->client) != context;
}

/* The fetch has failed. Returns the failure, also if an older object is used instead. */
static enum failure
fail(struct origin_fill *fill, enum fetch_error error, const char *sentence)
{
    enum failure failure = error == FETCH_CANCELLED && cache_fill_is_unwanted(&fill->base)
                               ? FAILURE_CANCELLED
                               : failure_of_fetch(error);
    bool (*retries)(const struct object_waiter *waiter, void *context) = NULL;

    if (error == FETCH_DISPLACED)
        retries = is_of_another_client;
    if (fetch_is_disconnected(error) && fill->base.stage == FILL_BEGUN)
        origin_response_back_off(fill);
    if (origin_fill_writes(fill) && fill->base.stage == FILL_BEGUN)
        invalidation_unanswered(&fill->write);
    if (fill->base.stage != FILL_BEGUN ||
        !origin_response_fall_back(
            fill, fetch_is_disconnected(error) ? STALENESS_DISCONNECTED : STALENESS_IF_ERROR,
            failure))
        cache_fill_fail(&fill->base, failure, sentence, retries, fill->request->client);
    return failure;
}

_Static_assert((int)METRIC_FETCHES_CANCELLED - (int)METRIC_FETCHES_OK == (int)FAILURE_CANCELLED,
               "each failure of a fetch has a row, in its order");

/* The row that counts fetches with this result; 0: the fetch has succeeded. */
static enum metric
metric_of(enum failure failure)
{
    if (failure == FAILURE_CONNECT_TIMEOUT)
        failure = FAILURE_TIMEOUT;
    return (enum metric)((unsigned)METRIC_FETCHES_OK + (unsigned)failure);
}

/* A fetch from the member has ended; if it is repeated, another member is tried. */
static void
report(const struct origin_fill *fill, enum failure failure, const char *sentence, int64_t total_us,
       bool repeated)
{
    const struct proxy_config *config = &fill->proxy->config;

    metrics_add(config->metrics, metrics_fetcher_slot(config->metrics), metric_of(failure), 1);
    if (config->fetched)
        config->fetched(config->fetched_context,
                        &(struct proxy_fetched){
                            .url = object_url(fill->base.object),
                            .member = fill->request->route
                                          ? fill->request->route->members[fill->member].url
                                          : span_of(NULL, 0),
                            .total_us = total_us,
                            .failure = failure,
                            .sentence = sentence,
                            .repeated = repeated,
                            .reason = fill->reason,
                        });
}

static void
fill_again(void *context, enum fetch_error error, const char *sentence, int64_t total_us)
{
    struct origin_fill *fill = context;
    const struct origin *origin = &fill->proxy->config.origin;

    report(fill, failure_of_fetch(error), sentence, total_us, true);
    if (origin_fill_check_wanted(fill) != 0)
        origin->ops->cancel(origin->context, fill->fetch);
}

static void
fill_done(void *context, enum fetch_error error, const char *sentence, int64_t total_us)
{
    struct origin_fill *fill = context;
    enum failure failure = 0;

    shedding_remove(&fill->proxy->shedding, &fill->body);
    origin_own_end(fill, fill->stage != ORIGIN_FILL_FAILED && error == FETCH_OK, total_us);
    switch (fill->stage) {
    case ORIGIN_FILL_RUNS:
        if (error)
            failure = fail(fill, error, sentence);
        else
            finish(fill, total_us);
        break;
    case ORIGIN_FILL_ENDED:
        sentence = "";
        break;
    case ORIGIN_FILL_FAILED:
        failure = fill->failure;
        sentence = fill->sentence;
        break;
    }
    report(fill, failure, sentence, total_us, false);
    free_fill(fill);
}

static const struct fetch_sink sink = {
    .member = fill_member,
    .fields = fill_fields,
    .begin = fill_begin,
    .response = fill_response,
    .interim = fill_interim,
    .head = fill_head,
    .body = fill_body,
    .supply = fill_supply,
    .again = fill_again,
    .done = fill_done,
};

/* ---- submission ------------------------------------------------------------------------------ */

/*
 * Is there user information in the authority of the URL (RFC 3986, section 3.2)? The fetcher, which
 * parses the URL exactly, says so again with each response (struct fetch_response); known now, no
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
take_token(const struct origin_fill_order *order, int64_t now_us)
{
    if (order->rate == ORIGIN_FILL_RATED)
        return client_take_fetch(order->request->client, now_us);
    if (order->rate == ORIGIN_FILL_INDEBTED)
        client_charge_fetch(order->request->client, now_us);
    return 0;
}

/*
 * Submits the fetch. False: refused, with the reason; `text`, of FAILURE_SENTENCE bytes, may have
 * the sentence.
 */
static bool
submit(struct origin_fill *fill, const struct origin_fill_order *order, char *text,
       enum failure *why, const char **sentence)
{
    struct proxy *proxy = fill->proxy;
    const struct origin *origin = &proxy->config.origin;
    enum fetch_error invalid;
    int64_t wait_us;
    int error;

    *why = FAILURE_INTERNAL;
    *sentence = out_of_memory;
    if (!origin_response_request(fill))
        return false;
    order->leader->sends_conditions = fill->conditions == CONDITIONS_CLIENTS;
    /* Before anything is charged: a URL that cannot be fetched costs its client nothing. */
    invalid = fetch_check_request(fill->request, origin_fill_fields(fill), text, FAILURE_SENTENCE);
    if (invalid) {
        *why = failure_of_fetch(invalid);
        *sentence = text;
        return false;
    }
    error = charge(fill);
    if (error) {
        *sentence = origin_fill_refusal(error, why);
        return false;
    }
    wait_us = take_token(order, proxy_now_us(proxy));
    if (wait_us) {
        char wait[32];

        *why = FAILURE_OVERLOADED;
        snprintf(text, FAILURE_SENTENCE,
                 "the rate of fetches for this client is used up; try again in %s",
                 units_format_duration(wait_us, wait, sizeof(wait)));
        *sentence = text;
        return false;
    }
    if (proxy->config.follows_http && has_user(object_url(fill->base.object)))
        origin_fill_isolate(fill);
    if (origin_fill_writes(fill)) {
        invalidation_init(&fill->write, proxy, fill->request->route, object_url(fill->base.object),
                          request_is_owned(fill->request));
        if (!invalidation_before(&fill->write)) {
            *sentence = origin_fill_refusal(ENOBUFS, why);
            return false;
        }
    }
    fill->epoch = cache_epoch(proxy->config.cache);
    if (origin->ops->submit(origin->context, fill->request, &sink, fill, &fill->fetch))
        return true;
    if (errno == ESHUTDOWN) {
        *why = FAILURE_STOPPING;
        *sentence = stopping;
    }
    return false;
}

static bool
stores_objects(const struct proxy *proxy)
{
    struct cache_config config;

    cache_get_config(proxy->config.cache, &config);
    return config.policy.ops != NULL;
}

/* No other thread has the fill yet: its leader is not notified. */
static void
refuse(struct origin_fill *fill, struct origin_waiter *leader, enum failure why,
       const char *sentence)
{
    leader->base.notify = object_waiter_ignore;
    cache_fill_fail(&fill->base, why, sentence, origin_fill_is_no_leader, NULL);
    free_fill(fill);
}

void
origin_fill_refuse(struct proxy *proxy, struct cache_fill *base,
                   const struct origin_fill_order *order, int error)
{
    struct origin_fill *fill = (struct origin_fill *)base;
    enum failure why;
    const char *sentence = origin_fill_refusal(error, &why);

    fill->proxy = proxy;
    fill->relay = order->relay;
    refuse(fill, order->leader, why, sentence);
}

bool
origin_fill_start(struct proxy *proxy, struct cache_fill *base,
                  const struct origin_fill_order *order)
{
    struct origin_fill *fill = (struct origin_fill *)base;
    enum failure why = FAILURE_INTERNAL;
    const char *sentence = "";
    char text[FAILURE_SENTENCE];

    fill->proxy = proxy;
    fill->request = request_retain(order->request);
    fill->purpose = order->purpose;
    fill->relay = order->relay;
    fill->passes = order->passes;
    sharing_init(&fill->own_sharing, false, proxy->config.max_age_us);
    fill->wanted = order->wanted;
    atomic_init(&fill->keeping, origin_fill_bypasses(fill) ? KEEPING_NOT
                                : stores_objects(proxy)    ? KEEPING_STORED
                                                           : KEEPING_WHOLE);
    base->unwanted = origin_fill_unwanted;
    sharing_init(&fill->sharing, !proxy->config.follows_http, proxy->config.max_age_us);
    if ((fill->purpose != ORIGIN_FILL_REFRESHES ||
         !backoff_holds(&proxy->backoff, base->key, proxy_now_us(proxy))) &&
        submit(fill, order, text, &why, &sentence))
        return true;
    refuse(fill, order->leader, why, sentence);
    return false;
}
