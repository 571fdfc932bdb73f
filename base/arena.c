#include "base/arena.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/queue.h>

#include "base/instrumented.h"

#ifndef ARENA_OWN
#define ARENA_OWN !INSTRUMENTED
#endif

#define ALIGNMENT sizeof(size_t)
#define CLASS_BITS 5u
#define CLASSES (1u << CLASS_BITS)       /* of sizes between two powers of two */
#define LINEAR_MAX (CLASSES * ALIGNMENT) /* below, a class for each size */
#define LINEAR_BITS 8u                   /* its logarithm */
#define LEVELS 16u                       /* up to REGION */
#define LOOK_AT 4                        /* blocks of a class that may be too short */

#define PAGE ((size_t)4096)
#define REGION ((size_t)8 << 20)
#define RESERVE (2 * REGION) /* left for malloc() */
#define HUGE_PAGE ((size_t)2 << 20)
#define LONG ((size_t)64 << 10)

/* Pages of this size together are returned while more is free than a part of what is used. */
#define RETURN_MIN (4 * PAGE)
#define FREE_SHARE 16u
#define FREE_MIN ((size_t)4 << 20)
#define SPLIT_MIN ((size_t)64 << 20) /* beyond it parts of huge pages are returned, too */

enum { BLOCK_FREE = 1, BLOCK_AFTER_FREE = 2, BLOCK_FIRST = 4, BLOCK_FLAGS = 7 };

/*
 * `before` is the last word of the block before this one, whose own it is while it is allocated.
 * What follows `size` is the caller's while this one is.
 */
struct block {
    struct block *before; /* if BLOCK_AFTER_FREE */
    size_t size;          /* from `links` on, to the end of the next block's `before`; and flags */
    LIST_ENTRY(block) links;
    size_t resident; /* bytes that may be */
};

#define HEADER (offsetof(struct block, links) - sizeof(struct block *))
#define BLOCK_MIN (sizeof(struct block) - offsetof(struct block, links) + sizeof(struct block *))

LIST_HEAD(block_list, block);

/* Regions, and the free blocks in them. */
struct pool {
    bool huge;       /* in huge pages */
    uint32_t levels; /* that have blocks */
    uint32_t classes[LEVELS];
    struct block_list lists[LEVELS][CLASSES];
    struct arena_stats stats;
    size_t kept; /* arena_keep() */
};

/* At an address that is a multiple of REGION; its blocks follow, as far into a line of the
 * processor's cache as if they began the region. */
struct region {
    _Alignas(64) struct pool *pool;
};

static struct {
    pthread_mutex_t lock;
    struct pool pool;
    struct pool kept; /* of long blocks, while some are to be kept */
} arena = {.lock = PTHREAD_MUTEX_INITIALIZER, .kept.huge = true};

/* ---- blocks ---------------------------------------------------------------------------------- */

static size_t
size_of(const struct block *block)
{
    return block->size & ~(size_t)BLOCK_FLAGS;
}

static struct region *
region_of(const struct block *block)
{
    return (struct region *)((uintptr_t)block / REGION * REGION);
}

static struct block *
next_of(const struct block *block)
{
    return (struct block *)(void *)((char *)(uintptr_t)&block->links + size_of(block) -
                                    sizeof(struct block *));
}

static unsigned
log2_of(size_t n)
{
    return (unsigned)(8 * sizeof(n) - 1) - (unsigned)__builtin_clzl(n);
}

struct size_class {
    unsigned level;
    unsigned number;
};

static struct size_class
class_of(size_t size)
{
    unsigned log;

    if (size < LINEAR_MAX)
        return (struct size_class){0, (unsigned)(size / ALIGNMENT)};
    log = log2_of(size);
    return (struct size_class){log - LINEAR_BITS + 1,
                               (unsigned)(size >> (log - CLASS_BITS)) - CLASSES};
}

static void
insert(struct pool *pool, struct block *block)
{
    struct size_class at = class_of(size_of(block));

    LIST_INSERT_HEAD(&pool->lists[at.level][at.number], block, links);
    pool->classes[at.level] |= 1u << at.number;
    pool->levels |= 1u << at.level;
    pool->stats.free += block->resident;
    pool->stats.returned += size_of(block) - block->resident;
}

