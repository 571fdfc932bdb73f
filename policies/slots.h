/*
 * The room of an array that grows and shrinks with what is in it, for the heaps: half again as much
 * each time, so that slack is at most half a slot an element and copying stays amortised.
 */
#ifndef SUNPROXY_POLICIES_SLOTS_H
#define SUNPROXY_POLICIES_SLOTS_H

#include <stddef.h>
#include <stdint.h>

/*
 * More room, at most 2^32 - 1, for slots of `size` bytes, where there are `*room` (none: NULL).
 * Returns the array, which may have moved, with *room set; NULL without memory, and then nothing
 * has changed.
 */
void *slots_grow(void *slots, uint32_t *room, size_t size);

/*
 * Gives half of the memory back when three quarters are empty, but never so much that one more has
 * no room. Returns the array, which may have moved, with *room set.
 */
void *slots_shrink(void *slots, uint32_t *room, uint32_t count, size_t size);

#endif
