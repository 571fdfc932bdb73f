/*
 * D. J. Bernstein's string hash, h = h * 33 + c from 5381, the one the paper's hash table uses.
 * 32 bits wide. Collisions can be made at will ("Ez" and "FY" collide in every position), so nobody
 * may rely on it to bound a search: see cache/table.h.
 */
#ifndef SUNPROXY_BASE_DJB_H
#define SUNPROXY_BASE_DJB_H

#include <stdint.h>

#include "base/span.h"

static inline uint32_t
djb_hash(struct span s)
{
    uint32_t hash = 5381;

    for (size_t i = 0; i < s.len; i++)
        hash = hash * 33U + (unsigned char)s.ptr[i];
    return hash;
}

#endif