static void
unlink_free(struct pool *pool, struct block *block)
{
    struct size_class at = class_of(size_of(block));

    LIST_REMOVE(block, links);
    if (LIST_EMPTY(&pool->lists[at.level][at.number]))
        pool->classes[at.level] &= ~(1u << at.number);
    if (pool->classes[at.level] == 0)
        pool->levels &= ~(1u << at.level);
    pool->stats.free -= block->resident;
    pool->stats.returned -= size_of(block) - block->resident;
}

/* Of this class the first few are looked at; any block of a class above is long enough. */
static struct block *
find(const struct pool *pool, size_t size)
{
    struct size_class at = class_of(size);
    struct block *block = LIST_FIRST(&pool->lists[at.level][at.number]);
    uint32_t above;

    for (int i = 0; block && i < LOOK_AT; i++, block = LIST_NEXT(block, links))
        if (size_of(block) >= size)
            return block;
    above = at.number + 1 < CLASSES ? pool->classes[at.level] & (~0u << (at.number + 1)) : 0;
    if (above == 0) {
        uint32_t levels = pool->levels & (~0u << (at.level + 1));

        if (levels == 0)
            return NULL;
        at.level = (unsigned)__builtin_ctz(levels);
        above = pool->classes[at.level];
    }
    return LIST_FIRST(&pool->lists[at.level][__builtin_ctz(above)]);
}

/* ---- regions --------------------------------------------------------------------------------- */

/*
 * Memory of the kernel's: a free block, in no list, and an allocated one without content behind it.
 * NULL without memory. A region is not the last one that the kernel can give: what lies in the
 * arena can be evicted for more of it, and malloc() has no other source.
 */
