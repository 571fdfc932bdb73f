/*
 * Numbers distinct URLs from 0 in the order of their first appearance, and owns their bytes.
 *
 * The URLs of a trace may be chosen by others (an access log records any URL that a client sends),
 * so they are hashed with SipHash under a random key, and collisions cannot be prepared. The
 * numbers do not depend on the key. A table belongs to one thread at a time.
 */
#ifndef SUNPROXY_TRACE_URL_TABLE_H
#define SUNPROXY_TRACE_URL_TABLE_H

#include <stdint.h>

#include "base/keyed_hash.h"
#include "base/span.h"

struct url_chunk;

struct url_table {
    struct span *urls; /* by number; each is followed by a zero byte */
    size_t count;
    size_t capacity;         /* of urls and hashes */
    uint64_t *hashes;        /* by number, so that growing hashes nothing again */
    uint64_t *slots;         /* number + 1 below, half of the hash above; 0: free */
    size_t slot_count;       /* a power of two, or 0 */
    struct url_chunk *chunk; /* the bytes, in a chain of blocks */
    struct hash_key key;
};

void url_table_init(struct url_table *t);
void url_table_free(struct url_table *t);

/* Gives back what is only needed to find URLs; no more can be put then. */
void url_table_settle(struct url_table *t);

/* The number of a URL, a new one if it was not there (*fresh). False without memory. */
bool url_table_put(struct url_table *t, struct span url, uint32_t *number, bool *fresh);

/*
 * The same in steps, so that several URLs wait for memory together: hash, three prefetches, each of
 * what the next step reads, then put.
 */
uint64_t url_table_hash(const struct url_table *t, struct span url);
void url_table_prefetch_slot(const struct url_table *t, uint64_t hash);
void url_table_prefetch_row(const struct url_table *t, uint64_t hash);
void url_table_prefetch_bytes(const struct url_table *t, uint64_t hash);
bool url_table_put_hashed(struct url_table *t, struct span url, uint64_t hash, uint32_t *number,
                          bool *fresh);

#endif
