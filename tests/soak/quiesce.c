#include "tests/soak/quiesce.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "client/server_stats.h"

#define PATIENCE_US (60 * (int64_t)1000000)
#define POLL_US 20000u
#define CAPACITY_BYTES (8u << 20)
/* libcurl looks for connections that the origin has closed when it makes another, but at most once
 * a second (url.c, prune_dead_connections). */
#define PRUNE_US 1100000u

static bool
fail(char *why, size_t size, const char *what, enum rpc_client_status status)
{
    snprintf(why, size, "%s: %s", what,
             status == RPC_CLIENT_OK ? "refused" : rpc_client_strstatus(status));
    return false;
}

static bool
reset_cache(struct rpc_client *admin, const struct quiesce_state *state, char *why, size_t size)
{
    struct proxy_set_args args = {.policy = (char *)(uintptr_t)state->policy,
                                  .set_capacity = true,
                                  .capacity_urls = state->capacity_urls,
                                  .capacity_bytes = CAPACITY_BYTES};
    struct proxy_set_result result = {0};
    enum rpc_client_status status = rpc_client_call_wait(
        admin, PROXY_FETCHPROG, PROXY_VERS2, PROXY_SET, (xdrproc_t)xdr_proxy_set_args, &args,
        (xdrproc_t)xdr_proxy_set_result, &result, PATIENCE_US);
    bool done = status == RPC_CLIENT_OK && result.status == PROXY_OK;

    if (status == RPC_CLIENT_OK)
        xdr_free((xdrproc_t)xdr_proxy_set_result, &result);
    return done || fail(why, size, "the cache cannot be set", status);
}

static bool
purge_all(struct rpc_client *admin, uint64_t *purged, char *why, size_t size)
{
    struct proxy_purge_args args = {.kind = PROXY_PURGE_ALL};
    struct proxy_purge_result result = {0};
    enum rpc_client_status status = rpc_client_call_wait(
        admin, PROXY_FETCHPROG, PROXY_VERS2, PROXY_PURGE, (xdrproc_t)xdr_proxy_purge_args, &args,
        (xdrproc_t)xdr_proxy_purge_result, &result, PATIENCE_US);
    bool done = status == RPC_CLIENT_OK &&
                (result.status == PROXY_OK || result.status == PROXY_PURGED_MORE);

    if (done)
        *purged += result.proxy_purge_result_u.purged;
    if (status == RPC_CLIENT_OK)
        xdr_free((xdrproc_t)xdr_proxy_purge_result, &result);
    return done || fail(why, size, "the cache cannot be purged", status);
}

/* Has the origin close the connections that the daemon keeps for later. */
static bool
drop_idle(struct rpc_client *admin, char *why, size_t size)
{
    char url[] = "http://quiesce.soak/fault/drop-idle";
    struct proxy_fetch_args args = {.url = {.proxy_url_len = sizeof(url) - 1, .proxy_url_val = url},
                                    .flags = PROXY_FLAG_NO_STORE};
    struct proxy_fetch_result result = {0};
    enum rpc_client_status status = rpc_client_call_wait(
        admin, PROXY_FETCHPROG, PROXY_VERS2, PROXY_GET, (xdrproc_t)xdr_proxy_fetch_args, &args,
        (xdrproc_t)xdr_proxy_fetch_result, &result, PATIENCE_US);
    bool done = status == RPC_CLIENT_OK && result.status == PROXY_OK;

    if (status == RPC_CLIENT_OK)
        xdr_free((xdrproc_t)xdr_proxy_fetch_result, &result);
    return done || fail(why, size, "the origin does not drop its connections", status);
}

/* Waits until no fetch and no other connection is left. */
static bool
await_idle(struct rpc_client *admin, char *why, size_t size)
{
    int64_t until = clock_monotonic_us() + PATIENCE_US;

    for (;;) {
        struct proxy_stats stats = {0};
        enum rpc_client_status status =
            rpc_client_call_wait(admin, PROXY_FETCHPROG, PROXY_VERS2, PROXY_STAT, NULL, NULL,
                                 (xdrproc_t)xdr_proxy_stats, &stats, PATIENCE_US);
        uint64_t connections, active, queued;

        if (status != RPC_CLIENT_OK)
            return fail(why, size, "no statistics", status);
        connections = server_stats_value(&stats, "connections");
        active = server_stats_value(&stats, "fetches_active");
        queued = server_stats_value(&stats, "fetches_queued");
        xdr_free((xdrproc_t)xdr_proxy_stats, &stats);
        snprintf(why, size,
                 "%" PRIu64 " connections, %" PRIu64 " fetches under way, %" PRIu64
                 " queued remain",
                 connections, active, queued);
        if (connections == 1 && active == 0 && queued == 0)
            return true;
        if (clock_monotonic_us() > until)
            return false;
        usleep(POLL_US);
    }
}

bool
quiesce(struct rpc_client *admin, const struct quiesce_state *state, uint64_t *purged, char *why,
        size_t size)
{
    /* Fetches of vanished clients may still store pages: they end first. */
    if (!await_idle(admin, why, size) || !purge_all(admin, purged, why, size) ||
        !reset_cache(admin, state, why, size))
        return false;
    if (!drop_idle(admin, why, size))
        return false;
    usleep(PRUNE_US);
    return drop_idle(admin, why, size) && await_idle(admin, why, size);
}
