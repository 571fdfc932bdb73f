#include "sim/bound.h"

#include <stdlib.h>
#include <string.h>

/* A page kept from a request to the next one for it. */
struct stay {
    double cost; /* bytes times requests */
    double gain; /* bytes of the hit */
};

static int
by_cost(const void *left, const void *right)
{
    const struct stay *a = left, *b = right;

    return (a->cost > b->cost) - (a->cost < b->cost);
}

/* By cost for each byte, without dividing by a gain of 0. */
static int
by_cost_of_a_byte(const void *left, const void *right)
{
    const struct stay *a = left, *b = right;
    double x = a->cost * b->gain, y = b->cost * a->gain;

    return (x > y) - (x < y);
}

static void
add_up(struct sim_bound *bound, struct stay *stays)
{
    double cost = 0, gain = 0;
    size_t gaining = 0;

    qsort(stays, bound->count, sizeof(*stays), by_cost);
    for (size_t i = 0; i < bound->count; i++)
        bound->hit_costs[i] = cost += stays[i].cost;
    /* Stays without bytes would make the order by bytes ambiguous. */
    for (size_t i = 0; i < bound->count; i++)
        if (stays[i].gain > 0)
            stays[gaining++] = stays[i];
    qsort(stays, gaining, sizeof(*stays), by_cost_of_a_byte);
    cost = 0;
    for (size_t i = 0; i < bound->count; i++) {
        if (i < gaining) {
            cost += stays[i].cost;
            gain += stays[i].gain;
        }
        bound->byte_costs[i] = cost;
        bound->byte_gains[i] = gain;
    }
}

/* What a cache charges for a page of the size that request i has, as sim/engine.c does. */
static uint32_t
charge(const struct sim_trace *trace, size_t i, uint64_t overhead)
{
    uint64_t sum = trace->sizes[i] + overhead;

    sum += trace->charges ? trace->charges[trace->ids[i]] : 0;
    return sum < UINT32_MAX ? (uint32_t)sum : UINT32_MAX;
}

/*
 * `least` has an element for each page, UINT32_MAX at first.
 *
 * Why the sums are a bound. Let i and j be two requests for a page in a row, and j a hit. The page
 * is then cached from i to j, and it takes up what it was charged when it was inserted. It was
 * inserted at i or at an earlier request for it, because a hit inserts nothing and changes no
 * charge. So it takes up at least the least charge of all requests for it up to i, for j - i steps.
 * The pages that are cached at a step take up no more than the capacity together. Summed over all
 * steps, the stays of all hits take up no more than the capacity times the steps, each at its least
 * charge. The most hits, and the most bytes of hits, that fit into that sum are therefore no less
 * than those of any cache.
 *
 * With the charge of request i itself this would not hold where pages grow: a page that was
 * inserted with 1 byte takes up 1 byte when it hits with 1,000.
 */
static size_t
gather(const struct sim_trace *trace, size_t warmup, uint64_t overhead, uint32_t *least,
       struct stay *stays)
{
    size_t count = 0;

    for (size_t i = 0; i < trace->request_count; i++) {
        size_t next = trace->next[i];
        uint32_t *page = &least[trace->ids[i]], charged = charge(trace, i, overhead);

        if (charged < *page)
            *page = charged;
        if (next >= trace->request_count || next < warmup)
            continue;
        stays[count++] = (struct stay){(double)*page * (double)(next - i), trace->sizes[next]};
    }
    return count;
}

bool
sim_bound_make(const struct sim_trace *trace, size_t warmup, uint64_t overhead,
               struct sim_bound *bound)
{
    size_t capacity = trace->request_count ? trace->request_count : 1;
    size_t least_bytes = (trace->page_count ? trace->page_count : 1) * sizeof(uint32_t);
    struct stay *stays = malloc(capacity * sizeof(*stays));
    uint32_t *least = malloc(least_bytes);

    *bound = (struct sim_bound){.steps = trace->request_count,
                                .hit_costs = malloc(capacity * sizeof(double)),
                                .byte_costs = malloc(capacity * sizeof(double)),
                                .byte_gains = malloc(capacity * sizeof(double))};
    if (!stays || !least || !bound->hit_costs || !bound->byte_costs || !bound->byte_gains) {
        free(stays);
        free(least);
        sim_bound_free(bound);
        return false;
    }
    for (size_t i = warmup; i < trace->request_count; i++) {
        bound->requests++;
        bound->bytes += trace->sizes[i];
    }
    memset(least, 0xff, least_bytes);
    bound->count = gather(trace, warmup, overhead, least, stays);
    free(least);
    add_up(bound, stays);
    free(stays);
    return true;
}

/* How many of the ascending sums are at most this. */
static size_t
affordable(const double *sums, size_t count, double most)
{
    size_t low = 0, high = count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (sums[middle] <= most)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

double
sim_bound_hit_ratio(const struct sim_bound *bound, uint64_t capacity)
{
    double offered = (double)capacity * (double)bound->steps;

    return bound->requests ? (double)affordable(bound->hit_costs, bound->count, offered) /
                                 (double)bound->requests
                           : 0;
}

/* Of the first stay that is not affordable, a fraction counts: whole ones alone are no bound. */
double
sim_bound_byte_hit_ratio(const struct sim_bound *bound, uint64_t capacity)
{
    double offered = (double)capacity * (double)bound->steps, gain = 0, cost = 0;
    size_t whole = affordable(bound->byte_costs, bound->count, offered);

    if (whole > 0) {
        gain = bound->byte_gains[whole - 1];
        cost = bound->byte_costs[whole - 1];
    }
    if (whole < bound->count)
        gain += (bound->byte_gains[whole] - gain) * (offered - cost) /
                (bound->byte_costs[whole] - cost);
    return bound->bytes ? gain / (double)bound->bytes : 0;
}

void
sim_bound_free(struct sim_bound *bound)
{
    free(bound->hit_costs);
    free(bound->byte_costs);
    free(bound->byte_gains);
    *bound = (struct sim_bound){.count = 0};
}
