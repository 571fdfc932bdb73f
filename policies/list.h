/*
 * An intrusive doubly linked list with its sums: the number of nodes, and their bytes. The list
 * owns no node. Everything is O(1) but list_is_valid().
 *
 * Used by policies of queues. A policy that ignores sizes passes 0 bytes.
 */
#ifndef SUNPROXY_POLICIES_LIST_H
#define SUNPROXY_POLICIES_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct list_node {
    struct list_node *prev, *next;
};

/* A ring through `ends`, whose next is the first node and whose prev is the last. It must not move.
 */
struct list {
    struct list_node ends;
    uint64_t pages;
    uint64_t bytes;
};

static inline void
list_init(struct list *list)
{
    list->ends.prev = list->ends.next = &list->ends;
    list->pages = 0;
    list->bytes = 0;
}

/* The first, the last, the one behind and the one before a node; NULL if there is none. */
static inline void *
list_first(const struct list *list)
{
    return list->ends.next == &list->ends ? NULL : list->ends.next;
}

static inline void *
list_last(const struct list *list)
{
    return list->ends.prev == &list->ends ? NULL : list->ends.prev;
}

static inline void *
list_next(const struct list *list, const void *node)
{
    struct list_node *next = ((const struct list_node *)node)->next;

    return next == &list->ends ? NULL : next;
}

static inline void *
list_prev(const struct list *list, const void *node)
{
    struct list_node *prev = ((const struct list_node *)node)->prev;

    return prev == &list->ends ? NULL : prev;
}

static inline void
list_link_(struct list_node *node, struct list_node *prev, struct list_node *next)
{
    node->prev = prev;
    node->next = next;
    prev->next = node;
    next->prev = node;
}

static inline void
list_unlink_(struct list_node *node)
{
    node->prev->next = node->next;
    node->next->prev = node->prev;
}

static inline void
list_add_last(struct list *list, void *node, uint64_t bytes)
{
    list_link_(node, list->ends.prev, &list->ends);
    list->pages++;
    list->bytes += bytes;
}

static inline void
list_add_first(struct list *list, void *node, uint64_t bytes)
{
    list_link_(node, &list->ends, list->ends.next);
    list->pages++;
    list->bytes += bytes;
}

/* Before a node that is in the list. */
static inline void
list_insert_before(struct list *list, void *node, void *next, uint64_t bytes)
{
    list_link_(node, ((struct list_node *)next)->prev, next);
    list->pages++;
    list->bytes += bytes;
}

static inline void
list_remove(struct list *list, void *node, uint64_t bytes)
{
    list_unlink_(node);
    list->pages--;
    list->bytes -= bytes;
}

/* Moves a node of the list to an end. */
static inline void
list_move_last(struct list *list, void *node)
{
    list_unlink_(node);
    list_link_(node, list->ends.prev, &list->ends);
}

static inline void
list_move_first(struct list *list, void *node)
{
    list_unlink_(node);
    list_link_(node, &list->ends, list->ends.next);
}

/*
 * True if the ring closes both ways and the sums agree; `bytes_of` gives a node's bytes; NULL: all
 * have 0. For tests; O(n).
 */
bool list_is_valid(const struct list *list, uint64_t (*bytes_of)(const void *node));

#endif
