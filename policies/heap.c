#include "policies/heap.h"

#include <stdlib.h>

#include "policies/slots.h"

void
heap_init(struct heap *heap, heap_compare *compare)
{
    *heap = (struct heap){.compare = compare};
}

void
heap_free(struct heap *heap)
{
    free(heap->slots);
    heap_init(heap, heap->compare);
}

static inline void
heap_place(struct heap *heap, size_t slot, struct heap_node *node)
{
    heap->slots[slot] = node;
    node->slot = (uint32_t)slot;
}

/* Both walks move a hole, not the node: one write a level instead of a swap. */

/* Moves `node` from the hole at `slot` towards the top; true if it moved. */
static bool
heap_rise(struct heap *heap, size_t slot, struct heap_node *node)
{
    size_t start = slot;

    while (slot > 0) {
        size_t parent = (slot - 1) / 2;

        if (heap->compare(heap->slots[parent], node) < 0)
            break;
        heap_place(heap, slot, heap->slots[parent]);
        slot = parent;
    }
    heap_place(heap, slot, node);
    return slot != start;
}

/* Moves `node` from the hole at `slot` away from the top; a leaf costs nothing. */
static void
heap_descend(struct heap *heap, size_t slot, struct heap_node *node)
{
    for (;;) {
        size_t child = 2 * slot + 1;

        if (child >= heap->count)
            break;
        if (child + 1 < heap->count &&
            heap->compare(heap->slots[child + 1], heap->slots[child]) < 0)
            child++;
        if (heap->compare(node, heap->slots[child]) < 0)
            break;
        heap_place(heap, slot, heap->slots[child]);
        slot = child;
    }
    heap_place(heap, slot, node);
}

static bool
heap_grow(struct heap *heap)
{
    struct heap_node **slots = slots_grow(heap->slots, &heap->allocated, sizeof(*slots));

    if (!slots)
        return false;
    heap->slots = slots;
    return true;
}

bool
heap_insert(struct heap *heap, struct heap_node *node)
{
    if (heap->count == UINT32_MAX)
        return false;
    if (heap->count == heap->allocated && !heap_grow(heap))
        return false;
    heap->count++;
    heap_rise(heap, heap->count - 1, node);
    return true;
}

void
heap_remove(struct heap *heap, struct heap_node *node)
{
    size_t slot = node->slot;
    struct heap_node *last = heap->slots[heap->count - 1];

    heap->count--;
    if (last != node) {
        /* The last node may belong above its new place as well as below it. */
        if (!heap_rise(heap, slot, last))
            heap_descend(heap, slot, last);
    }
    heap->slots = slots_shrink(heap->slots, &heap->allocated, heap->count, sizeof(*heap->slots));
}

void
heap_sink(struct heap *heap, struct heap_node *node)
{
    heap_descend(heap, node->slot, node);
}

struct heap_node *
heap_first(const struct heap *heap)
{
    return heap->count ? heap->slots[0] : NULL;
}

bool
heap_is_valid(const struct heap *heap)
{
    if (heap->count > heap->allocated)
        return false;
    for (size_t i = 0; i < heap->count; i++) {
        if (heap->slots[i]->slot != i)
            return false;
        if (i > 0 && heap->compare(heap->slots[(i - 1) / 2], heap->slots[i]) >= 0)
            return false;
    }
    return true;
}
