/*
 * What is kept of a request that has been answered: counts, and a line in the access log. On the
 * request's worker.
 */
#ifndef SUNPROXY_SERVER_ANSWERED_H
#define SUNPROXY_SERVER_ANSWERED_H

#include "proxy.h"
#include "server/service.h"

/* With a page, from there; `victims` left for it, NULL if none are told. */
void answered_page(struct service *service, const struct rpc_request *rpc, struct span url,
                   proxy_source source, const struct page *page,
                   const struct cache_victims *victims);

/* With a failure. */
void answered_failure(struct service *service, const struct rpc_request *rpc, struct span url,
                      proxy_status status);

#endif
