#include "proxy/exchange.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/container_of.h"
#include "base/hash.h"
#include "fetch/headers.h"
#include "http/conditional.h"
#include "http/field.h"
#include "http/known_fields.h"
#include "http/request_head.h"
#include "http/response_head.h"
#include "proxy/demand.h"
#include "proxy/proxy_rules.h"
#include "metrics/recent.h"
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
static void
count_response(const struct exchange *x)
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

/* It does not wait any more: its memory is not the client's. */
static void
uncount(struct exchange *x)
{
    if (x->counted)
        client_share_give_back(&x->proxy->waiting, atomic_load(&x->waiter.client), x->counted);
    x->counted = 0;
}

static void
end_failed(struct exchange *x, enum failure why, struct span sentence, struct span for_client)
{
    uncount(x);
    if (why != FAILURE_CANCELLED) {
        metrics_add(x->proxy->config.metrics, x->worker, METRIC_REQUESTS_FAILURE, 1);
        remember(x, failure_word(why), HTTP_REASON_NONE);
    }
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
        uncount(x);
        count_response(x);
    }
    if (had_head)
        x->front->more(x);
    else
        x->front->head(x);
}

/* ---- waiting --------------------------------------------------------------------------------- */

/* What has called the front's wake(): bits of x->wakes. */
enum { WOKEN_BY_CACHE = 1, WOKEN_BY_RELAY = 2, WOKEN_BY_SOURCE = 4 };

/* All call this under a lock that leaving takes, so that x is there until they have returned. */
static void
wake(struct exchange *x, unsigned by)
{
    if (atomic_fetch_or(&x->wakes, by) == 0)
        x->front->wake(x);
}

void
exchange_wake_by_source(struct exchange *x)
{
    wake(x, WOKEN_BY_SOURCE);
}

void
exchange_notify(struct object_waiter *waiter)
{
    wake(container_of(waiter, struct exchange, waiter.base), WOKEN_BY_CACHE);
}

static void
wake_by_relay(void *context)
{
    wake(context, WOKEN_BY_RELAY);
}

/*
 * Leaves object and relay, and will fail for this reason. True: there is no wake() whose
 * exchange_run() is still to come.
 */
static bool
leave(struct exchange *x, enum failure why, const char *sentence)
{
    x->stage = EXCHANGE_ENDS;
    x->ending = why;
    x->sentence = span_str(sentence);
    cache_leave(&x->waiter.base);
    relay_leave(&x->relay);
    if (x->noted)
        stored_leave(x);
    return atomic_load(&x->wakes) == 0;
}

/* The client, of which a hit knows nothing where many share a connection. NULL with errno. */
static struct client *
find_client(struct exchange *x)
{
    struct client *client = x->request->client;

    errno = ENOMEM;
    if (!client) {
        client = x->front->client(x);
        atomic_store(&x->waiter.client, client);
    }
    return client;
}

/*
 * The request outlives the front's memory for it, with this URL, or without one while the exchange
 * waits for an object that has it; and counts for its client, with as many bytes beside. False with
 * errno if it may not, or without memory.
 */
static bool
keep(struct exchange *x, struct span url, size_t beside)
{
    struct client *client = find_client(x);
    const struct request *before = x->kept;
    size_t bytes;

    (void)demand_fields(x);
    bytes = beside + request_size(x->request, url);
    if (!client || !client_share_take(&x->proxy->waiting, client, bytes))
        return false;
    x->counted = bytes;
    if (before && before->url.len >= url.len)
        return true;
    x->kept = request_keep(x->request, url, client, x->proxy->config.account);
    if (!x->kept) {
        x->kept = before;
        return false;
    }
    x->request = x->kept;
    request_release(&before);
    return true;
}

/* Makes the relay to the fetch; false with errno without memory. */
static bool
make_relay(struct exchange *x)
{
    const struct proxy_config *config = &x->proxy->config;

    x->relay = relay_create(&(struct relay_config){.origin = &config->origin,
                                                   .account = config->account,
                                                   .has_body = request_has_body(x->request),
                                                   .wake = wake_by_relay,
                                                   .context = x});
    return x->relay != NULL;
}

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

