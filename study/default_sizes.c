#include "study/default_sizes.h"

#define FEW_URLS 500u /* up to this the shares are the paper's */
#define SMALLEST 1000 /* a curve begins at this part of everything */

const double *
default_sizes_shares(const struct simulate_subject *subject)
{
    static const double small[] = {0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 0};
    static const double papers[] = {0.1, 0.2, 0.3, 0.4, 0.5, 0.8, 0};

    return subject->trace->url_count <= FEW_URLS ? papers : small;
}

bool
default_sizes_curve(const struct simulate_subject *subject, bool in_bytes, size_t points,
                    struct size_scale *scale)
{
    uint64_t all = in_bytes ? subject->all_bytes : subject->trace->url_count;

    return size_scale_make(scale, (double)all / SMALLEST, all, points);
}
