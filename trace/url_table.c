#include "trace/url_table.h"

#include <stdlib.h>

#define CHUNK_BYTES (64U * 1024U)
#define FIRST_SLOTS 64U

struct url_chunk {
    struct url_chunk *next;
    size_t used;
    size_t size;
    char bytes[];
};

void
url_table_init(struct url_table *t)
{
    memset(t, 0, sizeof(*t));
    /* A known key is no worse than a plain hash. */
    (void)hash_key_init(&t->key);
}

void
url_table_free(struct url_table *t)
{
    while (t->chunk) {
        struct url_chunk *next = t->chunk->next;

        free(t->chunk);
        t->chunk = next;
    }
    free(t->urls);
    free(t->hashes);
    free(t->slots);
    memset(t, 0, sizeof(*t));
}

void
url_table_settle(struct url_table *t)
{
    free(t->hashes);
    free(t->slots);
    t->hashes = NULL;
    t->slots = NULL;
    t->slot_count = 0;
    t->capacity = 0;
}

uint64_t
url_table_hash(const struct url_table *t, struct span url)
{
    return keyed_hash(&t->key, url);
}

/* Tags are the upper half of the hash; places come of the lower one. */
static uint64_t
tag_of(uint64_t hash)
{
    return hash & ~(uint64_t)UINT32_MAX;
}

static uint32_t
number_in(uint64_t slot)
{
    return (uint32_t)slot - 1;
}

/* The slot that holds the URL, or the free one where it belongs. */
static size_t
slot_of(const struct url_table *t, struct span url, uint64_t hash)
{
    size_t at = (size_t)hash & (t->slot_count - 1);

    for (; t->slots[at] != 0; at = (at + 1) & (t->slot_count - 1)) {
        if (tag_of(t->slots[at]) == tag_of(hash) &&
            span_equal(t->urls[number_in(t->slots[at])], url))
            break;
    }
    return at;
}

void
url_table_prefetch_slot(const struct url_table *t, uint64_t hash)
{
    if (t->slot_count != 0)
        __builtin_prefetch(&t->slots[hash & (t->slot_count - 1)]);
}

/* The row that is most likely the URL's; UINT32_MAX: there is none. */
static uint32_t
likely_number(const struct url_table *t, uint64_t hash)
{
    size_t at = (size_t)hash & (t->slot_count - 1);

    if (t->slot_count == 0)
        return UINT32_MAX;
    for (; t->slots[at] != 0; at = (at + 1) & (t->slot_count - 1)) {
        if (tag_of(t->slots[at]) == tag_of(hash))
            return number_in(t->slots[at]);
    }
    return UINT32_MAX;
}

void
url_table_prefetch_row(const struct url_table *t, uint64_t hash)
{
    uint32_t number = likely_number(t, hash);

    if (number != UINT32_MAX)
        __builtin_prefetch(&t->urls[number]);
}

void
url_table_prefetch_bytes(const struct url_table *t, uint64_t hash)
{
    uint32_t number = likely_number(t, hash);

    if (number != UINT32_MAX)
        __builtin_prefetch(t->urls[number].ptr);
}

/* Keeps the table at most half full. */
static bool
grow_slots(struct url_table *t)
{
    size_t slot_count = t->slot_count ? t->slot_count * 2 : FIRST_SLOTS;
    uint64_t *slots;

    if (t->count < t->slot_count / 2)
        return true;
    slots = calloc(slot_count, sizeof(*slots));
    if (!slots)
        return false;
    for (size_t i = 0; i < t->count; i++) {
        size_t at = (size_t)t->hashes[i] & (slot_count - 1);

        while (slots[at] != 0)
            at = (at + 1) & (slot_count - 1);
        slots[at] = tag_of(t->hashes[i]) | (i + 1);
    }
    free(t->slots);
    t->slots = slots;
    t->slot_count = slot_count;
    return true;
}

/* Each array may be longer than `capacity` says when a later one could not grow: harmless. */
static bool
grow_rows(struct url_table *t)
{
    size_t capacity = t->capacity ? t->capacity * 2 : FIRST_SLOTS;
    struct span *urls;
    uint64_t *hashes;

    if (t->count < t->capacity)
        return true;
    urls = realloc(t->urls, capacity * sizeof(*urls));
    if (urls)
        t->urls = urls;
    hashes = realloc(t->hashes, capacity * sizeof(*hashes));
    if (hashes)
        t->hashes = hashes;
    if (!urls || !hashes)
        return false;
    t->capacity = capacity;
    return true;
}

/* A copy of the bytes that lives as long as the table, with a zero byte behind. */
static const char *
keep_bytes(struct url_table *t, struct span url)
{
    struct url_chunk *chunk = t->chunk;
    size_t need = url.len + 1;
    char *copy;

    if (!chunk || chunk->size - chunk->used < need) {
        size_t size = need > CHUNK_BYTES ? need : CHUNK_BYTES;

        chunk = malloc(sizeof(*chunk) + size);
        if (!chunk)
            return NULL;
        chunk->next = t->chunk;
        chunk->used = 0;
        chunk->size = size;
        t->chunk = chunk;
    }
    copy = chunk->bytes + chunk->used;
    chunk->used += need;
    if (url.len != 0)
        memcpy(copy, url.ptr, url.len);
    copy[url.len] = '\0';
    return copy;
}

bool
url_table_put_hashed(struct url_table *t, struct span url, uint64_t hash, uint32_t *number,
                     bool *fresh)
{
    const char *bytes;
    size_t slot;

    if (!grow_slots(t) || !grow_rows(t))
        return false;
    slot = slot_of(t, url, hash);
    *fresh = t->slots[slot] == 0;
    if (*fresh) {
        if (t->count == UINT32_MAX - 1)
            return false;
        bytes = keep_bytes(t, url);
        if (!bytes)
            return false;
        t->urls[t->count] = span_of(bytes, url.len);
        t->hashes[t->count] = hash;
        t->slots[slot] = tag_of(hash) | ++t->count;
    }
    *number = number_in(t->slots[slot]);
    return true;
}

bool
url_table_put(struct url_table *t, struct span url, uint32_t *number, bool *fresh)
{
    return url_table_put_hashed(t, url, url_table_hash(t, url), number, fresh);
}
