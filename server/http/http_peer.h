/*
 * Requests of peers (origins/origin_peers.h): recognised by the field that authenticates them, and
 * served as any others, but that no other peer is asked for them, and that the rules of the
 * operator, the check of users and the client's rates have been applied where they came from.
 * A response states that it is a peer's, and whether it is the one to the request.
 */
#ifndef SUNPROXY_SERVER_HTTP_HTTP_PEER_H
#define SUNPROXY_SERVER_HTTP_HTTP_PEER_H

#include "http/response_head.h"
#include "origins/peer_auth.h"

struct http_exchange;

#define HTTP_PEER_TAKEN 204u

/*
 * The request has PEER_FIELD: sets x->peer and x->peer_code. 0; or the status of a refusal, with a
 * reason; or HTTP_PEER_TAKEN, if it has news, which have been taken: the page is
 * made.
 */
unsigned http_peer_take(struct http_exchange *x, const char **reason);

/* The request waits: its sender is told that it has arrived. */
void http_peer_reassure(struct http_exchange *x);

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
