/*
 * Which requests of the forward proxy need a user, and the user of a request (RFC 9110 section 11.7,
 * RFC 7617). Requests over AF_UNIX, of peers (http_peer.h), and to rows of --origin, need none.
 *
 * A request waits while its user is checked (server/users/users.h), which is HTTP_AWAITED. What
 * follows it on its connection waits in the net.
 *
 * A connection knows the user of its latest request that was accepted, by a hash of the field
 * Proxy-Authorization under a key of the process: with the same field the next request costs a
 * comparison.
 *
 * Everything here is for the connection's worker.
 */
#ifndef SUNPROXY_SERVER_HTTP_HTTP_AUTHENTICATE_H
#define SUNPROXY_SERVER_HTTP_HTTP_AUTHENTICATE_H

#include "base/span.h"

struct http_exchange;

enum http_asked {
    HTTP_USER_SETTLED,  /* x->user is the user; NULL: none is needed */
    HTTP_USER_ANSWERED, /* a page has been sent */
    HTTP_USER_AWAITED,  /* resume() is called when it is settled, unless the exchange ends before */
};

/* Finds the user of this request for this URL. The exchange is resume()'s. */
enum http_asked http_authenticate(struct http_exchange *x, struct span url,
                                  void (*resume)(struct http_exchange *x));

#endif
