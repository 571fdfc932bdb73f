#include "client/server_stats.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char bucket_mark[] = "_bucket{le=\"";

const char *
server_stats_fact(const proxy_stats *stats, const char *name)
{
    for (u_int i = 0; i < stats->facts.facts_len; i++)
        if (strcmp(stats->facts.facts_val[i].name, name) == 0)
            return stats->facts.facts_val[i].text;
    return "";
}

/* Is this row the one of that name, or of the family of that name? */
static bool
is_of(const proxy_metric *metric, const char *name)
{
    size_t len = strlen(name);

    return strncmp(metric->name, name, len) == 0 &&
           (metric->name[len] == '\0' || metric->name[len] == '{');
}

const proxy_metric *
server_stats_find(const proxy_stats *stats, const char *name)
{
    for (u_int i = 0; i < stats->metrics.metrics_len; i++)
        if (is_of(&stats->metrics.metrics_val[i], name))
            return &stats->metrics.metrics_val[i];
    return NULL;
}

uint64_t
server_stats_value(const proxy_stats *stats, const char *name)
{
    uint64_t sum = 0;

    for (u_int i = 0; i < stats->metrics.metrics_len; i++)
        if (is_of(&stats->metrics.metrics_val[i], name))
            sum += stats->metrics.metrics_val[i].value;
    return sum;
}

/* ---- histograms ------------------------------------------------------------------------------ */

struct span
server_stats_bound(const proxy_metric *bucket)
{
    const char *mark = strstr(bucket->name, bucket_mark);
    const char *bound = mark ? mark + sizeof(bucket_mark) - 1 : "";

    return span_of(bound, strcspn(bound, "\""));
}

/* The length of the histogram's name if this is one of its buckets, else 0. */
static size_t
bucket_of(const proxy_metric *metric)
{
    const char *mark = strstr(metric->name, bucket_mark);

    return metric->kind == PROXY_HISTOGRAM && mark ? (size_t)(mark - metric->name) : 0;
}

static bool
has_name(const proxy_metric *metric, const char *name, const char *suffix)
{
    size_t len = strlen(name);

    return metric->kind == PROXY_HISTOGRAM && strncmp(metric->name, name, len) == 0 &&
           strcmp(metric->name + len, suffix) == 0;
}

bool
server_stats_read_histogram(const proxy_stats *stats, unsigned at,
                            struct server_stats_histogram *histogram, unsigned *end)
{
    const proxy_metric *metrics = stats->metrics.metrics_val;
    unsigned count = stats->metrics.metrics_len, i = at;
    size_t len = at < count ? bucket_of(&metrics[at]) : 0;

    if (len == 0)
        return false;
    memset(histogram, 0, sizeof(*histogram));
    snprintf(histogram->name, sizeof(histogram->name), "%.*s", (int)len, metrics[at].name);
    while (i < count && bucket_of(&metrics[i]) == len &&
           strncmp(metrics[i].name, histogram->name, len) == 0)
        i++;
    histogram->buckets = &metrics[at];
    histogram->bucket_count = i - at;
    if (count - i < 2 || !has_name(&metrics[i], histogram->name, "_count") ||
        !has_name(&metrics[i + 1], histogram->name, "_sum"))
        return false;
    histogram->count = metrics[i].value;
    histogram->sum = metrics[i + 1].value;
    *end = i + 2;
    return true;
}

uint64_t
server_stats_quantile(const struct server_stats_histogram *histogram, double percent)
{
    double wanted = (double)histogram->count * percent / 100;

    if (histogram->count == 0)
        return 0;
    for (unsigned i = 0; i < histogram->bucket_count; i++) {
        struct span bound = server_stats_bound(&histogram->buckets[i]);

        if ((double)histogram->buckets[i].value >= wanted && !span_equal(bound, span_str("+Inf")))
            return strtoull(bound.ptr, NULL, 10);
    }
    return UINT64_MAX;
}
