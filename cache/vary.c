/*
 * Responses that vary: their fill moves from the entry where it was looked up to that of its
 * variant, and the URL's base gets the names that select a variant.
 */
#include "cache/slots.h"
#include "cache/shard.h"
#include "cache/waiters.h"

/* A move, all that it needs allocated before anything changes. Entries not used are NULL. */
struct move {
    uint64_t key;
    struct object *name;  /* URL and new variant; becomes the fill's if it moves */
    struct object *names; /* NULL: none */
    struct entry *base;   /* at the base */
    struct entry *target; /* new: of the variant */
    struct entry *spare;  /* new: is inserted at the base */
    bool moves;           /* the variant is another one */
    bool renames;         /* the base had other names, or none */
};

static struct object *
make_name(struct span url, struct span variant, struct span names)
{
    if (variant.len > OBJECT_MAX_VARIANT || names.len > OBJECT_MAX_VARIANT)
        return NULL;
    return object_make(&(struct object_parts){
        .url = url, .variant = variant, .fields = names, .short_lived = names.len == 0});
}

/* What the table has of the URL without a variant, or NULL. */
static struct entry *
find_base(const struct shard *shard, const struct cache_fill *fill)
{
    return table_find(&shard->table, fill->hash, object_url(fill->name), span_of(NULL, 0));
}

/* Has a later fill set the names of the base, or is one under way, which may? */
static bool
is_later(const struct entry *base, const struct cache_fill *fill)
{
    const struct cache_fill *newest = entry_newest(base);

    if (base->kind == ENTRY_VARIES)
        return base->entered > fill->number;
    return base->kind == ENTRY_EMPTY && newest && newest->number > fill->number;
}

/* Makes the entries that are missing; false without memory. */
static bool
prepare(struct shard *shard, const struct cache_fill *fill, struct move *move)
{
    if (move->moves && fill->disposition == FILL_SHARED &&
        !table_find(&shard->table, fill->hash, object_url(move->name),
                    object_variant(move->name))) {
        move->target = shard_add_entry(shard, move->name, fill->hash);
        if (!move->target)
            return false;
    }
    if (!move->renames || (move->base && !entry_is_stored(move->base)))
        return true;
    move->spare = shard_make_entry(shard, move->names, fill->hash);
    if (!move->spare)
        shard_remove_if_empty(shard, move->target);
    return move->spare != NULL;
}

static void
put_names(struct shard *shard, struct cache_fill *fill, struct move *move)
{
    struct entry *entry = move->base;

    if (entry && is_later(entry, fill)) {
        if (move->spare)
            shard_free_entry(move->spare);
        return;
    }
    if (move->spare) {
        if (entry)
            shard_remove(shard, entry);
        entry = move->spare;
        table_insert(&shard->table, entry);
    }
    shard_mark(shard, entry, ENTRY_VARIES, move->names, fill->number);
}

/* Gives the fill its new name, and puts it in the entry of that if requests can join it there. */
static void
move_fill(struct shard *shard, struct cache_fill *fill, struct move *move)
{
    struct entry *entry;

    entry_remove_fill(fill);
    fill->name = move->name;
    fill->object = object_retain(move->name);
    fill->key = move->key;
    entry = shard_find_fill(shard, fill);
    if (!entry)
        return;
    if (entry->kind == ENTRY_VARIES && !move->names && entry->entered < fill->number)
        shard_clear_mark(shard, entry);
    if (!entry_is_mark(entry) && fill->disposition == FILL_SHARED)
        entry_add_fill(entry, fill);
    shard_remove_if_empty(shard, entry);
}

/* The whole of it; false, with nothing changed, without memory. */
static bool
vary(struct shard *shard, struct cache_fill *fill, struct move *move)
{
    struct entry *own = shard_find_fill(shard, fill);

    if (!prepare(shard, fill, move))
        return false;
    if (move->moves)
        move_fill(shard, fill, move);
    if (move->moves && own != move->base)
        shard_remove_if_empty(shard, own);
    if (move->renames)
        put_names(shard, fill, move);
    if (move->moves || move->renames)
        waiters_retry(fill, false);
    return true;
}

bool
cache_fill_vary(struct cache_fill *fill, struct span names, struct span variant)
{
    struct object *name = fill->name, *object = fill->object;
    const struct cache_key key = cache_key_of_variant(object_url(name), variant);
    struct move move = {
        .key = key.key,
        .name = make_name(key.url, variant, span_of(NULL, 0)),
        .names = names.len ? make_name(key.url, span_of(NULL, 0), names) : NULL,
        .moves = !span_equal(variant, object_variant(name)),
    };
    bool made = move.name && (move.names || names.len == 0), done = true;
    struct slot *slot;

    assert(fill->stage == FILL_BEGUN && (variant.len == 0) == (names.len == 0));
    slot = cache_lock(fill->cache, fill->hash);
    if (cache_fill_may_store(fill)) {
        struct shard *shard = &slot->shard;

        move.base = find_base(shard, fill);
        move.renames = move.names && !(move.base && move.base->kind == ENTRY_VARIES &&
                                       span_equal(object_fields(move.base->object), names));
        done = made && vary(shard, fill, &move);
        if (!done) {
            waiters_retry(fill, false);
            shard_restrict_fill(shard, fill, FILL_PRIVATE);
        }
    } else if (move.moves) {
        /* After a purge too they may be requests of other variants. */
        waiters_retry(fill, false);
    }
    slot_unlock(slot);
    if (fill->name == name) {
        object_release(&move.name);
    } else {
        object_release(&name);
        object_release(&object);
    }
    object_release(&move.names);
    return done;
}

struct object *
cache_fill_names(struct cache_fill *fill)
{
    struct slot *slot = cache_lock(fill->cache, fill->hash);
    struct entry *entry = find_base(&slot->shard, fill);
    struct object *names =
        entry && entry->kind == ENTRY_VARIES ? object_retain(entry->object) : NULL;

    slot_unlock(slot);
    return names;
}
