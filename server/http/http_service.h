/*
 * The HTTP front as a part of the daemon: what --max-tunnels says, and the protocol of its
 * listeners, which share the workers of the RPC server.
 *
 * One per process. It is made before the workers start, and freed after they have ended.
 */
#ifndef SUNPROXY_SERVER_HTTP_HTTP_SERVICE_H
#define SUNPROXY_SERVER_HTTP_HTTP_SERVICE_H

#include <stdatomic.h>

#include "base/client_share.h"
#include "base/keyed_hash.h"
#include "http/request_head.h"
#include "net/server.h"
#include "server/service.h"

struct http_worker;

/* Of this proxy, in Cache-Status (RFC 9211). */
#define HTTP_CACHE_NAME "sunproxy"

struct http_service {
    struct service *service; /* not owned */

    /* read-only while workers run */
    struct http_head_limits limits;
    char pseudonym[32];    /* in Via (RFC 9110, section 7.6.3): another one for each daemon */
    char via[2][40];       /* the members of Via for messages that came in HTTP/1.0 and HTTP/1.1 */
    char hit_text[128];    /* bytes of hit_lines */
    struct span hit_lines; /* Via and Cache-Status of hits, up to the parameters; of responses
                              that came in HTTP/1.1 */
    struct hash_key user_key;    /* of what connections keep of credentials (http_authenticate.h) */
    struct client_share tunnels; /* connected, or to be connected; any thread */
    struct http_worker *workers; /* owned; by the numbers of the net's */
};

/* `tunnels` bounds those that are open. False without memory. */
bool http_service_init(struct http_service *http, struct service *service, uint32_t tunnels);

/*
 * The protocols of listeners, whose context is the http_service (http_input.c). The
 * connections of the second one begin with a header of the PROXY protocol (net/proxy_header.h).
 */
extern const struct net_protocol http_protocol;
extern const struct net_protocol http_proxied_protocol;

struct http_tunnel_stats {
    uint64_t open; /* connected, or to be connected */
    uint64_t opened;
    uint64_t sent_bytes;     /* from clients to origins */
    uint64_t received_bytes; /* the other way */
};

/* [any] */
void http_service_get_tunnels(const struct http_service *http, struct http_tunnel_stats *stats);

/*
 * Another configuration is in force: ends the tunnels, and the requests in work, of users that it
 * does not have with the same password (http_input.c). [any thread]
 */
void http_service_recheck_users(struct http_service *http);

/* The server is destroyed. Harmless if all is zero. */
void http_service_free(struct http_service *http);

#endif
