/*
 * The interval of a hit ratio to come: of as many requests as the trace has, that follow it, in a
 * cache that begins empty, as it did here.
 *
 * The expected ratio is that of the trace. What the next part differs by is estimated from what
 * parts of the trace differ by: it is cut into 2, 4, 8, ... parts of equal numbers of requests, and
 * each is simulated with an empty cache. The mean square of the differences between neighbours is
 * taken as V(k) = v * k^b with k parts, so that v is the variance of what is wanted, a difference
 * between two whole traces: b = 1 where requests are independent (shorter parts vary more), b = 0
 * where the traffic changes as much from day to day as from hour to hour (flicker noise), b < 0
 * where it drifts away. That is the variance of pairs as Allan has it ("Statistics of atomic
 * frequency standards", 1966). So changes of the traffic of the kind that the trace shows are in
 * the interval; new kinds, such as another site, are not.
 *
 * Both v and b are uncertain: of k parts there are k - 1 differences, for chi-squared about
 * 2 (k - 1) / 3 degrees of freedom (neighbouring differences share a part), of which a share
 * counts, since differences of requests have heavier tails than normal ones. The interval is of
 * the mixture of normal distributions over a grid of v and b, by their likelihood and a prior
 * (forecast.c), which has wide tails where the trace is short.
 *
 * Independent of that, and added by squares: the sample's error and the spread of seeds (both
 * normal), and how far the ratio moves where header fields are at the ends of their range.
 */
#ifndef SUNPROXY_STUDY_FORECAST_H
#define SUNPROXY_STUDY_FORECAST_H

#include <stddef.h>

#define FORECAST_PARTS 32u /* at most, a power of two */
#define FORECAST_SCALES 5u

enum { FORECAST_68, FORECAST_95, FORECAST_LEVELS };

/* The trace in this many parts. */
struct forecast_scale {
    unsigned parts;
    double mean_square; /* of the differences between the ratios of neighbours */
};

struct forecast {
    double ratio;
    double requests; /* that it is of */
    struct forecast_scale scales[FORECAST_SCALES];
    size_t scale_count; /* 0: too few requests */
    double chance;      /* standard error of the ratio by the sample and the seeds */
    double rises[FORECAST_LEVELS], falls[FORECAST_LEVELS]; /* by header fields, at least 0 */

    /* Found: */
    double change[FORECAST_LEVELS]; /* half the width by the traffic and by chance alone */
    double low[FORECAST_LEVELS], high[FORECAST_LEVELS]; /* from 0 to 1 */
};

/* Fills in what is found. */
void forecast_compute(struct forecast *forecast);

#endif
