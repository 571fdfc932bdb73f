#include "server/peers/peer_log.h"

#include <string.h>

#include "base/hash.h"

void
peer_log_init(struct peer_log *log)
{
    memset(log, 0, sizeof(*log));
    pthread_mutex_init(&log->lock, NULL);
}

void
peer_log_free(struct peer_log *log)
{
    pthread_mutex_destroy(&log->lock);
}

/* The entry; PEER_LOG_ENTRIES: there is none. Under the lock. */
static unsigned
find(const struct peer_log *log, uint64_t sender, uint64_t incarnation)
{
    unsigned i = 0;

    while (i < PEER_LOG_ENTRIES &&
           (log->entries[i].sender != sender || log->entries[i].incarnation != incarnation))
        i++;
    return i;
}

static unsigned
least_recently_used(const struct peer_log *log)
{
    unsigned found = 0;

    for (unsigned i = 1; i < PEER_LOG_ENTRIES; i++)
        if (log->entries[i].used < log->entries[found].used)
            found = i;
    return found;
}

/* Has the sender's process, or have both, taken its leave? Not if none is known. */
static bool
has_left(const struct peer_log *log, uint64_t sender)
{
    bool any = false;

    for (unsigned i = 0; i < PEER_LOG_ENTRIES; i++) {
        if (log->entries[i].sender != sender)
            continue;
        if (!log->entries[i].left)
            return false;
        any = true;
    }
    return any;
}

/* Another process of the sender begins. */
static void
forget(struct peer_log *log, uint64_t sender, int64_t now_us)
{
    for (unsigned i = 0; i < PEER_LOG_ENTRIES; i++)
        if (log->entries[i].sender == sender &&
            (log->entries[i].left || now_us - log->entries[i].heard_us > PEER_LOG_SILENCE_US)) {
            log->entries[i].sender = 0;
            log->entries[i].used = 0;
        }
}

void
peer_log_leave(struct peer_log *log, struct span sender, uint64_t incarnation)
{
    unsigned i;

    pthread_mutex_lock(&log->lock);
    i = find(log, hash64_bytes(sender) | 1, incarnation);
    if (i < PEER_LOG_ENTRIES)
        log->entries[i].left = true;
    pthread_mutex_unlock(&log->lock);
}

bool
peer_log_misses(struct peer_log *log, struct span sender, uint64_t incarnation, uint64_t before)
{
    const uint64_t hash = hash64_bytes(sender) | 1;
    bool misses;
    unsigned i;

    pthread_mutex_lock(&log->lock);
    i = find(log, hash, incarnation);
    misses =
        i == PEER_LOG_ENTRIES ? before || !has_left(log, hash) : log->entries[i].taken < before;
    pthread_mutex_unlock(&log->lock);
    return misses;
}

void
peer_log_take(struct peer_log *log, struct span sender, uint64_t incarnation, uint64_t last,
              int64_t now_us)
{
    const uint64_t hash = hash64_bytes(sender) | 1;
    unsigned i;

    pthread_mutex_lock(&log->lock);
    i = find(log, hash, incarnation);
    if (i == PEER_LOG_ENTRIES) {
        forget(log, hash, now_us);
        i = least_recently_used(log);
        log->entries[i].sender = hash;
        log->entries[i].incarnation = incarnation;
        log->entries[i].taken = 0;
        log->entries[i].left = false;
    }
    if (log->entries[i].taken < last)
        log->entries[i].taken = last;
    log->entries[i].used = ++log->clock;
    log->entries[i].heard_us = now_us;
    pthread_mutex_unlock(&log->lock);
}
