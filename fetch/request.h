/*
 * A request for a resource: what a client asks for, as its front has read it. The exchange that
 * answers it, the fill that it leads to and the fetches of that all refer to one request, which
 * does not change. A front makes it in memory of its own; request_keep() makes the copy that
 * outlives the front's memory, counted by references. A fill goes on after its exchange has ended,
 * with a reference of its own.
 *
 * Safe on any thread.
 */
#ifndef SUNPROXY_FETCH_REQUEST_H
#define SUNPROXY_FETCH_REQUEST_H

#include <stddef.h>
#include <stdint.h>

#include "base/clients.h"
#include "base/memory_account.h"
#include "base/shared.h"
#include "base/span.h"
#include "http/method.h"
#include "http/reason.h"

struct origin_member;
struct origin_peers;
struct origin_route;
struct settings;

/* Without any flag the body is bounded and not paused. */
enum request_flags {
    /*
     * The client asks for a page by its URL and knows nothing else of HTTP, as those of RPC. The
     * front follows redirects for it: a redirect that has a Location is not counted as a response.
     * A response that states no lifetime is fresh until it is evicted, and one of at most max_body
     * bytes is stored in any cache that it fits.
     */
    REQUEST_PAGE_ONLY = 1u << 0,
    /*
     * The response is read from its head on, and its consumer bounds the body: max_body does not,
     * and total_timeout_us ends with the head, so that stall_timeout_us is its only time limit.
     * head() and body() may return FETCH_PAUSE, so the fetch uses HTTP/1.1: no libcurl pauses
     * streams of HTTP/2 safely (docs/FETCH.md, "Pauses").
     */
    REQUEST_STREAMS = 1u << 1,
    /*
     * Connects to the URL's host and port and sends nothing: for a tunnel. The same addresses and
     * ports are permitted as for any fetch. sink.connected() gets the socket, and then done() is
     * called with FETCH_OK. The URL is http; method, headers and body are not given.
     */
    REQUEST_CONNECT_ONLY = 1u << 2,
    /*
     * The request is for the server of the URL and not for a resource: its target is "*", or to an
     * upstream proxy the URL without a path (RFC 9112 section 3.2.4). The method is OPTIONS, and
     * the path of the URL "/".
     */
    REQUEST_WHOLE_SERVER = 1u << 3,
    /*
     * The operator has configured the URL, as that of a member of a row: its address and its port
     * need no permission. But for a tunnel, no client has asked for it: it is a probe, which takes
     * no place of the requests to its origin, and waits for none.
     */
    REQUEST_CONFIGURED = 1u << 4,
    /* The origin's owner runs this proxy, as in front of a server: CDN-Cache-Control (RFC 9213) is
     * for it. */
    REQUEST_OWNED = 1u << 5,
    /* Fields of the client's own are among `fields`, so the response is for this client alone. */
    REQUEST_OWN_FIELDS = 1u << 6,
    /* Resolves the name of the URL's host and connects to nothing: done() is called with FETCH_OK
     * then. */
    REQUEST_RESOLVE_ONLY = 1u << 7,
};

enum request_body_kind {
    REQUEST_BODY_NONE,
    REQUEST_BODY_SUPPLIED, /* by the sink's supply(), piece by piece, over HTTP/1.1 */
};

/* The body of a request. An empty one is sent with Content-Length: 0, none without. */
struct request_body {
    enum request_body_kind kind;
    int64_t length; /* its bytes; -1: unknown, sent in chunks */
};

/*
 * Zero but for the URL it is a plain GET of no client. It is sent again on another connection only
 * if its method is safe (RFC 9110 section 9.2.1), it has no body, and the origin closed a kept
 * connection before the first byte of a response. "Expect: 100-continue" is not sent.
 */
