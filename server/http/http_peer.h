/*
 * Requests of peers (origins/origin_peers.h): recognised by the field that authenticates them, and
 * served as any others, but that no other peer is asked for them, and that the rules of the
 * operator, the check of users and the client's rates have been applied where they came from.
 */
#ifndef SUNPROXY_SERVER_HTTP_HTTP_PEER_H
#define SUNPROXY_SERVER_HTTP_HTTP_PEER_H

#include <stdbool.h>

struct client;
struct http_exchange;

#define HTTP_PEER_TAKEN 204u

/*
 * The request has PEER_FIELD: sets x->peer and x->peer_code. 0; or the status of a refusal, with a
 * reason; or HTTP_PEER_TAKEN, if it has news, which have been taken: the page is made.
 */
unsigned http_peer_take(struct http_exchange *x, const char **reason);

/* After HTTP_PEER_TAKEN: are the news on disk, as http_purge_is_noted()? */
bool http_peer_is_noted(struct http_exchange *x);

/*
 * A reference to the client that has asked the peer: each is one here as well, so that one does not
 * use up the share of all that the peer serves. NULL: it is not known, or there is no memory.
 */
struct client *http_peer_find_client(struct http_exchange *x);

/* The request waits: its sender is told that it has arrived. */
void http_peer_reassure(struct http_exchange *x);

#endif
