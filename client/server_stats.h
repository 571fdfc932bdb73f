/*
 * The statistics of a server as PROXY_STAT gives them: facts and metrics by name. A server of
 * another version may know more names or fewer; whatever is absent reads as 0 or "".
 *
 * Names are those of `sunproxyd --list-metrics`. The name of a family, "requests", stands for the
 * sum of its rows, requests{outcome="hit"} and so on.
 */
#ifndef SUNPROXY_CLIENT_SERVER_STATS_H
#define SUNPROXY_CLIENT_SERVER_STATS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/span.h"
#include "proxy.h"

/* Text of the answer, or "". */
const char *server_stats_fact(const proxy_stats *stats, const char *name);

/* The value of a row, or the sum of a family's rows. */
uint64_t server_stats_value(const proxy_stats *stats, const char *name);

/* The row of this very name, or else the first one of the family; NULL if there is none. */
const proxy_metric *server_stats_find(const proxy_stats *stats, const char *name);

/* ---- histograms ------------------------------------------------------------------------------ */

/* The samples of one histogram, which stand together. */
struct server_stats_histogram {
    char name[PROXY_MAX_NAME + 1];
    const proxy_metric *buckets; /* cumulative, by rising bounds; the last one is of all values */
    unsigned bucket_count;       /* at least 1 */
    uint64_t count;
    uint64_t sum;
};

/*
 * Reads the histogram whose first sample is stats->metrics[at]. False if none begins there; true
 * with *end set to the place behind its samples.
 */
bool server_stats_read_histogram(const proxy_stats *stats, unsigned at,
                                 struct server_stats_histogram *histogram, unsigned *end);

/*
 * The bound that at least `percent` of a hundred values do not exceed; UINT64_MAX if only the
 * bucket without a bound counts them. 0 of no values.
 */
uint64_t server_stats_quantile(const struct server_stats_histogram *histogram, double percent);

/* The bound of a bucket as the name of its sample states it, "1024" or "+Inf". */
struct span server_stats_bound(const proxy_metric *bucket);

#endif
