#include "proxy/exchange_lookup.h"

#include <errno.h>

#include "http/known_fields.h"
#include "http/request_head.h"
#include "proxy/demand.h"
#include "proxy/exchange_respond.h"
#include "proxy/exchange_wait.h"
#include "proxy/proxy_rules.h"
#include "proxy/sharing.h"
#include "proxy/stored.h"

/*
 * A request that was sent back to look up more often than this fetches for itself. Each time it may
 * wait for another response that it may not have: one for its URL, one for its variant, and one
 * that was followed by a later one or had to be validated.
 */
#define MAX_RETRIES 3

/* Records of field names lead to objects, or to another record; no further. */
#define MAX_RECORDS 3

/* ---- asking the cache ------------------------------------------------------------------------ */

static enum cache_answer
ask(struct exchange *x, const struct cache_request *request, struct span variant,
    struct cache_found *found)
{
    const struct proxy_config *config = &x->proxy->config;
    const struct cache_key key = cache_key_of_variant(x->url, variant);
    enum cache_answer answer = cache_lookup(config->cache, &key, request, x->as_of_us, found);

    if (answer == CACHE_NO_MEMORY && memory_reclaim(config->account, x->url.len))
        answer = cache_lookup(config->cache, &key, request, x->as_of_us, found);
    return answer;
}

/* Why is a request forwarded for which this is what the cache has? NULL: nothing. */
static enum http_forwarded
why_asked(const struct exchange *x, const struct object *found, bool varies)
{
    if (found)
        return object_is_fresh(found, x->as_of_us) && !(found->notes & staleness_notes(x->request))
                   ? HTTP_FORWARDED_REQUEST
                   : HTTP_FORWARDED_STALE;
    /* Where there is a record of names, the variants themselves may have been evicted. */
    return varies ? HTTP_FORWARDED_MISS : HTTP_FORWARDED_URI_MISS;
}

enum asking {
    ASK_ANY,   /* joins a fetch, or begins one */
    ASK_READY, /* fetches nothing, and waits for nothing */
    ASK_NEW,   /* likewise, but for the leader of what no request waits for */
};

static enum cache_answer
ask_for_variant(struct exchange *x, const struct demand *demand, enum asking asking,
                struct cache_found *found)
{
    struct cache_conditions conditions = demand->conditions;
    struct cache_request request = {
        .waiter = &x->waiter.base,
        .conditions = demand->demands || asking == ASK_READY ? &conditions : NULL,
        .stale_notes = staleness_notes(x->request),
        .fill_size = origin_fill_size(),
        .max_waiters = proxy_rules_of(x->proxy, x->request)->max_waiters,
        .most = request_streams(x->request) ? 0 : x->proxy->config.max_body,
        .only_new = asking == ASK_NEW,
        .pass = asking == ASK_ANY &&
                (demand->way == REQUEST_PASSES || x->alone || x->retries > MAX_RETRIES),
    };
    struct buf *variant_of = &x->proxy->scratch[x->worker];
    struct span variant = span_of(NULL, 0);
    enum cache_answer answer = CACHE_VARIES;

    conditions.only_cached = asking == ASK_READY;
    for (unsigned i = 0; answer == CACHE_VARIES && i <= MAX_RECORDS; i++) {
        answer = ask(x, &request, variant, found);
        if (answer != CACHE_VARIES) {
            if (!request.pass && answer != CACHE_HIT)
                x->forwarded = why_asked(x, found->object, i != 0);
            return answer;
        }
        if (!demand_select_variant(x, object_fields(found->object), variant_of))
            i = MAX_RECORDS;
        variant = buf_span(variant_of);
        object_release(&found->object);
    }
    /* No variant can be found for it. */
    x->forwarded = HTTP_FORWARDED_VARY_MISS;
    if (asking != ASK_ANY)
        return CACHE_ABSENT;
    request.pass = true;
    return ask(x, &request, span_of(NULL, 0), found);
}

/* ---- answers: true if the last call of the front has been made ------------------------------- */

/* The response is this object, whose reference is the exchange's from now on. */
static bool
respond_at_once(struct exchange *x, struct object *object, enum outcome outcome,
                enum http_reason stale)
{
    x->own = object;
    x->url = object_url(object); /* that of the front may be gone before the exchange has ended */
    x->outcome = outcome;
    x->stale = stale;
    x->forwarded = HTTP_FORWARDED_NOT;
    exchange_respond(x, object, true);
    return true;
}

