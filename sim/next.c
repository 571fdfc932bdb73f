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
