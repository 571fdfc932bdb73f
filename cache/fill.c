#include "cache/fill.h"

#include <errno.h>
#include <stdlib.h>

#include "cache/places.h"
#include "cache/waiters.h"
#include "cache/window.h"

#define COMPACT_MAX ((uint64_t)256 << 10)

/* Puts another object into the fill and, if it has one, into its own entry. Under the lock. */
static void
fill_set_object(struct cache_fill *fill, struct object *object)
{
    struct entry *own = fill->entry && !fill->entry->stored ? fill->entry : NULL;

    if (own) {
        struct object *before = own->object;

        before->fill = NULL;
        object->fill = fill;
        own->object = object_retain(object);
        object_release(&before);
    }
    fill->object = object;
}

static bool
head_is_valid(const struct cache_fill *fill, const struct object_head *head)
{
    return fill->name->url_len <= OBJECT_MAX_META && head->final_url.len <= OBJECT_MAX_META &&
           head->fields.len <= OBJECT_MAX_META && head->status <= UINT16_MAX &&
           head->tags.len <= OBJECT_MAX_TAG_BYTES && tags_count(head->tags) <= OBJECT_MAX_TAGS;
}

/* What an object with this head is made of, but for its body. */
static struct object_parts
parts_of(const struct cache_fill *fill, const struct object_head *head)
{
    struct object_parts parts = {
        .url = object_url(fill->name),
        .variant = object_variant(fill->name),
        .final_url = head->final_url,
        .fields = head->fields,
        .tags = head->tags,
        .status = head->status,
        .notes = head->notes,
        .account = head->account,
    };

    if (span_equal(parts.url, parts.final_url))
        parts.final_url.len = 0;
    return parts;
}

/* An object with this head, charged: 0 or an errno. */
static int
make_headed(const struct cache_fill *fill, const struct object_head *head, struct object **object)
{
    struct object_parts parts = parts_of(fill, head);
    size_t size;

    parts.segmented = head->length < 0 || head->length > OBJECT_INLINE_MAX;
    if (!parts.segmented)
        parts.inline_size =
            (uint32_t)((uint64_t)head->length < head->max_length ? (uint64_t)head->length
                                                                 : head->max_length);
    size = object_make_size(&parts);
    if (!memory_charge(head->account, MEMORY_PAGES, size))
        return ENOBUFS;
    *object = object_make(&parts);
    if (!*object && memory_reclaim(head->account, size))
        *object = object_make(&parts);
    if (*object) {
        (*object)->fetched_us = head->fetched_us;
        return 0;
    }
    memory_uncharge(head->account, MEMORY_PAGES, size);
    return ENOMEM;
}

/* May the response be older than a purge of its URL or of one of its tags? Under the lock. */
static bool
is_outdated(const struct cache_fill *fill)
{
    return epochs_outdate(&fill->cache->epochs, fill->epoch, fill->own_epoch,
                          object_url(fill->name), object_tags(fill->object));
}

/*
 * The object with its head is known to all from now on. If it may be older than a purge, it is for
 * the leader only, and not stored.
 */
static void
set_headed(struct cache_fill *fill, struct object *object, struct shard *shard,
           struct removed *removed)
{
    fill_set_object(fill, object);
    if (fill->may_store && is_outdated(fill)) {
        waiters_retry(fill);
        shard_purge_fill(shard, fill, removed);
        table_tidy(&shard->table);
    }
    fill->born_us = object->fetched_us ? object->fetched_us : fill->begun_us;
    fill->has_head = true;
    waiters_head(fill);
}

void
cache_fill_dates_from(struct cache_fill *fill, uint64_t epoch, uint64_t own)
{
    assert(!fill->has_head);
    fill->epoch = epoch;
    fill->own_epoch = own;
}

