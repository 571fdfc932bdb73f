/*
 * The fetches of a fetcher by number. A number is never used again, so that it may be kept and used
 * by any thread after its fetch has ended.
 *
 * For one thread at a time, or under a lock.
 */
#ifndef SUNPROXY_FETCH_REGISTRY_H
#define SUNPROXY_FETCH_REGISTRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct registry_slot;

/* Zero is an empty one. */
struct registry {
    struct registry_slot *slots; /* owned */
    uint32_t size;
    uint32_t first_free; /* its index plus 1; 0: all are in use */
};

void registry_free(struct registry *registry);

/* Gives `fetch`, which is not NULL, a number above zero. False without memory. */
bool registry_add(struct registry *registry, void *fetch, uint64_t *id);

/* NULL if there is none of this number, or it was removed. */
void *registry_find(const struct registry *registry, uint64_t id);

/* Harmless for a number without a fetch. */
void registry_remove(struct registry *registry, uint64_t id);

#endif
