/*
 * The cache: URL to object, bounded in pages, in bytes or both, with a replacement policy that
 * chooses the victims. Split into shards by the URL's hash, each with its lock, its table, its
 * instance of the policy and its share of the capacity, so that threads seldom contend. With one
 * shard the result of a sequence of requests is exactly the policy's.
 *
 * A URL is in the table from the first miss on: cache_lookup() begins a version of it and gives its
 * fill (fill.h) to the caller, and later requests for the URL join that. It enters the policy and
 * counts towards the capacity when it is complete. Without a policy nothing is stored, but requests
 * still join.
 *
 * Bytes count an object whole: URL, field lines, the memory of the body, tags and their
 * index, and charge_page_overhead() of bookkeeping; or the body alone, for studies in which a cache
 * has to count as a trace does.
 *
 * Every function is safe on any thread and blocks on nothing but the locks of the shards. No hook
 * of a memory account is called under such a lock.
 */
#ifndef SUNPROXY_CACHE_CACHE_H
#define SUNPROXY_CACHE_CACHE_H

#include "base/buf.h"
#include "base/djb.h"
#include "base/hash.h"
#include "cache/object.h"
#include "policies/policy.h"

#define CACHE_MAX_SHARDS 64u
#define CACHE_MAX_MARKS 4096u  /* of each kind (table.h), of all shards */
#define CACHE_MAX_VARIANTS 64u /* stored ones of a URL, beside that of the empty variant */

struct cache;
struct object_waiter;

struct cache_config {
    struct policy_spec policy; /* without ops nothing is ever stored */
    uint64_t capacity_pages;   /* 0: not bounded in pages; one of the two must be bounded */
    uint64_t capacity_bytes;   /* 0: not bounded in bytes */
    unsigned shards;           /* 1 to CACHE_MAX_SHARDS, which share the capacity equally */
    uint64_t seed;             /* shard i draws from seed + i */
    bool body_only;            /* bytes count bodies alone */
};

struct cache_stats {
    uint64_t pages;      /* ready objects */
    uint64_t bytes;      /* of those */
    uint64_t busy;       /* objects that are being filled and may be stored, but for purges */
    uint64_t passed;     /* URLs and variants that requests pass: hit-for-miss */
    uint64_t varied;     /* URLs that have names of fields by which they vary */
    uint64_t insertions; /* pages stored, replacements included */
    uint64_t evictions;  /* pages evicted as victims */
};

enum cache_error {
    CACHE_OK = 0,
    CACHE_CONFIG_NO_MEMORY,
    CACHE_BAD_CONFIG, /* no bound, or shards out of range, or fewer pages or bytes than shards, or
                         a policy that needs the future */
};

/* The result of storing a page. */
enum cache_outcome {
    CACHE_STORED,
    CACHE_REPLACED,   /* stored in place of an older page of the same URL, which is no eviction */
    CACHE_NOT_STORED, /* not asked for, purged meanwhile, no policy, larger than a shard's share,
                         refused by the policy, no memory, or a better version is there (fill.h,
                         cache_fill_finish()). Nothing was evicted */
    CACHE_FELL_BACK,  /* nothing was: the fetch failed, and waiters got the object that had expired
                         (fill.h, cache_fill_fall_back()) */
    CACHE_PASSED_ON,  /* it entered, and was itself chosen as the victim, perhaps with others: so do
                         policies whose newcomers compete (policy.h, enters_first). It counts
                         neither as an insertion nor as an eviction; an older page of the same URL
                         is gone */
};

/* Why a page that was to be stored was not. */
enum cache_refusal {
    CACHE_REFUSED_NOT,    /* it was, or was not to be */
    CACHE_REFUSED_PURGED, /* meanwhile, or another page has replaced it */
    CACHE_REFUSED_SIZE,   /* it is larger than a shard's share */
    CACHE_REFUSED_MEMORY, /* there was none */
    CACHE_REFUSED_POLICY, /* not admitted, itself chosen as the victim, or there is no policy */
};

/* The pages that were evicted for another, each with a reference that the holder drops. */
struct cache_victims {
    struct object **pages; /* owned; NULL if none */
    size_t count;
};

/* NULL, with the reason in *error, if it cannot be made. */
struct cache *cache_create(const struct cache_config *config, enum cache_error *error);

/* No other thread may use it, and no fill of it may exist. Objects with references remain. NULL is
 * harmless. */
void cache_destroy(struct cache *cache);

/* ---- requests -------------------------------------------------------------------------------- */

/*
 * A URL and a variant (object.h) with both hashes: `hash` is the URL's alone and finds it in a
 * table, so that all variants are in one shard; `key` is the identity of both for policies. At most
 * OBJECT_MAX_META and OBJECT_MAX_VARIANT bytes.
 */
