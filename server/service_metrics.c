#include "server/service_metrics.h"

#include "base/clock.h"
#include "cache/cache.h"
#include "fetch/fetch.h"
#include "server/rpc/cursor.h"
#include "server/http/http_service.h"
#include "server/logs/origin_report.h"
#include "server/peers/peer_news.h"
#include "server/service.h"
#include "store/store.h"
#include "tier/tier.h"

#define COUNTER METRIC_KIND_COUNTER
#define GAUGE METRIC_KIND_GAUGE

/* ---- the service ------------------------------------------------------------------------------
 */

struct service_snapshot {
    uint64_t workers;
    uint64_t uptime_us;
    uint64_t log_lines_lost;
    struct request_db_stats request_db;
};

static void
read_service(void *context, void *snapshot)
{
    const struct service *service = context;
    struct service_snapshot *s = snapshot;

    s->workers = service->workers;
    s->uptime_us = (uint64_t)(clock_monotonic_us() - service->started_us);
    s->log_lines_lost = service->access_log ? access_log_lost(service->access_log) : 0;
    s->request_db = (struct request_db_stats){0};
    if (service->request_db)
        request_db_get_stats(service->request_db, &s->request_db);
}

#define AT(field) offsetof(struct service_snapshot, field)

static const struct metric_row service_rows[] = {
    {"workers", "", GAUGE, "", "Threads that serve connections.", AT(workers)},
    {"uptime_microseconds", "", GAUGE, "microseconds", "Time since the daemon started.",
     AT(uptime_us)},
    {"log_lines_lost", "", COUNTER, "", "Lines of the access log that could not be written.",
     AT(log_lines_lost)},
    {"request_db_written", "", COUNTER, "", "Rows that were written to the request database.",
     AT(request_db.written)},
    {"request_db_dropped", "", COUNTER, "",
     "Requests that are not in the request database, since its queue was full.",
     AT(request_db.dropped)},
    {"request_db_removed", "", COUNTER, "",
     "Oldest rows that were removed from the request database to keep its size.",
     AT(request_db.removed)},
    {"request_db_errors", "", COUNTER, "",
     "Failed attempts to open the request database or to write to it.", AT(request_db.errors)},
};

#undef AT

/* ---- connections and calls --------------------------------------------------------------------
 */

_Static_assert(sizeof(struct rpc_stats) <= METRICS_SNAPSHOT_BYTES, "it fits");

static void
read_rpc(void *context, void *snapshot)
{
    const struct service *service = context;

    rpc_server_get_stats(service->rpc, snapshot);
}

#define AT(field) offsetof(struct rpc_stats, field)
#define REFUSED(reason) \
    offsetof(struct rpc_stats, net.connections_refused) + (reason) * sizeof(uint64_t)
#define HELP_REFUSED "Connections refused, by reason: a bound for all or for one client, or a lack."

static const struct metric_row rpc_rows[] = {
    {"connections", "", GAUGE, "", "Connections open.", AT(net.connections)},
    {"connections_accepted", "", COUNTER, "", "Connections accepted.", AT(net.connections_total)},
    {"connections_refused", "reason=\"full\"", COUNTER, "", HELP_REFUSED,
     REFUSED(NET_REFUSED_FULL)},
    {"connections_refused", "reason=\"client\"", COUNTER, "", HELP_REFUSED,
     REFUSED(NET_REFUSED_CLIENT)},
    {"connections_refused", "reason=\"descriptors\"", COUNTER, "", HELP_REFUSED,
     REFUSED(NET_REFUSED_DESCRIPTORS)},
    {"connections_refused", "reason=\"memory\"", COUNTER, "", HELP_REFUSED,
     REFUSED(NET_REFUSED_MEMORY)},
    {"connections_timed_out", "", COUNTER, "",
     "Connections closed after a timeout or for lack of memory.", AT(net.connections_timed_out)},
    {"received_bytes", "", COUNTER, "bytes", "Bytes received from clients.", AT(net.bytes_in)},
    {"sent_bytes", "", COUNTER, "bytes", "Bytes sent to clients.", AT(net.bytes_out)},
    {"clients", "", GAUGE, "", "Clients known: connected, or over a rate in the last seconds.",
     AT(net.clients.clients)},
    {"calls", "", COUNTER, "", "RPC calls of any kind.", AT(calls)},
    {"calls_bad", "", COUNTER, "", "RPC calls answered with an RPC error, or not at all.",
     AT(calls_bad)},
    {"calls_delayed", "", COUNTER, "", "RPC calls that were read late, over a client's rate.",
     AT(net.clients.calls_delayed)},
    {"fetches_refused", "", COUNTER, "", "Fetches refused, over a client's rate of fetches.",
     AT(net.clients.fetches_refused)},
};

