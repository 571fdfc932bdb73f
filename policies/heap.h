/*
 * An intrusive binary heap: an array of pointers to nodes, each of which knows its place in it, so
 * that any node can be moved or taken out in O(log n) and the first is found in O(1).
 *
 * The heap owns its array and no node.
 */
#ifndef SUNPROXY_POLICIES_HEAP_H
#define SUNPROXY_POLICIES_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The first member of whatever stands in a heap. */
struct heap_node {
    uint32_t slot; /* where in the array; the heap's own */
};

/* Negative when a belongs nearer to the top than b. A total order: never 0 for two nodes. */
typedef int heap_compare(const struct heap_node *a, const struct heap_node *b);

struct heap {
    struct heap_node **slots; /* owned */
    uint32_t count;
    uint32_t room;
    heap_compare *compare;
};

void heap_init(struct heap *heap, heap_compare *compare);

/* Frees the array; nodes are not touched. */
void heap_free(struct heap *heap);

/* Puts a node in; false without memory (or with 2^32 - 1 nodes inside), and then nothing changed.
 */
bool heap_insert(struct heap *heap, struct heap_node *node);

/*
 * Takes out a node that is inside. Gives memory back when three quarters of the array are empty,
 * but never so much that the next insert could fail.
 */
void heap_remove(struct heap *heap, struct heap_node *node);

/*
 * Puts a node that is inside where it belongs after its key has changed away from the top, as a
 * request changes it under LFU and LRU-K. No node above is read, so that a leaf costs nothing.
 */
void heap_sink(struct heap *heap, struct heap_node *node);

/* The node nearest to the top, or NULL. */
struct heap_node *heap_first(const struct heap *heap);

/* True if every node is where its key and its slot say. For tests; O(n). */
bool heap_is_valid(const struct heap *heap);

#endif
