/*
 * What the files of a fill from an origin share: origin_start.c has its beginning and its memory,
 * origin_fill.c its fetch, origin_attempt.c the members of a route that it is tried at,
 * origin_bounds.c the bounds of its body, origin_raw.c what HTTP's rules make of the head of a raw
 * response, origin_own.c what a response to POST is for GET requests, origin_parts.c what they all
 * use. Private.
 */
#ifndef SUNPROXY_PROXY_ORIGIN_FILL_PARTS_H
#define SUNPROXY_PROXY_ORIGIN_FILL_PARTS_H

#include "base/buf.h"
#include "proxy/origin_fill.h"
#include "proxy/sharing.h"
#include "proxy/staleness.h"

/* The fetcher's thread's from its submission on. */
struct origin_fill {
    struct cache_fill base; /* first */
    struct proxy *proxy;
    struct client *client; /* that it is fetched for: a reference; NULL: it fails at once */
    struct sharing sharing;
    struct relay *relay; /* a reference, or NULL */
    struct shedding_body body;
    uint64_t first_fetch;          /* the fetch's id, */
    _Atomic uint64_t second_fetch; /* and that of the last one that repeats it; 0: none does */
    size_t charged;                /* to the account, */
    size_t counted;                /* and for the client */
    enum failure failure; /* the object has failed, before the fetch's end; 0: it has not */
    const char *sentence; /* then: static text */
    bool ended;           /* the object has its end before the fetch, and has not failed */
    bool bypass;
    bool no_store; /* the fetch says so */
    enum http_reason passes; /* why the request is a bypass, or for itself alone */
    enum http_reason reason; /* why the object is not stored; HTTP_REASON_NONE: none is known */
    bool unmarked; /* the marker of the URL has been removed */
    bool streams;  /* the leader's front does */
    enum http_method method;
    bool completes; /* it goes on without a request that waits. Constant from the head on */
    bool stores;   /* the cache had a policy at the beginning, so that it stores objects at all */
    _Atomic bool may_keep; /* false once it is known that the object will not be stored */
    uint64_t max_whole;    /* bytes of the body that are kept whole. After the head */
    int64_t unwanted_us;   /* since when no request waits for it, as far as was seen; 0: some did */

    /* Where it is fetched from (origin_attempt.c). */
    struct origin_route *route; /* NULL: the URL itself */
    struct origin_choice choice;
    bool has_turn;    /* the fetch has had its turn */
    bool has_answer;  /* the response is the one of the member that counts */
    bool passes_over; /* the response is that of a member that fails: the next one is tried */
    bool timed_out;   /* a member has not responded in time */
    bool supplied;    /* something of the request's body was asked for */
    bool has_body;    /* of the request, with this length; -1: unknown */
    int64_t body_length;

    /* Of a raw fetch (origin_raw.c). */
    bool raw;
    bool owned, as_is, alone, whole_server; /* as the request has them */
    struct invalidation write;               /* if origin_fill_writes() */
    uint64_t epoch;                          /* of the cache, when it was sent */
    struct cache_fill *own; /* of a POST, a fill for later GET requests (origin_own.c), or NULL, */
    struct object_waiter own_waiter;
    struct sharing own_sharing;
    enum range_wanted wanted; /* as the request has it */
    bool ends_early;   /* its leader may be satisfied before the end */
    bool background;   /* no request waited for it at its beginning */
    bool conditional;  /* the previous object is being validated */
    bool forwards;     /* or else: conditions of the leader's are sent */
    bool again;        /* the fetch is to be repeated without conditions */
    struct buf lines;  /* of the request, for the origin and for what its response is
                          selected by; with conditions behind the first. With a route the
                          method follows; then it is there also of a request that is not raw */
    size_t plain;      /* bytes of the lines that select the response: without those conditions */
    size_t sent;       /* bytes of all lines */
    int64_t waited_us; /* for the head */
};

/* Does the request invalidate what the cache has (RFC 9111 section 4.4)? */
static inline bool
origin_fill_writes(const struct origin_fill *fill)
{
    return fill->raw && !http_method_is_safe(fill->method);
}

