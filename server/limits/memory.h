/*
 * What the daemon does when memory is short: the hooks of its account (base/memory_account.h).
 *
 * At the limit: for pages and fetches, stalled bodies and those of the client that holds most are
 * given up (proxy/shedding.h). Slow readers are disconnected (rpc_server_relieve()), for pages and
 * fetches only if pages that wait for readers hold more memory than bodies. When malloc() fails:
 * pages are evicted from the cache, and a warning is logged.
 */
#ifndef SUNPROXY_SERVER_LIMITS_MEMORY_H
#define SUNPROXY_SERVER_LIMITS_MEMORY_H

#include <stdatomic.h>
#include <stdint.h>

struct memory_hooks;
struct service;

/* How often malloc() has failed and what was evicted for it. Any thread. */
struct memory_reclaimed {
    _Atomic uint64_t failures;
    _Atomic uint64_t pages;
    _Atomic uint64_t bytes;
    _Atomic int64_t logged_us; /* when the latest line was logged; 0: never */
};

/* The hooks of a service, which outlives the account. */
struct memory_hooks memory_hooks_of(struct service *service);

#endif