int
cache_fill_head(struct cache_fill *fill, const struct object_head *head)
{
    struct object *object, *before = fill->object;
    struct removed removed = {0};
    struct place *place;
    int error;

    assert(!fill->has_head);
    if (!head_is_valid(fill, head))
        return EINVAL;
    error = make_headed(fill, head, &object);
    if (error)
        return error;
    fill->declared = head->length;
    fill->max_length = head->max_length;
    place = cache_lock(fill->cache, fill->hash);
    fill->fresh_until_us = head->fresh_until_us ? head->fresh_until_us : INT64_MAX;
    fill->while_revalidate_us = head->while_revalidate_us;
    set_headed(fill, object, &place->shard, &removed);
    place_unlock(place);
    shard_free_removed(&removed);
    object_release(&before);
    return 0;
}

int
cache_fill_append(struct cache_fill *fill, const void *bytes, size_t len)
{
    uint64_t length = object_length(fill->object), limit;
    bool windowed = object_is_windowed(fill->object), pause = false;
    struct segment *chain = NULL;
    struct place *place;
    int error;

    assert(fill->has_head);
    if (len > fill->max_length - length)
        return EFBIG;
    limit = fill->max_length - length;
    if (fill->declared >= 0 && (uint64_t)fill->declared > length &&
        (uint64_t)fill->declared - length < limit)
        limit = (uint64_t)fill->declared - length;
    error = object_append(fill->object, bytes, len, limit);
    if (error || (atomic_load_explicit(&fill->streams, memory_order_seq_cst) == 0 && !windowed))
        return error;
    place = cache_lock(fill->cache, fill->hash);
    waiters_more(fill);
    if (windowed) {
        chain = window_move(fill, true);
        pause = fill->paused;
    }
    place_unlock(place);
    segments_free(chain);
    return pause ? CACHE_FILL_PAUSE : 0;
}

/* ---- the end --------------------------------------------------------------------------------- */

/* Moves the objects of a chain to a list; without memory nothing is moved. */
static void
hand_over(struct removed *removed, struct cache_victims *victims)
{
    struct object **pages;

    if (removed->count == 0)
        return;
    pages = malloc(removed->count * sizeof(struct object *));
    if (!pages)
        return;
    victims->pages = pages;
    for (struct entry *e = removed->first; e; e = RB_RIGHT(e, links)) {
        object_leave_cache(e->object);
        pages[victims->count++] = e->object;
        e->object = NULL;
    }
}

/*
 * Has another fill stored a page that is from later than this object, and was fresh when this fetch
 * ended? Either is enough after the fill has been displaced, because the object has expired then.
 */
static bool
is_outdated_by(const struct cache_fill *fill, const struct object *object, const struct entry *page)
{
    bool fresh = object_is_fresh(page->object, fill->begun_us + (int64_t)object->fetch_us);

    if (fill->displaced)
        return fresh || page->object->fetched_us > fill->born_us;
    return fresh && page->object->fetched_us > object->fetched_us;
}

/* The fill is the successor of the page in its place, or gets an entry of its own. */
static void
put_back(struct shard *shard, struct cache_fill *fill)
{
    struct entry *entry = shard_find_fill(shard, fill);

    if (!entry) {
        entry = shard_make_entry(shard, fill->object, fill->hash);
        if (!entry)
            return; /* a later request begins another fill */
        table_insert(&shard->table, entry);
    }
    entry->object->fill = fill;
    fill->entry = entry;
}

static enum cache_refusal
refusal_of(enum evictor_outcome outcome)
{
    switch (outcome) {
    case EVICTOR_ENTERED:
        break;
    case EVICTOR_TOO_LARGE:
        return CACHE_REFUSED_SIZE;
    case EVICTOR_NO_MEMORY:
        return CACHE_REFUSED_MEMORY;
    case EVICTOR_PASSED_ON:
    case EVICTOR_NOT_ADMITTED:
        return CACHE_REFUSED_POLICY;
    }
    return CACHE_REFUSED_NOT;
}

