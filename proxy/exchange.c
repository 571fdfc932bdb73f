#include "proxy/exchange.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/container_of.h"
#include "http/conditional.h"
#include "http/request_head.h"
#include "proxy/exchange_parts.h"

/* ---- a request's life ------------------------------------------------------------------------ */

bool
exchange_start(struct exchange *x)
{
    x->waiter.base.notify = exchange_wake_by_cache;
    x->waiter.base.streams = x->front->streams;
    atomic_store_explicit(&x->waiter.client, x->client, memory_order_relaxed);
    x->method_id = http_method_of(x->method);
    if (!x->as_of_us)
        x->as_of_us = x->arrived_us;
    if (!x->raw)
        x->url = proxy_normal_url(x->proxy, x->url);
    if (x->has_body && !exchange_make_relay(x)) {
        enum failure why;
        const char *sentence = origin_fill_refusal(errno, &why);

        exchange_fail(x, why, span_str(sentence));
        return true;
    }
    return exchange_look_up(x);
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

/* May the request have the response of another one that it has waited for? */
static bool
is_for_request(struct exchange *x)
{
    const struct object_waiter *waiter = &x->waiter.base;

    return waiter->leader || user_rules_permit_fresh(waiter->object) ||
           !exchange_is_of_user(x);
}

/* Does an object that grows serve it soon? */
static bool
is_near(struct exchange *x, unsigned events)
{
    return events & WAITER_END || x->evaluated == EVALUATED_ALL || !x->raw ||
           x->lacks & HTTP_HAS_RANGE ||
           range_rules_are_near(exchange_fields(x), x->waiter.base.object);
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
    if (waiter->sent_back && x->raw && http_has_condition(exchange_fields(x)))
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
    x->again = atomic_load(&x->wakes) != 0;
    return !x->again;
}

static void
look_up_again(struct exchange *x)
{
    exchange_uncount(x);
    x->retries++;
    x->as_of_us = proxy_now_us(x->proxy);
    exchange_look_up(x);
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
    if (events & WAITER_FAILED) {
        exchange_fail(x, waiter->failure->status, object_failure(waiter->failure));
    } else if (events & WAITER_RETRY) {
        assert(!x->has_head);
        if (!x->alone)
            x->alone = why_alone(x);
        look_up_again(x);
    } else if (!x->has_head && (!is_for_request(x) || !is_near(x, events))) {
        x->alone = is_for_request(x) ? HTTP_REASON_REQUEST_RANGE : HTTP_REASON_REQUEST_USER;
        if (events & WAITER_LAST || leave_to_look_up(x))
            look_up_again(x);
    } else {
        if (events & WAITER_END && !x->has_head)
            set_outcome(x);
        if (events & WAITER_END)
            x->stored = waiter->outcome != CACHE_NOT_STORED && waiter->outcome != CACHE_PASSED_ON;
        exchange_respond(x, waiter->object, events & WAITER_END);
    }
}

/*
 * Is the object complete, and its last event, which comes with what the object is to this request,
 * still to come?
 */
static bool
ends_soon(const struct exchange *x)
{
    return !x->has_head && !(x->events & WAITER_LAST) &&
           object_state(x->waiter.base.object) == OBJECT_READY;
}

void
exchange_run(struct exchange *x)
{
    unsigned wakes = atomic_exchange(&x->wakes, 0);

    if (wakes & WOKEN_BY_CACHE)
        x->events |= object_waiter_take(&x->waiter.base);
    if (x->again)
        x->events = WAITER_RETRY;
    x->again = false;
    if (wakes & WOKEN_BY_RELAY)
        take_interims(x);
    if (x->ending || x->events & WAITER_LAST) {
        relay_leave(&x->relay);
        if (atomic_load(&x->wakes) != 0)
            return; /* the relay has called wake() meanwhile: the exchange ends then */
    }
    if (x->ending) {
        x->url = object_url(x->waiter.base.object);
        exchange_fail(x, x->ending, span_str(x->sentence));
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
    if (!x->complete)
        cache_waiter_taken(&x->waiter.base, offset);
}

bool
exchange_cancel(struct exchange *x)
{
    bool over;

    /* Before it leaves the object, of which the front may have all that it needs. */
    if (x->has_head && !x->complete)
        exchange_count_response(x);
    over = exchange_leave(x, FAILURE_CANCELLED, "the request was cancelled");
    exchange_uncount(x);
    return over;
}

/* Why the response is not stored, or the stale one is used that the fetch ended in. */
static enum http_reason
why_unstored(const struct exchange *x)
{
    static const enum http_reason refusals[] = {
        [CACHE_REFUSED_NOT] = HTTP_REASON_NONE,
        [CACHE_REFUSED_PURGED] = HTTP_REASON_PURGED,
        [CACHE_REFUSED_SIZE] = HTTP_REASON_TOO_LARGE,
        [CACHE_REFUSED_MEMORY] = HTTP_REASON_MEMORY,
        [CACHE_REFUSED_POLICY] = HTTP_REASON_POLICY,
    };
    unsigned unstored = object_waiter_unstored(&x->waiter.base);

    if (unstored || !x->complete)
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
    return x->complete ? x->stored : !why_unstored(x);
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
}
