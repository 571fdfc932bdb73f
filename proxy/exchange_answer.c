/* What an exchange ends in or waits with: calls of its front, wake-ups, and leaving. */
#include <stdlib.h>

#include "base/container_of.h"
#include "proxy/exchange_parts.h"

/* ---- the front's calls ----------------------------------------------------------------------- */

void
exchange_uncount(struct exchange *x)
{
    if (x->counted)
        client_share_give_back(&x->proxy->waiting, x->client, x->waiting_bytes);
    x->counted = false;
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

/* A response that has a head, when it is complete, or its front needs no more of it. */
void
exchange_count_response(const struct exchange *x)
{
    struct metrics *metrics = x->proxy->config.metrics;

    metrics_add(metrics, x->worker, rows[x->outcome].requests, 1);
    if (!x->front->streams)
        exchange_count_sent(x, object_length(x->object));
    if (x->outcome == OUTCOME_MISS && x->complete)
        metrics_observe(metrics, x->worker, HISTOGRAM_MISS_DURATION,
                        proxy_now_us(x->proxy) - x->arrived_us);
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
    if (why != FAILURE_CANCELLED)
        metrics_add(x->proxy->config.metrics, x->worker, METRIC_REQUESTS_FAILURE, 1);
    if (why != FAILURE_CANCELLED && x->has_head)
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
    end_failed(x, why, span_str(sentence), span_str(sentence));
}

void
exchange_respond(struct exchange *x, struct object *object, bool complete)
{
    bool had_head = x->has_head;

    if (!x->front->streams && object_length(object) > x->proxy->config.max_body) {
        exchange_fail(x, FAILURE_TOO_LARGE,
                      span_str("the response is larger than the proxy takes for this client"));
        return;
    }
    x->object = object;
    x->has_head = true;
    x->complete = complete;
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

/* ---- waking ---------------------------------------------------------------------------------- */

/* Both call this under a lock that leaving takes, so that x is there until they have returned. */
static void
wake(struct exchange *x, unsigned by)
{
    if (atomic_fetch_or(&x->wakes, by) == 0)
        x->front->wake(x);
}

void
exchange_wake_by_cache(struct object_waiter *waiter)
{
    wake(container_of(waiter, struct exchange, waiter.base), WOKEN_BY_CACHE);
}

static void
wake_by_relay(void *context)
{
    wake(context, WOKEN_BY_RELAY);
}

bool
exchange_leave(struct exchange *x, enum failure why, const char *sentence)
{
    x->ending = why;
    x->sentence = sentence;
    cache_leave(x->proxy->config.cache, &x->waiter.base);
    relay_leave(&x->relay);
    return atomic_load(&x->wakes) == 0;
}

bool
exchange_make_relay(struct exchange *x)
{
    const struct proxy_config *config = &x->proxy->config;

    x->relay = relay_create(&(struct relay_config){.origin = &config->origin,
                                                   .account = config->account,
                                                   .has_body = x->has_body,
                                                   .wake = wake_by_relay,
                                                   .context = x});
    return x->relay != NULL;
}
