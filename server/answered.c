#include "server/answered.h"

#include "base/clock.h"
#include "server/outcome.h"

/* What an answer from a source counts as. A source that is missing here is a compile error. */
struct counted {
    enum metric request;
    enum metric bytes;
};

#pragma GCC diagnostic push
#pragma GCC diagnostic error "-Wswitch"
static struct counted
counted_as(proxy_source source)
{
    switch (source) {
    case PROXY_HIT:
        return (struct counted){METRIC_REQUESTS_HIT, METRIC_SERVED_BYTES_CACHE};
    case PROXY_MISS:
        break;
    case PROXY_COALESCED:
        return (struct counted){METRIC_REQUESTS_COALESCED, METRIC_SERVED_BYTES_ORIGIN};
    case PROXY_BYPASS:
        return (struct counted){METRIC_REQUESTS_BYPASS, METRIC_SERVED_BYTES_ORIGIN};
    case PROXY_REVALIDATED:
        return (struct counted){METRIC_REQUESTS_REVALIDATED, METRIC_SERVED_BYTES_CACHE};
    case PROXY_STALE:
        return (struct counted){METRIC_REQUESTS_STALE, METRIC_SERVED_BYTES_CACHE};
    }
    return (struct counted){METRIC_REQUESTS_MISS, METRIC_SERVED_BYTES_ORIGIN};
}
#pragma GCC diagnostic pop

static void
count_page(struct service *service, unsigned worker, proxy_source source, size_t body_len)
{
    struct counted counted = counted_as(source);

    metrics_add(service->metrics, worker, counted.request, 1);
    metrics_add(service->metrics, worker, counted.bytes, body_len);
}

static unsigned
worker_of(const struct rpc_request *rpc)
{
    return net_worker_number(rpc_request_worker(rpc));
}

static void
log_request(struct service *service, const struct rpc_request *rpc, struct span url,
            const char *word, const struct page *page, const struct cache_victims *victims)
{
    if (!service->access_log)
        return;
    access_log_add(service->access_log,
                   &(struct access_entry){
                       .peer = rpc_request_peer(rpc),
                       .url = url,
                       .outcome = word,
                       .status = page ? page->status : 0,
                       .bytes = page ? page->body_len : 0,
                       .us = clock_monotonic_us() - rpc_request_arrived_us(rpc),
                       .victims = victims,
                   });
}

void
answered_page(struct service *service, const struct rpc_request *rpc, struct span url,
              proxy_source source, const struct page *page, const struct cache_victims *victims)
{
    count_page(service, worker_of(rpc), source, page->body_len);
    if (source == PROXY_MISS)
        metrics_observe(service->metrics, worker_of(rpc), HISTOGRAM_MISS_DURATION,
                        clock_monotonic_us() - rpc_request_arrived_us(rpc));
    log_request(service, rpc, url, outcome_source_word(source), page, victims);
}

void
answered_failure(struct service *service, const struct rpc_request *rpc, struct span url,
                 proxy_status status)
{
    metrics_add(service->metrics, worker_of(rpc), METRIC_REQUESTS_FAILURE, 1);
    log_request(service, rpc, url, outcome_status_word(status), NULL, NULL);
}
