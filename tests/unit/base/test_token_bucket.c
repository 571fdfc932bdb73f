/* Token buckets by a scripted clock, beside a model that steps through every microsecond. */
#define UNIT_STARTS_NO_THREAD

#include "base/token_bucket.h"

#include <stdlib.h>

#include "tests/unit/unit.h"

#define SECOND ((int64_t)1000000)

START_TEST(a_burst_and_then_the_rate)
{
    struct token_rate rate = {.per_second = 10, .burst = 3};
    struct token_bucket bucket;
    int64_t now = 5 * SECOND;

    token_bucket_init(&bucket, &rate, now);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(token_bucket_wait_us(&bucket, &rate, 1, now), 0);
        token_bucket_spend(&bucket, &rate, 1, now);
    }
    ck_assert_int_eq(token_bucket_wait_us(&bucket, &rate, 1, now), 100000);
    ck_assert_int_eq(token_bucket_wait_us(&bucket, &rate, 3, now), 300000);
    ck_assert_int_eq(token_bucket_wait_us(&bucket, &rate, 0, now), 0);
    ck_assert_int_eq(token_bucket_wait_us(&bucket, &rate, 1, now + 99999), 1);
    ck_assert_int_eq(token_bucket_wait_us(&bucket, &rate, 1, now + 100000), 0);
    /* No more than the burst, however long it takes. */
    now += 1000 * SECOND;
    ck_assert_int_eq(token_bucket_wait_us(&bucket, &rate, 3, now), 0);
    token_bucket_spend(&bucket, &rate, 3, now);
    ck_assert_int_eq(token_bucket_wait_us(&bucket, &rate, 1, now), 100000);
}
END_TEST

START_TEST(debt_is_paid_before_anything_else)
{
    struct token_rate rate = {.per_second = 1000, .burst = 500};
    struct token_bucket bucket;

    token_bucket_init(&bucket, &rate, 0);
    token_bucket_spend(&bucket, &rate, 20500, 0);
    ck_assert_int_eq(token_bucket_wait_us(&bucket, &rate, 0, 0), 20 * SECOND);
    ck_assert_int_eq(token_bucket_wait_us(&bucket, &rate, 1, 0), 20 * SECOND + 1000);
    ck_assert_int_eq(token_bucket_wait_us(&bucket, &rate, 0, 20 * SECOND - 1), 1);
    ck_assert_int_eq(token_bucket_wait_us(&bucket, &rate, 0, 20 * SECOND), 0);
    token_bucket_give_back(&bucket, &rate, 300, 20 * SECOND);
    ck_assert_int_eq(token_bucket_wait_us(&bucket, &rate, 300, 20 * SECOND), 0);
    token_bucket_give_back(&bucket, &rate, 300, 20 * SECOND);
    ck_assert_int_eq(token_bucket_wait_us(&bucket, &rate, 500, 20 * SECOND), 0);
    token_bucket_spend(&bucket, &rate, 500, 20 * SECOND);
    ck_assert_int_eq(token_bucket_wait_us(&bucket, &rate, 1, 20 * SECOND), 1000);
}
END_TEST

START_TEST(a_level_and_a_debt_survive_a_change_of_the_rate)
{
    const struct token_rate none = {0}, slow = {.per_second = 1, .burst = 10},
                            fast = {.per_second = 10, .burst = 5};
    struct token_bucket bucket;

    token_bucket_init(&bucket, &slow, 0);
    token_bucket_spend(&bucket, &slow, 2, 0);
    token_bucket_change(&bucket, &slow, &fast, 0);
    ck_assert_int_eq(token_bucket_wait_us(&bucket, &fast, 5, 0), 0);
    token_bucket_spend(&bucket, &fast, 25, 0);
    token_bucket_change(&bucket, &fast, &slow, 1000000);
    ck_assert_int_eq(token_bucket_wait_us(&bucket, &slow, 0, 1000000), 10000000);
    token_bucket_change(&bucket, &slow, &none, 1000000);
    token_bucket_change(&bucket, &none, &fast, 2000000);
    ck_assert_int_eq(token_bucket_wait_us(&bucket, &fast, 5, 2000000), 0);
}
END_TEST

START_TEST(time_that_runs_backwards_gives_nothing)
{
    struct token_rate rate = {.per_second = 1, .burst = 1};
    struct token_bucket bucket;

    token_bucket_init(&bucket, &rate, 100 * SECOND);
    token_bucket_spend(&bucket, &rate, 1, 100 * SECOND);
    ck_assert_int_eq(token_bucket_wait_us(&bucket, &rate, 1, 0), SECOND);
    ck_assert_int_eq(token_bucket_wait_us(&bucket, &rate, 1, 100 * SECOND), SECOND);
    ck_assert_int_eq(token_bucket_wait_us(&bucket, &rate, 1, 101 * SECOND), 0);
}
END_TEST

