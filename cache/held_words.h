/*
 * URLs and tags that are about to change at their origins (cache_hold()): what comes meanwhile may
 * be older than the change. Of one cache; safe on any thread.
 *
 * A hold begins before a purge and ends after another one, which find the fills that begin before
 * and after it; under the lock of a fill's shard either of the purges or the hold sees its head.
 */
#ifndef SUNPROXY_CACHE_HELD_WORDS_H
#define SUNPROXY_CACHE_HELD_WORDS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/span.h"

#define HELD_WORDS_MOST 256u

struct held_words {
    pthread_mutex_t lock;
    _Atomic unsigned count;           /* written under the lock */
    uint64_t hashes[HELD_WORDS_MOST]; /* each as often as it is held; under the lock */
};

/* Initialises a zeroed one. */
void held_words_init(struct held_words *holds);

void held_words_destroy(struct held_words *holds);

/* False if too many are held. */
bool held_words_add(struct held_words *holds, uint64_t hash);

/* Ends one held_words_add() of the hash that has succeeded. */
void held_words_remove(struct held_words *holds, uint64_t hash);

/* Is the URL held, or one of the tags (tags.h)? Also true, very rarely, by a collision. */
bool held_words_have(struct held_words *holds, struct span url, struct span tags);

#endif
