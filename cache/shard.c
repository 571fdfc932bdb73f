#include "cache/shard.h"

#include <stdlib.h>

#include "base/container_of.h"
#include "cache/cache.h"
#include "policies/charge.h"

_Static_assert(sizeof(struct page) == CHARGE_PAGE_STRUCT, "policies/charge.h has the page's size");
_Static_assert(sizeof(struct entry) == CHARGE_ENTRY_STRUCT,
               "policies/charge.h has the entry's size");

uint64_t
cache_page_overhead(const struct policy_ops *ops)
{
    return charge_page_overhead(ops);
}

bool
shard_init(struct shard *shard, const struct policy_spec *spec, const struct policy_config *config,
           bool body_only)
{
    *shard = (struct shard){.config = *config, .spec = *spec, .body_only = body_only};
    shard->config.params = NULL; /* a shard moves, and what is in it */
    if (!spec->ops)
        return true;
    shard->overhead = cache_page_overhead(spec->ops);
    if (!table_init(&shard->table))
        return false;
    if (!evictor_init(&shard->evictor, spec, config)) {
        table_free(&shard->table);
        return false;
    }
    return true;
}

static void
entry_free(struct entry *entry)
{
    page_release_from_cache(&entry->page);
    free(entry);
}

void
shard_free(struct shard *shard)
{
    struct entry *entry, *next;

    if (!shard->evictor.ops)
        return;
    /* The policy first, because it may read nodes that are still inside. */
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

static uint64_t
bytes_of(const struct shard *shard, const struct page *page)
{
    if (shard->body_only)
        return page->body_len;
    return (uint64_t)page->url_len + page->final_url_len + page->headers_len + page->body_len +
           shard->overhead;
}

/* What the policy may know of a page. */
static struct policy_page
describe_page(const struct shard *shard, const struct page *page, uint64_t key)
{
    return (struct policy_page){
        .bytes = bytes_of(shard, page),
        .key = key,
        .cost_us = page->fetch_us,
        .next = POLICY_NEVER,
    };
}

static struct entry *
entry_of(void *node)
{
    return container_of(node, struct entry, node);
}

/* ---- what leaves ----------------------------------------------------------------------------- */

/* Takes an entry out of the table and puts it at the end of a chain. */
static void
shard_unlink(struct shard *shard, struct entry *entry, struct departed *departed)
{
    table_remove(&shard->table, entry);
    /* An entry that is in no tree has its links free for the chain. */
    RB_RIGHT(entry, links) = NULL;
    if (departed->last)
        RB_RIGHT(departed->last, links) = entry;
    else
        departed->first = entry;
    departed->last = entry;
    departed->count++;
}

/* A page leaves that is no victim. */
static void
shard_remove(struct shard *shard, struct entry *entry, struct departed *departed)
{
    evictor_remove(&shard->evictor, entry->node, bytes_of(shard, entry->page));
    shard_unlink(shard, entry, departed);
}

/* The owner of the evictor's nodes, for one call. */
struct call {
    struct shard *shard;
    struct departed *victims;
    struct departed *replaced; /* also what entered and left at once */
    struct entry *entry;       /* of the page that is to be stored */
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

    table_insert(&call->shard->table, entry_of(node));
}

static uint64_t
unlink_entry(void *owner, void *node, enum evictor_departure why)
{
    struct call *call = owner;
    struct entry *entry = entry_of(node);
    bool victim = why == EVICTOR_EVICTED || why == EVICTOR_SURPLUS;

    shard_unlink(call->shard, entry, victim ? call->victims : call->replaced);
    return bytes_of(call->shard, entry->page);
}

static const struct evictor_hooks hooks = {node_of_entry, link_entry, unlink_entry};

/* ---- requests -------------------------------------------------------------------------------- */

struct page *
shard_lookup(struct shard *shard, uint32_t hash, uint64_t key, struct span url, int64_t now_us,
             struct departed *victims)
{
    struct call call = {.shard = shard, .victims = victims};
    struct policy_page described;
    struct entry *entry;

    if (!shard->evictor.ops)
        return NULL;
    entry = table_find(&shard->table, hash, url);
    if (!entry || !page_is_fresh(entry->page, now_us))
        return NULL;
    described = describe_page(shard, entry->page, key);
    if (evictor_hit(&shard->evictor, entry->node, &described, &hooks, &call))
        table_tidy(&shard->table);
    return entry->page;
}

enum evictor_outcome
shard_store(struct shard *shard, uint32_t hash, uint64_t key, struct page *page, uint64_t entered,
            struct departed *replaced, struct departed *victims)
{
    struct call call = {.shard = shard, .victims = victims, .replaced = replaced};
    struct policy_page described;
    struct entry *entry, *old;
    enum evictor_outcome outcome;

    if (!shard->evictor.ops || !evictor_can_hold(&shard->evictor, bytes_of(shard, page)))
        return EVICTOR_TOO_LARGE;
    entry = calloc(1, sizeof(*entry) + shard->evictor.ops->node_size);
    if (!entry)
        return EVICTOR_NO_MEMORY;
    entry->page = page;
    entry->entered = entered;
    entry->hash = hash;
    call.entry = entry;
    old = table_find(&shard->table, hash, page_url(page));
    described = describe_page(shard, page, key);
    described.old = old ? old->node : NULL;
    outcome = evictor_enter(&shard->evictor, &described, &hooks, &call);
    if (outcome == EVICTOR_ENTERED || outcome == EVICTOR_PASSED_ON)
        page_enter_cache(page);
    else
        free(entry);
    table_tidy(&shard->table); /* a large page may have evicted many small ones */
    return outcome;
}

void
shard_resize(struct shard *shard, const struct policy_config *config, struct departed *victims)
{
    struct call call = {.shard = shard, .victims = victims};
    struct evictor *evictor = &shard->evictor;
    struct entry *entry, *next;

    shard->config = *config;
    if (!evictor->ops)
        return;
    evictor_resize(evictor, config);
    /* Pages that are too large now leave first, so that none is evicted for their bytes. */
    for (entry = table_first(&shard->table); entry && evictor_is_full(evictor); entry = next) {
        next = table_next(&shard->table, entry);
        if (!evictor_can_hold(evictor, bytes_of(shard, entry->page))) {
            shard_remove(shard, entry, victims);
            evictor->evictions++;
        }
    }
    evictor_shrink(evictor, &hooks, &call);
    table_tidy(&shard->table);
}

uint64_t
shard_reclaim(struct shard *shard, uint64_t bytes, struct departed *victims)
{
    struct call call = {.shard = shard, .victims = victims};
    uint64_t evicted = 0;

    if (!shard->evictor.ops)
        return 0;
    while (evicted < bytes && shard->table.entry_count > 0) {
        evictor_evict(&shard->evictor, EVICTOR_EVICTED, &hooks, &call);
        evicted += page_size(victims->last->page);
    }
    table_tidy(&shard->table);
    return evicted;
}

void
shard_purge(struct shard *shard, uint32_t hash, struct span url, struct departed *departed)
{
    struct entry *entry;

    if (!shard->evictor.ops)
        return;
    entry = table_find(&shard->table, hash, url);
    if (entry)
        shard_remove(shard, entry, departed);
    table_tidy(&shard->table);
}

void
shard_purge_expired(struct shard *shard, uint32_t hash, struct span url, int64_t now_us,
                    struct departed *departed)
{
    struct entry *entry;

    if (!shard->evictor.ops)
        return;
    entry = table_find(&shard->table, hash, url);
    if (entry && !page_is_fresh(entry->page, now_us))
        shard_remove(shard, entry, departed);
    table_tidy(&shard->table);
}

uint64_t
shard_count_prefix(const struct shard *shard, struct span prefix)
{
    uint64_t count = 0;

    for (struct entry *entry = shard->evictor.ops ? table_first(&shard->table) : NULL; entry;
         entry = table_next(&shard->table, entry))
        count += span_starts_with(page_url(entry->page), prefix);
    return count;
}

void
shard_purge_prefix(struct shard *shard, struct span prefix, struct departed *departed)
{
    struct entry *entry, *next;

    if (!shard->evictor.ops)
        return;
    for (entry = table_first(&shard->table); entry; entry = next) {
        next = table_next(&shard->table, entry);
        if (span_starts_with(page_url(entry->page), prefix))
            shard_remove(shard, entry, departed);
    }
    table_tidy(&shard->table);
}

void
shard_purge_all(struct shard *shard, struct shard *old, struct departed *departed)
{
    struct shard fresh;

    if (!shard_init(&fresh, &shard->spec, &shard->config, shard->body_only)) {
        *old = (struct shard){0};
        shard_purge_prefix(shard, span_of(NULL, 0), departed);
        return;
    }
    fresh.evictor.insertions = shard->evictor.insertions;
    fresh.evictor.evictions = shard->evictor.evictions;
    *old = *shard;
    *shard = fresh;
}

void
shard_free_departed(struct departed *departed)
{
    struct entry *entry = departed->first;

    while (entry) {
        struct entry *next = RB_RIGHT(entry, links);

        entry_free(entry);
        entry = next;
    }
    *departed = (struct departed){0};
}

bool
shard_is_valid(const struct shard *shard)
{
    struct entry *entry;
    uint64_t bytes = 0;

    if (!shard->evictor.ops)
        return shard->evictor.bytes == 0 && !shard->evictor.policy;
    if (!table_is_valid(&shard->table))
        return false;
    for (entry = table_first(&shard->table); entry; entry = table_next(&shard->table, entry))
        bytes += bytes_of(shard, entry->page);
    return bytes == shard->evictor.bytes && shard->table.entry_count == shard->evictor.pages &&
           evictor_is_valid(&shard->evictor);
}
