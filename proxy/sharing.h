/*
 * Which requests a response may be given to by the rules of HTTP (http/storing.h): when it comes,
 * once its object has expired, and if the request says which user sends it. Times are those of the
 * monotonic clock.
 */
#ifndef SUNPROXY_PROXY_SHARING_H
#define SUNPROXY_PROXY_SHARING_H

#include "cache/object.h"
#include "http/known_fields.h"
#include "http/reason.h"
#include "http/request_head.h"
#include "http/storing.h"
#include "proxy/proxy.h"
#include "store/source.h"

struct http_received;

/* ---- responses ------------------------------------------------------------------------------- */

/*
 * May the response to a fetch be given to more than the client that it was fetched for, and for how
 * long? Belongs to one fetch, on the fetcher's thread.
 */
struct sharing {
    bool any;           /* every response may be shared: --freshness off */
    int64_t max_age_us; /* of use without a new fetch, whatever a response states; 0 */
    enum http_reason unshared; /* why it may not be shared; HTTP_REASON_NONE: it may so far */
    enum http_reason refusal;  /* why it is not storable, whether or not it is unshared;
                                  HTTP_REASON_NONE: it is storable */
    unsigned notes;            /* what an object of the response has as notes because of this */
    bool joinable;             /* requests that wait for the response may have it */
    int64_t born_us;           /* when its age was 0 */
    int64_t fresh_until_us;    /* INT64_MAX: unlimited */
    int64_t while_revalidate_us; /* it may be used this long after its lifetime (RFC 5861 section
                                    3), by requests that demand nothing; 0 if age is bounded */
};

/*
 * Before the response. However it may be shared otherwise, a response is fresh for at most
 * `max_age_us` from its arrival on; 0: not bounded.
 */
void sharing_init(struct sharing *sharing, bool any, int64_t max_age_us);

/*
 * Evaluates a response, whose head came now.
 * Requests that wait for it may have it only if it could answer them from the cache at once: it may
 * be stored, is fresh, and needs no validation. Any other response may have been made for its
 * request alone. `unshared` has the reason only where one request's response harms another, such
 * as a cookie.
 */
void sharing_evaluate(struct sharing *sharing, const struct http_received *received,
                      const struct http_storing_rules *rules, int64_t now_us);

/* Is it unshared because of what the request has (Authorization, Cookie, no-store, a range), and
 * not because of the response? */
bool sharing_is_by_request(const struct sharing *sharing);

/* For struct http_received: what the response was made for, by the notes of its object. */
unsigned sharing_made_for(unsigned notes);

/* How long the response is fresh from `fetched_us` on, INT64_MAX if unlimited. */
int64_t sharing_lifetime(const struct sharing *sharing, int64_t fetched_us);

/* ---- stale objects --------------------------------------------------------------------------- */

/*
 * May an object that is not fresh be used without asking its origin (RFC 9111 section 4.2.4, RFC
 * 5861)? The response's directives are read from the object, which only requests for objects that
 * have expired do. Safe on any thread.
 */

/* How long after its lifetime an object is used without its origin, if it states nothing. */
#define STALENESS_DISCONNECTED_US ((int64_t)86400 * 1000000)

/* Of a ready object. */
static inline struct source_head
sharing_head_of(const struct object *object)
{
    return (struct source_head){
        .url = object_url(object),
        .fields = object_fields(object),
        .status = object->status,
        .notes = object->notes,
        .born_us = object->fetched_us,
        .fetch_us = object->fetch_us,
        .lifetime_us = object_lifetime(object),
    };
}

/* What a stored object is, as a response to a request with these credentials; without names of
 * Vary. Of memory that is used up no use is permitted. */
void sharing_evaluate_stored(const struct proxy *proxy, const struct object *object,
                             const struct request *request, unsigned made_for,
                             struct http_storing *storing);

/*
 * Reviews what was stored under other options: one that refuses it now, or bounds its lifetime, as
 * --max-age does. Lowers head->lifetime_us to the bound, and returns why it may not be given to
 * others (HTTP_REASON_MEMORY: it is not known); HTTP_REASON_NONE: it may. `request` has the rules
 * that are in force, and whether the origin is the operator's. A lifetime that a rule has set is
 * bounded by --max-age alone.
 */
enum http_reason sharing_review(const struct proxy *proxy, const struct request *request,
                                struct source_head *head);

/* Why it may be used. */
enum staleness {
    STALENESS_ACCEPTED,         /* the request has max-stale: `accepted_us` */
    STALENESS_WHILE_REVALIDATE, /* its successor is being fetched */
    STALENESS_IF_ERROR,         /* the origin fails */
    STALENESS_DISCONNECTED,     /* the origin cannot be reached: RFC 9111 section 4.2.4 */
};

enum http_reason staleness_reason(enum staleness why);

/*
 * The notes of objects that have expired for a request as soon as they are there: what states no
 * lifetime is fresh to clients that know nothing of freshness, and to no others.
 */
static inline unsigned
staleness_notes(const struct request *request)
{
    return request->flags & REQUEST_PAGE_ONLY ? 0 : (unsigned)HTTP_KNOWN_UNSTATED;
}

/*
 * For a ready object, at `now_us`, and a request with these credentials (enum http_credentials);
 * `accepted_us` is how long after its lifetime the request accepts
 * it, for STALENESS_ACCEPTED only. Where the age of pages is bounded (max_age_us in struct
 * proxy_rules), an object over the bound is only used if its origin fails.
 */
bool staleness_permits(const struct proxy *proxy, const struct object *object,
                       const struct request *request, unsigned credentials, enum staleness why,
                       int64_t accepted_us, int64_t now_us);

/* ---- users ----------------------------------------------------------------------------------- */

/*
 * Which stored responses a request with Cookie or Authorization may get. Such a request says which
 * user sends it, and an origin may answer it for that user alone without saying so. So it does not
 * get a response that would not be stored if it were the one to this request (http/storing.h): not
 * by a heuristic, not after a 304, and not stale. It is passed on instead.
 */

/* The fields that name a user: a request that lacks them is no user's. */
#define USER_RULES_FIELDS ((uint32_t)HTTP_HAS_COOKIE | (uint32_t)HTTP_HAS_AUTHORIZATION)

/* For an object that is fresh, which one with a lifetime that the origin has stated remains. The
 * credentials are of enum http_credentials. */
static inline bool
user_rules_permit_fresh(const struct object *object, unsigned credentials)
{
    return !(credentials & HTTP_FOR_COOKIE && object->notes & HTTP_KNOWN_NOT_FOR_COOKIE) &&
           !(credentials & HTTP_FOR_AUTHORIZATION &&
             object->notes & HTTP_KNOWN_NOT_FOR_AUTHORIZATION);
}

/* For a ready object that is not fresh enough. */
bool user_rules_permit_stale(const struct proxy *proxy, const struct object *object,
                             const struct request *request, struct span request_lines);

#endif
