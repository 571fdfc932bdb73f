/* A tier for the tests of untold purges: its server is never asked, since it is not started. */
#ifndef SUNPROXY_TESTS_SERVER_UNTOLD_TIER_H
#define SUNPROXY_TESTS_SERVER_UNTOLD_TIER_H

#include "tier/tier.h"

struct tier *untold_open_tier(void);

/* Purges that. */
void untold_purge(struct tier *tier, enum cache_by by, bool soft, const char *name,
                  const char *scope);

#endif
