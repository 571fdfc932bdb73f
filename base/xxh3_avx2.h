/*
 * xxh3_sum() for a processor with AVX2. Private to base/xxh3.c.
 */
#ifndef SUNPROXY_BASE_XXH3_AVX2_H
#define SUNPROXY_BASE_XXH3_AVX2_H

#include <stddef.h>
#include <stdint.h>

#ifdef __x86_64__
uint64_t xxh3_sum_avx2(uint64_t seed, const void *bytes, size_t len);
#endif

#endif
