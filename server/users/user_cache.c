#include "server/users/user_cache.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define WAYS 4u /* answers whose keys have the same place */
#define TEXT_MAX 1024u

/* until_us 0: none. */
struct kept {
    struct user_key key;
    int64_t until_us;
};

struct user_cache {
    uint8_t secret[32]; /* constant */
    struct kept accepted[USER_CACHE_ACCEPTED];
    struct kept refused[USER_CACHE_REFUSED];
};

struct user_cache *
user_cache_create(void)
{
    struct user_cache *cache = calloc(1, sizeof(*cache));

    if (cache &&
        getrandom(cache->secret, sizeof(cache->secret), 0) == (ssize_t)sizeof(cache->secret))
        return cache;
    free(cache);
    return NULL;
}

void
user_cache_free(struct user_cache *cache)
{
    if (cache)
        OPENSSL_cleanse(cache, sizeof(*cache));
    free(cache);
}

static unsigned char *
put(unsigned char *at, struct span s)
{
    uint32_t len = (uint32_t)s.len;

    memcpy(at, &len, sizeof(len));
    return (unsigned char *)span_put((char *)at + sizeof(len), s);
}

bool
user_cache_key(const struct user_cache *cache, struct span name, struct span password,
               struct span hash, struct user_key *key)
{
    unsigned char text[3 * (sizeof(uint32_t) + TEXT_MAX)], *end;
    unsigned len = sizeof(key->bytes);
    bool made;

    if (name.len > TEXT_MAX || password.len > TEXT_MAX || hash.len > TEXT_MAX)
        return false;
    end = put(put(put(text, name), password), hash);
    made = HMAC(EVP_sha256(), cache->secret, sizeof(cache->secret), text, (size_t)(end - text),
                key->bytes, &len) != NULL;
    OPENSSL_cleanse(text, sizeof(text));
    return made;
}

/* The first of the answers that may be of this key. */
static size_t
place_of(const struct user_key *key, size_t size)
{
    uint32_t number;

    memcpy(&number, key->bytes, sizeof(number));
    return number % (size / WAYS) * WAYS;
}

static const struct kept *
find(const struct kept *all, size_t size, const struct user_key *key, int64_t now_us)
{
    const struct kept *first = all + place_of(key, size);

    for (const struct kept *kept = first; kept < first + WAYS; kept++)
        if (kept->until_us > now_us &&
            CRYPTO_memcmp(kept->key.bytes, key->bytes, sizeof(key->bytes)) == 0)
            return kept;
    return NULL;
}

bool
user_cache_find(const struct user_cache *cache, const struct user_key *key, int64_t now_us,
                bool *accepted, int64_t *until_us)
{
    const struct kept *kept = find(cache->accepted, USER_CACHE_ACCEPTED, key, now_us);

    *accepted = kept != NULL;
    if (!kept)
        kept = find(cache->refused, USER_CACHE_REFUSED, key, now_us);
    if (kept)
        *until_us = kept->until_us;
    return kept != NULL;
}

/* The place of this key, or that of the answer that is over first. */
static struct kept *
choose(struct kept *all, size_t size, const struct user_key *key)
{
    struct kept *first = all + place_of(key, size), *oldest = first;

    for (struct kept *kept = first; kept < first + WAYS; kept++) {
        if (kept->until_us && CRYPTO_memcmp(kept->key.bytes, key->bytes, sizeof(key->bytes)) == 0)
            return kept;
        if (kept->until_us < oldest->until_us)
            oldest = kept;
    }
    return oldest;
}

/* A helper may change its mind: what it said before is dropped. */
static void
drop(struct kept *all, size_t size, const struct user_key *key)
{
    struct kept *kept = choose(all, size, key);

    if (CRYPTO_memcmp(kept->key.bytes, key->bytes, sizeof(key->bytes)) == 0)
        kept->until_us = 0;
}

void
user_cache_add(struct user_cache *cache, const struct user_key *key, bool accepted,
               int64_t until_us)
{
    struct kept *kept = accepted ? choose(cache->accepted, USER_CACHE_ACCEPTED, key)
                                 : choose(cache->refused, USER_CACHE_REFUSED, key);

    if (accepted)
        drop(cache->refused, USER_CACHE_REFUSED, key);
    else
        drop(cache->accepted, USER_CACHE_ACCEPTED, key);
    *kept = (struct kept){.key = *key, .until_us = until_us};
}
