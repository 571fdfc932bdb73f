/*
 * The options on peers: --peers, --peer-self and --peer-key-file. The list is read as the members
 * of a row of --origin are (server/http/http_origins.h).
 */
#ifndef SUNPROXY_SERVER_CONFIG_PEERS_H
#define SUNPROXY_SERVER_CONFIG_PEERS_H

#include "origins/origin_peers.h"
#include "server/config/options.h"
#include "server/http/http_origins.h"

struct config_peers {
    struct http_origins rows; /* one, or none without --peers */
    struct origin_peers group;
    char *text; /* owned: the row's */
};

/* Reads them but for the key. False with a line in `why` for each that is refused. */
bool config_peers_read(struct config_peers *peers, const struct options *options, struct buf *why);

void config_peers_free(struct config_peers *peers);

/* NULL: there are none. */
static inline struct origin_peers *
config_peers_of(struct config_peers *peers)
{
    return peers->rows.count ? &peers->group : NULL;
}

#endif
