/*
 * An intrusive binary heap: an array of pointers to nodes, each of which stores its place in it, so
 * that any node can be moved or removed in O(log n) and the first is found in O(1).
 *
 * The heap owns its array and no node.
 */
#ifndef SUNPROXY_POLICIES_HEAP_H
#define SUNPROXY_POLICIES_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A member of whatever is in a heap. */
struct heap_node {
    uint32_t slot; /* its place in the array; the heap's own */
};

/* Negative when a belongs nearer to the top than b. A total order: never 0 for two nodes. */
typedef int heap_compare(const struct heap_node *a, const struct heap_node *b);

struct heap {
    struct heap_node **slots; /* owned */
    uint32_t count;
    uint32_t allocated;
    heap_compare *compare;
};

void heap_init(struct heap *heap, heap_compare *compare);

/* Frees the array; nodes are not touched. */
void heap_free(struct heap *heap);

/* Adds a node; false without memory (or with 2^32 - 1 nodes), and then nothing has changed. */
bool heap_insert(struct heap *heap, struct heap_node *node);

/*
 * Removes a node of the heap. Frees memory when three quarters of the array are empty, but keeps
 * enough for the next insert.
 */
void heap_remove(struct heap *heap, struct heap_node *node);

/*
 * Restores the order after the key of a node has changed away from the top, as a hit changes it
 * under LFU and LRU-K. No node above is read, so that a leaf costs nothing.
 */
void heap_sink(struct heap *heap, struct heap_node *node);

/* The node nearest to the top, or NULL. */
struct heap_node *heap_first(const struct heap *heap);

/* True if every node is where its key and its slot say. For tests; O(n). */
bool heap_is_valid(const struct heap *heap);

#endif
