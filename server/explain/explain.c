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

static bool
is_in_source(const struct exchange *x, struct span variant)
{
    struct source *const *sources = x->proxy->config.sources;

    for (unsigned i = 0; sources[i]; i++)
        if (sources[i]->ops->may_have(sources[i], x->url, variant))
            return true;
    return false;
}

void
explain_exchange(struct exchange *x, struct explanation *e)
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
    e->on_disk = !e->object && !peeked.passes && demand.way == REQUEST_SHARES &&
                 !demand.demands && is_in_source(x, buf_span(&e->variant));
    if (e->object)
        sharing_evaluate_stored(x->proxy, e->object, x->request, 0, &e->storing);
    if (demand.way == REQUEST_PASSES)
        set(e, EXPLAINED_PASSES, demand.reason);
    else if (e->object)
        judge(x, &demand, e, peeked.filling);
    else if ((e->passes_for_now = peeked.passes))
        set(e, EXPLAINED_PASSES, HTTP_REASON_URI_MISS);
    else
        set(e, peeked.filling ? EXPLAINED_JOINS : EXPLAINED_MISS,
            e->names.len ? HTTP_REASON_VARY_MISS : HTTP_REASON_URI_MISS);
    if (demand.way == REQUEST_USES && e->would != EXPLAINED_HIT && e->would != EXPLAINED_STALE)
        set(e, EXPLAINED_PASSES, demand.reason);
    if (demand.only_cached && e->would != EXPLAINED_HIT && e->would != EXPLAINED_STALE)
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
