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
 *   more()            if the front streams and head() came before the end: any number of times
 *   fail()            after head(): instead of the last more()
 * The last call is fail(), or the first that finds exchange->complete. In the last call and after
 * it the front ends the exchange by exchange_end() and may reuse its memory: nothing touches the
 * exchange after any call of the front. In head() and more() before the last one it may cancel the
 * exchange.
 */
#ifndef SUNPROXY_PROXY_EXCHANGE_H
#define SUNPROXY_PROXY_EXCHANGE_H

#include "http/cache_status.h"
#include "http/method.h"
#include "proxy/origin_fill.h"
#include "proxy/outcome.h"
#include "proxy/body_relay.h"

struct exchange;

/*
 * What a front does for its exchanges, on their thread except where marked [any]. interim() and
 * space() come between exchange_start() and the last call, and only to raw exchanges; they may not
 * end or cancel the exchange.
 */
struct front {
    bool streams; /* head() as soon as there is a head; otherwise when the object is complete */
    /*
     * Has exchange_run() called soon on the exchange's thread, never inside this call. Not called
     * again before that exchange_run() has begun. [any; must not block nor call the proxy]
     */
    void (*wake)(struct exchange *exchange);
    /*
     * Makes exchange->fields, which was left for later; called at most once, during
     * exchange_start(), and not for most hits. It cannot fail. NULL: never left for later.
     */
    void (*fields)(struct exchange *exchange);
    /* The client of an exchange that has left that open, as long as the exchange; NULL without
     * memory. NULL: never left open. */
    struct client *(*client)(struct exchange *exchange);
    /* Does the client's rate of fetches bound it now? NULL: no. */
    bool (*is_bounded)(struct exchange *exchange);
    /* exchange->object has its head, and as much of its body as has come: object_read(). */
    void (*head)(struct exchange *exchange);
    /* The body has grown, or is complete. NULL if the front does not stream. */
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

/* What of a request the origin has evaluated to make the response. The rest is for the front, which
 * evaluates it on the object. */
enum exchange_evaluated {
    EVALUATED_NOTHING,
    EVALUATED_CONDITIONS, /* its conditions, but not its range */
    EVALUATED_ALL,        /* the response is to this very request: it is passed on as it is */
};

struct exchange {
    /* ---- set by the front before exchange_start() */
    struct proxy *proxy;
    const struct front *front;
    /*
     * Any bytes, at most OBJECT_MAX_META of them; of a raw exchange as http_write_url() spells
     * them, others are spelt so here (proxy_normal_url()). Those of the front are read during
     * exchange_start() only; in the front's functions this is always valid.
     */
    struct span url;
    /*
     * The objects are those of HTTP: as the origin sent them, with their content coding, and
     * redirects are responses like any other. Otherwise bodies are decoded and redirects are
     * followed. Objects of the two kinds are never given to exchanges of the other.
     */
    bool raw;
    /*
     * The end-to-end field lines of the request, each ended by CR LF, as fetch_check_request()
     * takes them. Raw: valid until head() or fail(). Otherwise read during exchange_start() only,
     * and a bypass unless empty.
     */
    struct span fields;
    /* Raw: front->fields() makes the fields when they are needed. A front that waits after
     * exchange_start() makes them itself where that has not been, and clears this. */
    bool fields_later;
    /*
     * Of enum http_request_field (http/request_head.h): what the fields certainly lack, so that a
     * hit need not search them. 0: nothing is known.
     */
    uint32_t lacks;
    struct span method; /* empty: GET. Valid as the fields */
    enum http_method method_id; /* set by exchange_start() */
    bool whole_server;  /* OPTIONS of the URL's server and not of a resource: "*" (RFC 9110, section
                           9.3.7) */
    bool owned; /* the origin's owner runs this proxy, as in front of a server: CDN-Cache-Control
                   (RFC 9213) is for it */
    struct origin_route *route; /* to the origin, which must stay; NULL: the URL itself */
    /*
     * Raw: the request has a body, which is passed on to the origin: exchange_send(). It is a
     * bypass, too.
     */
    bool has_body;
    int64_t body_length;      /* its bytes; -1: unknown */
    bool no_store;            /* a bypass: fetched from the origin, and not stored */
    struct client *client;    /* to which fetch and memory are counted; NULL: front->client() is
                                 called when it is to wait */
    size_t waiting_bytes; /* what the front's memory for the request takes while it waits, not 0;
                             counted for the client, and charged to the account by the front */
    int64_t arrived_us;   /* of the monotonic clock */
    /*
     * Of the monotonic clock: freshness is evaluated as of then, and the age of a hit counts up to
     * it. 0: as of the arrival, so that a hit reads no clock. Otherwise the request has waited
     * since its arrival, and what was fresh then may have expired; so the exchange sets it when it
     * looks up again after a wait.
     */
    int64_t as_of_us;
    unsigned worker; /* the slot of its thread in the metrics */

