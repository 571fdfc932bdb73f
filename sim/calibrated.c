#include "sim/calibrated.h"

#include <string.h>

#define IN_URLS (CALIBRATED_URLS_HITS | CALIBRATED_URLS_BYTES)
#define IN_BYTES (CALIBRATED_BYTES_HITS | CALIBRATED_BYTES_BYTES)

/*
 * Measured with 40 samples of 10 % and 40 of 30 %, at 5, 20 and 50 % of the URLs or bytes, of the
 * program's generated traces and of five recorded ones: adapt_size's request trace, CloudPhysics
 * block I/O, a Twitter cluster, EPA-HTTP, and Zeek's log of dnscat2. What is missing here failed at
 * one of the two rates:
 *
 * - tinylfu, w-tinylfu: 56 to 82 in 100 samples within the stated error, of one trace at one
 *   capacity none. The sketch and its periodic halving do not shrink with the cache.
 * - lfu, lru-k: none at a large capacity where the newest pages are the popular ones (YCSB D).
 * - lhd: 60 to 86 in 100, of one trace at one capacity none.
 * - maxs, mru, rand: an error is stated in too few cases to support any.
 * - fifo in URLs, clock (byte hit ratio) and 2q in bytes, clock-pro, and lecar but for the hit
 *   ratio in URLs: 20 to 30 of 40 where block I/O loops.
 */
static const struct row {
    const char *policy;
    unsigned kinds;
} rows[] = {
    {"lru", IN_URLS | IN_BYTES},
    {"fifo", IN_BYTES},
    {"clock", IN_URLS | CALIBRATED_BYTES_HITS},
    {"sieve", IN_URLS | IN_BYTES},
    {"slru", IN_URLS | IN_BYTES},
    {"2q", IN_URLS},
    {"s3-fifo", IN_URLS | IN_BYTES},
    {"arc", IN_URLS | IN_BYTES},
    {"gdsf", IN_URLS | IN_BYTES},
    {"gds", IN_URLS | IN_BYTES},
    {"lfuda", IN_URLS | IN_BYTES},
    {"hyperbolic", IN_URLS | IN_BYTES},
    {"lecar", CALIBRATED_URLS_HITS},
    {"lirs", IN_URLS | IN_BYTES},
    {"opt", IN_URLS | IN_BYTES},
};

unsigned
calibrated_kinds(const struct policy_spec *spec)
{
    struct policy_spec defaults;

    if (!spec->ops)
        return ~0u;
    defaults = policy_spec_of(spec->ops);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (strcmp(rows[i].policy, spec->ops->name) == 0)
            return policy_spec_equal(spec, &defaults) ? rows[i].kinds : 0;
    return 0;
}

bool
calibration_supports(const struct calibration *c)
{
    return c->stated * 4 >= c->samples && c->within * 100 >= c->stated * 90 &&
           c->worst_within * 4 > c->worst_stated * 3;
}
