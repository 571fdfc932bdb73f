/*
 * What an exchange of an RPC request asks for: URL, row of --origin and fields, the client's or
 * those of where redirects have led (front_way.h).
 *
 * Everything here is for the request's worker.
 */
#ifndef SUNPROXY_SERVER_RPC_FRONT_TARGET_H
#define SUNPROXY_SERVER_RPC_FRONT_TARGET_H

#include "server/rpc/front.h"

/*
 * Sets URL, route and fields of front->request. They refer to memory of the way, the client's call
 * or this thread, which stays until the exchange has been started. 0; or why the request is
 * refused, with a static sentence in *why.
 */
enum failure front_target_set(struct front_exchange *front, const char **why);

/*
 * Sets URL, route and flags of a request for a URL by a row of --origin, as those of one over HTTP
 * in absolute form; the URL is in memory of this thread then. 0; or the failure if there is no row,
 * with a static sentence in *why.
 */
enum failure front_target_row(const struct http_origins *origins, struct request *request,
                              struct span fetched, const char **why);

/* struct front's: sets the fields that go to the origin. They stay until the next call. */
void front_target_fields(struct exchange *exchange);

#endif
