#include "metrics/recent.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* A ring. Its lock is taken by others for an explanation only. */
struct recent_of_worker {
    _Alignas(64) pthread_mutex_t lock;
    unsigned next;
    struct recent_miss misses[RECENT_MISSES];
};

struct recent {
    unsigned workers;
    struct recent_of_worker of[];
};

struct recent *
recent_create(unsigned workers)
{
    size_t size = sizeof(struct recent) + workers * sizeof(struct recent_of_worker);
    struct recent *recent = aligned_alloc(64, (size + 63) / 64 * 64);

    if (!recent)
        return NULL;
    memset(recent, 0, size);
    recent->workers = workers;
    for (unsigned i = 0; i < workers; i++)
        pthread_mutex_init(&recent->of[i].lock, NULL);
    return recent;
}

void
recent_free(struct recent *recent)
{
    for (unsigned i = 0; recent && i < recent->workers; i++)
        pthread_mutex_destroy(&recent->of[i].lock);
    free(recent);
}

void
recent_add(struct recent *recent, unsigned worker, const struct recent_miss *miss)
{
    struct recent_of_worker *of = &recent->of[worker];

    pthread_mutex_lock(&of->lock);
    of->misses[of->next++ % RECENT_MISSES] = *miss;
    pthread_mutex_unlock(&of->lock);
}

/* Puts a miss where it belongs among those that were found, unless it is too old. */
static size_t
insert(struct recent_miss *found, size_t count, size_t most, const struct recent_miss *miss)
{
    size_t at = count;

    while (at > 0 && found[at - 1].wall_us < miss->wall_us)
        at--;
    if (at == most)
        return count;
    if (count < most)
        count++;
    memmove(found + at + 1, found + at, (count - at - 1) * sizeof(*found));
    found[at] = *miss;
    return count;
}

size_t
recent_find(struct recent *recent, uint64_t url, struct recent_miss *found, size_t most)
{
    size_t count = 0;

    for (unsigned i = 0; i < recent->workers; i++) {
        struct recent_of_worker *of = &recent->of[i];

        pthread_mutex_lock(&of->lock);
        for (unsigned n = 0; n < RECENT_MISSES; n++)
            if (of->misses[n].how && of->misses[n].url == url)
                count = insert(found, count, most, &of->misses[n]);
        pthread_mutex_unlock(&of->lock);
    }
    return count;
}
