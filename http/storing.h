/*
 * May a shared cache store a response, how old was it on arrival, how long is it fresh, and how may
 * it be used afterwards: RFC 9111 sections 3, 4.2 and 5.2, RFC 5861, RFC 9213. One evaluation for
 * every front; the rules say where fronts and operators differ. Pure arithmetic, nothing is
 * allocated. Safe on any thread.
 *
 * Lifetimes and ages count from the moment at which the response's age was 0: arrival less
 * `age_us`. A response is fresh while its age is below `lifetime_us`.
 */
#ifndef SUNPROXY_HTTP_STORING_H
#define SUNPROXY_HTTP_STORING_H

#include <stdint.h>

#include "base/span.h"
#include "http/method.h"
#include "http/reason.h"
#include "http/variant.h"

#define HTTP_UNLIMITED INT64_MAX

/* When a response came. */
struct http_arrival {
    int64_t wall_s;    /* the wall clock as its head was complete, seconds since 1970 */
    int64_t waited_us; /* since the request for it was sent */
};

/* A response and the request that it answers. */
struct http_received {
    enum http_method method;        /* of the request */
    struct span request_lines; /* the request's field lines, as the origin evaluated them: with a
                                  condition or a range, no status but 200 is stored */
    unsigned status;           /* of the stored response where a 304 updated it */
    struct span lines;         /* the response's, as the origin sent them, hop-by-hop ones included;
                                  where a 304 updated a stored response, the updated ones */
    struct span validated_by;  /* the 304's lines, from which Age is taken; NULL pointer: no 304 */
    struct http_arrival arrival;
    unsigned made_for; /* of enum http_credentials: what the request had that the stored response,
                          which a 304 has updated, was made for */
    /*
     * Content-Location of the response to a POST is the URL of the request: with an explicit
     * lifetime it answers later GET requests (RFC 9110 section 9.3.3).
     */
    bool own_location;
};

/* What tells an origin which user sends a request. */
enum http_credentials {
    HTTP_FOR_COOKIE = 1,
    HTTP_FOR_AUTHORIZATION = 2,
};

/* What keeps a response from being stored, or shared, unless the operator has it overridden. */
enum http_override {
    HTTP_OVERRIDE_NO_STORE = 1,
    HTTP_OVERRIDE_PRIVATE = 2,
    HTTP_OVERRIDE_NO_CACHE = 4,
    HTTP_OVERRIDE_SET_COOKIE = 8,
    HTTP_OVERRIDE_COOKIE = 16,        /* the request has Cookie, */
    HTTP_OVERRIDE_AUTHORIZATION = 32, /* or Authorization */
};

/* What the operator has decided about a response. */
enum http_decided {
    HTTP_DECIDED_LIFETIME = 1,
    HTTP_DECIDED_DEFAULT = 2,
    HTTP_DECIDED_GRACE = 4,
};

struct http_storing_rules {
    /* The caller validates stored responses. Otherwise what needs a validation is not stored. */
    bool validates;
    /* The caller evaluates status and method itself, and any of them counts as cacheable. */
    bool any_status;
    /*
     * The caller does not store the fields that no-cache and private name (http/update.h), and yet
     * forwards them to the client that the response was fetched for. Otherwise these directives
     * concern the whole response: RFC 9111 sections 5.2.2.4 and 5.2.2.7.
     */
    bool drops_named_fields;
    bool cdn_cache_control; /* honours CDN-Cache-Control; for caches that the origin's owner runs */
    bool set_cookie;        /* stores responses with Set-Cookie that state a lifetime */
    bool counts_age;        /* a lifetime of the operator's counts from the age 0 on, as a peer that
                               had the response before counts it */
    bool drops_set_cookie;  /* does not store the field Set-Cookie (http/update.h) */
    bool client_errors;     /* stores 400, 413 and 414 */
    /* The caller's client knows nothing of freshness: a 200, 301 or 308 that states no lifetime is
     * fresh without a limit, instead of by a heuristic. */
    bool keeps_unstated;
    unsigned heuristic_percent; /* of the time since Last-Modified; 0: no heuristic */
    int64_t heuristic_max_us;   /* of a lifetime that is a heuristic one */
    int64_t redirect_max_us;    /* of any lifetime of a 3xx; HTTP_UNLIMITED */
    int64_t negative_max_us;    /* of any lifetime of a 4xx or 5xx; likewise */
    /*
     * What the operator has decided about this response. A lifetime counts from the arrival,
     * unless counts_age, and has no limit but its own.
     */
    unsigned decided;    /* of enum http_decided: which of the next three are set */
    int64_t lifetime_us; /* whatever the response states */
    int64_t default_us;  /* where it states none */
    int64_t grace_us;    /* stale use while it is fetched again, and where the origin fails */
    unsigned overrides;  /* of enum http_override: what the lifetime overrides, */
    unsigned default_overrides; /* and what the default does */
    /* Fields of requests that select the response, beside those in Vary: no more than
     * HTTP_VARY_MAX, or it is taken for one with "Vary: *". */
    struct span key_names[HTTP_VARY_MAX + 1];
    size_t key_count;
};

