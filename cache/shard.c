#include "cache/shard.h"

#include <assert.h>
#include <stdlib.h>

#include "base/container_of.h"
#include "policies/charge.h"

/* Mean bytes of a marker's object that its shard has memory for; URLs have about 80. */
#define MARKER_BYTES 1024u

/* Where a marker's entry has them, in the memory of a node. */
struct marker_links {
    struct entry *older;
    struct entry *newer;
};

_Static_assert(sizeof(struct object) == CHARGE_OBJECT_STRUCT,
               "policies/charge.h has the object's size");
_Static_assert(sizeof(struct entry) == CHARGE_ENTRY_STRUCT,
               "policies/charge.h has the entry's size");
_Static_assert(sizeof(struct marker_links) == CHARGE_LEAST_NODE,
               "policies/charge.h has the least memory of a node");

/* Every entry has memory for a marker's links, since an object may turn out to be private. */
static size_t
entry_size(const struct policy_ops *ops)
{
    size_t node = ops ? ops->node_size : 0;

    return sizeof(struct entry) +
           (node > sizeof(struct marker_links) ? node : sizeof(struct marker_links));
}

uint64_t
cache_page_overhead(const struct policy_ops *ops)
{
    return charge_page_overhead(ops);
}

bool
shard_init(struct shard *shard, const struct policy_spec *spec, const struct policy_config *config,
           bool body_only, size_t max_markers)
{
    *shard = (struct shard){
        .config = *config,
        .spec = *spec,
        .body_only = body_only,
        .entry_size = entry_size(spec->ops),
        .max_markers = max_markers,
    };
    shard->config.params = NULL; /* they are the spec's, and the caller's may not live as long */
    LIST_INIT(&shard->fills);
    if (!table_init(&shard->table))
        return false;
    if (!spec->ops)
        return true;
    shard->overhead = cache_page_overhead(spec->ops);
    if (!evictor_init(&shard->evictor, spec, config)) {
        table_free(&shard->table);
        return false;
    }
    return true;
}

static void
entry_free(struct entry *entry)
{
    if (entry->stored)
        object_release_from_cache(&entry->object);
    else
        object_release(&entry->object);
    free(entry);
}

void
shard_free(struct shard *shard)
{
    struct entry *entry, *next;

    /* The policy first, because it may read the nodes of its pages. */
    if (shard->evictor.ops)
        evictor_free(&shard->evictor);
    for (size_t i = 0; i < shard->table.bucket_count; i++) {
        /* Cut off leaf by leaf: a tree that is not searched again needs no balance. */
        entry = RB_ROOT(&shard->table.buckets[i]);
        while (entry) {
            if (RB_LEFT(entry, links)) {
                next = RB_LEFT(entry, links);
                RB_LEFT(entry, links) = NULL;
            } else if (RB_RIGHT(entry, links)) {
                next = RB_RIGHT(entry, links);
                RB_RIGHT(entry, links) = NULL;
            } else {
                next = RB_PARENT(entry, links);
                entry_free(entry);
            }
            entry = next;
        }
    }
    table_free(&shard->table);
    *shard = (struct shard){0};
}

void
shard_move(struct shard *to, struct shard *from)
{
    *to = *from;
    /* The first fill points at the head of its list. */
    if (!LIST_EMPTY(&to->fills))
        LIST_FIRST(&to->fills)->link.le_prev = &LIST_FIRST(&to->fills);
}

static uint64_t
bytes_of(const struct shard *shard, const struct object *object)
{
    if (shard->body_only)
        return object_length(object);
    return object_size(object) - sizeof(*object) - 1 + shard->overhead;
}

/* What the policy may know of a page. */
static struct policy_page
describe_page(const struct shard *shard, const struct object *object, uint64_t key)
{
    return (struct policy_page){
        .bytes = bytes_of(shard, object),
        .key = key,
        .cost_us = object->fetch_us,
        .next = POLICY_NEVER,
    };
}

static struct entry *
entry_of(void *node)
{
    return container_of(node, struct entry, node);
}

struct entry *
shard_make_entry(const struct shard *shard, struct object *object, uint32_t hash)
{
    struct entry *entry = calloc(1, shard->entry_size);

    if (entry) {
        entry->object = object_retain(object);
        entry->hash = hash;
    }
    return entry;
}

/* ---- removal --------------------------------------------------------------------------------- */

static void
removed_add(struct removed *removed, struct entry *entry)
{
    /* An entry that is in no tree has its links free for the chain. */
    RB_RIGHT(entry, links) = NULL;
    if (removed->last)
        RB_RIGHT(removed->last, links) = entry;
    else
        removed->first = entry;
    removed->last = entry;
    removed->count += entry->stored;
}

