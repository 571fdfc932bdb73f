/*
 * The digest of a sequence of bytes, however they are cut into pieces: XXH64. It finds differences
 * by chance, and none that are made on purpose.
 */
#ifndef SUNPROXY_BASE_DIGEST_H
#define SUNPROXY_BASE_DIGEST_H

#include <stdbool.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/span.h"

/* All zeros: of no bytes. */
struct digest {
    XXH64_state_t state;
    uint64_t length; /* in bytes */
};

static inline void
digest_add(struct digest *digest, struct span bytes)
{
    if (digest->length == 0)
        XXH64_reset(&digest->state, 0);
    XXH64_update(&digest->state, bytes.ptr, bytes.len);
    digest->length += bytes.len;
}

static inline bool
digest_equal(const struct digest *a, const struct digest *b)
{
    return a->length == b->length &&
           (a->length == 0 || XXH64_digest(&a->state) == XXH64_digest(&b->state));
}

#endif
