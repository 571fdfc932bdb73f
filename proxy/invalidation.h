/*
 * What a request with an unsafe method makes invalid (RFC 9111 section 4.4): everything that the
 * cache has for its URL, and for the URLs of the same origin in Location and Content-Location of a
 * response that is no error. Objects of all variants and both kinds are removed; those that are
 * being fetched go to the requests that wait for them and are not stored.
 *
 * Of an origin that has several URLs the resource is invalidated under each of them: a response may
 * have been stored while another one was in use.
 *
 * The URL is invalidated before the client gets the response, with what was fetched meanwhile: a
 * fetch that has begun before may have got what the request has changed since. An error response
 * leaves everything as it is. Without a response nothing is known about what the request has done,
 * so the URL is invalidated, too.
 *
 * [any thread]
 */
#ifndef SUNPROXY_PROXY_INVALIDATION_H
#define SUNPROXY_PROXY_INVALIDATION_H

#include "proxy/proxy.h"

/*
 * The URLs of one resource: what follows the first of `bases` that a URL may begin with follows the
 * others, too. They have no slash at their ends. Without bases a URL has no others.
 */
struct invalidation_row {
    const struct span *bases; /* must stay until the request's fetch has ended */
    unsigned count;
    unsigned used; /* the base of the request's own URL */
};

/*
 * The request is about to be forwarded: only if proxy_config.invalidates_early, for origins whose
 * responses to other requests depend on it while it has not been answered.
 */
void invalidation_before(struct proxy *proxy, const struct invalidation_row *row, struct span url);

/* Its response has this head. */
void invalidation_after(struct proxy *proxy, const struct invalidation_row *row, struct span url,
                        unsigned status, struct span lines);

/* It has failed. */
void invalidation_unanswered(struct proxy *proxy, const struct invalidation_row *row,
                             struct span url);

#endif
