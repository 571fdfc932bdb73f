/*
 * What the files of the HTTP front share. A connection takes one request at a time
 * (http_connection.c), on a stream of its own (http_stream.h): its head is read and routed
 * (http_route.c), and an exchange begins (http_begin.c). The response is an object of the cache, as
 * it stands or while it grows (http_response.c), or a page of the proxy's own (http_page.c), and is
 * queued in parts (http_exchange.c, http_output.c); or the connection becomes a tunnel
 * (http_tunnel.c). The next request is read once the response is queued whole and the request's
 * body has been read.
 *
 * Everything here is for the connection's worker.
 */
#ifndef SUNPROXY_SERVER_HTTP_HTTP_FRONT_H
#define SUNPROXY_SERVER_HTTP_HTTP_FRONT_H

#include "base/container_of.h"
#include "http/range.h"
#include "http/request_head.h"
#include "http/response_head.h"
#include "net/counter.h"
#include "net/protocol.h"
#include "proxy.h"
#include "proxy/exchange.h"
#include "server/http/http_service.h"
#include "server/http/http_stream.h"

enum {
    HTTP_QUEUED = 1 << 18,          /* bytes of bodies that are queued at once on a connection */
    HTTP_QUEUED_COMPLETE = 1 << 20, /* likewise, of an object that is complete */
    HTTP_UNWRITTEN = 16,            /* responses that are queued at once on a connection */
    HTTP_RUNS = 17,              /* of a body, queued at once: HTTP_QUEUED in segments of 16 KiB */
    HTTP_FIELD_RUNS = 8,         /* of an object's field lines that are sent from their place */
    HTTP_HEAD_BYTES = 4096,      /* of a response, beside the object's field lines; or a page */
    HTTP_PAGE_LINES = 1024,      /* of a page, beside those that each one has */
    HTTP_POOLED_EXCHANGES = 256, /* kept by a worker for reuse, and not charged */
    HTTP_FIELDS_MAX = 1 << 17, /* of a request, as they go on to the origin: more than any can be */
};

/* The status in the log if the client has closed the connection before the response. */
#define HTTP_CLIENT_CLOSED 499u

/* What is sent of an object's body: bytes from `next` up to `end`. */
struct http_body {
    struct object_place place;
    uint64_t next;
    uint64_t end;  /* UINT64_MAX: the end of the object */
    uint64_t sent; /* bytes that have been queued, and were not dropped */
    size_t queued; /* of those, in the output */
    bool chunked;
    bool until_close; /* its end is that of the connection */

    /* Of a multipart/byteranges; count 0: it is none. Only of an object that is complete. */
    struct http_ranges parts;
    unsigned part; /* that is begun next */
    struct http_multipart multipart;
    char boundary[HTTP_BOUNDARY_SIZE];
};

/* A copy of bytes; owned and charged. */
struct http_kept {
    char *bytes; /* NULL: none */
    size_t len;
};

/*
 * How far the response is.
 *
 *   PENDING -> STARTED            its head is made
 *   STARTED -> ENDED              its end is queued
 *   any of these -> BROKEN        it breaks off behind what is queued
 *   any of these -> FINISHED      nothing more is queued or sent: freed once the exchange is OVER
 */
enum http_stage {
    HTTP_PENDING,
    HTTP_STARTED,
    HTTP_ENDED,
    HTTP_BROKEN,
    HTTP_FINISHED,
};

/* Is the exchange to call? OVER -> SERVED -> CANCELLED -> OVER, and SERVED -> OVER. */
enum http_serving {
    HTTP_OVER,      /* its last call has come, or it was never started */
    HTTP_SERVED,    /* it may call */
    HTTP_CANCELLED, /* exchange_cancel() has been called, and its last call is to come */
};

/* A request and its response. */
struct http_exchange {
    struct exchange exchange; /* first */
    struct http_stream stream;
    struct net_task task;            /* runs the exchange after a wake-up */
    SLIST_ENTRY(http_exchange) free; /* the worker's pool */

    /* The request. Its spans are valid while it is started, and from then on in `kept_head`. */
    struct http_request request;
    struct http_kept kept_head;   /* if it is not answered at once, or is logged */
    struct http_kept kept_fields; /* of `asked`, for a tunnel */
    struct http_kept kept_lines;  /* of the object that are sent, if they are in too many runs */
    struct request asked;         /* of the proxy; the fields are those that go on to the origin */
    struct net_peer *stated;     /* the peer that a trusted proxy states; owned; NULL: the sender */
    struct client *client;       /* its client, once it is known: a reference; NULL without one */
    struct http_origin *origin;  /* of a reverse proxy; NULL: forward */
    struct origin_choice choice; /* of its members, for the connection of an upgrade */

    int64_t arrived_us;   /* of the monotonic clock */
    enum failure failure; /* of the exchange; 0: none */
    bool charged;
    bool has_token;  /* of the client's rate of fetches, for the connection of an upgrade */
    bool logged;     /* http_log_add() is called at its end */
    bool persistent; /* the connection persists behind the response */
    enum http_stage stage;
    enum http_serving serving;

