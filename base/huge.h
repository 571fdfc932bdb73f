/*
 * Large pages for large arrays: a table that is looked into at random then misses the processor's
 * address cache hardly ever, and the system clears 2 MiB at once instead of answering 512 faults.
 */
#ifndef SUNPROXY_BASE_HUGE_H
#define SUNPROXY_BASE_HUGE_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#define HUGE_PAGE_BYTES ((size_t)2 << 20)

/*
 * Asks for large pages wherever they fit inside this memory, which is best not yet touched. Changes
 * nothing but speed, and a system that has none just goes on.
 */
static inline void
huge_prefer(void *memory, size_t bytes)
{
    size_t skip = (size_t)(-(uintptr_t)memory % HUGE_PAGE_BYTES);

    if (memory && bytes >= skip + HUGE_PAGE_BYTES)
        (void)madvise((char *)memory + skip, (bytes - skip) / HUGE_PAGE_BYTES * HUGE_PAGE_BYTES,
                      MADV_HUGEPAGE);
}

/*
 * Memory for an array that is not to be moved: in large pages from the first byte if it takes one
 * or more. The caller frees it; NULL without memory.
 */
static inline void *
huge_alloc(size_t bytes)
{
    void *memory;

    if (bytes < HUGE_PAGE_BYTES)
        return malloc(bytes);
    if (bytes > SIZE_MAX - HUGE_PAGE_BYTES)
        return NULL;
    bytes = (bytes + HUGE_PAGE_BYTES - 1) / HUGE_PAGE_BYTES * HUGE_PAGE_BYTES;
    memory = aligned_alloc(HUGE_PAGE_BYTES, bytes);
    huge_prefer(memory, bytes);
    return memory;
}

#endif
