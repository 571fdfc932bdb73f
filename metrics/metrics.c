#include "metrics/metrics.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A histogram takes its buckets, and then its sum. Its count is the sum of its buckets. */
#define HISTOGRAM_VALUES (METRICS_BUCKETS + 1)
#define HISTOGRAM_SAMPLES (METRICS_BUCKETS + 2)
#define VALUES (METRIC_COUNTERS + HISTOGRAMS * HISTOGRAM_VALUES)

static const struct metric_row own_rows[] = {
#define X(id, name, labels, unit, help) {name, labels, METRIC_KIND_COUNTER, unit, help, 0},
    METRICS_COUNTERS(X)
#undef X
#define X(id, name, labels, unit, help) {name, labels, METRIC_KIND_HISTOGRAM, unit, help, 0},
        METRICS_HISTOGRAMS(X)
#undef X
};

#define OWN_ROWS (sizeof(own_rows) / sizeof(own_rows[0]))
#define OWN_SAMPLES (METRIC_COUNTERS + HISTOGRAMS * HISTOGRAM_SAMPLES)

_Static_assert(OWN_ROWS == METRIC_COUNTERS + (size_t)HISTOGRAMS, "a row for each metric of ours");

struct metrics_slot {
    _Alignas(64) _Atomic uint64_t values[VALUES];
};

struct registered {
    struct metric_source source;
    void *context;
    size_t first; /* of its samples */
};

struct metrics {
    /* read-only from the first read on */
    struct metrics_slot *slots; /* one per worker, and the last one for the fetcher's thread */
    unsigned workers;
    struct registered *sources;
    size_t source_count;
    struct metric_sample *samples;
    size_t sample_count;
    size_t row_count;

    pthread_mutex_t lock; /* protects base */
    uint64_t base[VALUES];
};

/* ---- buckets --------------------------------------------------------------------------------- */

uint64_t
metrics_bucket_bound(unsigned bucket)
{
    return bucket < METRICS_BUCKETS - 1 ? (uint64_t)1 << bucket : UINT64_MAX;
}

/* The bucket of a value: the number of bits of the value below it, at most the last bucket. */
static unsigned
bucket_of(uint64_t us)
{
    unsigned bucket = us <= 1 ? 0 : 64 - (unsigned)__builtin_clzll(us - 1);

    return bucket < METRICS_BUCKETS ? bucket : METRICS_BUCKETS - 1;
}

/* ---- samples --------------------------------------------------------------------------------- */

static void
name_sample(struct metric_sample *sample, const struct metric_row *row)
{
    sample->kind = row->kind;
    if (row->labels[0])
        snprintf(sample->name, sizeof(sample->name), "%s{%s}", row->name, row->labels);
    else
        snprintf(sample->name, sizeof(sample->name), "%s", row->name);
    atomic_store_explicit(&sample->shown, true, memory_order_release);
}

static void
name_histogram(struct metric_sample *sample, const struct metric_row *row)
{
    for (unsigned i = 0; i < METRICS_BUCKETS; i++, sample++) {
        uint64_t bound = metrics_bucket_bound(i);

        sample->kind = row->kind;
        sample->shown = true;
        if (bound == UINT64_MAX)
            snprintf(sample->name, sizeof(sample->name), "%s_bucket{le=\"+Inf\"}", row->name);
        else
            snprintf(sample->name, sizeof(sample->name), "%s_bucket{le=\"%" PRIu64 "\"}", row->name,
                     bound);
    }
    sample[0].kind = sample[1].kind = row->kind;
    sample[0].shown = sample[1].shown = true;
    snprintf(sample[0].name, sizeof(sample[0].name), "%s_count", row->name);
    snprintf(sample[1].name, sizeof(sample[1].name), "%s_sum", row->name);
}

/* ---- making ---------------------------------------------------------------------------------- */

struct metrics *
metrics_create(unsigned workers)
{
    struct metrics *metrics = calloc(1, sizeof(*metrics));
    size_t size = ((size_t)workers + 1) * sizeof(struct metrics_slot);

    if (!metrics)
        return NULL;
    metrics->slots = aligned_alloc(64, size);
    metrics->samples = calloc(OWN_SAMPLES, sizeof(*metrics->samples));
    if (!metrics->slots || !metrics->samples) {
        free(metrics->slots);
        free(metrics->samples);
        free(metrics);
        return NULL;
    }
    memset(metrics->slots, 0, size);
    metrics->workers = workers;
    for (size_t i = 0; i < METRIC_COUNTERS; i++)
        name_sample(&metrics->samples[i], &own_rows[i]);
    for (size_t i = 0; i < HISTOGRAMS; i++)
        name_histogram(&metrics->samples[METRIC_COUNTERS + i * HISTOGRAM_SAMPLES],
                       &own_rows[METRIC_COUNTERS + i]);
    metrics->sample_count = OWN_SAMPLES;
    metrics->row_count = OWN_ROWS;
    pthread_mutex_init(&metrics->lock, NULL);
    return metrics;
}

void
metrics_destroy(struct metrics *metrics)
{
    if (!metrics)
        return;
    pthread_mutex_destroy(&metrics->lock);
    free(metrics->slots);
    free(metrics->samples);
    free(metrics->sources);
    free(metrics);
}

