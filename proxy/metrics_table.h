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

#define HELP_REQUESTS "Requests answered, by outcome; version 1 and version 2 together."
#define HELP_SERVED_BYTES "Bytes of bodies in answers, by where the body came from."

/* clang-format off */
#define METRICS_COUNTERS(X) \
    X(REQUESTS_HIT,         "requests", "outcome=\"hit\"",         "", HELP_REQUESTS) \
    X(REQUESTS_MISS,        "requests", "outcome=\"miss\"",        "", HELP_REQUESTS) \
    X(REQUESTS_COALESCED,   "requests", "outcome=\"coalesced\"",   "", HELP_REQUESTS) \
    X(REQUESTS_BYPASS,      "requests", "outcome=\"bypass\"",      "", HELP_REQUESTS) \
    X(REQUESTS_REVALIDATED, "requests", "outcome=\"revalidated\"", "", HELP_REQUESTS) \
    X(REQUESTS_STALE,       "requests", "outcome=\"stale\"",       "", HELP_REQUESTS) \
    X(REQUESTS_FAILURE,     "requests", "outcome=\"failure\"",     "", HELP_REQUESTS) \
    X(SERVED_BYTES_CACHE,   "served_bytes", "source=\"cache\"",  "bytes", HELP_SERVED_BYTES) \
    X(SERVED_BYTES_ORIGIN,  "served_bytes", "source=\"origin\"", "bytes", HELP_SERVED_BYTES)

#define METRICS_HISTOGRAMS(X) \
    X(HIT_DURATION, "hit_duration_microseconds", "", "microseconds", \
      "Time from the arrival of a call of version 2 to its answer from the cache.") \
    X(MISS_DURATION, "miss_duration_microseconds", "", "microseconds", \
      "Time from the arrival of a call to its answer from the origin, where the call caused the " \
      "fetch.") \
    X(ORIGIN_FIRST_BYTE, "origin_first_byte_microseconds", "", "microseconds", \
      "Time from a request to an origin to the end of the head of its response, of each response.")
/* clang-format on */

#endif