struct cache_key {
    struct span url;
    struct span variant;
    uint32_t hash;
    uint64_t key;
};

/* Computed before any lock is taken; the bytes of URL and variant are the caller's. */
static inline struct cache_key
cache_key_of(struct span url)
{
    return (struct cache_key){.url = url, .hash = djb_hash(url), .key = hash64_bytes(url)};
}

static inline struct cache_key
cache_key_of_variant(struct span url, struct span variant)
{
    struct cache_key key = cache_key_of(url);

    key.variant = variant;
    if (variant.len)
        key.key = hash64_uint(key.key ^ HASH64_STEP * hash64_bytes(variant));
    return key;
}

/* What a request demands of a cached object beyond its freshness (RFC 9111, section 5.2.1). */
struct cache_conditions {
    bool no_cache;        /* none is good enough */
    bool only_cached;     /* begin no fill, and join none */
    int64_t max_age_us;   /* the age is at most this; INT64_MAX: any */
    int64_t min_fresh_us; /* it stays fresh for at least this */
};

/* Does a ready object meet them at `now_us`? */
static inline bool
cache_conditions_are_met(const struct cache_conditions *conditions, const struct object *object,
                         int64_t now_us)
{
    int64_t age_us = object_age(object, now_us), lifetime_us = object_lifetime(object);

    return !conditions->no_cache && age_us <= conditions->max_age_us &&
           (lifetime_us == INT64_MAX || lifetime_us - age_us >= conditions->min_fresh_us);
}

struct cache_request {
    struct object_waiter *waiter; /* joins a busy object, or leads a new fill. Untouched unless the
                                     answer is BUSY, MISS, STALE or PASS; what it had before is
                                     overwritten, not released. Not read if conditions->only_cached
                                     is set */
    const struct cache_conditions *conditions; /* NULL: any fresh object will do */
    unsigned stale_notes; /* objects with one of these notes have expired for this request */
    size_t fill_size;     /* of the struct that begins with the struct cache_fill (fill.h) */
    unsigned max_waiters; /* of one object, the leader included; 0: not bounded */
    /* Bytes of a body that the request can have, and that a fill which it begins takes; 0: any
     * number. It joins no fill that takes less. */
    uint64_t most;
    bool only_new; /* begin a fill only where the cache has nothing of the key, and join none: the
                      answer is ABSENT otherwise, or an object */
    bool pass; /* neither look up nor join nor store: a bypass. Not with
                  conditions->only_cached */
    /*
     * 0; or the epoch in which the request was sent whose response is to be stored, before the
     * lookup: purges since then concern it as if they had come after the lookup, except the change
     * with the epoch `own_epoch`, unless that is 0.
     */
    uint64_t epoch, own_epoch;
};

enum cache_answer {
    CACHE_HIT,    /* found->object is ready and fresh; the policy has seen the request */
    CACHE_STALE,  /* found->object has expired, or does not meet the conditions; found->fill: the
                     caller fills its successor (NULL if conditions->only_cached is set). To the
                     policy the request has not happened: the page stays a candidate for eviction
                     until its successor replaces it */
    CACHE_BUSY,   /* the waiter has joined the object that is being filled. If that is the successor
                     of another one, as for STALE, found->object is the other one */
    CACHE_MISS,   /* found->fill: the waiter is the leader of a new busy object, which the caller
                     fills. Others of the URL and variant that are being filled go on beside it */
    CACHE_PASS,   /* found->fill: requests pass here (hit-for-miss), or request->pass. The waiter is
                     the only one of the object, and the caller fills it. It may be stored at the
                     end; after request->pass it is not */
    CACHE_VARIES, /* the URL has variants (fill.h, cache_fill_vary()): found->object has the
                     names (object_fields()) by which the caller chooses one, to look that up */
    CACHE_ABSENT, /* conditions->only_cached or only_new, and there is no object for it. Nothing has
                     changed */
    CACHE_FULL,   /* the URL's busy object has max_waiters */
    CACHE_NO_MEMORY /* nothing has changed; the caller may reclaim memory and look up again */
};

struct cache_found {
    struct object *object;   /* HIT, STALE, BUSY, VARIES: a reference of the caller's; or NULL */
    struct cache_fill *fill; /* STALE, MISS, PASS: the caller's, as fill.h has it; or NULL */
};

/*
 * Looks a URL up for a request that arrived at `now_us` of the monotonic clock. A hit allocates
 * nothing, and reads no waiter, and of the request `pass`, `conditions` and `stale_notes`. With
 * BUSY, the waiter is notified at once (before this returns) of what it has missed. Where a policy
 * evicts others because of a hit (SLRU may, see policy.h, hit_has_surplus) they are counted as
 * evictions, and not named.
 */
enum cache_answer cache_lookup(struct cache *cache, const struct cache_key *key,
                               const struct cache_request *request, int64_t now_us,
                               struct cache_found *found);

