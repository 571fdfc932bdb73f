/*
 * Brings the daemon into the same state at every point of the soak: policy and capacity as at the
 * start, an empty cache, no fetch, no connection but ours, and none to the origin.
 */
#ifndef SUNPROXY_TESTS_SOAK_QUIESCE_H
#define SUNPROXY_TESTS_SOAK_QUIESCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rpc/client.h"

/* The state to return to. */
struct quiesce_state {
    const char *policy;
    uint32_t capacity_urls;
};

/*
 * `admin` is an administrator's connection. Adds the pages that were purged to `purged`. False,
 * with a sentence in `why`, if it takes too long.
 */
bool quiesce(struct rpc_client *admin, const struct quiesce_state *state, uint64_t *purged,
             char *why, size_t size);

#endif
