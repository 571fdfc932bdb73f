/*
 * Which URLs are not refreshed in the background for a while, because that has failed: a second
 * after the first failure, twice as long after each further one, up to a minute. A table of fixed
 * size that forgets URLs whose slots collide, which costs a refresh too many or too few.
 *
 * Every function is safe on any thread and takes no lock.
 */
#ifndef SUNPROXY_PROXY_BACKOFF_H
#define SUNPROXY_PROXY_BACKOFF_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define BACKOFF_SLOTS 256u
#define BACKOFF_FIRST_US ((int64_t)1000000)
#define BACKOFF_LONGEST_US ((int64_t)64 * 1000000)

/* All zero: nothing has failed. */
struct backoff {
    struct {
        _Atomic uint64_t key;
        _Atomic int64_t until_us; /* monotonic clock */
        _Atomic int64_t delay_us; /* the last one; 0: the slot is free */
    } slots[BACKOFF_SLOTS];
};

/* `key` identifies a URL and variant (struct cache_key). */
bool backoff_holds(const struct backoff *backoff, uint64_t key, int64_t now_us);

/* A refresh has failed, or has not. */
void backoff_add(struct backoff *backoff, uint64_t key, int64_t now_us);
void backoff_clear(struct backoff *backoff, uint64_t key);

#endif
