#include "proxy/metric_sources.h"

#include "cache/cache.h"
#include "fetch/fetch.h"

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
    {"cache_pages", "", METRIC_KIND_GAUGE, "", "Pages in the cache.", AT(stats.pages)},
    {"cache_bytes", "", METRIC_KIND_GAUGE, "bytes",
     "Bytes that the pages in the cache count, bookkeeping included.", AT(stats.bytes)},
    {"cache_objects", "state=\"ready\"", METRIC_KIND_GAUGE, "", HELP_OBJECTS, AT(stats.pages)},
    {"cache_objects", "state=\"busy\"", METRIC_KIND_GAUGE, "", HELP_OBJECTS, AT(stats.busy)},
    {"cache_objects", "state=\"hit_for_miss\"", METRIC_KIND_GAUGE, "", HELP_OBJECTS,
     AT(stats.passed)},
    {"cache_objects", "state=\"vary\"", METRIC_KIND_GAUGE, "", HELP_OBJECTS, AT(stats.varied)},
    {"cache_capacity_pages", "", METRIC_KIND_GAUGE, "", "Capacity in pages; 0: not bounded.",
     AT(capacity_pages)},
    {"cache_capacity_bytes", "", METRIC_KIND_GAUGE, "bytes", "Capacity in bytes; 0: not bounded.",
     AT(capacity_bytes)},
    {"cache_shards", "", METRIC_KIND_GAUGE, "", "Parts of the cache with a lock each.", AT(shards)},
    {"cache_insertions", "", METRIC_KIND_COUNTER, "", "Pages stored, replacements included.",
     AT(stats.insertions)},
    {"cache_evictions", "", METRIC_KIND_COUNTER, "", "Pages evicted.", AT(stats.evictions)},
};

#undef AT

const struct metric_source metric_source_cache = {
    .rows = cache_rows,
    .count = sizeof(cache_rows) / sizeof(cache_rows[0]),
    .read = read_cache,
};

/* ---- the fetcher ------------------------------------------------------------------------------
 */

_Static_assert(sizeof(struct fetch_stats) <= METRICS_SNAPSHOT_BYTES, "it fits");

static void
read_fetcher(void *context, void *snapshot)
{
    fetcher_get_stats(context, snapshot);
}

#define AT(field) offsetof(struct fetch_stats, field)

static const struct metric_row fetcher_rows[] = {
    {"fetches_active", "", METRIC_KIND_GAUGE, "", "Fetches under way.", AT(active)},
    {"fetches_waiting", "", METRIC_KIND_GAUGE, "",
     "Fetches under way that wait for a name, a connection or the first byte.", AT(waiting)},
    {"fetches_queued", "", METRIC_KIND_GAUGE, "", "Fetches that have not begun.", AT(queued)},
    {"fetches_started", "", METRIC_KIND_COUNTER, "", "Fetches begun.", AT(started)},
    {"fetches_displaced", "", METRIC_KIND_COUNTER, "",
     "Fetches given up because too many were queued.", AT(displaced)},
    {"fetched_bytes", "", METRIC_KIND_COUNTER, "bytes",
     "Bytes of bodies from origins, as they came over the network.", AT(bytes)},
};

#undef AT

const struct metric_source metric_source_fetcher = {
    .rows = fetcher_rows,
    .count = sizeof(fetcher_rows) / sizeof(fetcher_rows[0]),
    .read = read_fetcher,
};
