/*
 * Small traces for tests of the simulator, and the plain cache of tests/unit/policies/driven.h to
 * hold it against.
 */
#ifndef SUNPROXY_TESTS_SIM_TRACES_H
#define SUNPROXY_TESTS_SIM_TRACES_H

#include "sim/sim.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "tests/unit/unit.h"
#include "trace/totals.h"

struct made {
    struct sim_trace trace;
    uint32_t *ids, *sizes, *next; /* owned */
    uint64_t *keys;
};

static inline uint64_t
made_key(uint32_t id)
{
    return (id + 1) * 0x9e3779b97f4a7c15u; /* as driven.h makes them */
}

/*
 * Random requests, low numbers more often; sizes of 1 to 1000, each page's own but for every
 * fiftieth request, in which it has changed.
 */
static inline struct made
made_trace(uint64_t seed, size_t requests, uint32_t pages, bool sized)
{
    struct made m = {0};
    uint64_t state = seed;

    m.ids = malloc((requests + 1) * sizeof(*m.ids));
    m.sizes = sized ? malloc((requests + 1) * sizeof(*m.sizes)) : NULL;
    m.keys = malloc(pages * sizeof(*m.keys));
    ck_assert(m.ids && m.keys && (m.sizes || !sized));
    for (uint32_t id = 0; id < pages; id++)
        m.keys[id] = made_key(id);
    for (size_t i = 0; i < requests; i++) {
        double u = (double)(splitmix64_next(&state) >> 11) * 0x1p-53;
        uint32_t id = (uint32_t)(pow(pages, u) - 1); /* close to Zipf's law */

        m.ids[i] = id < pages ? id : pages - 1;
        if (sized)
            m.sizes[i] =
                (uint32_t)(1 + made_key(m.ids[i]) % 1000 +
                           (splitmix64_next(&state) % 50 ? 0 : splitmix64_next(&state) % 1000));
    }
    m.trace = (struct sim_trace){.request_count = requests,
                                 .ids = m.ids,
                                 .sizes = m.sizes,
                                 .page_count = pages,
                                 .keys = m.keys};
    m.next = sim_next(&m.trace);
    ck_assert_ptr_nonnull(m.next);
    m.trace.next = m.next;
    return m;
}

/* The trace that these ids make, and sizes if they are not NULL. */
static inline struct made
made_of(const uint32_t *ids, const uint32_t *sizes, size_t requests, uint32_t pages)
{
    struct made m = made_trace(1, requests, pages, sizes != NULL);

    memcpy(m.ids, ids, requests * sizeof(*ids));
    if (sizes)
        memcpy(m.sizes, sizes, requests * sizeof(*sizes));
    free(m.next);
    m.trace.next = m.next = sim_next(&m.trace);
    return m;
}

static inline struct trace_totals
made_totals(const struct made *m, size_t warmup)
{
    const struct trace_requests requests = {.count = m->trace.request_count,
                                            .ids = m->trace.ids,
                                            .sizes = m->trace.sizes,
                                            .url_count = m->trace.page_count,
                                            .warmup = warmup};
    struct trace_totals totals;

    ck_assert(trace_totals_make(&requests, &totals));
    return totals;
}

static inline void
made_free(struct made *m)
{
    free(m->ids);
    free(m->sizes);
    free(m->keys);
    free(m->next);
}

static inline struct policy_spec
made_spec(const char *text)
{
    struct policy_spec spec;
    char why[256] = "";

    ck_assert_msg(policy_parse(text, &spec, why, sizeof(why)), "%s", why);
    return spec;
}

#endif
