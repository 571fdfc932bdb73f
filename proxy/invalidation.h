/*
 * What a request with an unsafe method makes invalid (RFC 9111 section 4.4): everything that the
 * cache has for its URL, and for the URLs of the same origin in Location and Content-Location of a
 * response that is no error. Objects of all variants and both kinds are removed; those that are
 * being fetched go to the requests that wait for them and are not stored.
 *
 * Both functions are called for each request: before it is forwarded, so that no later request gets
 * an object that it changes, and again before the client gets the response, so that nothing that
 * was fetched meanwhile stays. [any thread]
 */
#ifndef SUNPROXY_PROXY_INVALIDATION_H
#define SUNPROXY_PROXY_INVALIDATION_H

#include "proxy/proxy.h"

void invalidation_before(struct proxy *proxy, struct span url);
void invalidation_after(struct proxy *proxy, struct span url, unsigned status, struct span lines);

#endif
