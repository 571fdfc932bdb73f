/*
 * A shard: a table, an instance of the policy, a share of the capacity, the fills of its URLs
 * and its marks. It takes no lock itself (slots.h has those): the caller of these
 * functions has the lock of the shard's slot, or is the only one that knows the shard.
 *
 * No object is freed under the lock: what is removed is chained in the shard, and freed by the
 * unlock (slots.h).
 */
#ifndef SUNPROXY_CACHE_SHARD_H
#define SUNPROXY_CACHE_SHARD_H

#include <sys/queue.h>

#include "base/container_of.h"
#include "cache/fill.h"
#include "cache/table.h"
#include "cache/tag_index.h"
#include "policies/charge.h"
#include "policies/evictor.h"

/* Where a mark has its links, in the memory of a node. */
struct mark {
    TAILQ_ENTRY(mark) links;
};

/* The marks of one kind, the oldest first. */
struct marks {
    TAILQ_HEAD(, mark) list;
    size_t count;
    size_t bytes; /* of their objects */
};

/* What has been removed and not freed yet. Entries are chained by `right`, the last one first. */
struct removed {
    struct entry *entries;
    struct entry *evicted; /* pages that count as evictions */
    size_t evicted_count;
    struct segment *segments; /* of windowed bodies */
};

struct shard {
    struct removed removed; /* since the lock was taken */
    struct table table;
    struct evictor evictor;      /* its ops NULL: nothing is stored */
    struct policy_config config; /* its share of the capacity, and its seed; no params */
    struct policy_spec spec;     /* of the policy */
    bool body_only;              /* bytes are those of bodies alone; */
    uint64_t overhead;           /* otherwise those of pages, and this for each as bookkeeping */
    size_t entry_size;           /* bytes of an entry with the node or a mark's links */
    bool is_copy; /* is being built from others (configure.c): objects' fills belong to those */

    LIST_HEAD(, cache_fill) fills; /* of its URLs, without bypasses */
    size_t busy;                   /* of those, that may be stored, but for purges */

    struct marks passed; /* ENTRY_PASSED */
    struct marks varied; /* ENTRY_VARIES */
    size_t max_marks;

    struct tags tags; /* of the stored objects */
};

/*
 * An empty shard; false without memory. A spec without ops is a shard that stores nothing. The
 * params of `config` are ignored: they are those of the spec.
 */
bool shard_init(struct shard *shard, const struct policy_spec *spec,
                const struct policy_config *config, bool body_only, size_t max_marks);

/* Frees a shard that has no fills, and what has been removed. Harmless on a zeroed one. */
void shard_free(struct shard *shard);

/* Moves a shard in memory; *from is then to be overwritten. */
void shard_move(struct shard *to, struct shard *from);

/*
 * A zeroed entry with one more reference to the object, whose tags are in the index. It is not in
 * the table yet; shard_add_entry() inserts it. NULL without memory.
 */
struct entry *shard_make_entry(struct shard *shard, struct object *object, uint32_t hash);
struct entry *shard_add_entry(struct shard *shard, struct object *object, uint32_t hash);

/*
 * The object of this key that is fresh to the request and meets its conditions, without a reference
 * of its own, after the policy's access(); NULL if there is none, with the key's entry, or NULL, in
 * *entry; the policy does not see that. If the policy has a surplus afterwards, other pages are
 * evicted.
 */
struct object *shard_lookup(struct shard *shard, const struct cache_key *key,
                            const struct cache_request *request, int64_t now_us,
                            struct entry **entry);

/*
 * Stores a ready object with a reference of the shard's own; `entered` is its number in the order
 * of entry. `existing` is what the table has of its URL and variant, which is no mark, or NULL. The
 * rules are those of evictor_enter(). The versions that are being filled there stay joined.
 * EVICTOR_NO_MEMORY is also the answer if there is none for the entry. Without a policy every
 * object is too large. If it is not stored, `existing` is still in the table, as it was.
 */
enum evictor_outcome shard_store(struct shard *shard, const struct cache_key *key,
                                 struct entry *existing, struct object *object, uint64_t entered);

/* Removes an entry of any kind; not counted as an eviction. No request can join the fills that it
 * has any more. */
void shard_remove(struct shard *shard, struct entry *entry);

/* ---- fills ----------------------------------------------------------------------------------- */

/* The version that was begun last of those that are being filled here, or NULL. */
static inline struct cache_fill *
entry_newest(const struct entry *entry)
{
    return LIST_FIRST(&entry->object->fills);
}

/* What the table has of the fill's URL and variant, or NULL. */
struct entry *shard_find_fill(const struct shard *shard, const struct cache_fill *fill);

/* Begins and ends a fill. */
void shard_add_fill(struct shard *shard, struct cache_fill *fill);
void shard_remove_fill(struct shard *shard, struct cache_fill *fill);

/*
 * Makes it stricter, unless it is so strict already. Of others than FILL_SHARED no request can join
 * the fill any more; its entry is removed if nothing else is there.
 */
void shard_restrict_fill(struct shard *shard, struct cache_fill *fill,
                         enum fill_disposition disposition);

/* Puts a fill into the list of an entry, if it is later than those that are there. */
void entry_add_fill(struct entry *entry, struct cache_fill *fill);

/* Takes it out; it may be in none. No request can join it any more. */
void entry_remove_fill(struct cache_fill *fill);

/* The same for all of an object that is an entry's. */
void object_remove_fills(struct object *object);

/* Removes an entry that is empty and has no fills; NULL is harmless. */
void shard_remove_if_empty(struct shard *shard, struct entry *entry);

/* Removes the page that the fill was to replace, unless a later one may replace it. */
void fill_remove_previous(struct shard *shard, const struct cache_fill *fill);

/* ---- marks: entries that requests pass, and names of URLs that vary -------------------------- */

/*
 * Makes an entry that is in the table and not stored a mark of this kind, with `object`, or renews
 * it. Drops the oldest of the kind if there are too many.
 */
void shard_mark(struct shard *shard, struct entry *entry, enum entry_kind kind,
                struct object *object, uint64_t entered);

/* Makes a mark an empty entry. */
void shard_clear_mark(struct shard *shard, struct entry *entry);

/* Removes up to two entries that requests do not pass any more at `now_us`, the oldest first. */
void shard_remove_expired_marks(struct shard *shard, int64_t now_us);

/* ---- capacity -------------------------------------------------------------------------------- */

/*
 * Gives the shard another share of the capacity. Pages that are larger than the new one are
 * removed, then others as the policy chooses. Cannot fail.
 */
void shard_resize(struct shard *shard, const struct policy_config *config);

/*
 * Evicts pages until `bytes` of them are evicted or none is left; returns the bytes of the evicted
 * ones, as object_size() has them.
 */
uint64_t shard_reclaim(struct shard *shard, uint64_t bytes);

/* Frees what has been removed. Needs no lock. */
void shard_free_removed(struct removed *removed);

/* ---- for the files of a shard ---------------------------------------------------------------- */

/* The bytes that a stored entry counts. */
uint64_t shard_bytes_of_entry(const struct shard *shard, const struct entry *entry);

/* Where an entry has its links of tags. */
struct tag_link *shard_tags_of(const struct shard *shard, struct entry *entry);

#endif
