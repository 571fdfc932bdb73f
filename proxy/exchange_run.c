/*
 * The life of an exchange, from exchange_start() to exchange_end().
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "http/conditional.h"
#include "http/request_head.h"
#include "proxy/demand.h"
#include "proxy/exchange_lookup.h"
#include "proxy/exchange_respond.h"
#include "proxy/exchange_wait.h"
#include "proxy/sharing.h"
#include "proxy/stored.h"

bool
exchange_start(struct exchange *x)
{
    x->waiter.base.notify = exchange_notify;
    x->waiter.base.streams = request_streams(x->request);
    x->waiter.base.wants_head = x->request->flags & REQUEST_PAGE_ONLY ? exchange_is_redirect : NULL;
    atomic_store_explicit(&x->waiter.client, x->request->client, memory_order_relaxed);
    if (!x->as_of_us)
        x->as_of_us = x->request->arrived_us;
    x->url = x->request->url;
    if (request_has_body(x->request) && !exchange_make_relay(x)) {
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

/* May it have the response of another request, for which it has waited, without a validation? One
 * that is used because the origin fails has expired for all. */
static bool
is_fresh_to(struct exchange *x, unsigned events)
{
    const struct object_waiter *waiter = &x->waiter.base;

    if (stored_is_source(x, events))
        return stored_suits(x);
    return waiter->leader || !(waiter->object->notes & staleness_notes(x->request)) ||
           (events & WAITER_END && waiter->outcome == CACHE_FELL_BACK);
}

/* May it have that response, as far as it is a user's? */
static bool
is_for_user(struct exchange *x, unsigned events)
{
    const struct object_waiter *waiter = &x->waiter.base;

    if (waiter->leader && !stored_is_source(x, events))
        return true;
    return events & WAITER_END && waiter->outcome == CACHE_FELL_BACK
               ? demand_suits_stale(x, waiter->object)
               : demand_suits_fresh(x, waiter->object);
}

/* Does an object that grows serve it soon? */
static bool
is_near(struct exchange *x, unsigned events)
{
    return events & WAITER_END || x->evaluated == EVALUATED_ALL ||
           x->request->lacks & HTTP_HAS_RANGE ||
           demand_begins_soon(demand_fields(x), x->waiter.base.object);
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
    if (waiter->sent_back && demand_is_of_user(x))
        return HTTP_REASON_REQUEST_USER;
    if (waiter->sent_back && http_has_condition(demand_fields(x)))
        return HTTP_REASON_REQUEST_CONDITION;
    return HTTP_REASON_NONE;
}

/* It waits no more. False: it looks up later, when an event has come that is under way. */
static bool
leave_to_look_up(struct exchange *x)
{
    if (!cache_leave(&x->waiter.base))
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
    exchange_uncount(x);
    x->retries++;
    cache_victims_free(&x->waiter.base.victims);
    x->as_of_us = proxy_now_us(x->proxy);
    (void)exchange_look_up(x);
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
    if (x->stage == EXCHANGE_WAITS && events & WAITER_HEAD &&
        exchange_is_followed(x, waiter->object)) {
        /* Whatever comes of its body. */
        const bool ended = (events & (WAITER_END | WAITER_FAILED)) == WAITER_END;

        if (ended)
            set_outcome(x);
        exchange_respond(x, waiter->object, ended);
    } else if (events & WAITER_FAILED) {
        exchange_fail(x, waiter->failure->status, object_failure(waiter->failure));
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
        if (stored_is_source(x, events)) {
            x->outcome = OUTCOME_HIT;
            x->forwarded = HTTP_FORWARDED_NOT;
        }
        if (events & WAITER_END && x->stage == EXCHANGE_WAITS)
            set_outcome(x);
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
    if (wakes & WOKEN_BY_SOURCE)
        stored_is_noted(x);
    if (x->stage == EXCHANGE_ENDS || x->events & WAITER_LAST) {
        relay_leave(&x->relay);
        if (atomic_load(&x->wakes) != 0)
            return; /* the relay has called wake() meanwhile: the exchange ends then */
    }
    if (x->stage == EXCHANGE_ENDS) {
        x->url = object_url(x->waiter.base.object);
        exchange_fail(x, x->ending, x->sentence);
        return;
    }
    if (x->relay && relay_has_space(x->relay))
        x->front->space(x);
    if (x->events && !ends_soon(x) && !stored_awaits(x))
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
        exchange_count_response(x);
    if (x->noted)
        stored_leave(x);
    over = exchange_leave(x, FAILURE_CANCELLED, "the request was cancelled");
    exchange_uncount(x);
    return over;
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
    if (x->noted)
        stored_forget(x);
}
