#include "client/stat_rows.h"

#include <stdlib.h>
#include <string.h>

/*
 * The well-known metrics: the server's name, the key in JSON, the label for people, in the order of
 * the table.
 */
static const struct known {
    const char *name, *key, *label;
} known[] = {
    {"workers", "workers", NULL},
    {"cache_shards", "shards", NULL},
    {"uptime_microseconds", "uptime_us", NULL},
    {"cache_capacity_pages", "capacity_urls", NULL},
    {"cache_capacity_bytes", "capacity_bytes", NULL},
    {"cache_pages", "pages", "pages in the cache"},
    {"cache_bytes", "bytes", "bytes in the cache"},
    {"cache_objects", "objects", "entries of the cache"},
    {"cache_objects{state=\"ready\"}", "objects_ready", "- complete"},
    {"cache_objects{state=\"busy\"}", "objects_busy", "- being fetched"},
    {"cache_objects{state=\"hit_for_miss\"}", "objects_hit_for_miss", "- not shared"},
    {"cache_objects{state=\"vary\"}", "objects_vary", "- of varying URLs"},
    {"requests", "requests", "requests"},
    {"requests{outcome=\"hit\"}", "hits", "hits"},
    {"requests{outcome=\"miss\"}", "misses", "misses"},
    {"requests{outcome=\"coalesced\"}", "coalesced", "coalesced"},
    {"requests{outcome=\"bypass\"}", "bypasses", "bypasses"},
    {"requests{outcome=\"revalidated\"}", "revalidated", "revalidated"},
    {"requests{outcome=\"stale\"}", "stale", "stale"},
    {"requests{outcome=\"failure\"}", "failures", "failures"},
    {"responses_cut", "responses_cut", "responses cut off"},
    {"front_requests", "requests_answered", "requests of fronts"},
    {"front_requests{front=\"rpc1\"}", "requests_rpc1", "- RPC version 1"},
    {"front_requests{front=\"rpc2\"}", "requests_rpc2", "- RPC version 2"},
    {"front_requests{front=\"http\"}", "requests_http", "- HTTP"},
    {"http_responses", "http_responses", "HTTP responses"},
    {"http_responses{class=\"1xx\"}", "http_1xx", "- of class 1xx"},
    {"http_responses{class=\"2xx\"}", "http_2xx", "- of class 2xx"},
    {"http_responses{class=\"3xx\"}", "http_3xx", "- of class 3xx"},
    {"http_responses{class=\"4xx\"}", "http_4xx", "- of class 4xx"},
    {"http_responses{class=\"5xx\"}", "http_5xx", "- of class 5xx"},
    {"served_bytes", "bytes_served", "bytes served"},
    {"served_bytes{source=\"cache\"}", "bytes_hit", "- from the cache"},
    {"served_bytes{source=\"origin\"}", "bytes_missed", "- from origins"},
    {"front_body_bytes", "body_bytes", "bytes of bodies sent"},
    {"front_body_bytes{front=\"rpc1\"}", "body_bytes_rpc1", "- RPC version 1"},
    {"front_body_bytes{front=\"rpc2\"}", "body_bytes_rpc2", "- RPC version 2"},
    {"front_body_bytes{front=\"http\"}", "body_bytes_http", "- HTTP"},
    {"fetched_bytes", "bytes_fetched", "bytes fetched"},
    {"cache_insertions", "insertions", "insertions"},
    {"cache_evictions", "evictions", "evictions"},
    {"connections", "connections", "connections open"},
    {"connections_accepted", "connections_total", "connections accepted"},
    {"connections_refused", "connections_refused", "connections refused"},
    {"connections_refused{reason=\"full\"}", "refused_full", "- too many in all"},
    {"connections_refused{reason=\"client\"}", "refused_client", "- of one client"},
    {"connections_refused{reason=\"descriptors\"}", "refused_descriptors", "- no descriptor"},
    {"connections_refused{reason=\"memory\"}", "refused_memory", "- no memory"},
    {"connections_timed_out", "connections_timed_out", "connections timed out"},
    {"received_bytes", "bytes_received", "bytes received"},
    {"sent_bytes", "bytes_sent", "bytes sent"},
    {"clients", "clients", "clients known"},
    {"calls", "calls", "RPC calls"},
    {"calls_bad", "calls_bad", "RPC calls failed"},
    {"calls_delayed", "calls_delayed", "RPC calls delayed"},
    {"fetches_active", "fetches_active", "fetches under way"},
    {"fetches_waiting", "fetches_waiting", "- without answer"},
    {"fetches_queued", "fetches_queued", "fetches queued"},
    {"fetches_started", "fetches_started", "fetches started"},
    {"origin_fetches", "origin_fetches", "fetches ended"},
    {"origin_fetches{result=\"ok\"}", "origin_ok", "- complete"},
    {"origin_fetches{result=\"bad_url\"}", "origin_bad_url", "- bad URLs"},
    {"origin_fetches{result=\"bad_headers\"}", "origin_bad_headers", "- bad fields"},
    {"origin_fetches{result=\"denied\"}", "origin_denied", "- denied"},
    {"origin_fetches{result=\"resolve_failed\"}", "origin_resolve_failed", "- names unresolved"},
    {"origin_fetches{result=\"connect_failed\"}", "origin_connect_failed", "- not connected"},
    {"origin_fetches{result=\"tls_failed\"}", "origin_tls_failed", "- TLS failed"},
    {"origin_fetches{result=\"timed_out\"}", "origin_timed_out", "- timed out"},
    {"origin_fetches{result=\"origin_broke\"}", "origin_origin_broke", "- broken by origins"},
    {"origin_fetches{result=\"too_large\"}", "origin_too_large", "- too large"},
    {"origin_fetches{result=\"overloaded\"}", "origin_overloaded", "- overloaded"},
    {"origin_fetches{result=\"stopping\"}", "origin_stopping", "- stopped"},
    {"origin_fetches{result=\"internal\"}", "origin_internal", "- internal failures"},
    {"origin_fetches{result=\"down\"}", "origin_down", "- origins down"},
    {"origin_fetches{result=\"cancelled\"}", "origin_cancelled", "- cancelled"},
    {"origin_failures", "origin_failures", "failures of origins"},
    {"origin_failures{origin=\"other\"}", "origin_failures_other", "- that no row names"},
    {"origin_fetches_queued", "origin_fetches_queued", "fetches delayed"},
    {"origin_fetches_queued{origin=\"other\"}", "origin_fetches_queued_other",
     "- that no row names"},
    {"origin_requests", "origin_requests", "requests of origins"},
    {"origin_requests{origin=\"other\"}", "origin_requests_other", "- of later members"},
    {"origin_in_flight", "origin_in_flight", "in flight at origins"},
    {"origin_in_flight{origin=\"other\"}", "origin_in_flight_other", "- of later members"},
    {"fetches_displaced", "fetches_displaced", "fetches displaced"},
    {"origin_retries", "origin_retries", "retries of requests"},
    {"origin_retries{result=\"sent\"}", "origin_retries_sent", "- sent"},
    {"origin_retries{result=\"refused\"}", "origin_retries_refused", "- over the budget"},
    {"fetches_refused", "fetches_refused", "fetches refused"},
    {"tunnels", "tunnels", "tunnels open"},
    {"tunnels_opened", "tunnels_opened", "tunnels opened"},
    {"tunnel_bytes{direction=\"sent\"}", "tunnel_bytes_sent", "- bytes to origins"},
    {"tunnel_bytes{direction=\"received\"}", "tunnel_bytes_received", "- bytes from origins"},
    {"cursors", "cursors", "large bodies open"},
    {"cursors_opened", "cursors_opened", "large bodies begun"},
    {"cursors_refused", "cursors_refused", "- refused"},
    {"cursors_ended{reason=\"released\"}", "cursors_released", "- released"},
    {"cursors_ended{reason=\"disconnected\"}", "cursors_disconnected", "- disconnected"},
    {"cursors_ended{reason=\"expired\"}", "cursors_expired", "- expired"},
    {"cursors_ended{reason=\"displaced\"}", "cursors_displaced", "- displaced"},
    {"cursors_ended{reason=\"failed\"}", "cursors_failed", "- failed"},
    {"user_checks", "user_checks", "checks of users"},
    {"user_checks{answer=\"accepted\"}", "user_checks_accepted", "- accepted"},
    {"user_checks{answer=\"refused\"}", "user_checks_refused", "- refused"},
    {"user_checks{answer=\"unavailable\"}", "user_checks_unavailable", "- not possible"},
    {"user_checks_cached", "user_checks_cached", "users known"},
    {"user_checks_pending", "user_checks_pending", "checks pending"},
    {"user_helpers", "user_helpers", "helpers running"},
    {"user_helpers_restarted", "user_helpers_restarted", "- restarted"},
    {"store_objects", "store_objects", "pages in the store"},
    {"store_bytes", "store_bytes", "- bytes of files"},
    {"store_capacity_bytes", "store_capacity", "- most bytes"},
    {"store_index_bytes", "store_index", "- memory of the index"},
    {"store_loaded", "store_loaded", "- loaded"},
    {"store_sick", "store_sick", "- sick"},
    {"store_written_bytes", "store_written_bytes", "- bytes written"},
    {"store_reads", "store_reads", "- reads"},
    {"store_reads{result=\"hit\"}", "store_reads_hit", "- found"},
    {"store_reads{result=\"miss\"}", "store_reads_miss", "- not there"},
    {"store_reads{result=\"damaged\"}", "store_reads_damaged", "- damaged"},
    {"store_reads{result=\"error\"}", "store_reads_error", "- failed"},
    {"store_reads{result=\"refused\"}", "store_reads_refused", "- refused"},
    {"store_reads{result=\"late\"}", "store_reads_late", "- too late"},
    {"store_records_read", "store_records_read", "- records read"},
    {"store_records_read{way=\"memory\"}", "store_records_read_memory", "- from memory"},
    {"store_records_read{way=\"ring\"}", "store_records_read_ring", "- by io_uring"},
    {"store_records_read{way=\"thread\"}", "store_records_read_thread", "- by threads"},
    {"store_writes", "store_writes", "- writes"},
    {"store_writes{result=\"written\"}", "store_writes_written", "- written"},
    {"store_writes{result=\"error\"}", "store_writes_error", "- failed"},
    {"store_writes{result=\"refused\"}", "store_writes_refused", "- refused"},
    {"store_writes{result=\"reinserted\"}", "store_writes_reinserted", "- written again"},
    {"store_evicted", "store_evicted", "- pages removed"},
    {"store_purges", "store_purges", "- purges noted"},
    {"shared_servers", "shared_servers", "servers of the shared tier"},
    {"shared_servers_up", "shared_servers_up", "- used"},
    {"shared_clock_differs", "shared_clock_differs", "- clock differs"},
    {"shared_reads", "shared_reads", "- requests"},
    {"shared_reads{result=\"hit\"}", "shared_reads_hit", "- found"},
    {"shared_reads{result=\"miss\"}", "shared_reads_miss", "- not there"},
    {"shared_reads{result=\"late\"}", "shared_reads_late", "- too late"},
    {"shared_reads{result=\"passed\"}", "shared_reads_passed", "- past a slow server"},
    {"shared_reads{result=\"refused\"}", "shared_reads_refused", "- refused"},
    {"shared_waited_hits", "shared_waited_hits", "- waited for"},
    {"shared_waits_given_up", "shared_waits_given_up", "- waits given up"},
    {"shared_outdated", "shared_outdated", "- purged"},
    {"shared_invalid", "shared_invalid", "- invalid"},
    {"shared_writes", "shared_writes", "- writes"},
    {"shared_writes{result=\"written\"}", "shared_writes_written", "- written"},
    {"shared_writes{result=\"refused\"}", "shared_writes_refused", "- refused"},
    {"shared_purges", "shared_purges", "- purges written"},
    {"shared_purges_taken", "shared_purges_taken", "- purges taken"},
    {"shared_lost", "shared_lost", "- purges lost"},
    {"peers_reached", "peers_reached", "peers reached"},
    {"peer_news_told", "peer_news_told", "- news told"},
    {"peer_news_taken", "peer_news_taken", "- news taken"},
    {"peer_news_missed", "peer_news_missed", "- news missed"},
    {"peer_news_lost", "peer_news_lost", "- news that peers missed"},
    {"log_lines_lost", "log_lines_lost", "log lines lost"},
    {"request_db_written", "request_db_written", "request rows written"},
    {"request_db_dropped", "request_db_dropped", "- dropped"},
    {"request_db_removed", "request_db_removed", "- removed"},
    {"request_db_errors", "request_db_errors", "- write errors"},
    {"memory_limit_bytes", "memory_limit", "memory limit"},
    {"memory_bytes{kind=\"pages\"}", "memory_pages", "- pages outside"},
    {"memory_bytes{kind=\"fetches\"}", "memory_fetches", "- fetches"},
    {"memory_bytes{kind=\"records\"}", "memory_records", "- calls in part"},
    {"memory_bytes{kind=\"requests\"}", "memory_requests", "- requests"},
    {"memory_bytes{kind=\"replies\"}", "memory_replies", "- replies"},
    {"memory_bytes{kind=\"failed\"}", "memory_failed", "- failed bodies"},
    {"memory_refusals", "memory_refusals", "memory refusals"},
    {"memory_reclaimed_bytes", "memory_reclaimed", "memory reclaimed"},
};

