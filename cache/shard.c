#include "cache/shard.h"

#include "base/arena.h"
#include "base/word_list.h"

_Static_assert(sizeof(struct object) == CHARGE_OBJECT_STRUCT,
               "policies/charge.h has the object's size");
_Static_assert(sizeof(struct entry) == CHARGE_ENTRY_STRUCT,
               "policies/charge.h has the entry's size");
_Static_assert(sizeof(struct mark) == CHARGE_LEAST_NODE,
               "policies/charge.h has the least memory of a node");

/* Every entry has memory for a mark's links, since a response may turn out to be private. */
static size_t
entry_size(const struct policy_ops *ops)
{
    size_t node = ops ? ops->node_size : 0;

    return sizeof(struct entry) +
           (node > sizeof(struct mark) ? node : sizeof(struct mark));
}

bool
shard_init(struct shard *shard, const struct policy_spec *spec, const struct policy_config *config,
           bool body_only, size_t max_marks)
{
    *shard = (struct shard){
        .config = *config,
        .spec = *spec,
        .body_only = body_only,
        .entry_size = entry_size(spec->ops),
        .max_marks = max_marks,
    };
    shard->config.params = NULL; /* they are the spec's, and the caller's may not live as long */
    LIST_INIT(&shard->fills);
    TAILQ_INIT(&shard->passed.list);
    TAILQ_INIT(&shard->varied.list);
    if (!table_init(&shard->table))
        return false;
    if (!spec->ops)
        return true;
    shard->overhead = charge_page_overhead(spec->ops);
    if (!evictor_init(&shard->evictor, spec, config)) {
        table_free(&shard->table);
        return false;
    }
    return true;
}

/* Frees an entry, and drops its object; it is in no table. */
static void
free_entry(struct entry *entry)
{
    if (entry_is_stored(entry))
        object_release_from_cache(&entry->object);
    else
        object_release(&entry->object);
    arena_free(entry);
}

static void
free_tree(struct entry *tree)
{
    if (!tree)
        return;
    free_tree(tree->left);
    free_tree(tree->right);
    free_entry(tree);
}

void
shard_free(struct shard *shard)
{
    /* The policy first, because it may read the nodes of its pages. */
    if (shard->evictor.ops)
        evictor_free(&shard->evictor);
    for (size_t i = 0; i < shard->table.bucket_count; i++)
        free_tree(shard->table.buckets[i]);
    shard_free_removed(&shard->removed);
    tags_free(&shard->tags);
    table_free(&shard->table);
    *shard = (struct shard){0};
}

void
shard_move(struct shard *to, struct shard *from)
{
    *to = *from;
    /* The heads of lists are pointed at. */
    if (!LIST_EMPTY(&to->fills))
        LIST_FIRST(&to->fills)->in_shard.le_prev = &LIST_FIRST(&to->fills);
    TAILQ_INIT(&to->passed.list);
    TAILQ_CONCAT(&to->passed.list, &from->passed.list, links);
    TAILQ_INIT(&to->varied.list);
    TAILQ_CONCAT(&to->varied.list, &from->varied.list, links);
}

/* The bytes that an object with this number of tags counts when it is stored. */
static uint64_t
bytes_of(const struct shard *shard, const struct object *object, size_t tag_count)
{
    if (shard->body_only)
        return object_length(object);
    return object_size(object) - sizeof(*object) - 1 + shard->overhead +
           (tag_count ? tag_count * TAGS_CHARGE + object->tags_len : 0);
}

uint64_t
shard_bytes_of_entry(const struct shard *shard, const struct entry *entry)
{
    return bytes_of(shard, entry->object, entry->tag_count);
}

/* What the policy may know of a page. */
static struct policy_page
describe_page(const struct shard *shard, const struct entry *entry, uint64_t key)
{
    return (struct policy_page){
        .bytes = shard_bytes_of_entry(shard, entry),
        .key = key,
        .cost_us = entry->object->fetch_us,
        .next = POLICY_NEVER,
    };
}

static struct entry *
entry_of(void *node)
{
    return container_of(node, struct entry, node);
}

static size_t
tags_offset(const struct shard *shard)
{
    return (shard->entry_size + _Alignof(struct tag_link) - 1) / _Alignof(struct tag_link) *
           _Alignof(struct tag_link);
}

struct tag_link *
shard_tags_of(const struct shard *shard, struct entry *entry)
{
    return (struct tag_link *)(void *)((char *)entry + tags_offset(shard));
}