/*
 * Stores the fill's object, which is in its own entry if it has one, or is the successor of a page.
 * Otherwise there may be a mark in its place, which is replaced, a page, or a busy object. That of
 * the fill that has displaced this one is the successor of the page from now on. Any other one is
 * stored itself, and this object is not. After the fill has been displaced a mark is of a later
 * response, and stays.
 */
static enum cache_outcome
store(struct shard *shard, struct cache_fill *fill, struct entry *own, bool succeeds,
      struct object *object, struct removed *replaced, struct removed *victims)
{
    struct cache_key key = {object_url(fill->name), object_variant(fill->name), fill->hash,
                            fill->key};
    struct entry *other = own ? NULL : shard_find_fill(shard, fill), *of_later;
    struct cache_fill *later = other && fill->displaced ? other->object->fill : NULL;
    enum evictor_outcome outcome;

    fill->refusal = CACHE_REFUSED_PURGED;
    if (other && entry_is_mark(other) && fill->displaced)
        return CACHE_NOT_STORED;
    if (other && entry_is_mark(other))
        shard_remove(shard, other, replaced);
    else if (other && other->stored && !succeeds && is_outdated_by(fill, object, other))
        return CACHE_NOT_STORED;
    else if (other && !other->stored && !later)
        return CACHE_NOT_STORED;
    of_later = later ? shard_close_fill(later) : NULL;
    if (of_later)
        shard_remove(shard, of_later, replaced);
    outcome =
        shard_store(shard, &key, own, object, cache_draw_entered(fill->cache), replaced, victims);
    if (later)
        put_back(shard, later);
    fill->refusal = refusal_of(outcome);
    switch (outcome) {
    case EVICTOR_ENTERED:
        return replaced->count ? CACHE_REPLACED : CACHE_STORED;
    case EVICTOR_PASSED_ON:
        return CACHE_PASSED_ON;
    case EVICTOR_TOO_LARGE:
    case EVICTOR_NOT_ADMITTED:
    case EVICTOR_NO_MEMORY:
        break;
    }
    return CACHE_NOT_STORED;
}

/* Removes the page in the fill's place if it had expired at the lookup and has no successor. */
static void
remove_expired(struct shard *shard, const struct cache_fill *fill, struct removed *removed)
{
    struct entry *entry = shard_find_fill(shard, fill);

    if (entry && entry->stored && !entry->object->fill &&
        !object_is_fresh(entry->object, fill->begun_us))
        shard_remove(shard, entry, removed);
}

/* The fill's object is ready: stores it, notifies the waiters, and unlocks the place. */
static enum cache_outcome
end(struct cache_fill *fill, struct place *place, bool store_it)
{
    enum cache_outcome outcome = CACHE_NOT_STORED;
    struct removed replaced = {0}, evicted = {0};
    struct object *previous = fill->previous;
    struct cache_victims victims = {0};
    struct shard *shard = &place->shard;

    fill->refusal = store_it && !fill->may_store ? CACHE_REFUSED_PURGED : CACHE_REFUSED_NOT;
    if (fill->may_store) {
        bool succeeds = fill->entry && fill->entry->stored;
        struct entry *own = shard_close_fill(fill);

        shard_remove_fill(shard, fill);
        if (store_it)
            outcome = store(shard, fill, own, succeeds, fill->object, &replaced, &evicted);
        if (outcome == CACHE_NOT_STORED) {
            if (own)
                shard_remove(shard, own, &replaced);
            else if (!fill->displaced)
                remove_expired(shard, fill, &replaced);
        }
        table_tidy(&shard->table);
    }
    if (waiters_leader(fill))
        hand_over(&evicted, &victims);
    fill->done = true;
    fill->previous = NULL;
    waiters_end(fill, fill->object, outcome, evicted.count, &victims);
    place_unlock(place);
    object_release(&previous);
    shard_free_removed(&evicted);
    shard_free_removed(&replaced);
    return outcome;
}

static uint32_t
saturated(uint64_t us)
{
    return us < UINT32_MAX ? (uint32_t)us : UINT32_MAX;
}

