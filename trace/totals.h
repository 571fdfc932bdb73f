/*
 * The sums of a trace: requests, bytes, and what an infinite cache hits. Every command that prints
 * one of these numbers has it from here, and under the same name.
 */
#ifndef SUNPROXY_TRACE_TOTALS_H
#define SUNPROXY_TRACE_TOTALS_H

#include "trace/trace.h"

/* Without sizes every request counts 1 byte; one of unknown size counts none. */
struct trace_totals {
    uint64_t distinct_bytes; /* of all URLs, each at its first request, warm-up included */
    uint64_t bytes_of_all;   /* of all requests, warm-up included */

    /* Without the warm-up: */
    uint64_t requests;
    uint64_t hits; /* of an infinite cache */
    uint64_t bytes;
    uint64_t bytes_hit; /* of an infinite cache */

    uint32_t smallest, largest; /* bytes of a request, warm-up included */
};

/*
 * Sums up `request_count` requests for fewer than `url_count` numbers. `sizes` by request, or NULL;
 * the first `warmup` requests only fill the infinite cache. False without memory.
 */
bool trace_totals_make(const uint32_t *ids, const uint32_t *sizes, size_t request_count,
                       size_t url_count, size_t warmup, struct trace_totals *totals);

/* What an infinite cache hits of the requests, and of the bytes; 0 where there are none. */
double trace_totals_hit_ratio(const struct trace_totals *totals);
double trace_totals_byte_hit_ratio(const struct trace_totals *totals);

#endif
