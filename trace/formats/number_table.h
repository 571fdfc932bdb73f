/*
 * Numbers the 64-bit identities of a binary trace from 0 in the order of their first appearance.
 *
 * A table belongs to one thread at a time.
 */
#ifndef SUNPROXY_TRACE_FORMATS_NUMBER_TABLE_H
#define SUNPROXY_TRACE_FORMATS_NUMBER_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct number_slot {
    uint64_t number;
    uint64_t id_plus_1; /* 0: free */
};

struct number_table {
    uint64_t *numbers; /* by id */
    size_t count;
    size_t capacity;
    struct number_slot *slots;
    size_t slot_count; /* a power of two, or 0 */
    uint64_t key[2];
};

void number_table_init(struct number_table *t);
void number_table_free(struct number_table *t);

/* The id of a number, a new one if it was not there. False without memory. */
bool number_table_put(struct number_table *t, uint64_t number, uint32_t *id, bool *fresh);

/* Multiplied by a secret and folded: a made-up trace cannot know where its numbers go. */
static inline size_t
number_table_index(const struct number_table *t, uint64_t number)
{
    __extension__ unsigned __int128 product = (unsigned __int128)(number ^ t->key[0]) * t->key[1];

    return (size_t)((uint64_t)product ^ (uint64_t)(product >> 64U)) & (t->slot_count - 1);
}

/* The id of a number if it has one. */
static inline bool
number_table_find(const struct number_table *t, uint64_t number, uint32_t *id)
{
    size_t at = number_table_index(t, number);

    if (t->slot_count == 0)
        return false;
    for (; t->slots[at].id_plus_1 != 0; at = (at + 1) & (t->slot_count - 1)) {
        if (t->slots[at].number == number) {
            *id = (uint32_t)(t->slots[at].id_plus_1 - 1);
            return true;
        }
    }
    return false;
}

/*
 * The slot where the search for a number begins, for a prefetch; NULL before there is a table. The
 * prefetch itself is the caller's: gcc drops an inline function that does nothing else.
 */
static inline const void *
number_table_place(const struct number_table *t, uint64_t number)
{
    return t->slot_count == 0 ? NULL : &t->slots[number_table_index(t, number)];
}

#endif
