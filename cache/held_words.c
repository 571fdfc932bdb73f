#include "cache/held_words.h"

#include <assert.h>

#include "base/hash.h"
#include "cache/tags.h"

void
held_words_init(struct held_words *holds)
{
    pthread_mutex_init(&holds->lock, NULL); /* without attributes it cannot fail */
    atomic_init(&holds->count, 0);
}

void
held_words_destroy(struct held_words *holds)
{
    pthread_mutex_destroy(&holds->lock);
}

bool
held_words_add(struct held_words *holds, uint64_t hash)
{
    unsigned count;

    pthread_mutex_lock(&holds->lock);
    count = atomic_load_explicit(&holds->count, memory_order_relaxed);
    if (count < HELD_WORDS_MOST) {
        holds->hashes[count] = hash;
        atomic_store_explicit(&holds->count, count + 1, memory_order_release);
    }
    pthread_mutex_unlock(&holds->lock);
    return count < HELD_WORDS_MOST;
}

/* The place of a hash; their number if it is not there. Under the lock. */
static unsigned
find(const struct held_words *holds, uint64_t hash)
{
    unsigned count = atomic_load_explicit(&holds->count, memory_order_relaxed), i = 0;

    while (i < count && holds->hashes[i] != hash)
        i++;
    return i;
}

void
held_words_remove(struct held_words *holds, uint64_t hash)
{
    unsigned last, place;

    pthread_mutex_lock(&holds->lock);
    last = atomic_load_explicit(&holds->count, memory_order_relaxed) - 1;
    place = find(holds, hash);
    assert(place <= last);
    holds->hashes[place] = holds->hashes[last];
    atomic_store_explicit(&holds->count, last, memory_order_release);
    pthread_mutex_unlock(&holds->lock);
}

bool
held_words_have(struct held_words *holds, struct span url, struct span tags)
{
    struct span tag;
    unsigned count;
    bool have;

    if (atomic_load_explicit(&holds->count, memory_order_acquire) == 0)
        return false;
    pthread_mutex_lock(&holds->lock);
    count = atomic_load_explicit(&holds->count, memory_order_relaxed);
    have = find(holds, hash64_bytes(url)) < count;
    while (!have && tags_next(&tags, &tag))
        have = find(holds, hash64_bytes(tag)) < count;
    pthread_mutex_unlock(&holds->lock);
    return have;
}
