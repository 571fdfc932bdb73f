#include "server/explain/explain.h"

#include "http/known_fields.h"
#include "origins/origin_peers.h"
#include "origins/origin_route.h"
#include "proxy/demand.h"
#include "proxy/sharing.h"
#include "store/source.h"

#define MAX_NAMES 3 /* lookups of names, as an exchange does them */

const char *
explained_word(enum explained explained)
{
    static const char *const words[] = {
        [EXPLAINED_HIT] = "hit",
        [EXPLAINED_STALE] = "stale",
        [EXPLAINED_JOINS] = "coalesced",
        [EXPLAINED_ASKS_STORE] = "asks the store",
        [EXPLAINED_ASKS_TIER] = "asks the tier",
        [EXPLAINED_VALIDATES] = "validation",
        [EXPLAINED_MISS] = "miss",
        [EXPLAINED_PASSES] = "bypass",
        [EXPLAINED_NOT_CACHED] = "not cached",
        [EXPLAINED_DOWN] = "down, status 503",
    };

    return words[explained];
}

/* What the cache has for the request, by the names of the fields that select it. */
static void
peek(struct exchange *x, struct explanation *e, struct cache_peeked *peeked)
{
    struct cache *cache = x->proxy->config.cache;
    struct span variant = span_of(NULL, 0);

    for (unsigned i = 0; i <= MAX_NAMES; i++) {
        struct cache_key key = cache_key_of_variant(x->request->url, variant);
        struct span names;

        cache_peek(cache, &key, x->as_of_us, peeked);
        if (!peeked->varies)
            return;
        names = object_fields(peeked->object);
        buf_reset(&e->names);
        buf_append(&e->names, names.ptr, names.len);
        object_release(&peeked->object);
        if (!demand_select_variant(x, buf_span(&e->names), &e->variant))
            break;
        variant = buf_span(&e->variant);
    }
    *peeked = (struct cache_peeked){0};
}

static void
set(struct explanation *e, enum explained would, enum http_reason reason)
{
    e->would = would;
    e->reason = reason;
}

/* The request has a stored object. */
static void
judge(struct exchange *x, const struct demand *demand, struct explanation *e, bool filling)
{
    const struct object *object = e->object;
    const bool fresh =
        object_is_fresh(object, x->as_of_us) && !(object->notes & staleness_notes(x->request));

    if (fresh && cache_conditions_are_met(&demand->conditions, object, x->as_of_us))
        set(e, demand_suits_fresh(x, object) ? EXPLAINED_HIT : EXPLAINED_PASSES,
            demand_suits_fresh(x, object) ? HTTP_REASON_NONE : HTTP_REASON_REQUEST_USER);
    else if (!demand_suits_stale(x, object))
        set(e, EXPLAINED_PASSES, HTTP_REASON_REQUEST_USER);
    else if (demand->max_stale_us && demand_accepts(x, demand, object))
        set(e, EXPLAINED_STALE, HTTP_REASON_MAX_STALE);
    else if (demand_may_refresh_later(x, demand, object))
        set(e, EXPLAINED_STALE, HTTP_REASON_WHILE_REVALIDATE);
    else
        set(e, filling ? EXPLAINED_JOINS : EXPLAINED_VALIDATES,
            fresh ? HTTP_REASON_REQUEST : HTTP_REASON_EXPIRED);
    if (e->would == EXPLAINED_VALIDATES && !e->storing.has_validator)
        e->would = EXPLAINED_MISS;
}

/* Is a peer asked before a member of the row? */
static bool
asks_peer(const struct exchange *x, const struct explanation *e)
{
    struct origin_peers *peers = x->request->peers;

    return peers && e->would != EXPLAINED_PASSES &&
           origin_peers_owner(peers, x->request->url, x->as_of_us) != peers->self;
}

/* The request would be fetched: what becomes of it where all members of its row are down? */
static void
judge_outage(struct exchange *x, struct explanation *e)
{
    const struct origin_route *route = x->request->route;

    if (!route || origin_route_serves(route, x->as_of_us) || asks_peer(x, e))
        return;
    if (e->object && e->would != EXPLAINED_PASSES &&
        staleness_permits(x->proxy, e->object, x->request, demand_credentials(x),
                          STALENESS_DISCONNECTED, 0, x->as_of_us))
        set(e, EXPLAINED_STALE, HTTP_REASON_DISCONNECTED);
    else
        e->would = EXPLAINED_DOWN;
}

