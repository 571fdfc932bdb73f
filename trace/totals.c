#include "trace/totals.h"

#include <stdlib.h>

bool
trace_totals_make(const uint32_t *ids, const uint32_t *sizes, size_t request_count,
                  size_t url_count, size_t warmup, struct trace_totals *totals)
{
    uint64_t *seen = calloc(url_count / 64 + 1, sizeof(*seen));

    *totals = (struct trace_totals){.smallest = UINT32_MAX};
    if (!seen)
        return false;
    for (size_t i = 0; i < request_count; i++) {
        uint32_t id = ids[i], bytes = sizes ? sizes[i] : 1;
        uint64_t bit = 1ull << (id % 64);
        bool hit = seen[id / 64] & bit;

        seen[id / 64] |= bit;
        if (bytes == TRACE_SIZE_UNKNOWN)
            bytes = 0;
        totals->bytes_of_all += bytes;
        if (!hit)
            totals->distinct_bytes += bytes;
        if (bytes < totals->smallest)
            totals->smallest = bytes;
        if (bytes > totals->largest)
            totals->largest = bytes;
        if (i < warmup)
            continue;
        totals->requests++;
        totals->bytes += bytes;
        totals->hits += hit;
        totals->bytes_hit += hit ? bytes : 0;
    }
    free(seen);
    return true;
}

double
trace_totals_hit_ratio(const struct trace_totals *totals)
{
    return totals->requests ? (double)totals->hits / (double)totals->requests : 0;
}

double
trace_totals_byte_hit_ratio(const struct trace_totals *totals)
{
    return totals->bytes ? (double)totals->bytes_hit / (double)totals->bytes : 0;
}
