#include "server/http/http_count.h"

#include "base/clock.h"
#include "metrics/metrics.h"
#include "server/http/http_exchange.h"
#include "server/http/http_stream.h"

static unsigned
worker_of(const struct http_exchange *x)
{
    return http_stream_worker_number(&x->stream);
}

/* The row of the status's class; the class of what is none (RFC 9110, section 15) is 5xx. */
static enum metric
class_of(unsigned status)
{
    unsigned class = status / 100 >= 1 && status / 100 <= 5 ? status / 100 : 5;

    return (enum metric)(METRIC_HTTP_RESPONSES_1XX + class - 1);
}

void
http_count_response(const struct http_exchange *x)
{
    struct metrics *metrics = http_service_of(x)->service->metrics;
    unsigned worker = worker_of(x);

    metrics_add(metrics, worker, METRIC_FRONT_REQUESTS_HTTP, 1);
    metrics_add(metrics, worker, class_of(x->status), 1);
    if (x->exchange.object && x->exchange.outcome == OUTCOME_HIT)
        metrics_observe(metrics, worker, HISTOGRAM_HIT_DURATION,
                        clock_monotonic_us() - x->arrived_us);
}

void
http_count_bytes(const struct http_exchange *x, uint64_t bytes)
{
    metrics_add(http_service_of(x)->service->metrics, worker_of(x), METRIC_FRONT_BYTES_HTTP, bytes);
}
