/*
 * Every policy on eight traces, with all numbers that came of it: a program without libraries
 * beyond libc, so that it can be built for another processor with nothing but a cross compiler.
 * What it prints must be the same on every processor.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/hash.h"
#include "sim/sim.h"

#define REQUESTS 20000u
#define PAGES 2000u
#define WINDOW 300u

enum pattern { SKEWED, LOOP, DRIFT, MIXED, PATTERNS };

static const char *const pattern_names[PATTERNS] = {"skewed", "loop", "drift", "mixed"};

static uint32_t ids[REQUESTS], sizes[REQUESTS];

static uint32_t
draw(uint64_t *state, uint32_t below)
{
    return (uint32_t)(splitmix64_next(state) % below);
}

/* The least of three draws: low numbers more often. No floating point, which is what is tested. */
static uint32_t
draw_skewed(uint64_t *state, uint32_t below)
{
    uint32_t least = below;

    for (int i = 0; i < 3; i++) {
        uint32_t one = draw(state, below);

        if (one < least)
            least = one;
    }
    return least;
}

static uint32_t
next_id(enum pattern pattern, uint32_t request, uint64_t *state)
{
    switch (pattern) {
    case SKEWED:
        return draw_skewed(state, PAGES);
    case LOOP:
        return request % (PAGES / 4);
    case DRIFT:
        return (request / 10 + draw(state, WINDOW)) % PAGES;
    default:
        return request / 1000 % 2 ? draw_skewed(state, PAGES) : request % PAGES;
    }
}

static void
make_trace(enum pattern pattern)
{
    uint64_t state = pattern + 1;

    for (uint32_t i = 0; i < REQUESTS; i++) {
        uint64_t of_page;

        ids[i] = next_id(pattern, i, &state);
        of_page = ids[i];
        sizes[i] = 1 + (uint32_t)(splitmix64_next(&of_page) % 5000);
    }
}

static bool
run(const char *name, const struct sim_trace *trace, const struct policy_ops *ops)
{
    struct sim_config config = {.spec = policy_spec_of(ops), .seed = 1};
    struct sim_result r;
    enum sim_error error;

    if (trace->sizes)
        config.capacity_bytes = 500000;
    else
        config.capacity_pages = PAGES / 10;
    error = sim_run(trace, &config, NULL, &r);
    if (error) {
        fprintf(stderr, "%s %s: %s\n", name, ops->name, sim_strerror(error));
        return false;
    }
    printf("%s%s %s %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64
           " %" PRIu64 " %" PRIu64 " %" PRIu64 " %a %a\n",
           name, trace->sizes ? "-sized" : "", ops->name, r.requests, r.hits, r.bytes, r.bytes_hit,
           r.insertions, r.evictions, r.not_admitted, r.pages, r.bytes_inside, r.hit_ratio,
           r.byte_hit_ratio);
    return true;
}

int
main(void)
{
    for (enum pattern pattern = 0; pattern < PATTERNS; pattern++)
        for (int sized = 0; sized < 2; sized++) {
            struct sim_trace trace = {.request_count = REQUESTS, .ids = ids, .page_count = PAGES};
            uint32_t *next;

            make_trace(pattern);
            trace.sizes = sized ? sizes : NULL;
            trace.next = next = sim_next(&trace);
            if (!next)
                return EXIT_FAILURE;
            for (const struct policy_ops *const *ops = policies; *ops; ops++)
                if (!run(pattern_names[pattern], &trace, *ops))
                    return EXIT_FAILURE;
            free(next);
        }
    return EXIT_SUCCESS;
}