/* `only_ready`: fetches nothing, and waits for nothing. */
static enum cache_answer
ask_for_variant(struct exchange *x, const struct demand *demand, bool only_ready,
                struct cache_found *found)
{
    struct cache_conditions conditions = demand->conditions;
    struct cache_request request = {
        .waiter = &x->waiter.base,
        .conditions = demand->demands || only_ready ? &conditions : NULL,
        .stale_notes = staleness_notes(x->request),
        .fill_size = origin_fill_size(),
        .max_waiters = proxy_rules_of(x->proxy, x->request)->max_waiters,
        .most = request_streams(x->request) ? 0 : x->proxy->config.max_body,
        .pass =
            !only_ready && (demand->way == REQUEST_PASSES || x->alone || x->retries > MAX_RETRIES),
    };
    struct buf *variant_of = &x->proxy->scratch[x->worker];
    struct span variant = span_of(NULL, 0);
    enum cache_answer answer = CACHE_VARIES;

    conditions.only_cached = only_ready;
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
    if (only_ready)
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
    respond(x, object, true);
    return true;
}

static bool
refuse(struct exchange *x, enum failure why, struct span sentence)
{
    x->forwarded = HTTP_FORWARDED_NOT;
    fail(x, why, sentence);
    return true;
}

/* The exchange waits for an object of another request's fetch, which has its URL. */
static bool
join(struct exchange *x)
{
    enum failure why;
    const char *sentence;

    x->outcome = OUTCOME_COALESCED;
    if (keep(x, span_of(NULL, 0), x->request->waiting_bytes))
        return false;
    sentence = origin_fill_refusal(errno, &why);
    return leave(x, why, sentence) && refuse(x, why, span_str(sentence));
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
    if (!keep(x, x->url, 0)) {
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
        .wanted = x->evaluated == EVALUATED_ALL ? RANGE_WHOLE : demand->wanted,
    };

    x->outcome = demand->way == REQUEST_PASSES ? OUTCOME_BYPASS : OUTCOME_MISS;
    if (!x->relay && x->front->interim)
        make_relay(x); /* without memory for it interim responses are dropped */
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

static bool look_up(struct exchange *x);

static const char not_cached[] = "the response is not in the cache, and was not to be fetched";

/* Answers from what is there, stale objects included as far as the request demand_accepts them. */
static bool
use_ready(struct exchange *x, const struct demand *demand)
{
    struct cache_found found;
    enum cache_answer answer = ask_for_variant(x, demand, true, &found);

    if (answer == CACHE_HIT && demand_suits_fresh(x, found.object))
        return respond_at_once(x, found.object, OUTCOME_HIT, HTTP_REASON_NONE);
    if (answer == CACHE_STALE && demand_accepts(x, demand, found.object) &&
        demand_suits_stale(x, found.object))
        return respond_at_once(x, found.object, OUTCOME_STALE, HTTP_REASON_MAX_STALE);
    object_release(&found.object);
    return demand->only_cached && refuse(x, FAILURE_NOT_CACHED, span_str(not_cached));
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
        return look_up(x);
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
    enum cache_answer answer = ask_for_variant(x, demand, false, &found);
    bool over;

    if (answer == CACHE_HIT && !demand_suits_fresh(x, found.object)) {
        object_release(&found.object);
        set_alone(x, NULL);
        answer = ask_for_variant(x, demand, false, &found);
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

static bool
look_up(struct exchange *x)
{
    struct demand demand;

    x->stage = EXCHANGE_WAITS;
    if ((x->request->lacks & DEMAND_FIELDS) != DEMAND_FIELDS)
        (void)demand_fields(x);
    demand_read(&demand, x);
    x->waiter.wants_part = demand.wanted == RANGE_PART;
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
        if (demand.way == REQUEST_USES)
            demand.way = REQUEST_PASSES;
    }
    return fetch(x, &demand);
}

/* ---- a request's life ------------------------------------------------------------------------ */

bool
exchange_start(struct exchange *x)
{
    x->waiter.base.notify = exchange_notify;
    x->waiter.base.streams = request_streams(x->request);
    x->waiter.base.wants_head = x->request->flags & REQUEST_PAGE_ONLY ? is_redirect : NULL;
    atomic_store_explicit(&x->waiter.client, x->request->client, memory_order_relaxed);
    if (!x->as_of_us)
        x->as_of_us = x->request->arrived_us;
    x->url = x->request->url;
    if (request_has_body(x->request) && !make_relay(x)) {
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
    uncount(x);
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
        if (stored_is_source(x, events)) {
            x->outcome = OUTCOME_HIT;
            x->forwarded = HTTP_FORWARDED_NOT;
        }
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
    if (wakes & WOKEN_BY_SOURCE)
        stored_is_noted(x);
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
        count_response(x);
    over = leave(x, FAILURE_CANCELLED, "the request was cancelled");
    uncount(x);
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

struct span
exchange_member(const struct exchange *x)
{
    return x->led && x->kept ? request_member(x->kept) : span_of("", 0);
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
