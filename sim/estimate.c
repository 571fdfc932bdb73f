#include "sim/estimate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/calibrated.h"

bool
estimate_begin(struct estimate *estimate, size_t page_count)
{
    size_t count = page_count ? page_count : 1;

    *estimate = (struct estimate){0};
    estimate->misses = calloc(count, sizeof(*estimate->misses));
    estimate->bytes_missed = calloc(count, sizeof(*estimate->bytes_missed));
    return estimate->misses && estimate->bytes_missed;
}

void
estimate_end(struct estimate *estimate)
{
    free(estimate->misses);
    free(estimate->bytes_missed);
}

void
estimate_reset(struct estimate *estimate, size_t page_count)
{
    memset(estimate->misses, 0, page_count * sizeof(*estimate->misses));
    memset(estimate->bytes_missed, 0, page_count * sizeof(*estimate->bytes_missed));
}

/* ---- when an error is stated ----------------------------------------------------------------- */

/*
 * The number of equal pages that stand for those that together have `bytes` and each at most
 * `largest`, where a cache charges `overhead` for each beside its size; at most all of the sample.
 * Rounded down: pages of as many bits as `largest` are all among them.
 */
static double
equal_pages(const struct sim_sampling *sampling, double overhead, double bytes, double largest)
{
    double sizes = 0, squares = 0;

    for (unsigned width = 0; width < SIM_WIDTHS && exp2(width) <= 2 * largest; width++) {
        sizes += sampling->sizes[width] + overhead * sampling->counts[width];
        squares += sampling->squares[width] + 2 * overhead * sampling->sizes[width] +
                   overhead * overhead * sampling->counts[width];
    }
    return squares > 0 ? fmin(bytes, sampling->rate * sizes) * sizes / squares : 0;
}

/* Pages that the small cache holds, as equal ones. */
static double
pages_held(const struct sim_trace *trace, const struct sim_config *config)
{
    const struct sim_sampling *sampling = config->sampling;
    double pages = (double)trace->page_count, bytes = (double)config->capacity_bytes;
    double charge = trace->sizes ? (double)config->overhead : 0; /* of a page, on average */

    if (trace->sizes && trace->charges)
        charge += (double)trace->all_charges / pages;
    if (config->capacity_pages)
        pages = fmin(pages, (double)config->capacity_pages);
    return bytes > 0 ? fmin(pages, equal_pages(sampling, charge, bytes, bytes / sampling->rate))
                     : pages;
}

/* No error where the calibration does not support one. */
static void
drop_uncalibrated(const struct sim_config *config, struct sim_result *result)
{
    unsigned kinds = calibrated_kinds(&config->spec);

    if (config->capacity_bytes)
        kinds >>= 2;
    if (kinds & CALIBRATED_URLS_HITS && kinds & CALIBRATED_URLS_BYTES)
        return;
    if (!(kinds & CALIBRATED_URLS_HITS))
        result->hit_ratio_error = NAN;
    result->byte_hit_ratio_error = NAN;
    result->error_unknown = kinds & CALIBRATED_URLS_HITS
                                ? "no calibrated error of the bytes for this policy"
                                : "no calibrated error for this policy";
    result->rate_needed = INFINITY;
}

static void
withhold_errors(const struct estimate *estimate, const struct sim_trace *trace,
                const struct sim_config *config, struct sim_result *result)
{
    const struct sim_sampling *sampling = config->sampling;
    double pages = pages_held(trace, config), all = equal_pages(sampling, 0, INFINITY, INFINITY);

    result->capacity_spread = sqrt((1 - sampling->rate) / fmax(1, pages));
    result->rate_needed = sampling->rate * ESTIMATE_LEAST_PAGES / fmax(1e-9, fmin(pages, all));
    if (all < ESTIMATE_LEAST_PAGES) {
        result->byte_hit_ratio_error = NAN;
        result->error_unknown = "too few pages for an error of the bytes";
    }
    if (pages < ESTIMATE_LEAST_PAGES) {
        result->hit_ratio_error = result->byte_hit_ratio_error = NAN;
        result->error_unknown = "too few pages for an error";
    } else if ((double)estimate->victims_newest >
               ESTIMATE_MOST_NEWEST * (double)estimate->victims) {
        result->hit_ratio_error = result->byte_hit_ratio_error = NAN;
        result->error_unknown = "the newest pages are evicted first, which a sample does not show";
        result->rate_needed = INFINITY;
    } else if (!sampling->uncalibrated) {
        drop_uncalibrated(config, result);
    }
}

void
estimate_compute(const struct estimate *estimate, const struct sim_trace *trace,
                 const struct sim_config *config, struct sim_result *result)
{
    const struct sim_sampling *sampling = config->sampling;
    double p = sampling->rate, squares = 0, byte_squares = 0;
    double requests = p * (double)sampling->requests, bytes = p * (double)sampling->bytes;
    double misses = (double)(result->requests - result->hits);
    double bytes_missed = (double)(result->bytes - result->bytes_hit);
    double pages = (double)trace->page_count;

    for (size_t i = 0; i < trace->page_count; i++) {
        squares += (double)estimate->misses[i] * estimate->misses[i];
        byte_squares += estimate->bytes_missed[i] * estimate->bytes_missed[i];
    }
    if (pages > 1) {
        squares = fmax(0, squares - misses * misses / pages) * pages / (pages - 1);
        byte_squares =
            fmax(0, byte_squares - bytes_missed * bytes_missed / pages) * pages / (pages - 1);
    }
    if (requests > 0) {
        result->hit_ratio = fmax(0, 1 - misses / requests);
        result->hit_ratio_error = sqrt((1 - p) * squares) / requests;
    }
    if (bytes > 0) {
        result->byte_hit_ratio = fmax(0, 1 - bytes_missed / bytes);
        result->byte_hit_ratio_error = ESTIMATE_BYTES * sqrt((1 - p) * byte_squares) / bytes;
    }
    if (p < 1)
        withhold_errors(estimate, trace, config, result);
}
