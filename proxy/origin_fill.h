/*
 * Filling an object of the cache (cache/fill.h) from an origin: the request is checked, charged and
 * submitted; the response is put into the object; its sharing and storing are decided.
 *
 * - A response that may not be shared (sharing.h) goes only to the request that led to the fetch.
 *   All others look up again, and later ones pass for a while (hit-for-miss).
 * - A fetch that was displaced from the fetcher's queue fails for its own client; the requests of
 *   other clients look up again.
 * - When memory is short, a body may be given up (shedding.h), which fails its object.
 * - If the leader's front streams, the body may have any length. One that is too large to be
 * stored, or that is not stored for another reason, has a window (cache/fill.h): its memory is
 * bounded, and its only reader slows the origin down. Otherwise max_body bounds the body, which is
 * whole; requests of fronts that stream look up again if it is larger.
 * - The conditions of the leader's request are forwarded unless the object that is replaced is
 *   validated by its own. A 304 or 412 to them is the leader's alone; the others look up again.
 * - A 304 to a request without a condition, and a 206 to one without a range, are the leader's
 *   alone, too. They change nothing that is stored, and later ones pass for ORIGIN_FILL_BRIEF_US at
 *   most. A leader whose range was not sent gets no such 206: it looks up again, and the range is
 *   the origin's.
 * - A range is not sent to the origin for the cache, and its reader may need little of the body.
 *   So the fetch goes on to its end if the object is to be stored and at most
 *   proxy_rules.range_fill long, or another request waits for the whole. Otherwise it ends with
 *   the head, later ones pass, and its leader looks up again: the range is the origin's.
 * - When the last request that waits is cancelled, the fetch ends, unless its object is to be
 * stored and little of it is missing, or may be: ORIGIN_FILL_LITTLE.
 */
#ifndef SUNPROXY_PROXY_ORIGIN_FILL_H
#define SUNPROXY_PROXY_ORIGIN_FILL_H

#include "base/clients.h"
#include "cache/fill.h"
#include "http/range.h"
#include "proxy/invalidation.h"
#include "proxy/proxy.h"
#include "proxy/body_relay.h"

/* Requests look up without waiting for each other for this long after an unshared response. */
#define ORIGIN_FILL_PASS_US ((int64_t)120 * 1000000)

/* And while a response arrives that is stored, but has to be validated before each use, and after
 * a response that was not asked for. */
#define ORIGIN_FILL_BRIEF_US ((int64_t)1000000)

/* The window of a body that is not stored, and how far a reader may be behind another one. */
#define ORIGIN_FILL_WINDOW ((uint64_t)1 << 20)
#define ORIGIN_FILL_LAG ((uint64_t)4 << 20)

/*
 * A fetch for which no request waits goes on if nothing of its response is missing, or if it may
 * change the origin and has no head. One without a head ends, unless its client may come again for
 * it, as those of RPC do (REQUEST_PAGE_ONLY). Otherwise it goes on for an object that is to be
 * stored while less than this is missing, or an unknown length has not reached it, or less than a
 * quarter is missing; for a redirect that its front has followed, if it is not longer than
 * ORIGIN_FILL_SHORT; but for this long at most. A refresh in the background of what is to be stored
 * goes on whatever is missing, for a time of its own; so does a fetch for a range, or of what has
 * answered a condition, up to proxy_rules.range_fill.
 */
#define ORIGIN_FILL_HOT 3u /* fetches of a URL from peers after which this cache has it as well */
#define ORIGIN_FILL_LITTLE ((uint64_t)1 << 20)
#define ORIGIN_FILL_SHORT ((uint64_t)16 << 10)
#define ORIGIN_FILL_UNWANTED_US ((int64_t)60 * 1000000)
#define ORIGIN_FILL_REFRESH_US ((int64_t)600 * 1000000)

/* What waits for an object: `base` is what the cache sees. */
struct origin_waiter {
    struct object_waiter base;
    struct client *_Atomic client; /* NULL: not known yet */
    /* Of a leader, once origin_fill_start() has returned: the origin evaluates its conditions. */
    bool sends_conditions;
    bool wants_part; /* by a range: HTTP_WANTS_PART */
};

/* What the fetch is to its client's rate of fetches. */
enum origin_fill_rate {
    ORIGIN_FILL_FREE,     /* the rate does not hold for the request */
    ORIGIN_FILL_RATED,    /* it takes a token, or is refused */
    ORIGIN_FILL_INDEBTED, /* its client has waited already, or been redirected: it takes a token
                             whatever it costs */
};

/* Who gets the response. */
enum origin_fill_purpose {
    ORIGIN_FILL_SHARES,    /* all that wait, and the cache */
    ORIGIN_FILL_REFRESHES, /* the cache: the leader has left when the fetch begins */
    ORIGIN_FILL_PASSES,    /* the leader alone, as far as is known; the cache, if all may have it */
    ORIGIN_FILL_SEPARATES, /* the leader alone. What is stored stays unless the response replaces
                              it */
    ORIGIN_FILL_BYPASSES,  /* the leader alone. The cache does not get it, whatever the origin says
                            */
};

/* What an object is filled for. */
struct origin_fill_order {
    const struct request *request; /* kept: the fill takes a reference of its own */
    struct origin_waiter *leader;  /* whose lookup gave the fill */
    enum origin_fill_purpose purpose;
    enum http_reason passes;  /* why the cache does not get it, or the leader's lookup passed it */
    enum http_wanted wanted; /* by a range that is not sent */
    struct relay *relay;         /* a reference that the fill releases; NULL: none */
    enum origin_fill_rate rate;
};

/* cache_request.fill_size for fills that origin_fill_start() or a source is to get. */
size_t origin_fill_size(void);

/*
 * Begins to fetch the URL of the fill's object for the leader's client, and owns the fill from now
 * on. URL and fields are checked by the fetcher, once; a failed check fails the fill for all.
 *
 * False: refused (memory, rate). The other waiters look up again, and the leader has its FAILED,
 * with a number of enum failure and a sentence, to be taken: it is not notified of it.
 */
bool origin_fill_start(struct proxy *proxy, struct cache_fill *fill,
                       const struct origin_fill_order *order);

/* Instead of it: refuses the fill, for a reason as errno states it (origin_fill_refusal()). */
void origin_fill_refuse(struct proxy *proxy, struct cache_fill *fill,
                        const struct origin_fill_order *order, int error);

/*
 * Why a request may not wait, as errno states it: EDQUOT (its client's waiting requests take as
 * much memory as they may), ENOBUFS (those of all clients) or ENOMEM. Returns static text.
 */
const char *origin_fill_refusal(int error, enum failure *why);

#endif
