#include "trace/facts.h"

#include <math.h>
#include <stdlib.h>

#define ZIPF_MOST 10.0
#define ZIPF_STEPS 50 /* of bisection */
#define SUMMED 10000u /* ranks that are added up one by one; the rest by an integral */

/* ---- Zipf ---------------------------------------------------------------------------------- */

/* The integral of x^-s from a to b, and that of ln(x) x^-s. */
static double
power_integral(double s, double a, double b)
{
    double t = 1 - s;

    return fabs(t) < 1e-9 ? log(b / a) : (pow(b, t) - pow(a, t)) / t;
}

static double
log_power_integral(double s, double a, double b)
{
    double t = 1 - s;

    if (fabs(t) < 1e-6)
        return (log(b) * log(b) - log(a) * log(a)) / 2;
    return (pow(b, t) * (log(b) - 1 / t) - pow(a, t) * (log(a) - 1 / t)) / t;
}

/* The mean of ln r under the law; falls as s grows. Midpoints make the integral exact enough. */
static double
mean_log_rank(double s, size_t n)
{
    size_t summed = n < SUMMED ? n : SUMMED;
    double weight = 0;
    double sum = 0;

    for (size_t r = 1; r <= summed; r++) {
        double p = pow((double)r, -s);

        weight += p;
        sum += p * log((double)r);
    }
    if (n > summed) {
        weight += power_integral(s, (double)summed + 0.5, (double)n + 0.5);
        sum += log_power_integral(s, (double)summed + 0.5, (double)n + 0.5);
    }
    return sum / weight;
}

double
trace_fit_zipf(const uint32_t *counts, size_t n)
{
    double low = 0;
    double high = ZIPF_MOST;
    double requests = 0;
    double logs = 0;

    for (size_t i = 0; i < n; i++) {
        requests += counts[i];
        logs += counts[i] * log((double)i + 1);
    }
    if (requests <= 0)
        return 0;
    for (int step = 0; step < ZIPF_STEPS; step++) {
        double middle = (low + high) / 2;

        if (mean_log_rank(middle, n) > logs / requests)
            low = middle;
        else
            high = middle;
    }
    return low == 0 ? 0 : (low + high) / 2;
}

/* ---- percentiles --------------------------------------------------------------------------- */

static int
ascending(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a;
    uint32_t y = *(const uint32_t *)b;

    return (x > y) - (x < y);
}

static uint32_t
percentile(const uint32_t *sorted, size_t count, unsigned percent)
{
    size_t rank = (size_t)ceil((double)count * percent / 100.0);

    return sorted[rank == 0 ? 0 : rank - 1];
}

void
trace_percentiles_of(uint32_t *values, size_t count, struct trace_percentiles *of)
{
    double sum = 0;

    memset(of, 0, sizeof(*of));
    if (count == 0)
        return;
    qsort(values, count, sizeof(*values), ascending);
    for (size_t i = 0; i < count; i++)
        sum += values[i];
    *of = (struct trace_percentiles){
        .count = count,
        .mean = sum / (double)count,
        .min = values[0],
        .p10 = percentile(values, count, 10),
        .p25 = percentile(values, count, 25),
        .p50 = percentile(values, count, 50),
        .p75 = percentile(values, count, 75),
        .p90 = percentile(values, count, 90),
        .p99 = percentile(values, count, 99),
        .max = values[count - 1],
    };
}

/* ---- the facts ----------------------------------------------------------------------------- */

static int
busier(const void *a, const void *b)
{
    const struct trace_busy *x = a;
    const struct trace_busy *y = b;

    if (x->requests != y->requests)
        return x->requests < y->requests ? 1 : -1;
    return (x->id > y->id) - (x->id < y->id);
}

