/* The store as a source of versions (source.h). */
#include "store/disk_store.h"
#include "store/store_fill.h"

static struct store *
store_of(struct source *source)
{
    return (struct store *)source;
}

static enum source_filling
fill(struct source *source, struct cache_fill *fill, const struct source_request *request)
{
    return store_fill_start(store_of(source), fill, request);
}

static uint64_t
begin_offer(struct source *source, int64_t begun_us)
{
    (void)begun_us;
    return store_begin_offer(store_of(source));
}

static void
drop_offer(struct source *source)
{
    store_drop_offer(store_of(source));
}

static bool
offer(struct source *source, struct object *object, struct span names, uint64_t position)
{
    return store_offer(store_of(source), object, names, position);
}

static bool
admits(struct source *source, uint64_t key)
{
    return store_admits(store_of(source), key);
}

static bool
replaces(struct source *source, struct span url, struct span variant)
{
    return store_replaces(store_of(source), url, variant);
}

static void
outdate(struct source *source, struct span url, struct span variant, bool all)
{
    store_outdate(store_of(source), url, variant, all);
}

static bool
may_have(struct source *source, struct span url, struct span variant)
{
    return store_may_have(store_of(source), url, variant);
}

static struct source_marked
mark(struct source *source, const struct source_purge *purge, const struct source_marked *before)
{
    return store_mark(store_of(source), purge->by, purge->soft, purge->name, purge->scope, before);
}

static bool
is_synced(struct source *source, struct source_waiter *waiter)
{
    return store_is_synced(store_of(source), waiter);
}

static bool
forget_waiter(struct source *source, struct source_waiter *waiter)
{
    return store_forget_waiter(store_of(source), waiter);
}

struct source *
store_source(struct store *store)
{
    static const struct source_ops ops = {
        .fill = fill,
        .begin_offer = begin_offer,
        .drop_offer = drop_offer,
        .offer = offer,
        .admits = admits,
        .replaces = replaces,
        .outdate = outdate,
        .may_have = may_have,
        .mark = mark,
        .is_synced = is_synced,
        .forget_waiter = forget_waiter,
    };

    if (!store)
        return NULL;
    store->source.ops = &ops;
    return &store->source;
}
