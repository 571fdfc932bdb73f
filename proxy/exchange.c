#include "proxy/exchange.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/container_of.h"
#include "fetch/headers.h"
#include "http/conditional.h"
#include "http/field.h"
#include "http/request_head.h"
#include "http/response_head.h"
#include "proxy/lookup.h"

/* ---- the front's calls ----------------------------------------------------------------------- */

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

static bool
is_redirect(const struct object *object)
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
           !headers_have(x->request->fields, status == 206 ? ranges : conditions);
}

/* A response that has a head, when it is complete, or its front needs no more of it. */
static void
count_response(const struct exchange *x)
{
    struct metrics *metrics = x->proxy->config.metrics;

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
    lookup_uncount(x);
    if (why != FAILURE_CANCELLED)
        metrics_add(x->proxy->config.metrics, x->worker, METRIC_REQUESTS_FAILURE, 1);
    if (why != FAILURE_CANCELLED && x->stage == EXCHANGE_RESPONDS)
        metrics_add(x->proxy->config.metrics, x->worker, METRIC_RESPONSES_CUT, 1);
    x->error = sentence;
    x->front->fail(x, why, for_client);
}

static void
fail(struct exchange *x, enum failure why, struct span sentence)
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

/* Is it a redirect that the front follows? */
static bool
is_followed(const struct exchange *x, const struct object *object)
{
    return x->request->flags & REQUEST_PAGE_ONLY && is_redirect(object);
}

