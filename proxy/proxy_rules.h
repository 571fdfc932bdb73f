/*
 * What the operator may change while the proxy runs and no shared state depends on: how responses
 * are judged, tagged and stored. A request keeps the rules with which it began
 * (request.rules). Constant; safe on any thread.
 */
#ifndef SUNPROXY_PROXY_PROXY_RULES_H
#define SUNPROXY_PROXY_PROXY_RULES_H

#include "base/shared.h"
#include "fetch/request.h"
#include "proxy/proxy.h"

struct http_storing_rules;
struct rules;
struct tag_rules;

/* What is pointed at lives as long as these. */
struct proxy_rules {
    struct shared shared; /* first. Its owner's where nothing is counted */
    int64_t max_age_us;   /* how long a page is a hit after its fetch; 0: not bounded */
    const struct http_storing_rules *storing; /* NULL: those of http_storing_rules_init() */
    const struct rules *table; /* the operator's rules for requests and responses; NULL: none */
    const char *const *tag_fields; /* names of fields with the tags of responses, NULL-ended. NULL:
                                      tags_default_fields */
    const struct tag_rules *tag_rules;   /* give tags to objects by their paths; NULL: none */
    const struct tag_rules *write_rules; /* name what else a write invalidates; NULL: nothing */
    bool invalidates_early; /* writes invalidate before they are forwarded, too, also where no rule
                               concerns them: invalidation.h */
    /*
     * Bytes of a body that is stored; larger ones are passed on. 0: for fronts that stream an
     * eighth of the cache's capacity if that is bounded in bytes, but at least max_body for
     * requests with REQUEST_PAGE_ONLY; otherwise max_body.
     */
    uint64_t max_page;
    uint64_t range_fill;  /* bytes of a body that is stored for a request for a part of it; 0: the
                             request is passed on, unless the whole is there */
    unsigned max_waiters; /* requests that may wait for one object */
    unsigned generation;  /* rises with each rules that replace others (proxy.generation) */
};

static inline const struct proxy_rules *
proxy_rules_of(const struct proxy *proxy, const struct request *request)
{
    return request->rules ? (const struct proxy_rules *)request->rules : proxy->config.rules;
}

/* Have others replaced the rules of the request, whose response may then be another origin's than
 * the one that is in force? */
static inline bool
proxy_rules_are_replaced(const struct proxy *proxy, const struct request *request)
{
    return proxy_rules_of(proxy, request)->generation <
           atomic_load_explicit(&proxy->generation, memory_order_relaxed);
}

#endif
