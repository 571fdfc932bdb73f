#include "policies/ghost.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

#define GHOST_MIN_ENTRIES 16u
#define GHOST_MAX_ENTRIES (1u << 31)

struct ghost_entry {
    uint64_t key;
    uint64_t bytes;
    uint32_t older, newer;
    uint32_t chain; /* the next one in the same slot, or that is free */
};

void
ghost_init(struct ghost *ghost, uint64_t max_pages, uint64_t max_bytes)
{
    /*
     * A client chooses URLs, and could choose keys of one chain. The address of the instance, which
     * it does not know, selects the slots. Slots have no influence on results.
     */
    *ghost = (struct ghost){
        .max_pages = max_pages,
        .max_bytes = max_bytes,
        .secret = hash64_uint((uint64_t)(uintptr_t)ghost),
    };
}

void
ghost_init_with_words(struct ghost *ghost, uint64_t max_pages, uint64_t max_bytes, uint32_t words)
{
    ghost_init(ghost, max_pages, max_bytes);
    ghost->word_count = words;
}

void
ghost_free(struct ghost *ghost)
{
    free(ghost->entries);
    free(ghost->words);
    free(ghost->slots);
    ghost->entries = NULL;
    ghost->words = NULL;
    ghost->slots = NULL;
}

static struct ghost_entry *
entry_at(const struct ghost *ghost, uint32_t i)
{
    return &ghost->entries[i - 1];
}

static uint32_t *
slot_of(const struct ghost *ghost, uint64_t key)
{
    return &ghost->slots[hash64_uint(key ^ ghost->secret) & (ghost->allocated - 1)];
}

/* The link to the entry with that key, or the 0 at the end of its chain. */
static uint32_t *
find(const struct ghost *ghost, uint64_t key)
{
    uint32_t *at = slot_of(ghost, key);

    while (*at && entry_at(ghost, *at)->key != key)
        at = &entry_at(ghost, *at)->chain;
    return at;
}

bool
ghost_has(const struct ghost *ghost, uint64_t key)
{
    return ghost->pages && *find(ghost, key);
}

static uint64_t *
words_at(const struct ghost *ghost, uint32_t i)
{
    return i ? &ghost->words[(size_t)(i - 1) * ghost->word_count] : NULL;
}

uint64_t *
ghost_words(const struct ghost *ghost, uint64_t key)
{
    return ghost->pages ? words_at(ghost, *find(ghost, key)) : NULL;
}

uint64_t *
ghost_oldest_words(const struct ghost *ghost)
{
    return words_at(ghost, ghost->oldest);
}

/* Removes the entry that the link `at` leads to. */
static void
drop(struct ghost *ghost, uint32_t *at)
{
    uint32_t i = *at;
    struct ghost_entry *entry = entry_at(ghost, i);

    *at = entry->chain;
    if (entry->older)
        entry_at(ghost, entry->older)->newer = entry->newer;
    else
        ghost->oldest = entry->newer;
    if (entry->newer)
        entry_at(ghost, entry->newer)->older = entry->older;
    else
        ghost->newest = entry->older;
    ghost->pages--;
    ghost->bytes -= entry->bytes;
    entry->chain = ghost->unused;
    ghost->unused = i;
}

bool
ghost_take(struct ghost *ghost, uint64_t key)
{
    uint32_t *at;

    if (!ghost->pages)
        return false;
    at = find(ghost, key);
    if (!*at)
        return false;
    drop(ghost, at);
    return true;
}

uint64_t
ghost_oldest_bytes(const struct ghost *ghost)
{
    return ghost->oldest ? entry_at(ghost, ghost->oldest)->bytes : 0;
}

void
ghost_drop_oldest(struct ghost *ghost)
{
    if (ghost->oldest)
        drop(ghost, find(ghost, entry_at(ghost, ghost->oldest)->key));
}

void
ghost_limit(struct ghost *ghost, uint64_t max_pages, uint64_t max_bytes)
{
    ghost->max_pages = max_pages;
    ghost->max_bytes = max_bytes;
    while (ghost->pages > max_pages || ghost->bytes > max_bytes)
        ghost_drop_oldest(ghost);
}

