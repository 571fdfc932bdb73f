/*
 * Tunnels: those that CONNECT asks for (RFC 9110, section 9.3.6), and connections that are upgraded
 * to WebSocket (section 7.8). The fetcher connects, by its rules for addresses and ports; its
 * thread passes the socket to the connection's worker by a task. For CONNECT, the response is 200
 * then; for an upgrade, the handshake with the origin comes first (http_upgrade.h). From the
 * response on a relay (net/relay.h) takes the connection over. What a client sends before waits. A
 * CONNECT that fails is refused, and that is dropped; an upgrade that fails becomes a request like
 * any other, without Upgrade, which is safe to repeat since it is a GET.
 *
 * A tunnel counts a request of its connection until the relay does. While it connects, the end of
 * the client's side is taken for that of the client: the two cannot be distinguished.
 *
 * Everything here is for the connection's worker.
 */
#ifndef SUNPROXY_SERVER_HTTP_HTTP_TUNNEL_H
#define SUNPROXY_SERVER_HTTP_HTTP_TUNNEL_H

#include "net/protocol.h"

struct http_exchange;
struct http_tunnel;
struct http_user;

/*
 * Begins to connect to the host and port of the URL, for CONNECT, or for an upgrade to a member of
 * x->origin, for that URL of the client and with the fields of x->asked. The response comes later,
 * or has been made.
 */
void http_tunnel_begin(struct http_exchange *x, struct span url);

/* NULL: none. */
const struct http_user *http_tunnel_user(const struct http_tunnel *tunnel);

/* For the net's received(), stopped() and closed() of a connection that has a tunnel. */
enum net_input http_tunnel_received(struct http_tunnel *tunnel, struct span *input);
void http_tunnel_stopped(struct http_tunnel *tunnel);
void http_tunnel_closed(struct http_tunnel *tunnel);

#endif