/* Removes an entry from the table and adds it to a chain. */
static void
shard_unlink(struct shard *shard, struct entry *entry, struct removed *removed)
{
    struct object *object = entry->object;

    if (entry->stored && object->fill && !shard->is_copy) {
        object->fill->entry = NULL;
        object->fill = NULL;
    }
    table_remove(&shard->table, entry);
    removed_add(removed, entry);
}

static struct marker_links *
marker_links(struct entry *entry)
{
    return (struct marker_links *)(void *)entry->node;
}

struct entry *
shard_next_marker(const struct entry *entry)
{
    return ((const struct marker_links *)(const void *)entry->node)->newer;
}

static void
marker_unlink(struct shard *shard, struct entry *entry)
{
    struct marker_links *links = marker_links(entry);

    if (links->older)
        marker_links(links->older)->newer = links->newer;
    else
        shard->oldest_marker = links->newer;
    if (links->newer)
        marker_links(links->newer)->older = links->older;
    else
        shard->newest_marker = links->older;
    shard->marker_count--;
    shard->marker_bytes -= object_size(entry->object);
}

void
shard_remove(struct shard *shard, struct entry *entry, struct removed *removed)
{
    if (entry->stored)
        evictor_remove(&shard->evictor, entry->node, bytes_of(shard, entry->object));
    else if (entry_is_marker(entry))
        marker_unlink(shard, entry);
    else
        assert(!entry->object->fill); /* shard_close_fill() */
    shard_unlink(shard, entry, removed);
}

/* The owner of the evictor's nodes, for one call. */
struct call {
    struct shard *shard;
    struct removed *victims;
    struct removed *replaced; /* also what was inserted and evicted at once */
    struct entry *entry;      /* of the page that is to be stored */
    struct entry *own;        /* that is in the table */
};

static void *
node_of_entry(void *owner)
{
    struct call *call = owner;

    return call->entry->node;
}

static void
link_entry(void *owner, void *node)
{
    struct call *call = owner;
    struct entry *entry = entry_of(node);

    entry->stored = true;
    if (!call->own)
        table_insert(&call->shard->table, entry);
    else if (call->own != entry)
        table_replace(&call->shard->table, call->own, entry);
}

static uint64_t
unlink_entry(void *owner, void *node, enum evictor_departure why)
{
    struct call *call = owner;
    struct entry *entry = entry_of(node);
    bool victim = why == EVICTOR_EVICTED || why == EVICTOR_SURPLUS;

    shard_unlink(call->shard, entry, victim ? call->victims : call->replaced);
    return bytes_of(call->shard, entry->object);
}

static const struct evictor_hooks hooks = {node_of_entry, link_entry, unlink_entry};

/* ---- requests -------------------------------------------------------------------------------- */

struct object *
shard_lookup(struct shard *shard, const struct cache_key *key, int64_t now_us, struct entry **entry,
             struct removed *victims)
{
    struct call call = {.shard = shard, .victims = victims};
    struct policy_page described;
    struct entry *e = table_find(&shard->table, key->hash, key->url);

    *entry = e;
    if (!e || !e->stored || !object_is_fresh(e->object, now_us))
        return NULL;
    described = describe_page(shard, e->object, key->key);
    if (evictor_hit(&shard->evictor, e->node, &described, &hooks, &call))
        table_tidy(&shard->table);
    return e->object;
}

enum evictor_outcome
shard_store(struct shard *shard, const struct cache_key *key, struct entry *own,
            struct object *object, uint64_t entered, struct removed *replaced,
            struct removed *victims)
{
    struct call call = {.shard = shard, .victims = victims, .replaced = replaced, .own = own};
    struct policy_page described;
    struct entry *entry, *old = NULL;
    enum evictor_outcome outcome;

    if (!shard->evictor.ops || !evictor_can_hold(&shard->evictor, bytes_of(shard, object)))
        return EVICTOR_TOO_LARGE;
    /*
     * Also in place of its own: that was allocated together with what a fill needs for a moment, so
     * many such entries keep memory apart that is free (232 bytes a page of 1 KiB beyond its
     * content; 188 so).
     */
    entry = shard_make_entry(shard, object, key->hash);
    if (!entry && !own)
        return EVICTOR_NO_MEMORY;
    if (!entry)
        entry = own;
    if (!own)
        old = table_find(&shard->table, key->hash, key->url);
    entry->entered = entered;
    call.entry = entry;
    described = describe_page(shard, object, key->key);
    described.old = old ? old->node : NULL;
    outcome = evictor_enter(&shard->evictor, &described, &hooks, &call);
    if (outcome == EVICTOR_ENTERED || outcome == EVICTOR_PASSED_ON) {
        object_enter_cache(object);
        if (own && own != entry)
            entry_free(own);
    } else if (entry != own) {
        entry_free(entry);
    }
    table_tidy(&shard->table); /* a large page may have evicted many small ones */
    return outcome;
}

