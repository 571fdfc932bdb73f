#include "base/xxh3.h"

#include "base/xxh3_avx2.h"

/* Compiled in, as in base/hash.c. */
#define XXH_INLINE_ALL
#include <xxhash.h>

#define VECTORS_MIN 241u /* bytes; for fewer XXH3 has other ways, without vectors */

uint64_t
xxh3_sum(uint64_t seed, const void *bytes, size_t len)
{
#ifdef __x86_64__
    if (len >= VECTORS_MIN && __builtin_cpu_supports("avx2"))
        return xxh3_sum_avx2(seed, bytes, len);
#endif
    return XXH3_64bits_withSeed(bytes, len, seed);
}
