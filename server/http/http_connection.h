/*
 * A connection of HTTP/1.1, for the files that know its socket: http_input.c (its input),
 * http_stream.c (its output), http_source.c (the client of a load balancer) and http_tunnel.c.
 *
 * It takes heads and bodies of requests, one request at a time. What follows a request whose
 * response is not queued whole waits in the net (NET_INPUT_HOLD), so that responses are in order,
 * and so that of many pipelined requests no more than one waits for an origin.
 *
 * Everything here is for the connection's worker.
 */
#ifndef SUNPROXY_SERVER_HTTP_HTTP_CONNECTION_H
#define SUNPROXY_SERVER_HTTP_HTTP_CONNECTION_H

#include "http/chunked.h"
#include "net/connection.h"
#include "net/proxy_header.h"
#include "server/http/http_stream.h"

struct http_tunnel;
struct http_user;
struct http_worker;

enum { HTTP_UNWRITTEN = 16 }; /* responses that are queued at once on a connection */

struct http_connection {
    struct net_connection net; /* first */
    struct http_worker *worker;
    struct http_tunnel *tunnel;  /* that it is, or is to become; NULL: none */
    struct http_stream *current; /* of an exchange whose response is not queued whole; NULL: none */
    char *head;                  /* part of a head; charged (MEMORY_RECORDS) */
    size_t head_len, head_size;
    size_t searched; /* of the head that is read */
    bool tuned;      /* net_near_peer_tune() has been called, */
    uint8_t outputs; /* or else that many times something was sent */
    bool receiving;  /* received() runs */
    bool ending;     /* the response that is queued is the last one */

    /* The body of the current request, while it is received. */
    bool in_body;
    bool body_is_chunked;
    uint64_t body_left;     /* of a body that is not chunked */
    uint32_t body_progress; /* bytes since its time began anew */
    struct chunked chunked;

    struct http_user *user; /* of the latest request that was accepted: a reference; NULL: none */

    char sender[INET6_ADDRSTRLEN]; /* http_stream_sender_name(); empty: not written yet */

    bool awaits_source;      /* a header of the PROXY protocol comes first */
    bool tls;                /* it says that the client has connected with TLS */
    struct net_peer *source; /* the client that it names; owned; NULL: that of the socket */
};

/* Who sends the requests, which is not the peer of the socket behind a load balancer. */
static inline const struct net_peer *
http_sender(const struct http_connection *connection)
{
    return connection->source ? connection->source : &connection->net.peer;
}

/*
 * May the next request begin? The response before it must be queued whole, and little of what is
 * queued may be left: a client that does not read has as much.
 */
static inline bool
http_connection_takes_request(const struct http_connection *c)
{
    return !c->current && c->net.out.bytes < HTTP_QUEUED && c->net.requests < HTTP_UNWRITTEN;
}

#endif
