#include "cache/fill.h"

#include <errno.h>
#include <stdlib.h>

#include "base/word_list.h"
#include "cache/slots.h"
#include "cache/waiters.h"

#define COMPACT_MAX ((uint64_t)256 << 10)

static bool
head_is_valid(const struct cache_fill *fill, const struct object_head *head)
{
    return fill->name->url_len <= OBJECT_MAX_META && head->fields.len <= OBJECT_MAX_META &&
           head->status <= UINT16_MAX && head->tags.len <= OBJECT_MAX_TAG_BYTES &&
           words_count(head->tags) <= OBJECT_MAX_TAGS;
}

/* What an object with this head is made of, but for its body. */
static struct object_parts
parts_of(const struct cache_fill *fill, const struct object_head *head)
{
    return (struct object_parts){
        .url = object_url(fill->name),
        .variant = object_variant(fill->name),
        .fields = head->fields,
        .tags = head->tags,
        .status = head->status,
        .notes = head->notes,
        .segment = head->segment,
        .body = head->body,
        .account = head->account,
    };
}

/* An object with this head, charged: 0 or an errno. */
static int
make_headed(const struct cache_fill *fill, const struct object_head *head, struct object **object)
{
    struct object_parts parts = parts_of(fill, head);
    int error;

    parts.segmented = head->length < 0 || head->length > OBJECT_INLINE_MAX || head->segment;
    if (!parts.segmented)
        parts.inline_size =
            (uint32_t)((uint64_t)head->length < head->max_length ? (uint64_t)head->length
                                                                 : head->max_length);
    error = object_make_charged(&parts, 0, object);
    if (!error)
        (*object)->fetched_us = head->fetched_us;
    if (!error && head->lifetime)
        atomic_init(&(*object)->lifetime, head->lifetime);
    return error;
}

/*
 * The object with its head is known to all from now on. If it may be older than a purge by a tag,
 * it is for the leader only: others may have joined after that. After a purge of the URL none has.
 */
static void
set_headed(struct cache_fill *fill, struct object *object, struct shard *shard)
{
    fill->object = object;
    if (fill->disposition <= FILL_VALIDATE && fill_has_outdated_tags(fill)) {
        waiters_retry(fill, false);
        shard_restrict_fill(shard, fill, FILL_PRIVATE);
    }
    fill->born_us = object->fetched_us ? object->fetched_us : fill->begun_us;
    fill->stage = FILL_HEADED;
    waiters_head(fill);
}

int
cache_fill_head(struct cache_fill *fill, const struct object_head *head)
{
    struct object *object, *before = fill->object;
    struct slot *slot;
    int error;

    assert(fill->stage == FILL_BEGUN);
    if (!head_is_valid(fill, head))
        return EINVAL;
    error = make_headed(fill, head, &object);
    if (error)
        return error;
    fill->declared = head->length;
    fill->max_length = head->max_length;
    slot = cache_lock(fill->cache, fill->hash);
    fill->fresh_until_us = head->fresh_until_us ? head->fresh_until_us : INT64_MAX;
    fill->while_revalidate_us = head->while_revalidate_us;
    set_headed(fill, object, &slot->shard);
    if (head->segment)
        waiters_more(fill);
    slot_unlock(slot);
    object_release(&before);
    return 0;
}

int
cache_fill_append(struct cache_fill *fill, const void *bytes, size_t len)
{
    uint64_t length = object_length(fill->object), limit;
    bool windowed = object_is_windowed(fill->object), pause = false;
    struct slot *slot;
    int error;

    assert(fill->stage == FILL_HEADED);
    if (len > fill->max_length - length)
        return EFBIG;
    limit = fill->max_length - length;
    if (fill->declared >= 0 && (uint64_t)fill->declared > length &&
        (uint64_t)fill->declared - length < limit)
        limit = (uint64_t)fill->declared - length;
    error = object_append(fill->object, bytes, len, limit);
    if (error || (atomic_load_explicit(&fill->streams, memory_order_seq_cst) == 0 && !windowed))
        return error;
    slot = cache_lock(fill->cache, fill->hash);
    waiters_more(fill);
    if (windowed) {
        window_move(&slot->shard, fill, true);
        pause = fill->paused;
    }
    slot_unlock(slot);
    return pause ? CACHE_FILL_PAUSE : 0;
}

