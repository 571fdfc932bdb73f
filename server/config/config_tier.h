/*
 * The options on the shared tier (tier/tier.h): --shared and --shared-key-file.
 */
#ifndef SUNPROXY_SERVER_CONFIG_TIER_H
#define SUNPROXY_SERVER_CONFIG_TIER_H

#include "server/config/options.h"
#include "tier/tier.h"

struct config_tier {
    struct tier_servers servers; /* none without --shared */
    struct peer_keys keys; /* of the key file, which is among the files of the configuration */
};

/* False with a line in `why` for each value that is refused. */
bool config_tier_read(struct config_tier *tier, const struct options *options, struct buf *why);

#endif
