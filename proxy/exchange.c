#include "proxy/exchange.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/container_of.h"
#include "http/field.h"

/* A request that was sent back to look up more often than this fetches for itself. */
#define MAX_RETRIES 8

/* ---- the front's calls ----------------------------------------------------------------------- */

static void
uncount(struct exchange *x)
{
    if (x->counted)
        client_tally_give_back(x->proxy->waiting, &x->client, x->waiting_bytes);
    x->counted = false;
}

static void
count_response(const struct exchange *x)
{
    static const enum metric requests[] = {
        [OUTCOME_HIT] = METRIC_REQUESTS_HIT,
        [OUTCOME_MISS] = METRIC_REQUESTS_MISS,
        [OUTCOME_COALESCED] = METRIC_REQUESTS_COALESCED,
        [OUTCOME_BYPASS] = METRIC_REQUESTS_BYPASS,
    };
    struct metrics *metrics = x->proxy->config.metrics;

    metrics_add(metrics, x->worker, requests[x->outcome], 1);
    metrics_add(metrics, x->worker,
                x->outcome == OUTCOME_HIT ? METRIC_SERVED_BYTES_CACHE : METRIC_SERVED_BYTES_ORIGIN,
                object_length(x->object));
    if (x->outcome == OUTCOME_MISS)
        metrics_observe(metrics, x->worker, HISTOGRAM_MISS_DURATION,
                        proxy_now_us(x->proxy) - x->arrived_us);
}

static void
fail(struct exchange *x, enum failure why, struct span sentence)
{
    uncount(x);
    if (why != FAILURE_CANCELLED)
        metrics_add(x->proxy->config.metrics, x->worker, METRIC_REQUESTS_FAILURE, 1);
    x->front->fail(x, why, sentence);
}

