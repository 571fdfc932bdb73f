/*
 * Returns freed memory to the system after a peak. The allocator keeps what is free below a block
 * that is in use, and a cache has such blocks everywhere.
 *
 * For the main thread.
 */
#ifndef SUNPROXY_SERVER_LIMITS_MEMORY_RETURN_H
#define SUNPROXY_SERVER_LIMITS_MEMORY_RETURN_H

#include <stdint.h>

#include "server/service.h"

#define MEMORY_RETURN_SECONDS 2

/* All zero at first. */
struct memory_return {
    uint64_t most; /* bytes of pages and of the account: the most seen since the last return */
};

/*
 * To be called every MEMORY_RETURN_SECONDS. Returns memory if a quarter of the most that was in use
 * has been freed, and 16 MiB at least. The allocator's locks are held meanwhile, so it is not done
 * for less.
 */
void memory_return_look(struct memory_return *memory, struct service *service);

#endif
