/*
 * The lookup of a request and what follows from the cache's answer: a response at once, a wait for
 * a fetch that is under way, or a fetch.
 */
#include <errno.h>

#include "http/variant.h"

#include "proxy/exchange_parts.h"
#include "proxy/request_rules.h"
#include "proxy/staleness.h"

/*
 * A request that was sent back to look up more often than this fetches for itself. Each time it may
 * wait for another response that it may not have: one for its URL, one for its variant, and one
 * that has been displaced or had to be validated.
 */
#define MAX_RETRIES 3

/* Records of field names lead to objects, or to another record; no further. */
#define MAX_RECORDS 3

/* ---- asking the cache ------------------------------------------------------------------------ */

/* The variant that the request selects of what varies by these names. */
static bool
select_variant(struct exchange *x, struct span names, struct buf *variant)
{
    struct http_vary vary;

    buf_reset(variant);
    return buf_append(variant, RAW_VARIANT, sizeof(RAW_VARIANT) - 1) &&
           http_vary_parse(&vary, names) == HTTP_VARY_FIELDS &&
           http_variant_key(&vary, exchange_fields(x), variant);
}

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
why_forwarded(const struct exchange *x, const struct object *found, bool varies)
{
    if (found)
        return object_is_fresh(found, x->as_of_us) ? HTTP_FORWARDED_REQUEST : HTTP_FORWARDED_STALE;
    /* Where there is a record of names, the variants themselves may have been evicted. */
    return varies ? HTTP_FORWARDED_MISS : HTTP_FORWARDED_URI_MISS;
}

/* `only_ready`: fetches nothing, and waits for nothing. */
static enum cache_answer
look_up(struct exchange *x, const struct request_rules *rules, bool only_ready,
        struct cache_found *found)
{
    struct cache_conditions conditions = rules->conditions;
    struct cache_request request = {
        .waiter = &x->waiter.base,
        .conditions = rules->demands || only_ready ? &conditions : NULL,
        .fill_size = origin_fill_size(),
        .max_waiters = x->proxy->config.max_waiters,
        .pass = !only_ready &&
                (rules->way == REQUEST_PASSES || x->alone || x->retries > MAX_RETRIES),
    };
    struct buf *variant_of = proxy_scratch(x->proxy, x->worker);
    struct span variant = x->raw ? span_str(RAW_VARIANT) : span_of(NULL, 0);
    enum cache_answer answer = CACHE_VARIES;

    conditions.only_cached = only_ready;
    for (unsigned i = 0; answer == CACHE_VARIES && i <= MAX_RECORDS; i++) {
        answer = ask(x, &request, variant, found);
        if (answer != CACHE_VARIES) {
            if (!request.pass && answer != CACHE_HIT)
                x->forwarded = why_forwarded(x, found->object, i != 0);
            return answer;
        }
        if (!select_variant(x, object_fields(found->object), variant_of))
            i = MAX_RECORDS;
        variant = buf_span(variant_of);
        object_release(&found->object);
    }
    /* No variant can be found for it. */
    x->forwarded = HTTP_FORWARDED_VARY_MISS;
    if (only_ready)
        return CACHE_ABSENT;
    request.pass = true;
    return ask(x, &request, span_str(RAW_VARIANT), found);
}

/* ---- answers --------------------------------------------------------------------------------- */

/* The response is this object, whose reference is the exchange's from now on. */
static bool
respond(struct exchange *x, struct object *object, enum outcome outcome, enum http_reason stale)
{
    x->own = object;
    x->url = object_url(object); /* that of the front may be gone before the exchange has ended */
    x->outcome = outcome;
    x->stale = stale;
    x->forwarded = HTTP_FORWARDED_NOT;
    x->stored = true;
    exchange_respond(x, object, true);
    return true;
}

static bool
fail(struct exchange *x, enum failure why, const char *sentence)
{
    x->forwarded = HTTP_FORWARDED_NOT;
    exchange_fail(x, why, span_str(sentence));
    return true;
}

/* The client, of which a hit knows nothing where many share a connection. */
static struct client *
find_client(struct exchange *x)
{
    if (!x->client) {
        x->client = x->front->client(x);
        atomic_store(&x->waiter.client, x->client);
    }
    return x->client;
}

/* The exchange waits for an object that another request has caused to be fetched. */
static bool
join(struct exchange *x)
{
    enum failure why;
    const char *sentence;

    x->outcome = OUTCOME_COALESCED;
    errno = ENOMEM;
    x->counted = find_client(x) &&
                 client_share_take(&x->proxy->waiting, x->client, x->waiting_bytes);
    if (x->counted)
        return false;
    sentence = origin_fill_refusal(errno, &why);
    if (!exchange_leave(x, why, sentence))
        return false;
    return fail(x, why, sentence);
}

