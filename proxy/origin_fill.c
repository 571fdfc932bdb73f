#include "proxy/origin_fill.h"

#include <errno.h>

#include "base/container_of.h"
#include "http/known_fields.h"
#include "proxy/invalidation.h"
#include "proxy/origin_fill_parts.h"
#include "proxy/tag_rules.h"

/* ---- on the fetcher's thread ----------------------------------------------------------------- */

static void
fill_begin(void *context)
{
    struct origin_fill *fill = context;

    fill->has_turn = true;
    shedding_charge_for(&fill->proxy->shedding, fill->client, NULL);
}

static void
fill_hop(void *context, const struct fetch_hop *hop)
{
    struct origin_fill *fill = context;
    const struct proxy_config *config = &fill->proxy->config;

    metrics_observe(config->metrics, metrics_fetcher_slot(config->metrics),
                    HISTOGRAM_ORIGIN_FIRST_BYTE, hop->waited_us);
    if (!origin_attempt_answers(fill, hop->status))
        return;
    if (fill->raw) {
        origin_raw_hop(fill, hop);
        return;
    }
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
        fill->sentence = origin_fill_stopping;
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
        fill->sentence = origin_fill_out_of_memory;
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

/* Of the object of a raw response. */
static unsigned
notes_of(const struct origin_fill *fill, const struct fetch_head *head, struct span fields)
{
    return origin_raw_notes(head, fields, &fill->sharing) |
           (atomic_load(&fill->may_keep) ? 0u : HTTP_KNOWN_PASSING);
}

/* The object begins: 0 or an errno; EAGAIN if the leader's range is the origin's. */
static int
begin_object(struct origin_fill *fill, const struct fetch_head *head, struct span final_url,
             const struct origin_raw_parts *parts)
{
    struct proxy *proxy = fill->proxy;
    uint64_t largest = origin_fill_largest(fill);
    int error;

    origin_fill_explain(fill, origin_fill_why_unstored(fill, head->status));
    if (head->content_length > 0 && (uint64_t)head->content_length > largest)
        origin_fill_explain(fill, HTTP_REASON_TOO_LARGE);
    if (fill->reason)
        atomic_store(&fill->may_keep, false);
    if (origin_fill_misses_range(fill, head))
        return EAGAIN;
    fill->completes = fill->ends_early && atomic_load(&fill->may_keep) &&
                      head->content_length >= 0 &&
                      (uint64_t)head->content_length <= proxy->config.range_fill;
    fill->max_whole = atomic_load(&fill->may_keep) ? largest : ORIGIN_FILL_WINDOW;
    error = cache_fill_head(
        &fill->base, &(struct object_head){
                         .status = head->status,
                         .notes = fill->raw ? notes_of(fill, head, buf_span(&parts->fields)) : 0,
                         .final_url = final_url,
                         .fields = fill->raw ? buf_span(&parts->fields) : head->headers,
                         .tags = buf_span(&parts->tags),
                         .fetched_us = fill->sharing.born_us,
                         .fresh_until_us = fill->sharing.fresh_until_us,
                         .while_revalidate_us = fill->sharing.while_revalidate_us,
                         .length = head->content_length,
                         .max_length = fill->streams ? UINT64_MAX : proxy->config.max_body,
                         .account = proxy->config.account,
                     });
    if (!error && head->content_length > 0)
        error = origin_fill_open_window_for(fill, (uint64_t)head->content_length);
    if (!error)
        error = origin_fill_check_wanted(fill);
    fill->body.give_up = give_up;
    if (!error)
        shedding_add(&proxy->shedding, &fill->body, fill->client, object_size(fill->base.object),
                     proxy_now_us(proxy));
    return error;
}

/* Those of a response that is not raw; after redirects, of the last URL, too. */
static void
add_tags(struct origin_fill *fill, struct span final_url, struct buf *tags)
{
    const struct tag_rules *rules = fill->proxy->config.tag_rules;

    if (fill->bypass)
        return;
    if (!origin_fill_tags(fill, span_of(NULL, 0), tags) ||
        (rules && final_url.len && !tag_rules_apply(rules, final_url, tags)))
        origin_fill_untag(fill, tags);
}

static enum fetch_flow
fill_head(void *context, const struct fetch_head *head)
{
    struct origin_fill *fill = context;
    enum origin_raw raw = ORIGIN_RAW_HEAD;
    struct origin_raw_parts parts;
    struct span final_url = span_of(NULL, 0);
    struct buf mapped;
    int error = 0;

    if (fill->passes_over)
        return FETCH_ABORT;
    buf_init(&mapped, OBJECT_MAX_META);
    shedding_charge_for(&fill->proxy->shedding, fill->client, NULL);
    fill->no_store = head->no_store;
    origin_raw_parts_init(&parts);
    if (fill->raw) {
        raw = origin_raw_head(fill, head, &parts, &error);
    } else {
        final_url = origin_attempt_final_url(fill, head->final_url, &mapped);
        add_tags(fill, final_url, &parts.tags);
    }
    if (raw == ORIGIN_RAW_HEAD)
        error = begin_object(fill, head, final_url, &parts);
    if (raw == ORIGIN_RAW_HEAD && !error)
        origin_own_begin(fill, head, &parts);
    origin_raw_parts_free(&parts);
    buf_free(&mapped);
    if (!error)
        return FETCH_CONTINUE;
    if (error == EAGAIN)
        origin_fill_give_up_range(fill);
    else
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
    shedding_charge_for(shedding, fill->client, &fill->body);
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

    fill->supplied = true;
    return relay_supply(fill->relay, origin_fill_fetch(fill), buffer, size, len);
}

static void
finish(struct origin_fill *fill, int64_t total_us)
{
    int64_t born_us = fill->raw ? fill->sharing.born_us : proxy_now_us(fill->proxy);
    int64_t lifetime_us = sharing_lifetime(&fill->sharing, born_us);
    bool store;

    origin_fill_explain(fill, origin_fill_why_unstored(fill, fill->base.object->status));
    if (object_length(fill->base.object) > fill->max_whole)
        origin_fill_explain(fill, HTTP_REASON_TOO_LARGE);
    store = atomic_load(&fill->may_keep) && !fill->reason;

    shedding_charge_for(&fill->proxy->shedding, fill->client, NULL);
    /* The response may have become stale while it arrived. */
    if (fill->sharing.unshared)
        origin_fill_isolate(fill);
    else if (!store)
        origin_fill_unmark(fill);
    cache_fill_finish(&fill->base, store, (uint64_t)total_us, born_us, lifetime_us);
}

static bool
is_of_another_client(const struct object_waiter *base, void *context)
{
    const struct origin_waiter *waiter = (const struct origin_waiter *)base;

    return atomic_load(&waiter->client) != context;
}

/* Its own fetch has no bound on the body. */
static bool
streams(const struct object_waiter *waiter, void *context)
{
    (void)context;
    return waiter->streams;
}

/* The origin's 304 concerned nothing that the cache has: without conditions it sends an object. */
static bool
fetch_again(struct origin_fill *fill)
{
    struct origin_route_text text;
    const struct fetch_request fetch =
        origin_fill_fetch_request(fill, span_of(fill->lines.data, fill->plain), &text);

    fill->again = fill->conditional = false;
    return origin_fill_submit_again(fill, &fetch);
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
    else if (error == FETCH_TOO_LARGE && !fill->streams && fill->base.stage == FILL_BEGUN)
        retries = streams;
    if (origin_fill_is_disconnected(error) && fill->base.stage == FILL_BEGUN)
        origin_raw_back_off(fill);
    if (origin_fill_writes(fill) && fill->base.stage == FILL_BEGUN)
        invalidation_unanswered(&fill->write);
    if (fill->base.stage != FILL_BEGUN ||
        !origin_raw_fall_back(
            fill, origin_fill_is_disconnected(error) ? STALENESS_DISCONNECTED : STALENESS_IF_ERROR,
            failure))
        cache_fill_fail(&fill->base, failure, sentence, retries, fill->client);
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

/* A fetch from this member has ended; if it is repeated, another member is tried. */
static void
report(const struct origin_fill *fill, unsigned member, enum failure failure, const char *sentence,
       int64_t total_us, bool repeated)
{
    const struct proxy_config *config = &fill->proxy->config;

    metrics_add(config->metrics, metrics_fetcher_slot(config->metrics), metric_of(failure), 1);
    if (config->fetched)
        config->fetched(
            config->fetched_context,
            &(struct proxy_fetched){
                .url = object_url(fill->base.object),
                .member = fill->route ? fill->route->members[member].url : span_of(NULL, 0),
                .total_us = total_us,
                .failure = failure,
                .sentence = sentence,
                .repeated = repeated,
                .reason = fill->reason,
            });
}

static void
fill_done(void *context, enum fetch_error error, const char *sentence, int64_t total_us)
{
    struct origin_fill *fill = context;
    unsigned member = fill->choice.member;
    enum failure failure;

    if (fill->again && error == FETCH_OK) {
        if (fetch_again(fill))
            return;
        origin_fill_fail_early(fill, errno);
    }
    if (origin_attempt_goes_on(fill, error, sentence)) {
        if (fill->passes_over)
            report(fill, member, FAILURE_ORIGIN, "the status is 502, 503 or 504", total_us, true);
        else
            report(fill, member, failure_of_fetch(error), sentence, total_us, true);
        if (origin_attempt_go_on(fill))
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
    report(fill, member, failure, sentence, total_us, false);
    origin_fill_free(fill);
}

const struct fetch_sink origin_fill_sink = {
    .begin = fill_begin,
    .hop = fill_hop,
    .interim = fill_interim,
    .head = fill_head,
    .body = fill_body,
    .supply = fill_supply,
    .done = fill_done,
};
