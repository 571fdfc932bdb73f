/* The beginning of a fill: the record is looked up, and read at once, by a ring or by a thread. */
#include <stdlib.h>

#include "store/disk_fill.h"
#include "store/store_fill.h"

static void
hold(void *context, uint16_t segment)
{
    struct store_fill *fill = context;

    fill->segment = disk_log_hold(&fill->store->log, segment);
}

/* As cache_lookup() has made it, for another source. */
static enum source_filling
give_back(struct store_fill *fill)
{
    disk_segment_release(fill->segment);
    segments_free(fill->memory);
    shared_release(&fill->review.rules);
    free(fill->kept);
    memset((char *)fill + sizeof(fill->base), 0, sizeof(*fill) - sizeof(fill->base));
    return SOURCE_HAS_NOT;
}

/* Does a read take long that was begun before? */
static bool
is_slow(struct store *store)
{
    if (atomic_load(&store->slow) == 0)
        return false;
    store_add(store, STORE_READ_REFUSED, 1);
    return true;
}

/* Keeps the fields, and has the record read later. */
static bool
read_later(struct store_lane *lane, struct store_fill *fill, const struct source_request *request)
{
    fill->kept = malloc(request->fields.len + 1);
    if (!fill->kept)
        return false;
    span_put(fill->kept, request->fields);
    fill->fields.ptr = fill->kept;
    request->later(request->context);
    return disk_lane_read(lane, fill) || disk_fill_enqueue(fill);
}

enum source_filling
store_fill_start(struct store *store, struct cache_fill *base, const struct source_request *request)
{
    struct store_fill *fill = (struct store_fill *)base;
    struct store_lane *lane = disk_lane_of(store, request->lane);
    const struct object *name = base->object;
    const enum store_stage stage = store_stage(store);
    struct disk_key key;

    if ((stage != STORE_LOADING && stage != STORE_OPEN) || atomic_load(&store->sick))
        return SOURCE_HAS_NOT;
    key = store_key(store, object_url(name), object_variant(name));
    fill->store = store;
    if (!disk_index_find(&store->index, &key, &fill->place, hold, fill)) {
        fill->store = NULL;
        return SOURCE_HAS_NOT;
    }
    fill->most = request->most;
    fill->fields = request->fields;
    fill->review = request->review;
    (void)shared_retain(fill->review.rules);
    if (disk_lane_read_at_once(lane, fill))
        return SOURCE_FILLED;
    if (!is_slow(store) && read_later(lane, fill, request))
        return SOURCE_FILLS;
    return give_back(fill);
}
