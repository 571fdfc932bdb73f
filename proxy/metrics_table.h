/*
 * The table of what the daemon counts and times itself: one row per metric. A row added here has a
 * slot per worker, is served by PROXY_STAT, and is listed by `sunproxyd --list-metrics`. Numbers
 * that another module keeps are rows of its owner (metrics_register()).
 *
 * A row is X(IDENTIFIER, name, labels, unit, help). Rows of one family (the same name) stand
 * together, differ in their labels, and have the same unit and help. For names see metrics.h.
 */
#ifndef SUNPROXY_PROXY_METRICS_TABLE_H
#define SUNPROXY_PROXY_METRICS_TABLE_H

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

#endif