    /* The response. */
    unsigned status;
    struct http_body body;
    unsigned piece_count; /* of the head, until it is queued */
    size_t head_bytes;    /* of those */
    size_t head_len;      /* of `head`, that are used, until it is queued */
    /* From here on not zero at first. */
    struct iovec pieces[1 + HTTP_FIELD_RUNS + 3 + HTTP_RUNS];
    char frame[24]; /* of a chunk */
    char head[HTTP_HEAD_BYTES];
};

/* What a worker counts of its tunnels. */
struct http_tunnel_counts {
    net_counter opened;
    net_counter sent_bytes;     /* to origins */
    net_counter received_bytes; /* from origins */
};

/* What a worker keeps for all of its connections, on cache lines of its own. */
struct http_worker {
    _Alignas(64) struct http_service *http;
    SLIST_HEAD(, http_exchange) pool;
    struct http_tunnel_counts tunnels;
    unsigned uncharged; /* exchanges there are, pooled or not, that the account does not count */
    char url[PROXY_MAX_URL];  /* of the request that is started */
    char path[PROXY_MAX_URL]; /* likewise: http_origins_clean_path() */
    struct buf fields;        /* likewise: its end-to-end fields */
    struct span unkept;       /* head of the request that is begun, for the request database; empty
                                 once it has begun */
};

/* The client, which is not the sender if that is a trusted proxy. */
static inline const struct net_peer *
http_peer(const struct http_exchange *x)
{
    return x->stated ? x->stated : http_stream_sender(&x->stream);
}

static inline struct http_exchange *
http_exchange_of(struct exchange *exchange)
{
    return (struct http_exchange *)exchange;
}

static inline struct http_exchange *
http_exchange_of_stream(struct http_stream *stream)
{
    return container_of(stream, struct http_exchange, stream);
}

static inline struct http_service *
http_service_of(const struct http_exchange *x)
{
    return x->stream.worker->http;
}

/* ---- http_begin.c ---------------------------------------------------------------------------- */

/*
 * A request has come: answers it, now or later. `head` are the bytes of its head. False without
 * memory: the connection ends.
 */
bool http_exchange_begin(struct http_connection *connection, struct http_worker *worker,
                         const struct http_request *request, struct span head);

/* Answers a request that cannot be read with a page, after which the connection ends. */
void http_exchange_refuse(struct http_connection *connection, struct http_worker *worker,
                          const struct http_request *request, const struct http_refusal *refusal);

/* ---- http_serve.c ---------------------------------------------------------------------------- */

/* Starts the exchange. True: the last call has come. */
bool http_exchange_start(struct http_exchange *x, struct span url);

/* The connection has become a tunnel, by a response with this status that the tunnel sends. The
 * exchange is not the caller's any more. */
void http_exchange_switch(struct http_exchange *x, unsigned status);

/* Begins the exchange of a request that was to become a tunnel, and does not. */
void http_exchange_serve(struct http_exchange *x);

/* Sends a page about a failure; returns its status. The exchange is not the caller's any more. */
unsigned http_exchange_send_failure(struct http_exchange *x, enum failure why,
                                    struct span sentence);

/* ---- http_exchange.c ------------------------------------------------------------------------- */

/* The connection's current request; NULL without memory. */
struct http_exchange *http_exchange_create(struct http_connection *connection,
                                           struct http_worker *worker);

/* Frees it; also where its worker's thread has ended, and its exchange has not. */
void http_exchange_discard(struct http_exchange *x);

void http_worker_free_pool(struct http_worker *worker);

/*
 * Both copy what stands in the memory of the net and the worker: the head, of a request that is
 * logged or not answered at once; head and fields, of one that becomes a tunnel. False without
 * memory.
 */
bool http_exchange_keep_head(struct http_exchange *x, struct span head);
bool http_exchange_keep(struct http_exchange *x, struct span head);

/* Allocates `len` bytes, which the exchange frees. False without memory. */
bool http_exchange_allocate(struct http_exchange *x, struct http_kept *kept, size_t len);

/* Queues what can be sent, once the output before it has been written. It may free the exchange. */
void http_exchange_advance(struct http_exchange *x);

/* Both send a page: the one that was made (http_page.c), or one that they make. */
void http_exchange_send_made(struct http_exchange *x);
void http_exchange_send_page(struct http_exchange *x, unsigned status, struct span reason,
                             const char *detail);

/* The response cannot be completed: its peer is made to notice. */
void http_exchange_break_off(struct http_exchange *x);

/* Nothing more is queued or sent: cancels the exchange, and frees it once it has ended. */
void http_exchange_finish(struct http_exchange *x);

/* Nothing more is sent: the connection has been closed, or the request is not whole. */
void http_exchange_abandon(struct http_exchange *x);

/* The body of the request is broken: the response is a page, unless it has begun. The connection
 * ends. */
void http_exchange_break(struct http_exchange *x, unsigned status, const char *reason);

/* More of the request's body. Returns the bytes that were taken; after fewer than `len` the input
 * is released (net_connection_release_input()) when there is memory for more. */
size_t http_exchange_send(struct http_exchange *x, struct span bytes);
void http_exchange_send_end(struct http_exchange *x);

