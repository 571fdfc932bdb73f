/*
 * The state of a run, and the places of its nodes. Private to sim/engine.c.
 *
 * Nodes of the cached pages are in one array, packed: its places are handed out from the lowest and
 * used again at once, so that the memory that is touched is as small as the cache, however many
 * pages the trace has. By page there are only the 4 bytes that say where its node is.
 */
#ifndef SUNPROXY_SIM_RUN_H
#define SUNPROXY_SIM_RUN_H

#include "policies/evictor.h"
#include "sim/estimate.h"

#define SIM_UNIT 8u /* places are counted in these, the alignment of a node */

/* In front of each policy node. */
struct resident {
    uint32_t bytes; /* that it entered with; of a free place, the next free one */
    uint32_t id;
};

_Static_assert(sizeof(struct resident) == SIM_UNIT, "the policy's node behind it is aligned");

struct run {
    const struct sim_trace *trace;
    const struct sim_config *config;
    struct evictor evictor;   /* without ops: nothing is stored, or everything */
    struct resident entering; /* the page that is being inserted */

    uint32_t *places; /* by page: where its node is; 0: not inside */
    uint64_t *nodes;  /* in SIM_UNITs; the first place is not used */
    uint32_t stride;  /* SIM_UNITs from one place to the next */
    uint32_t fresh;   /* the lowest place that was never used */
    uint32_t free;    /* the first of those that were freed; 0: none */

    uint32_t *victims; /* ids, of the request under way; only if the config has tell() */
    size_t victim_count;
    size_t victim_capacity;
    bool no_memory; /* for one more of them */

    struct estimate estimate; /* of a sample */
    bool sampled;
    bool is_plain;           /* nothing is charged beside sizes, and every page is stored at once */
    uint64_t overhead;       /* charged for each page beside its size */
    const uint32_t *charges; /* likewise, by page; NULL: nothing */
    int64_t *stored_us;      /* owned: by page, where pages expire */
    uint64_t *uses;          /* owned: misses by page, where pages are not stored at the first */
    bool holds_all;          /* no page is ever evicted: there is neither a policy nor a node */

    struct sim_result *result;
};

/* ---- places ---------------------------------------------------------------------------------- */

static inline struct resident *
resident_at(const struct run *run, uint32_t place)
{
    return (struct resident *)(void *)(run->nodes + place);
}

static inline uint32_t
place_of(const struct run *run, const struct resident *resident)
{
    return (uint32_t)((const uint64_t *)(const void *)resident - run->nodes);
}

static inline void *
node_of(struct resident *resident)
{
    return resident + 1;
}

/* A place with a zeroed node. There is always one: never are more inside than there are pages. */
static inline uint32_t
take_place(struct run *run)
{
    uint32_t place = run->free;

    if (place) {
        run->free = resident_at(run, place)->bytes;
    } else {
        place = run->fresh;
        run->fresh += run->stride;
    }
    for (uint32_t i = 0; i < run->stride; i++)
        run->nodes[place + i] = 0;
    return place;
}

static inline void
free_place(struct run *run, uint32_t place)
{
    resident_at(run, place)->bytes = run->free;
    run->free = place;
}

#endif