#undef AT

_Static_assert(NET_REFUSALS == 4, "each reason has a row");

/* ---- tunnels ----------------------------------------------------------------------------------
 */

static void
read_tunnels(void *context, void *snapshot)
{
    const struct service *service = context;

    if (service->http)
        http_service_get_tunnels(service->http, snapshot);
}

#define AT(field) offsetof(struct http_tunnel_stats, field)
#define HELP_TUNNEL_BYTES "Bytes that tunnels passed on, to and from origins."

static const struct metric_row tunnel_rows[] = {
    {"tunnels", "", GAUGE, "", "Tunnels of HTTP clients, those that are being connected included.",
     AT(open)},
    {"tunnels_opened", "", COUNTER, "", "Tunnels that were connected.", AT(opened)},
    {"tunnel_bytes", "direction=\"sent\"", COUNTER, "bytes", HELP_TUNNEL_BYTES, AT(sent_bytes)},
    {"tunnel_bytes", "direction=\"received\"", COUNTER, "bytes", HELP_TUNNEL_BYTES,
     AT(received_bytes)},
};

#undef AT

/* ---- cursors ----------------------------------------------------------------------------------
 */

_Static_assert(sizeof(struct cursor_stats) <= METRICS_SNAPSHOT_BYTES, "it fits");

static void
read_cursors(void *context, void *snapshot)
{
    const struct service *service = context;

    if (service->cursors)
        cursors_get_stats(service->cursors, snapshot);
}

#define AT(field) offsetof(struct cursor_stats, field)
#define ENDED(end) AT(ended) + (end) * sizeof(uint64_t)
#define HELP_ENDED "Large bodies that clients of version 2 of RPC read no more, by what ended that."

static const struct metric_row cursor_rows[] = {
    {"cursors", "", GAUGE, "", "Large or slow bodies that clients of version 2 of RPC are reading.",
     AT(open)},
    {"cursors_opened", "", COUNTER, "", "Large or slow bodies that such clients began to read.",
     AT(opened)},
    {"cursors_refused", "", COUNTER, "", "Large bodies refused because too many were being read.",
     AT(refused)},
    {"cursors_ended", "reason=\"released\"", COUNTER, "", HELP_ENDED, ENDED(CURSOR_RELEASED)},
    {"cursors_ended", "reason=\"disconnected\"", COUNTER, "", HELP_ENDED,
     ENDED(CURSOR_DISCONNECTED)},
    {"cursors_ended", "reason=\"expired\"", COUNTER, "", HELP_ENDED, ENDED(CURSOR_EXPIRED)},
    {"cursors_ended", "reason=\"displaced\"", COUNTER, "", HELP_ENDED, ENDED(CURSOR_DISPLACED)},
    {"cursors_ended", "reason=\"failed\"", COUNTER, "", HELP_ENDED, ENDED(CURSOR_FAILED)},
};

#undef AT

_Static_assert(CURSOR_ENDS == 5, "each end has a row");

/* ---- users ------------------------------------------------------------------------------------
 */

_Static_assert(sizeof(struct users_stats) <= METRICS_SNAPSHOT_BYTES, "it fits");

static void
read_users(void *context, void *snapshot)
{
    const struct service *service = context;

    if (service->users)
        users_get_stats(service->users, snapshot);
}

#define AT(field) offsetof(struct users_stats, field)
#define HELP_CHECKS "Checks of users that were made, or could not be, by their answer."

