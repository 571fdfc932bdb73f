/*
 * The opening handshake of WebSocket (RFC 6455, section 4) with an origin, on a connection of its
 * own: the request goes there as it came, but for the fields that end at the proxy, and the
 * response must be one with status 101 (RFC 9110, section 7.8).
 *
 * Everything here is for the connection's worker.
 */
#ifndef SUNPROXY_SERVER_HTTP_HTTP_UPGRADE_H
#define SUNPROXY_SERVER_HTTP_HTTP_UPGRADE_H

#include "base/buf.h"
#include "http/request_head.h"
#include "net/connection.h"

struct http_upgrade;

/*
 * The protocol that is asked for is WebSocket, version 13, with a key, by a GET without a body.
 * Other requests are served as if they did not ask.
 */
bool http_upgrade_is_wanted(const struct http_request *request);

/* What the origin is asked for. */
struct http_upgrade_request {
    struct span url;    /* of http: TLS would have to be spoken on the socket */
    struct span host;   /* the value of Host; empty: that of the URL */
    struct span fields; /* end-to-end field lines */
};

/* Bytes that a handshake takes, for the account of its owner. */
size_t http_upgrade_bytes(const struct http_upgrade_request *request);

/*
 * A handshake for a GET, to be destroyed by http_upgrade_destroy(). ended() is called once after
 * http_upgrade_begin(), in a callback of the loop: `switched` if the origin has agreed. NULL
 * without memory.
 */
struct http_upgrade *http_upgrade_create(const struct http_upgrade_request *request,
                                         void (*ended)(void *context, bool switched),
                                         void *context);

/*
 * Begins, on a connected, non-blocking socket, which is the handshake's from then on in any case.
 * False if it cannot be begun; ended() is not called then. A timeout of 0 is none.
 */
bool http_upgrade_begin(struct http_upgrade *upgrade, struct net_connections *set, int fd,
                        int64_t timeout_us);

/* When the origin has agreed: the socket, which is the caller's from then on. */
int http_upgrade_take_socket(struct http_upgrade *upgrade);

/* Likewise: appends the head of the response as it goes to the client. The buffer says if that
 * failed. */
void http_upgrade_write_head(const struct http_upgrade *upgrade, struct span via, struct buf *out);

/* Likewise: what has come behind the head. */
struct span http_upgrade_rest(const struct http_upgrade *upgrade);

/* Ends it, at any time. NULL is harmless. */
void http_upgrade_destroy(struct http_upgrade *upgrade);

/* Has the origin sent a part of a response? */
bool http_upgrade_is_answered(const struct http_upgrade *upgrade);

#endif
