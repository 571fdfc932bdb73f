/* From a pointer to a member to the struct around it, for structs that are linked by a member. */
#ifndef SUNPROXY_BASE_CONTAINER_OF_H
#define SUNPROXY_BASE_CONTAINER_OF_H

#include <stddef.h>

/* `pointer` must point to the `member` of a `type`. */
#define container_of(pointer, type, member) \
    ((type *)(void *)((char *)(pointer)-offsetof(type, member)))

#endif