/* What the cache has of a URL and variant. */
struct cache_peeked {
    struct object *object; /* as for HIT or VARIES, fresh or not: a reference of the caller's */
    bool varies;
    bool passes;  /* requests do, for a while: as for PASS */
    bool filling; /* a request may join a fill */
};

/* Looks it up without an effect, on the policy or anything else. */
void cache_peek(struct cache *cache, const struct cache_key *key, int64_t now_us,
                struct cache_peeked *peeked);

/* Releases what a list holds; it is empty afterwards. */
void cache_victims_free(struct cache_victims *victims);

/* ---- control --------------------------------------------------------------------------------- */

/*
 * Evicts pages, by the policy, until `bytes` of them are evicted, but at most a sixteenth of the
 * capacity in bytes (of the pages' bytes, where bytes are not bounded) and a page more: for a
 * process that has run out of memory. They count as evictions. Returns the bytes of the evicted
 * pages, and their number in *pages; those with other references are not free yet. The caller has
 * no lock of a cache.
 */
uint64_t cache_reclaim(struct cache *cache, uint64_t bytes, uint64_t *pages);

/* What a purge names, in every variant. */
enum cache_by {
    CACHE_BY_URL,
    CACHE_BY_PREFIX, /* all URLs that begin so; an empty one: all */
    CACHE_BY_TAG,    /* all objects that have this word among their tags (fill.h, object_head) */
};

/* What a purge makes of an object. */
enum cache_fate {
    CACHE_REMOVED,
    CACHE_EXPIRED, /* a ready one stays, and has expired, now or when it would have (object.h), also
                      for requests that arrived before; a busy one is treated as by CACHE_REMOVED */
    CACHE_COUNTED, /* nothing: a purge with this fate counts what others would remove */
    CACHE_SPARED,
};

/* What becomes of an object, which has its URL, and what else it has only if it is ready. */
struct cache_scope {
    enum cache_fate (*decide)(struct object *object, const void *context);
    const void *context;
};

/* Several purges by one writer. Begins zeroed. */
struct cache_change {
    uint64_t epoch;  /* of all of them */
    uint64_t latest; /* of the others that have purged one of the names before; 0: none */
};

struct cache_purge {
    enum cache_by by;
    struct span name;
    enum cache_fate fate;            /* of what it names */
    const struct cache_scope *scope; /* by a prefix or a tag: decides about each object instead,
                                        without a lock of the cache. Busy ones of other URLs count
                                        as purged, too. Or NULL */
    int64_t now_us;                  /* monotonic: for what expires */
    struct buf *tags; /* or NULL: gets the tags of what is removed, and of the busy objects of a
                         URL: words with one space between two, some perhaps more than once. The
                         buffer says if that failed */
    struct cache_change *change; /* that it is part of; or NULL */
};

/*
 * Purging removes objects. Returns the number of ready ones, which are not counted as evictions;
 * with another fate, of those that it counts, or that were not expired so before. Busy objects are
 * completed for their waiters and not stored, and no later request joins them; marks (table.h) are
 * dropped, but not by a tag, since they have none.
 *
 * A tag also concerns busy objects whose fill began before the purge and whose tags come with the
 * head afterwards: they are not stored, and waiters other than the leader get RETRY. That takes
 * time in proportion to the objects that have the tag. A busy object may also not be stored by a
 * collision of hashes (epochs.h).
 *
 * A purge by a prefix or a tag releases the lock of a shard after every few objects.
 */
uint64_t cache_purge(struct cache *cache, const struct cache_purge *purge);
uint64_t cache_purge_all(struct cache *cache);

/* The present epoch (epochs.h), for a later lookup. */
uint64_t cache_epoch(struct cache *cache);

/* False for a configuration that is refused with CACHE_BAD_CONFIG. */
bool cache_config_is_valid(const struct cache_config *config);

/*
 * Changes policy, capacity and number of shards while others use the cache. Pages that fit the new
 * capacity stay; the others are evicted by the new policy. (Pages may count more under one policy
 * than under another: charge_page_overhead().) The pages enter the new policy in the order in which
 * they entered the cache; where only the capacity changes, the policy keeps its state. Busy objects
 * and marks stay; the successor of an expired page that is evicted is still filled and stored,
 * but no later request joins it. Requests wait meanwhile: for a new policy or number of shards
 * about a microsecond for each page. On an error nothing has changed.
 */
enum cache_error cache_configure(struct cache *cache, const struct cache_config *config);

/* The configuration in force. */
void cache_get_config(struct cache *cache, struct cache_config *config);

/* Sums over the shards; each shard's numbers are consistent in themselves. */
void cache_get_stats(struct cache *cache, struct cache_stats *stats);

/* Sets insertions and evictions to zero. */
void cache_reset_stats(struct cache *cache);

#endif