void
shard_add_fill(struct shard *shard, struct cache_fill *fill)
{
    fill->may_store = true;
    LIST_INSERT_HEAD(&shard->fills, fill, link);
    shard->fill_count++;
}

void
shard_remove_fill(struct shard *shard, struct cache_fill *fill)
{
    fill->may_store = false;
    LIST_REMOVE(fill, link);
    shard->fill_count--;
}

struct entry *
shard_close_fill(struct cache_fill *fill)
{
    struct entry *entry = fill->entry;

    fill->entry = NULL;
    if (entry)
        entry->object->fill = NULL;
    return entry && !entry->stored ? entry : NULL;
}

/* ---- markers --------------------------------------------------------------------------------- */

void
shard_adopt_marker(struct shard *shard, struct entry *entry, uint64_t entered,
                   struct removed *removed)
{
    size_t bytes = object_size(entry->object);

    while (shard->marker_count && (shard->marker_count == shard->max_markers ||
                                   shard->marker_bytes + bytes > MARKER_BYTES * shard->max_markers))
        shard_remove(shard, shard->oldest_marker, removed);
    entry->entered = entered;
    *marker_links(entry) = (struct marker_links){.older = shard->newest_marker};
    if (shard->newest_marker)
        marker_links(shard->newest_marker)->newer = entry;
    else
        shard->oldest_marker = entry;
    shard->newest_marker = entry;
    shard->marker_count++;
    shard->marker_bytes += bytes;
}

void
shard_mark(struct shard *shard, struct entry *entry, struct object *name, uint64_t entered,
           int64_t until_us, struct removed *removed)
{
    struct object *before = entry->object;

    if (entry_is_marker(entry))
        marker_unlink(shard, entry);
    name->fetched_us = until_us;
    atomic_store_explicit(&name->state, OBJECT_UNCACHEABLE, memory_order_release);
    entry->object = object_retain(name);
    object_release(&before);
    shard_adopt_marker(shard, entry, entered, removed);
}

/* ---- capacity -------------------------------------------------------------------------------- */

void
shard_remove_expired_markers(struct shard *shard, int64_t now_us, struct removed *removed)
{
    for (int i = 0; i < 2 && shard->oldest_marker; i++) {
        if (now_us < shard->oldest_marker->object->fetched_us)
            return;
        shard_remove(shard, shard->oldest_marker, removed);
    }
}

void
shard_resize(struct shard *shard, const struct policy_config *config, struct removed *victims)
{
    struct call call = {.shard = shard, .victims = victims};
    struct evictor *evictor = &shard->evictor;
    struct entry *entry, *next;

    shard->config = *config;
    if (!evictor->ops)
        return;
    evictor_resize(evictor, config);
    /* Pages that are too large now are removed first, so that none is evicted for their bytes. */
    for (entry = table_first(&shard->table); entry && evictor_is_full(evictor); entry = next) {
        next = table_next(&shard->table, entry);
        if (entry->stored && !evictor_can_hold(evictor, bytes_of(shard, entry->object))) {
            shard_remove(shard, entry, victims);
            evictor->evictions++;
        }
    }
    evictor_shrink(evictor, &hooks, &call);
    table_tidy(&shard->table);
}

uint64_t
shard_reclaim(struct shard *shard, uint64_t bytes, struct removed *victims)
{
    struct call call = {.shard = shard, .victims = victims};
    uint64_t evicted = 0;

    while (evicted < bytes && shard->evictor.pages > 0) {
        evictor_evict(&shard->evictor, EVICTOR_EVICTED, &hooks, &call);
        evicted += object_size(victims->last->object);
    }
    table_tidy(&shard->table);
    return evicted;
}

/* ---- purging --------------------------------------------------------------------------------- */

/* A purge concerns a fill: it is not stored, and its own entry is removed. */
static void
purge_fill(struct shard *shard, struct cache_fill *fill, struct removed *removed)
{
    struct entry *own = shard_close_fill(fill);

    shard_remove_fill(shard, fill);
    if (own)
        shard_unlink(shard, own, removed);
}

