/* The waiter's side of fill.h: a waiter takes its events, leaves its fill, and is cleared. */
#include "cache/slots.h"
#include "cache/waiters.h"
#include "cache/window.h"

void
object_waiter_ignore(struct object_waiter *waiter)
{
    (void)waiter;
}

unsigned
object_waiter_take(struct object_waiter *waiter)
{
    unsigned events = atomic_exchange_explicit(&waiter->events, 0, memory_order_acq_rel);

    /* Given once: with the head if it gets that, at the end otherwise. */
    if (events & (WAITER_HEAD | WAITER_END) && waiter->given) {
        object_release(&waiter->object);
        waiter->object = waiter->given;
        waiter->given = NULL;
    }
    return events;
}

bool
cache_leave(struct cache *cache, struct object_waiter *waiter)
{
    struct slot *slot = cache_lock(cache, waiter->hash);
    struct cache_fill *fill = waiter->lags ? NULL : waiter->fill;

    if (fill) {
        waiters_remove(fill, waiter);
        if (cache_fill_is_unwanted(fill) && fill->unwanted && fill->unwanted(fill))
            shard_restrict_fill(&slot->shard, fill, FILL_DROPPED);
        if (object_is_windowed(fill->object))
            window_move(&slot->shard, fill, false);
    }
    slot_unlock(slot);
    return fill != NULL;
}

void
object_waiter_clear(struct object_waiter *waiter)
{
    if (waiter->lags)
        window_leave(waiter);
    object_release(&waiter->object);
    object_release(&waiter->given);
    object_release(&waiter->failure);
    cache_victims_free(&waiter->victims);
}
