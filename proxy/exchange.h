/*
 * An exchange: one client's request and the response to it (RFC 9110, section 3), whatever protocol
 * the client speaks. A front makes it in memory of its own, all zero, and sets the first part;
 * exchange_start() looks the URL up and fetches it or joins a fetch; the front's functions are
 * called with what comes of it. A hit allocates nothing; a request that waits is counted for its
 * client (base/client_share.h).
 *
 * An exchange belongs to one thread, its worker's. Only front->wake() is called on others.
 *
 * The calls of the front, in this order:
 *   wake()            any number of times, each followed by one exchange_run() on the worker
 *   head() or fail()  once
 *   more()            if the request streams and head() came before the end: any number of times
 *   fail()            after head(): instead of the last more()
 * The last call is fail(), or the first that finds exchange_is_complete(). In the last call and
 * after it the front ends the exchange by exchange_end() and may reuse its memory: nothing touches
 * the exchange after any call of the front. In head() and more() before the last one it may cancel
 * the exchange.
 */
#ifndef SUNPROXY_PROXY_EXCHANGE_H
#define SUNPROXY_PROXY_EXCHANGE_H

#include "fetch/request.h"
#include "http/cache_status.h"
#include "proxy/origin_fill.h"
#include "proxy/body_relay.h"

struct exchange;
struct stored_wait;

/*
 * What a front does for its exchanges, on their thread except where marked [any]. interim() and
 * space() come between exchange_start() and the last call; they may not end or cancel the exchange.
 */
struct front {
    /*
     * Has exchange_run() called soon on the exchange's thread, never inside this call. Not called
     * again before that exchange_run() has begun. [any; must not block nor call the proxy]
     */
    void (*wake)(struct exchange *exchange);
    /*
     * Makes the fields of the request, which were left for later: from then on they have an
     * address. Called at most once, during exchange_start(), and not for most hits. It cannot fail.
     * NULL: never left for later.
     */
    void (*fields)(struct exchange *exchange);
    /* The client of a request that has left that open, as long as the exchange; NULL without
     * memory. NULL: never left open. */
    struct client *(*client)(struct exchange *exchange);
    /* Does the client's rate of fetches bound it now? NULL: no. */
    bool (*is_bounded)(struct exchange *exchange);
    /*
     * exchange->object has its head, and as much of its body as has come: object_read(). Without
     * REQUEST_STREAMS the object is complete, unless it is a redirect that the front follows
     * (exchange_redirect()), which it leaves then.
     */
    void (*head)(struct exchange *exchange);
    /* The body has grown, or is complete. NULL if no request streams. */
    void (*more)(struct exchange *exchange);
    /*
     * Before head(): the request fails. After it: the response breaks off, so that the peer must be
     * made to notice. FAILURE_CANCELLED comes only after exchange_cancel(). The sentence is valid
     * until exchange_end().
     */
    void (*fail)(struct exchange *exchange, enum failure why, struct span sentence);
    /*
     * The origin has sent an interim response (RFC 9110, section 15.2) to this request, before
     * head(): its status and field lines, valid during the call. NULL: not wanted.
     */
    void (*interim)(struct exchange *exchange, unsigned status, struct span lines);
    /* There is memory for more of the request's body, after exchange_send() took not all. */
    void (*space)(struct exchange *exchange);
};

/* Where the response comes from. */
enum outcome {
    OUTCOME_HIT,         /* from the cache */
    OUTCOME_MISS,        /* from the origin; this request caused the fetch */
    OUTCOME_COALESCED,   /* from the origin; another request caused the fetch */
    OUTCOME_BYPASS,      /* from the origin, past the cache */
    OUTCOME_REVALIDATED, /* from the cache, after the origin has confirmed it to this request */
    OUTCOME_STALE,       /* from the cache, and not fresh */
};

/* The word for logs: "hit", "miss"... */
const char *outcome_word(enum outcome outcome);

/* What of a request the origin has evaluated to make the response. The rest is for the front, which
 * evaluates it on the object. */
enum exchange_evaluated {
    EVALUATED_NOTHING,
    EVALUATED_CONDITIONS, /* its conditions, but not its range */
    EVALUATED_ALL,        /* the response is to this very request: it is passed on as it is */
};

/*
 * How far an exchange is. An end is its last call of the front.
 *
 * LOOKS_UP -object of another request, or a fetch-> WAITS, or an end
 * WAITS -head-> RESPONDS, -sent back-> LOOKS_UP or LEFT, -end
 * LEFT -wake-> LOOKS_UP
 * RESPONDS -end of the body-> COMPLETE, which is an end; -failure-> an end
 * any -the client, or a bound-> ENDS -wake-> an end
 */
enum exchange_stage {
    EXCHANGE_LOOKS_UP,
    EXCHANGE_WAITS,    /* for an object */
    EXCHANGE_LEFT,     /* it has left its object, and looks up again after a wake that is due */
    EXCHANGE_RESPONDS, /* head() has been called */
    EXCHANGE_COMPLETE, /* the object is, or the front has been told so */
    EXCHANGE_ENDS,     /* it does not wait any more, and fails after a wake that is due: `ending` */
};

struct exchange {
    /* ---- set by the front before exchange_start() */
    struct proxy *proxy;
    const struct front *front;
    /*
     * Its spans are read during exchange_start() only: an exchange that waits has a copy, to which
     * this leads from then on.
     */
    const struct request *request;
    /*
     * Of the monotonic clock: freshness is evaluated as of then, and the age of a hit counts up to
     * it. 0: as of the arrival, so that a hit reads no clock. Otherwise the request has waited
     * since its arrival, and what was fresh then may have expired; so the exchange sets it when it
     * looks up again after a wait.
     */
    int64_t as_of_us;
    unsigned worker; /* the slot of its thread in the metrics */
    /* How the exchange was answered whose redirect has led to this one: a hit here is none of the
     * client's request, unless that was one, too. OUTCOME_HIT: there was none. */
    enum outcome before;