static const struct metric_row user_rows[] = {
    {"user_checks", "answer=\"accepted\"", COUNTER, "", HELP_CHECKS, AT(accepted)},
    {"user_checks", "answer=\"refused\"", COUNTER, "", HELP_CHECKS, AT(refused)},
    {"user_checks", "answer=\"unavailable\"", COUNTER, "", HELP_CHECKS, AT(unavailable)},
    {"user_checks_cached", "", COUNTER, "", "Users that were known from an earlier check.",
     AT(cached)},
    {"user_checks_pending", "", GAUGE, "", "Checks of users that wait or are being made.",
     AT(pending)},
    {"user_helpers", "", GAUGE, "", "Processes of --auth-helper that run.", AT(helpers)},
    {"user_helpers_restarted", "", COUNTER, "",
     "Processes of --auth-helper that were started in the place of another one.",
     AT(helpers_restarted)},
};

#undef AT

/* ---- the store --------------------------------------------------------------------------------
 */

_Static_assert(sizeof(struct store_stats) <= METRICS_SNAPSHOT_BYTES, "it fits");

static void
read_store(void *context, void *snapshot)
{
    const struct service *service = context;

    if (service->store)
        store_get_stats(service->store, snapshot);
}

#define AT(field) offsetof(struct store_stats, field)
#define COUNT(which) AT(counts) + (which) * sizeof(uint64_t)
#define HELP_READS "Reads from the store, by result; damaged files count, too."
#define HELP_WAYS "Records read from the store: from the kernel's memory, by io_uring, by threads."
#define HELP_WRITES "Pages for the store, by result; those that were reinserted were written before."

static const struct metric_row store_rows[] = {
    {"store_objects", "", GAUGE, "", "Pages in the store.", AT(objects)},
    {"store_bytes", "", GAUGE, "bytes", "Bytes of the files of the store.", AT(bytes)},
    {"store_capacity_bytes", "", GAUGE, "bytes", "Most bytes of these files.", AT(max_bytes)},
    {"store_index_bytes", "", GAUGE, "bytes",
     "Memory that the index of the store takes.", AT(index_bytes)},
    {"store_loaded", "", GAUGE, "",
     "1 if all that is in the store is known, 0 while it is read at the start.", AT(loaded)},
    {"store_sick", "", GAUGE, "",
     "1 while the store is not used since its disk is slow or fails.", AT(sick)},
    {"store_written_bytes", "", COUNTER, "bytes",
     "Bytes written to segments of the store.", AT(written_bytes)},
    {"store_reads", "result=\"hit\"", COUNTER, "", HELP_READS, COUNT(STORE_HITS)},
    {"store_reads", "result=\"miss\"", COUNTER, "", HELP_READS, COUNT(STORE_MISSES)},
    {"store_reads", "result=\"damaged\"", COUNTER, "", HELP_READS, COUNT(STORE_DAMAGED)},
    {"store_reads", "result=\"error\"", COUNTER, "", HELP_READS, COUNT(STORE_READ_ERRORS)},
    {"store_reads", "result=\"refused\"", COUNTER, "", HELP_READS, COUNT(STORE_READ_REFUSED)},
    {"store_reads", "result=\"late\"", COUNTER, "", HELP_READS, COUNT(STORE_READ_LATE)},
    {"store_records_read", "way=\"memory\"", COUNTER, "", HELP_WAYS, COUNT(STORE_READ_AT_ONCE)},
    {"store_records_read", "way=\"ring\"", COUNTER, "", HELP_WAYS, COUNT(STORE_READ_BY_RING)},
    {"store_records_read", "way=\"thread\"", COUNTER, "", HELP_WAYS, COUNT(STORE_READ_BY_THREAD)},
    {"store_writes", "result=\"written\"", COUNTER, "", HELP_WRITES, COUNT(STORE_WRITTEN)},
    {"store_writes", "result=\"error\"", COUNTER, "", HELP_WRITES, COUNT(STORE_WRITE_ERRORS)},
    {"store_writes", "result=\"refused\"", COUNTER, "", HELP_WRITES, COUNT(STORE_WRITE_REFUSED)},
    {"store_writes", "result=\"reinserted\"", COUNTER, "", HELP_WRITES, COUNT(STORE_REINSERTED)},
    {"store_evicted", "", COUNTER, "",
     "Pages that were removed from the store to keep its size.", COUNT(STORE_EVICTED)},
    {"store_purges", "", COUNTER, "",
     "Purges that were noted in the journal of the store.", COUNT(STORE_PURGES)},
};

