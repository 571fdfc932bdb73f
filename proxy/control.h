/*
 * What an administrator does to the cache while it serves: purge, and change policy, capacity and
 * shards. Every function is safe on any thread.
 */
#ifndef SUNPROXY_PROXY_CONTROL_H
#define SUNPROXY_PROXY_CONTROL_H

#include "policies/policy.h"
#include "proxy/proxy.h"

struct purging_marks;

enum control_purge {
    CONTROL_PURGE_URL,
    CONTROL_PURGE_PREFIX, /* all URLs that begin with it; none if it is empty */
    CONTROL_PURGE_ALL,
    CONTROL_PURGE_TAG /* all objects that have this tag, in place of a URL */
};

/*
 * Removes from the cache; returns the number of complete objects that were removed. Objects that
 * are being fetched go to the requests that wait for them and are not stored; requests from now on
 * get new ones. `url` is empty for CONTROL_PURGE_ALL.
 */
uint64_t control_purge(struct proxy *proxy, enum control_purge kind, struct span url);

/*
 * The same softly: the objects stay, and have expired, so that they are validated, or used where
 * stale ones may be. Not for CONTROL_PURGE_ALL, for which it removes nothing.
 */
uint64_t control_expire(struct proxy *proxy, enum control_purge kind, struct span url);

/* Either of them; `marks`, which may be NULL, get those that sources have to note. */
uint64_t control_purge_marked(struct proxy *proxy, enum control_purge kind, bool soft,
                              struct span url, struct purging_marks *marks);

/* The number of complete objects that control_purge() would remove now; not for a tag. */
uint64_t control_count(struct proxy *proxy, enum control_purge kind, struct span url);

/* A number of shards that follows workers and capacity (control_suitable_shards()). */
#define CONTROL_SHARDS_AUTOMATIC UINT32_MAX

/* A change; all zero changes nothing. */
struct control_change {
    const char *policy; /* as policy_parse() takes it; NULL or "": as it is */
    bool set_capacity;
    uint64_t capacity_pages; /* 0: not bounded in pages; one of the two must be bounded */
    uint64_t capacity_bytes;
    unsigned shards; /* 0: as it is, or automatic if it was; CONTROL_SHARDS_AUTOMATIC */
    bool cold;       /* begin anew: without pages, statistics at zero */
};

enum control_status { CONTROL_OK, CONTROL_BAD_VALUE, CONTROL_NO_MEMORY };

/* Bytes that are enough for any sentence of this header. */
#define CONTROL_SENTENCE 256

/*
 * Changes the configuration of the cache (cache_configure()); *config is the one in force then. On
 * an error nothing has changed, and `why` has a sentence.
 */
enum control_status control_configure(struct proxy *proxy, const struct control_change *change,
                                      struct cache_config *config, char *why, size_t why_size);

/*
 * The same checks and answers, and nothing is changed: *config is the one that would be in force.
 */
enum control_status control_preview(struct proxy *proxy, const struct control_change *change,
                                    struct cache_config *config, char *why, size_t why_size);

/* True if the number of shards follows the capacity. */
bool control_shards_are_automatic(struct proxy *proxy);

/*
 * Reads a policy that a cache can run, as policy_parse() does; false with a sentence in `why`, also
 * for one that needs the future.
 */
bool control_parse_policy(const char *text, struct policy_spec *spec, char *why, size_t why_size);

/*
 * How many shards suit workers and capacity: one for each worker, but none with a share of fewer
 * than 4,096 pages, which makes it inexact, or of less than 64 MiB, three times the largest page.
 */
unsigned control_suitable_shards(unsigned workers, uint64_t capacity_pages,
                                 uint64_t capacity_bytes);

/*
 * A configuration of the cache as a phrase for people: "policy lru, 7 URLs, 1 shard". Returns text;
 * CONTROL_CACHE_TEXT bytes are enough.
 */
#define CONTROL_CACHE_TEXT (POLICY_MAX_TEXT + 128)
const char *control_describe_cache(const struct cache_config *config, char *text, size_t size);

#endif
