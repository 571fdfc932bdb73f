#include "cli/statistics.h"

#include <math.h>
#include <stdlib.h>

static int
compare(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return (x > y) - (x < y);
}

uint32_t
statistics_percentile(const uint32_t *sorted, size_t count, double percent)
{
    double rank = ceil(percent / 100 * (double)count);

    if (count == 0)
        return 0;
    if (rank < 1)
        return sorted[0];
    return rank >= (double)count ? sorted[count - 1] : sorted[(size_t)rank - 1];
}

void
statistics_of_times(uint32_t *times, size_t count, struct response_times *of)
{
    double sum = 0;

    *of = (struct response_times){.count = count};
    if (count == 0)
        return;
    qsort(times, count, sizeof(*times), compare);
    for (size_t i = 0; i < count; i++)
        sum += times[i];
    of->mean = sum / (double)count;
    of->p50 = statistics_percentile(times, count, 50);
    of->p90 = statistics_percentile(times, count, 90);
    of->p99 = statistics_percentile(times, count, 99);
    of->max = times[count - 1];
}

double
statistics_mean(const double *values, size_t count)
{
    double sum = 0;

    for (size_t i = 0; i < count; i++)
        sum += values[i];
    return count ? sum / (double)count : 0;
}

double
statistics_deviation(const double *values, size_t count)
{
    double mean = statistics_mean(values, count), sum = 0;

    for (size_t i = 0; i < count; i++)
        sum += (values[i] - mean) * (values[i] - mean);
    return count > 1 ? sqrt(sum / (double)(count - 1)) : 0;
}
