/* Which lines about what remote parties cause are logged. */
#define UNIT_STARTS_NO_THREAD

#include "server/logs/log_limit.h"

#include "tests/unit/unit.h"

static struct log_limit limit;
static uint64_t withheld;

START_TEST(a_line_a_minute_for_a_subject)
{
    log_limit_init(&limit);
    ck_assert(log_limit_take(&limit, 1, 1000, &withheld));
    ck_assert_uint_eq(withheld, 0);
    for (unsigned i = 0; i < 7; i++)
        ck_assert(!log_limit_take(&limit, 1, 1000 + LOG_LIMIT_US - 1, &withheld));
    ck_assert(log_limit_take(&limit, 2, 1000 + LOG_LIMIT_US - 1, &withheld));
    ck_assert_uint_eq(withheld, 0);
    ck_assert(log_limit_take(&limit, 1, 1000 + LOG_LIMIT_US, &withheld));
    ck_assert_uint_eq(withheld, 7);
    log_limit_free(&limit);
}
END_TEST

START_TEST(lines_about_all_subjects_are_bounded)
{
    log_limit_init(&limit);
    for (unsigned i = 0; i < LOG_LIMIT_LINES; i++)
        ck_assert(log_limit_take(&limit, i, 1000, &withheld));
    ck_assert(!log_limit_take(&limit, LOG_LIMIT_LINES, 1000, &withheld));
    ck_assert(log_limit_take(&limit, LOG_LIMIT_LINES, 1000 + LOG_LIMIT_US, &withheld));
    ck_assert_uint_eq(withheld, 1);
    log_limit_free(&limit);
}
END_TEST

/* Two in one place: the later one is remembered, and the earlier one is new again. */
START_TEST(subjects_that_collide)
{
    log_limit_init(&limit);
    ck_assert(log_limit_take(&limit, 5, 1000, &withheld));
    ck_assert(log_limit_take(&limit, 5 + LOG_LIMIT_SUBJECTS, 1000, &withheld));
    ck_assert(!log_limit_take(&limit, 5 + LOG_LIMIT_SUBJECTS, 1000, &withheld));
    ck_assert(log_limit_take(&limit, 5, 1000, &withheld));
    ck_assert_uint_eq(withheld, 0);
    log_limit_free(&limit);
}
END_TEST

/* They count in the minute of all, and are not withheld; what was withheld before them is told. */
START_TEST(lines_that_are_logged_in_any_case)
{
    log_limit_init(&limit);
    ck_assert(log_limit_take(&limit, 1, 1000, &withheld));
    for (unsigned i = 0; i < 5; i++) {
        log_limit_note(&limit, 1, 1001, &withheld);
        ck_assert_uint_eq(withheld, 0);
    }
    ck_assert(!log_limit_take(&limit, 1, 1001 + LOG_LIMIT_US - 1, &withheld));
    log_limit_note(&limit, 1, 1001 + LOG_LIMIT_US - 1, &withheld);
    ck_assert_uint_eq(withheld, 1);
    ck_assert(!log_limit_take(&limit, 1, 1001 + LOG_LIMIT_US, &withheld));
    for (unsigned i = 2; i <= LOG_LIMIT_LINES; i++)
        log_limit_note(&limit, i, 1001 + LOG_LIMIT_US, &withheld);
    ck_assert(!log_limit_take(&limit, 100, 1001 + LOG_LIMIT_US, &withheld));
    ck_assert(log_limit_take(&limit, 100, 1001 + 2 * LOG_LIMIT_US, &withheld));
    log_limit_free(&limit);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("server/log_limit");
    TCase *tc = tcase_create("limit");

    tcase_add_test(tc, a_line_a_minute_for_a_subject);
    tcase_add_test(tc, lines_about_all_subjects_are_bounded);
    tcase_add_test(tc, subjects_that_collide);
    tcase_add_test(tc, lines_that_are_logged_in_any_case);
    suite_add_tcase(suite, tc);
    return suite;
}
