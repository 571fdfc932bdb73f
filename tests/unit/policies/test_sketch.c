/*
 * The sketch of frequencies that TinyLFU and W-TinyLFU keep.
 */
#include "policies/sketch.h"

#include "tests/unit/unit.h"

static uint64_t
nth_key(uint64_t i)
{
    return (i + 1) * 0x9e3779b97f4a7c15u;
}

START_TEST(sketch_counts_up_to_15)
{
    struct sketch sketch;

    ck_assert(sketch_init(&sketch, 4, 1000));
    ck_assert_uint_eq(sketch_estimate(&sketch, 7), 0);
    for (unsigned i = 1; i <= 40; i++) {
        sketch_count(&sketch, 7);
        ck_assert_uint_eq(sketch_estimate(&sketch, 7), i < 15 ? i : 15);
        ck_assert(sketch_is_valid(&sketch));
    }
    ck_assert_uint_eq(sketch_estimate(&sketch, 8), 0);
    sketch_free(&sketch);
}
END_TEST

START_TEST(sketch_halves_after_a_sample)
{
    struct sketch sketch;
    unsigned sample;

    ck_assert(sketch_init(&sketch, 4, 2));
    sample = 2 * (unsigned)sketch.pages;
    for (unsigned i = 0; i < 9; i++)
        sketch_count(&sketch, 1);
    for (unsigned i = 9; i < sample - 1; i++)
        sketch_count(&sketch, 2);
    ck_assert_uint_eq(sketch_estimate(&sketch, 1), 9);
    ck_assert_uint_eq(sketch_estimate(&sketch, 2), 15);
    sketch_count(&sketch, 2); /* the last of the sample */
    ck_assert_uint_eq(sketch_estimate(&sketch, 1), 4);
    ck_assert_uint_eq(sketch_estimate(&sketch, 2), 7);
    ck_assert_uint_eq(sketch.counted, sample / 2);
    for (unsigned i = 0; i < sample / 2 - 1; i++)
        sketch_count(&sketch, 3);
    ck_assert_uint_eq(sketch_estimate(&sketch, 1), 4);
    sketch_count(&sketch, 3);
    ck_assert_uint_eq(sketch_estimate(&sketch, 1), 2);
    sketch_free(&sketch);
}
END_TEST

#define KEYS 1000u

/* Counted too often at times, never too seldom. */
START_TEST(sketch_errs_upwards_and_seldom)
{
    static unsigned truth[KEYS];
    struct sketch sketch;
    uint64_t state = 3;
    unsigned wrong = 0;

    ck_assert(sketch_init(&sketch, 4, 1000));
    sketch_fit(&sketch, KEYS);
    for (unsigned i = 0; i < 6 * KEYS; i++) {
        unsigned key = unit_draw(&state, 1 + unit_draw(&state, KEYS));

        truth[key]++;
        sketch_count(&sketch, nth_key(key));
    }
    for (unsigned key = 0; key < KEYS; key++) {
        unsigned exact = truth[key] < 15 ? truth[key] : 15;
        unsigned estimate = sketch_estimate(&sketch, nth_key(key));

        ck_assert_uint_ge(estimate, exact);
        wrong += estimate != exact;
    }
    ck_assert_uint_lt(wrong, KEYS / 50);
    sketch_free(&sketch);
}
END_TEST

static unsigned
sum_of_counters(const struct sketch *sketch)
{
    unsigned sum = 0;

    for (size_t i = 0; i < (sketch->block_mask + 1) * SKETCH_BLOCK_WORDS; i++) {
        for (unsigned shift = 0; shift < 64; shift += 4)
            sum += (unsigned)(sketch->words[i] >> shift) & 15u;
    }
    return sum;
}