static bool
refuse(struct exchange *x, enum failure why, struct span sentence)
{
    x->forwarded = HTTP_FORWARDED_NOT;
    exchange_fail(x, why, sentence);
    return true;
}

/* The exchange waits for an object of another request's fetch, which has its URL. */
static bool
join(struct exchange *x)
{
    enum failure why;
    const char *sentence;

    x->outcome = OUTCOME_COALESCED;
    if (exchange_keep(x, span_of(NULL, 0), x->request->waiting_bytes))
        return false;
    sentence = origin_fill_refusal(errno, &why);
    return exchange_leave(x, why, sentence) && refuse(x, why, span_str(sentence));
}

/* Why the response is the exchange's alone, or not for the cache. */
static enum http_reason
why_passed(const struct exchange *x, const struct demand *demand)
{
    if (demand->reason)
        return demand->reason;
    if (x->alone)
        return x->alone;
    if (x->retries > MAX_RETRIES)
        return HTTP_REASON_REQUEST_PASSES;
    return x->forwarded == HTTP_FORWARDED_VARY_MISS ? HTTP_REASON_FIELDS : HTTP_REASON_NONE;
}

static enum origin_fill_purpose
purpose_of(const struct exchange *x, const struct demand *demand)
{
    if (demand->way == REQUEST_PASSES)
        return ORIGIN_FILL_BYPASSES;
    if (x->alone)
        return ORIGIN_FILL_SEPARATES;
    return x->evaluated == EVALUATED_ALL ? ORIGIN_FILL_PASSES : ORIGIN_FILL_SHARES;
}

/* Did an exchange that ended so take the token of a fetch, or wait for one? */
static bool
has_paid(enum outcome outcome)
{
    return outcome == OUTCOME_MISS || outcome == OUTCOME_REVALIDATED || outcome == OUTCOME_BYPASS;
}

static enum origin_fill_rate
rate_of(struct exchange *x)
{
    if (!x->front->is_bounded || !x->front->is_bounded(x))
        return ORIGIN_FILL_FREE;
    return x->retries || has_paid(x->before) ? ORIGIN_FILL_INDEBTED : ORIGIN_FILL_RATED;
}

/* Gives the fill to the fetcher. False: refused. */
static bool
order_fill(struct exchange *x, struct cache_fill *fill, struct origin_fill_order *order)
{
    order->leader = &x->waiter;
    order->rate = rate_of(x);
    if (!exchange_keep(x, x->url, 0)) {
        origin_fill_refuse(x->proxy, fill, order, errno);
        return false;
    }
    order->request = x->request;
    return origin_fill_start(x->proxy, fill, order);
}

/* The exchange is the first to wait for an object: it is fetched. */
static bool
begin_fill(struct exchange *x, struct cache_fill *fill, const struct demand *demand)
{
    struct object_waiter *waiter = &x->waiter.base;
    struct origin_fill_order order = {
        .purpose = purpose_of(x, demand),
        .passes = why_passed(x, demand),
        .wanted = x->evaluated == EVALUATED_ALL ? HTTP_WANTS_WHOLE : demand->wanted,
    };

    x->outcome = demand->way == REQUEST_PASSES ? OUTCOME_BYPASS : OUTCOME_MISS;
    if (!x->relay && x->front->interim)
        exchange_make_relay(x); /* without memory for it interim responses are dropped */
    order.relay = x->relay;
    x->led = true;
    if (order_fill(x, fill, &order)) {
        if (x->waiter.sends_conditions)
            x->evaluated = EVALUATED_CONDITIONS;
        return false;
    }
    object_waiter_take(waiter);
    relay_leave(&x->relay);
    x->url = object_url(waiter->object);
    return refuse(x, waiter->failure->status, object_failure(waiter->failure));
}

/*
 * The object is used stale, and its successor is fetched without a request that waits for it: RFC
 * 5861 section 3. The exchange waits until the fetch has begun, so that it is not unwanted before.
 */
