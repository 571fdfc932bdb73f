#include "fetch/registry.h"

#include <stdlib.h>

#define SIZE_FIRST 64u
#define SIZE_MAX_SLOTS ((uint32_t)1 << 30)

/* A number is the index of its slot, and above it how often the slot has been used. */
struct registry_slot {
    void *fetch; /* NULL: free */
    uint32_t uses;
    uint32_t next_free;
};

void
registry_free(struct registry *registry)
{
    free(registry->slots);
    *registry = (struct registry){0};
}

static bool
grow(struct registry *registry)
{
    uint32_t size = registry->size ? 2 * registry->size : SIZE_FIRST;
    struct registry_slot *slots;

    if (size > SIZE_MAX_SLOTS)
        return false;
    slots = realloc(registry->slots, size * sizeof(*slots));
    if (!slots)
        return false;
    for (uint32_t i = registry->size; i < size; i++)
        slots[i] = (struct registry_slot){.next_free = i + 1 < size ? i + 2 : 0};
    registry->slots = slots;
    registry->first_free = registry->size + 1;
    registry->size = size;
    return true;
}

bool
registry_add(struct registry *registry, void *fetch, uint64_t *id)
{
    struct registry_slot *slot;
    uint32_t index;

    if (registry->first_free == 0 && !grow(registry))
        return false;
    index = registry->first_free - 1;
    slot = &registry->slots[index];
    registry->first_free = slot->next_free;
    slot->fetch = fetch;
    slot->uses++;
    *id = (uint64_t)slot->uses << 32 | index;
    return true;
}

static struct registry_slot *
find_slot(const struct registry *registry, uint64_t id)
{
    uint32_t index = (uint32_t)id;
    struct registry_slot *slot;

    if (index >= registry->size)
        return NULL;
    slot = &registry->slots[index];
    return slot->fetch && slot->uses == id >> 32 ? slot : NULL;
}

void *
registry_find(const struct registry *registry, uint64_t id)
{
    const struct registry_slot *slot = find_slot(registry, id);

    return slot ? slot->fetch : NULL;
}

void
registry_remove(struct registry *registry, uint64_t id)
{
    struct registry_slot *slot = find_slot(registry, id);

    if (!slot)
        return;
    slot->fetch = NULL;
    /* A slot whose numbers are used up stays out of use. */
    if (slot->uses == UINT32_MAX)
        return;
    slot->next_free = registry->first_free;
    registry->first_free = (uint32_t)id + 1;
}
