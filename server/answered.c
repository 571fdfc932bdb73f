#include "server/answered.h"

#include "base/clock.h"
#include "server/outcome.h"

static void
count_page(struct service *service, unsigned worker, proxy_source source, size_t body_len)
{
    static const enum counter counter_of[] = {
        [PROXY_HIT] = COUNT_HITS,
        [PROXY_MISS] = COUNT_MISSES,
        [PROXY_COALESCED] = COUNT_COALESCED,
        [PROXY_BYPASS] = COUNT_BYPASSES,
    };

    counters_add(service->counters, worker, COUNT_REQUESTS, 1);
    counters_add(service->counters, worker, counter_of[source], 1);
    counters_add(service->counters, worker, COUNT_BYTES_SERVED, body_len);
    if (source == PROXY_HIT)
        counters_add(service->counters, worker, COUNT_BYTES_HIT, body_len);
}

static void
count_failure(struct service *service, unsigned worker)
{
    counters_add(service->counters, worker, COUNT_REQUESTS, 1);
    counters_add(service->counters, worker, COUNT_FAILURES, 1);
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
    log_request(service, rpc, url, outcome_source_word(source), page, victims);
}

void
answered_failure(struct service *service, const struct rpc_request *rpc, struct span url,
                 proxy_status status)
{
    count_failure(service, worker_of(rpc));
    log_request(service, rpc, url, outcome_status_word(status), NULL, NULL);
}
