#include "sim/curve.h"

#include <stdlib.h>
#include <string.h>

#define BLOCK 32768u

/*
 * One bit a moment: 1 if it is that of some page's last request. Moments are those of a window of
 * twice as many as there are pages; when it is full, the ones that are still set move together.
 */
struct stack {
    uint32_t *tree;    /* Fenwick, from 1: sums over runs of moments */
    uint32_t *moments; /* by page: of its last request; 0: never requested */
    uint32_t *pages;   /* by moment: whose it was */
    size_t window;
    size_t now;
    size_t inside; /* pages requested so far */
};

static void
stack_add(struct stack *stack, size_t moment, uint32_t by)
{
    for (; moment <= stack->window; moment += moment & -moment)
        stack->tree[moment] += by;
}

static size_t
stack_sum(const struct stack *stack, size_t moment)
{
    size_t sum = 0;

    for (; moment; moment &= moment - 1)
        sum += stack->tree[moment];
    return sum;
}

static void
stack_tighten(struct stack *stack)
{
    size_t to = 0;

    for (size_t at = 1; at <= stack->now; at++) {
        uint32_t page = stack->pages[at];

        if (stack->moments[page] != at)
            continue;
        to++;
        stack->pages[to] = page;
        stack->moments[page] = (uint32_t)to;
    }
    /* A tree over `to` ones and then zeros, level by level. */
    for (size_t at = 1; at <= stack->window; at++) {
        size_t low = at - (at & -at);

        stack->tree[at] = (uint32_t)(at <= to ? at - low : low < to ? to - low : 0);
    }
    stack->now = to;
}

/* How many pages were requested since this one was, itself included; 0: it never was. */
static size_t
stack_request(struct stack *stack, uint32_t page)
{
    size_t last, distance = 0;

    if (stack->now == stack->window)
        stack_tighten(stack);
    last = stack->moments[page];
    if (last) {
        distance = stack->inside - stack_sum(stack, last) + 1;
        stack_add(stack, last, UINT32_MAX); /* minus one */
    } else {
        stack->inside++;
    }
    stack->now++;
    stack->moments[page] = (uint32_t)stack->now;
    stack->pages[stack->now] = page;
    stack_add(stack, stack->now, 1);
    return distance;
}

static bool
stack_init(struct stack *stack, size_t page_count)
{
    /* Slots beyond those of the pages, so that tightening, as long as the window, comes seldom. */
    *stack = (struct stack){.window = 2 * page_count + 1024};
    stack->tree = calloc(stack->window + 1, sizeof(*stack->tree));
    stack->moments = calloc(page_count + 1, sizeof(*stack->moments));
    stack->pages = malloc((stack->window + 1) * sizeof(*stack->pages));
    return stack->tree && stack->moments && stack->pages;
}

static void
stack_free(struct stack *stack)
{
    free(stack->tree);
    free(stack->moments);
    free(stack->pages);
}

static enum sim_error
walk(const struct sim_trace *trace, size_t warmup, struct sim_watch *watch, struct stack *stack,
     struct sim_curve *curve)
{
    for (size_t i = 0; i < trace->request_count; i++) {
        size_t distance = stack_request(stack, trace->ids[i]);
        uint32_t bytes = trace->sizes ? trace->sizes[i] : 1;

        if (watch && i % BLOCK == 0) {
            if (atomic_load_explicit(&watch->stop, memory_order_relaxed))
                return SIM_STOPPED;
            atomic_fetch_add_explicit(&watch->done, i ? BLOCK : 0, memory_order_relaxed);
        }
        if (i < warmup)
            continue;
        curve->requests++;
        curve->bytes += bytes;
        if (distance) {
            curve->hits[distance]++;
            curve->bytes_hit[distance] += bytes;
        }
    }
    if (watch && trace->request_count)
        atomic_fetch_add_explicit(&watch->done, (trace->request_count - 1) % BLOCK + 1,
                                  memory_order_relaxed);
    for (size_t i = 1; i <= trace->page_count; i++) {
        curve->hits[i] += curve->hits[i - 1];
        curve->bytes_hit[i] += curve->bytes_hit[i - 1];
    }
    return SIM_OK;
}

enum sim_error
sim_curve_make(const struct sim_trace *trace, size_t warmup, struct sim_watch *watch,
               struct sim_curve *curve)
{
    struct stack stack = {0};
    enum sim_error error = SIM_NO_MEMORY;

    *curve = (struct sim_curve){.page_count = trace->page_count};
    if (trace->request_count >= SIM_MAX_REQUESTS || trace->page_count > INT32_MAX - 1024)
        return SIM_TOO_MANY;
    curve->hits = calloc(trace->page_count + 1, sizeof(*curve->hits));
    curve->bytes_hit = calloc(trace->page_count + 1, sizeof(*curve->bytes_hit));
    if (stack_init(&stack, trace->page_count) && curve->hits && curve->bytes_hit)
        error = walk(trace, warmup, watch, &stack, curve);
    stack_free(&stack);
    if (error != SIM_OK)
        sim_curve_free(curve);
    return error;
}

size_t
sim_curve_find(const struct sim_curve *curve, double hits)
{
    size_t low = 0, high = curve->page_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if ((double)curve->hits[middle] >= hits)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

void
sim_curve_free(struct sim_curve *curve)
{
    free(curve->hits);
    free(curve->bytes_hit);
    *curve = (struct sim_curve){0};
}
