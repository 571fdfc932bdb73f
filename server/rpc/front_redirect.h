/*
 * Where a redirect leads an RPC request (RFC 9110 section 15.4, RFC 3986 section 5).
 *
 * Everything here is for the request's worker.
 */
#ifndef SUNPROXY_SERVER_RPC_FRONT_REDIRECT_H
#define SUNPROXY_SERVER_RPC_FRONT_REDIRECT_H

#include "server/rpc/front.h"

/*
 * The exchange has a response with this Location. Sets URL and fields of front->way to where it
 * leads; or front->why, and a sentence for the client, if it is not followed.
 */
void front_redirect(struct front_exchange *front, struct span location);

#endif
