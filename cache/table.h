/*
 * The hash table of a shard: URL to entry, by djb hash (base/djb.h). djb collides on demand, so a
 * bucket is a balanced binary search tree, ordered by (hash, URL bytes): with n entries in one
 * bucket a search takes at most 2 log2(n + 1) comparisons, whoever chose the URLs.
 *
 * The table grows and shrinks by linear hashing (W. Litwin, VLDB 1980): one bucket is split for an
 * entry that comes, or merged when entries go, so that no request pays for rehashing everything,
 * and every entry is always in exactly one place. Without memory to grow, trees get deeper.
 *
 * Owns the array of buckets and no entry. Used under the shard's lock.
 */
#ifndef SUNPROXY_CACHE_TABLE_H
#define SUNPROXY_CACHE_TABLE_H

#include <bsd/sys/tree.h>

#include "cache/page.h"

/* A page in a shard. One allocation, with the policy's node behind it. */
struct entry {
    RB_ENTRY(entry) links;
    struct page *page; /* one reference */
    uint64_t entered;  /* orders entries by their entry, over all shards of a cache */
    uint32_t hash;     /* of the page's URL */
    _Alignas(8) unsigned char node[];
};

RB_HEAD(bucket, entry);

struct table {
    struct bucket *buckets; /* owned */
    size_t entry_count;
    size_t bucket_count; /* in use */
    size_t room;         /* allocated */
    size_t mask;         /* 2^k - 1 >= bucket_count - 1 > (2^k - 1) / 2, but for tiny tables */
};

/* An empty table; false without memory. */
bool table_init(struct table *table);

/* Frees the buckets; entries are not touched. Harmless on a zeroed table. */
void table_free(struct table *table);

/* The entry of that URL, whose djb hash is `hash`, or NULL. */
struct entry *table_find(const struct table *table, uint32_t hash, struct span url);

/* Puts in an entry whose URL is not inside yet. Cannot fail. */
void table_insert(struct table *table, struct entry *entry);

/* Takes out an entry that is inside; the table stays as wide as it was. */
void table_remove(struct table *table, struct entry *entry);

/* After removals: merges buckets until at most two are left for each entry. */
void table_tidy(struct table *table);

/*
 * Walks over everything, in no order that means anything: the first entry, and the one after an
 * entry; NULL at the end. Entries may be removed meanwhile, but not the one that comes next, and
 * neither table_insert() nor table_tidy() may be called.
 */
struct entry *table_first(const struct table *table);
struct entry *table_next(const struct table *table, struct entry *entry);

/* For tests: true if every tree is ordered, balanced and where it belongs; O(n). */
bool table_is_valid(const struct table *table);

/* For tests: the most entries that a search passes; O(n). */
size_t table_depth(const struct table *table);

#endif
