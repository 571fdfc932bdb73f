#include "policies/slots.h"

#include <stdlib.h>

#define MIN_ROOM 16u

void *
slots_grow(void *slots, uint32_t *room, size_t size)
{
    uint64_t more = *room < MIN_ROOM ? MIN_ROOM : *room + *room / 2ull;

    if (more > UINT32_MAX)
        more = UINT32_MAX;
    slots = realloc(slots, (size_t)more * size);
    if (slots)
        *room = (uint32_t)more;
    return slots;
}

void *
slots_shrink(void *slots, uint32_t *room, uint32_t count, size_t size)
{
    uint32_t less = *room / 2;
    void *moved;

    if (less < MIN_ROOM || count >= *room / 4)
        return slots;
    moved = realloc(slots, less * size);
    if (!moved)
        return slots;
    *room = less;
    return moved;
}
