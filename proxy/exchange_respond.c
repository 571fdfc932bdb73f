#include "proxy/exchange_respond.h"

#include "base/hash.h"
#include "http/field.h"
#include "metrics/recent.h"
#include "proxy/exchange_wait.h"

const char *
outcome_word(enum outcome outcome)
{
    switch (outcome) {
    case OUTCOME_HIT:
        return "hit";
    case OUTCOME_MISS:
        return "miss";
    case OUTCOME_COALESCED:
        return "coalesced";
    case OUTCOME_BYPASS:
        return "bypass";
    case OUTCOME_REVALIDATED:
        return "revalidated";
    case OUTCOME_STALE:
        return "stale";
    }
    return "unknown";
}

/* The rows of an outcome. */
static const struct {
    enum metric requests, bytes;
} rows[] = {
    [OUTCOME_HIT] = {METRIC_REQUESTS_HIT, METRIC_SERVED_BYTES_CACHE},
    [OUTCOME_MISS] = {METRIC_REQUESTS_MISS, METRIC_SERVED_BYTES_ORIGIN},
    [OUTCOME_COALESCED] = {METRIC_REQUESTS_COALESCED, METRIC_SERVED_BYTES_ORIGIN},
    [OUTCOME_BYPASS] = {METRIC_REQUESTS_BYPASS, METRIC_SERVED_BYTES_ORIGIN},
    [OUTCOME_REVALIDATED] = {METRIC_REQUESTS_REVALIDATED, METRIC_SERVED_BYTES_CACHE},
    [OUTCOME_STALE] = {METRIC_REQUESTS_STALE, METRIC_SERVED_BYTES_CACHE},
};

/* Where the object leads. */
static struct span
redirect_of(const struct object *object)
{
    static const struct span name = {"Location", sizeof("Location") - 1};
    struct span lines = object_fields(object), line, value;

    if (http_status_is_redirect(object->status))
        while (http_next_line(&lines, &line))
            if (http_line_is(line, name, &value) && value.len)
                return value;
    return span_of(NULL, 0);
}

bool
exchange_is_redirect(const struct object *object)
{
    return redirect_of(object).len != 0;
}

struct span
exchange_redirect(const struct exchange *x)
{
    return x->request->flags & REQUEST_PAGE_ONLY ? redirect_of(x->object) : span_of(NULL, 0);
}

bool
exchange_is_unasked(const struct exchange *x)
{
    static const char *const conditions[] = {"If-None-Match", "If-Modified-Since", NULL};
    static const char *const ranges[] = {"Range", NULL};
    const unsigned status = x->object->status, flags = x->request->flags;

    if (!(flags & REQUEST_PAGE_ONLY) || (status != 206 && status != 304))
        return false;
    return !(flags & REQUEST_OWN_FIELDS) ||
           !http_has_field(x->request->fields, status == 206 ? ranges : conditions);
}

/* Keeps what was no hit, for an explanation. */
static void
remember(const struct exchange *x, const char *how, enum http_reason reason)
{
    const struct proxy_clock *clock = &x->proxy->config.clock;

    recent_add(x->proxy->recent, x->worker,
               &(struct recent_miss){
                   .url = hash64_bytes(x->url),
                   .wall_us = clock->wall_us(clock->context),
                   .us = proxy_now_us(x->proxy) - x->request->arrived_us,
                   .how = how,
                   .reason = reason,
                   .status = x->object ? x->object->status : 0,
               });
}

/* A response that has a head, when it is complete, or its front needs no more of it. */
void
exchange_count_response(const struct exchange *x)
{
    struct metrics *metrics = x->proxy->config.metrics;

    if (x->outcome != OUTCOME_HIT)
        remember(x, outcome_word(x->outcome), exchange_reason(x));
    if (exchange_redirect(x).len || exchange_is_unasked(x))
        return;
    metrics_add(metrics, x->worker, rows[x->outcome].requests, 1);
    if (!request_streams(x->request))
        exchange_count_sent(x, object_length(x->object));
    if (x->outcome == OUTCOME_MISS && exchange_is_complete(x))
        metrics_observe(metrics, x->worker, HISTOGRAM_MISS_DURATION,
                        proxy_now_us(x->proxy) - x->request->arrived_us);
}

void
exchange_count_sent(const struct exchange *x, uint64_t bytes)
{
    metrics_add(x->proxy->config.metrics, x->worker, rows[x->outcome].bytes, bytes);
}

static void
end_failed(struct exchange *x, enum failure why, struct span sentence, struct span for_client)
{
    exchange_uncount(x);
    if (why != FAILURE_CANCELLED) {
        metrics_add(x->proxy->config.metrics, x->worker, METRIC_REQUESTS_FAILURE, 1);
        remember(x, failure_word(why), HTTP_REASON_NONE);
    }
    if (why != FAILURE_CANCELLED && x->stage == EXCHANGE_RESPONDS)
        metrics_add(x->proxy->config.metrics, x->worker, METRIC_RESPONSES_CUT, 1);
    x->error = sentence;
    x->front->fail(x, why, for_client);
}