static bool
refresh_in_background(struct exchange *x, struct cache_fill *fill, struct object *object)
{
    struct object_waiter *waiter = &x->waiter.base;
    struct origin_fill_order order = {.purpose = ORIGIN_FILL_REFRESHES};

    x->url = object_url(object);
    waiter->notify = object_waiter_ignore; /* no other thread has the fill yet */
    (void)order_fill(x, fill, &order);
    cache_leave(waiter);
    object_waiter_clear(waiter);
    waiter->evicted = 0;
    return respond_at_once(x, object, OUTCOME_STALE, HTTP_REASON_WHILE_REVALIDATE);
}

/*
 * The exchange has joined the successor of an object that may be used stale: it leaves, unless the
 * successor's head is there already. False: it stays. True: the object is released or, *over, the
 * response.
 */
static bool
use_instead(struct exchange *x, struct object *object, bool *over)
{
    if (atomic_load(&x->wakes) != 0 || !cache_leave(&x->waiter.base))
        return false;
    *over = atomic_load(&x->wakes) == 0;
    if (*over) {
        object_waiter_clear(&x->waiter.base);
        respond_at_once(x, object, OUTCOME_STALE, HTTP_REASON_WHILE_REVALIDATE);
    } else {
        x->stage = EXCHANGE_LEFT;
        object_release(&object);
    }
    return true;
}

/* ---- the lookup: true if the last call of the front has been made ---------------------------- */

static const char not_cached[] = "the response is not in the cache, and was not to be fetched";

/* Answers from what is there, stale objects included as far as the request demand_accepts them. */
static bool
use_ready(struct exchange *x, const struct demand *demand)
{
    struct cache_found found;
    enum cache_answer answer = ask_for_variant(x, demand, ASK_READY, &found);

    if (answer == CACHE_HIT && demand_suits_fresh(x, found.object))
        return respond_at_once(x, found.object, OUTCOME_HIT, HTTP_REASON_NONE);
    if (answer == CACHE_STALE && demand_accepts(x, demand, found.object) &&
        demand_suits_stale(x, found.object))
        return respond_at_once(x, found.object, OUTCOME_STALE, HTTP_REASON_MAX_STALE);
    object_release(&found.object);
    return false;
}

/*
 * The request is a user's, and what the cache has is not for it: no other request waits for the
 * fill that it has begun, if any. What is stored stays unless the response may replace it.
 */
static void
set_alone(struct exchange *x, struct cache_fill *fill)
{
    x->alone = HTTP_REASON_REQUEST_USER;
    if (fill)
        cache_fill_restrict(fill, FILL_VALIDATE, 0);
}

/* The version for which the exchange was to wait has been read from a source already. */
static bool
take_filled(struct exchange *x)
{
    struct object_waiter *waiter = &x->waiter.base;
    const unsigned events = object_waiter_take(waiter);
    struct object *object;

    waiter->notify = exchange_notify;
    x->url = object_url(waiter->object);
    if (events & WAITER_FAILED)
        return refuse(x, waiter->failure->status, object_failure(waiter->failure));
    if (!(events & WAITER_END) || !stored_suits(x) || !demand_suits_fresh(x, waiter->object)) {
        x->retries++;
        cache_victims_free(&waiter->victims);
        return exchange_look_up(x);
    }
    object = object_retain(waiter->object);
    object_waiter_clear(waiter);
    waiter->evicted = 0;
    return respond_at_once(x, object, OUTCOME_HIT, HTTP_REASON_NONE);
}

