#include "server/limits/memory.h"

#include <inttypes.h>

#include "base/clock.h"
#include "base/units.h"
#include "server/rpc/cursor.h"
#include "server/logs/log.h"
#include "server/service.h"

#define LOG_EVERY_US ((int64_t)10000000)
/* Evicted beyond what is asked for, so that some of it is adjacent. */
#define RECLAIM_SPARE ((uint64_t)8 << 20)

/* Those that have not read for a while. */
static void
disconnect_readers(struct service *service)
{
    rpc_server_relieve(service->rpc);
    if (service->cursors)
        cursors_note_shortage(service->cursors);
}

/* Pages and fetches are charged on the fetcher's thread only, to which the bodies belong. */
static bool
relieve(void *context, enum memory_kind kind, size_t bytes)
{
    struct service *service = context;
    bool is_full;
    size_t freed;

    switch (kind) {
    case MEMORY_PAGES:
    case MEMORY_FETCHES:
        /* A body that is given up stays until its readers have released it. */
        is_full = memory_is_full(&service->memory, MEMORY_FAILED);
        freed = is_full ? 0 : proxy_shed(&service->proxy, bytes);
        /* Slow readers are disconnected only if their pages take more memory than the bodies. */
        if (is_full ||
            memory_used(&service->memory, MEMORY_PAGES) / 2 >= service->proxy.shedding.bytes)
            disconnect_readers(service);
        return freed > 0;
    case MEMORY_FAILED:
        disconnect_readers(service);
        return false;
    case MEMORY_REQUESTS:
    case MEMORY_REPLIES:
        rpc_server_relieve(service->rpc);
        return false;
    case MEMORY_RECORDS: /* the worker closes connections with incomplete calls */
    case MEMORY_KINDS:
        break;
    }
    return false;
}

/* One line in ten seconds, whichever thread is first. */
static bool
is_time_to_log(struct memory_reclaimed *reclaimed)
{
    int64_t now_us = clock_monotonic_us();
    int64_t logged_us = atomic_load_explicit(&reclaimed->logged_us, memory_order_relaxed);

    return (logged_us == 0 || now_us - logged_us >= LOG_EVERY_US) &&
           atomic_compare_exchange_strong(&reclaimed->logged_us, &logged_us, now_us);
}

static bool
reclaim(void *context, size_t bytes)
{
    struct service *service = context;
    struct memory_reclaimed *reclaimed = &service->reclaimed;
    uint64_t pages, evicted = cache_reclaim(service->cache, bytes + RECLAIM_SPARE, &pages);
    uint64_t failures = 1 + atomic_fetch_add(&reclaimed->failures, 1);
    uint64_t all_pages = pages + atomic_fetch_add(&reclaimed->pages, pages);
    uint64_t all_bytes = evicted + atomic_fetch_add(&reclaimed->bytes, evicted);

    if (is_time_to_log(reclaimed)) {
        char text[32], all[32];

        log_warning("out of memory: %zu bytes could not be allocated, so %" PRIu64
                    " pages (%s) were evicted; since the start %" PRIu64 " failures, %" PRIu64
                    " pages (%s) evicted",
                    bytes, pages, units_format_bytes(evicted, text, sizeof(text)), failures,
                    all_pages, units_format_bytes(all_bytes, all, sizeof(all)));
    }
    return pages > 0;
}

struct memory_hooks
memory_hooks_of(struct service *service)
{
    return (struct memory_hooks){.relieve = relieve, .reclaim = reclaim, .context = service};
}
