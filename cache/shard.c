#include "cache/shard.h"

#include <stdlib.h>

#include "base/hash.h"
#include "cache/cache.h"

/*
 * A page's costs beside its entry: its struct, a zero byte, malloc's header and the rounding of its
 * allocation; 12 for its slot in a heap and 12 for its bucket, with the slack of both arrays.
 */
enum { BESIDE_ENTRY = sizeof(struct page) + 1 + 8 + 15 + 12 + 12 };

uint64_t
cache_page_overhead(const struct policy_ops *ops)
{
    size_t entry = sizeof(struct entry) + ops->node_size;

    /* malloc's header, and the sum in steps of 16 */
    return BESIDE_ENTRY + (entry + 8 + 15) / 16 * 16;
}

bool
shard_init(struct shard *shard, const struct policy_spec *spec, const struct policy_config *config,
           bool body_only)
{
    struct policy_config with_params = *config;

    *shard =
        (struct shard){.ops = spec->ops, .config = *config, .spec = *spec, .body_only = body_only};
    shard->config.params = NULL; /* a shard moves, and what is in it */
    if (!spec->ops)
        return true;
    shard->overhead = cache_page_overhead(spec->ops);
    if (!table_init(&shard->table))
        return false;
    with_params.params = spec->params;
    shard->policy = spec->ops->create(spec->ops, &with_params);
    if (!shard->policy) {
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

    if (!shard->ops)
        return;
    /* The policy first, for it may look at nodes that it still has. */
    shard->ops->destroy(shard->policy);
    for (size_t i = 0; i < shard->table.bucket_count; i++) {
        /* Cut off leaf by leaf: no tree is kept in balance that nobody will search. */
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

/* What the policy is told of a page. */
static struct policy_page
tell_page(const struct shard *shard, const struct page *page)
{
    return (struct policy_page){
        .bytes = bytes_of(shard, page),
        .key = hash64_bytes(page_url(page)),
        .cost_us = page->fetch_us,
        .next = POLICY_NEVER,
    };
}

/* After each step, in a build that does so. */
static void
shard_check(const struct shard *shard)
{
    (void)shard;
    POLICY_CHECK(shard->ops, shard->policy, shard->table.entry_count, shard->bytes);
}

/* Takes an entry out of everything and puts it at the end of a chain. */
static void
shard_depart(struct shard *shard, struct entry *entry, bool evicted, struct departed *departed)
{
    table_remove(&shard->table, entry);
    shard->ops->remove(shard->policy, entry->node, evicted);
    shard->bytes -= bytes_of(shard, entry->page);
    shard_check(shard);
    /* An entry that is in no tree has its links free for the chain. */
    RB_RIGHT(entry, links) = NULL;
    if (departed->last)
        RB_RIGHT(departed->last, links) = entry;
    else
        departed->first = entry;
    departed->last = entry;
    departed->count++;
}

static struct entry *
shard_victim(struct shard *shard)
{
    unsigned char *node = shard->ops->victim(shard->policy);

    shard_check(shard);
    return (struct entry *)(void *)(node - offsetof(struct entry, node));
}

static void
shard_evict(struct shard *shard, struct departed *victims)
{
    shard_depart(shard, shard_victim(shard), true, victims);
    shard->evictions++;
}

struct page *
shard_lookup(struct shard *shard, uint32_t hash, struct span url, int64_t now_us,
             struct departed *victims)
{
    struct policy_page told;
    struct entry *entry;

    if (!shard->ops)
        return NULL;
    entry = table_find(&shard->table, hash, url);
    if (!entry || !page_is_fresh(entry->page, now_us))
        return NULL;
    told = tell_page(shard, entry->page);
    shard->ops->access(shard->policy, entry->node, &told);
    shard_check(shard);
    if (shard->ops->has_surplus && shard->ops->has_surplus(shard->policy)) {
        while (shard->ops->has_surplus(shard->policy))
            shard_evict(shard, victims);
        table_tidy(&shard->table);
    }
    return entry->page;
}

/* Is there room for that much more? */
static bool
shard_has_room(const struct shard *shard, uint64_t pages, uint64_t bytes)
{
    const struct policy_config *config = &shard->config;

    return (!config->capacity_pages ||
            shard->table.entry_count + pages <= config->capacity_pages) &&
           (!config->capacity_bytes || shard->bytes + bytes <= config->capacity_bytes);
}

/* Could the page be here at all? */
static bool
shard_can_hold(const struct shard *shard, const struct page *page)
{
    uint64_t capacity = shard->config.capacity_bytes;

    return shard->ops && (capacity == 0 || bytes_of(shard, page) <= capacity);
}

enum shard_error
shard_store(struct shard *shard, uint32_t hash, struct page *page, uint64_t entered,
            struct departed *replaced, struct departed *victims)
{
    const struct policy_ops *ops = shard->ops;
    struct policy_page told;
    struct entry *entry, *old;
    bool stays = true;

    if (!shard_can_hold(shard, page))
        return SHARD_TOO_LARGE;
    entry = calloc(1, sizeof(*entry) + ops->node_size);
    if (!entry)
        return SHARD_NO_MEMORY;
    old = table_find(&shard->table, hash, page_url(page));
    told = tell_page(shard, page);
    told.old = old ? old->node : NULL;
    if (ops->admit) {
        bool enters = ops->admit(shard->policy, &told);

        shard_check(shard);
        if (!enters) {
            free(entry);
            return SHARD_REFUSED;
        }
    }
    if (old)
        shard_depart(shard, old, false, replaced);
    while (!ops->enters_first && !shard_has_room(shard, 1, told.bytes))
        shard_evict(shard, victims);
    /* Fails only if nobody has left: see policy.h. */
    if (ops->insert(shard->policy, entry->node, &told) < 0) {
        free(entry);
        return SHARD_NO_MEMORY;
    }
    entry->page = page_enter_cache(page);
    entry->entered = entered;
    entry->hash = hash;
    table_insert(&shard->table, entry);
    shard->bytes += told.bytes;
    shard_check(shard);
    while (stays && !shard_has_room(shard, 0, 0)) {
        if (shard_victim(shard) == entry) {
            shard_depart(shard, entry, true, replaced);
            stays = false;
        } else {
            shard_evict(shard, victims);
        }
    }
    table_tidy(&shard->table); /* many small pages may have left for a large one */
    shard->insertions += stays;
    return stays ? SHARD_OK : SHARD_PASSED_ON;
}

void
shard_resize(struct shard *shard, const struct policy_config *config, struct departed *victims)
{
    struct entry *entry, *next;

    shard->config = *config;
    if (!shard->ops)
        return;
    if (shard->ops->resize)
        shard->ops->resize(shard->policy, config);
    shard_check(shard);
    /* Those that cannot stay go first: nobody who could should leave for them. */
    for (entry = table_first(&shard->table); entry && !shard_has_room(shard, 0, 0); entry = next) {
        next = table_next(&shard->table, entry);
        if (!shard_can_hold(shard, entry->page)) {
            shard_depart(shard, entry, false, victims);
            shard->evictions++;
        }
    }
    while (!shard_has_room(shard, 0, 0))
        shard_evict(shard, victims);
    table_tidy(&shard->table);
}

uint64_t
shard_reclaim(struct shard *shard, uint64_t bytes, struct departed *victims)
{
    uint64_t evicted = 0;

    if (!shard->ops)
        return 0;
    while (evicted < bytes && shard->table.entry_count > 0) {
        shard_evict(shard, victims);
        evicted += page_size(victims->last->page);
    }
    table_tidy(&shard->table);
    return evicted;
}

void
shard_purge(struct shard *shard, uint32_t hash, struct span url, struct departed *departed)
{
    struct entry *entry;

    if (!shard->ops)
        return;
    entry = table_find(&shard->table, hash, url);
    if (entry)
        shard_depart(shard, entry, false, departed);
    table_tidy(&shard->table);
}

void
shard_purge_expired(struct shard *shard, uint32_t hash, struct span url, int64_t now_us,
                    struct departed *departed)
{
    struct entry *entry;

    if (!shard->ops)
        return;
    entry = table_find(&shard->table, hash, url);
    if (entry && !page_is_fresh(entry->page, now_us))
        shard_depart(shard, entry, false, departed);
    table_tidy(&shard->table);
}

void
shard_purge_prefix(struct shard *shard, struct span prefix, struct departed *departed)
{
    struct entry *entry, *next;

    if (!shard->ops)
        return;
    for (entry = table_first(&shard->table); entry; entry = next) {
        next = table_next(&shard->table, entry);
        if (span_starts_with(page_url(entry->page), prefix))
            shard_depart(shard, entry, false, departed);
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
    fresh.insertions = shard->insertions;
    fresh.evictions = shard->evictions;
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

    if (!shard->ops)
        return shard->bytes == 0 && !shard->policy;
    if (!table_is_valid(&shard->table) || !shard_has_room(shard, 0, 0))
        return false;
    for (entry = table_first(&shard->table); entry; entry = table_next(&shard->table, entry))
        bytes += bytes_of(shard, entry->page);
    return bytes == shard->bytes &&
           shard->ops->is_valid(shard->policy, shard->table.entry_count, shard->bytes);
}