struct request {
    struct client *client; /* to which fetch and memory are counted; NULL: front.client() is asked
                              when the request is to wait */
    enum http_method method;
    struct span method_name; /* a token (RFC 9110 section 9.1) of at most 64 bytes; may be empty for
                                GET */
    struct span url;         /* any bytes, at most OBJECT_MAX_META of them; a front spells it as
                                http_write_url() does */
    struct span target;      /* what is fetched instead, since the URL leads there; empty: the
                                URL */
    /*
     * The end-to-end field lines, each ended by CR LF, as fetch_check_request() takes them:
     * Accept-Encoding, Accept and User-Agent are sent only where they are among these. A front may
     * make the lines later (front.fields()): then they have no address at first.
     */
    struct span fields;
    /*
     * Of enum http_request_field (http/request_head.h): what the fields certainly lack, so that a
     * hit need not search them. 0: nothing is known.
     */
    uint32_t lacks;
    unsigned flags;          /* of enum request_flags */
    enum http_reason passes; /* why it passes the cache: the response is fetched, and not stored.
                                HTTP_REASON_NONE: nothing but what it says itself is known */
    struct request_body body;
    /*
     * What the operator has configured for the request: the struct proxy_rules
     * (proxy/proxy_rules.h) that were in force when it came, which must stay; a kept copy has a
     * reference. NULL: those of the proxy.
     */
    struct shared *rules;
    struct settings *settings;  /* to be fetched with (fetch.h), which live as long as the rules;
                                   NULL:  the fetcher's */
    struct origin_route *route; /* to the origin, which lives as long as the rules; NULL: the URL
                                   itself */
    struct origin_peers *peers; /* that may be asked before the origin, where the request is no one
                                   client's; with REQUEST_CONFIGURED, it is news for one of them,
                                   whose URL it has. They live as long as the rules. NULL: none */
    size_t waiting_bytes; /* what the front's memory for the request takes while it waits, not 0;
                             counted for the client, and charged to the account by the front */
    int64_t arrived_us;   /* of the monotonic clock */
};

static inline bool
request_is_owned(const struct request *request)
{
    return request->flags & REQUEST_OWNED;
}

/* Is it the daemon's own message to a peer: sent to no other proxy, with any fields? */
static inline bool
request_is_news(const struct request *request)
{
    return request->peers && request->flags & REQUEST_CONFIGURED;
}

static inline bool
request_streams(const struct request *request)
{
    return request->flags & REQUEST_STREAMS;
}

static inline bool
request_has_body(const struct request *request)
{
    return request->body.kind != REQUEST_BODY_NONE;
}

/*
 * May the request be sent a second time when the first one had no response? Its method is safe (RFC
 * 9110 section 9.2.1) and it has no body, which is not there twice. PUT and DELETE are idempotent,
 * but a second one may undo what another client has written meanwhile, or respond that there is
 * nothing to delete.
 */
static inline bool
request_may_repeat(const struct request *request)
{
    return http_method_is_safe(request->method) && !request_has_body(request);
}

/* The URL that is fetched. */
static inline struct span
request_fetched_url(const struct request *request)
{
    return request->target.len ? request->target : request->url;
}

/*
 * A copy with the bytes of its spans, `url` as its URL, and a reference to this client; one
 * reference, the caller's.
 * Charged (MEMORY_REQUESTS) until the last reference is released. NULL with errno ENOMEM, or
 * ENOBUFS if the account is used up.
 */
const struct request *request_keep(const struct request *request, struct span url,
                                   struct client *client, struct memory_account *account);

/* Bytes that such a copy takes. */
size_t request_size(const struct request *request, struct span url);

/* Of what request_keep() has returned. */
const struct request *request_retain(const struct request *kept);

/* The member of its route, or of its peers, that the request, which is kept, is sent to last; NULL:
 * neither. And its URL, empty before that. [any thread] */
void request_note_member(const struct request *kept, const struct origin_member *member);
struct span request_member(const struct request *kept);

/* The highest number of the marks that its fetches have left in a place behind the cache, for the
 * exchange that waits until they are noted; 0 before that. [any thread] */
#define REQUEST_MARKS 2u
void request_note_mark(const struct request *kept, unsigned place, uint64_t number);
uint64_t request_mark(const struct request *kept, unsigned place);

/* Releases and clears *kept, which may be NULL. */
void request_release(const struct request **kept);

#endif
