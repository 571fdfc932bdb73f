#include "tests/soak/tally.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "client/server_stats.h"

#define PATIENCE_US (60 * (int64_t)1000000)

enum rpc_client_status
tally_take(struct rpc_client *admin, struct tally *tally)
{
    struct proxy_stats stats = {0};
    enum rpc_client_status status =
        rpc_client_call_wait(admin, PROXY_FETCHPROG, PROXY_VERS2, PROXY_STAT, NULL, NULL,
                             (xdrproc_t)xdr_proxy_stats, &stats, PATIENCE_US);

    if (status != RPC_CLIENT_OK)
        return status;
    snprintf(tally->policy, sizeof(tally->policy), "%s", server_stats_fact(&stats, "policy"));
    tally->hits = server_stats_value(&stats, "requests{outcome=\"hit\"}");
    tally->evictions = server_stats_value(&stats, "cache_evictions");
    tally->pages = server_stats_value(&stats, "cache_pages");
    xdr_free((xdrproc_t)xdr_proxy_stats, &stats);
    return RPC_CLIENT_OK;
}

static bool
at_least(const char *what, uint64_t got, uint64_t expected, struct buf *why)
{
    if (got >= expected)
        return true;
    buf_printf(why, "%s: %" PRIu64 ", at least %" PRIu64 " are expected\n", what, got, expected);
    return false;
}

bool
tally_check(const char *started_with, const struct tally *before, const struct tally *after,
            const struct tally_answers *answers, uint64_t purged, struct buf *why)
{
    uint64_t hits = after->hits - before->hits, evictions = after->evictions - before->evictions;
    bool good = true;

    if (answers->requests < TALLY_LEAST_REQUESTS)
        return true;
    /* What answers say has happened; their clients may have missed some of it. */
    good &= at_least("hits counted by the daemon", hits, answers->hits, why);
    good &= at_least("evictions counted by the daemon", evictions, answers->evicted, why);
    if (strcmp(after->policy, "none") == 0 && strcmp(started_with, "none") != 0)
        return good;
    good &= at_least("answers that were hits", answers->hits,
                     answers->requests * TALLY_HIT_PERCENT / 100, why);
    good &= at_least("answers that stored a page", answers->stored, 1, why);
    good &= at_least("pages that answers evicted", answers->evicted, 1, why);
    good &= at_least("pages in the cache at the end of a phase", after->pages, 1, why);
    good &= at_least("pages that the purge removed", purged, 1, why);
    return good;
}