static enum origin_fill_rate
rate_of(struct exchange *x)
{
    if (!x->front->is_bounded || !x->front->is_bounded(x))
        return ORIGIN_FILL_FREE;
    return x->retries ? ORIGIN_FILL_INDEBTED : ORIGIN_FILL_RATED;
}

static struct origin_fill_request
fill_request(struct exchange *x)
{
    return (struct origin_fill_request){
        .client = find_client(x),
        .method = x->method,
        .method_id = x->method_id,
        .fields = exchange_fields(x),
        .streams = x->front->streams,
        .raw = x->raw,
        .route = x->route,
        .owned = x->owned,
        .waiting_bytes = x->waiting_bytes,
        .rate = rate_of(x),
    };
}

/* The exchange is the first to wait for an object: it is fetched. */
static bool
begin_fill(struct exchange *x, struct cache_fill *fill, const struct request_rules *rules)
{
    struct object_waiter *waiter = &x->waiter.base;
    struct origin_fill_request request = fill_request(x);

    x->outcome = rules->way == REQUEST_PASSES ? OUTCOME_BYPASS : OUTCOME_MISS;
    if (!x->relay && x->front->interim)
        exchange_make_relay(x); /* without memory for it interim responses are dropped */
    request.leader = &x->waiter;
    request.relay = x->relay;
    request.has_body = x->has_body;
    request.body_length = x->body_length;
    request.bypass = rules->way == REQUEST_PASSES;
    request.as_is = x->evaluated == EVALUATED_ALL;
    request.alone = x->alone != HTTP_REASON_NONE;
    request.passes = rules->reason;
    if (!request.passes && x->alone)
        request.passes = x->alone;
    else if (!request.passes && x->retries > MAX_RETRIES)
        request.passes = HTTP_REASON_REQUEST_PASSES;
    else if (!request.passes && x->forwarded == HTTP_FORWARDED_VARY_MISS)
        request.passes = HTTP_REASON_FIELDS;
    request.whole_server = x->whole_server;
    request.wanted = x->evaluated == EVALUATED_ALL ? RANGE_WHOLE : rules->wanted;
    x->led = true;
    if (origin_fill_start(x->proxy, fill, &request)) {
        if (x->waiter.sends_conditions)
            x->evaluated = EVALUATED_CONDITIONS;
        return false;
    }
    object_waiter_take(waiter);
    relay_leave(&x->relay);
    x->url = object_url(waiter->object);
    x->forwarded = HTTP_FORWARDED_NOT;
    exchange_fail(x, waiter->failure->status, object_failure(waiter->failure));
    return true;
}

/*
 * The object is used stale, and its successor is fetched without a request that waits for it: RFC
 * 5861 section 3. The exchange waits until the fetch has begun, so that it is not unwanted before.
 */
static bool
refresh_in_background(struct exchange *x, struct cache_fill *fill, struct object *object)
{
    struct object_waiter *waiter = &x->waiter.base;
    struct origin_fill_request request = fill_request(x);

    x->url = object_url(object);
    waiter->notify = object_waiter_ignore; /* no other thread has the fill yet */
    request.leader = &x->waiter;
    request.background = true;
    origin_fill_start(x->proxy, fill, &request);
    cache_leave(x->proxy->config.cache, waiter);
    object_waiter_clear(waiter);
    waiter->evicted = 0;
    return respond(x, object, OUTCOME_STALE, HTTP_REASON_WHILE_REVALIDATE);
}

/*
 * The exchange has joined the successor of an object that may be used stale: it leaves, unless the
 * successor's head is there already. True: the exchange has been answered, or looks up again.
 */
static bool
use_instead(struct exchange *x, struct object *object, bool *answered)
{
    if (atomic_load(&x->wakes) != 0 || !cache_leave(x->proxy->config.cache, &x->waiter.base))
        return false;
    x->again = atomic_load(&x->wakes) != 0;
    *answered = !x->again;
    if (x->again) {
        object_release(&object);
        return true;
    }
    x->url = object_url(object);
    object_waiter_clear(&x->waiter.base);
    return respond(x, object, OUTCOME_STALE, HTTP_REASON_WHILE_REVALIDATE);
}

/* ---- users ----------------------------------------------------------------------------------- */

/* May the request have this object, which is fresh? */
static bool
suits_fresh(struct exchange *x, const struct object *object)
{
    return user_rules_permit_fresh(object) || !exchange_is_of_user(x);
}

/* May it be validated for this request, or be used stale? */
static bool
suits_stale(struct exchange *x, const struct object *object)
{
    return !exchange_is_of_user(x) ||
           user_rules_permit_stale(x->proxy, object, x->owned, exchange_fields(x));
}

/* ---- stale objects --------------------------------------------------------------------------- */

