/*
 * Brings the daemon into the same state at every point of the soak: policy and capacity as at the
 * start, an empty cache, no fetch, no connection but ours, and none to the origin.
 */
#ifndef SUNPROXY_TESTS_SOAK_QUIESCE_H
#define SUNPROXY_TESTS_SOAK_QUIESCE_H

#include <stdbool.h>
#include <stddef.h>

#include "rpc/client.h"

/* `admin` is an administrator's connection. False, with a sentence in `why`, if it takes too long.
 */
bool quiesce(struct rpc_client *admin, char *why, size_t size);

#endif
