/*
 * What the daemon counts of its cache between two points of the soak, and whether it worked as a
 * cache: that it answered from memory, evicted, and had pages left to purge.
 */
#ifndef SUNPROXY_TESTS_SOAK_TALLY_H
#define SUNPROXY_TESTS_SOAK_TALLY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "proxy.h"
#include "rpc/client.h"

struct tally {
    char policy[PROXY_MAX_NAME + 1];
    uint64_t hits, evictions; /* since the daemon's start */
    uint64_t pages;           /* in the cache now */
};

/* What the answers of one phase said. */
struct tally_answers {
    uint64_t requests; /* of the phase */
    uint64_t hits;     /* answers with the source PROXY_HIT */
    uint64_t evicted;  /* pages that answers said had been evicted for them */
    uint64_t stored;   /* answers whose page was stored */
};

/* Shorter phases are not checked: their requests are too few to fill the cache. */
#define TALLY_LEAST_REQUESTS 400u
/* The least share of hits among a phase's requests, per cent. */
#define TALLY_HIT_PERCENT 5u

/* Asks an administrator's connection for the statistics. */
enum rpc_client_status tally_take(struct rpc_client *admin, struct tally *tally);

/*
 * Checks a phase between two tallies and the pages that the purge after it removed. A phase that
 * ends with the policy "none", which the mix may set, is excused unless the daemon was started
 * with it (`started_with`). False, with a sentence for each violation in `why`.
 */
bool tally_check(const char *started_with, const struct tally *before, const struct tally *after,
                 const struct tally_answers *answers, uint64_t purged, struct buf *why);

#endif