/* Nothing is in memory: which source does the request ask? EXPLAINED_MISS: none. As
 * stored_begin(), for a request that shares, and stored_may_begin(), for others. */
static enum explained
find_source(const struct exchange *x, const struct demand *demand, struct span variant)
{
    struct source *const *sources = x->proxy->config.sources;
    const bool shares = demand->way == REQUEST_SHARES && !demand->only_cached;
    enum explained asked = EXPLAINED_MISS;

    for (unsigned i = 0; sources[i] && !demand->conditions.no_cache; i++) {
        if (sources[i]->ops->may_have(sources[i], x->url, variant))
            return EXPLAINED_ASKS_STORE;
        if (sources[i]->ops->is_shared && shares)
            asked = EXPLAINED_ASKS_TIER;
    }
    return asked;
}

/* It is on disk, and was read. */
static void
judge_read(struct exchange *x, const struct demand *demand, struct explanation *e,
           struct object *read)
{
    e->object = object_retain(read);
    e->on_disk = true;
    sharing_evaluate_stored(x->proxy, e->object, x->request, 0, &e->storing);
    judge(x, demand, e, false);
    if (e->would == EXPLAINED_HIT)
        e->would = EXPLAINED_ASKS_STORE;
}

/* There is no stored object in memory. */
static void
judge_absent(struct exchange *x, const struct demand *demand, struct explanation *e,
             const struct cache_peeked *peeked, struct object *read)
{
    const enum http_reason miss = e->names.len ? HTTP_REASON_VARY_MISS : HTTP_REASON_URI_MISS;

    e->passes_for_now = peeked->passes;
    if (peeked->passes)
        set(e, EXPLAINED_PASSES, HTTP_REASON_URI_MISS);
    else if (peeked->filling)
        set(e, EXPLAINED_JOINS, miss);
    else
        set(e, find_source(x, demand, buf_span(&e->variant)), miss);
    if (e->would == EXPLAINED_ASKS_STORE && read)
        judge_read(x, demand, e, read);
    else if (e->would == EXPLAINED_ASKS_STORE || e->would == EXPLAINED_ASKS_TIER)
        e->reason = HTTP_REASON_NONE;
}

/* Is the request answered without the origin, as far as that is known? */
static bool
is_answered(const struct explanation *e)
{
    return e->would == EXPLAINED_HIT || e->would == EXPLAINED_STALE ||
           e->would == EXPLAINED_ASKS_STORE;
}

void
explain_exchange(struct exchange *x, struct object *read, struct explanation *e)
{
    struct cache_peeked peeked;
    struct demand demand;

    *e = (struct explanation){.would = EXPLAINED_MISS};
    buf_init(&e->names, HTTP_VARY_TEXT);
    buf_init(&e->variant, OBJECT_MAX_VARIANT);
    if (!x->as_of_us)
        x->as_of_us = x->request->arrived_us;
    x->url = x->request->url;
    demand_read(&demand, x);
    peek(x, e, &peeked);
    e->object = peeked.object;
    if (e->object)
        sharing_evaluate_stored(x->proxy, e->object, x->request, 0, &e->storing);
    if (demand.way == REQUEST_PASSES)
        set(e, EXPLAINED_PASSES, demand.reason);
    else if (e->object)
        judge(x, &demand, e, peeked.filling);
    else
        judge_absent(x, &demand, e, &peeked, read);
    if (demand.way == REQUEST_USES && !is_answered(e))
        set(e, EXPLAINED_PASSES, demand.reason);
    if (demand.only_cached && !is_answered(e))
        e->would = EXPLAINED_NOT_CACHED;
    if (e->would == EXPLAINED_MISS || e->would == EXPLAINED_VALIDATES ||
        e->would == EXPLAINED_PASSES)
        judge_outage(x, e);
}

void
explanation_free(struct explanation *e)
{
    object_release(&e->object);
    buf_free(&e->names);
    buf_free(&e->variant);
}