/* ---- http_client.c --------------------------------------------------------------------------- */

/* Its address as X-Forwarded-For has it; "unix" over AF_UNIX. Written to `text` if it is not that
 * of the sender. */
struct span http_client_name(struct http_exchange *x, char text[INET6_ADDRSTRLEN]);

/* The client, as long as the exchange; NULL without memory. */
struct client *http_client(struct http_exchange *x);

/* Does its rate of fetches bound the request, which has no token yet? */
bool http_client_is_bounded(const struct http_exchange *x);

/* ---- http_forwarded.c ------------------------------------------------------------------------ */

/* Is this peer one that may state the client (--trust-forwarded)? The context is the http_service.
 */
bool http_forwarded_is_trusted(void *context, const struct net_peer *sender);

/* Is the sender? */
bool http_forwarded_are_read(const struct http_exchange *x);

/*
 * Takes client, scheme and host from the request's fields, if the sender may state them, and the
 * scheme from the header of the PROXY protocol. 0, or the status of a refusal with a static
 * sentence part in *reason.
 */
unsigned http_forwarded_take(struct http_exchange *x, const char **reason);

/* ---- http_fields.c --------------------------------------------------------------------------- */

/*
 * Writes the field lines that go on to the origin into the worker's memory, if that has not been.
 * What a row's origin is told of scheme, host and port is what this URL has, under which the
 * response is cached.
 */
void http_fields_make(struct http_exchange *x, struct span url);

/* ---- http_source.c --------------------------------------------------------------------------- */

/* Is this peer one that may send the header? The context is the http_service. */
bool http_source_is_stated_by(void *context, const struct net_peer *peer);

/* ---- http_count.c ---------------------------------------------------------------------------- */

/* The head of the response is made: counts it by its status, and the time of a hit. */
void http_count_response(const struct http_exchange *x);

/* Counts bytes of the body that are queued. */
void http_count_bytes(const struct http_exchange *x, uint64_t bytes);

/* ---- http_log.c ------------------------------------------------------------------------------ */

/* Logs a request; without the request itself if its head is not kept. */
void http_log_add(struct http_exchange *x);

/* ---- http_interim.c -------------------------------------------------------------------------- */

/* Sends an interim response with these field lines, if there is memory for it. */
void http_interim_send(struct http_stream *stream, unsigned status, struct span lines);

/* ---- http_purge.c ---------------------------------------------------------------------------- */

/* May the client purge? */
bool http_purge_is_allowed(const struct http_exchange *x);

/* ---- http_route.c ---------------------------------------------------------------------------- */

struct http_route {
    struct http_origin *origin; /* NULL: forward */
    struct span url;            /* under which the response is cached, in the worker's memory */
};

/*
 * Where a request leads. 0, or the status of a refusal with a static sentence part in *reason.
 */
unsigned http_route_find(struct http_exchange *x, struct http_route *route, const char **reason);

/* Writes the URL to which a request leads into the worker's memory again. */
struct span http_route_url_again(struct http_exchange *x);

/* http_purge.c: purges what the request names, and makes the page that states how much that was. */
void http_purge(struct http_exchange *x, const struct http_route *route);

/* ---- http_tunnel.c --------------------------------------------------------------------------- */

/*
 * Begins to connect to the host and port of the URL, for CONNECT, or for an upgrade to a member of
 * x->origin, for that URL of the client and with the fields of x->asked. The response comes later,
 * or has been made.
 */
void http_tunnel_begin(struct http_exchange *x, struct span url);

/* ---- http_output.c --------------------------------------------------------------------------- */

/* Makes the output of what can be sent; x->stream.output.count is 0 if that is nothing. True if the
 * end of the response is in it. */
bool http_output_fill(struct http_exchange *x);

/* ---- http_response.c ------------------------------------------------------------------------- */

/* Makes the head for exchange->object: x->pieces, x->body and x->status. */
void http_response_make(struct http_exchange *x);

/* ---- http_location.c ------------------------------------------------------------------------- */

/* Is the request one of a reverse proxy that rewrites Location and Content-Location? */
bool http_location_is_rewritten(const struct http_exchange *x);

/* By how many bytes field lines may grow at most. */
size_t http_location_more(const struct http_exchange *x, struct span lines);

/*
 * Writes the line of such a field, with its line end, to `out`: a URL of the origin, or below it,
 * becomes a path below the prefix of the row, which the client resolves against what it has
 * requested. Returns the number of bytes.
 */
size_t http_location_write(const struct http_exchange *x, struct span line, struct span value,
                           char *out);

/* ---- http_page.c ----------------------------------------------------------------------------- */

/* A response of the proxy's own. */
struct http_page {
    unsigned status;
    struct span reason; /* a sentence for a person */
    const char *detail; /* for Cache-Status (RFC 9211, section 2.8), a token; NULL: none */
    struct span lines;  /* further field lines */
    bool empty;         /* without a body */
};

/* Writes the field Date. */
void http_write_date(struct http_writer *writer, int64_t seconds);

/* Makes a whole response with a short page that states the reason. */
void http_page_make(struct http_exchange *x, const struct http_page *page);

#endif
