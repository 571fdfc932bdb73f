/* Tunnels of the HTTP front whose connection to the origin is a pair of sockets. */
#ifndef SUNPROXY_TESTS_SERVER_HTTP_TUNNELS_H
#define SUNPROXY_TESTS_SERVER_HTTP_TUNNELS_H

#include "server/http/http_service.h"
#include "tests/unit/server/front_server.h"

struct http_tunnel_stats tunnels_stats(void);

/* Waits until no tunnel is open, and stops the server. */
void tunnels_end(void);

/* The fetcher connects, and hands over a socket: the other end of the one returned. */
int tunnels_hand_over(struct scene_fetch *fetch);

/* Receives these bytes. */
void tunnels_expect(int fd, const char *text);

#endif
