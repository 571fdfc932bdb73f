#include "proxy/stored.h"

#include <stdlib.h>

#include "http/known_fields.h"
#include "proxy/exchange_wait.h"
#include "proxy/proxy_rules.h"
#include "proxy/sharing.h"

/* Lookups of an exchange that ask sources: the first, and that of a variant. */
#define MOST_TRIES 2u

/* ---- reading --------------------------------------------------------------------------------- */

/* What is filled at once is taken by the exchange itself. */
static void
await_notice(void *waiter)
{
    ((struct object_waiter *)waiter)->notify = exchange_notify;
}

static bool
asks(const struct exchange *x)
{
    return x->proxy->config.sources[0] && !x->alone && !x->led && x->retries < MOST_TRIES;
}

bool
stored_may_begin(const struct exchange *x)
{
    struct source *const *sources = x->proxy->config.sources;
    bool may_have = false;

    for (unsigned i = 0; asks(x) && sources[i] && !may_have; i++)
        may_have = sources[i]->ops->may_have(sources[i], x->url, span_of(NULL, 0));
    return may_have;
}

void
stored_give_up(struct exchange *x, struct cache_fill *fill)
{
    struct object_waiter *waiter = &x->waiter.base;

    waiter->notify = object_waiter_ignore;
    cache_fill_fail(fill, 0, "", origin_fill_is_any, NULL);
    cache_fill_free(fill);
    (void)object_waiter_take(waiter);
    waiter->notify = exchange_notify;
}

static enum http_reason
review(const struct source_review *by, struct source_head *head)
{
    const struct request request = {.rules = by->rules, .flags = by->flags};

    /* Later requests have it validated by the rules that are in force. */
    if (proxy_rules_are_replaced(by->context, &request))
        head->lifetime_us = 0;
    return sharing_review(by->context, &request, head);
}

enum source_filling
stored_begin(struct exchange *x, struct cache_fill *fill, const struct demand *demand)
{
    struct source *const *sources = x->proxy->config.sources;
    struct object_waiter *waiter = &x->waiter.base;
    enum source_filling filling = SOURCE_HAS_NOT;
    struct source_request request;

    if (demand->way != REQUEST_SHARES || demand->conditions.no_cache || !asks(x))
        return SOURCE_HAS_NOT;
    request = (struct source_request){
        demand_fields(x), proxy_largest_page(x->proxy, x->request), await_notice, waiter, x->worker,
        {review, x->proxy, x->request->rules, x->request->flags}};
    waiter->notify = object_waiter_ignore;
    for (unsigned i = 0; sources[i] && filling == SOURCE_HAS_NOT; i++)
        filling = sources[i]->ops->fill(sources[i], fill, &request);
    if (filling == SOURCE_HAS_NOT)
        waiter->notify = exchange_notify;
    return filling;
}

bool
stored_is_source(const struct exchange *x, unsigned events)
{
    const struct object_waiter *waiter = &x->waiter.base;

    return waiter->object->notes & HTTP_KNOWN_SAVED && !x->led &&
           !(events & WAITER_END && (waiter->outcome == CACHE_FELL_BACK || waiter->refreshed));
}

bool
stored_suits(struct exchange *x)
{
    const struct object *object = x->waiter.base.object;
    struct demand demand;

    if (!object_is_fresh(object, x->as_of_us) || object->notes & staleness_notes(x->request))
        return false;
    demand_read(&demand, x);
    return !demand.demands || cache_conditions_are_met(&demand.conditions, object, x->as_of_us);
}

/* ---- writes ---------------------------------------------------------------------------------- */

struct stored_wait {
    struct purging_wait wait; /* first */
    struct exchange *exchange;
    bool done; /* the exchange's thread's */
};

static void
noted(struct purging_wait *wait)
{
    exchange_wake_by_source(((struct stored_wait *)wait)->exchange);
}

_Static_assert(REQUEST_MARKS == PROXY_SOURCES, "a request has a mark of each source");

/* What a write purges is marked before its response is given to the exchange. */
bool
stored_awaits(struct exchange *x)
{
    if (!x->proxy->config.sources[0] || x->stage != EXCHANGE_WAITS || !x->led ||
        http_method_is_safe(x->request->method))
        return false;
    if (x->noted)
        return !x->noted->done;
    x->noted = calloc(1, sizeof(*x->noted));
    if (!x->noted)
        return false;
    x->noted->exchange = x;
    x->noted->wait.notify = noted;
    for (unsigned i = 0; i < PROXY_SOURCES; i++)
        x->noted->wait.marks.of[i] = x->kept ? request_mark(x->kept, i) : SOURCE_ALL_MARKS;
    x->noted->done = purging_is_noted(x->proxy, &x->noted->wait);
    return !x->noted->done;
}

void
stored_is_noted(struct exchange *x)
{
    x->noted->done = true;
}

void
stored_leave(struct exchange *x)
{
    (void)purging_forget(x->proxy, &x->noted->wait);
}

void
stored_forget(struct exchange *x)
{
    stored_leave(x);
    free(x->noted);
    x->noted = NULL;
}

/* ---- writing --------------------------------------------------------------------------------- */

/* Has the cache this very object, and, of a variant, the names by which it is selected? Then its
 * names are offered with it. */
