/* What a run wants to know of a trace beforehand. */
#include <stdlib.h>
#include <string.h>

#include "sim/sim.h"

uint32_t *
sim_next(const struct sim_trace *trace)
{
    size_t pages = trace->page_count ? trace->page_count : 1;
    size_t requests = trace->request_count ? trace->request_count : 1;
    uint32_t *next, *latest;

    if (trace->request_count >= SIM_MAX_REQUESTS)
        return NULL;
    next = malloc(requests * sizeof(*next));
    latest = malloc(pages * sizeof(*latest));
    if (!next || !latest) {
        free(next);
        free(latest);
        return NULL;
    }
    memset(latest, 0xff, pages * sizeof(*latest));
    for (size_t i = trace->request_count; i-- > 0;) {
        next[i] = latest[trace->ids[i]];
        latest[trace->ids[i]] = (uint32_t)i;
    }
    free(latest);
    return next;
}

bool
sim_find_facts(const struct sim_trace *trace, size_t warmup, struct sim_facts *facts)
{
    uint64_t *seen = calloc(trace->page_count / 64 + 1, sizeof(*seen));

    *facts = (struct sim_facts){.smallest = UINT32_MAX};
    if (!seen)
        return false;
    for (size_t i = 0; i < trace->request_count; i++) {
        uint32_t id = trace->ids[i], bytes = trace->sizes ? trace->sizes[i] : 1;
        uint64_t bit = 1ull << (id % 64);
        bool hit = seen[id / 64] & bit;

        seen[id / 64] |= bit;
        if (!hit)
            facts->distinct_bytes += bytes;
        if (bytes < facts->smallest)
            facts->smallest = bytes;
        if (bytes > facts->largest)
            facts->largest = bytes;
        if (i < warmup)
            continue;
        facts->requests++;
        facts->bytes += bytes;
        facts->hits += hit;
        facts->bytes_hit += hit ? bytes : 0;
    }
    free(seen);
    return true;
}