/* The id of the fetch that is under way. [any thread] */
static inline uint64_t
origin_fill_fetch(const struct origin_fill *fill)
{
    uint64_t second = atomic_load(&fill->second_fetch);

    return second ? second : fill->first_fetch;
}

/* Fails the object now, by an errno; the fetch ends later. */
void origin_fill_fail_early(struct origin_fill *fill, int error);

/* ---- origin_bounds.c ------------------------------------------------------------------------- */

/* The largest body that is stored. */
uint64_t origin_fill_largest(const struct origin_fill *fill);

/* Can the body get a window? An inline one has all its memory already. */
bool origin_fill_can_open_window(const struct origin_fill *fill);

/* Removes a marker of the URL, once, if the response proves that those to others may be shared. */
void origin_fill_unmark(struct origin_fill *fill);

/*
 * The object is not stored, and has a window from now on: 0 or an errno. Waiters that do not stream
 * fail for the reason `why`; 0: if there are any, the answer is EBUSY.
 */
int origin_fill_open_window(struct origin_fill *fill, enum failure why);

/* The body has or is going to have `length` bytes: opens the window if that is too much. */
int origin_fill_open_window_for(struct origin_fill *fill, uint64_t length);

/*
 * Is the response of no use to a leader with a range: may it be followed to its end neither for the
 * cache and other requests nor for the leader? After fill->may_keep is known.
 */
bool origin_fill_misses_range(struct origin_fill *fill, const struct fetch_head *head);

/* Then: the object ends, all requests look up again, and later ones pass. Before the head. */
void origin_fill_give_up_range(struct origin_fill *fill);

/* cache_fill.unwanted. */
bool origin_fill_unwanted(struct cache_fill *base);

/* ECANCELED if the fetch is to end because no request waits for it; 0: it goes on. */
int origin_fill_check_wanted(struct origin_fill *fill);

/* ---- origin_raw.c ---------------------------------------------------------------------------- */

/*
 * Makes fill->lines of the request for a raw fetch: with conditions if the object that it replaces
 * can be validated, or else with those of the request. False without memory.
 */
bool origin_raw_request(struct origin_fill *fill, struct span fields);

/* Evaluates the head as the origin sent it: may it be shared and stored, and for how long? */
void origin_raw_hop(struct origin_fill *fill, const struct fetch_hop *hop);

enum origin_raw {
    ORIGIN_RAW_HEAD,  /* it is the head of the object, with *parts */
    ORIGIN_RAW_TAKEN, /* the object has its end, or the fetch is repeated: a body is dropped */
    ORIGIN_RAW_ERROR, /* *error is an errno for origin_fill_fail_early() */
};

/* What the object of a raw response has in its head. */
struct origin_raw_parts {
    struct buf fields;
    struct buf tags;
};

/* What an object has as notes whose fields these are, of a response that is shared so. */
unsigned origin_raw_notes(const struct fetch_head *head, struct span fields,
                          const struct sharing *sharing);

void origin_raw_parts_init(struct origin_raw_parts *parts);
void origin_raw_parts_free(struct origin_raw_parts *parts);

/* Appends the tags of a response with these lines; false if it cannot be kept, since no purge would
 * find it. */
bool origin_fill_tags(const struct origin_fill *fill, struct span lines, struct buf *tags);

/* Then: no other request may have the response, since it would not be purged for them. Before the
 * head. */
void origin_fill_untag(struct origin_fill *fill, struct buf *tags);

/* What becomes of the head of a raw response. */
enum origin_raw origin_raw_head(struct origin_fill *fill, const struct fetch_head *head,
                                struct origin_raw_parts *parts, int *error);

/*
 * The fetch has failed before its head. True: the previous object is used instead, and the object
 * has its end. `number` is the status of the response, or without one a number of enum failure.
 */
bool origin_raw_fall_back(struct origin_fill *fill, enum staleness why, unsigned number);

