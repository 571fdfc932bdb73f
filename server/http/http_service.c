#include "server/http/http_service.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "server/http/http_exchange.h"
#include "server/http/http_ports.h"
#include "server/http/http_worker.h"
#include "server/logs/origin_report.h"

static bool
make_workers(struct http_service *http, unsigned count)
{
    http->workers = aligned_alloc(_Alignof(struct http_worker), count * sizeof(*http->workers));
    if (!http->workers)
        return false;
    memset(http->workers, 0, count * sizeof(*http->workers));
    for (unsigned i = 0; i < count; i++) {
        http->workers[i].http = http;
        SLIST_INIT(&http->workers[i].pool);
        buf_init(&http->workers[i].fields, HTTP_FIELDS_MAX);
        if (!buf_reserve(&http->workers[i].fields, HTTP_FIELDS_MAX))
            return false;
    }
    return true;
}

/* So that a request that comes back can be distinguished from one that went through another. */
static void
name_in_via(struct http_service *http)
{
    uint64_t id = hash64_uint(hash64_uint((uint64_t)clock_wall_us()) ^ (uint64_t)getpid());

    snprintf(http->pseudonym, sizeof(http->pseudonym), "sunproxy-%08x", (unsigned)id);
    for (unsigned minor = 0; minor < 2; minor++)
        snprintf(http->via[minor], sizeof(http->via[minor]), "1.%u %s", minor, http->pseudonym);
    snprintf(http->hit_text, sizeof(http->hit_text), "Via: %s\r\nCache-Status: %s; hit",
             http->via[1], HTTP_CACHE_NAME);
    http->hit_lines = span_str(http->hit_text);
}

bool
http_service_init(struct http_service *http, struct service *service, uint32_t tunnels)
{
    *http = (struct http_service){.service = service};
    http_head_limits_default(&http->limits);
    service->http = http;
    name_in_via(http);
    if (!hash_key_init(&http->user_key))
        return false;
    client_share_init_slots(&http->tunnels, CLIENT_TUNNELS, tunnels,
                            service->options->max_fetches_per_client != 0);
    if (make_workers(http, service->workers))
        return true;
    http_service_free(http);
    return false;
}

void
http_service_get_tunnels(const struct http_service *http, struct http_tunnel_stats *stats)
{
    *stats = (struct http_tunnel_stats){.open = client_share_total(&http->tunnels)};
    for (unsigned i = 0; i < http->service->workers; i++) {
        const struct http_tunnel_counts *counts = &http->workers[i].tunnels;

        stats->opened += net_counter_read(&counts->opened);
        stats->sent_bytes += net_counter_read(&counts->sent_bytes);
        stats->received_bytes += net_counter_read(&counts->received_bytes);
    }
}

void
http_service_free(struct http_service *http)
{
    for (unsigned i = 0; http->workers && i < http->service->workers; i++) {
        http_worker_free_pool(&http->workers[i]);
        buf_free(&http->workers[i].fields);
    }
    free(http->workers);
    *http = (struct http_service){0};
}