/* The object has come as far as it has: if `complete`, this is the last call. */
static void
respond(struct exchange *x, struct object *object, bool complete)
{
    bool had_head = x->has_head;

    if (!x->front->streams && object_length(object) > x->proxy->config.max_body) {
        if (x->outcome == OUTCOME_HIT)
            object_release(&object);
        fail(x, FAILURE_TOO_LARGE,
             span_str("the response is larger than the proxy takes for this client"));
        return;
    }
    x->object = object;
    x->has_head = true;
    x->complete = complete;
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

/* ---- waking ---------------------------------------------------------------------------------- */

enum { WOKEN_BY_CACHE = 1, WOKEN_BY_RELAY = 2 };

/* Both call this under a lock that leave() takes, so that x is there until they have returned. */
static void
wake(struct exchange *x, unsigned by)
{
    if (atomic_fetch_or(&x->wakes, by) == 0)
        x->front->wake(x);
}

static void
wake_by_cache(struct object_waiter *waiter)
{
    wake(container_of(waiter, struct exchange, waiter.base), WOKEN_BY_CACHE);
}

static void
wake_by_relay(void *context)
{
    wake(context, WOKEN_BY_RELAY);
}

/* Leaves object and relay; true: there is no wake() whose exchange_run() is still to come. */
static bool
leave(struct exchange *x, enum failure why, const char *sentence)
{
    x->ending = why;
    x->sentence = sentence;
    cache_leave(x->proxy->config.cache, &x->waiter.base);
    relay_leave(&x->relay);
    return atomic_load(&x->wakes) == 0;
}

/* ---- lookup ---------------------------------------------------------------------------------- */

/* The exchange waits for an object that another request has caused to be fetched. */
static bool
join(struct exchange *x)
{
    enum failure why;
    const char *sentence;

    x->outcome = OUTCOME_COALESCED;
    x->counted = client_tally_take(x->proxy->waiting, &x->client, x->waiting_bytes);
    if (x->counted)
        return false;
    sentence = origin_fill_refusal(errno, &why);
    if (!leave(x, why, sentence))
        return false;
    fail(x, why, span_str(sentence));
    return true;
}

static bool
make_relay(struct exchange *x)
{
    const struct proxy_config *config = &x->proxy->config;

    x->relay = relay_create(&(struct relay_config){.origin = &config->origin,
                                                   .account = config->account,
                                                   .has_body = x->has_body,
                                                   .wake = wake_by_relay,
                                                   .context = x});
    return x->relay != NULL;
}

/* The exchange is the first to wait for an object: it is fetched. */
static bool
begin_fill(struct exchange *x, struct cache_fill *fill, bool bypass)
{
    struct object_waiter *waiter = &x->waiter.base;

    x->outcome = bypass ? OUTCOME_BYPASS : OUTCOME_MISS;
    if (!x->relay && x->front->interim)
        make_relay(x); /* without memory for it interim responses are dropped */
    if (origin_fill_start(x->proxy, fill,
                          &(struct origin_fill_request){
                              .leader = &x->waiter,
                              .method = x->method,
                              .fields = x->fields,
                              .raw = x->raw,
                              .waiting_bytes = x->waiting_bytes,
                              .relay = x->relay,
                              .has_body = x->has_body,
                              .body_length = x->body_length,
                              .bypass = bypass,
                              .limits = x->front->limits ? x->front->limits(x) : NULL,
                              .late = x->retries != 0,
                          }))
        return false;
    object_waiter_take(waiter);
    relay_leave(&x->relay);
    x->url = object_url(waiter->object);
    fail(x, waiter->failure->status, object_failure(waiter->failure));
    return true;
}

/*
 * Is the response for this request only? To a raw request it is, if its method or one of its fields
 * makes the origin send something other than the URL's representation.
 */
static bool
is_bypass(const struct exchange *x)
{
    static const char *const selecting[] = {
        "Authorization",       "Cookie",   "Range",           "If-Match",      "If-Modified-Since",
        "If-Unmodified-Since", "If-Range", "Accept-Encoding", "If-None-Match", NULL};
    struct span rest = x->fields, line, name, value;

    if (x->no_store || x->has_body || (x->method.len && !span_equal(x->method, span_str("GET"))))
        return true;
    if (!x->raw)
        return x->fields.len != 0;
    while (http_next_line(&rest, &line))
        if (http_split_field(line, &name, &value) && http_name_is_one_of(name, selecting))
            return true;
    return false;
}

/* True: the last call of the front has been made. */
static bool
look_up(struct exchange *x)
{
    const struct proxy_config *config = &x->proxy->config;
    const struct cache_key key = cache_key_of(x->url);
    bool bypass = is_bypass(x);
    const struct cache_request request = {
        .waiter = &x->waiter.base,
        .fill_size = origin_fill_size(),
        .max_waiters = config->max_waiters,
        .pass = bypass || x->retries > MAX_RETRIES,
    };
    struct object *previous = x->waiter.base.object; /* has the URL, after a retry */
    struct cache_found found;
    enum cache_answer answer = cache_lookup(config->cache, &key, &request, x->arrived_us, &found);

    if (answer == CACHE_NO_MEMORY && memory_reclaim(config->account, x->url.len))
        answer = cache_lookup(config->cache, &key, &request, x->arrived_us, &found);
    switch (answer) {
    case CACHE_HIT:
        x->outcome = OUTCOME_HIT;
        x->stored = true;
        respond(x, found.object, true);
        return true;
    case CACHE_STALE: /* fetched anew: nothing is validated yet */
    case CACHE_MISS:
    case CACHE_PASS:
    case CACHE_BUSY:
        x->url = object_url(x->waiter.base.object);
        object_release(&found.object);
        object_release(&previous);
        return answer == CACHE_BUSY ? join(x) : begin_fill(x, found.fill, bypass);
    case CACHE_FULL:
        fail(x, FAILURE_OVERLOADED,
             span_str("too many requests wait for this URL already; try again"));
        return true;
    case CACHE_VARIES: /* no fill has said so */
    case CACHE_ABSENT: /* only to requests with conditions */
    case CACHE_NO_MEMORY:
        break;
    }
    fail(x, FAILURE_INTERNAL, span_str(strerror(ENOMEM)));
    return true;
}

bool
exchange_start(struct exchange *x)
{
    x->waiter.base.notify = wake_by_cache;
    x->waiter.base.streams = x->front->streams;
    x->waiter.client = x->client;
    if (x->has_body && !make_relay(x)) {
        enum failure why;
        const char *sentence = origin_fill_refusal(errno, &why);

        fail(x, why, span_str(sentence));
        return true;
    }
    return look_up(x);
}

/* ---- afterwards ------------------------------------------------------------------------------ */

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
        fail(x, waiter->failure->status, object_failure(waiter->failure));
    } else if (events & WAITER_RETRY) {
        assert(!x->has_head);
        uncount(x);
        x->retries++;
        look_up(x);
    } else {
        if (events & WAITER_END)
            x->stored = waiter->outcome == CACHE_STORED || waiter->outcome == CACHE_REPLACED;
        respond(x, waiter->object, events & WAITER_END);
    }
}

void
exchange_run(struct exchange *x)
{
    unsigned wakes = atomic_exchange(&x->wakes, 0);

    if (wakes & WOKEN_BY_CACHE)
        x->events |= object_waiter_take(&x->waiter.base);
    if (wakes & WOKEN_BY_RELAY)
        take_interims(x);
    if (x->ending || x->events & WAITER_LAST) {
        relay_leave(&x->relay);
        if (atomic_load(&x->wakes) != 0)
            return; /* the relay has called wake() meanwhile: the exchange ends then */
    }
    if (x->ending) {
        x->url = object_url(x->waiter.base.object);
        fail(x, x->ending, span_str(x->sentence));
        return;
    }
    if (x->relay && relay_has_space(x->relay))
        x->front->space(x);
    if (x->events)
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
    bool over = leave(x, FAILURE_CANCELLED, "the request was cancelled");

    uncount(x);
    return over;
}

void
exchange_end(struct exchange *x)
{
    /* Of a hit it is the exchange's, otherwise the waiter's. */
    if (x->outcome == OUTCOME_HIT)
        object_release(&x->object);
    x->object = NULL;
    relay_leave(&x->relay);
    object_waiter_clear(&x->waiter.base);
}
