#include "policies/slots.h"

#include <stdlib.h>

#define MIN_SLOTS 16u

void *
slots_grow(void *slots, uint32_t *allocated, size_t size)
{
    uint64_t more = *allocated < MIN_SLOTS ? MIN_SLOTS : *allocated + *allocated / 2ull;

    if (more > UINT32_MAX)
        more = UINT32_MAX;
    slots = realloc(slots, (size_t)more * size);
    if (slots)
        *allocated = (uint32_t)more;
    return slots;
}

void *
slots_shrink(void *slots, uint32_t *allocated, uint32_t count, size_t size)
{
    uint32_t less = *allocated / 2;
    void *moved;

    if (less < MIN_SLOTS || count >= *allocated / 4)
        return slots;
    moved = realloc(slots, less * size);
    if (!moved)
        return slots;
    *allocated = less;
    return moved;
}