/* A cache that validates, uses no heuristic, stores no cookies, and limits nothing. */
void http_storing_rules_init(struct http_storing_rules *rules);

enum http_lifetime {
    HTTP_LIFETIME_UNSTATED, /* the response says nothing; `lifetime_us` is 0, or HTTP_UNLIMITED by
                               the rule keeps_unstated */
    HTTP_LIFETIME_EXPLICIT,
    HTTP_LIFETIME_HEURISTIC,
    HTTP_LIFETIME_RULE, /* the operator's, where the response states none that is positive */
};

struct http_storing {
    enum http_reason refusal; /* HTTP_REASON_NONE: it may be stored */
    enum http_lifetime lifetime;
    int64_t age_us;       /* corrected initial age: RFC 9111 section 4.2.3 */
    int64_t lifetime_us;  /* from the age 0 on; never negative */
    bool always_validate; /* before each use: no-cache */
    bool may_be_stale;    /* nothing forbids to use it stale: RFC 9111 section 4.2.4 */
    bool has_validator;   /* ETag or Last-Modified */
    /* Behind the lifetime; 0 if not stated or if it may not be used stale: RFC 5861. */
    int64_t stale_while_revalidate_us;
    int64_t stale_if_error_us;
    bool lets_in_cookie;  /* it has Set-Cookie, which the operator has overridden: the field is one
                             client's, and is not for others */
    unsigned made_for; /* of enum http_credentials: of the request, and as http_received has it,
                          without what is overridden */
    unsigned not_for; /* of enum http_credentials: requests with these may not have it while it is
                         fresh, since as one to them it would not be stored */
    enum http_vary_kind vary; /* HTTP_VARY_ANY is refused */
    struct http_vary vary_names;
};

/*
 * Evaluates a response. A request that has credentials may have been answered for its user alone,
 * whether the origin says so or not:
 *
 * - The response to one with Cookie is another client's only if it has a positive lifetime or
 *   `public`, or if Vary names Cookie; that to one with Authorization as RFC 9111 section 3.5 has
 *   it, where must-revalidate and s-maxage count with a positive lifetime.
 * - With no-cache it is never another client's: a validation for another client says nothing about
 *   whose response it was, since origins give the same entity tag to all users.
 * - No heuristic lifetime applies to it, nor to a response with Set-Cookie.
 *
 * All of *storing is set, whatever the refusal, so that a refused response
 * can be shared by requests that already wait where the caller's rules permit that.
 *
 * RFC 9111 section 5.2.2.10 gives s-maxage the meaning of proxy-revalidate, so a response with it
 * is not used stale, by RFC 5861's windows neither.
 */
void http_evaluate_response(const struct http_received *received,
                            const struct http_storing_rules *rules, struct http_storing *storing);

/* Is the reason what the request had that the response was made for? */
static inline bool
http_is_for_credentials(enum http_reason refusal)
{
    return refusal == HTTP_REASON_AUTHORIZATION || refusal == HTTP_REASON_COOKIE;
}

/* Of enum http_credentials: what a request with these field lines has. */
unsigned http_credentials_of(struct span request_lines);

/* Defined as cacheable without an explicit lifetime: RFC 9110 section 15.1. */
bool http_status_is_heuristic(unsigned status);

#endif
