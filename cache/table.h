/*
 * The hash table of a shard: URL and variant to entry, by the URL's djb hash (base/djb.h). djb
 * collides on demand, so a bucket is a balanced binary search tree, ordered by (hash, URL bytes,
 * variant): with n entries in one bucket a search takes at most 2 log2(n + 1) comparisons, for any
 * choice of URLs. Hashes are ordered by their lowest different bit, so that the buckets divide one
 * order of all entries, however many there are. The trees are those of A. Andersson ("Balanced
 * search trees made simple", WADS 1993), which need neither a link to the parent nor a colour in an
 * entry.
 *
 * The table grows and shrinks by linear hashing (W. Litwin, VLDB 1980): one bucket is split when an
 * entry is inserted, or merged when entries are removed, so that no request pays for rehashing the
 * whole table, and every entry is always in exactly one bucket. Without memory to grow, trees get
 * deeper.
 *
 * Owns the array of buckets and no entry. Used under the shard's lock.
 */
#ifndef SUNPROXY_CACHE_TABLE_H
#define SUNPROXY_CACHE_TABLE_H

#include "cache/object.h"

/* What an entry has beside the versions that are being filled. */
enum entry_kind {
    ENTRY_EMPTY,  /* nothing; there is at least one version that is being filled */
    ENTRY_STORED, /* a ready version, in the policy and counted */
    ENTRY_PASSED, /* until object->fetched_us requests pass: hit-for-miss */
    ENTRY_VARIES, /* the URL has variants: the object's field lines are the names of the request's
                     fields that select one */
};

/*
 * The versions of a URL in one variant: the ready one, if any, and those that are being filled
 * (object->fills). The entries of a URL are neighbours in their tree. One allocation; behind it is
 * the policy's node of a ready version, or the links of a mark (shard.h).
 */
struct entry {
    struct entry *left, *right; /* in the tree */
    struct object *object; /* one reference; unless it is stored, it has a URL and a variant only */
    uint64_t entered;      /* orders entries of the other three kinds, over all shards; of a mark
                              the number of the fill that has set it */
    uint32_t hash;         /* of the object's URL */
    uint8_t kind;          /* of enum entry_kind */
    uint8_t tag_count;     /* links of tags behind the node (shard.h); while it is stored */
    uint8_t level;         /* in the tree: 1 in a leaf, that of the left child and 1 elsewhere */
    _Alignas(8) unsigned char node[];
};

static inline bool
entry_is_stored(const struct entry *entry)
{
    return entry->kind == ENTRY_STORED;
}

static inline bool
entry_is_mark(const struct entry *entry)
{
    return entry->kind == ENTRY_PASSED || entry->kind == ENTRY_VARIES;
}

struct table {
    struct entry **buckets; /* owned: trees */
    size_t entry_count;
    size_t bucket_count; /* in use */
    size_t allocated;    /* buckets */
    size_t mask;         /* 2^k - 1 >= bucket_count - 1 > (2^k - 1) / 2, but for tiny tables */
};

/* An empty table; false without memory. */
bool table_init(struct table *table);

/* Frees the buckets; entries are not touched. Harmless on a zeroed table. */
void table_free(struct table *table);

/* The entry of that URL, whose djb hash is `hash`, and that variant, or NULL. */
struct entry *table_find(const struct table *table, uint32_t hash, struct span url,
                         struct span variant);

/*
 * Iterates over the entries of a URL in the order of their variants: the first one, and the one
 * after an entry; NULL at the end. Another one than the next may be removed meanwhile.
 */
struct entry *table_first_variant(const struct table *table, uint32_t hash, struct span url);
struct entry *table_next_variant(const struct table *table, const struct entry *entry);

/* Inserts an entry whose URL is not in the table yet in this variant. Cannot fail. */
void table_insert(struct table *table, struct entry *entry);

/* Removes an entry; the number of buckets stays. */
void table_remove(struct table *table, struct entry *entry);

/* After removals: merges buckets until at most two are left for each entry. */
void table_tidy(struct table *table);

/*
 * Iterates over all entries in the order of the table: the first entry, and the one after an
 * object's URL, with its hash, and variant, which need not be there; NULL at the end. Whatever is
 * inserted or removed meanwhile, what stays is visited once.
 */
struct entry *table_first(const struct table *table);
struct entry *table_after(const struct table *table, uint32_t hash, const struct object *object);

static inline struct entry *
table_next(const struct table *table, const struct entry *entry)
{
    return table_after(table, entry->hash, entry->object);
}

#endif