#undef AT

_Static_assert(STORE_COUNTS == 15, "each count has a row");

/* ---- the shared tier --------------------------------------------------------------------------
 */

_Static_assert(sizeof(struct tier_stats) <= METRICS_SNAPSHOT_BYTES, "it fits");

static void
read_tier(void *context, void *snapshot)
{
    const struct service *service = context;

    if (service->tier)
        tier_get_stats(service->tier, snapshot);
}

#define AT(field) offsetof(struct tier_stats, field)
#define COUNT(which) AT(counts) + (which) * sizeof(uint64_t)
#define HELP_ASKED "Requests for pages of the shared tier, by result."
#define HELP_SHARED_WRITES "Pages for the shared tier, by result."

static const struct metric_row tier_rows[] = {
    {"shared_servers", "", GAUGE, "", "Servers of the shared tier.", AT(servers)},
    {"shared_servers_up", "", GAUGE, "", "Of these, those that are used.", AT(up)},
    {"shared_clock_differs", "", GAUGE, "",
     "1 while the shared tier is not used since this clock differs from the servers'.", AT(left)},
    {"shared_reads", "result=\"hit\"", COUNTER, "", HELP_ASKED, COUNT(TIER_HITS)},
    {"shared_reads", "result=\"miss\"", COUNTER, "", HELP_ASKED, COUNT(TIER_MISSES)},
    {"shared_reads", "result=\"late\"", COUNTER, "", HELP_ASKED, COUNT(TIER_LATE)},
    {"shared_reads", "result=\"passed\"", COUNTER, "", HELP_ASKED, COUNT(TIER_PASSED)},
    {"shared_reads", "result=\"refused\"", COUNTER, "", HELP_ASKED, COUNT(TIER_REFUSED)},
    {"shared_waited_hits", "", COUNTER, "",
     "Of the hits, those for which another daemon was waited for.", COUNT(TIER_SHARED)},
    {"shared_waits_given_up", "", COUNTER, "",
     "Misses since another daemon has not fetched in time.", COUNT(TIER_GIVEN_UP)},
    {"shared_outdated", "", COUNTER, "", "Pages there that were purged.", COUNT(TIER_OUTDATED)},
    {"shared_invalid", "", COUNTER, "", "Values there that did not verify.", COUNT(TIER_INVALID)},
    {"shared_writes", "result=\"written\"", COUNTER, "", HELP_SHARED_WRITES, COUNT(TIER_STORED)},
    {"shared_writes", "result=\"refused\"", COUNTER, "", HELP_SHARED_WRITES,
     COUNT(TIER_NOT_STORED)},
    {"shared_purges", "", COUNTER, "", "Purges written to the servers, counted at each.",
     COUNT(TIER_PURGES)},
    {"shared_purges_taken", "", COUNTER, "", "Purges of other daemons that were taken.",
     COUNT(TIER_PURGES_TAKEN)},
    {"shared_lost", "", COUNTER, "",
     "Times that all had to be removed, since a server had lost what was purged.",
     COUNT(TIER_LOST)},
};

#undef AT
#undef COUNT

_Static_assert(TIER_COUNTS == 14, "each count has a row");

/* ---- peers ------------------------------------------------------------------------------------
 */

static void
read_peers(void *context, void *snapshot)
{
    const struct service *service = context;

    if (service->news)
        peer_news_get_stats(service->news, snapshot);
}

#define AT(field) offsetof(struct peer_news_stats, field)

static const struct metric_row peer_rows[] = {
    {"peers_reached", "", GAUGE, "", "Peers that take news of this daemon.", AT(reached)},
    {"peer_news_told", "", COUNTER, "", "Purges and writes that peers were to be told.", AT(told)},
    {"peer_news_taken", "", COUNTER, "",
     "Purges and writes of peers that were taken, most of them told twice.", AT(taken)},
    {"peer_news_missed", "", COUNTER, "",
     "Times that everything was expired, since news of a peer were missed.", AT(missed)},
    {"peer_news_lost", "", COUNTER, "",
     "Times that a peer has missed news, since it could not be reached.", AT(lost)},
};

#undef AT

