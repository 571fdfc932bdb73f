/*
 * What a request with an unsafe method, a write, makes invalid (RFC 9111 section 4.4):
 *
 * - everything that the cache has for its URL, and for the URLs of the same origin in Location and
 *   Content-Location of a response that is no error, in all variants and of both kinds;
 * - what has one of its tags: those that rules derive from its path (tag_rules.h), and those of
 *   everything that is removed for these URLs.
 *
 * Objects are removed; those that are being fetched go to the requests that wait for them and are
 * not stored.
 *
 * That happens before the client gets the response, with what was fetched meanwhile: a fetch that
 * has begun before may have got what the request has changed since. Without a response nothing is
 * known about what the request has done, so it invalidates, too. An error response invalidates
 * nothing. Where rules concern the path, other responses depend on it, so that a write invalidates
 * before it is forwarded as well, and again after any response.
 * proxy_rules.invalidates_early makes that so for all writes.
 *
 * A URL is that of the client. Of a reverse proxy, what a reference names at a member of the origin
 * (origin_route.h) is invalidated under the client's URL for it. Tags concern all origins if the
 * operator owns them (a reverse proxy), and otherwise the origin of the URL alone: another one's
 * tags are not its own.
 */
#ifndef SUNPROXY_PROXY_INVALIDATION_H
#define SUNPROXY_PROXY_INVALIDATION_H

#include "origins/origin_route.h"
#include "proxy/proxy.h"
#include "proxy/purging.h"

/* Of one write; one thread's at a time. All zero: none. */
struct invalidation {
    struct proxy *proxy;
    const struct request *request; /* kept */
    struct span url;   /* the object's that the fetch fills, before its head */
    struct span scope; /* tags concern the URLs of this origin, in any spelling; empty: all */
    bool early;
    bool all;        /* there was no memory for the tags: everything in the scope counts */
    struct buf tags; /* those of rules; from invalidation_before() on those of removed objects have
                        been added */
    size_t charged;  /* for `tags`, to the account (MEMORY_REQUESTS) */
    struct cache_change change; /* of the latest of the functions below */
    struct purging_marks marks; /* that it has left; the request has them as well once it was
                                   answered, for the exchange that waits for them */
};

/* Of the object with this URL, by this request, which is kept (request_keep()). Both must stay. */
void invalidation_init(struct invalidation *invalidation, struct proxy *proxy,
                       const struct request *kept, struct span url);

/*
 * The request is about to be forwarded. False if the account has no memory for the tags of what has
 * been removed: the request is to be refused.
 */
bool invalidation_before(struct invalidation *invalidation);

/* Its response has this head, from this member of the route. */
void invalidation_after(struct invalidation *invalidation, unsigned member, unsigned status,
                        struct span lines);

/* It has failed. */
void invalidation_unanswered(struct invalidation *invalidation);

/* Purges by a tag what is in a scope, as in struct proxy_purged, which is not called for it. The
 * source that has told of it has it already; NULL: none has. */
void invalidation_purge_tag(struct proxy *proxy, struct span tag, struct span scope,
                            const struct source *told_by);

/* Purges a URL as a write does, in the scope; appends the tags of what it has removed. */
void invalidation_purge_url(struct proxy *proxy, struct span url, struct span scope,
                            struct buf *found);

/* Frees what it holds. Harmless if all is zero. */
void invalidation_free(struct invalidation *invalidation);

#endif
