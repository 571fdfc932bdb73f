#include "store/disk_store.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/clock.h"

#define RESERVE_US ((int64_t)1000000)

void
store_say(const struct store *store, enum store_severity severity, const char *format, ...)
{
    char sentence[512], place[1024];
    va_list args;

    if (!store->config.log)
        return;
    va_start(args, format);
    vsnprintf(sentence, sizeof(sentence), format, args);
    va_end(args);
    snprintf(place, sizeof(place), "store %s: %s", store->config.folder, sentence);
    store->config.log(store->config.context, severity, place);
}

void
disk_begin_write(struct store *store, _Atomic int64_t *since_us)
{
    const int64_t now_us = store_now_us(store);

    atomic_store(since_us, now_us ? now_us : 1);
    if (atomic_exchange(&store->watches_writes, true))
        return;
    pthread_mutex_lock(&store->reads_lock);
    pthread_cond_signal(&store->watch_wake);
    pthread_mutex_unlock(&store->reads_lock);
}

struct disk_key
store_key(const struct store *store, struct span url, struct span variant)
{
    return disk_key_of(store->identity.secret, url, variant);
}

bool
disk_writer_is_to_stop(void *context)
{
    struct store *store = context;
    bool stops;

    pthread_mutex_lock(&store->offers_lock);
    stops = store->writer_stops;
    pthread_mutex_unlock(&store->offers_lock);
    return stops;
}

void
disk_writer_reserve(struct store *store, uint64_t most)
{
    const struct timespec until = clock_timespec(clock_monotonic_us() + RESERVE_US);
    int error = 0;

    atomic_store(&store->journal_most, most);
    pthread_mutex_lock(&store->offers_lock);
    store->writer_looks = true;
    pthread_cond_broadcast(&store->offers_wake);
    while (store->writer_looks && !store->writer_stops && !error &&
           store_stage(store) == STORE_OPEN)
        error = pthread_cond_timedwait(&store->offers_looked, &store->offers_lock, &until);
    pthread_mutex_unlock(&store->offers_lock);
}
