#include "base/xxh3_avx2.h"

#ifdef __x86_64__

#include <immintrin.h>
#include <string.h>

/* For all functions of this file. */
#ifdef __clang__
#pragma clang attribute push(__attribute__((target("avx2"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2")
#endif

#define XXH_INLINE_ALL
#define XXH_VECTOR 2 /* XXH_AVX2 */
#include <xxhash.h>

uint64_t
xxh3_sum_avx2(uint64_t seed, const void *bytes, size_t len)
{
    return XXH3_64bits_withSeed(bytes, len, seed);
}

#ifdef __clang__
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

#endif
