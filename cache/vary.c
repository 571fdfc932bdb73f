/*
 * Responses that vary: their fill moves from the entry where it was looked up to that of its
 * variant, and the URL's base gets the names that select a variant.
 */
#include "cache/slots.h"
#include "cache/shard.h"
#include "cache/waiters.h"

struct move {
    uint64_t key;
    struct object *name;  /* URL and new variant; becomes the fill's if it moves */
    struct object *names; /* NULL: none */
    struct entry *base;   /* at the base; or NULL */
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

/* False without memory; nothing has changed. */
static bool
put_names(struct shard *shard, struct cache_fill *fill, struct move *move)
{
    struct entry *entry = move->base;

    if (entry && is_later(entry, fill))
        return true;
    if (!entry || entry_is_stored(entry)) {
        entry = shard_make_entry(shard, move->names, fill->hash);
        if (!entry)
            return false;
        if (move->base)
            shard_remove(shard, move->base);
        table_insert(&shard->table, entry);
    }
    shard_mark(shard, entry, ENTRY_VARIES, move->names, fill->number);
    return true;
}

/* Gives the fill its new name, and puts it in the entry of that if requests can join it there.
 * False without memory for an entry. */
static bool
move_fill(struct shard *shard, struct cache_fill *fill, struct move *move)
{
    bool shared = fill->disposition == FILL_SHARED;
    struct entry *entry;

    entry_remove_fill(fill);
    fill->name = move->name;
    fill->object = object_retain(move->name);
    fill->key = move->key;
    entry = shard_find_fill(shard, fill);
    if (!entry)
        entry = shared ? shard_add_entry(shard, fill->name, fill->hash) : NULL;
    if (!entry)
        return !shared;
    if (entry->kind == ENTRY_VARIES && !move->names && entry->entered < fill->number)
        shard_clear_mark(shard, entry);
    if (!entry_is_mark(entry) && shared)
        entry_add_fill(entry, fill);
    shard_remove_if_empty(shard, entry);
    return true;
}

/* The whole of it; false without memory: perhaps the fill has moved. */
static bool
vary(struct shard *shard, struct cache_fill *fill, struct move *move)
{
    struct entry *own = shard_find_fill(shard, fill);
    bool done = (!move->moves || move_fill(shard, fill, move)) &&
                (!move->renames || put_names(shard, fill, move));

    if (move->moves)
        shard_remove_if_empty(shard, own);
    if (move->moves || move->renames)
        waiters_retry(fill, false);
    return done;
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