static bool
grow_words(struct ghost *ghost, uint32_t count)
{
    uint64_t *words;

    if (!ghost->word_count)
        return true;
    words = realloc(ghost->words, (size_t)count * ghost->word_count * sizeof(*words));
    if (words)
        ghost->words = words;
    return words != NULL;
}

/* Doubles the number of entries and slots. False without memory; the ghosts stay as they are. */
static bool
grow(struct ghost *ghost)
{
    uint32_t count = ghost->allocated ? ghost->allocated * 2 : GHOST_MIN_ENTRIES;
    struct ghost_entry *entries;
    uint32_t *slots;

    if (ghost->allocated == GHOST_MAX_ENTRIES || !grow_words(ghost, count))
        return false;
    slots = calloc(count, sizeof(*slots));
    if (!slots)
        return false;
    entries = realloc(ghost->entries, count * sizeof(*entries));
    if (!entries) {
        free(slots);
        return false;
    }
    free(ghost->slots);
    ghost->entries = entries;
    ghost->slots = slots;
    ghost->allocated = count;
    for (uint32_t i = ghost->oldest; i; i = entry_at(ghost, i)->newer) {
        uint32_t *slot = slot_of(ghost, entry_at(ghost, i)->key);

        entry_at(ghost, i)->chain = *slot;
        *slot = i;
    }
    return true;
}

/* The number of an entry that is free, or 0 without memory. */
static uint32_t
allocate_entry(struct ghost *ghost)
{
    uint32_t i = ghost->unused;

    if (i) {
        ghost->unused = entry_at(ghost, i)->chain;
        return i;
    }
    if (ghost->used == ghost->allocated && !grow(ghost))
        return 0;
    return ++ghost->used;
}

bool
ghost_add(struct ghost *ghost, uint64_t key, uint64_t bytes)
{
    struct ghost_entry *entry;
    uint32_t *slot, i;

    bytes = bytes ? bytes : 1;
    if (ghost->max_pages == 0 || bytes > ghost->max_bytes || ghost_has(ghost, key))
        return false;
    while (ghost->pages >= ghost->max_pages || ghost->bytes > ghost->max_bytes - bytes)
        ghost_drop_oldest(ghost);
    i = allocate_entry(ghost);
    if (!i)
        return false;
    entry = entry_at(ghost, i);
    slot = slot_of(ghost, key);
    *entry =
        (struct ghost_entry){.key = key, .bytes = bytes, .older = ghost->newest, .chain = *slot};
    *slot = i;
    if (ghost->newest)
        entry_at(ghost, ghost->newest)->newer = i;
    else
        ghost->oldest = i;
    ghost->newest = i;
    ghost->pages++;
    ghost->bytes += bytes;
    return true;
}

bool
ghost_is_valid(const struct ghost *ghost)
{
    uint64_t pages = 0, bytes = 0, unused = 0, chained = 0;
    uint32_t older = 0;

    for (uint32_t i = ghost->oldest; i && pages <= ghost->used; i = entry_at(ghost, i)->newer) {
        if (entry_at(ghost, i)->older != older || *find(ghost, entry_at(ghost, i)->key) != i)
            return false;
        older = i;
        pages++;
        bytes += entry_at(ghost, i)->bytes;
    }
    for (uint32_t i = ghost->unused; i && unused <= ghost->used; i = entry_at(ghost, i)->chain)
        unused++;
    for (uint32_t s = 0; s < ghost->allocated; s++) {
        for (uint32_t i = ghost->slots[s]; i && chained <= ghost->used;
             i = entry_at(ghost, i)->chain)
            chained++;
    }
    return older == ghost->newest && pages == ghost->pages && chained == pages &&
           bytes == ghost->bytes && pages + unused == ghost->used &&
           ghost->used <= ghost->allocated && pages <= ghost->max_pages &&
           bytes <= ghost->max_bytes;
}
