/*
 * Ghosts: the keys (base/hash.h) and sizes of evicted pages, in the order of their eviction, with
 * some words of the policy's own for each. Bounded in number and in bytes; beyond a bound the
 * oldest ghosts are dropped. Two pages with one key share a ghost. Each ghost counts at least one
 * byte.
 *
 * Without memory a ghost is not added, and nothing else happens. Everything takes O(1), on average
 * over the chains of a hash table whose slots a client cannot predict. A ghost takes 36 to 72
 * bytes, and its words once or twice; memory is kept for the largest number so far.
 */
#ifndef SUNPROXY_POLICIES_GHOST_H
#define SUNPROXY_POLICIES_GHOST_H

#include <stdbool.h>
#include <stdint.h>

struct ghost_entry;

struct ghost {
    uint64_t pages; /* number of ghosts */
    uint64_t bytes; /* the sum of their sizes */

    uint64_t max_pages, max_bytes;
    struct ghost_entry *entries; /* owned; entry i is at i - 1, so that 0 is none */
    uint64_t *words;             /* owned; word_count for each entry; NULL: none */
    uint32_t *slots;             /* owned; the first entry of each chain */
    uint32_t word_count;
    uint32_t allocated; /* entries and slots: 0 or a power of two */
    uint32_t used;      /* entries ever used */
    uint32_t unused;    /* the first of those that are free again */
    uint32_t oldest, newest;
    uint64_t secret;
};

/* No ghosts, and no memory allocated. UINT64_MAX: not bounded. */
void ghost_init(struct ghost *ghost, uint64_t max_pages, uint64_t max_bytes);

/* The same, with that many words of the policy's own for each ghost; at least one. */
void ghost_init_with_words(struct ghost *ghost, uint64_t max_pages, uint64_t max_bytes,
                           uint32_t words);

void ghost_free(struct ghost *ghost);

/* Sets other bounds; drops the oldest ghosts that are beyond them. */
void ghost_limit(struct ghost *ghost, uint64_t max_pages, uint64_t max_bytes);

/*
 * Adds a ghost as the newest and drops the oldest beyond the bounds. A page larger than the bound
 * in bytes gets none, and a key that has one keeps it unchanged. True if it was added; its words
 * are then to be set by way of ghost_words().
 */
bool ghost_add(struct ghost *ghost, uint64_t key, uint64_t bytes);

/* Has this key a ghost? */
bool ghost_has(const struct ghost *ghost, uint64_t key);

/* The words of this key's ghost, valid until the next call that is not const; NULL: no ghost. */
uint64_t *ghost_words(const struct ghost *ghost, uint64_t key);

/* Drops this key's ghost; true if there was one. */
bool ghost_take(struct ghost *ghost, uint64_t key);

/* The bytes that the oldest ghost was added with; 0 if there is none. */
uint64_t ghost_oldest_bytes(const struct ghost *ghost);

/* The words of the oldest ghost, as ghost_words(). */
uint64_t *ghost_oldest_words(const struct ghost *ghost);

/* Drops the oldest ghost, if there is one. */
void ghost_drop_oldest(struct ghost *ghost);

/* For tests: everything agrees, and nothing is beyond the bounds; O(n). */
bool ghost_is_valid(const struct ghost *ghost);

#endif