/* The origin has failed: background fetches of the URL wait longer (backoff.h). */
void origin_raw_back_off(struct origin_fill *fill);

/* ---- origin_attempt.c ------------------------------------------------------------------------ */

/* Keeps what the fetch is repeated with, and chooses the first member. After origin_raw_request().
 * False without memory. */
bool origin_attempt_begin(struct origin_fill *fill, const struct origin_fill_request *request);

/* A GET of the fill's URL, or that of the member that is chosen, with these lines; what they refer
 * to is the fill's, or in *text. */
struct fetch_request origin_fill_fetch_request(const struct origin_fill *fill, struct span lines,
                                               struct origin_route_text *text);

/*
 * The URL at the end of redirects, for the client: what names a member of the route becomes the
 * client's URL for it, in *mapped. Empty if that is the URL of the request, or if the client has no
 * URL for it.
 */
struct span origin_attempt_final_url(const struct origin_fill *fill, struct span url,
                                     struct buf *mapped);

/* The body of the request as the relay has it. */
struct fetch_body origin_fill_request_body(const struct origin_fill *fill);

/* Submits a fetch that repeats the one that has ended. False with errno. */
bool origin_fill_submit_again(struct origin_fill *fill, const struct fetch_request *fetch);

/* Is there no way to the origin now, or no response from it? */
bool origin_fill_is_disconnected(enum fetch_error error);

/* The response has this status. False: another member is tried instead, and the rest of this one is
 * of no interest. */
bool origin_attempt_answers(struct origin_fill *fill, unsigned status);

/* The fetch has ended. True: another member is chosen, for origin_attempt_go_on(). */
bool origin_attempt_goes_on(struct origin_fill *fill, enum fetch_error error,
                            const char *sentence);

/* Fetches from it. False with errno. */
bool origin_attempt_go_on(struct origin_fill *fill);

/* ---- origin_own.c ---------------------------------------------------------------------------- */

/* The object of a raw response has begun, has grown, or has come to its end. */
void origin_own_begin(struct origin_fill *fill, const struct fetch_head *head,
                      const struct origin_raw_parts *parts);
void origin_own_append(struct origin_fill *fill, const void *bytes, size_t len);
void origin_own_end(struct origin_fill *fill, bool complete, int64_t total_us);

/* ---- origin_parts.c -------------------------------------------------------------------------- */

/* Why an object with this status is not stored, as far as its head says. */
enum http_reason origin_fill_why_unstored(const struct origin_fill *fill, unsigned status);

/* Tells the waiters why the object is not stored, or is one that has expired; the first reason
 * stays, and HTTP_REASON_NONE does nothing. Before what it explains. */
void origin_fill_explain(struct origin_fill *fill, enum http_reason reason);

/* The other waiters look up again. A bypass has none, and proves nothing for other requests. */
void origin_fill_isolate(struct origin_fill *fill);

/* For cache_fill_fail(): all but the leader look up again. */
bool origin_fill_is_no_leader(const struct object_waiter *waiter, void *context);

/*
 * Begins a fill for the cache that no request has led to, beside this one: of its URL and the
 * variant. NULL if the cache has an answer already, or without memory; the waiter has to stay until
 * the end.
 */
struct cache_fill *origin_fill_beside(const struct origin_fill *fill, struct span variant,
                                      struct object_waiter *waiter);

/* It fails: requests that have joined it look up again, or break off after its head. Clears
 * *beside. */
void origin_fill_drop_beside(struct cache_fill **beside, struct object_waiter *waiter,
                             bool has_head);

/* It has been finished or has failed. Clears *beside. */
void origin_fill_end_beside(struct cache_fill **beside, struct object_waiter *waiter);

/* Sentences of failures. */
extern const char origin_fill_out_of_memory[], origin_fill_stopping[];

/* The fill has ended: nothing refers to it any more. */
void origin_fill_free(struct origin_fill *fill);

/* ---- origin_fill.c --------------------------------------------------------------------------- */

/* The call-backs of the fetch; the context is the fill. */
extern const struct fetch_sink origin_fill_sink;

#endif
