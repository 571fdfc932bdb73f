/*
 * The metrics of the daemon: counters, gauges and histograms, each a row of one table with its
 * name, unit and help. Whatever serves statistics reads the table and has no code per metric.
 *
 * There are two kinds of rows:
 * - Rows of the tables below are counted here. Each worker has a slot of its own, on cache lines of
 *   its own, which only that worker writes, without a locked instruction; readers sum the slots.
 *   Calls on the fetcher's thread have a slot as well: metrics_fetcher_slot().
 * - Rows of a source are numbers that another module keeps (cache, fetcher, connections, memory).
 *   The owner of the number registers the source; it is read when the metrics are read.
 *
 * Names are those of OpenMetrics families without a prefix: lower case, digits and underscores, the
 * unit last. They do not end in _total, _bucket, _sum, _count, _created or _info, which OpenMetrics
 * adds. A row of a family with labels is written as OpenMetrics writes it: requests{outcome="hit"}.
 */
#ifndef SUNPROXY_METRICS_METRICS_H
#define SUNPROXY_METRICS_METRICS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- our own rows ---------------------------------------------------------------------------- */

/*
 * A row is X(IDENTIFIER, name, labels, unit, help). One that is added here has a slot per worker,
 * is served by PROXY_STAT, and is listed by `sunproxyd --list-metrics`. Rows of one family (the
 * same name) stand together, differ in their labels, and have the same unit and help.
 */
#define HELP_REQUESTS "Requests that the cache or an origin answered, by outcome; of all fronts."
#define HELP_SERVED_BYTES "Bytes of bodies in answers, by where the body came from."
#define HELP_FRONT_REQUESTS "Requests answered, by front: a version of RPC, or HTTP."
#define HELP_FRONT_BYTES "Bytes of bodies sent, by front."
#define HELP_HTTP_RESPONSES "Responses over HTTP, the proxy's own included, by class of status."
#define HELP_ORIGIN_FETCHES "Fetches from origins that have ended, by result."