/* ---- the end --------------------------------------------------------------------------------- */

/* When the fetch ends, whose object is ready. */
static int64_t
end_of(const struct cache_fill *fill)
{
    return fill->begun_us + (int64_t)fill->object->fetch_us;
}

/* Has a later fill set the names of the entry, or that requests still pass it? */
static bool
is_later_mark(const struct cache_fill *fill, const struct entry *entry)
{
    return entry_is_mark(entry) && entry->entered > fill->number &&
           (entry->kind == ENTRY_VARIES || end_of(fill) < entry->object->fetched_us);
}

/*
 * Is the page of another fill better than this object, when this fetch ends? It is if it is from
 * later, and as fresh; or if it is fresh, and the lifetime of the object has ended.
 */
static bool
is_better(const struct cache_fill *fill, const struct object *page)
{
    const struct object *object = fill->object;
    int64_t end_us = end_of(fill);
    bool fresh = object_is_fresh(object, end_us), page_is_fresh = object_is_fresh(page, end_us);

    if (page == fill->previous)
        return false;
    if (page->fetched_us > object->fetched_us)
        return page_is_fresh || !fresh;
    return page_is_fresh && !fresh && object_lifetime(object) > 0;
}

/* Stores the fill's object; `entry` is what the table has of its URL and variant, or NULL. */
static enum cache_outcome
store(struct shard *shard, struct cache_fill *fill, struct entry *entry)
{
    const struct cache_key key = {object_url(fill->name), object_variant(fill->name), fill->hash,
                                  fill->key};
    static const enum cache_refusal refusals[] = {
        [EVICTOR_ENTERED] = CACHE_REFUSED_NOT,         [EVICTOR_TOO_LARGE] = CACHE_REFUSED_SIZE,
        [EVICTOR_NOT_ADMITTED] = CACHE_REFUSED_POLICY, [EVICTOR_PASSED_ON] = CACHE_REFUSED_POLICY,
        [EVICTOR_NO_MEMORY] = CACHE_REFUSED_MEMORY,
    };
    bool replaces = entry && entry_is_stored(entry);
    enum evictor_outcome outcome;

    fill->refusal = CACHE_REFUSED_PURGED;
    if (entry && is_later_mark(fill, entry))
        return CACHE_NOT_STORED;
    if (replaces && is_better(fill, entry->object))
        return CACHE_NOT_STORED;
    if (entry && entry_is_mark(entry))
        shard_clear_mark(shard, entry);
    outcome = shard_store(shard, &key, entry, fill->object, cache_draw_entered(fill->cache));
    fill->refusal = refusals[outcome];
    if (outcome == EVICTOR_ENTERED)
        return replaces ? CACHE_REPLACED : CACHE_STORED;
    return outcome == EVICTOR_PASSED_ON ? CACHE_PASSED_ON : CACHE_NOT_STORED;
}

/* The fill leaves the shard. Returns what the table has of its name; NULL also for a bypass. */
static struct entry *
leave(struct shard *shard, struct cache_fill *fill)
{
    if (!fill->in_shard.le_prev)
        return NULL;
    shard_remove_fill(shard, fill);
    entry_remove_fill(fill);
    return shard_find_fill(shard, fill);
}