static struct block *
add_region(struct pool *pool)
{
    char *memory = mmap(NULL, REGION + RESERVE, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    struct region *region;
    struct block *block;
    size_t before;

    if (memory == MAP_FAILED)
        return NULL;
    before = -(uintptr_t)memory % REGION;
    if (before)
        munmap(memory, before);
    munmap(memory + before + REGION, RESERVE - before);
    region = (struct region *)(void *)(memory + before);
    if (pool->huge)
        (void)madvise(region, REGION, MADV_HUGEPAGE);
    region->pool = pool;
    block = (struct block *)(void *)(region + 1);
    block->size = (REGION - sizeof(*region) - offsetof(struct block, links) - HEADER) |
                  BLOCK_FREE | BLOCK_FIRST;
    block->resident = 0;
    next_of(block)->before = block;
    next_of(block)->size = BLOCK_AFTER_FREE;
    return block;
}

static bool
is_whole_region(const struct block *block)
{
    return block->size & BLOCK_FIRST && size_of(next_of(block)) == 0;
}

/* Is more free with this block, in no list, than `least` and a share of what is used? */
static bool
has_surplus(const struct pool *pool, const struct block *block, size_t least)
{
    return pool->stats.free + block->resident > pool->stats.used / FREE_SHARE + least + pool->kept;
}

/* Returns the whole pages of this size in a free block to the kernel. */
static void
return_pages(struct block *block, size_t page)
{
    const uintptr_t start = ((uintptr_t)(block + 1) + page - 1) / page * page;
    const uintptr_t end = (uintptr_t)next_of(block) / page * page;

    if (start < end && madvise((char *)start, end - start, MADV_DONTNEED) == 0 &&
        block->resident > size_of(block) - (end - start))
        block->resident = size_of(block) - (end - start);
}

/*
 * Returns pages of a free block. A huge page of which a part was returned is none any more, and the
 * kernel is not to make it one again, since that takes memory.
 */
static void
return_surplus(const struct pool *pool, struct block *block)
{
    if (pool->huge) {
        return_pages(block, HUGE_PAGE);
        if (!has_surplus(pool, block, SPLIT_MIN))
            return;
        (void)madvise(region_of(block), REGION, MADV_NOHUGEPAGE);
    }
    return_pages(block, PAGE);
}

/* ---- allocating ------------------------------------------------------------------------------ */

/* Cuts off what a free block, in no list, has beyond `size`, as a free block of its own. */
static void
split(struct pool *pool, struct block *block, size_t size)
{
    size_t rest = size_of(block) - size;
    struct block *next;

    if (rest < BLOCK_MIN + HEADER)
        return;
    block->size = size | (block->size & BLOCK_FLAGS);
    next = next_of(block);
    next->size = (rest - HEADER) | BLOCK_FREE | BLOCK_AFTER_FREE;
    next->before = block;
    next->resident = block->resident > size ? block->resident - size : 0;
    if (next->resident > size_of(next))
        next->resident = size_of(next);
    next_of(next)->before = next;
    insert(pool, next);
}

static void *
take(struct pool *pool, size_t size)
{
    struct block *block = find(pool, size);

    if (block)
        unlink_free(pool, block);
    else
        block = add_region(pool);
    if (!block)
        return NULL;
    split(pool, block, size);
    block->size &= ~(size_t)BLOCK_FREE;
    next_of(block)->size &= ~(size_t)BLOCK_AFTER_FREE;
    pool->stats.used += size_of(block) + HEADER;
    return &block->links;
}

/* Joins two free blocks, in no list, of which `second` is behind `first`. */
static struct block *
join(struct block *first, struct block *second)
{
    first->size += size_of(second) + HEADER;
    first->resident += second->resident + HEADER;
    next_of(first)->before = first;
    return first;
}

static void
give_back(struct block *block)
{
    struct pool *pool = region_of(block)->pool;
    struct block *next = next_of(block);
    bool surplus;

    pool->stats.used -= size_of(block) + HEADER;
    block->resident = size_of(block);
    block->size |= BLOCK_FREE;
    if (block->size & BLOCK_AFTER_FREE) {
        unlink_free(pool, block->before);
        block = join(block->before, block);
    }
    if (next->size & BLOCK_FREE) {
        unlink_free(pool, next);
        block = join(block, next);
    }
    next_of(block)->before = block;
    next_of(block)->size |= BLOCK_AFTER_FREE;
    surplus = has_surplus(pool, block, FREE_MIN);
    if (surplus && is_whole_region(block)) {
        munmap(region_of(block), REGION);
        return;
    }
    if (surplus && block->resident >= RETURN_MIN)
        return_surplus(pool, block);
    insert(pool, block);
}

/* ---- from outside ---------------------------------------------------------------------------- */

void *
arena_alloc(size_t bytes)
{
    size_t size = bytes <= BLOCK_MIN ? BLOCK_MIN : (bytes + ALIGNMENT - 1) & ~(ALIGNMENT - 1);
    void *memory = NULL;

    if (!ARENA_OWN)
        return malloc(bytes);
    if (bytes <= ARENA_MAX) {
        pthread_mutex_lock(&arena.lock);
        memory = take(bytes >= LONG && arena.kept.kept ? &arena.kept : &arena.pool, size);
        pthread_mutex_unlock(&arena.lock);
    }
    if (!memory)
        errno = ENOMEM;
    return memory;
}

void *
arena_calloc(size_t bytes)
{
    void *memory = arena_alloc(bytes);

    return memory ? memset(memory, 0, bytes) : NULL;
}

void
arena_free(void *memory)
{
    if (!ARENA_OWN) {
        free(memory);
    } else if (memory) {
        pthread_mutex_lock(&arena.lock);
        give_back((struct block *)(void *)((char *)memory - offsetof(struct block, links)));
        pthread_mutex_unlock(&arena.lock);
    }
}

void
arena_keep(ptrdiff_t change)
{
    pthread_mutex_lock(&arena.lock);
    arena.kept.kept += (size_t)change;
    pthread_mutex_unlock(&arena.lock);
}

void
arena_get_stats(struct arena_stats *stats)
{
    pthread_mutex_lock(&arena.lock);
    *stats = (struct arena_stats){
        .used = arena.pool.stats.used + arena.kept.stats.used,
        .free = arena.pool.stats.free + arena.kept.stats.free,
        .returned = arena.pool.stats.returned + arena.kept.stats.returned,
    };
    pthread_mutex_unlock(&arena.lock);
}
