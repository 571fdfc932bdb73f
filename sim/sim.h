/*
 * The simulator: drives the policies that the daemon runs over a trace of densely numbered pages,
 * and counts. It reads plain arrays and knows no file format and no URL; no time passes in it.
 *
 * Admission and eviction are the cache's own (policies/evictor.h). A page larger than the cache is
 * a miss, does not enter and evicts nothing. Requests and bytes are counted by the size in the
 * request; a page keeps the size that it entered with.
 *
 * A trace is only read, by any number of runs at once; a run belongs to the thread that calls.
 */
#ifndef SUNPROXY_SIM_SIM_H
#define SUNPROXY_SIM_SIM_H

#include <stdatomic.h>

#include "policies/policy.h"

/* All arrays are the caller's. */
struct sim_trace {
    size_t request_count;  /* fewer than SIM_MAX_REQUESTS */
    const uint32_t *ids;   /* by request: number of the page, less than page_count */
    const uint32_t *sizes; /* by request: bytes; NULL: every page counts 1 */
    size_t page_count;
    uint64_t distinct_bytes; /* of all pages, each at its first request; 0: not known */

    /*
     * By page: what a cache charges for it beside its size, such as its URL and header fields;
     * NULL: nothing. Only where there are sizes. A charge counts against the capacity and is seen
     * by the policy; requests and bytes of hits count without it.
     */
    const uint32_t *charges;
    uint64_t all_charges; /* of all pages together */

    const uint64_t *keys;    /* by page: what it is known by beyond its stay; NULL: its number */
    const uint32_t *next;    /* by request: of sim_next(); only for policies that need the future */
    const int64_t *times_us; /* by request; only where pages expire */
};

#define SIM_MAX_REQUESTS UINT32_MAX

enum sim_outcome {
    SIM_HIT,
    SIM_MISS,     /* inserted, without an eviction */
    SIM_EVICTED,  /* inserted after evictions */
    SIM_UNCACHED, /* not inserted, or evicted at once */
};

/* What came of one request. */
struct sim_event {
    size_t number; /* of the request, from 0 */
    uint32_t id;
    uint32_t bytes; /* as the request has them */
    enum sim_outcome outcome;
    const uint32_t *victims; /* of a miss; the run's, valid during the call */
    size_t victim_count;
};

#define SIM_WIDTHS 33u

/* What a trace is a sample of (sim/sample.h); the capacity is then the sample's share of it. */
struct sim_sampling {
    double rate;       /* the share of the pages that is in the sample */
    uint64_t requests; /* of the whole trace, without the warm-up */
    uint64_t bytes;    /* that those ask for */

    /* All pages of the whole trace, by how many bits the size at the first request has. */
    double sizes[SIM_WIDTHS];   /* their bytes together */
    double squares[SIM_WIDTHS]; /* and the sum of the squares of those */
    double counts[SIM_WIDTHS];  /* and how many there are */

    bool uncalibrated; /* state errors that no calibration supports, to measure them */
};

/* Which pages are stored, and for how long, whatever the policy; all 0: every page, for ever. */
struct sim_storage {
    int64_t ttl_us;    /* a page that was stored longer ago is a miss, and is stored anew */
    uint64_t max_page; /* larger pages are not stored; bytes without charges */
    uint64_t min_uses; /* a page is stored at this request for it, not before */
};

static inline bool
sim_storage_is_all(const struct sim_storage *storage)
{
    return !storage->ttl_us && !storage->max_page && storage->min_uses < 2;
}

struct sim_config {
    struct policy_spec spec; /* ops NULL: no cache */
    uint64_t capacity_pages; /* 0: not bounded in pages; both 0: nothing is ever stored */
    uint64_t capacity_bytes; /* 0: not bounded in bytes */
    uint64_t overhead;       /* charged for each page, whatever it is; only where there are sizes */
    struct sim_storage storage;
    uint64_t seed;
    size_t warmup;                       /* requests at the start that are not counted */
    const struct sim_sampling *sampling; /* NULL: the trace is no sample */

    /* Called for every request, warm-up included; false ends the run. May be NULL. */
    bool (*tell)(void *context, const struct sim_event *event);
    void *context;
};

struct sim_result {
    uint64_t requests;
    uint64_t hits;
    uint64_t bytes;        /* requested */
    uint64_t bytes_hit;    /* of those, from the cache */
    uint64_t insertions;   /* pages that were inserted and not evicted at once */
    uint64_t evictions;    /* pages that were evicted */
    uint64_t expired;      /* misses for pages that were stored too long ago */
    uint64_t not_admitted; /* misses whose page the policy did not admit, or evicted at once */
    uint64_t too_large;    /* misses whose page is larger than the cache */
    uint64_t pages;        /* inside at the end */
    uint64_t bytes_inside; /* with what is charged for them */
    uint64_t memory;       /* bytes of nodes and places, without what the policy has beyond them */
    int64_t cpu_us;        /* of the thread */

    /*
     * Of a sample: estimates for the whole trace, and their standard errors (sim/estimate.h).
     * Otherwise exact, and the errors 0.
     */
    double hit_ratio;
    double byte_hit_ratio;
    double hit_ratio_error; /* NAN: unknown */
    double byte_hit_ratio_error;
    const char *error_unknown; /* why an error is NAN, some words for people, static; or NULL */
    double rate_needed;        /* of a sample for which both errors would be known; above 1: none */
    double capacity_spread;    /* of a sample: see sim/estimate.h */
};

enum sim_error {
    SIM_OK = 0,
    SIM_NO_MEMORY,
    SIM_STOPPED,     /* *stop was set, or tell() had enough; the result is of what was done */
    SIM_NEEDS_SIZES, /* a capacity in bytes, and the trace has no sizes */
    SIM_NEEDS_TIMES, /* pages expire, and the trace has no times */
    SIM_NEEDS_NEXT,  /* a policy that needs the future, and the trace has no `next` */
    SIM_TOO_MANY,    /* SIM_MAX_REQUESTS or more */
};

/* A sentence for people; static. */
const char *sim_strerror(enum sim_error error);

/*
 * Whoever waits for a run: shared by many. `done` grows by the requests that were simulated, now
 * and then; the run ends soon after `stop` is set.
 */
struct sim_watch {
    atomic_bool stop;
    atomic_uint_fast64_t done;
};

/* One run. watch may be NULL. */
enum sim_error sim_run(const struct sim_trace *trace, const struct sim_config *config,
                       struct sim_watch *watch, struct sim_result *result);

/*
 * For policies that need the future: by request, the number of the next request for the same page,
 * or UINT32_MAX if there is none, in one pass from the end. The caller frees it; NULL without
 * memory.
 */
uint32_t *sim_next(const struct sim_trace *trace);

#endif
