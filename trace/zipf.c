#include <math.h>

#include "trace/generate.h"
#include "trace/random.h"

/* (exp(x) - 1) / x and log(1 + x) / x, without loss where x is small. */
static double
expm1_over(double x)
{
    return fabs(x) > 1e-8 ? expm1(x) / x : 1 + x / 2 * (1 + x / 3);
}

static double
log1p_over(double x)
{
    return fabs(x) > 1e-8 ? log1p(x) / x : 1 - x * (0.5 - x / 3);
}

/* The integral of x^-constant, up to a constant, and its inverse. */
static double
integral(const struct zipf *z, double x)
{
    double log_x = log(x);

    return expm1_over((1 - z->constant) * log_x) * log_x;
}

static double
integral_inverse(const struct zipf *z, double x)
{
    double t = x * (1 - z->constant);

    /* Rounding may bring it below the pole. */
    if (t < -1)
        t = -1;
    return exp(log1p_over(t) * x);
}

static double
density(const struct zipf *z, double x)
{
    return exp(-z->constant * log(x));
}

void
zipf_init(struct zipf *z, uint64_t n, double constant)
{
    z->n = (double)n;
    z->constant = constant;
    z->at_1_5 = integral(z, 1.5) - 1;
    z->at_end = integral(z, z->n + 0.5);
    z->squeeze = 2 - integral_inverse(z, integral(z, 2.5) - density(z, 2));
}

uint64_t
zipf_draw(const struct zipf *z, struct random_numbers *random)
{
    for (;;) {
        double u = z->at_end + random_unit(random) * (z->at_1_5 - z->at_end);
        double x = integral_inverse(z, u);
        double k = floor(x + 0.5);

        k = k < 1 ? 1 : k > z->n ? z->n : k;
        if (k - x <= z->squeeze || u >= integral(z, k + 0.5) - density(z, k))
            return (uint64_t)k;
    }
}