struct entry *
shard_make_entry(struct shard *shard, struct object *object, uint32_t hash)
{
    struct span tags = object_tags(object);
    size_t count = words_count(tags), size = shard->entry_size;
    struct entry *entry;

    if (count)
        size = tags_offset(shard) + count * sizeof(struct tag_link);
    entry = arena_calloc(size);
    if (!entry)
        return NULL;
    if (!tags_add(&shard->tags, entry, shard_tags_of(shard, entry), tags)) {
        arena_free(entry);
        return NULL;
    }
    entry->object = object_retain(object);
    entry->hash = hash;
    entry->tag_count = (uint8_t)count;
    return entry;
}

struct entry *
shard_add_entry(struct shard *shard, struct object *object, uint32_t hash)
{
    struct entry *entry = shard_make_entry(shard, object, hash);

    if (entry)
        table_insert(&shard->table, entry);
    return entry;
}

static void
remove_tags(struct shard *shard, struct entry *entry)
{
    tags_remove(&shard->tags, shard_tags_of(shard, entry), entry->tag_count);
}

/* From one object of an entry to another one. */
static void
move_fills(struct object *from, struct object *to)
{
    if (from == to || LIST_EMPTY(&from->fills))
        return;
    to->fills = from->fills;
    LIST_FIRST(&to->fills)->link.le_prev = &LIST_FIRST(&to->fills);
    LIST_INIT(&from->fills);
}

/* Gives it another object with a reference of its own, and the fills of the one before. */
static void
set_object(struct entry *entry, struct object *object)
{
    struct object *before = entry->object;

    entry->object = object_retain(object);
    move_fills(before, object);
    object_release(&before);
}

/* ---- marks -----------------------------------------------------------------------------------
 *
 * Of two kinds: entries that requests pass, and names of URLs that vary. Each kind is a list from
 * the oldest to the newest, bounded in number and bytes.
 */

/* Mean bytes of a mark's object that its shard has memory for; URLs have about 80. */
#define MARK_BYTES 1024u

static struct mark *
mark_of(struct entry *entry)
{
    return (struct mark *)(void *)entry->node;
}

/* Or NULL. */
static struct entry *
oldest_of(const struct marks *marks)
{
    struct mark *oldest = TAILQ_FIRST(&marks->list);

    return oldest ? entry_of(oldest) : NULL;
}

static struct marks *
marks_of(struct shard *shard, enum entry_kind kind)
{
    return kind == ENTRY_VARIES ? &shard->varied : &shard->passed;
}

void
shard_clear_mark(struct shard *shard, struct entry *entry)
{
    struct marks *marks = marks_of(shard, entry->kind);

    TAILQ_REMOVE(&marks->list, mark_of(entry), links);
    marks->count--;
    marks->bytes -= object_size(entry->object);
    entry->kind = ENTRY_EMPTY;
}

void
shard_mark(struct shard *shard, struct entry *entry, enum entry_kind kind, struct object *object,
           uint64_t entered)
{
    struct marks *marks = marks_of(shard, kind);
    size_t bytes = object_size(object), most = shard->max_marks;

    /* A URL that varies has pages beside its names: there may be one more for each stored page. */
    if (kind == ENTRY_VARIES)
        most += (size_t)shard->evictor.pages;
    if (entry_is_mark(entry))
        shard_clear_mark(shard, entry);
    while (marks->count && (marks->count >= most || marks->bytes + bytes > MARK_BYTES * most))
        shard_remove(shard, oldest_of(marks));
    set_object(entry, object);
    entry->kind = (uint8_t)kind;
    entry->entered = entered;
    TAILQ_INSERT_TAIL(&marks->list, mark_of(entry), links);
    marks->count++;
    marks->bytes += bytes;
}

void
shard_remove_expired_marks(struct shard *shard, int64_t now_us)
{
    for (int i = 0; i < 2; i++) {
        struct entry *oldest = oldest_of(&shard->passed);

        if (!oldest || now_us < oldest->object->fetched_us)
            return;
        shard_remove(shard, oldest);
    }
}

/* ---- removal --------------------------------------------------------------------------------- */

/* Removes an entry from the table and chains it; a stored one has left the evictor. */
static void
unlink_to(struct shard *shard, struct entry *entry, struct entry **chain)
{
    if (!shard->is_copy)
        object_remove_fills(entry->object);
    remove_tags(shard, entry);
    table_remove(&shard->table, entry);
    entry->right = *chain;
    *chain = entry;
}

void
shard_remove(struct shard *shard, struct entry *entry)
{
    if (entry_is_stored(entry))
        evictor_remove(&shard->evictor, entry->node, shard_bytes_of_entry(shard, entry));
    else if (entry_is_mark(entry))
        shard_clear_mark(shard, entry);
    unlink_to(shard, entry, &shard->removed.entries);
}

