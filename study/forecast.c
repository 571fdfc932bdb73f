#include "study/forecast.h"

#include <math.h>

#define EXPONENTS 21
#define VARIANCES 80
#define LEAST_LOG_VARIANCE (-23.0) /* of a difference of 0.001 points */
#define MOST_LOG_VARIANCE (-1.0)   /* of one of 60 points */
#define WEIGHT 0.5                 /* share of the degrees of freedom that counts */
#define EXPONENT_MEAN 0.7          /* of b, before the trace is known */
#define EXPONENT_DEVIATION 0.3

static const double levels[FORECAST_LEVELS] = {0.6827, 0.95};

/* By v and b, how likely; sum 1. */
struct posterior {
    double variances[VARIANCES];
    double weights[VARIANCES];
};

static double
log_likelihood(const struct forecast *forecast, double log_v, double b, double floor)
{
    double sum = 0;

    for (size_t i = 0; i < forecast->scale_count; i++) {
        const struct forecast_scale *scale = &forecast->scales[i];
        double freedom = WEIGHT * 2.0 / 3 * (scale->parts - 1);
        double log_of_scale = log_v + b * log(scale->parts);

        sum -= freedom / 2 * (log_of_scale + fmax(scale->mean_square, floor) / exp(log_of_scale));
    }
    return sum;
}

static void
weigh(const struct forecast *forecast, struct posterior *posterior)
{
    /* Parts that agree by chance must not promise more than that many independent requests. */
    double floor =
        2 * fmax(forecast->ratio * (1 - forecast->ratio), 0.01) / fmax(1, forecast->requests);
    double highest = -INFINITY, sum = 0, likelihoods[VARIANCES][EXPONENTS];

    for (size_t i = 0; i < VARIANCES; i++) {
        double log_v = LEAST_LOG_VARIANCE +
                       (MOST_LOG_VARIANCE - LEAST_LOG_VARIANCE) * (double)i / (VARIANCES - 1);

        posterior->variances[i] = fmax(floor, exp(log_v));
        posterior->weights[i] = 0;
        for (size_t j = 0; j < EXPONENTS; j++) {
            double b = -1 + 2.0 * (double)j / (EXPONENTS - 1);
            double off = (b - EXPONENT_MEAN) / EXPONENT_DEVIATION;

            likelihoods[i][j] = log_likelihood(forecast, log_v, b, floor) - off * off / 2;
            highest = fmax(highest, likelihoods[i][j]);
        }
    }
    for (size_t i = 0; i < VARIANCES; i++)
        for (size_t j = 0; j < EXPONENTS; j++)
            posterior->weights[i] += exp(likelihoods[i][j] - highest);
    for (size_t i = 0; i < VARIANCES; i++)
        sum += posterior->weights[i];
    for (size_t i = 0; i < VARIANCES; i++)
        posterior->weights[i] /= sum;
}

/* The share of differences that are at most as far from 0. */
static double
share_within(const struct posterior *posterior, double chance, double distance)
{
    double share = 0;

    for (size_t i = 0; i < VARIANCES; i++)
        share += posterior->weights[i] *
                 erf(distance / sqrt(2 * (posterior->variances[i] + chance * chance)));
    return share;
}

static double
half_width(const struct posterior *posterior, double chance, double level)
{
    double low = 0, high = 1;

    for (int i = 0; i < 40; i++) {
        double middle = (low + high) / 2;

        if (share_within(posterior, chance, middle) < level)
            low = middle;
        else
            high = middle;
    }
    return high;
}

void
forecast_compute(struct forecast *forecast)
{
    struct posterior posterior;

    weigh(forecast, &posterior);
    for (size_t i = 0; i < FORECAST_LEVELS; i++) {
        double half =
            forecast->scale_count == 0 ? 1 : half_width(&posterior, forecast->chance, levels[i]);

        forecast->change[i] = half;
        forecast->low[i] = fmax(0, forecast->ratio - hypot(half, forecast->falls[i]));
        forecast->high[i] = fmin(1, forecast->ratio + hypot(half, forecast->rises[i]));
    }
}