void
shard_purge(struct shard *shard, uint32_t hash, struct span url, struct removed *removed)
{
    struct cache_fill *fill, *next;
    struct entry *entry;

    for (fill = LIST_FIRST(&shard->fills); fill; fill = next) {
        next = LIST_NEXT(fill, link);
        if (fill->hash == hash && span_equal(object_url(fill->name), url))
            purge_fill(shard, fill, removed);
    }
    entry = table_find(&shard->table, hash, url);
    if (entry)
        shard_remove(shard, entry, removed);
    table_tidy(&shard->table);
}

uint64_t
shard_count_prefix(const struct shard *shard, struct span prefix)
{
    uint64_t count = 0;

    for (struct entry *entry = table_first(&shard->table); entry;
         entry = table_next(&shard->table, entry))
        count += entry->stored && span_starts_with(object_url(entry->object), prefix);
    return count;
}

void
shard_purge_prefix(struct shard *shard, struct span prefix, struct removed *removed)
{
    struct cache_fill *fill, *next_fill;
    struct entry *entry, *next;

    for (fill = LIST_FIRST(&shard->fills); fill; fill = next_fill) {
        next_fill = LIST_NEXT(fill, link);
        if (span_starts_with(object_url(fill->name), prefix))
            purge_fill(shard, fill, removed);
    }
    for (entry = table_first(&shard->table); entry; entry = next) {
        next = table_next(&shard->table, entry);
        if (span_starts_with(object_url(entry->object), prefix))
            shard_remove(shard, entry, removed);
    }
    table_tidy(&shard->table);
}

uint64_t
shard_purge_all(struct shard *shard, struct shard *old, struct removed *removed)
{
    uint64_t count = shard->evictor.pages;
    struct cache_fill *fill;
    struct shard fresh;

    if (!shard_init(&fresh, &shard->spec, &shard->config, shard->body_only, shard->max_markers)) {
        *old = (struct shard){0};
        shard_purge_prefix(shard, span_of(NULL, 0), removed);
        return count;
    }
    while (fill = LIST_FIRST(&shard->fills), fill) {
        shard_close_fill(fill);
        shard_remove_fill(shard, fill);
    }
    fresh.evictor.insertions = shard->evictor.insertions;
    fresh.evictor.evictions = shard->evictor.evictions;
    *old = *shard;
    *shard = fresh;
    return count;
}

void
shard_free_removed(struct removed *removed)
{
    struct entry *entry = removed->first;

    while (entry) {
        struct entry *next = RB_RIGHT(entry, links);

        entry_free(entry);
        entry = next;
    }
    *removed = (struct removed){0};
}

/* ---- for tests ------------------------------------------------------------------------------- */

/* An entry's object and its fill refer to each other, and its kind is what it says. */
static bool
entry_is_valid(const struct entry *entry)
{
    const struct object *object = entry->object;

    if (object->fill && (object->fill->entry != entry || !object->fill->may_store))
        return false;
    if (entry->stored)
        return object_state(object) == OBJECT_READY;
    return entry_is_marker(entry) ? !object->fill : object->fill != NULL;
}

bool
shard_is_valid(const struct shard *shard)
{
    size_t stored = 0, markers = 0, listed = 0, fills = 0, own = 0;
    const struct cache_fill *fill;
    struct entry *entry;
    uint64_t bytes = 0;

    if (!table_is_valid(&shard->table))
        return false;
    for (entry = table_first(&shard->table); entry; entry = table_next(&shard->table, entry)) {
        if (!entry_is_valid(entry))
            return false;
        stored += entry->stored;
        markers += entry_is_marker(entry);
        if (entry->stored)
            bytes += bytes_of(shard, entry->object);
    }
    for (entry = shard->oldest_marker; entry; entry = shard_next_marker(entry))
        listed += entry_is_marker(entry);
    LIST_FOREACH(fill, &shard->fills, link)
    {
        if (!fill->may_store || fill->done)
            return false;
        if (fill->entry && fill->entry->object->fill != fill)
            return false;
        own += fill->entry && !fill->entry->stored;
        fills++;
    }
    if (fills != shard->fill_count || listed != markers || markers != shard->marker_count ||
        markers > shard->max_markers || stored + markers + own != shard->table.entry_count ||
        stored != shard->evictor.pages || bytes != shard->evictor.bytes)
        return false;
    return shard->evictor.ops ? evictor_is_valid(&shard->evictor) : !shard->evictor.policy;
}
