#include "base/hash.h"

/* Compiled in: the call to the library would take a fifth of the time that a URL takes. */
#define XXH_INLINE_ALL
#include <xxhash.h>

uint64_t
hash64_bytes(struct span s)
{
    return XXH3_64bits(s.ptr, s.len);
}
