/*
 * Large pages for large arrays: a table that is looked into at random then misses the processor's
 * address cache hardly ever, and the system clears 2 MiB at once instead of answering 512 faults.
 */
#ifndef SUNPROXY_BASE_HUGE_H
#define SUNPROXY_BASE_HUGE_H

#include <stddef.h>
#include <stdint.h>
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

#endif
