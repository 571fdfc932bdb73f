/*
 * The last answers to checks of users, for a while. A key is an HMAC by SHA-256 under a random key
 * of the process (RFC 2104): neither a name nor a password can be found in it, and nobody chooses
 * which keys collide. The size is fixed. Refused answers have a part of their own, so that any
 * number of them displaces no accepted one.
 *
 * For one thread at a time, but for user_cache_key().
 */
#ifndef SUNPROXY_SERVER_USERS_USER_CACHE_H
#define SUNPROXY_SERVER_USERS_USER_CACHE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/span.h"

#define USER_CACHE_ACCEPTED 16384u /* answers */
#define USER_CACHE_REFUSED 2048u

struct user_cache;

struct user_key {
    uint8_t bytes[32];
};

/* NULL without memory or random numbers. */
struct user_cache *user_cache_create(void);
void user_cache_free(struct user_cache *cache); /* NULL is harmless */

/*
 * The key of a name, a password and what they are compared with. False if it cannot be computed.
 * The texts have at most 1 KiB each. Safe on any thread.
 */
bool user_cache_key(const struct user_cache *cache, struct span name, struct span password,
                    struct span hash, struct user_key *key);

/* Has the cache an answer for now? Then *accepted is it, and *until_us how long it holds. */
bool user_cache_find(const struct user_cache *cache, const struct user_key *key, int64_t now_us,
                     bool *accepted, int64_t *until_us);

/* Keeps an answer, in the place of an older one if need be. */
void user_cache_add(struct user_cache *cache, const struct user_key *key, bool accepted,
                    int64_t until_us);

#endif
