/* The proxy of the service, as the options say, and what it reports to the log. */
#include "base/clock.h"
#include "proxy.h"
#include "server/logs/log.h"
#include "server/logs/origin_report.h"
#include "server/peers/peer_news.h"
#include "server/service.h"
#include "server/service_metrics.h"
#include "store/store.h"
#include "tier/tier.h"

/* ---- the log --------------------------------------------------------------------------------- */

/* Failures for the operator, and every fetch for the log at its most verbose level. */
static void
report_fetched(void *context, const struct proxy_fetched *fetched)
{
    struct origin_report *report = context;

    origin_report_fetched(report, fetched);
    log_debug("fetched %.*s in %lld us: %s%s%s%s%s", (int)fetched->url.len, fetched->url.ptr,
              (long long)fetched->total_us,
              fetched->failure ? failure_word(fetched->failure) : "ok",
              fetched->failure ? ", " : "", fetched->failure ? fetched->sentence : "",
              fetched->reason ? ", reason: " : "", http_reason_word(fetched->reason));
}

static enum control_purge
kind_of(const struct proxy_purged *purged)
{
    switch (purged->by) {
    case CACHE_BY_URL:
        return CONTROL_PURGE_URL;
    case CACHE_BY_TAG:
        return CONTROL_PURGE_TAG;
    case CACHE_BY_PREFIX:
        break;
    }
    return purged->name.len ? CONTROL_PURGE_PREFIX : CONTROL_PURGE_ALL;
}

/* Peers are told what a write has purged. */
static void
tell_purged(void *context, const struct proxy_purged *purged)
{
    const struct service *service = context;
    struct peer_item item = {
        .kind = kind_of(purged), .written = purged->by == CACHE_BY_URL, .name = purged->name};

    if (purged->by != CACHE_BY_PREFIX)
        item.scope = purged->scope;
    peer_news_tell(service->news, &item);
}

bool
service_make_proxy(struct service *service)
{
    const struct options *options = service->options;
    struct source *disk = store_source(service->store), *tier = tier_source(service->tier);
    struct source *source = disk ? disk : tier;

    service->metrics = metrics_create(service->workers);
    if (!service->metrics || !service_metrics_register(service->metrics, service))
        return false;
    service->has_proxy = proxy_init(
        &service->proxy, &(struct proxy_config){
                             .cache = service->cache,
                             .sources = {source, disk ? tier : NULL},
                             .account = &service->memory,
                             .metrics = service->metrics,
                             .origin = {.ops = &origin_fetcher, .context = service->fetcher},
                             .clock = proxy_clock_system,
                             .follows_http = options->freshness == FRESHNESS_ON,
                             .max_body = PROXY_MAX_PAGE,
                             .workers = service->workers,
                             .shards_automatic = options->shards == 0,
                             .fetched = report_fetched,
                             .fetched_context = service->report,
                             .purged = tell_purged,
                             .purged_context = service,
                         });
    return service->has_proxy;
}