/* The owner of the evictor's nodes, for one call. */
struct call {
    struct shard *shard;
    struct entry *entry;      /* of the page that is to be stored */
    struct entry *empty;      /* that it replaces, or NULL */
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

    entry->kind = ENTRY_STORED;
    if (call->empty == entry)
        return;
    if (call->empty)
        table_remove(&call->shard->table, call->empty);
    table_insert(&call->shard->table, entry);
}

static void
unlink_victim(struct shard *shard, struct entry *entry)
{
    unlink_to(shard, entry, &shard->removed.evicted);
    shard->removed.evicted_count++;
}

static uint64_t
unlink_entry(void *owner, void *node, enum evictor_departure why)
{
    struct call *call = owner;
    struct entry *entry = entry_of(node);

    if (why == EVICTOR_EVICTED || why == EVICTOR_SURPLUS)
        unlink_victim(call->shard, entry);
    else
        unlink_to(call->shard, entry, &call->shard->removed.entries);
    return shard_bytes_of_entry(call->shard, entry);
}

/* Evicts a page that the policy has not chosen. */
static void
evict(struct shard *shard, struct entry *entry)
{
    evictor_remove(&shard->evictor, entry->node, shard_bytes_of_entry(shard, entry));
    unlink_victim(shard, entry);
    shard->evictor.evictions++;
}

static const struct evictor_hooks hooks = {node_of_entry, link_entry, unlink_entry};

static void
free_chain(struct entry *entry)
{
    struct entry *next;

    for (; entry; entry = next) {
        next = entry->right;
        free_entry(entry);
    }
}

void
shard_free_removed(struct removed *removed)
{
    free_chain(removed->entries);
    free_chain(removed->evicted);
    segments_free(removed->segments);
}

/* ---- requests -------------------------------------------------------------------------------- */

struct object *
shard_lookup(struct shard *shard, const struct cache_key *key,
             const struct cache_request *request, int64_t now_us, struct entry **entry)
{
    struct call call = {.shard = shard};
    struct policy_page described;
    struct entry *e = table_find(&shard->table, key->hash, key->url, key->variant);

    *entry = e;
    if (!e || !entry_is_stored(e) || !object_is_fresh(e->object, now_us) ||
        e->object->notes & request->stale_notes)
        return NULL;
    if (request->conditions && !cache_conditions_are_met(request->conditions, e->object, now_us))
        return NULL;
    described = describe_page(shard, e, key->key);
    evictor_hit(&shard->evictor, e->node, &described, &hooks, &call);
    return e->object;
}

/* After a variant has been stored: evicts the oldest one of its URL if there are too many. */
static void
limit_variants(struct shard *shard, const struct cache_key *key, const struct entry *latest)
{
    struct entry *entry = table_first_variant(&shard->table, key->hash, key->url), *oldest = NULL;
    size_t count = 0;

    for (; entry; entry = table_next_variant(&shard->table, entry)) {
        if (!entry_is_stored(entry) || object_variant(entry->object).len == 0)
            continue;
        count++;
        if (entry != latest && (!oldest || entry->entered < oldest->entered))
            oldest = entry;
    }
    if (count > CACHE_MAX_VARIANTS)
        evict(shard, oldest);
}

/* ---- fills ----------------------------------------------------------------------------------- */

struct entry *
shard_find_fill(const struct shard *shard, const struct cache_fill *fill)
{
    return table_find(&shard->table, fill->hash, object_url(fill->name),
                      object_variant(fill->name));
}

void
shard_add_fill(struct shard *shard, struct cache_fill *fill)
{
    LIST_INSERT_HEAD(&shard->fills, fill, in_shard);
    shard->busy += fill->disposition <= FILL_VALIDATE;
}

void
shard_remove_fill(struct shard *shard, struct cache_fill *fill)
{
    LIST_REMOVE(fill, in_shard);
    fill->in_shard.le_prev = NULL;
    shard->busy -= fill->disposition <= FILL_VALIDATE;
}

void
entry_add_fill(struct entry *entry, struct cache_fill *fill)
{
    const struct cache_fill *newest = entry_newest(entry);

    if (!newest || newest->number < fill->number)
        LIST_INSERT_HEAD(&entry->object->fills, fill, link);
}

void
entry_remove_fill(struct cache_fill *fill)
{
    if (!fill->link.le_prev)
        return;
    LIST_REMOVE(fill, link);
    fill->link.le_prev = NULL;
}

