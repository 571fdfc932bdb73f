#include "cache/purge_log.h"

#include "base/hash.h"
#include "cache/tags.h"

#define ANY_NAME 0u /* the hash of a purge that concerns all */

void
purge_log_init(struct purge_log *log)
{
    pthread_mutex_init(&log->lock, NULL); /* without attributes it cannot fail */
    atomic_init(&log->count, 0);
}

void
purge_log_destroy(struct purge_log *log)
{
    pthread_mutex_destroy(&log->lock);
}

void
purge_log_add(struct purge_log *log, struct span name, const void *by)
{
    const struct purge_record record = {name.len ? hash64_bytes(name) : ANY_NAME, by};
    uint64_t count;

    pthread_mutex_lock(&log->lock);
    count = atomic_load_explicit(&log->count, memory_order_relaxed);
    log->records[count % PURGE_LOG_SIZE] = record;
    atomic_store_explicit(&log->count, count + 1, memory_order_release);
    pthread_mutex_unlock(&log->lock);
}

/* Under the lock. */
static bool
has_hash(const struct purge_log *log, uint64_t then, uint64_t now, uint64_t hash, const void *by)
{
    for (uint64_t i = then; i < now; i++) {
        const struct purge_record *record = &log->records[i % PURGE_LOG_SIZE];

        if ((record->hash == hash || record->hash == ANY_NAME) && (!by || record->by != by))
            return true;
    }
    return false;
}

/* The number of purges so far, locked. */
static uint64_t
lock_now(struct purge_log *log)
{
    pthread_mutex_lock(&log->lock);
    return atomic_load_explicit(&log->count, memory_order_relaxed);
}

bool
purge_log_has(struct purge_log *log, uint64_t then, struct span name, const void *by)
{
    uint64_t now = lock_now(log);
    bool has = now - then > PURGE_LOG_SIZE || has_hash(log, then, now, hash64_bytes(name), by);

    pthread_mutex_unlock(&log->lock);
    return has;
}

bool
purge_log_has_word(struct purge_log *log, uint64_t then, struct span words, const void *by)
{
    uint64_t now = lock_now(log);
    bool has = now - then > PURGE_LOG_SIZE;
    struct span word;

    while (!has && then != now && tags_next(&words, &word))
        has = has_hash(log, then, now, hash64_bytes(word), by);
    pthread_mutex_unlock(&log->lock);
    return has;
}