    /* ---- the response: from head() until exchange_end() */
    struct object *object;
    enum outcome outcome;
    enum exchange_evaluated evaluated;
    enum http_forwarded forwarded; /* why the origin was asked for it (RFC 9211 section 2.2); also
                                      of a failure */
    enum http_reason stale; /* of OUTCOME_STALE without a wait; exchange_reason() */
    unsigned origin_status; /* of the origin's response, if the object is an earlier one; or 0 */
    bool complete;          /* the object is; what follows is set from then on */
    bool stored;            /* the object was stored, or comes from there */
    size_t evicted;         /* for it; 0 for all but OUTCOME_MISS */
    const struct cache_victims *victims; /* likewise; never NULL once complete */

    /* Of fail(): what its operator is told; valid until exchange_end(). Clients get
     * failure_for_client(). */
    struct span error;

    /* ---- exchange.c's */
    struct origin_waiter waiter;
    struct relay *relay;    /* to the fetch that it leads; or NULL */
    _Atomic unsigned wakes; /* sources of wake() since exchange_run() began */
    unsigned events;        /* of the waiter, taken, of which the front has not been notified */
    struct object *own;     /* a reference: a response that is not the waiter's; or NULL */
    bool has_head;          /* head() has been called */
    bool again;             /* it has left the object, and looks up again */
    /*
     * It fetches for itself, for this reason: it is a user's (proxy/user_rules.h), or has waited
     * for what answered another request's conditions, or for what does not serve its range.
     */
    enum http_reason alone;
    bool led;               /* it has led to a fetch */
    bool counted;           /* waiting_bytes, in the client's share */
    uint8_t retries;
    const char *sentence; /* of `ending` */
    enum failure ending;  /* it does not wait any more, for this reason of fail(); 0: it does */
};

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
 * A front that streams has sent the body up to this offset, and uses no run before it any more. To
 * be called from head() until the exchange is complete, as often as something has been sent: what a
 * client does not take is not fetched from the origin beyond a window, if the object is not stored.
 * A front that sends only a part of the body reads what is before that part, too, and reports it.
 * Later calls do nothing.
 */
void exchange_taken(struct exchange *exchange, uint64_t offset);

/* A front that streams has queued this many bytes of the body: the metrics count them. */
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

/*
 * Why the request was not a hit: why the response is not stored, or a stale one is used; else why
 * the request was forwarded. HTTP_REASON_NONE for a hit. Of a response that is not complete, as far
 * as its head says. From head() on; after the last call it changes no more.
 */
enum http_reason exchange_reason(const struct exchange *exchange);

/* Is the response stored, or going to be, as far as its head says? From head() on. */
bool exchange_is_stored(const struct exchange *exchange);

/* Releases object and victims. After the last call of the front, or a cancellation. */
void exchange_end(struct exchange *exchange);

#endif