/* ---- memory -----------------------------------------------------------------------------------
 */

struct memory_snapshot {
    uint64_t limit;
    uint64_t kinds[MEMORY_KINDS];
    uint64_t refusals;
    uint64_t reclaimed;
};

static void
read_memory(void *context, void *snapshot)
{
    struct service *service = context;
    struct memory_snapshot *s = snapshot;

    s->limit = service->memory.limit;
    for (unsigned kind = 0; kind < MEMORY_KINDS; kind++)
        s->kinds[kind] = memory_used(&service->memory, (enum memory_kind)kind);
    s->refusals = memory_refusals(&service->memory);
    s->reclaimed = atomic_load(&service->reclaimed.bytes);
}

#define AT(field) offsetof(struct memory_snapshot, field)
#define USED(kind) AT(kinds) + (kind) * sizeof(uint64_t)
#define HELP_MEMORY "Memory beside the cache, by what takes it."

static const struct metric_row memory_rows[] = {
    {"memory_limit_bytes", "", GAUGE, "bytes", "Limit of the memory beside the cache.", AT(limit)},
    {"memory_bytes", "kind=\"pages\"", GAUGE, "bytes", HELP_MEMORY, USED(MEMORY_PAGES)},
    {"memory_bytes", "kind=\"fetches\"", GAUGE, "bytes", HELP_MEMORY, USED(MEMORY_FETCHES)},
    {"memory_bytes", "kind=\"records\"", GAUGE, "bytes", HELP_MEMORY, USED(MEMORY_RECORDS)},
    {"memory_bytes", "kind=\"requests\"", GAUGE, "bytes", HELP_MEMORY, USED(MEMORY_REQUESTS)},
    {"memory_bytes", "kind=\"replies\"", GAUGE, "bytes", HELP_MEMORY, USED(MEMORY_REPLIES)},
    {"memory_bytes", "kind=\"failed\"", GAUGE, "bytes", HELP_MEMORY, USED(MEMORY_FAILED)},
    {"memory_refusals", "", COUNTER, "", "Times that memory was refused at the limit.",
     AT(refusals)},
    {"memory_reclaimed_bytes", "", COUNTER, "bytes",
     "Bytes evicted from the cache because an allocation had failed.", AT(reclaimed)},
};

#undef AT

_Static_assert(MEMORY_KINDS == 6, "each kind has a row");

/* ---- the cache --------------------------------------------------------------------------------
 */

struct cache_snapshot {
    struct cache_stats stats;
    uint64_t capacity_pages;
    uint64_t capacity_bytes;
    uint64_t shards;
};

_Static_assert(sizeof(struct cache_snapshot) <= METRICS_SNAPSHOT_BYTES, "it fits");

static void
read_cache(void *context, void *snapshot)
{
    struct cache_snapshot *s = snapshot;
    struct cache_config config;

    cache_get_stats(context, &s->stats);
    cache_get_config(context, &config);
    s->capacity_pages = config.capacity_pages;
    s->capacity_bytes = config.capacity_bytes;
    s->shards = config.shards;
}

#define AT(field) offsetof(struct cache_snapshot, field)
#define HELP_OBJECTS                                                                              \
    "Entries of the cache: pages, pages that are fetched to be stored, URLs whose pages are not " \
    "shared, URLs whose pages vary by a field."

static const struct metric_row cache_rows[] = {
    {"cache_pages", "", GAUGE, "", "Pages in the cache.", AT(stats.pages)},
    {"cache_bytes", "", GAUGE, "bytes",
     "Bytes that the pages in the cache count, bookkeeping included.", AT(stats.bytes)},
    {"cache_objects", "state=\"ready\"", GAUGE, "", HELP_OBJECTS, AT(stats.pages)},
    {"cache_objects", "state=\"busy\"", GAUGE, "", HELP_OBJECTS, AT(stats.busy)},
    {"cache_objects", "state=\"hit_for_miss\"", GAUGE, "", HELP_OBJECTS,
     AT(stats.passed)},
    {"cache_objects", "state=\"vary\"", GAUGE, "", HELP_OBJECTS, AT(stats.varied)},
    {"cache_capacity_pages", "", GAUGE, "", "Capacity in pages; 0: not bounded.",
     AT(capacity_pages)},
    {"cache_capacity_bytes", "", GAUGE, "bytes", "Capacity in bytes; 0: not bounded.",
     AT(capacity_bytes)},
    {"cache_shards", "", GAUGE, "", "Parts of the cache with a lock each.", AT(shards)},
    {"cache_insertions", "", COUNTER, "", "Pages stored, replacements included.",
     AT(stats.insertions)},
    {"cache_evictions", "", COUNTER, "", "Pages evicted.", AT(stats.evictions)},
};