static bool
offer(struct proxy *proxy, struct source *source, struct object *object, uint64_t position,
      bool peeks)
{
    struct cache *cache = proxy->config.cache;
    const struct span url = object_url(object), variant = object_variant(object);
    struct cache_key key = cache_key_of_variant(url, variant);
    struct cache_peeked peeked = {.object = NULL}, base = {.object = NULL};
    bool current = true, takes = false;

    if (peeks) {
        cache_peek(cache, &key, proxy_now_us(proxy), &peeked);
        current = peeked.object == object;
    }
    key = cache_key_of(url);
    if (current && variant.len) {
        cache_peek(cache, &key, proxy_now_us(proxy), &base);
        current = base.object && base.varies;
    }
    if (!current)
        source->ops->drop_offer(source);
    else
        takes = source->ops->offer(
            source, object, base.object ? object_fields(base.object) : span_of(NULL, 0), position);
    if (takes && source->ops->admits)
        atomic_fetch_and(&object->notes, ~(uint32_t)HTTP_KNOWN_UNSAVED);
    object_release(&peeked.object);
    object_release(&base.object);
    return takes;
}

void
stored_seen(struct proxy *proxy, struct object *object)
{
    struct source *source;

    for (unsigned i = 0; (source = proxy->config.sources[i]); i++)
        if (source->ops->admits)
            (void)offer(proxy, source, object,
                        source->ops->begin_offer(source, proxy_now_us(proxy)), true);
}

unsigned
stored_notes(const struct origin_fill *fill)
{
    struct source *source;

    if (atomic_load(&fill->keeping) == KEEPING_STORED)
        for (unsigned i = 0; (source = fill->proxy->config.sources[i]); i++)
            if (source->ops->admits && !source->ops->admits(source, fill->base.key))
                return HTTP_KNOWN_UNSAVED;
    return 0;
}

/* Does the response take the place of what was stored, though it is not stored itself? */
static bool
outdates(const struct origin_fill *fill, unsigned status, bool storable)
{
    if (status >= 500)
        return false;
    return storable ? !origin_fill_bypasses(fill)
                    : fill->purpose == ORIGIN_FILL_SHARES || fill->purpose == ORIGIN_FILL_REFRESHES;
}

/*
 * Does the response leave what is stored of other variants? What keeps it from being stored is its
 * request, and says nothing about those that select another variant by the same names.
 */
static bool
spares_others(const struct origin_fill *fill)
{
    return sharing_is_by_request(&fill->sharing) && object_variant(fill->base.object).len;
}

/*
 * A lookup of the URL has put the names of what a source has into the cache, unless the request did
 * not ask the sources: then it is not known that those are the same.
 */
void
stored_vary(const struct origin_fill *fill, unsigned status, struct span names)
{
    struct source *const *sources = fill->proxy->config.sources;
    const struct span url = object_url(fill->base.object);
    const struct cache_key key = cache_key_of(url);
    struct cache_peeked base;
    bool others;

    if (!sources[0])
        return;
    cache_peek(fill->proxy->config.cache, &key, proxy_now_us(fill->proxy), &base);
    if (base.object && base.varies && names.len)
        others = !span_equal(object_fields(base.object), names);
    else
        others = sharing_is_by_request(&fill->sharing) && outdates(fill, status, false);
    for (unsigned i = 0; others && sources[i]; i++)
        sources[i]->ops->outdate(sources[i], url, span_of(NULL, 0), true);
    object_release(&base.object);
}

struct stored_offer
stored_begin_offer(const struct origin_fill *fill)
{
    struct source *const *sources = fill->proxy->config.sources;
    struct stored_offer offer = {0};

    for (unsigned i = 0; sources[i]; i++)
        offer.positions[i] = sources[i]->ops->begin_offer(sources[i], fill->base.begun_us);
    return offer;
}

void
stored_drop_offer(const struct origin_fill *fill)
{
    struct source *const *sources = fill->proxy->config.sources;

    for (unsigned i = 0; sources[i]; i++)
        sources[i]->ops->drop_offer(sources[i]);
}

static void
settle(struct origin_fill *fill, struct source *source, bool storable, uint64_t position)
{
    struct object *object = fill->base.object;
    const struct span url = object_url(object), variant = object_variant(object);
    bool offered = false;

    if (storable && cache_fill_may_store(&fill->base) &&
        atomic_load(&fill->keeping) == KEEPING_STORED && !object_is_windowed(object) &&
        (!source->ops->admits || !(object->notes & HTTP_KNOWN_UNSAVED) ||
         source->ops->replaces(source, url, variant)))
        offered = offer(fill->proxy, source, object, position, false);
    else
        source->ops->drop_offer(source);
    if (!offered && outdates(fill, object->status, storable))
        source->ops->outdate(source, url, variant, !storable && !spares_others(fill));
}

void
stored_filled(struct origin_fill *fill, bool storable, const struct stored_offer *offer)
{
    for (unsigned i = 0; fill->proxy->config.sources[i]; i++)
        settle(fill, fill->proxy->config.sources[i], storable, offer->positions[i]);
}

void
stored_begins(const struct origin_fill *fill, int64_t length)
{
    const struct object *object = fill->base.object;
    const bool is_kept = !fill->reason && cache_fill_may_store(&fill->base) &&
                         atomic_load(&fill->keeping) == KEEPING_STORED;
    const uint64_t bytes = !is_kept ? UINT64_MAX : length > 0 ? (uint64_t)length : 0;
    struct source *source;

    for (unsigned i = 0; (source = fill->proxy->config.sources[i]); i++)
        if (source->ops->begins)
            source->ops->begins(source, object_url(object), object_variant(object), bytes);
}

void
stored_ended(const struct origin_fill *fill)
{
    const struct object *object = fill->base.object;
    struct source *source;

    for (unsigned i = 0; (source = fill->proxy->config.sources[i]); i++)
        if (source->ops->release)
            source->ops->release(source, object_url(object), object_variant(object));
}
