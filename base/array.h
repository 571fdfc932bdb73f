/*
 * Growing arrays of any type.
 */
#ifndef SUNPROXY_BASE_ARRAY_H
#define SUNPROXY_BASE_ARRAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define ARRAY_FIRST 256u

/*
 * Makes sure that an array of `count` elements has memory for one more, and sets *capacity.
 * `array` points to the pointer to its first element. False without memory; nothing has changed.
 */
static inline bool
array_extend(void *array, size_t element, size_t count, size_t *capacity)
{
    size_t more = *capacity ? *capacity * 2 : ARRAY_FIRST;
    void *old, *grown;

    if (count < *capacity)
        return true;
    memcpy(&old, array, sizeof(old));
    grown = more > SIZE_MAX / element ? NULL : realloc(old, more * element);
    if (!grown)
        return false;
    memcpy(array, &grown, sizeof(grown));
    *capacity = more;
    return true;
}

#endif
