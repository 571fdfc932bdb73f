/*
 * The calls of version 2 that are not fetches, one at a time. Each returns EX_OK, or the exit
 * status after a complaint.
 */
#ifndef SUNPROXY_CLIENT_ADMIN_H
#define SUNPROXY_CLIENT_ADMIN_H

#include <stdbool.h>

#include "proxy.h"
#include "rpc/client.h"

/* *stats is to be freed with admin_free_stats() when EX_OK comes back. */
int admin_stat(struct rpc_client *client, int64_t timeout_us, proxy_stats *stats);
void admin_free_stats(proxy_stats *stats);

struct admin_purged {
    uint64_t count; /* of removed pages; with a preview, of those that would be */
    bool more;      /* pages that are not in memory are not counted */
    bool here;      /* other daemons that share pages do not know of it yet, which was a complaint;
                       the number is not known */
};

int admin_purge(struct rpc_client *client, int64_t timeout_us, const proxy_purge_args *args,
                bool preview, struct admin_purged *purged);

/* *text is what was changed, to be freed with free() when EX_OK comes back. Each line of what is
 * wrong is a complaint. */
int admin_reload(struct rpc_client *client, int64_t timeout_us, char **text);

/* *result is PROXY_OK, and to be freed with xdr_free() when EX_OK comes back. */
int admin_origin(struct rpc_client *client, int64_t timeout_us, const proxy_origin_args *args,
                 proxy_origin_result *result);

/* What would be in force; *state is to be freed with admin_free_state() when EX_OK comes back. */
int admin_set_preview(struct rpc_client *client, int64_t timeout_us, const proxy_set_args *args,
                      proxy_set_state *state);
void admin_free_state(proxy_set_state *state);

/* *kept is the number of pages that are still in the cache. */
int admin_set(struct rpc_client *client, int64_t timeout_us, const proxy_set_args *args,
              uint64_t *kept);

/* *text is the caller's to free(), and lines "NAME: VALUE", when EX_OK comes back. */
int admin_explain(struct rpc_client *client, int64_t timeout_us, const proxy_explain_args *args,
                  char **text);

#endif
