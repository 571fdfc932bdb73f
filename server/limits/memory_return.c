#include "server/limits/memory_return.h"

#include <malloc.h>

#include "cache/cache.h"

#define LEAST ((uint64_t)16 << 20)

static uint64_t
bytes_in_use(struct service *service)
{
    struct cache_stats stats;
    uint64_t bytes;

    cache_get_stats(service->cache, &stats);
    bytes = stats.bytes;
    for (unsigned kind = 0; kind < MEMORY_KINDS; kind++)
        bytes += memory_used(&service->memory, (enum memory_kind)kind);
    return bytes;
}

void
memory_return_look(struct memory_return *memory, struct service *service)
{
    uint64_t bytes = bytes_in_use(service), freed;

    if (bytes > memory->most)
        memory->most = bytes;
    freed = memory->most - bytes;
    if (freed < LEAST || freed < memory->most / 4)
        return;
    (void)malloc_trim(0);
    memory->most = bytes;
}
