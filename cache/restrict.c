/*
 * Responses that are not for all: their other waiters are sent back to look up again, and later
 * requests may pass for a while.
 */
#include "cache/fill.h"
#include "cache/slots.h"
#include "cache/waiters.h"

/*
 * May later requests pass by this entry, because of a response of this fill? Not where there are
 * names, a later version, or one that they can join whose head has come and is fresh.
 */
static bool
may_pass(const struct entry *entry, const struct cache_fill *fill)
{
    const struct cache_fill *other;

    LIST_FOREACH(other, &entry->object->fills, link)
    if (other->number > fill->number ||
        (other != fill && other->stage != FILL_BEGUN && fill->begun_us < other->fresh_until_us &&
         !fill_is_outdated(other)))
        return false;
    return entry->kind != ENTRY_VARIES;
}

/* Later requests pass. */
static void
mark(struct shard *shard, struct cache_fill *fill, int64_t until_us)
{
    struct entry *entry = shard_find_fill(shard, fill);
    uint64_t entered = fill->number;

    if (entry && (entry_is_stored(entry) || !may_pass(entry, fill)))
        return;
    if (entry && entry->kind == ENTRY_PASSED) {
        if (until_us < entry->object->fetched_us)
            return;
        entered = entry->entered;
    }
    if (!entry)
        entry = shard_add_entry(shard, fill->name, fill->hash);
    if (!entry)
        return;
    fill->name->fetched_us = until_us;
    shard_mark(shard, entry, ENTRY_PASSED, fill->name, entered);
}

void
cache_fill_restrict(struct cache_fill *fill, enum fill_disposition disposition, int64_t until_us)
{
    struct slot *slot = cache_lock(fill->cache, fill->hash);
    bool shared = fill->disposition == FILL_SHARED;

    if (shared)
        waiters_retry(fill, disposition == FILL_PRIVATE && until_us == 0);
    if (until_us && cache_fill_may_store(fill)) {
        fill_remove_previous(&slot->shard, fill);
        if (shared)
            mark(&slot->shard, fill, until_us);
    }
    shard_restrict_fill(&slot->shard, fill, disposition);
    slot_unlock(slot);
}

void
cache_fill_end_pass(struct cache_fill *fill)
{
    struct slot *slot = cache_lock(fill->cache, fill->hash);
    struct shard *shard = &slot->shard;
    struct entry *entry = shard_find_fill(shard, fill);

    if (entry && entry->kind == ENTRY_PASSED && entry->entered <= fill->number &&
        cache_fill_may_store(fill)) {
        shard_clear_mark(shard, entry);
        shard_remove_if_empty(shard, entry);
    }
    slot_unlock(slot);
}
