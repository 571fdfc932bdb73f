#include "proxy/stored.h"

#include <stdlib.h>

#include "http/known_fields.h"
#include "proxy/purging.h"
#include "proxy/sharing.h"

/* Lookups of an exchange that ask the store: the first, and that of a variant. */
#define MOST_TRIES 2u

/* ---- reading --------------------------------------------------------------------------------- */

/* What is filled at once is taken by the exchange itself. */
static void
await_notice(void *waiter)
{
    ((struct object_waiter *)waiter)->notify = exchange_notify;
}

enum store_filling
stored_begin(struct exchange *x, struct cache_fill *fill, const struct demand *demand)
{
    struct object_waiter *waiter = &x->waiter.base;

    if (demand->way != REQUEST_SHARES || demand->demands || x->alone || x->led ||
        x->retries >= MOST_TRIES)
        return STORE_HAS_NOT;
    waiter->notify = object_waiter_ignore;
    switch (store_fill_start(x->proxy->config.store, fill, demand_fields(x),
                             origin_fill_largest(x->proxy, x->request), await_notice, waiter)) {
    case STORE_FILLED:
        return STORE_FILLED;
    case STORE_READS:
        return STORE_READS;
    case STORE_HAS_NOT:
        break;
    }
    waiter->notify = exchange_notify;
    return STORE_HAS_NOT;
}

bool
stored_is_source(const struct exchange *x, unsigned events)
{
    const struct object_waiter *waiter = &x->waiter.base;

    return waiter->object->notes & HTTP_KNOWN_SAVED && !x->led &&
           !(events & WAITER_END &&
             (waiter->outcome == CACHE_FELL_BACK || waiter->refreshed));
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
    struct store_waiter waiter; /* first */
    struct exchange *exchange;
    bool done; /* the exchange's thread's */
};

static void
noted(struct store_waiter *waiter)
{
    exchange_wake_by_store(((struct stored_wait *)waiter)->exchange);
}

/* What a write purges is marked before its response is given to the exchange. */
bool
stored_awaits(struct exchange *x)
{
    if (x->stage != EXCHANGE_WAITS || !x->led || http_method_is_safe(x->request->method))
        return false;
    if (x->noted)
        return !x->noted->done;
    x->noted = calloc(1, sizeof(*x->noted));
    if (!x->noted)
        return false;
    x->noted->exchange = x;
    x->noted->waiter.notify = noted;
    x->noted->done = store_is_synced(x->proxy->config.store, &x->noted->waiter);
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
    (void)store_forget_waiter(x->proxy->config.store, &x->noted->waiter);
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
offer(struct proxy *proxy, struct object *object, uint64_t position, bool peeks)
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
        store_drop_offer(proxy->config.store);
    else
        takes = store_offer(proxy->config.store, object,
                            base.object ? object_fields(base.object) : span_of(NULL, 0), position);
    if (takes)
        atomic_fetch_and(&object->notes, ~(uint32_t)HTTP_KNOWN_UNSAVED);
    object_release(&peeked.object);
    object_release(&base.object);
    return takes;
}

void
stored_seen(struct proxy *proxy, struct object *object)
{
    (void)offer(proxy, object, store_begin_offer(proxy->config.store), true);
}

unsigned
stored_notes(const struct origin_fill *fill)
{
    struct store *store = fill->proxy->config.store;

    if (!store || atomic_load(&fill->keeping) != KEEPING_STORED ||
        store_admits(store, fill->base.key))
        return 0;
    return HTTP_KNOWN_UNSAVED;
}

/* Does the response take the place of what was stored, though it is not stored itself? */
static bool
outdates(const struct origin_fill *fill, bool storable)
{
    if (fill->base.object->status >= 500)
        return false;
    return storable ? !origin_fill_bypasses(fill)
                    : fill->purpose == ORIGIN_FILL_SHARES || fill->purpose == ORIGIN_FILL_REFRESHES;
}

void
stored_filled(struct origin_fill *fill, bool storable, uint64_t position)
{
    struct proxy *proxy = fill->proxy;
    struct object *object = fill->base.object;
    struct store *store = proxy->config.store;
    const struct span url = object_url(object), variant = object_variant(object);
    bool offered = false;

    if (storable && cache_fill_may_store(&fill->base) &&
        atomic_load(&fill->keeping) == KEEPING_STORED && !object_is_windowed(object) &&
        (!(object->notes & HTTP_KNOWN_UNSAVED) || store_replaces(store, url, variant)))
        offered = offer(proxy, object, position, false);
    else
        store_drop_offer(store);
    if (!offered && outdates(fill, storable))
        store_outdate(store, url, variant, !storable);
}
