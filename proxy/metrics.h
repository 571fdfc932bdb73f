/*
 * The metrics of the daemon: counters, gauges and histograms, each a row of one table with its
 * name, unit and help. Whatever serves statistics reads the table and has no code per metric.
 *
 * There are two kinds of rows:
 * - Rows of metrics_table.h are counted here. Each worker has a slot of its own, on cache lines of
 *   its own, which only that worker writes, without a locked instruction; readers sum the slots.
 *   Calls on the fetcher's thread have a slot as well: metrics_fetcher_slot().
 * - Rows of a source are numbers that another module keeps (cache, fetcher, connections, memory).
 *   The owner of the number registers the source; it is read when the metrics are read.
 *
 * Names are those of OpenMetrics families without a prefix: lower case, digits and underscores, the
 * unit last. They do not end in _total, _bucket, _sum, _count, _created or _info, which OpenMetrics
 * adds. A row of a family with labels is written as OpenMetrics writes it: requests{outcome="hit"}.
 */
#ifndef SUNPROXY_PROXY_METRICS_H
#define SUNPROXY_PROXY_METRICS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proxy/metrics_table.h"

enum metric {
#define X(id, name, labels, unit, help) METRIC_##id,
    METRICS_COUNTERS(X)
#undef X
        METRIC_COUNTERS
};

enum metric_histogram {
#define X(id, name, labels, unit, help) HISTOGRAM_##id,
    METRICS_HISTOGRAMS(X)
#undef X
        HISTOGRAMS
};

enum metric_kind {
    METRIC_KIND_COUNTER,  /* only grows, or begins again at 0 */
    METRIC_KIND_GAUGE,    /* a value now */
    METRIC_KIND_HISTOGRAM /* as a row: the histogram; as a sample: one of its counts, or its sum */
};

/*
 * Buckets of every histogram, in microseconds. Bucket i counts values of at most 2^i (and above the
 * bound of the bucket before), for i from 0 to 26, which is 67 s; the last one counts all above.
 */
#define METRICS_BUCKETS 28u

/* The largest value of a bucket; UINT64_MAX for the last one. */
uint64_t metrics_bucket_bound(unsigned bucket);

struct metrics;

/* With slots for workers 0 to workers - 1 and for the fetcher's thread. NULL without memory. */
struct metrics *metrics_create(unsigned workers);

/* NULL is harmless. */
void metrics_destroy(struct metrics *metrics);

/* The slot of the fetcher's thread: what its calls give as `worker`. [any thread] */
unsigned metrics_fetcher_slot(const struct metrics *metrics);

/* Adds to a counter. [the worker's thread] */
void metrics_add(struct metrics *metrics, unsigned worker, enum metric which, uint64_t n);

/* Counts a duration in a histogram; one below zero counts as zero. [the worker's thread] */
void metrics_observe(struct metrics *metrics, unsigned worker, enum metric_histogram which,
                     int64_t us);

/* ---- rows of other owners ---------------------------------------------------------------------*/

struct metric_row {
    const char *name;
    const char *labels; /* `outcome="hit"`; "" if the row is the whole family */
    enum metric_kind kind;
    const char *unit; /* "bytes", "microseconds", or "" */
    const char *help; /* a sentence, the same for a whole family */
    size_t offset; /* in the source's snapshot, of the row's uint64_t; not used in our own rows */
};

/* The most bytes that a snapshot takes. */
#define METRICS_SNAPSHOT_BYTES 512u

struct metric_source {
    const struct metric_row *rows; /* static; counters and gauges */
    size_t count;
    /*
     * Fills the snapshot, METRICS_SNAPSHOT_BYTES that are zero, with the current numbers. On the
     * thread of metrics_read().
     */
    void (*read)(void *context, void *snapshot);
};

/*
 * Adds the rows of a source, which must stay. False without memory; nothing has changed then.
 * Before the first thread reads.
 */
bool metrics_register(struct metrics *metrics, const struct metric_source *source, void *context);

/* ---- reading ----------------------------------------------------------------------------------*/

/* The rows, ours first, then those of each source as they were registered. [any thread] */
size_t metrics_row_count(const struct metrics *metrics);
const struct metric_row *metrics_row(const struct metrics *metrics, size_t i);

/*
 * The samples: one for each counter and gauge, named as its row; for each histogram a cumulative
 * one for each bucket, NAME_bucket{le="BOUND"} up to le="+Inf", then NAME_count and NAME_sum.
 */
#define METRICS_MAX_NAME 96u

struct metric_sample {
    char name[METRICS_MAX_NAME];
    enum metric_kind kind;
};

/* The number of samples, and *samples, which stays as it is until metrics_destroy(). [any thread]
 */
size_t metrics_samples(const struct metrics *metrics, const struct metric_sample **samples);

/*
 * The values of all samples: our own since the start or since the last metrics_rebase(), those of
 * sources as their owners give them. A histogram's count is the last of its buckets. [any thread]
 */
void metrics_read(struct metrics *metrics, uint64_t *values);

/* From now on our own counters and histograms begin at zero. [any thread] */
void metrics_rebase(struct metrics *metrics);

#endif
