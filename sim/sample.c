#include "sim/sample.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

#define LEFT_OUT UINT32_MAX

/* By page: its number in the sample, or LEFT_OUT; gives how many were drawn. */
static size_t
draw_pages(const struct sim_trace *whole, double rate, uint64_t seed, uint32_t *numbers)
{
    uint64_t below = rate >= 1 ? UINT64_MAX : (uint64_t)(rate * 0x1p64);
    uint64_t salt = hash64_uint(seed);
    uint32_t count = 0;

    for (size_t i = 0; i < whole->page_count; i++) {
        uint64_t key = whole->keys ? whole->keys[i] : i;

        /* Mixed, since keys may be numbers in a row. */
        numbers[i] = hash64_mix(key ^ salt) <= below ? count++ : LEFT_OUT;
    }
    return count;
}

static size_t
count_requests(const struct sim_trace *whole, const uint32_t *numbers)
{
    size_t count = 0;

    for (size_t i = 0; i < whole->request_count; i++)
        count += numbers[whole->ids[i]] != LEFT_OUT;
    return count;
}

/* What errors depend on: of every page, the size at its first request. */
static void
add_first(struct sim_sampling *sampling, uint32_t bytes)
{
    unsigned width = bytes ? 32 - (unsigned)__builtin_clz(bytes) : 0;

    sampling->sizes[width] += bytes;
    sampling->squares[width] += (double)bytes * bytes;
    sampling->counts[width]++;
}

static bool
fill(const struct sim_trace *whole, const uint32_t *numbers, size_t pages, size_t requests,
     size_t warmup, struct sim_sample *sample)
{
    uint32_t *ids = malloc((requests + 1) * sizeof(*ids));
    uint32_t *sizes = whole->sizes ? malloc((requests + 1) * sizeof(*sizes)) : NULL;
    uint64_t *keys = malloc((pages + 1) * sizeof(*keys));
    int64_t *times = whole->times_us ? malloc((requests + 1) * sizeof(*times)) : NULL;
    uint32_t *charges = whole->charges ? malloc((pages + 1) * sizeof(*charges)) : NULL;
    uint64_t *seen = calloc(whole->page_count / 64 + 1, sizeof(*seen));
    size_t at = 0;

    sample->trace = (struct sim_trace){.request_count = requests,
                                       .ids = ids,
                                       .sizes = sizes,
                                       .page_count = pages,
                                       .keys = keys,
                                       .charges = charges,
                                       .times_us = times};
    if (!ids || (whole->sizes && !sizes) || (whole->charges && !charges) ||
        (whole->times_us && !times) || !keys || !seen) {
        free(seen);
        return false;
    }
    for (size_t i = 0; i < whole->page_count; i++)
        if (numbers[i] != LEFT_OUT) {
            keys[numbers[i]] = whole->keys ? whole->keys[i] : i;
            if (charges) {
                charges[numbers[i]] = whole->charges[i];
                sample->trace.all_charges += whole->charges[i];
            }
        }
    for (size_t i = 0; i < whole->request_count; i++) {
        uint32_t id = whole->ids[i], bytes = whole->sizes ? whole->sizes[i] : 1;
        uint64_t bit = 1ull << (id % 64);

        bool first = !(seen[id / 64] & bit);

        if (first)
            add_first(&sample->sampling, bytes);
        seen[id / 64] |= bit;
        if (i >= warmup)
            sample->sampling.bytes += bytes;
        if (numbers[id] == LEFT_OUT)
            continue;
        if (i < warmup)
            sample->warmup++;
        if (first)
            sample->trace.distinct_bytes += bytes;
        ids[at] = numbers[id];
        if (sizes)
            sizes[at] = bytes;
        if (times)
            times[at] = whole->times_us[i];
        at++;
    }
    free(seen);
    return true;
}

bool
sim_sample_make(const struct sim_trace *whole, double rate, uint64_t seed, size_t warmup,
                struct sim_sample *sample)
{
    uint32_t *numbers = malloc((whole->page_count + 1) * sizeof(*numbers));
    size_t pages;
    bool made;

    *sample = (struct sim_sample){0};
    if (!numbers)
        return false;
    if (warmup > whole->request_count)
        warmup = whole->request_count;
    sample->sampling.requests = whole->request_count - warmup;
    pages = draw_pages(whole, rate, seed, numbers);
    if (whole->page_count)
        sample->sampling.rate = (double)pages / (double)whole->page_count;
    made = fill(whole, numbers, pages, count_requests(whole, numbers), warmup, sample);
    free(numbers);
    if (!made)
        sim_sample_free(sample);
    return made;
}

uint64_t
sim_sample_capacity(uint64_t capacity, double rate)
{
    double small = round((double)capacity * rate);

    if (capacity == 0 || rate >= 1)
        return capacity;
    return small < 1 ? 1 : (uint64_t)small;
}

void
sim_sample_free(struct sim_sample *sample)
{
    /* The sample's own, const for its users. */
    free((void *)(uintptr_t)sample->trace.ids);
    free((void *)(uintptr_t)sample->trace.sizes);
    free((void *)(uintptr_t)sample->trace.keys);
    free((void *)(uintptr_t)sample->trace.charges);
    free((void *)(uintptr_t)sample->trace.times_us);
    *sample = (struct sim_sample){0};
}
