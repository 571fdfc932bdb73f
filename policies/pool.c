#include "policies/pool.h"

#include <stdlib.h>

#include "policies/slots.h"

void
pool_init(struct pool *pool, uint64_t seed)
{
    *pool = (struct pool){.random = seed};
}

void
pool_free(struct pool *pool)
{
    free(pool->nodes);
    *pool = (struct pool){0};
}

bool
pool_add(struct pool *pool, struct pool_node *node)
{
    if (pool->count == pool->allocated) {
        struct pool_node **nodes =
            pool->count < UINT32_MAX
                ? slots_grow(pool->nodes, &pool->allocated, sizeof(struct pool_node *))
                : NULL;

        if (!nodes)
            return false;
        pool->nodes = nodes;
    }
    node->slot = pool->count;
    pool->nodes[pool->count++] = node;
    return true;
}

void
pool_remove(struct pool *pool, struct pool_node *node)
{
    struct pool_node *last = pool->nodes[--pool->count];

    last->slot = node->slot;
    pool->nodes[last->slot] = last;
    pool->nodes =
        slots_shrink(pool->nodes, &pool->allocated, pool->count, sizeof(struct pool_node *));
}

bool
pool_is_valid(const struct pool *pool)
{
    for (uint32_t i = 0; i < pool->count; i++)
        if (pool->nodes[i]->slot != i)
            return false;
    return pool->count <= pool->allocated;
}
