/*
 * The cache of the server under a replay: set up before each run, and restored after the last one.
 * Each call opens a connection of its own, since a run may last longer than a server keeps an idle
 * one. For one thread.
 */
#ifndef SUNPROXY_CLIENT_REPLAY_REPLAY_CACHE_H
#define SUNPROXY_CLIENT_REPLAY_REPLAY_CACHE_H

#include "client/connect.h"
#include "client/replay/replay.h"

/* A policy, both capacities (0: no bound) and the number of shards. */
struct replay_cache_state {
    char policy[PROXY_MAX_NAME + 1];
    uint64_t capacity_urls;
    uint64_t capacity_bytes;
    unsigned shards;
    bool automatic; /* the number of shards follows the capacity */
};

struct replay_cache {
    const struct server *server; /* not owned; where administrators are known */
    int64_t timeout_us;
    bool change;        /* false: the cache stays as it is, and the rest is not used */
    const char *policy; /* not owned; NULL: as it is */
    bool set_capacity;
    uint64_t capacity_urls;
    uint64_t capacity_bytes;

    bool changed; /* by this replay */
    struct replay_cache_state before;
};

/*
 * Empties the cache and sets what is wanted of it, in one shard; remembers before the first time
 * what was in force. EX_OK, or the exit status after a complaint.
 */
int replay_cache_set(struct replay_cache *cache);

/* What is in force now, for the report. Likewise. */
int replay_cache_describe(const struct replay_cache *cache, struct replay_subject *subject);

/*
 * Restores policy, capacities and the number of shards that were in force before the first
 * replay_cache_set(); pages and counters cannot be restored. Does nothing where nothing was set.
 * EX_OK, or the exit status after a complaint that names what could not be restored.
 */
int replay_cache_restore(struct replay_cache *cache);

#endif
