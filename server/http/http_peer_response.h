/*
 * Responses to peers (http_peer.h). They state that they are a peer's, and whether they are the one
 * to the request.
 */
#ifndef SUNPROXY_SERVER_HTTP_HTTP_PEER_RESPONSE_H
#define SUNPROXY_SERVER_HTTP_HTTP_PEER_RESPONSE_H

#include <stdbool.h>

#include "base/buf.h"
#include "http/response_head.h"
#include "origins/peer_auth.h"

struct http_exchange;

/*
 * What is stored of a response means the same at a peer if it gets what the origin has sent: rules
 * have changed what that says about storing, or removed a field with tags. Are the object's field
 * lines, of which `known` is known, to be restored for a peer; and appends them restored.
 */
bool http_peer_restores(const struct http_exchange *x, unsigned known);
void http_peer_restore(const struct http_exchange *x, struct buf *lines);

/* Writes the field of the response to a peer; nothing, to another client. */
void http_peer_write(struct http_writer *lines, const struct http_exchange *x,
                     enum peer_outcome outcome);

#endif
