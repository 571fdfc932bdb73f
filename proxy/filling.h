/*
 * A fill from an origin, from its beginning to its end. origin_fill.c has its fetch and how much of
 * the body is kept, and calls origin_response.c, what HTTP's rules make of the head of the
 * response, and origin_own.c, what one to POST is for GET. Private to proxy/.
 */
#ifndef SUNPROXY_PROXY_FILLING_H
#define SUNPROXY_PROXY_FILLING_H

#include "base/buf.h"
#include "proxy/origin_fill.h"
#include "proxy/sharing.h"

/*
 * How far a fill is. RUNS -end of the object, with the fetch-> freed; RUNS -the object has its end
 * before the fetch-> ENDED, -it fails before the fetch-> FAILED; ENDED, FAILED -end of the fetch->
 * freed.
 */
enum origin_fill_stage {
    ORIGIN_FILL_RUNS,
    ORIGIN_FILL_ENDED,
    ORIGIN_FILL_FAILED,
};

/* Whose conditions the request is sent with. */
enum origin_conditions {
    CONDITIONS_NONE,
    CONDITIONS_OURS,    /* the previous object is being validated */
    CONDITIONS_CLIENTS, /* the leader's */
};

/* What becomes of the object, as far as is known: it only becomes less. */
enum origin_keeping {
    KEEPING_NOT,    /* it is not stored */
    KEEPING_WHOLE,  /* the cache had no policy at the beginning, so that it stores nothing */
    KEEPING_STORED, /* it is stored if the cache admits it */
};

/* The fetcher's thread's from its submission on. */
struct origin_fill {
    struct cache_fill base; /* first */
    struct proxy *proxy;
    const struct request *request; /* a reference */
    enum origin_fill_purpose purpose;
    struct sharing sharing;
    struct relay *relay; /* a reference, or NULL */
    struct shedding_body body;
    uint64_t fetch;  /* its id */
    unsigned member; /* of request->route, that is asked */
    const struct origin_member *peer; /* that is asked; NULL: none */
    unsigned status; /* of its response, once that has come */
    size_t charged;  /* to the account, */
    size_t counted;  /* and for the client */
    enum origin_fill_stage stage;
    enum failure failure;    /* of ORIGIN_FILL_FAILED */
    const char *sentence;    /* of `failure`: static text */
    enum http_reason passes; /* why the request is a bypass, or for itself alone */
    enum http_reason reason; /* why the object is not stored; HTTP_REASON_NONE: none is known */
    _Atomic enum origin_keeping keeping;
    uint64_t max_whole;  /* bytes of the body that are kept whole. After the head */
    int64_t unwanted_us; /* since when no request waits for it, as far as was seen; 0: some did */

    struct invalidation write; /* if origin_fill_writes() */
    uint64_t epoch;            /* of the cache, when it was sent */
    struct cache_fill *own;    /* of a POST, a fill for later GET requests, or NULL, */
    struct object_waiter own_waiter;
    struct sharing own_sharing;
    enum http_wanted wanted; /* as the request has it */
    enum origin_conditions conditions;
    struct buf lines;  /* of the request, for the origin and for what its response is
                          selected by; with conditions behind the first */
    size_t plain;      /* bytes of the lines that select the response: without those conditions */
    int64_t waited_us; /* for the head */
};

/* May the object still be kept? */
static inline bool
origin_fill_may_keep(const struct origin_fill *fill)
{
    return atomic_load(&fill->keeping) != KEEPING_NOT;
}

/* Does the request invalidate what the cache has (RFC 9111 section 4.4)? */
static inline bool
origin_fill_writes(const struct origin_fill *fill)
{
    return !http_method_is_safe(fill->request->method);
}

/* Is the object not stored, whatever the origin says? */
static inline bool
origin_fill_bypasses(const struct origin_fill *fill)
{
    return fill->purpose == ORIGIN_FILL_BYPASSES;
}

/* Are the client's conditions and range the origin's to evaluate? */
static inline bool
origin_fill_is_as_is(const struct origin_fill *fill)
{
    return fill->purpose >= ORIGIN_FILL_PASSES;
}

/* The lines by which the response is selected. */
static inline struct span
origin_fill_selecting(const struct origin_fill *fill)
{
    return span_of(fill->lines.data, fill->plain);
}

/* Those that the request is sent with. */
static inline struct span
origin_fill_fields(const struct origin_fill *fill)
{
    return fill->conditions ? buf_span(&fill->lines) : origin_fill_selecting(fill);
}

/* For cache_fill_fail(): all but the leader look up again. */
static inline bool
origin_fill_is_no_leader(const struct object_waiter *waiter, void *context)
{
    (void)context;
    return !waiter->leader;
}

/* Likewise: all of them do. */
static inline bool
origin_fill_is_any(const struct object_waiter *waiter, void *context)
{
    (void)waiter;
    (void)context;
    return true;
}

/* ---- origin_response.c ----------------------------------------------------------------------- */

/* Why the object is not stored, as far as its head says; `no_store`: the fetch says so. */
enum http_reason origin_response_why_unstored(const struct origin_fill *fill, bool no_store);

/* Tells the waiters why the object is not stored, or is one that has expired; the first reason
 * stays, and HTTP_REASON_NONE does nothing. Before what it explains. */
void origin_response_explain(struct origin_fill *fill, enum http_reason reason);

/* The other waiters look up again. A bypass has none, and proves nothing for other requests. */
void origin_response_isolate(struct origin_fill *fill);

/* Appends the tags of a response with these lines; false if it cannot be kept, since no purge would
 * find it. */
bool origin_response_tags(const struct origin_fill *fill, struct span lines, struct buf *tags);

/*
 * Makes fill->lines of the request: with conditions if the object that it replaces can be
 * validated, or else with those of the request. False without memory.
 */
bool origin_response_request(struct origin_fill *fill);

/* Evaluates the head as the origin sent it: may it be shared and stored, and for how long? */
void origin_response_arrived(struct origin_fill *fill, const struct fetch_response *response);

enum origin_response {
    ORIGIN_RESPONSE_HEAD,   /* it is the head of the object, with *parts */
    ORIGIN_RESPONSE_TAKEN,  /* the object has its end: a body is dropped */
    ORIGIN_RESPONSE_REPEAT, /* the response is of no use: another one is asked for */
    ORIGIN_RESPONSE_ERROR,  /* *error is an errno */
};

/* What the object of a response has in its head. */
struct response_parts {
    struct buf fields;
    struct buf tags;
};

/* What an object has as notes whose fields these are, of a response that is shared so. */
unsigned origin_response_notes(const struct fetch_head *head, struct span fields,
                               const struct sharing *sharing);

/* What becomes of the head of a response. */
enum origin_response origin_response_head(struct origin_fill *fill, const struct fetch_head *head,
                                          struct response_parts *parts, int *error);

/*
 * The fetch has failed before its head. True: the previous object is used instead, and the object
 * has its end. `number` is the status of the response, or without one a number of enum failure.
 */
bool origin_response_fall_back(struct origin_fill *fill, enum staleness why, unsigned number);

/* The origin has failed: background fetches of the URL wait longer (struct backoff). */
void origin_response_back_off(struct origin_fill *fill);

/* ---- origin_own.c ---------------------------------------------------------------------------- */

/* The object has begun, has grown, or has come to its end. */
void origin_own_begin(struct origin_fill *fill, const struct fetch_head *head,
                      const struct response_parts *parts);
void origin_own_append(struct origin_fill *fill, const void *bytes, size_t len);
void origin_own_end(struct origin_fill *fill, bool complete, int64_t total_us);

#endif
