/*
 * XXH3 of 64 bits with a seed, by the vectors that the processor has: with AVX2 or AVX-512 three to
 * five times as fast as with those that every x86-64 has. For long runs of bytes: other files
 * compile XXH3 in, for short ones.
 */
#ifndef SUNPROXY_BASE_XXH3_H
#define SUNPROXY_BASE_XXH3_H

#include <stddef.h>
#include <stdint.h>

/* XXH3_64bits_withSeed() of these bytes. */
uint64_t xxh3_sum(uint64_t seed, const void *bytes, size_t len);

#endif