/* Joins a fetch or begins one. */
static bool
fetch(struct exchange *x, const struct demand *demand)
{
    struct object *previous = x->waiter.base.object; /* has the URL, after a retry */
    struct cache_found found;
    enum cache_answer answer = ask_for_variant(x, demand, ASK_ANY, &found);
    bool over;

    if (answer == CACHE_HIT && !demand_suits_fresh(x, found.object)) {
        object_release(&found.object);
        set_alone(x, NULL);
        answer = ask_for_variant(x, demand, ASK_ANY, &found);
        x->forwarded = HTTP_FORWARDED_REQUEST;
    } else if (found.object && answer != CACHE_HIT && !demand_suits_stale(x, found.object)) {
        object_release(&found.object);
        if (answer == CACHE_STALE)
            set_alone(x, found.fill);
    }
    switch (answer) {
    case CACHE_HIT:
        if (found.object->notes & HTTP_KNOWN_UNSAVED)
            stored_seen(x->proxy, found.object);
        return respond_at_once(x, found.object, OUTCOME_HIT, HTTP_REASON_NONE);
    case CACHE_STALE:
    case CACHE_MISS:
    case CACHE_PASS:
    case CACHE_BUSY:
        x->url = object_url(x->waiter.base.object);
        object_release(&previous);
        x->evaluated = answer == CACHE_PASS || x->alone ? EVALUATED_ALL : EVALUATED_NOTHING;
        if (found.object && demand_may_refresh_later(x, demand, found.object)) {
            if (answer == CACHE_STALE)
                return refresh_in_background(x, found.fill, found.object);
            if (use_instead(x, found.object, &over))
                return over;
        }
        object_release(&found.object);
        if (answer == CACHE_MISS)
            switch (stored_begin(x, found.fill, demand)) {
            case SOURCE_FILLED:
                return take_filled(x);
            case SOURCE_FILLS:
                return join(x);
            case SOURCE_HAS_NOT:
                break;
            }
        return answer == CACHE_BUSY ? join(x) : begin_fill(x, found.fill, demand);
    case CACHE_FULL:
        return refuse(x, FAILURE_OVERLOADED,
                      span_str("too many requests wait for this URL already; try again"));
    case CACHE_ABSENT:
    case CACHE_VARIES:
    case CACHE_NO_MEMORY:
        break;
    }
    return refuse(x, FAILURE_INTERNAL, span_str(strerror(ENOMEM)));
}

/*
 * Has a source fill what the cache does not have, for a request for which nothing is fetched into
 * that. True: *over is as of exchange_look_up().
 */
static bool
use_stored(struct exchange *x, const struct demand *demand, bool *over)
{
    struct object *previous = x->waiter.base.object; /* has the URL, after a retry */
    struct demand shares = *demand;
    struct cache_found found;
    enum cache_answer answer;

    shares.way = REQUEST_SHARES;
    if (!stored_may_begin(x))
        return false;
    answer = ask_for_variant(x, &shares, ASK_NEW, &found);
    if (answer != CACHE_MISS) {
        object_release(&found.object);
        return false;
    }
    x->url = object_url(x->waiter.base.object);
    object_release(&previous);
    switch (stored_begin(x, found.fill, &shares)) {
    case SOURCE_FILLED:
        *over = take_filled(x);
        return true;
    case SOURCE_FILLS:
        *over = join(x);
        return true;
    case SOURCE_HAS_NOT:
        break;
    }
    stored_give_up(x, found.fill);
    return false;
}

bool
exchange_look_up(struct exchange *x)
{
    bool over;

    struct demand demand;

    x->stage = EXCHANGE_WAITS;
    if ((x->request->lacks & DEMAND_FIELDS) != DEMAND_FIELDS)
        (void)demand_fields(x);
    demand_read(&demand, x);
    x->waiter.wants_part = demand.wanted == HTTP_WANTS_PART;
    x->evaluated = EVALUATED_NOTHING;
    /* One that is alone looks nothing up: what the lookup before has found is why. */
    if (!x->alone)
        x->forwarded = HTTP_FORWARDED_MISS;
    if (demand.way == REQUEST_PASSES) {
        x->forwarded = x->request->method == HTTP_GET || x->request->method == HTTP_HEAD
                           ? HTTP_FORWARDED_BYPASS
                           : HTTP_FORWARDED_METHOD;
        /* Nothing that is stored may answer it: RFC 9111 section 5.2.1.7. */
        if (demand.only_cached)
            return refuse(x, FAILURE_NOT_CACHED, span_str(not_cached));
    } else if (demand.way == REQUEST_USES || demand.only_cached || demand.max_stale_us) {
        if (use_ready(x, &demand))
            return true;
        if ((demand.way == REQUEST_USES || demand.only_cached) && use_stored(x, &demand, &over))
            return over;
        if (demand.only_cached)
            return refuse(x, FAILURE_NOT_CACHED, span_str(not_cached));
        if (demand.way == REQUEST_USES)
            demand.way = REQUEST_PASSES;
    }
    return fetch(x, &demand);
}