void
exchange_fail(struct exchange *x, enum failure why, struct span sentence)
{
    end_failed(x, why, sentence, failure_for_client(why, sentence));
}

void
exchange_refuse(struct exchange *x, enum failure why, const char *sentence)
{
    if (!x->url.ptr)
        x->url = x->request->url;
    end_failed(x, why, span_str(sentence), span_str(sentence));
}

bool
exchange_is_followed(const struct exchange *x, const struct object *object)
{
    return x->request->flags & REQUEST_PAGE_ONLY && exchange_is_redirect(object);
}

void
exchange_respond(struct exchange *x, struct object *object, bool complete)
{
    const bool had_head = x->stage == EXCHANGE_RESPONDS;

    if (!request_streams(x->request) && object_length(object) > x->proxy->config.max_body &&
        !exchange_is_followed(x, object)) {
        exchange_fail(x, FAILURE_TOO_LARGE,
                      span_str("the response is larger than the proxy takes for this client"));
        return;
    }
    x->object = object;
    x->stage = complete ? EXCHANGE_COMPLETE : EXCHANGE_RESPONDS;
    if (x->outcome == OUTCOME_HIT)
        x->outcome = x->before;
    if (complete) {
        x->evicted = x->waiter.base.evicted;
        x->victims = &x->waiter.base.victims;
        exchange_uncount(x);
        exchange_count_response(x);
    }
    if (had_head)
        x->front->more(x);
    else
        x->front->head(x);
}

/* ---- what the response is ---------------------------------------------------------------------
 */

/* Why the response is not stored, or the stale one is used that the fetch ended in. */
static enum http_reason
why_unstored(const struct exchange *x)
{
    static const enum http_reason refusals[] = {
        [CACHE_REFUSED_NOT] = HTTP_REASON_NONE,       [CACHE_REFUSED_PURGED] = HTTP_REASON_PURGED,
        [CACHE_REFUSED_SIZE] = HTTP_REASON_TOO_LARGE, [CACHE_REFUSED_MEMORY] = HTTP_REASON_MEMORY,
        [CACHE_REFUSED_POLICY] = HTTP_REASON_POLICY,
    };
    unsigned unstored = object_waiter_unstored(&x->waiter.base);

    if (unstored || !exchange_is_complete(x))
        return (enum http_reason)unstored;
    return refusals[x->waiter.base.refusal];
}

static enum http_reason
why_forwarded(enum http_forwarded forwarded)
{
    static const enum http_reason reasons[] = {
        [HTTP_FORWARDED_NOT] = HTTP_REASON_NONE,
        [HTTP_FORWARDED_BYPASS] = HTTP_REASON_REQUEST_PASSES,
        [HTTP_FORWARDED_METHOD] = HTTP_REASON_METHOD,
        [HTTP_FORWARDED_URI_MISS] = HTTP_REASON_URI_MISS,
        [HTTP_FORWARDED_VARY_MISS] = HTTP_REASON_VARY_MISS,
        [HTTP_FORWARDED_MISS] = HTTP_REASON_MISS,
        [HTTP_FORWARDED_REQUEST] = HTTP_REASON_REQUEST,
        [HTTP_FORWARDED_STALE] = HTTP_REASON_EXPIRED,
        [HTTP_FORWARDED_PARTIAL] = HTTP_REASON_REQUEST_RANGE,
    };

    return reasons[forwarded];
}

enum http_reason
exchange_reason(const struct exchange *x)
{
    enum http_reason reason;

    if (!x->object || x->outcome == OUTCOME_HIT)
        return HTTP_REASON_NONE;
    if (x->own)
        return x->stale;
    reason = why_unstored(x);
    return reason ? reason : why_forwarded(x->forwarded);
}

bool
exchange_is_stored(const struct exchange *x)
{
    if (!exchange_is_complete(x))
        return !why_unstored(x);
    return x->own || (x->waiter.base.outcome != CACHE_NOT_STORED &&
                      x->waiter.base.outcome != CACHE_PASSED_ON);
}

int64_t
exchange_fetch_us(const struct exchange *x, int64_t since_us)
{
    if (!x->led)
        return -1;
    if (!x->object || x->outcome == OUTCOME_STALE)
        return since_us;
    if (x->outcome == OUTCOME_HIT || x->outcome == OUTCOME_COALESCED ||
        object_state(x->object) != OBJECT_READY)
        return -1;
    return x->object->fetch_us;
}

struct span
exchange_member(const struct exchange *x)
{
    return x->led && x->kept ? request_member(x->kept) : span_of("", 0);
}