/* Does the request accept this object, which is not fresh enough for it? */
static bool
accepts(const struct exchange *x, const struct request_rules *rules, const struct object *object)
{
    const struct cache_conditions *conditions = &rules->conditions;

    return !conditions->no_cache && conditions->min_fresh_us == 0 &&
           object_age(object, x->as_of_us) <= conditions->max_age_us &&
           staleness_permits(x->proxy, object, x->owned, STALENESS_ACCEPTED, rules->max_stale_us,
                             x->as_of_us);
}

/* May it be used while its successor is fetched? */
static bool
may_refresh_later(const struct exchange *x, const struct request_rules *rules,
                  const struct object *object)
{
    return x->raw && !rules->demands &&
           staleness_permits(x->proxy, object, x->owned, STALENESS_WHILE_REVALIDATE, 0,
                             x->as_of_us);
}

/* ---- requests -------------------------------------------------------------------------------- */

static const char not_cached[] = "the response is not in the cache, and was not to be fetched";

/*
 * Answers from what is there, stale objects included as far as the request accepts them. True: it
 * has been answered, or may not be answered in another way.
 */
static bool
use_ready(struct exchange *x, const struct request_rules *rules, bool *over)
{
    struct cache_found found;
    enum cache_answer answer = look_up(x, rules, true, &found);

    *over = true;
    if (answer == CACHE_HIT && suits_fresh(x, found.object))
        return respond(x, found.object, OUTCOME_HIT, HTTP_REASON_NONE);
    if (answer == CACHE_STALE && accepts(x, rules, found.object) && suits_stale(x, found.object))
        return respond(x, found.object, OUTCOME_STALE, HTTP_REASON_MAX_STALE);
    object_release(&found.object);
    return rules->only_cached && fail(x, FAILURE_NOT_CACHED, not_cached);
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

/* Joins a fetch or begins one. */
static bool
fetch(struct exchange *x, const struct request_rules *rules)
{
    struct object *previous = x->waiter.base.object; /* has the URL, after a retry */
    struct cache_found found;
    enum cache_answer answer = look_up(x, rules, false, &found);
    bool answered;

    if (answer == CACHE_HIT && !suits_fresh(x, found.object)) {
        object_release(&found.object);
        set_alone(x, NULL);
        answer = look_up(x, rules, false, &found);
        x->forwarded = HTTP_FORWARDED_REQUEST;
    } else if (found.object && answer != CACHE_HIT && !suits_stale(x, found.object)) {
        object_release(&found.object);
        if (answer == CACHE_STALE)
            set_alone(x, found.fill);
    }
    switch (answer) {
    case CACHE_HIT:
        return respond(x, found.object, OUTCOME_HIT, HTTP_REASON_NONE);
    case CACHE_STALE:
    case CACHE_MISS:
    case CACHE_PASS:
    case CACHE_BUSY:
        x->url = object_url(x->waiter.base.object);
        object_release(&previous);
        x->evaluated = x->raw && (answer == CACHE_PASS || x->alone) ? EVALUATED_ALL
                                                                    : EVALUATED_NOTHING;
        if (found.object && may_refresh_later(x, rules, found.object)) {
            if (answer == CACHE_STALE)
                return refresh_in_background(x, found.fill, found.object);
            if (use_instead(x, found.object, &answered))
                return answered;
        }
        object_release(&found.object);
        return answer == CACHE_BUSY ? join(x) : begin_fill(x, found.fill, rules);
    case CACHE_FULL:
        return fail(x, FAILURE_OVERLOADED,
                    "too many requests wait for this URL already; try again");
    case CACHE_ABSENT:
    case CACHE_VARIES:
    case CACHE_NO_MEMORY:
        break;
    }
    return fail(x, FAILURE_INTERNAL, strerror(ENOMEM));
}

bool
exchange_look_up(struct exchange *x)
{
    struct request_rules rules;
    bool over;

    if ((x->lacks & REQUEST_RULES_FIELDS) != REQUEST_RULES_FIELDS)
        (void)exchange_fields(x);
    request_rules_read(&rules, x);
    x->waiter.wants_part = rules.wanted == RANGE_PART;
    x->evaluated = EVALUATED_NOTHING;
    /* One that is alone looks nothing up: what the lookup before has found is why. */
    if (!x->alone)
        x->forwarded = HTTP_FORWARDED_MISS;
    if (rules.way == REQUEST_PASSES) {
        x->forwarded = x->method_id == HTTP_GET || x->method_id == HTTP_HEAD
                           ? HTTP_FORWARDED_BYPASS
                           : HTTP_FORWARDED_METHOD;
        /* Nothing that is stored may answer it: RFC 9111 section 5.2.1.7. */
        if (rules.only_cached)
            return fail(x, FAILURE_NOT_CACHED, not_cached);
    } else if (rules.way == REQUEST_USES || rules.only_cached || rules.max_stale_us) {
        if (use_ready(x, &rules, &over))
            return over;
        if (rules.way == REQUEST_USES)
            rules.way = REQUEST_PASSES;
    }
    return fetch(x, &rules);
}