/* clang-format off */
#define METRICS_COUNTERS(X) \
    X(REQUESTS_HIT,         "requests", "outcome=\"hit\"",         "", HELP_REQUESTS) \
    X(REQUESTS_MISS,        "requests", "outcome=\"miss\"",        "", HELP_REQUESTS) \
    X(REQUESTS_COALESCED,   "requests", "outcome=\"coalesced\"",   "", HELP_REQUESTS) \
    X(REQUESTS_BYPASS,      "requests", "outcome=\"bypass\"",      "", HELP_REQUESTS) \
    X(REQUESTS_REVALIDATED, "requests", "outcome=\"revalidated\"", "", HELP_REQUESTS) \
    X(REQUESTS_STALE,       "requests", "outcome=\"stale\"",       "", HELP_REQUESTS) \
    X(REQUESTS_FAILURE,     "requests", "outcome=\"failure\"",     "", HELP_REQUESTS) \
    X(RESPONSES_CUT,        "responses_cut", "", "", \
      "Responses that broke off after their head, since their fetch failed; of all fronts.") \
    X(SERVED_BYTES_CACHE,   "served_bytes", "source=\"cache\"",  "bytes", HELP_SERVED_BYTES) \
    X(SERVED_BYTES_ORIGIN,  "served_bytes", "source=\"origin\"", "bytes", HELP_SERVED_BYTES) \
    X(FRONT_REQUESTS_RPC1, "front_requests", "front=\"rpc1\"", "", HELP_FRONT_REQUESTS) \
    X(FRONT_REQUESTS_RPC2, "front_requests", "front=\"rpc2\"", "", HELP_FRONT_REQUESTS) \
    X(FRONT_REQUESTS_HTTP, "front_requests", "front=\"http\"", "", HELP_FRONT_REQUESTS) \
    X(FRONT_BYTES_RPC1, "front_body_bytes", "front=\"rpc1\"", "bytes", HELP_FRONT_BYTES) \
    X(FRONT_BYTES_RPC2, "front_body_bytes", "front=\"rpc2\"", "bytes", HELP_FRONT_BYTES) \
    X(FRONT_BYTES_HTTP, "front_body_bytes", "front=\"http\"", "bytes", HELP_FRONT_BYTES) \
    /* in the order of the classes */ \
    X(HTTP_RESPONSES_1XX, "http_responses", "class=\"1xx\"", "", HELP_HTTP_RESPONSES) \
    X(HTTP_RESPONSES_2XX, "http_responses", "class=\"2xx\"", "", HELP_HTTP_RESPONSES) \
    X(HTTP_RESPONSES_3XX, "http_responses", "class=\"3xx\"", "", HELP_HTTP_RESPONSES) \
    X(HTTP_RESPONSES_4XX, "http_responses", "class=\"4xx\"", "", HELP_HTTP_RESPONSES) \
    X(HTTP_RESPONSES_5XX, "http_responses", "class=\"5xx\"", "", HELP_HTTP_RESPONSES) \
    /* in the order of enum failure, and named by failure_word() */ \
    X(FETCHES_OK,          "origin_fetches", "result=\"ok\"",             "", HELP_ORIGIN_FETCHES) \
    X(FETCHES_BAD_URL,     "origin_fetches", "result=\"bad_url\"",        "", HELP_ORIGIN_FETCHES) \
    X(FETCHES_BAD_FIELDS,  "origin_fetches", "result=\"bad_headers\"",    "", HELP_ORIGIN_FETCHES) \
    X(FETCHES_DENIED,      "origin_fetches", "result=\"denied\"",         "", HELP_ORIGIN_FETCHES) \
    X(FETCHES_RESOLVE,     "origin_fetches", "result=\"resolve_failed\"", "", HELP_ORIGIN_FETCHES) \
    X(FETCHES_CONNECT,     "origin_fetches", "result=\"connect_failed\"", "", HELP_ORIGIN_FETCHES) \
    X(FETCHES_TLS,         "origin_fetches", "result=\"tls_failed\"",     "", HELP_ORIGIN_FETCHES) \
    X(FETCHES_TIMEOUT,     "origin_fetches", "result=\"timed_out\"",      "", HELP_ORIGIN_FETCHES) \
    X(FETCHES_ORIGIN,      "origin_fetches", "result=\"origin_broke\"",   "", HELP_ORIGIN_FETCHES) \
    X(FETCHES_TOO_LARGE,   "origin_fetches", "result=\"too_large\"",      "", HELP_ORIGIN_FETCHES) \
    X(FETCHES_OVERLOADED,  "origin_fetches", "result=\"overloaded\"",     "", HELP_ORIGIN_FETCHES) \
    X(FETCHES_STOPPING,    "origin_fetches", "result=\"stopping\"",       "", HELP_ORIGIN_FETCHES) \
    X(FETCHES_INTERNAL,    "origin_fetches", "result=\"internal\"",       "", HELP_ORIGIN_FETCHES) \
    X(FETCHES_DOWN,        "origin_fetches", "result=\"down\"",           "", HELP_ORIGIN_FETCHES) \
    X(FETCHES_CANCELLED,   "origin_fetches", "result=\"cancelled\"",      "", HELP_ORIGIN_FETCHES)

#define METRICS_HISTOGRAMS(X) \
    X(HIT_DURATION, "hit_duration_microseconds", "", "microseconds", \
      "Time from the arrival of a request of version 2 or of HTTP to its answer from the cache.") \
    X(MISS_DURATION, "miss_duration_microseconds", "", "microseconds", \
      "Time from the arrival of a request to the end of its answer from the origin, where the " \
      "request caused the fetch.") \
    X(ORIGIN_FIRST_BYTE, "origin_first_byte_microseconds", "", "microseconds", \
      "Time from a request to an origin to the end of the head of its response, of each response.")
/* clang-format on */

enum metric {
#define X(id, name, labels, unit, help) METRIC_##id,
    METRICS_COUNTERS(X)
#undef X
        METRIC_COUNTERS
};

enum metric_histogram {
#define X(id, name, labels, unit, help) HISTOGRAM_##id,
    METRICS_HISTOGRAMS(X)
#undef X
        HISTOGRAMS
};

