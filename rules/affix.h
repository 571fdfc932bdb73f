/*
 * A table of literals that texts begin or end with: finds all of them that a text has, by a search
 * in their order and from there along the literals that each one contains. Private to rules/.
 *
 * Made by one thread, and read-only from affix_sort() on.
 */
#ifndef SUNPROXY_RULES_AFFIX_H
#define SUNPROXY_RULES_AFFIX_H

#include <endian.h>
#include <stdint.h>

#include "base/span.h"

#define AFFIX_FILTER 1024u /* bits */

struct affix; /* a literal, and for whom it was added */

/* All zero but for `at_end`: none. */
struct affix_table {
    size_t count;
    /*
     * A filter, since most texts have none: for each literal a bit by the hash of its `least` bytes
     * at the begin or the end, which is the length of the shortest one, but at most 8.
     */
    size_t least;
    bool at_end; /* texts end with the literals, instead of beginning */
    uint64_t filter[AFFIX_FILTER / 64];
    struct affix *affixes;
    size_t capacity;
};

/* Adds a literal for the user of that number, which is found by it; its bytes stay. False without
 * memory. */
bool affix_add(struct affix_table *table, struct span literal, uint32_t user);

/* All literals are there. */
void affix_sort(struct affix_table *table);

/* The first or the last `least` bytes of a text, which has them, as a number. */
static inline uint64_t
affix_edge(const struct affix_table *table, struct span text)
{
    const unsigned unused = 64 - 8 * (unsigned)table->least; /* bits */
    uint64_t bytes = 0;

    if (table->least == 0 || text.len < sizeof(bytes)) {
        memcpy(&bytes, text.ptr + (table->at_end ? text.len - table->least : 0), table->least);
        return le64toh(bytes);
    }
    memcpy(&bytes, text.ptr + (table->at_end ? text.len - sizeof(bytes) : 0), sizeof(bytes));
    bytes = le64toh(bytes);
    return table->at_end ? bytes >> unused : bytes << unused >> unused;
}

/* The bit of such a text in the filter: by Fibonacci hashing. */
static inline unsigned
affix_bit(const struct affix_table *table, struct span text)
{
    return (unsigned)(affix_edge(table, text) * UINT64_C(0x9e3779b97f4a7c15) >> 54);
}

/* May the text have a literal? False for most texts that have none. */
static inline bool
affix_may_find(const struct affix_table *table, struct span text)
{
    unsigned bit;

    if (!table->count || text.len < table->least)
        return false;
    bit = affix_bit(table, text);
    return table->filter[bit / 64] >> (bit % 64) & 1;
}

/* Sets the bit of each user one of whose literals the text has. */
void affix_find(const struct affix_table *table, struct span text, uint64_t *users);

/* Sets the bit of each user that has a literal. */
void affix_mark_users(const struct affix_table *table, uint64_t *users);

void affix_free(struct affix_table *table);

#endif