/* The largest of everything, for as long as a clock can run. */
START_TEST(nothing_overflows)
{
    const struct token_rate rates[] = {
        {.per_second = 1, .burst = TOKEN_BUCKET_MOST},
        {.per_second = TOKEN_BUCKET_MOST, .burst = 1},
        {.per_second = TOKEN_BUCKET_MOST, .burst = TOKEN_BUCKET_MOST},
        {.per_second = 1, .burst = 1},
    };

    for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
        struct token_bucket bucket;

        token_bucket_init(&bucket, &rates[i], 0);
        for (int n = 0; n < 100; n++)
            token_bucket_spend(&bucket, &rates[i], UINT64_MAX, n);
        ck_assert_int_gt(token_bucket_wait_us(&bucket, &rates[i], rates[i].burst, 100), 0);
        ck_assert_int_ge(token_bucket_wait_us(&bucket, &rates[i], 0, INT64_MAX / 8), 0);
        ck_assert_int_eq(token_bucket_wait_us(&bucket, &rates[i], rates[i].burst, INT64_MAX), 0);
        token_bucket_give_back(&bucket, &rates[i], UINT64_MAX, INT64_MAX);
        ck_assert_int_eq(token_bucket_wait_us(&bucket, &rates[i], rates[i].burst, INT64_MAX), 0);
    }
}
END_TEST

/* ---- beside the model ------------------------------------------------------------------------ */

struct model {
    int64_t level;
    int64_t at;
};

static void
model_run(struct model *model, const struct token_rate *rate, int64_t now)
{
    for (; model->at < now; model->at++) {
        model->level += (int64_t)rate->per_second;
        if (model->level > (int64_t)rate->burst * SECOND)
            model->level = (int64_t)rate->burst * SECOND;
    }
}

static int64_t
model_wait(const struct model *model, const struct token_rate *rate, uint64_t count)
{
    struct model then = *model;
    int64_t wait = 0;

    while (then.level < (int64_t)count * SECOND) {
        model_run(&then, rate, then.at + 1);
        wait++;
    }
    return wait;
}

START_TEST(any_sequence_is_as_the_model_says)
{
    srandom(7);
    for (int round = 0; round < 60; round++) {
        struct token_rate rate = {.per_second = 1 + (uint64_t)random() % 50000,
                                  .burst = 1 + (uint64_t)random() % 40};
        struct token_bucket bucket;
        struct model model = {.level = (int64_t)rate.burst * SECOND, .at = 17};
        int64_t now = 17;

        if (round % 2)
            rate.per_second *= 1000;
        token_bucket_init(&bucket, &rate, now);
        for (int step = 0; step < 400; step++) {
            uint64_t count = (uint64_t)random() % (rate.burst + 1);

            if (random() % 2)
                now += random() % 2000;
            model_run(&model, &rate, now);
            switch (random() % 4) {
            case 0:
                token_bucket_give_back(&bucket, &rate, count, now);
                model.level += (int64_t)count * SECOND;
                if (model.level > (int64_t)rate.burst * SECOND)
                    model.level = (int64_t)rate.burst * SECOND;
                break;
            case 1:
                token_bucket_spend(&bucket, &rate, count, now);
                model.level -= (int64_t)count * SECOND;
                break;
            default:
                if (token_bucket_wait_us(&bucket, &rate, count, now) == 0) {
                    token_bucket_spend(&bucket, &rate, count, now);
                    model.level -= (int64_t)count * SECOND;
                    ck_assert(model.level >= 0 || count == 0);
                }
            }
            ck_assert(bucket.level == model.level || bucket.at_us != now);
            if (step % 40 == 0 && model.level > -100 * SECOND)
                ck_assert_int_eq(token_bucket_wait_us(&bucket, &rate, count, now),
                                 model_wait(&model, &rate, count));
        }
    }
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("base/token bucket");
    TCase *tcase = tcase_create("bucket");

    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, a_burst_and_then_the_rate);
    tcase_add_test(tcase, debt_is_paid_before_anything_else);
    tcase_add_test(tcase, a_level_and_a_debt_survive_a_change_of_the_rate);
    tcase_add_test(tcase, time_that_runs_backwards_gives_nothing);
    tcase_add_test(tcase, nothing_overflows);
    tcase_add_test(tcase, any_sequence_is_as_the_model_says);
    suite_add_tcase(suite, tcase);
    return suite;
}