enum cache_outcome
cache_fill_finish(struct cache_fill *fill, bool store_it, uint64_t fetch_us, int64_t fetched_us,
                  int64_t lifetime_us)
{
    struct object *object = fill->object, *compact = NULL;
    uint32_t lifetime = object_lifetime_of(lifetime_us);
    enum cache_outcome outcome;
    struct place *place;

    assert(fill->has_head && !fill->done);
    if (store_it && object->segmented && !object_is_windowed(object) &&
        object_length(object) <= COMPACT_MAX)
        compact = object_compact(object);
    object_complete(object, saturated(fetch_us), fetched_us, lifetime);
    if (compact)
        object_complete(compact, saturated(fetch_us), fetched_us, lifetime);

    place = cache_lock(fill->cache, fill->hash);
    if (compact)
        fill_set_object(fill, compact);
    outcome = end(fill, place, store_it);
    if (compact)
        object_release(&object);
    return outcome;
}

struct object *
cache_fill_previous(const struct cache_fill *fill)
{
    return fill->previous;
}

int
cache_fill_refresh(struct cache_fill *fill, const struct object_head *head, bool store_it,
                   uint64_t fetch_us, int64_t fetched_us, int64_t lifetime_us,
                   enum cache_outcome *outcome)
{
    struct object_parts parts = parts_of(fill, head);
    struct object *object, *before = fill->object;
    struct removed removed = {0};
    struct place *place;
    int error;

    assert(fill->previous && !fill->has_head && !fill->done);
    if (!head_is_valid(fill, head))
        return EINVAL;
    error = object_remake(fill->previous, &parts, &object);
    if (error)
        return error;
    object_complete(object, saturated(fetch_us), fetched_us, object_lifetime_of(lifetime_us));

    place = cache_lock(fill->cache, fill->hash);
    fill->refreshed = true;
    set_headed(fill, object, &place->shard, &removed);
    waiters_more(fill);
    *outcome = end(fill, place, store_it);
    shard_free_removed(&removed);
    object_release(&before);
    return 0;
}

/* The fill ends, and is not stored. Its own entry is removed; an expired page stays. */
static void
give_up(struct cache_fill *fill, struct shard *shard, struct removed *removed)
{
    if (fill->may_store) {
        shard_purge_fill(shard, fill, removed);
        table_tidy(&shard->table);
    }
    fill->done = true;
}

void
cache_fill_fall_back(struct cache_fill *fill, unsigned why)
{
    struct object *before = fill->object;
    struct cache_victims none = {0};
    struct removed removed = {0};
    struct place *place;

    assert(fill->previous && !fill->has_head && !fill->done);
    place = cache_lock(fill->cache, fill->hash);
    give_up(fill, &place->shard, &removed);
    fill->object = fill->previous;
    fill->previous = NULL;
    fill->passed_over = why;
    waiters_head(fill);
    waiters_more(fill);
    waiters_end(fill, fill->object, CACHE_FELL_BACK, 0, &none);
    place_unlock(place);
    shard_free_removed(&removed);
    object_release(&before);
}

void
cache_fill_fail(struct cache_fill *fill, unsigned number, const char *sentence,
                bool (*retries)(const struct object_waiter *waiter, void *context), void *context)
{
    struct object *object = fill->object, *previous = fill->previous;
    struct removed removed = {0};
    struct place *place;

    assert(!fill->done);
    fill_set_failure(fill->reserve, number, sentence);
    if (fill->has_head)
        atomic_store_explicit(&object->state, OBJECT_FAILED, memory_order_release);
    place = cache_lock(fill->cache, fill->hash);
    give_up(fill, &place->shard, &removed);
    fill->object = object_retain(fill->name);
    fill->previous = NULL;
    waiters_fail(fill, fill->reserve, retries, context);
    place_unlock(place);
    shard_free_removed(&removed);
    object_release(&object);
    object_release(&previous);
}

void
cache_fill_free(struct cache_fill *fill)
{
    assert(fill->done);
    fill_free(fill);
}
