/*
 * Responses that vary: their fill moves from the place where it was looked up to that of its
 * variant, and a record of the names that select a variant stands at the URL's base.
 */
#include "cache/places.h"
#include "cache/shard_parts.h"
#include "cache/waiters.h"

/* A move, all that it needs allocated before anything changes. Entries not used are NULL. */
struct move {
    uint64_t key;
    struct object *name;    /* URL and new variant; becomes the fill's if it moves */
    struct object *record;  /* NULL: no names, and no record is to be made */
    struct entry *own;      /* the fill's own, or NULL */
    struct entry *target;   /* at the new place, or NULL */
    struct entry *base;     /* at the base, or NULL */
    struct entry *for_fill; /* new, or `own`: is inserted at the new place */
    struct entry *for_base; /* new: is inserted at the base */
    bool moves;             /* the place is another one */
};

static struct object *
make_name(struct span url, struct span variant, struct span names)
{
    if (variant.len > OBJECT_MAX_VARIANT || names.len > OBJECT_MAX_VARIANT)
        return NULL;
    return object_make(&(struct object_parts){.url = url, .variant = variant, .fields = names});
}

/* Is the record as it was? */
static bool
record_stays(const struct move *move)
{
    return !move->record ||
           (move->base && entry_is_record(move->base) &&
            span_equal(object_fields(move->base->object), object_fields(move->record)));
}

/* A busy object of another fill is newer, and will tell itself whether the URL varies. */
static bool
is_newer(const struct move *move, const struct entry *entry)
{
    return entry && entry != move->own && !entry->stored && !entry_is_mark(entry);
}

/* Finds the entries that take part, and makes those that are missing; false without memory. */
static bool
prepare(struct shard *shard, struct cache_fill *fill, struct move *move)
{
    struct span url = object_url(move->name);
    bool own_is_base;

    move->own = fill->entry && !fill->entry->stored ? fill->entry : NULL;
    move->target = table_find(&shard->table, fill->hash, url, object_variant(move->name));
    own_is_base = move->own && move->own == move->base;
    if (move->moves && (!move->target || (entry_is_record(move->target) && !move->record))) {
        move->for_fill = move->own && !(own_is_base && move->record)
                             ? move->own
                             : shard_make_entry(shard, move->name, fill->hash);
        if (!move->for_fill)
            return false;
    }
    if (move->record && !own_is_base && (!move->base || move->base->stored)) {
        move->for_base = shard_make_entry(shard, move->record, fill->hash);
        if (!move->for_base) {
            if (move->for_fill && move->for_fill != move->own)
                shard_free_entry(move->for_fill);
            return false;
        }
    }
    return true;
}

static void
put_record(struct shard *shard, struct cache_fill *fill, struct move *move, struct removed *removed)
{
    struct entry *entry = move->base;

    if (is_newer(move, entry))
        return;
    if (move->for_base) {
        if (entry)
            shard_remove(shard, entry, removed);
        entry = move->for_base;
        table_insert(&shard->table, entry);
    }
    shard_mark(shard, entry, move->record, OBJECT_VARIES, cache_draw_entered(fill->cache), removed);
}

/* Gives the fill its new name, and the place of that if it can have it. */
static void
change_place(struct shard *shard, struct cache_fill *fill, struct move *move,
             struct removed *removed)
{
    struct entry *target = move->target, *own = shard_close_fill(fill);

    fill->name = move->name;
    fill->object = object_retain(move->name);
    fill->key = move->key;
    if (own && own == move->for_fill) {
        struct object *before = own->object;

        table_remove(&shard->table, own);
        own->object = object_retain(move->name);
        object_release(&before);
    } else if (own && !(own == move->base && move->record)) {
        shard_unlink(shard, own, removed);
    }
    if (move->for_fill) {
        if (target)
            shard_remove(shard, target, removed);
        target = move->for_fill;
        table_insert(&shard->table, target);
    } else if (!target->stored || target->object->fill) {
        return; /* a fill that is newer, or a mark */
    }
    target->object->fill = fill;
    fill->entry = target;
}

/* The whole of it; false, with nothing changed, without memory. */
static bool
vary(struct shard *shard, struct cache_fill *fill, struct move *move, struct removed *removed)
{
    bool record;

    if (!prepare(shard, fill, move))
        return false;
    record = !record_stays(move);
    if (move->moves)
        change_place(shard, fill, move, removed);
    if (record)
        put_record(shard, fill, move, removed);
    if (move->moves || record)
        waiters_retry(fill);
    return true;
}

bool
cache_fill_vary(struct cache_fill *fill, struct span base, struct span names, struct span variant)
{
    struct object *name = fill->name, *object = fill->object;
    const struct cache_key key = cache_key_of_variant(object_url(name), variant);
    struct move move = {
        .key = key.key,
        .name = make_name(key.url, variant, span_of(NULL, 0)),
        .record = names.len ? make_name(key.url, base, names) : NULL,
        .moves = !span_equal(variant, object_variant(name)),
    };
    bool made = move.name && (move.record || names.len == 0), done = true;
    struct removed removed = {0};
    struct place *place;

    assert(!fill->has_head && !fill->done && span_equal(base, variant) == (names.len == 0));
    place = cache_lock(fill->cache, fill->hash);
    if (fill->may_store && !fill->isolated) {
        struct shard *shard = &place->shard;

        move.base = table_find(&shard->table, fill->hash, key.url, base);
        done = made && vary(shard, fill, &move, &removed);
        if (!done) {
            fill->isolated = true;
            waiters_retry(fill);
            shard_purge_fill(shard, fill, &removed);
        }
        table_tidy(&shard->table);
    } else if (move.moves) {
        /* After a purge too they may be requests of other variants. */
        waiters_retry(fill);
    }
    place_unlock(place);
    shard_free_removed(&removed);
    if (fill->name == name) {
        object_release(&move.name);
    } else {
        object_release(&name);
        object_release(&object);
    }
    object_release(&move.record);
    return done;
}

struct object *
cache_fill_record(struct cache_fill *fill, struct span base)
{
    struct place *place = cache_lock(fill->cache, fill->hash);
    struct entry *entry = table_find(&place->shard.table, fill->hash, object_url(fill->name), base);
    struct object *record = entry && entry_is_record(entry) ? object_retain(entry->object) : NULL;

    place_unlock(place);
    return record;
}
