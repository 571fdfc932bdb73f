/*
 * A table of literals that texts begin or end with: finds all of them that a text has, by a search
 * in their order and from there along the literals that each one contains. Private to rules/.
 *
 * Made by one thread, and read-only from affix_sort() on.
 */
#ifndef SUNPROXY_RULES_AFFIX_H
#define SUNPROXY_RULES_AFFIX_H

#include <stdint.h>

#include "base/span.h"

#define AFFIX_FILTER 1024u /* bits */

struct affix; /* a literal, and for whom it was added */

/* All zero but for `at_end`: none. */
struct affix_table {
    bool at_end; /* texts end with the literals, instead of beginning */
    struct affix *affixes;
    size_t count;
    size_t capacity;
    /*
     * A filter, since most texts have none: for each literal a bit by the hash of its `least` bytes
     * at the begin or the end, which is the length of the shortest one, but at most 8.
     */
    size_t least;
    uint64_t filter[AFFIX_FILTER / 64];
};

/* Adds a literal for the user of that number, which is found by it; its bytes stay. False without
 * memory. */
bool affix_add(struct affix_table *table, struct span literal, uint32_t user);

/* All literals are there. */
void affix_sort(struct affix_table *table);

/* Sets the bit of each user one of whose literals the text has. */
void affix_find(const struct affix_table *table, struct span text, uint64_t *users);

void affix_free(struct affix_table *table);

#endif
