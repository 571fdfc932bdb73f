/*
 * Hashes of bytes under a secret key, by SipHash-1-3 (Aumasson, Bernstein 2012; one round a word,
 * three at the end): who does not know the key cannot prepare collisions, nor find what a hash is
 * of. Another process has another key. Safe on any thread.
 */
#ifndef SUNPROXY_BASE_KEYED_HASH_H
#define SUNPROXY_BASE_KEYED_HASH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/span.h"

struct hash_key {
    uint64_t words[2];
};

/* Takes a key at random. False: the system has none yet, early at boot, and the key is a known one.
 */
bool hash_key_init(struct hash_key *key);

uint64_t keyed_hash(const struct hash_key *key, struct span bytes);

#endif
