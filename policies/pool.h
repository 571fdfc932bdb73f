/*
 * A pool of nodes from which policies draw at random: an array in no order, in which each node
 * knows its place. Adding, removing and drawing take O(1). The pool owns its array and no node.
 *
 * The generator is SplitMix64 and seeded, so that a run can be repeated: a node is added at the
 * end, the last node takes the place of a removed one, and a draw takes 32 random bits.
 */
#ifndef SUNPROXY_POLICIES_POOL_H
#define SUNPROXY_POLICIES_POOL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/hash.h"

/* A member of whatever is in a pool. */
struct pool_node {
    uint32_t slot; /* its place in the array; the pool's own */
};

struct pool {
    struct pool_node **nodes; /* owned */
    uint32_t count;
    uint32_t allocated;
    uint64_t random; /* state of the generator */
};

/* Empty, without memory allocated. */
void pool_init(struct pool *pool, uint64_t seed);

/* Frees the array; nodes are not touched. */
void pool_free(struct pool *pool);

/* False without memory (or with 2^32 - 1 nodes), and then nothing has changed. */
bool pool_add(struct pool *pool, struct pool_node *node);

/* Removes a node of the pool. The memory that is kept is enough for one more node. */
void pool_remove(struct pool *pool, struct pool_node *node);

/* For tests: every node is where its slot says; O(n). */
bool pool_is_valid(const struct pool *pool);

/* The next random number below `below`, which is above 0: off by at most below / 2^32. */
static inline uint32_t
pool_random(struct pool *pool, uint32_t below)
{
    return (uint32_t)((splitmix64_next(&pool->random) >> 32) * below >> 32);
}

/* Any node; the pool is not empty. */
static inline struct pool_node *
pool_draw(struct pool *pool)
{
    return pool->nodes[pool_random(pool, pool->count)];
}

#endif
