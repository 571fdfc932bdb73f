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

/* What is summed up, and the rules of the infinite cache. */
struct trace_requests {
    size_t count;
    const uint32_t *ids;   /* by request, below url_count */
    const uint32_t *sizes; /* by request; NULL: none is known */
    size_t url_count;
    size_t warmup;           /* requests at the start that only fill the infinite cache */
    const int64_t *times_us; /* by request; only where pages expire */
    int64_t ttl_us;          /* a page that was stored this long ago is a miss; 0: none expires */
    uint64_t max_page;       /* larger pages are not stored; 0: no bound */
    uint64_t min_uses;       /* a page is stored at this miss for it, not before; 0: the first */
};

/* False without memory. */
bool trace_totals_make(const struct trace_requests *requests, struct trace_totals *totals);

/* What an infinite cache hits of the requests, and of the bytes; 0 where there are none. */
double trace_totals_hit_ratio(const struct trace_totals *totals);
double trace_totals_byte_hit_ratio(const struct trace_totals *totals);

#endif
