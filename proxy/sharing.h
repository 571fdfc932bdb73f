/*
 * May the response to a fetch be given to more than the client that it was fetched for, and for how
 * long (http/storing.h)?
 *
 * Belongs to one fetch, on the fetcher's thread. Times are those of the monotonic clock.
 */
#ifndef SUNPROXY_PROXY_SHARING_H
#define SUNPROXY_PROXY_SHARING_H

#include <stdint.h>

#include "fetch/fetch.h"
#include "http/reason.h"

struct http_received;
struct http_storing_rules;

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

#endif