    /* The URL of the request, as objects have it: valid in the front's functions. */
    struct span url;

    /* ---- the response: from head() until exchange_end() */
    struct object *object;
    enum outcome outcome;
    enum exchange_evaluated evaluated;
    enum http_forwarded forwarded; /* why the origin was asked for it (RFC 9211 section 2.2); also
                                      of a failure */
    enum http_reason stale;        /* of OUTCOME_STALE without a wait; exchange_reason() */
    unsigned origin_status; /* of the origin's response, if the object is an earlier one; or 0 */
    /* Once it is complete: */
    size_t evicted;                      /* for the object; 0 for all but OUTCOME_MISS */
    const struct cache_victims *victims; /* those pages; never NULL */

    /* Of fail(): what its operator is told; valid until exchange_end(). Clients get
     * failure_for_client(). */
    struct span error;

    /* ---- its own */
    enum exchange_stage stage;
    const struct request *kept; /* a reference, once it has waited or led to a fetch; or NULL */
    struct origin_waiter waiter;
    struct relay *relay;    /* to the fetch that it leads; or NULL */
    _Atomic unsigned wakes; /* sources of wake() since exchange_run() began */
    unsigned events;        /* of the waiter, taken, of which the front has not been notified */
    struct object *own;     /* a reference: a response that is not the waiter's; or NULL */
    /*
     * It fetches for itself, for this reason: it is a user's (proxy/sharing.h), or has waited
     * for what answered another request's conditions, or for what does not serve its range.
     */
    enum http_reason alone;
    bool led;             /* it has led to a fetch */
    size_t counted;       /* bytes in the client's share */
    unsigned retries;     /* lookups but the first */
    struct stored_wait *noted; /* of a write: until what it purges is noted; owned, or NULL */
    enum failure ending;  /* why it fails: of EXCHANGE_ENDS */
    struct span sentence; /* of `ending`; valid as long as the exchange */
};

/* Is the response? From head() on. */
static inline bool
exchange_is_complete(const struct exchange *exchange)
{
    return exchange->stage == EXCHANGE_COMPLETE;
}

/*
 * Serves. True: the last call of the front has been made, as for every hit, which allocates
 * nothing, and for every request that is refused at once. False: the calls come later.
 */
bool exchange_start(struct exchange *exchange);

/*
 * Instead of exchange_start(): calls fail(), the last call of the front, with this sentence for the
 * client, and counts the failure.
 */
void exchange_refuse(struct exchange *exchange, enum failure why, const char *sentence);

/* After a wake(). */
void exchange_run(struct exchange *exchange);

/*
 * Passes on more of the request's body. Returns how many bytes were taken; after fewer than `len`
 * the front's space() is called. Once the exchange waits for no fetch, all are taken and dropped.
 */
size_t exchange_send(struct exchange *exchange, const void *bytes, size_t len);

/* The request's body is complete. */
void exchange_send_end(struct exchange *exchange);

/*
 * Of a request that streams the front has sent the body up to this offset, and uses no run before
 * it any more. To be called from head() until the exchange is complete, as often as something has
 * been sent: what a client does not take is not fetched from the origin beyond a window, if the
 * object is not stored. A front that sends only a part of the body reads what is before that part,
 * too, and reports it. Later calls do nothing.
 */
void exchange_taken(struct exchange *exchange, uint64_t offset);

/* Of a request that streams this many bytes of the body have been queued: the metrics count them.
 */
void exchange_count_sent(const struct exchange *exchange, uint64_t bytes);

/*
 * The client does not want the response any more, of which the front uses no run from now on. True:
 * the front is not called again, and the exchange may be ended. False: a wake() has been called
 * whose exchange_run() has not begun; it calls fail() with FAILURE_CANCELLED and nothing else. A
 * fetch goes on for others. Without others it goes on if the object is to be stored and little of
 * it is missing (origin_fill.h), but not without the whole body of the request.
 */
bool exchange_cancel(struct exchange *exchange);

/*
 * How long the fetch took that this exchange has caused; -1 if it has caused none, or the fetch
 * goes on. Of one that failed: `since_us`, the time since the exchange began. Before
 * exchange_end().
 */
int64_t exchange_fetch_us(const struct exchange *exchange, int64_t since_us);

/* The URL of the row's member that this exchange was sent to last; empty: of none. Before
 * exchange_end(). */
struct span exchange_member(const struct exchange *exchange);

/*
 * Why the request was not a hit: why the response is not stored, or a stale one is used; else why
 * the request was forwarded. HTTP_REASON_NONE for a hit. Of a response that is not complete, as far
 * as its head says. From head() on; after the last call it changes no more.
 */
enum http_reason exchange_reason(const struct exchange *exchange);

/*
 * Where the response leads, which the front follows (REQUEST_PAGE_ONLY): the value of Location of a
 * redirect. Empty: it is no such response. From head() on.
 */
struct span exchange_redirect(const struct exchange *exchange);

/*
 * Is the response, to a request with REQUEST_PAGE_ONLY, a part (206) or "not modified" (304) that
 * its client has not asked for? The front refuses it. From head() on.
 */
bool exchange_is_unasked(const struct exchange *exchange);

/* Is the response stored, or going to be, as far as its head says? From head() on. */
bool exchange_is_stored(const struct exchange *exchange);

/* Releases object and victims. After the last call of the front, or a cancellation. */
void exchange_end(struct exchange *exchange);

#endif