void
object_remove_fills(struct object *object)
{
    while (!LIST_EMPTY(&object->fills))
        entry_remove_fill(LIST_FIRST(&object->fills));
}

void
shard_remove_if_empty(struct shard *shard, struct entry *entry)
{
    if (entry && entry->kind == ENTRY_EMPTY && !entry_newest(entry))
        shard_remove(shard, entry);
}

void
shard_restrict_fill(struct shard *shard, struct cache_fill *fill, enum fill_disposition disposition)
{
    bool listed = fill->link.le_prev != NULL;

    if (disposition <= fill->disposition)
        return;
    if (fill->in_shard.le_prev && fill->disposition <= FILL_VALIDATE && disposition > FILL_VALIDATE)
        shard->busy--;
    fill->disposition = (uint8_t)disposition;
    entry_remove_fill(fill);
    if (listed)
        shard_remove_if_empty(shard, shard_find_fill(shard, fill));
}

void
fill_remove_previous(struct shard *shard, const struct cache_fill *fill)
{
    struct entry *entry = fill->previous ? shard_find_fill(shard, fill) : NULL;
    const struct cache_fill *newest;

    if (!entry || entry->object != fill->previous)
        return;
    newest = entry_newest(entry);
    if (!newest || newest == fill)
        shard_remove(shard, entry);
}

enum evictor_outcome
shard_store(struct shard *shard, const struct cache_key *key, struct entry *existing,
            struct object *object, uint64_t entered)
{
    struct entry *old = existing && entry_is_stored(existing) ? existing : NULL, *entry;
    struct call call = {.shard = shard};
    struct object *name = NULL; /* of an empty entry that becomes the page's */
    struct policy_page described;
    size_t tag_count = words_count(object_tags(object));
    enum evictor_outcome outcome;

    if (!shard->evictor.ops ||
        !evictor_can_hold(&shard->evictor, bytes_of(shard, object, tag_count)))
        return EVICTOR_TOO_LARGE;
    entry = existing && !old && tag_count == 0 ? existing
                                               : shard_make_entry(shard, object, key->hash);
    if (!entry)
        return EVICTOR_NO_MEMORY;
    if (existing)
        move_fills(existing->object, object);
    if (entry == existing) {
        name = existing->object;
        existing->object = object_retain(object);
        /* A mark may have left something there, and policies find it zeroed. */
        memset(entry->node, 0, shard->entry_size - sizeof(*entry));
    }
    entry->entered = entered;
    call.entry = entry;
    call.empty = old ? NULL : existing;
    described = describe_page(shard, entry, key->key);
    described.old = old ? old->node : NULL;
    outcome = evictor_enter(&shard->evictor, &described, &hooks, &call);
    if (outcome == EVICTOR_ENTERED && key->variant.len)
        limit_variants(shard, key, entry);
    if (outcome == EVICTOR_ENTERED || outcome == EVICTOR_PASSED_ON) {
        /* The cache counts it from now on. */
        memory_uncharge(object->account, MEMORY_PAGES, object_size(object));
        if (call.empty && call.empty != entry)
            free_entry(call.empty);
        object_release(&name);
    } else if (name) {
        set_object(entry, name);
        object_release(&name);
    } else {
        if (existing)
            move_fills(object, existing->object);
        remove_tags(shard, entry);
        free_entry(entry);
    }
    return outcome;
}

/* ---- capacity -------------------------------------------------------------------------------- */

void
shard_resize(struct shard *shard, const struct policy_config *config)
{
    struct call call = {.shard = shard};
    struct evictor *evictor = &shard->evictor;
    struct entry *entry, *next;

    shard->config = *config;
    if (!evictor->ops)
        return;
    evictor_resize(evictor, config);
    /* Pages that are too large now are removed first, so that none is evicted for their bytes. */
    for (entry = table_first(&shard->table); entry && evictor_is_full(evictor); entry = next) {
        next = table_next(&shard->table, entry);
        if (entry_is_stored(entry) &&
            !evictor_can_hold(evictor, shard_bytes_of_entry(shard, entry)))
            evict(shard, entry);
    }
    evictor_shrink(evictor, &hooks, &call);
    table_tidy(&shard->table);
}

uint64_t
shard_reclaim(struct shard *shard, uint64_t bytes)
{
    struct call call = {.shard = shard};
    uint64_t evicted = 0;

    while (evicted < bytes && shard->evictor.pages > 0) {
        evictor_evict(&shard->evictor, EVICTOR_EVICTED, &hooks, &call);
        evicted += object_size(shard->removed.evicted->object);
    }
    return evicted;
}
