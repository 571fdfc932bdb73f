/*
 * Sizes of caches to be tried, evenly on a logarithmic scale: as many per cent are as far.
 */
#ifndef SUNPROXY_STUDY_SIZE_SCALE_H
#define SUNPROXY_STUDY_SIZE_SCALE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct size_scale {
    uint64_t *sizes; /* owned; rising, the last is all */
    size_t count;    /* at least 1 */
};

/*
 * At most `points` (at least 1) sizes from `low` to `all`, URLs or bytes; every size from 1 if that
 * is as many. `all` of 0 counts as 1, `low` below 1 likewise. False without memory.
 */
bool size_scale_make(struct size_scale *scale, double low, uint64_t all, size_t points);

/* Harmless on one that is all zero. */
void size_scale_free(struct size_scale *scale);

#endif