/* The fill's object is ready: stores it, notifies the waiters, and unlocks the slot. */
static enum cache_outcome
end(struct cache_fill *fill, struct slot *slot, bool store_it)
{
    enum cache_outcome outcome = CACHE_NOT_STORED;
    struct object *previous = fill->previous;
    struct shard *shard = &slot->shard;
    struct entry *entry = leave(shard, fill);
    bool may_store = cache_fill_may_store(fill);

    if (store_it && may_store)
        outcome = store(shard, fill, entry);
    else
        fill->refusal = store_it ? CACHE_REFUSED_PURGED : CACHE_REFUSED_NOT;
    if (outcome == CACHE_NOT_STORED)
        shard_remove_if_empty(shard, entry);
    if (outcome == CACHE_NOT_STORED && may_store && previous &&
        !object_is_fresh(previous, fill->begun_us))
        fill_remove_previous(shard, fill);
    fill->stage = FILL_ENDED;
    fill->previous = NULL;
    waiters_end(fill, outcome, &shard->removed);
    slot_unlock(slot);
    object_release(&previous);
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
    struct slot *slot;

    assert(fill->stage == FILL_HEADED);
    if (store_it && object->segmented && !object_is_windowed(object) &&
        object_length(object) <= COMPACT_MAX)
        compact = object_compact(object);
    object_complete(object, saturated(fetch_us), fetched_us, lifetime);
    if (compact)
        object_complete(compact, saturated(fetch_us), fetched_us, lifetime);

    slot = cache_lock(fill->cache, fill->hash);
    if (compact)
        fill->object = compact;
    outcome = end(fill, slot, store_it);
    if (compact)
        object_release(&object);
    return outcome;
}

int
cache_fill_refresh(struct cache_fill *fill, const struct object_head *head, bool store_it,
                   uint64_t fetch_us, int64_t fetched_us, int64_t lifetime_us,
                   enum cache_outcome *outcome)
{
    struct object_parts parts = parts_of(fill, head);
    struct object *object, *before = fill->object;
    struct slot *slot;
    int error;

    assert(fill->previous && fill->stage == FILL_BEGUN);
    if (!head_is_valid(fill, head))
        return EINVAL;
    error = object_remake(fill->previous, &parts, &object);
    if (error)
        return error;
    object_complete(object, saturated(fetch_us), fetched_us, object_lifetime_of(lifetime_us));

    slot = cache_lock(fill->cache, fill->hash);
    fill->refreshed = true;
    set_headed(fill, object, &slot->shard);
    waiters_more(fill);
    *outcome = end(fill, slot, store_it);
    object_release(&before);
    return 0;
}

/* The fill ends, and is not stored. An expired page stays. */
static void
give_up(struct cache_fill *fill, struct shard *shard)
{
    shard_remove_if_empty(shard, leave(shard, fill));
    fill->stage = FILL_ENDED;
}

void
cache_fill_fall_back(struct cache_fill *fill, unsigned why)
{
    struct object *before = fill->object;
    const struct removed none = {0};
    struct slot *slot;

    assert(fill->previous && fill->stage == FILL_BEGUN);
    slot = cache_lock(fill->cache, fill->hash);
    give_up(fill, &slot->shard);
    /* One that has joined after a purge may not have what was purged. */
    if (epochs_outdate_tags(&fill->cache->epochs, fill->epoch, 0, object_tags(fill->previous)))
        waiters_retry(fill, false);
    fill->object = fill->previous;
    fill->previous = NULL;
    fill->passed_over = why;
    waiters_head(fill);
    waiters_more(fill);
    waiters_end(fill, CACHE_FELL_BACK, &none);
    slot_unlock(slot);
    object_release(&before);
}

void
cache_fill_fail(struct cache_fill *fill, unsigned number, const char *sentence,
                bool (*retries)(const struct object_waiter *waiter, void *context), void *context)
{
    struct object *object = fill->object, *previous = fill->previous;
    struct slot *slot;
    const bool has_head = fill->stage == FILL_HEADED;

    assert(fill->stage != FILL_ENDED);
    fill_set_failure(fill->reserve, number, sentence);
    slot = cache_lock(fill->cache, fill->hash);
    give_up(fill, &slot->shard);
    if (has_head)
        object_fail(object);
    fill->object = object_retain(fill->name);
    fill->previous = NULL;
    waiters_fail(fill, fill->reserve, retries, context);
    slot_unlock(slot);
    object_release(&object);
    object_release(&previous);
}

void
cache_fill_free(struct cache_fill *fill)
{
    assert(fill->stage == FILL_ENDED);
    fill_free(fill);
}
