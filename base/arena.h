/*
 * An arena for what lives long, apart from malloc(): pages of a cache among the short-lived blocks
 * of transfers make malloc()'s lists long, and keep its memory from being returned.
 *
 * Two-level segregated fit (Masmano and others, 2004): an allocation takes constant time whatever
 * the number of blocks, and a block is at most 1/32 longer than the one that would fit best. Blocks
 * are parts of regions of 8 MiB. When more is free than a sixteenth of what is used, free regions
 * and the pages of further free blocks are returned to the kernel.
 *
 * A program with a sanitizer gets blocks from malloc(), which finds their errors.
 *
 * One arena for the process, under a lock of its own, under which no other is taken. [any thread]
 */
#ifndef SUNPROXY_BASE_ARENA_H
#define SUNPROXY_BASE_ARENA_H

#include <stddef.h>

#define ARENA_MAX ((size_t)4 << 20) /* bytes of a block */

/* Memory that is not cleared, aligned to 8 bytes. NULL with ENOMEM, also beyond ARENA_MAX. */
void *arena_alloc(size_t bytes) __attribute__((malloc, warn_unused_result));

/* The same, cleared. */
void *arena_calloc(size_t bytes) __attribute__((malloc, warn_unused_result));

/* NULL is harmless. */
void arena_free(void *memory);

/*
 * That many bytes more, or fewer, are free before any are returned to the kernel, of blocks of 64
 * KiB and longer: for those that are freed and allocated again all the time, and into which files
 * are read past the kernel's memory. At first 0. While it is not, such blocks have regions of their
 * own, in huge pages (madvise(2), MADV_HUGEPAGE) where the kernel has some: it finds and holds
 * those much sooner for a read.
 */
void arena_keep(ptrdiff_t change);

struct arena_stats {
    size_t used;     /* bytes of allocated blocks, with their headers */
    size_t free;     /* of free blocks, that may be resident */
    size_t returned; /* of free blocks, that have been returned to the kernel */
};

/* All 0 where blocks come from malloc(). */
void arena_get_stats(struct arena_stats *stats);

#endif
