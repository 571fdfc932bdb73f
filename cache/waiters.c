#include "cache/waiters.h"

#include <stdlib.h>

#include "cache/slots.h"

struct object *
fill_make_reserve(void)
{
    return object_make(
        &(struct object_parts){.inline_size = OBJECT_MAX_FAILURE, .short_lived = true});
}

void
fill_set_failure(struct object *failure, unsigned number, const char *sentence)
{
    size_t len = strnlen(sentence ? sentence : "", OBJECT_MAX_FAILURE);

    failure->status = (uint16_t)number;
    object_append(failure, sentence, len, 0); /* inline, and within its size */
    object_complete(failure, 0, 0, OBJECT_UNLIMITED);
    atomic_store_explicit(&failure->state, OBJECT_FAILED, memory_order_release);
}

struct cache_fill *
fill_create(struct cache *cache, const struct cache_key *key, size_t size)
{
    struct cache_fill *fill = calloc(1, size);

    if (!fill)
        return NULL;
    fill->name = object_make(
        &(struct object_parts){.url = key->url, .variant = key->variant, .short_lived = true});
    fill->reserve = fill_make_reserve();
    if (!fill->name || !fill->reserve) {
        object_release(&fill->name);
        object_release(&fill->reserve);
        free(fill);
        return NULL;
    }
    fill->cache = cache;
    fill->object = object_retain(fill->name);
    fill->hash = key->hash;
    fill->key = key->key;
    atomic_init(&fill->waiter_count, 0);
    atomic_init(&fill->streams, 0);
    TAILQ_INIT(&fill->waiters);
    return fill;
}

void
fill_free(struct cache_fill *fill)
{
    assert(TAILQ_EMPTY(&fill->waiters));
    object_release(&fill->object);
    object_release(&fill->name);
    object_release(&fill->reserve);
    object_release(&fill->laggard);
    object_release(&fill->previous);
    free(fill);
}

bool
fill_has_outdated_tags(const struct cache_fill *fill)
{
    return epochs_outdate_tags(&fill->cache->epochs, fill->epoch, fill->own_epoch,
                               object_tags(fill->object));
}

bool
fill_is_outdated(const struct cache_fill *fill)
{
    return epochs_outdate_url(&fill->cache->epochs, fill->epoch, fill->own_epoch,
                              object_url(fill->name)) ||
           fill_has_outdated_tags(fill);
}

bool
cache_fill_may_store(const struct cache_fill *fill)
{
    return fill->disposition <= FILL_VALIDATE && !fill_is_outdated(fill);
}

/* ---- notifying ------------------------------------------------------------------------------- */

/* After a last event the waiter's memory may be gone, unless it has still to be notified. */
static void
notify(struct object_waiter *waiter, unsigned events)
{
    /* Release: what the events announce is read after object_waiter_take(). */
    if (atomic_fetch_or_explicit(&waiter->events, events, memory_order_acq_rel) == 0)
        waiter->notify(waiter);
}

static void
explain(struct cache_fill *fill, struct object_waiter *waiter)
{
    atomic_store_explicit(&waiter->unstored,
                          atomic_load_explicit(&fill->unstored, memory_order_relaxed),
                          memory_order_relaxed);
}

static bool
gets_head(const struct object_waiter *waiter, const struct object *object)
{
    return waiter->streams || (waiter->wants_head && waiter->wants_head(object));
}

void
waiters_add(struct cache_fill *fill, struct object_waiter *waiter, bool leader)
{
    *waiter = (struct object_waiter){
        .notify = waiter->notify,
        .streams = waiter->streams,
        .wants_head = waiter->wants_head,
        .leader = leader,
        .object = object_retain(fill->name),
        .outcome = CACHE_NOT_STORED,
        .fill = fill,
        .hash = fill->hash,
        .cache = fill->cache,
    };
    explain(fill, waiter);
    TAILQ_INSERT_TAIL(&fill->waiters, waiter, link);
    atomic_fetch_add(&fill->waiter_count, 1);
    if (waiter->streams)
        atomic_fetch_add_explicit(&fill->streams, 1, memory_order_seq_cst);
    if (fill->stage != FILL_BEGUN && gets_head(waiter, fill->object)) {
        /* An append that does not count this waiter was published before this load (object.c). */
        bool more = atomic_load_explicit(&fill->object->published, memory_order_seq_cst) != 0;

        waiter->given = object_retain(fill->object);
        notify(waiter, more && waiter->streams ? WAITER_HEAD | WAITER_MORE : WAITER_HEAD);
    }
}

