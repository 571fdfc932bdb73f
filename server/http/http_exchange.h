/*
 * A request and its response, from its creation until the response has been written or its
 * connection is gone.
 *
 * A connection takes one request at a time (http_connection.h), on a stream of its own
 * (http_stream.h): its head is read and routed (http_route.h), and an exchange begins
 * (http_begin.h). The response is an object of the cache, as it stands or while it grows
 * (http_response.h), or a page of the proxy's own (http_page.h), and is queued in parts
 * (http_output.h); or the connection becomes a tunnel (http_tunnel.h). The next request is read
 * once the response is queued whole and the request's body has been read.
 *
 * Everything here is for the connection's worker.
 */
#ifndef SUNPROXY_SERVER_HTTP_HTTP_EXCHANGE_H
#define SUNPROXY_SERVER_HTTP_HTTP_EXCHANGE_H

#include "base/container_of.h"
#include "http/range.h"
#include "http/reason.h"
#include "http/request_head.h"
#include "http/response_head.h"
#include "origins/peer_auth.h"
#include "proxy/exchange.h"
#include "proxy/purging.h"
#include "server/http/http_service.h"
#include "server/http/http_stream.h"
#include "server/http/http_worker.h"
#include "server/users/users.h"

enum {
    HTTP_RUNS = 17,         /* of a body, queued at once: HTTP_QUEUED in segments of 16 KiB */
    HTTP_FIELD_RUNS = 8,    /* of an object's field lines that are sent from their place */
    HTTP_HEAD_BYTES = 4096, /* of a response, beside the object's field lines; or a page */
};

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

/*
 * What is to call?
 *
 *   OVER -> AWAITED -> OVER       its user is checked (http_authenticate.h), its purge noted on disk
 *                                 (http_purge.h), or what is there read (http_explain.h)
 *   OVER -> SERVED -> OVER        the exchange runs
 *   AWAITED or SERVED -> CANCELLED -> OVER
 */
enum http_serving {
    HTTP_OVER,      /* nothing: its last call has come, or none was begun */
    HTTP_AWAITED,   /* what http_exchange_await() was told of, once */
    HTTP_SERVED,    /* the exchange */
    HTTP_CANCELLED, /* either, for the last time, and to no effect */
};

struct http_hold;
struct http_user;

/* A request and its response. */
struct http_exchange {
    struct exchange exchange; /* first */
    struct http_stream stream;
    struct net_task task;            /* runs the exchange after a wake-up, or the end of a wait */
    SLIST_ENTRY(http_exchange) free; /* the worker's pool */

    /* The request. Its spans are valid while it is started, and from then on in `kept_head`. */
    struct http_request request;
    struct http_kept kept_head;   /* if it is not answered at once, or is logged */
    struct http_kept kept_fields; /* of `asked`, for a tunnel */
    struct http_kept kept_lines;  /* of the object that are sent, if they are in too many runs */
    struct request asked;         /* of the proxy; the fields are those that go on to the origin */
    struct config *config;      /* with which it began; valid in the call that began it, or while */
    struct shared *kept_config; /* this is a reference; NULL: it is answered in that call */
    struct net_peer *stated;     /* the peer that a trusted proxy states; owned; NULL: the sender */
    struct http_user *user;      /* a reference; NULL: none is known */
    const struct origin_member *peer; /* that has sent it (http_peer.h); NULL: any other client */
    struct peer_code peer_code;       /* of its request then */
    struct http_hold *hold;      /* of its response; NULL: it is not held */
    struct client *client;       /* its client, once it is known: a reference; NULL without one */
    struct http_origin *origin;  /* of a reverse proxy; NULL: forward */
    struct origin_choice choice; /* of its members, for the connection of an upgrade */

    int64_t arrived_us;   /* of the monotonic clock */
    unsigned ruled;       /* of enum http_ruled (http_rules.h) */
    enum failure failure; /* of the exchange; 0: none */
    enum http_reason reason; /* why the proxy answers by itself; HTTP_REASON_NONE: see the exchange */
    bool charged;
    bool has_token;  /* of the client's rate of fetches, for the connection of an upgrade */
    bool logged;     /* http_log_add() is called at its end */
    bool persistent; /* the connection persists behind the response */
    enum http_stage stage;
    enum http_serving serving;
    bool (*stop_waiting)(struct http_exchange *x); /* while it is HTTP_AWAITED */
    void (*resume)(struct http_exchange *x);       /* of http_authenticate() */

    /* The response. */
    unsigned status;
    struct http_body body;
    unsigned piece_count; /* of the head, until it is queued */
    size_t head_bytes;    /* of those */
    size_t head_len;      /* of `head`, that are used, until it is queued */
    /* From here on not zero at first. */
    union {
        struct user_check check;   /* of its user, while that is awaited */
        struct purging_wait noted; /* of its purge, likewise */
    };
    struct iovec pieces[1 + HTTP_FIELD_RUNS + 3 + HTTP_RUNS];
    char frame[24]; /* of a chunk */
    char head[HTTP_HEAD_BYTES];
};

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

/* The connection's current request; NULL without memory. */
struct http_exchange *http_exchange_create(struct http_connection *connection,
                                           struct http_worker *worker);

/* Frees it; also where its worker's thread has ended, and its exchange has not. */
void http_exchange_discard(struct http_exchange *x);

/* Frees the exchanges of its pool. The worker's thread has ended. */
void http_worker_free_pool(struct http_worker *worker);

/*
 * Both copy what stands in the memory of the net and the worker: the head, of a request that is
 * logged or not answered at once; head and fields, of one that becomes a tunnel. False without
 * memory.
 */
bool http_exchange_keep_head(struct http_exchange *x, struct span head);
bool http_exchange_keep(struct http_exchange *x, struct span head);

/*
 * It is HTTP_AWAITED until a task, such as x->task, which is posted once, has called
 * http_exchange_end_wait(), which says whether the request goes on; if not, it may have been freed.
 * stop_waiting() ends the wait earlier, and says whether the task will not be posted.
 */
void http_exchange_await(struct http_exchange *x, bool (*stop_waiting)(struct http_exchange *x));
bool http_exchange_end_wait(struct http_exchange *x);

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

#endif
