#include "policies/rank.h"

#include <stdlib.h>

#include "policies/slots.h"

#define RANK_CHILDREN 4u

void
rank_init(struct rank_heap *heap)
{
    *heap = (struct rank_heap){0};
}

void
rank_free(struct rank_heap *heap)
{
    free(heap->slots);
    rank_init(heap);
}

static inline bool
rank_less(const struct rank_slot *a, const struct rank_slot *b)
{
    /* Without branches: with them GDSF and OPT took 2 to 20 % more CPU time (see rank.h). */
    return (a->major < b->major) | ((a->major == b->major) & (a->minor < b->minor));
}

static inline void
rank_place(struct rank_heap *heap, size_t slot, const struct rank_slot *what)
{
    heap->slots[slot] = *what;
    what->node->slot = (uint32_t)slot;
}

static inline struct rank_slot
rank_now(struct rank_node *node)
{
    return (struct rank_slot){.major = node->major, .minor = node->minor, .node = node};
}

/* Both walks move a hole. This one fills it with `what` on the way to the top. */
static void
rank_rise(struct rank_heap *heap, size_t slot, const struct rank_slot *what)
{
    while (slot > 0) {
        size_t parent = (slot - 1) / RANK_CHILDREN;

        if (rank_less(&heap->slots[parent], what))
            break;
        rank_place(heap, slot, &heap->slots[parent]);
        slot = parent;
    }
    rank_place(heap, slot, what);
}

static inline size_t
rank_lowest_child(const struct rank_heap *heap, size_t first)
{
    const struct rank_slot *slots = heap->slots;
    size_t best = first, end = first + RANK_CHILDREN;

    if (end <= heap->count) {
        size_t left = first + rank_less(&slots[first + 1], &slots[first]);
        size_t right = first + 2 + rank_less(&slots[first + 3], &slots[first + 2]);

        return rank_less(&slots[right], &slots[left]) ? right : left;
    }
    for (size_t child = first + 1; child < heap->count; child++) {
        if (rank_less(&slots[child], &slots[best]))
            best = child;
    }
    return best;
}

static void
rank_sink(struct rank_heap *heap, size_t slot, const struct rank_slot *what)
{
    for (;;) {
        size_t child = RANK_CHILDREN * slot + 1;

        if (child >= heap->count)
            break;
        child = rank_lowest_child(heap, child);
        if (rank_less(what, &heap->slots[child]))
            break;
        rank_place(heap, slot, &heap->slots[child]);
        slot = child;
    }
    rank_place(heap, slot, what);
}

static bool
rank_grow(struct rank_heap *heap)
{
    struct rank_slot *slots = slots_grow(heap->slots, &heap->allocated, sizeof(*slots));

    if (!slots)
        return false;
    heap->slots = slots;
    return true;
}

bool
rank_insert(struct rank_heap *heap, struct rank_node *node)
{
    struct rank_slot what = rank_now(node);

    if (heap->count == UINT32_MAX)
        return false;
    if (heap->count == heap->allocated && !rank_grow(heap))
        return false;
    heap->count++;
    rank_rise(heap, heap->count - 1, &what);
    return true;
}

void
rank_remove(struct rank_heap *heap, struct rank_node *node)
{
    size_t slot = node->slot;
    struct rank_slot last = heap->slots[--heap->count];

    if (last.node != node) {
        /* What comes from the end may belong above its new place as well as below it. */
        if (slot > 0 && rank_less(&last, &heap->slots[(slot - 1) / RANK_CHILDREN]))
            rank_rise(heap, slot, &last);
        else
            rank_sink(heap, slot, &last);
    }
    heap->slots = slots_shrink(heap->slots, &heap->allocated, heap->count, sizeof(*heap->slots));
}

void
rank_lowered(struct rank_heap *heap, struct rank_node *node)
{
    struct rank_slot what = rank_now(node);

    /* The rank may have grown before, and may still be above the array's lower bound. */
    if (rank_less(&what, &heap->slots[node->slot]))
        rank_rise(heap, node->slot, &what);
}

struct rank_node *
rank_first(struct rank_heap *heap)
{
    if (heap->count == 0)
        return NULL;
    for (;;) {
        const struct rank_slot *top = &heap->slots[0];
        struct rank_slot now = rank_now(top->node);

        if (now.major == top->major && now.minor == top->minor)
            return top->node;
        rank_sink(heap, 0, &now);
    }
}

struct rank_walk {
    struct rank_heap *heap;
    struct rank_slot below;
    bool (*visit)(void *context, const struct rank_node *node);
    void *context;
};

/* A slot and those under it: none of them is ranked below what its bound is not below. */
static bool
rank_walk_from(const struct rank_walk *walk, size_t slot)
{
    struct rank_heap *heap = walk->heap;

    while (slot < heap->count && rank_less(&heap->slots[slot], &walk->below)) {
        struct rank_slot now = rank_now(heap->slots[slot].node);

        if (rank_less(&heap->slots[slot], &now)) {
            rank_sink(heap, slot, &now);
            continue;
        }
        if (!walk->visit(walk->context, now.node))
            return false;
        for (size_t i = 1; i <= RANK_CHILDREN; i++) {
            if (!rank_walk_from(walk, RANK_CHILDREN * slot + i))
                return false;
        }
        break;
    }
    return true;
}

bool
rank_walk_below(struct rank_heap *heap, const struct rank_node *rank,
                bool (*visit)(void *context, const struct rank_node *node), void *context)
{
    const struct rank_walk walk = {.heap = heap,
                                   .below = {.major = rank->major, .minor = rank->minor},
                                   .visit = visit,
                                   .context = context};

    return rank_walk_from(&walk, 0);
}

bool
rank_is_valid(const struct rank_heap *heap)
{
    if (heap->count > heap->allocated)
        return false;
    for (size_t i = 0; i < heap->count; i++) {
        const struct rank_slot *slot = &heap->slots[i];
        struct rank_slot now = rank_now(slot->node);

        if (slot->node->slot != i || rank_less(&now, slot))
            return false;
        if (i > 0 && !rank_less(&heap->slots[(i - 1) / RANK_CHILDREN], slot))
            return false;
    }
    return true;
}