/* A counter that is above a key's lowest was raised by others, and stays as it is. */
START_TEST(sketch_raises_the_lowest_only)
{
    unsigned shared = 0;

    for (uint64_t key = 1; key < 200; key++) {
        struct sketch sketch;
        unsigned sum;

        ck_assert(sketch_init(&sketch, 0.5, 1000)); /* one block */
        ck_assert_uint_eq(sketch.block_mask, 0);
        for (int i = 0; i < 5; i++)
            sketch_count(&sketch, nth_key(0));
        sketch_count(&sketch, nth_key(key));
        sum = sum_of_counters(&sketch);
        ck_assert_uint_ge(sum, 20 + 1);
        ck_assert_uint_le(sum, 20 + 4);
        ck_assert_uint_eq(sketch_estimate(&sketch, nth_key(key)), 1);
        shared += sum < 20 + 4;
        sketch_free(&sketch);
    }
    ck_assert_uint_gt(shared, 0);
}
END_TEST

START_TEST(sketch_keeps_estimates_when_it_grows)
{
    static unsigned before[KEYS];
    struct sketch sketch;
    uint64_t blocks;

    ck_assert(sketch_init(&sketch, 1, 1000));
    for (unsigned i = 0; i < 3 * KEYS; i++)
        sketch_count(&sketch, nth_key(i * i % KEYS));
    for (unsigned key = 0; key < KEYS; key++)
        before[key] = sketch_estimate(&sketch, nth_key(key));
    blocks = sketch.block_mask + 1;
    sketch_fit(&sketch, 10 * KEYS);
    ck_assert_uint_ge(sketch.block_mask + 1, 8 * blocks);
    ck_assert_uint_ge(sketch.pages, 10 * KEYS);
    ck_assert(sketch_is_valid(&sketch));
    for (unsigned key = 0; key < KEYS; key++)
        ck_assert_uint_eq(sketch_estimate(&sketch, nth_key(key)), before[key]);
    blocks = sketch.block_mask;
    sketch_fit(&sketch, 5); /* never smaller */
    ck_assert_uint_eq(sketch.block_mask, blocks);
    sketch_fit(&sketch, UINT64_MAX); /* nor larger than any cache */
    ck_assert_uint_eq(sketch.block_mask, blocks);
    sketch_free(&sketch);
}
END_TEST

START_TEST(sketch_validity_notices_what_is_wrong)
{
    struct sketch sketch, whole;

    ck_assert(sketch_init(&sketch, 1, 10));
    whole = sketch;
    sketch.block_mask = whole.block_mask * 2 + 1; /* more than the pages ask for */
    ck_assert(!sketch_is_valid(&sketch));
    sketch.block_mask = 4; /* five blocks */
    ck_assert(!sketch_is_valid(&sketch));
    sketch = whole;
    sketch.counted = whole.pages * 10;
    ck_assert(!sketch_is_valid(&sketch));
    sketch.counted--;
    ck_assert(sketch_is_valid(&sketch));
    sketch_free(&sketch);
    ck_assert(!sketch_is_valid(&sketch));
}
END_TEST

START_TEST(sketch_tells_bad_keys_apart)
{
    struct sketch sketch;
    unsigned wrong = 0;

    ck_assert(sketch_init(&sketch, 4, 1000));
    sketch_fit(&sketch, KEYS);
    for (uint64_t i = 0; i < KEYS / 2; i++)
        sketch_count(&sketch, i << 32); /* no hashes, and only high bits */
    for (uint64_t i = KEYS / 2; i < KEYS; i++)
        wrong += sketch_estimate(&sketch, i << 32) != 0;
    ck_assert_uint_lt(wrong, KEYS / 50);
    sketch_free(&sketch);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("policies/sketch");
    TCase *tc = tcase_create("sketch");

    tcase_add_test(tc, sketch_counts_up_to_15);
    tcase_add_test(tc, sketch_halves_after_a_sample);
    tcase_add_test(tc, sketch_errs_upwards_and_seldom);
    tcase_add_test(tc, sketch_raises_the_lowest_only);
    tcase_add_test(tc, sketch_keeps_estimates_when_it_grows);
    tcase_add_test(tc, sketch_tells_bad_keys_apart);
    tcase_add_test(tc, sketch_validity_notices_what_is_wrong);
    suite_add_tcase(suite, tc);
    return suite;
}
