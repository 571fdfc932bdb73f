#include "base/keyed_hash.h"

#include <sys/random.h>

static uint64_t
rotate(uint64_t x, unsigned bits)
{
    return (x << bits) | (x >> (64U - bits));
}

static void
sip_round(uint64_t v[4])
{
    v[0] += v[1];
    v[1] = rotate(v[1], 13) ^ v[0];
    v[0] = rotate(v[0], 32);
    v[2] += v[3];
    v[3] = rotate(v[3], 16) ^ v[2];
    v[0] += v[3];
    v[3] = rotate(v[3], 21) ^ v[0];
    v[2] += v[1];
    v[1] = rotate(v[1], 17) ^ v[2];
    v[2] = rotate(v[2], 32);
}

bool
hash_key_init(struct hash_key *key)
{
    if (getrandom(key->words, sizeof(key->words), 0) == (ssize_t)sizeof(key->words))
        return true;
    *key = (struct hash_key){{0, 0}};
    return false;
}

uint64_t
keyed_hash(const struct hash_key *key, struct span bytes)
{
    uint64_t v[4] = {key->words[0] ^ 0x736f6d6570736575U, key->words[1] ^ 0x646f72616e646f6dU,
                     key->words[0] ^ 0x6c7967656e657261U, key->words[1] ^ 0x7465646279746573U};
    uint64_t word;
    size_t at = 0;

    for (; bytes.len - at >= sizeof(word); at += sizeof(word)) {
        memcpy(&word, bytes.ptr + at, sizeof(word));
        v[3] ^= word;
        sip_round(v);
        v[0] ^= word;
    }
    word = 0;
    if (at < bytes.len)
        memcpy(&word, bytes.ptr + at, bytes.len - at);
    word |= (uint64_t)bytes.len << 56;
    v[3] ^= word;
    sip_round(v);
    v[0] ^= word;
    v[2] ^= 0xff;
    for (int i = 0; i < 3; i++)
        sip_round(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}
