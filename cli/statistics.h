/*
 * Summary statistics.
 */
#ifndef SUNPROXY_CLI_STATISTICS_H
#define SUNPROXY_CLI_STATISTICS_H

#include <stddef.h>
#include <stdint.h>

/* A share; 0 if `whole` is 0. */
static inline double
statistics_ratio(uint64_t part, uint64_t whole)
{
    return whole ? (double)part / (double)whole : 0;
}

/* Response times in microseconds; all 0 for none. */
struct response_times {
    size_t count;
    double mean;
    uint32_t p50, p90, p99, max;
};

/* Sums up `count` times, which it sorts. */
void statistics_of_times(uint32_t *times, size_t count, struct response_times *of);

/*
 * The nearest-rank percentile of sorted values: the smallest that at least `percent` of a hundred
 * values do not exceed. 0 of none.
 */
uint32_t statistics_percentile(const uint32_t *sorted, size_t count, double percent);

/* Mean, and the sample's standard deviation (n - 1; 0 of one value). */
double statistics_mean(const double *values, size_t count);
double statistics_deviation(const double *values, size_t count);

#endif
