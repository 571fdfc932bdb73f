#include "cache/tag_purges.h"

#include <assert.h>

#include "base/hash.h"
#include "cache/object.h"
#include "cache/tags.h"

void
tag_purges_init(struct tag_purges *purges)
{
    pthread_mutex_init(&purges->lock, NULL); /* without attributes it cannot fail */
    atomic_init(&purges->count, 0);
}

void
tag_purges_destroy(struct tag_purges *purges)
{
    pthread_mutex_destroy(&purges->lock);
}

void
tag_purges_add(struct tag_purges *purges, struct span tag)
{
    uint64_t count;

    pthread_mutex_lock(&purges->lock);
    count = atomic_load_explicit(&purges->count, memory_order_relaxed);
    purges->hashes[count % TAG_PURGES] = hash64_bytes(tag);
    atomic_store_explicit(&purges->count, count + 1, memory_order_release);
    pthread_mutex_unlock(&purges->lock);
}

/* Under the lock. */
static bool
is_one_of(const struct tag_purges *purges, uint64_t then, uint64_t now, struct span tags)
{
    struct span tag;

    while (tags_next(&tags, &tag)) {
        uint64_t hash = hash64_bytes(tag);

        for (uint64_t i = then; i < now; i++)
            if (purges->hashes[i % TAG_PURGES] == hash)
                return true;
    }
    return false;
}

bool
tag_purges_since(struct tag_purges *purges, uint64_t then, struct span tags)
{
    uint64_t now;
    bool purged;

    pthread_mutex_lock(&purges->lock);
    now = atomic_load_explicit(&purges->count, memory_order_relaxed);
    purged = now - then > TAG_PURGES || is_one_of(purges, then, now, tags);
    pthread_mutex_unlock(&purges->lock);
    return purged;
}