bool
metrics_register(struct metrics *metrics, const struct metric_source *source, void *context)
{
    size_t count = metrics->sample_count + source->count;
    struct metric_sample *samples = realloc(metrics->samples, count * sizeof(*samples));
    struct registered *sources;

    if (!samples)
        return false;
    metrics->samples = samples;
    sources = realloc(metrics->sources, (metrics->source_count + 1) * sizeof(*sources));
    if (!sources)
        return false;
    metrics->sources = sources;
    sources[metrics->source_count++] =
        (struct registered){*source, context, metrics->sample_count};
    for (size_t i = 0; i < source->count; i++) {
        samples[metrics->sample_count + i] = (struct metric_sample){.shown = false};
        if (!source->shown || i < source->shown)
            name_sample(&samples[metrics->sample_count + i], &source->rows[i]);
    }
    metrics->sample_count = count;
    metrics->row_count += source->count;
    return true;
}

void
metrics_show(struct metrics *metrics, const struct metric_row *rows, size_t count)
{
    const struct registered *source = metrics->sources;

    while (source->source.rows != rows)
        source++;
    for (size_t i = 0; i < count && i < source->source.count; i++)
        if (!metrics->samples[source->first + i].shown)
            name_sample(&metrics->samples[source->first + i], &rows[i]);
}

/* ---- counting -------------------------------------------------------------------------------- */

unsigned
metrics_fetcher_slot(const struct metrics *metrics)
{
    return metrics->workers;
}

/* A slot has one writer: a load and a store suffice, without a locked instruction. */
static void
add(_Atomic uint64_t *value, uint64_t n)
{
    atomic_store_explicit(value, atomic_load_explicit(value, memory_order_relaxed) + n,
                          memory_order_relaxed);
}

void
metrics_add(struct metrics *metrics, unsigned worker, enum metric which, uint64_t n)
{
    add(&metrics->slots[worker].values[which], n);
}

void
metrics_observe(struct metrics *metrics, unsigned worker, enum metric_histogram which, int64_t us)
{
    _Atomic uint64_t *values =
        &metrics->slots[worker].values[METRIC_COUNTERS + which * HISTOGRAM_VALUES];
    uint64_t value = us > 0 ? (uint64_t)us : 0;

    add(&values[bucket_of(value)], 1);
    add(&values[METRICS_BUCKETS], value);
}

/* ---- reading --------------------------------------------------------------------------------- */

size_t
metrics_row_count(const struct metrics *metrics)
{
    return metrics->row_count;
}

const struct metric_row *
metrics_row(const struct metrics *metrics, size_t i)
{
    if (i < OWN_ROWS)
        return &own_rows[i];
    i -= OWN_ROWS;
    for (size_t s = 0; s < metrics->source_count; s++) {
        const struct metric_source *source = &metrics->sources[s].source;

        if (i < source->count)
            return metrics->samples[metrics->sources[s].first + i].shown ? &source->rows[i] : NULL;
        i -= source->count;
    }
    return NULL;
}

size_t
metrics_samples(const struct metrics *metrics, const struct metric_sample **samples)
{
    *samples = metrics->samples;
    return metrics->sample_count;
}

static void
sum(const struct metrics *metrics, uint64_t sums[VALUES])
{
    for (size_t i = 0; i < VALUES; i++) {
        sums[i] = 0;
        for (unsigned slot = 0; slot <= metrics->workers; slot++)
            sums[i] += atomic_load_explicit(&metrics->slots[slot].values[i], memory_order_relaxed);
    }
}

/* The samples of a histogram from its values; returns the place behind them. */
static uint64_t *
put_histogram(uint64_t *to, const uint64_t *values)
{
    uint64_t count = 0;

    for (unsigned i = 0; i < METRICS_BUCKETS; i++) {
        count += values[i];
        *to++ = count;
    }
    *to++ = count;
    *to++ = values[METRICS_BUCKETS];
    return to;
}

void
metrics_read(struct metrics *metrics, uint64_t *values)
{
    uint64_t sums[VALUES];

    /* Summed under the lock: a base that is set in between would be more than the sum. */
    pthread_mutex_lock(&metrics->lock);
    sum(metrics, sums);
    for (size_t i = 0; i < VALUES; i++)
        sums[i] -= metrics->base[i];
    pthread_mutex_unlock(&metrics->lock);

    memcpy(values, sums, METRIC_COUNTERS * sizeof(*values));
    values += METRIC_COUNTERS;
    for (size_t i = 0; i < HISTOGRAMS; i++)
        values = put_histogram(values, &sums[METRIC_COUNTERS + i * HISTOGRAM_VALUES]);

    for (size_t s = 0; s < metrics->source_count; s++) {
        const struct metric_source *source = &metrics->sources[s].source;
        _Alignas(max_align_t) unsigned char snapshot[METRICS_SNAPSHOT_BYTES] = {0};

        source->read(metrics->sources[s].context, snapshot);
        for (size_t i = 0; i < source->count; i++, values++)
            memcpy(values, snapshot + source->rows[i].offset, sizeof(*values));
    }
}

void
metrics_rebase(struct metrics *metrics)
{
    pthread_mutex_lock(&metrics->lock);
    sum(metrics, metrics->base);
    pthread_mutex_unlock(&metrics->lock);
}
