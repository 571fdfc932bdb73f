#include "base/xxh3.h"

#ifdef __x86_64__
/* The library chooses at run time; it has that for this family of processors alone. */
#include <xxh_x86dispatch.h>
#else
/* Compiled in, as in base/hash.c. */
#define XXH_INLINE_ALL
#include <xxhash.h>
#endif

uint64_t
xxh3_sum(uint64_t seed, const void *bytes, size_t len)
{
    return XXH3_64bits_withSeed(bytes, len, seed);
}
