#include "study/size_scale.h"

#include <math.h>
#include <stdlib.h>

bool
size_scale_make(struct size_scale *scale, double low, uint64_t all, size_t points)
{
    *scale = (struct size_scale){0};
    if (all < 1)
        all = 1;
    low = fmax(1, low);
    if (points > all)
        points = (size_t)all;
    scale->sizes = calloc(points, sizeof(*scale->sizes));
    if (!scale->sizes)
        return false;
    for (size_t i = 0; i < points; i++) {
        double at = points > 1 ? (double)i / (double)(points - 1) : 1;
        uint64_t size = points == all     ? i + 1
                        : i + 1 == points ? all
                                          : (uint64_t)(low * pow((double)all / low, at) + 0.5);

        if (scale->count == 0 || size > scale->sizes[scale->count - 1])
            scale->sizes[scale->count++] = size;
    }
    return true;
}

void
size_scale_free(struct size_scale *scale)
{
    free(scale->sizes);
    *scale = (struct size_scale){0};
}
