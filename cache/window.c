/*
 * The window of a body that will not be stored (fill.h, struct cache_window): which segments are
 * kept, which readers lag, and when the fetch pauses; and what moves it: readers that have taken
 * more, or leave.
 */
#include <errno.h>

#include "cache/slots.h"
#include "cache/waiters.h"

/* How far the readers of a body are. */
struct reading {
    uint64_t length; /* of the body */
    uint64_t front;  /* the reader that is farthest has taken this; the length without a reader */
    uint64_t back;   /* the last one, also if it lags */
};

static uint64_t
taken_by(const struct object_waiter *waiter, uint64_t length)
{
    /* As object_is_windowed(): what was taken before that was set is seen here. */
    uint64_t taken = atomic_load_explicit(&waiter->taken, memory_order_seq_cst);

    return taken < length ? taken : length;
}

static struct reading
find_reading(const struct cache_fill *fill)
{
    uint64_t length = object_length(fill->object);
    struct reading reading = {.length = length, .back = length};
    const struct object_waiter *waiter;

    TAILQ_FOREACH(waiter, &fill->waiters, link)
    {
        uint64_t taken = taken_by(waiter, length);

        if (taken < reading.back)
            reading.back = taken;
        if (taken > reading.front && !waiter->lags)
            reading.front = taken;
    }
    if (cache_fill_is_unwanted(fill))
        reading.front = length;
    return reading;
}

/* Is more than `size` kept for the farthest reader, or more than all for the last one? */
static bool
is_full(const struct cache_window *window, const struct reading *reading, uint64_t size)
{
    return reading->length - reading->front > size ||
           reading->length - reading->back > window->lag + 2 * window->size;
}

void
window_move(struct shard *shard, struct cache_fill *fill, bool has_grown)
{
    const struct cache_window *window = &fill->window;
    struct reading reading = find_reading(fill);
    struct object_waiter *waiter;

    TAILQ_FOREACH(waiter, &fill->waiters, link)
    {
        if (!waiter->lags && taken_by(waiter, reading.front) + window->lag < reading.front)
            waiters_set_lagging(fill, waiter);
    }
    if (has_grown && is_full(window, &reading, window->size)) {
        fill->paused = true;
    } else if (fill->paused && !is_full(window, &reading, window->size / 2)) {
        fill->paused = false;
        window->resume(fill);
    }
    object_trim(fill->object, reading.back, &shard->removed.segments);
}

/* ---- the owner's side ------------------------------------------------------------------------ */

static struct object *
make_failure(const struct cache_failure *text)
{
    struct object *failure = fill_make_reserve();

    if (failure)
        fill_set_failure(failure, text->number, text->sentence);
    return failure;
}

/* FAILED to the waiters that need the whole body. */
static void
fail_whole(struct cache_fill *fill, struct object *failure)
{
    struct object_waiter *waiter, *next;

    for (waiter = TAILQ_FIRST(&fill->waiters); waiter; waiter = next) {
        next = TAILQ_NEXT(waiter, link);
        if (!waiter->streams)
            waiters_fail_one(fill, waiter, failure);
    }
}

static bool
all_stream(const struct cache_fill *fill)
{
    return atomic_load(&fill->streams) == atomic_load(&fill->waiter_count);
}

int
cache_fill_unstore(struct cache_fill *fill, const struct cache_window *window)
{
    struct object *laggard, *whole;
    struct slot *slot;
    int error = 0;

    assert(fill->stage == FILL_HEADED && fill->object->segmented &&
           !object_is_windowed(fill->object));
    if (!window->whole.number && !all_stream(fill))
        return EBUSY;
    laggard = make_failure(&window->lags);
    whole = make_failure(&window->whole);
    if (!laggard || !whole) {
        object_release(&laggard);
        object_release(&whole);
        return ENOMEM;
    }
    slot = cache_lock(fill->cache, fill->hash);
    if (!window->whole.number && !all_stream(fill)) {
        error = EBUSY;
    } else {
        if (cache_fill_may_store(fill))
            fill_remove_previous(&slot->shard, fill);
        shard_restrict_fill(&slot->shard, fill, FILL_DROPPED);
        fail_whole(fill, whole);
        fill->window = *window;
        fill->laggard = laggard;
        laggard = NULL;
        object_set_windowed(fill->object);
        window_move(&slot->shard, fill, false);
    }
    slot_unlock(slot);
    object_release(&laggard);
    object_release(&whole);
    return error;
}

bool
cache_fill_abandon(struct cache_fill *fill)
{
    struct slot *slot = cache_lock(fill->cache, fill->hash);
    bool unwanted = cache_fill_is_unwanted(fill);

    if (unwanted)
        shard_restrict_fill(&slot->shard, fill, FILL_DROPPED);
    slot_unlock(slot);
    return unwanted;
}

bool
cache_fill_has_waiter(struct cache_fill *fill,
                      bool (*suits)(const struct object_waiter *waiter, void *context),
                      void *context)
{
    struct slot *slot = cache_lock(fill->cache, fill->hash);
    const struct object_waiter *waiter = TAILQ_FIRST(&fill->waiters);

    while (waiter && (waiter->lags || !suits(waiter, context)))
        waiter = TAILQ_NEXT(waiter, link);
    slot_unlock(slot);
    return waiter != NULL;
}

/* ---- the waiter's side ----------------------------------------------------------------------- */

void
cache_waiter_taken(struct object_waiter *waiter, uint64_t offset)
{
    struct slot *slot;

    if (offset <= atomic_load_explicit(&waiter->taken, memory_order_relaxed))
        return;
    /* Sequentially consistent: the change to a window either sees this, or is seen here. */
    atomic_store_explicit(&waiter->taken, offset, memory_order_seq_cst);
    if (!object_is_windowed(waiter->object))
        return;
    slot = cache_lock(waiter->cache, waiter->hash);
    if (waiter->fill)
        window_move(&slot->shard, waiter->fill, false);
    slot_unlock(slot);
}

/* Removes a waiter that lags, or one that does not, from its fill if that still lists it. */
static bool
remove_listed(struct object_waiter *waiter, bool lags)
{
    struct slot *slot = cache_lock(waiter->cache, waiter->hash);
    struct cache_fill *fill = waiter->lags == lags ? waiter->fill : NULL;

    if (fill) {
        waiters_remove(fill, waiter);
        if (!lags && cache_fill_is_unwanted(fill) && fill->unwanted && fill->unwanted(fill))
            shard_restrict_fill(&slot->shard, fill, FILL_DROPPED);
        if (object_is_windowed(fill->object))
            window_move(&slot->shard, fill, false);
    }
    slot_unlock(slot);
    return fill != NULL;
}

bool
cache_leave(struct object_waiter *waiter)
{
    return remove_listed(waiter, false);
}

void
object_waiter_clear(struct object_waiter *waiter)
{
    if (waiter->lags)
        remove_listed(waiter, true);
    waiter->lags = false;
    object_release(&waiter->object);
    object_release(&waiter->given);
    object_release(&waiter->failure);
    cache_victims_free(&waiter->victims);
}
