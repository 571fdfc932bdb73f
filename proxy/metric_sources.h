/*
 * The metrics of what the proxy works with: the rows of the cache's and of the fetcher's numbers,
 * for metrics_register().
 */
#ifndef SUNPROXY_PROXY_METRIC_SOURCES_H
#define SUNPROXY_PROXY_METRIC_SOURCES_H

#include "proxy/metrics.h"

/* The context is a struct cache. */
extern const struct metric_source metric_source_cache;

/* The context is a struct fetcher. */
extern const struct metric_source metric_source_fetcher;

#endif
