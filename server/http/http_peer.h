/*
 * Requests of peers (origins/origin_peers.h): recognised by the field that authenticates them, and
 * served as any others, but that no other peer is asked for them, and that the rules of the
 * operator, the check of users and the client's rates have been applied where they came from.
 */
#ifndef SUNPROXY_SERVER_HTTP_HTTP_PEER_H
#define SUNPROXY_SERVER_HTTP_HTTP_PEER_H

struct http_exchange;

#define HTTP_PEER_TAKEN 204u

/*
 * The request has PEER_FIELD: sets x->peer and x->peer_code. 0; or the status of a refusal, with a
 * reason; or HTTP_PEER_TAKEN, if it has news, which have been taken: the page is made.
 */
unsigned http_peer_take(struct http_exchange *x, const char **reason);

/* The request waits: its sender is told that it has arrived. */
void http_peer_reassure(struct http_exchange *x);

#endif
