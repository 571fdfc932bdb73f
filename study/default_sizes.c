#include "study/default_sizes.h"

#include <math.h>
#include <stdlib.h>

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
default_sizes_of_urls(const struct simulate_subject *subject, struct size_scale *scale)
{
    const double *shares = default_sizes_shares(subject);
    size_t count = 0;

    while (shares[count] > 0)
        count++;
    *scale = (struct size_scale){.sizes = calloc(count, sizeof(*scale->sizes))};
    if (!scale->sizes)
        return false;
    for (size_t i = 0; i < count; i++) {
        uint64_t size = (uint64_t)fmax(1, round((double)subject->trace->url_count * shares[i]));

        if (scale->count == 0 || size > scale->sizes[scale->count - 1])
            scale->sizes[scale->count++] = size;
    }
    return true;
}

bool
default_sizes_curve(const struct simulate_subject *subject, bool in_bytes, size_t points,
                    struct size_scale *scale)
{
    uint64_t all = in_bytes ? subject->all_bytes : subject->trace->url_count;

    return size_scale_make(scale, (double)all / SMALLEST, all, points);
}