static void
respond(struct exchange *x, struct object *object, bool complete)
{
    const bool had_head = x->stage == EXCHANGE_RESPONDS;

    if (!request_streams(x->request) && object_length(object) > x->proxy->config.max_body &&
        !is_followed(x, object)) {
        fail(x, FAILURE_TOO_LARGE,
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
        lookup_uncount(x);
        count_response(x);
    }
    if (had_head)
        x->front->more(x);
    else
        x->front->head(x);
}

/* ---- a request's life ------------------------------------------------------------------------ */

/* True: the last call of the front has been made. */
static bool
look_up(struct exchange *x)
{
    x->stage = EXCHANGE_WAITS;
    switch (lookup_object(x)) {
    case LOOKUP_WAITS:
        return false;
    case LOOKUP_RESPONDS:
        respond(x, x->own, true);
        return true;
    case LOOKUP_FAILS:
        break;
    }
    fail(x, x->ending, x->sentence);
    return true;
}

bool
exchange_start(struct exchange *x)
{
    x->waiter.base.notify = lookup_wake_by_cache;
    x->waiter.base.streams = request_streams(x->request);
    x->waiter.base.wants_head = x->request->flags & REQUEST_PAGE_ONLY ? is_redirect : NULL;
    atomic_store_explicit(&x->waiter.client, x->request->client, memory_order_relaxed);
    if (!x->as_of_us)
        x->as_of_us = x->request->arrived_us;
    x->url = x->request->url;
    if (request_has_body(x->request) && !lookup_make_relay(x)) {
        enum failure why;
        const char *sentence = origin_fill_refusal(errno, &why);

        fail(x, why, span_str(sentence));
        return true;
    }
    return look_up(x);
}

size_t
exchange_send(struct exchange *x, const void *bytes, size_t len)
{
    return x->relay ? relay_write(x->relay, bytes, len) : len;
}

void
exchange_send_end(struct exchange *x)
{
    if (x->relay)
        relay_end(x->relay);
}

/* What the relay has. */
static void
take_interims(struct exchange *x)
{
    struct relay_interim *interim;

    while (x->relay && (interim = relay_take_interim(x->relay))) {
        x->front->interim(x, interim->status, span_of(interim->lines, interim->len));
        free(interim);
    }
}

/* passed_over is a status from this value on, and a number of enum failure below it. */
#define LEAST_STATUS 100u

/* What the object that the waiter has now is to this request: known, and constant, at its end. */
static void
set_outcome(struct exchange *x)
{
    const struct object_waiter *waiter = &x->waiter.base;

    if (waiter->outcome == CACHE_FELL_BACK) {
        x->outcome = OUTCOME_STALE;
        x->evaluated = EVALUATED_NOTHING;
        x->origin_status = waiter->passed_over >= LEAST_STATUS ? waiter->passed_over : 0;
        /* Without a response from there it is a hit: RFC 9211 section 2.1. */
        if (!x->origin_status)
            x->forwarded = HTTP_FORWARDED_NOT;
    } else if (waiter->refreshed) {
        x->origin_status = 304;
        if (waiter->leader)
            x->outcome = OUTCOME_REVALIDATED;
    }
}

/* May it have the response of another request, for which it has waited, without a validation? One
 * that is used because the origin fails has expired for all. */
static bool
is_fresh_to(const struct exchange *x, unsigned events)
{
    const struct object_waiter *waiter = &x->waiter.base;

    return waiter->leader || !(waiter->object->notes & staleness_notes(x->request)) ||
           (events & WAITER_END && waiter->outcome == CACHE_FELL_BACK);
}

/* May it have that response, as far as it is a user's? */
static bool
is_for_user(struct exchange *x, unsigned events)
{
    const struct object_waiter *waiter = &x->waiter.base;

    if (waiter->leader || !exchange_is_of_user(x))
        return true;
    if (events & WAITER_END && waiter->outcome == CACHE_FELL_BACK)
        return user_rules_permit_stale(x->proxy, waiter->object, x->request, exchange_fields(x));
    return user_rules_permit_fresh(waiter->object);
}

/* Does an object that grows serve it soon? */
static bool
is_near(struct exchange *x, unsigned events)
{
    return events & WAITER_END || x->evaluated == EVALUATED_ALL ||
           x->request->lacks & HTTP_HAS_RANGE ||
           lookup_is_near(exchange_fields(x), x->waiter.base.object);
}

/*
 * Why a request that is sent back is to fetch for itself: a leader's range is the origin's;
 * requests of users, and those with conditions, would wait for each other in turn.
 */
static enum http_reason
why_alone(struct exchange *x)
{
    const struct object_waiter *waiter = &x->waiter.base;

    if (waiter->leader && x->led)
        return HTTP_REASON_REQUEST_RANGE;
    if (waiter->sent_back && exchange_is_of_user(x))
        return HTTP_REASON_REQUEST_USER;
    if (waiter->sent_back && http_has_condition(exchange_fields(x)))
        return HTTP_REASON_REQUEST_CONDITION;
    return HTTP_REASON_NONE;
}

/* It waits no more. False: it looks up later, when an event has come that is under way. */
static bool
leave_to_look_up(struct exchange *x)
{
    if (!cache_leave(x->proxy->config.cache, &x->waiter.base))
        return false;
    relay_leave(&x->relay);
    if (atomic_load(&x->wakes) == 0)
        return true;
    x->stage = EXCHANGE_LEFT;
    return false;
}

static void
look_up_again(struct exchange *x)
{
    lookup_uncount(x);
    x->retries++;
    x->as_of_us = proxy_now_us(x->proxy);
    (void)look_up(x);
}

/* What the cache has. */
static void
take_events(struct exchange *x)
{
    struct object_waiter *waiter = &x->waiter.base;
    unsigned events = x->events;

    x->events = 0;
    /* It may be another object now. */
    x->url = object_url(waiter->object);
    if (x->stage == EXCHANGE_WAITS && events & WAITER_HEAD && is_followed(x, waiter->object)) {
        /* Whatever comes of its body. */
        const bool ended = (events & (WAITER_END | WAITER_FAILED)) == WAITER_END;

        if (ended)
            set_outcome(x);
        respond(x, waiter->object, ended);
    } else if (events & WAITER_FAILED) {
        fail(x, waiter->failure->status, object_failure(waiter->failure));
    } else if (events & WAITER_RETRY) {
        assert(x->stage == EXCHANGE_WAITS);
        if (!x->alone)
            x->alone = why_alone(x);
        look_up_again(x);
    } else if (x->stage == EXCHANGE_WAITS &&
               (!is_fresh_to(x, events) || !is_for_user(x, events) || !is_near(x, events))) {
        if (!x->alone && is_fresh_to(x, events))
            x->alone =
                is_for_user(x, events) ? HTTP_REASON_REQUEST_RANGE : HTTP_REASON_REQUEST_USER;
        if (events & WAITER_LAST || leave_to_look_up(x))
            look_up_again(x);
    } else {
        if (events & WAITER_END && x->stage == EXCHANGE_WAITS)
            set_outcome(x);
        respond(x, waiter->object, events & WAITER_END);
    }
}

/*
 * Is the object complete, and its last event, which comes with what the object is to this request,
 * still to come?
 */
static bool
ends_soon(const struct exchange *x)
{
    return x->stage == EXCHANGE_WAITS && !(x->events & WAITER_LAST) &&
           object_state(x->waiter.base.object) == OBJECT_READY;
}

void
exchange_run(struct exchange *x)
{
    unsigned wakes = atomic_exchange(&x->wakes, 0);

    if (wakes & WOKEN_BY_CACHE)
        x->events |= object_waiter_take(&x->waiter.base);
    if (x->stage == EXCHANGE_LEFT) {
        x->stage = EXCHANGE_WAITS;
        x->events = WAITER_RETRY;
    }
    if (wakes & WOKEN_BY_RELAY)
        take_interims(x);
    if (x->stage == EXCHANGE_ENDS || x->events & WAITER_LAST) {
        relay_leave(&x->relay);
        if (atomic_load(&x->wakes) != 0)
            return; /* the relay has called wake() meanwhile: the exchange ends then */
    }
    if (x->stage == EXCHANGE_ENDS) {
        x->url = object_url(x->waiter.base.object);
        fail(x, x->ending, x->sentence);
        return;
    }
    if (x->relay && relay_has_space(x->relay))
        x->front->space(x);
    if (x->events && !ends_soon(x))
        take_events(x);
}

void
exchange_taken(struct exchange *x, uint64_t offset)
{
    if (!exchange_is_complete(x))
        cache_waiter_taken(&x->waiter.base, offset);
}

bool
exchange_cancel(struct exchange *x)
{
    bool over;

    /* Before it leaves the object, of which the front may have all that it needs. */
    if (x->stage == EXCHANGE_RESPONDS)
        count_response(x);
    over = lookup_leave(x, FAILURE_CANCELLED, "the request was cancelled");
    lookup_uncount(x);
    return over;
}

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

void
exchange_end(struct exchange *x)
{
    struct relay *unused = x->led ? NULL : x->relay; /* no fetch has its other side */

    object_release(&x->own);
    x->object = NULL;
    relay_leave(&x->relay);
    relay_close(&unused);
    object_waiter_clear(&x->waiter.base);
    request_release(&x->kept);
}
