/*
 * A stream: what a request comes from and its response goes to, as the front sees it. On a
 * connection of HTTP/1.1 one request is read at a time, and responses are sent in order: streams
 * follow each other. Only the files of the connection (http_connection.h) know its socket.
 *
 * Everything here is for the connection's worker.
 */
#ifndef SUNPROXY_SERVER_HTTP_HTTP_STREAM_H
#define SUNPROXY_SERVER_HTTP_HTTP_STREAM_H

#include <netinet/in.h>

#include "base/clients.h"
#include "net/output.h"
#include "net/peer.h"
#include "net/worker.h"

struct client;
struct http_connection;
struct http_worker;

enum { HTTP_QUEUED = 1 << 18 }; /* bytes of bodies that are queued at once on a connection */

/* What the connection does for the response. IDLE <-> WAITING, IDLE <-> SENDING. */
enum http_activity {
    HTTP_IDLE,
    HTTP_WAITING, /* it waits for the exchange, and is not idle to its timeouts */
    HTTP_SENDING, /* it has the output */
};

struct http_stream {
    struct http_connection *connection;
    struct http_worker *worker;
    struct net_output output; /* the next part of the response; its release() is the owner's */
    enum http_activity activity;
};

/* A request of the connection begins, whose exchange has the stream; its body is the one that is
 * read, if it has one. */
void http_stream_begin(struct http_stream *stream, struct http_connection *connection);

/* The response has been sent whole, or is not to be sent. The next request may be read. */
void http_stream_free(struct http_stream *stream);

/* ---- the request ----------------------------------------------------------------------------- */

/* Of the monotonic clock: when its first bytes were read. */
int64_t http_stream_arrived_us(const struct http_stream *stream);

/* Is more of its body to come? */
bool http_stream_awaits_body(const struct http_stream *stream);

/* The rest of its body is not read: the connection ends behind the response. */
void http_stream_drop_body(struct http_stream *stream);

/* There is memory for more of its body. */
void http_stream_read_on(struct http_stream *stream);

/* Who has sent it: the peer of the socket, or the client that a load balancer names. */
const struct net_peer *http_stream_sender(const struct http_stream *stream);

/* The sender's address as text; "unix" over AF_UNIX. */
struct span http_stream_sender_name(struct http_stream *stream);

/* Writes the address of a peer likewise. */
struct span http_peer_name(const struct net_peer *peer, char text[INET6_ADDRSTRLEN]);

/* Does a load balancer say that its client has connected with TLS? */
bool http_stream_is_tls(const struct http_stream *stream);

/* The sender's client; NULL without one. */
struct client *http_stream_client(const struct http_stream *stream);

/* Do rates bound the sender's client? */
bool http_stream_is_bounded(const struct http_stream *stream);

/* A reference to the client with this address; NULL without memory. */
struct client *http_stream_find_client(const struct http_stream *stream,
                                       const struct sockaddr_storage *address);

/* A reference to the client of this name, as clients_find_named(); NULL without memory. */
struct client *http_stream_find_named(const struct http_stream *stream, enum client_kind kind,
                                      struct span name);

/* ---- the response ---------------------------------------------------------------------------- */

bool http_stream_is_open(const struct http_stream *stream);

/* Is the server stopping or leaving, so that the connection does not persist? */
bool http_stream_is_draining(const struct http_stream *stream);

/* The connection waits for the exchange, or does not any more. No effect while it is sending. */
void http_stream_set_waiting(struct http_stream *stream, bool waiting);

/* Sends stream->output, whose release() is called when that has been written or dropped. */
void http_stream_send(struct http_stream *stream);

/* Sends other output in front of what follows. */
void http_stream_send_interim(struct http_stream *stream, struct net_output *output);

/* The end of the response is queued: the next request is read, or the connection ends if it does
 * not persist. */
void http_stream_end(struct http_stream *stream, bool persistent);

/* No request is read any more; the connection ends by http_connection_end() at the latest. */
void http_stream_set_last(struct http_stream *stream);

/* The peer is made to notice that what has been sent is not the whole: the connection is reset,
 * now or when it is closed. */
void http_stream_reset(struct http_stream *stream);
void http_stream_set_reset(struct http_stream *stream);

/* Sends what is queued, and closes; or reads the next request if it has come and may begin. The
 * stream may be free. */
void http_connection_end(struct http_connection *connection);
void http_connection_read_next(struct http_connection *connection);

/* ---- the worker ------------------------------------------------------------------------------ */

/* Runs a task on the stream's worker, soon. [any thread] */
void http_stream_post(const struct http_stream *stream, struct net_task *task);

/* Its worker, which outlives it; and the number of that. */
struct net_worker *http_stream_net_worker(const struct http_stream *stream);
unsigned http_stream_worker_number(const struct http_stream *stream);

#endif