static void
uncount(struct cache_fill *fill, const struct object_waiter *waiter)
{
    atomic_fetch_sub(&fill->waiter_count, 1);
    if (waiter->streams)
        atomic_fetch_sub_explicit(&fill->streams, 1, memory_order_seq_cst);
}

void
waiters_remove(struct cache_fill *fill, struct object_waiter *waiter)
{
    TAILQ_REMOVE(&fill->waiters, waiter, link);
    if (!waiter->lags)
        uncount(fill, waiter);
    waiter->fill = NULL;
}

void
waiters_set_lagging(struct cache_fill *fill, struct object_waiter *waiter)
{
    uncount(fill, waiter);
    waiter->lags = true;
    waiter->failure = object_retain(fill->laggard);
    notify(waiter, WAITER_FAILED);
}

void
waiters_fail_one(struct cache_fill *fill, struct object_waiter *waiter, struct object *failure)
{
    waiters_remove(fill, waiter);
    waiter->failure = object_retain(failure);
    notify(waiter, WAITER_FAILED);
}

void
waiters_head(struct cache_fill *fill)
{
    struct object_waiter *waiter;

    TAILQ_FOREACH(waiter, &fill->waiters, link)
    {
        if (!gets_head(waiter, fill->object))
            continue;
        waiter->given = object_retain(fill->object);
        explain(fill, waiter);
        notify(waiter, WAITER_HEAD);
    }
}

void
waiters_more(struct cache_fill *fill)
{
    struct object_waiter *waiter;

    TAILQ_FOREACH(waiter, &fill->waiters, link)
    {
        if (waiter->streams && !waiter->lags)
            notify(waiter, WAITER_MORE);
    }
}

void
waiters_retry(struct cache_fill *fill, bool sent_back)
{
    struct object_waiter *waiter, *next;

    for (waiter = TAILQ_FIRST(&fill->waiters); waiter; waiter = next) {
        next = TAILQ_NEXT(waiter, link);
        if (waiter->leader || (waiter->streams && fill->stage != FILL_BEGUN))
            continue;
        waiters_remove(fill, waiter);
        waiter->sent_back = sent_back;
        notify(waiter, WAITER_RETRY);
    }
}

/* Moves the objects of evicted pages to a list; without memory nothing is moved. */
static void
hand_over(const struct removed *removed, struct cache_victims *victims)
{
    size_t count = removed->evicted_count;

    if (count)
        victims->pages = malloc(count * sizeof(struct object *));
    if (!victims->pages)
        return;
    victims->count = count;
    for (struct entry *e = removed->evicted; e; e = e->right) {
        memory_charge_anyway(e->object->account, MEMORY_PAGES, object_size(e->object));
        victims->pages[--count] = e->object;
        e->object = NULL;
    }
}

void
waiters_end(struct cache_fill *fill, enum cache_outcome outcome, const struct removed *removed)
{
    struct object_waiter *waiter;

    while (waiter = TAILQ_FIRST(&fill->waiters), waiter) {
        bool lags = waiter->lags;

        waiters_remove(fill, waiter);
        if (lags)
            continue;
        waiter->outcome = outcome;
        waiter->refusal = fill->refusal;
        explain(fill, waiter);
        waiter->refreshed = fill->refreshed;
        waiter->passed_over = fill->passed_over;
        if (waiter->leader) {
            waiter->evicted = removed->evicted_count;
            hand_over(removed, &waiter->victims);
        }
        /* Otherwise it has it from the head on. */
        if (!gets_head(waiter, fill->object))
            waiter->given = object_retain(fill->object);
        notify(waiter, WAITER_END);
    }
}

void
waiters_fail(struct cache_fill *fill, struct object *failure,
             bool (*retries)(const struct object_waiter *waiter, void *context), void *context)
{
    struct object_waiter *waiter;

    while (waiter = TAILQ_FIRST(&fill->waiters), waiter) {
        bool lags = waiter->lags;

        if (lags || (retries && retries(waiter, context))) {
            waiters_remove(fill, waiter);
            if (!lags)
                notify(waiter, WAITER_RETRY);
        } else {
            waiters_fail_one(fill, waiter, failure);
        }
    }
}

bool
cache_fill_is_unwanted(const struct cache_fill *fill)
{
    /* Sequentially consistent: the owner sees that the last waiter has left, or `unwanted` sees
     * what the owner has written before. */
    return atomic_load_explicit(&fill->waiter_count, memory_order_seq_cst) == 0;
}

/* ---- the waiter's side ----------------------------------------------------------------------- */

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
