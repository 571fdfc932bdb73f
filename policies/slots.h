/*
 * Arrays that grow and shrink with their content, for heaps and pools: by a half each time, so that
 * at most a third of the slots is unused after growing and copying is amortised.
 */
#ifndef SUNPROXY_POLICIES_SLOTS_H
#define SUNPROXY_POLICIES_SLOTS_H

#include <stddef.h>
#include <stdint.h>

/*
 * Enlarges an array of `*allocated` slots of `size` bytes (none: NULL), to at most 2^32 - 1 slots.
 * Returns the array, which may have moved, with *allocated set; NULL without memory, and then
 * nothing has changed.
 */
void *slots_grow(void *slots, uint32_t *allocated, size_t size);

/*
 * Frees half of the memory when three quarters of the slots are unused; one more element always
 * fits. Returns the array, which may have moved, with *allocated set.
 */
void *slots_shrink(void *slots, uint32_t *allocated, uint32_t count, size_t size);

#endif
