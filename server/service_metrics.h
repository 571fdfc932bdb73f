/*
 * What the daemon's statistics have beside the metrics that are counted (metrics/metrics.h): the
 * rows of the service, of its connections and calls, of the memory account, of the cache and of the
 * fetcher.
 */
#ifndef SUNPROXY_SERVER_SERVICE_METRICS_H
#define SUNPROXY_SERVER_SERVICE_METRICS_H

#include <stdbool.h>
#include <stdio.h>

#include "metrics/metrics.h"

struct service;

/* The numbers of a struct cache, which is the context. */
extern const struct metric_source metric_source_cache;

/*
 * Registers all sources of a daemon: the service, its cache and its fetcher, which have to be there
 * when the metrics are read. False without memory.
 */
bool service_metrics_register(struct metrics *metrics, struct service *service);

/*
 * Prints the table of metrics, a line a row, with tabs between its fields: the name with its
 * labels, the kind, the unit and the help. False without memory; a failed write shows in ferror().
 */
bool service_metrics_list(FILE *out);

#endif