/* Counts requests by URL and keeps the most frequent ones. */
static enum trace_error
count_popularity(const struct trace *t, size_t busiest, struct trace_facts *f)
{
    struct trace_busy *busy = calloc(t->url_count + 1, sizeof(*busy));
    uint32_t *counts = malloc((t->url_count + 1) * sizeof(*counts));
    struct trace_busy *kept;

    if (!busy || !counts) {
        free(busy);
        free(counts);
        return TRACE_NO_MEMORY;
    }
    for (size_t i = 0; i < t->url_count; i++)
        busy[i].id = (uint32_t)i;
    for (size_t i = 0; i < t->request_count; i++)
        busy[t->ids[i]].requests++;
    qsort(busy, t->url_count, sizeof(*busy), busier);
    for (size_t i = 0; i < t->url_count; i++) {
        counts[i] = busy[i].requests > UINT32_MAX ? UINT32_MAX : (uint32_t)busy[i].requests;
        f->one_hit += busy[i].requests == 1;
    }
    f->zipf = trace_fit_zipf(counts, t->url_count);
    free(counts);
    f->busiest_count = busiest < t->url_count ? busiest : t->url_count;
    kept = realloc(busy, (f->busiest_count + 1) * sizeof(*busy));
    f->busiest = kept ? kept : busy;
    return TRACE_OK;
}

static enum trace_error
measure_sizes(const struct trace *t, struct trace_facts *f)
{
    uint32_t *last = malloc((t->url_count + 1) * sizeof(*last));
    uint32_t *all = malloc((t->request_count + 1) * sizeof(*all));
    size_t count = 0;
    size_t known = 0;

    if (!last || !all) {
        free(last);
        free(all);
        return TRACE_NO_MEMORY;
    }
    memset(last, 0xff, t->url_count * sizeof(*last));
    for (size_t i = 0; i < t->request_count; i++) {
        uint32_t size = t->sizes[i];
        uint32_t *before = &last[t->ids[i]];

        if (size == TRACE_SIZE_UNKNOWN) {
            f->unknown_sizes++;
            continue;
        }
        all[count++] = size;
        f->size_changes += *before != TRACE_SIZE_UNKNOWN && *before != size;
        *before = size;
    }
    trace_percentiles_of(all, count, &f->request_sizes);
    for (size_t i = 0; i < t->url_count; i++) {
        if (last[i] != TRACE_SIZE_UNKNOWN)
            last[known++] = last[i];
    }
    trace_percentiles_of(last, known, &f->url_sizes);
    free(last);
    free(all);
    return TRACE_OK;
}

static void
measure_times(const struct trace *t, struct trace_facts *f)
{
    f->first_us = INT64_MAX;
    f->last_us = INT64_MIN;
    for (size_t i = 0; i < t->request_count; i++) {
        int64_t us = t->times_us[i];

        f->first_us = us < f->first_us ? us : f->first_us;
        f->last_us = us > f->last_us ? us : f->last_us;
        f->out_of_order += i != 0 && us < t->times_us[i - 1];
    }
}

enum trace_error
trace_facts_make(const struct trace *t, size_t busiest, struct trace_facts *f)
{
    const struct trace_requests requests = {
        .count = t->request_count, .ids = t->ids, .sizes = t->sizes, .url_count = t->url_count};
    enum trace_error error;

    memset(f, 0, sizeof(*f));
    f->requests = t->request_count;
    f->urls = t->url_count;
    f->has_sizes = t->sizes != NULL;
    f->has_times = t->times_us != NULL;
    if (!trace_totals_make(&requests, &f->totals))
        return TRACE_NO_MEMORY;
    error = count_popularity(t, busiest, f);
    if (error == TRACE_OK && f->has_sizes)
        error = measure_sizes(t, f);
    if (error != TRACE_OK) {
        trace_facts_free(f);
        return error;
    }
    if (f->has_times)
        measure_times(t, f);
    return TRACE_OK;
}

void
trace_facts_free(struct trace_facts *f)
{
    free(f->busiest);
    f->busiest = NULL;
}