static const struct known histograms[] = {
    {"hit_duration_microseconds", NULL, "time of a hit"},
    {"miss_duration_microseconds", NULL, "time of a miss"},
    {"origin_first_byte_microseconds", NULL, "origin's response"},
};

#define KNOWN (sizeof(known) / sizeof(known[0]))

static bool
ends_in(const char *name, const char *suffix)
{
    size_t family = strcspn(name, "{"), len = strlen(suffix);

    return family >= len && strncmp(name + family - len, suffix, len) == 0;
}

static struct stat_row
row_of(const proxy_stats *stats, const struct known *of, const proxy_metric *metric)
{
    return (struct stat_row){
        .name = of->name,
        .key = of->key,
        .label = of->label,
        .unit = ends_in(of->name, "_bytes")          ? STAT_BYTES
                : ends_in(of->name, "_microseconds") ? STAT_MICROSECONDS
                                                     : STAT_PLAIN,
        .has_rate = metric->kind == PROXY_COUNTER,
        .value = server_stats_value(stats, of->name),
    };
}

static bool
is_known(const char *name)
{
    for (size_t i = 0; i < KNOWN; i++)
        if (strcmp(known[i].name, name) == 0)
            return true;
    return false;
}

struct stat_row *
stat_rows_make(const proxy_stats *stats, size_t *count)
{
    struct stat_row *rows = calloc(KNOWN + stats->metrics.metrics_len, sizeof(*rows));
    struct server_stats_histogram histogram;

    *count = 0;
    if (!rows)
        return NULL;
    for (size_t i = 0; i < KNOWN; i++) {
        const proxy_metric *metric = server_stats_find(stats, known[i].name);

        if (metric)
            rows[(*count)++] = row_of(stats, &known[i], metric);
    }
    for (unsigned i = 0; i < stats->metrics.metrics_len;) {
        const proxy_metric *metric = &stats->metrics.metrics_val[i];
        const struct known unknown = {metric->name, metric->name, metric->name};

        if (server_stats_read_histogram(stats, i, &histogram, &i))
            continue;
        if (!is_known(metric->name)) {
            rows[*count] = row_of(stats, &unknown, metric);
            rows[(*count)++].value = metric->value;
        }
        i++;
    }
    return rows;
}

const char *
stat_rows_histogram_label(const char *name)
{
    for (size_t i = 0; i < sizeof(histograms) / sizeof(histograms[0]); i++)
        if (strcmp(histograms[i].name, name) == 0)
            return histograms[i].label;
    return name;
}