#undef AT

/* ---- the fetcher ------------------------------------------------------------------------------
 */

_Static_assert(sizeof(struct fetch_stats) <= METRICS_SNAPSHOT_BYTES, "it fits");

static void
read_fetcher(void *context, void *snapshot)
{
    fetcher_get_stats(context, snapshot);
}

#define AT(field) offsetof(struct fetch_stats, field)
#define HELP_RETRIES "Requests that failed at a member and could go to another, by result."

static const struct metric_row fetcher_rows[] = {
    {"fetches_active", "", GAUGE, "", "Fetches under way.", AT(active)},
    {"fetches_waiting", "", GAUGE, "",
     "Fetches under way that wait for a name, a connection or the first byte.", AT(waiting)},
    {"fetches_queued", "", GAUGE, "", "Fetches that have not begun.", AT(queued)},
    {"fetches_started", "", COUNTER, "", "Fetches begun.", AT(started)},
    {"fetches_displaced", "", COUNTER, "",
     "Fetches given up because too many were queued.", AT(displaced)},
    {"origin_retries", "result=\"sent\"", COUNTER, "", HELP_RETRIES, AT(retried)},
    {"origin_retries", "result=\"refused\"", COUNTER, "", HELP_RETRIES, AT(refused)},
    {"fetched_bytes", "", COUNTER, "bytes",
     "Bytes of bodies from origins, as they came over the network.", AT(bytes)},
};

#undef AT

/* ---- all of them ------------------------------------------------------------------------------
 */

#define SOURCE(rows, read)                              \
    {                                                   \
        rows, sizeof(rows) / sizeof((rows)[0]), read, 0 \
    }

static const struct metric_source service_sources[] = {
    SOURCE(service_rows, read_service), SOURCE(rpc_rows, read_rpc),
    SOURCE(tunnel_rows, read_tunnels),  SOURCE(cursor_rows, read_cursors),
    SOURCE(user_rows, read_users),      SOURCE(store_rows, read_store),
    SOURCE(tier_rows, read_tier),       SOURCE(peer_rows, read_peers),
    SOURCE(memory_rows, read_memory),
};

const struct metric_source metric_source_cache = SOURCE(cache_rows, read_cache);
static const struct metric_source fetcher_source = SOURCE(fetcher_rows, read_fetcher);

bool
service_metrics_register(struct metrics *metrics, struct service *service)
{
    for (size_t i = 0; i < sizeof(service_sources) / sizeof(service_sources[0]); i++)
        if (!metrics_register(metrics, &service_sources[i], service))
            return false;
    return origin_report_register(service->report, metrics) &&
           metrics_register(metrics, &metric_source_cache, service->cache) &&
           metrics_register(metrics, &fetcher_source, service->fetcher);
}

bool
service_metrics_list(FILE *out)
{
    static const char *const kinds[] = {
        [METRIC_KIND_COUNTER] = "counter",
        [METRIC_KIND_GAUGE] = "gauge",
        [METRIC_KIND_HISTOGRAM] = "histogram",
    };
    struct service nothing = {.report = origin_report_create()};
    struct metrics *metrics = metrics_create(0);
    bool done = metrics && nothing.report && service_metrics_register(metrics, &nothing);

    for (size_t i = 0; done && i < metrics_row_count(metrics); i++) {
        const struct metric_row *row = metrics_row(metrics, i);

        if (!row)
            continue;
        fprintf(out, row->labels[0] ? "%s{%s}" : "%s%s", row->name, row->labels);
        fprintf(out, "\t%s\t%s\t%s\n", kinds[row->kind], row->unit, row->help);
    }
    metrics_destroy(metrics);
    origin_report_destroy(nothing.report);
    return done;
}
