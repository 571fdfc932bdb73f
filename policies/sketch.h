/*
 * Approximate request counts of keys: a count-min sketch (Cormode, Muthukrishnan 2005) of 4-bit
 * counters with conservative update and periodic halving, as TinyLFU uses it (Einziger, Friedman,
 * Manes 2017, sections 3.3 and 3.4).
 *
 * Four rows; a key has one counter in each, all four in one 64-byte block, so that an access reads
 * one cache line. Counting increments only those of the four that are lowest. The estimate is the
 * lowest, and it is never below the true count since the last halving, up to 15. After a sample of
 * requests all counters are halved, and the number of counted requests with them.
 *
 * It is sized by pages: `width` counters in each row for each page, rounded up to a power of two,
 * and `sample` requests for each page. It grows by doubling, and every estimate stays as it was.
 *
 * The same keys give the same counters in every program, so that a simulation does what a server
 * does. A client that chooses URLs can choose some that share counters. Its pages are then
 * estimated higher than they are, which it could also reach by more requests.
 */
#ifndef SUNPROXY_POLICIES_SKETCH_H
#define SUNPROXY_POLICIES_SKETCH_H

#include <stdbool.h>
#include <stdint.h>

#define SKETCH_MAX_COUNT 15u
#define SKETCH_BLOCK_WORDS 8u

struct sketch {
    uint64_t *words;     /* owned; blocks of SKETCH_BLOCK_WORDS, a row two words */
    uint64_t block_mask; /* the number of blocks, a power of two, less one */
    uint64_t pages;      /* how many it is sized for */
    uint64_t counted;    /* since it was made; halved with the counters */
    double width;
    double sample;
};

/* For a few pages to begin with; false without memory. */
bool sketch_init(struct sketch *sketch, double width, double sample);

void sketch_free(struct sketch *sketch);

/* There are that many pages now: grows if it is too small for them and there is memory. */
void sketch_fit(struct sketch *sketch, uint64_t pages);

/* A request for this key. */
void sketch_count(struct sketch *sketch, uint64_t key);

/* About how many requests there were: 0 to SKETCH_MAX_COUNT. */
unsigned sketch_estimate(const struct sketch *sketch, uint64_t key);

/* For tests: no more was counted than a sample. */
bool sketch_is_valid(const struct sketch *sketch);

/* The parameters of a sketch, for the tables of the policies that have one. */
#define SKETCH_PARAM_WIDTH                                            \
    {                                                                 \
        .name = "width", .start = 4, .low = 0.5, .high = 64,          \
        .meaning = "counters in each row of the sketch for each page" \
    }
#define SKETCH_PARAM_SAMPLE                                                              \
    {                                                                                    \
        .name = "sample", .start = 10, .low = 1, .high = 1000,                           \
        .meaning = "requests for each page after which the sketch's counters are halved" \
    }

#endif
