/*
 * The client for which a load balancer has connected, as its header of the PROXY protocol says.
 *
 * Everything here is for the connection's worker.
 */
#ifndef SUNPROXY_SERVER_HTTP_HTTP_SOURCE_H
#define SUNPROXY_SERVER_HTTP_HTTP_SOURCE_H

#include <stdbool.h>

#include "net/proxy_header.h"

struct http_connection;
struct net_peer;

/* Is this peer one that may send the header? The context is the http_service. */
bool http_source_is_stated_by(void *context, const struct net_peer *peer);

/*
 * Reads the header of the PROXY protocol from the bytes at the front of the connection. Sets *len
 * to its length, and the connection's source, if it is complete. Bad is also a header from a peer
 * that may send none, one for which there is no memory, and one for a client that has as many
 * connections as it may.
 */
enum proxy_header_result http_source_read(struct http_connection *connection, struct span bytes,
                                          size_t *len);

#endif
