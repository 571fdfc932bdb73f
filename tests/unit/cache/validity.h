/*
 * Do the parts of a cache agree? O(n).
 */
#ifndef SUNPROXY_TESTS_CACHE_VALIDITY_H
#define SUNPROXY_TESTS_CACHE_VALIDITY_H

#include "cache/cache.h"
#include "cache/table.h"

/* Do tables, policies, fills, marks and counts agree? No thread is changing the configuration. */
bool cache_is_valid(struct cache *cache);

/* Is every tree ordered, balanced and where it belongs? */
bool table_is_valid(const struct table *table);

/* Does a walk visit each entry of the table, in one order? */
bool table_is_in_order(const struct table *table);

/* The most entries that a search passes. */
size_t table_depth(const struct table *table);

#endif