enum metric_kind {
    METRIC_KIND_COUNTER,  /* only grows, or begins again at 0 */
    METRIC_KIND_GAUGE,    /* a value now */
    METRIC_KIND_HISTOGRAM /* as a row: the histogram; as a sample: one of its counts, or its sum */
};

/*
 * Buckets of every histogram, in microseconds. Bucket i counts values of at most 2^i (and above the
 * bound of the bucket before), for i from 0 to 26, which is 67 s; the last one counts all above.
 */
#define METRICS_BUCKETS 28u

/* The largest value of a bucket; UINT64_MAX for the last one. */
uint64_t metrics_bucket_bound(unsigned bucket);

struct metrics;

/* With slots for workers 0 to workers - 1 and for the fetcher's thread. NULL without memory. */
struct metrics *metrics_create(unsigned workers);

/* NULL is harmless. */
void metrics_destroy(struct metrics *metrics);

/* The slot of the fetcher's thread: what its calls give as `worker`. [any thread] */
unsigned metrics_fetcher_slot(const struct metrics *metrics);

/* Adds to a counter. [the worker's thread] */
void metrics_add(struct metrics *metrics, unsigned worker, enum metric which, uint64_t n);

/* Counts a duration in a histogram; one below zero counts as zero. [the worker's thread] */
void metrics_observe(struct metrics *metrics, unsigned worker, enum metric_histogram which,
                     int64_t us);

/* ---- rows of other owners -------------------------------------------------------------------- */

struct metric_row {
    const char *name;
    const char *labels; /* `outcome="hit"`; "" if the row is the whole family */
    enum metric_kind kind;
    const char *unit; /* "bytes", "microseconds", or "" */
    const char *help; /* a sentence, the same for a whole family */
    size_t offset; /* in the source's snapshot, of the row's uint64_t; not used in our own rows */
};

/* The most bytes that a snapshot takes. */
#define METRICS_SNAPSHOT_BYTES 512u

struct metric_source {
    const struct metric_row *rows; /* static; counters and gauges */
    size_t count;
    /*
     * Fills the snapshot, METRICS_SNAPSHOT_BYTES that are zero, with the current numbers. On the
     * thread of metrics_read().
     */
    void (*read)(void *context, void *snapshot);
    size_t shown; /* 0: all rows; otherwise this many of the first ones, until metrics_show() */
};

/*
 * Adds the rows of a source, which must stay. False without memory; nothing has changed then.
 * Before the first thread reads.
 */
bool metrics_register(struct metrics *metrics, const struct metric_source *source, void *context);

/* Shows the first `count` rows of a registered source, whose labels stay from now on. [one thread
 * at a time] */
void metrics_show(struct metrics *metrics, const struct metric_row *rows, size_t count);

/* ---- reading --------------------------------------------------------------------------------- */

/* The rows, ours first, then those of each source as they were registered. A row that is hidden is
 * NULL. [any thread] */
size_t metrics_row_count(const struct metrics *metrics);
const struct metric_row *metrics_row(const struct metrics *metrics, size_t i);

/*
 * The samples: one for each counter and gauge, named as its row; for each histogram a cumulative
 * one for each bucket, NAME_bucket{le="BOUND"} up to le="+Inf", then NAME_count and NAME_sum.
 */
#define METRICS_MAX_NAME 96u

struct metric_sample {
    char name[METRICS_MAX_NAME]; /* once it is shown */
    enum metric_kind kind;
    _Atomic bool shown;
};

/* The number of samples, hidden ones included, and *samples, which stays until metrics_destroy().
 * [any thread] */
size_t metrics_samples(const struct metrics *metrics, const struct metric_sample **samples);

/*
 * The values of all samples: our own since the start or since the last metrics_rebase(), those of
 * sources as their owners give them. A histogram's count is the last of its buckets. [any thread]
 */
void metrics_read(struct metrics *metrics, uint64_t *values);

/* From now on our own counters and histograms begin at zero. [any thread] */
void metrics_rebase(struct metrics *metrics);

#endif
