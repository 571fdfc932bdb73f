/*
 * Clients that vanish: each makes a connection of its own and is gone before its answer is read.
 */
#ifndef SUNPROXY_TESTS_SOAK_VANISH_H
#define SUNPROXY_TESTS_SOAK_VANISH_H

#include "tests/soak/lane.h"

/* NULL, or what kept the client from its part. Odd draws end with a reset, the others orderly. */
const char *vanish(const struct mix_ask *ask, const struct lane_address *to);

#endif
