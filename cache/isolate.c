/*
 * Responses that may not be shared, or not without validation: their other waiters are sent back to
 * look up again, and a marker may stand in the place of their object.
 */
#include "cache/fill.h"
#include "cache/places.h"
#include "cache/waiters.h"

/*
 * Puts a marker into the table, if the URL has no object that is newer than the fill, and no later
 * fill has displaced this one: the place is that one's.
 */
static void
mark(struct shard *shard, struct cache_fill *fill, struct entry *own, int64_t until_us,
     struct removed *removed)
{
    struct entry *entry = own;

    if (fill->displaced)
        return;
    if (!entry)
        entry = shard_find_fill(shard, fill);
    if (!entry) {
        entry = shard_make_entry(shard, fill->name, fill->hash);
        if (!entry)
            return;
        table_insert(&shard->table, entry);
    } else if (entry != own && !entry_is_marker(entry)) {
        return;
    }
    fill->name->fetched_us = until_us;
    shard_mark(shard, entry, fill->name, OBJECT_UNCACHEABLE, cache_draw_entered(fill->cache),
               removed);
}

void
cache_fill_unmark(struct cache_fill *fill)
{
    struct place *place = cache_lock(fill->cache, fill->hash);
    struct entry *entry = shard_find_fill(&place->shard, fill);
    struct removed removed = {0};

    if (fill->may_store && !fill->displaced && entry && entry_is_marker(entry))
        shard_remove(&place->shard, entry, &removed);
    table_tidy(&place->shard.table);
    place_unlock(place);
    shard_free_removed(&removed);
}

void
cache_fill_isolate(struct cache_fill *fill, int64_t until_us)
{
    struct place *place = cache_lock(fill->cache, fill->hash);
    struct shard *shard = &place->shard;
    struct removed removed = {0};

    if (!fill->isolated) {
        struct entry *expired = fill->entry && fill->entry->stored ? fill->entry : NULL;

        fill->isolated = true;
        fill->sends_back = until_us == 0;
        waiters_retry(fill);
        if (fill->may_store && until_us == 0) {
            shard_purge_fill(shard, fill, &removed);
        } else if (fill->may_store) {
            struct entry *own = shard_close_fill(fill);

            if (expired)
                shard_remove(shard, expired, &removed);
            mark(shard, fill, own, until_us, &removed);
        }
        table_tidy(&shard->table);
    } else if (fill->may_store && until_us == 0) {
        shard_purge_fill(shard, fill, &removed);
        table_tidy(&shard->table);
    }
    place_unlock(place);
    shard_free_removed(&removed);
}

void
cache_fill_send_back(struct cache_fill *fill)
{
    struct place *place = cache_lock(fill->cache, fill->hash);
    struct removed removed = {0};

    if (!fill->isolated) {
        struct entry *own = shard_close_fill(fill);

        fill->isolated = true;
        waiters_retry(fill);
        if (own)
            shard_remove(&place->shard, own, &removed);
        table_tidy(&place->shard.table);
    }
    place_unlock(place);
    shard_free_removed(&removed);
}
