/*
 * A shard: a table, an instance of the policy, and a share of the capacity. It takes no lock
 * itself (places.h has those): whoever calls in here holds the one of the shard's place, or is the
 * only one who knows the shard.
 *
 * Nothing is freed under the lock. What leaves is chained up and handed to the caller, who lets go
 * of it with shard_free_departed() once the lock is dropped.
 */
#ifndef SUNPROXY_CACHE_SHARD_H
#define SUNPROXY_CACHE_SHARD_H

#include "cache/table.h"
#include "policies/evictor.h"

struct shard {
    struct table table;
    struct evictor evictor;      /* its ops NULL: no cache, and nothing else is set */
    struct policy_config config; /* its share of the capacity, and its seed; no params */
    struct policy_spec spec;     /* of the policy */
    bool body_only;              /* bytes are those of bodies alone; */
    uint64_t overhead;           /* otherwise those of pages, and this for each as bookkeeping */
};

/* Entries that left, in the order in which they did. */
struct departed {
    struct entry *first;
    struct entry *last;
    size_t count;
};

/*
 * An empty shard; false without memory. A spec without ops is a shard that stores nothing. The
 * params of `config` are not looked at: they are those of the spec.
 */
bool shard_init(struct shard *shard, const struct policy_spec *spec,
                const struct policy_config *config, bool body_only);

/* Frees the shard and lets go of all pages inside. Harmless on a zeroed one. */
void shard_free(struct shard *shard);

/*
 * `hash` is a URL's djb_hash(), by which the table finds it, and `key` its hash64_bytes(), by which
 * policies remember it. Both are the caller's to compute, before it takes the lock.
 */

/*
 * The page of this URL, without a reference of its own, after the policy's access(); NULL on a
 * miss, which the policy does not see. A page that is not fresh at `now_us` is a miss. If the
 * policy has a surplus afterwards, other pages are evicted to `victims`.
 */
struct page *shard_lookup(struct shard *shard, uint32_t hash, uint64_t key, struct span url,
                          int64_t now_us, struct departed *victims);

/*
 * Stores a page with a reference of the shard's own; `entered` is its number in the order of entry.
 * The rules are those of evictor_enter(): a page of the same URL leaves to `replaced`, and so does
 * the new page itself if it is passed on; victims leave to `victims`. EVICTOR_NO_MEMORY is also the
 * answer if there is none for the entry. Without a cache every page is too large.
 */
enum evictor_outcome shard_store(struct shard *shard, uint32_t hash, uint64_t key,
                                 struct page *page, uint64_t entered, struct departed *replaced,
                                 struct departed *victims);

/*
 * Gives the shard another share of the capacity; pages that are larger than the new one leave, then
 * others as the policy says. Cannot fail.
 */
void shard_resize(struct shard *shard, const struct policy_config *config,
                  struct departed *victims);

/*
 * Evicts pages until `bytes` of them have left or none is inside; returns the bytes of those that
 * left, as page_size() has them.
 */
uint64_t shard_reclaim(struct shard *shard, uint64_t bytes, struct departed *victims);

/* Purging; not counted as evictions. */
void shard_purge(struct shard *shard, uint32_t hash, struct span url, struct departed *departed);
void shard_purge_expired(struct shard *shard, uint32_t hash, struct span url, int64_t now_us,
                         struct departed *departed);
uint64_t shard_count_prefix(const struct shard *shard, struct span prefix);
void shard_purge_prefix(struct shard *shard, struct span prefix, struct departed *departed);

/*
 * Everything leaves. Where there is memory for an empty shard this one's content moves to *old at a
 * stroke, for shard_free() once the lock is dropped; otherwise the entries leave one by one, and
 * *old is zeroed.
 */
void shard_purge_all(struct shard *shard, struct shard *old, struct departed *departed);

/* Frees the entries and drops their pages. Needs no lock. Leaves the chain empty. */
void shard_free_departed(struct departed *departed);

/* For tests: everything agrees with everything; O(n). */
bool shard_is_valid(const struct shard *shard);

#endif
