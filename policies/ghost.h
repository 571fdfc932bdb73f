/*
 * Ghosts: what a policy remembers of pages that have left, by key (base/hash.h) and size, in the
 * order in which they left. Bounded in pages and bytes; who is beyond the bound is forgotten, the
 * oldest first. Two pages with one key share a ghost. Each ghost weighs at least one byte.
 *
 * Without memory a ghost is not remembered, and nothing else happens. Everything takes O(1), on
 * average over the chains of a table whose slots nobody outside can foresee. 36 to 72 bytes a
 * ghost, and memory is kept for the most there have been.
 */
#ifndef SUNPROXY_POLICIES_GHOST_H
#define SUNPROXY_POLICIES_GHOST_H

#include <stdbool.h>
#include <stdint.h>

struct ghost_entry;

struct ghost {
    uint64_t pages; /* how many are remembered */
    uint64_t bytes; /* and what they weigh together */

    uint64_t max_pages, max_bytes;
    struct ghost_entry *entries; /* owned; entry i is at i - 1, so that 0 is none */
    uint32_t *slots;             /* owned; the first entry of each chain */
    uint32_t room;               /* entries and slots allocated: 0 or a power of two */
    uint32_t used;               /* entries ever used */
    uint32_t unused;             /* the first of those that are free again */
    uint32_t oldest, newest;
    uint64_t secret;
};

/* No ghosts yet, and no memory taken. UINT64_MAX: not bounded. */
void ghost_init(struct ghost *ghost, uint64_t max_pages, uint64_t max_bytes);

void ghost_free(struct ghost *ghost);

/* Other bounds; forgets who is beyond them. */
void ghost_limit(struct ghost *ghost, uint64_t max_pages, uint64_t max_bytes);

/*
 * Remembers a page that has left, as the newest; the oldest make room. One that is too large for
 * the bound is not remembered, and one that is remembered already stays as it is.
 */
void ghost_add(struct ghost *ghost, uint64_t key, uint64_t bytes);

/* Is it remembered? */
bool ghost_has(const struct ghost *ghost, uint64_t key);

/* Forgets it; true if it was remembered. */
bool ghost_take(struct ghost *ghost, uint64_t key);

/* What was told of the oldest as its bytes; 0 if there is none. */
uint64_t ghost_oldest_bytes(const struct ghost *ghost);

/* Forgets the oldest, if there is one. */
void ghost_drop_oldest(struct ghost *ghost);

/* For tests: everything agrees, and nothing is beyond the bounds; O(n). */
bool ghost_is_valid(const struct ghost *ghost);

#endif
