/* Marks of URLs whose answers could not be shared: for a time, and of a bounded number. */
#include "fetch/marks.h"

#include <pthread.h>
#include <stdio.h>

#include "tests/unit/unit.h"

#define START ((int64_t)1000000)

START_TEST(a_mark_lasts_for_its_time)
{
    struct marks *marks = marks_create();

    ck_assert(!marks_has(marks, span_str("u"), START));
    marks_set(marks, span_str("u"), START);
    ck_assert(marks_has(marks, span_str("u"), START));
    ck_assert(marks_has(marks, span_str("u"), START + MARKS_LIFE_US - 1));
    ck_assert(!marks_has(marks, span_str("u"), START + MARKS_LIFE_US));
    ck_assert(!marks_has(marks, span_str("v"), START));
    ck_assert(!marks_has(marks, span_str(""), START));
    /* Set anew, it lasts longer. */
    marks_set(marks, span_str("u"), START + 5);
    ck_assert(marks_has(marks, span_str("u"), START + MARKS_LIFE_US));
    ck_assert(!marks_has(marks, span_str("u"), START + MARKS_LIFE_US + 5));
    marks_destroy(marks);
    marks_destroy(NULL);
}
END_TEST

START_TEST(a_mark_is_taken_away)
{
    struct marks *marks = marks_create();

    marks_set(marks, span_str("u"), START);
    marks_set(marks, span_str("v"), START);
    marks_clear(marks, span_str("w"));
    marks_clear(marks, span_str("u"));
    ck_assert(!marks_has(marks, span_str("u"), START));
    ck_assert(marks_has(marks, span_str("v"), START));
    marks_clear(marks, span_str("u"));
    marks_set(marks, span_str("u"), START);
    ck_assert(marks_has(marks, span_str("u"), START));
    marks_destroy(marks);
}
END_TEST

static bool
has_number(struct marks *marks, unsigned i, int64_t now_us)
{
    char url[32];

    snprintf(url, sizeof(url), "http://h/%u", i);
    return marks_has(marks, span_str(url), now_us);
}

static void
set_number(struct marks *marks, unsigned i, int64_t now_us)
{
    char url[32];

    snprintf(url, sizeof(url), "http://h/%u", i);
    marks_set(marks, span_str(url), now_us);
}

START_TEST(more_than_fit_push_out_older_ones)
{
    enum { COUNT = 20 * MARKS_MAX };
    struct marks *marks = marks_create();
    unsigned left = 0, newest = 0;

    for (unsigned i = 0; i < COUNT; i++) {
        set_number(marks, i, START + i);
        ck_assert(has_number(marks, i, START + i));
    }
    for (unsigned i = 0; i < COUNT; i++) {
        bool there = has_number(marks, i, START + COUNT);

        left += there;
        newest += there && i >= COUNT - MARKS_MAX / 4;
    }
    ck_assert_uint_le(left, MARKS_MAX);
    ck_assert_uint_gt(left, MARKS_MAX * 9 / 10);
    /* Of the newest quarter, hardly one has found four newer ones in its set. */
    ck_assert_uint_gt(newest, MARKS_MAX / 4 * 9 / 10);
    marks_destroy(marks);
}
END_TEST

static void *
use(void *context)
{
    struct marks *marks = context;

    for (unsigned i = 0; i < 20000; i++) {
        char url[32];

        snprintf(url, sizeof(url), "http://h/%u", i % 50);
        if (i % 3 == 0)
            marks_set(marks, span_str(url), i);
        else if (i % 3 == 1)
            marks_has(marks, span_str(url), i);
        else
            marks_clear(marks, span_str(url));
    }
    return NULL;
}

START_TEST(many_threads)
{
    struct marks *marks = marks_create();
    pthread_t threads[4];

    for (unsigned i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, use, marks), 0);
    for (unsigned i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
    for (unsigned i = 0; i < 50; i++)
        set_number(marks, i, START);
    for (unsigned i = 0; i < 50; i++)
        ck_assert(has_number(marks, i, START));
    marks_destroy(marks);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("fetch/marks");
    TCase *tests = tcase_create("marks");

    tcase_add_test(tests, a_mark_lasts_for_its_time);
    tcase_add_test(tests, a_mark_is_taken_away);
    tcase_add_test(tests, more_than_fit_push_out_older_ones);
    tcase_add_test(tests, many_threads);
    suite_add_tcase(suite, tests);
    return suite;
}
