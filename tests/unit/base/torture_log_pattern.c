/* Format strings without memory: none is compiled, and nothing is lost. */
#include "base/log_pattern.h"

#include <errno.h>

#include "tests/unit/torture.h"
#include "tests/unit/unit.h"

static void
compile(void *context)
{
    struct log_pattern *pattern;
    struct buf why;

    buf_init(&why, 1024);
    errno = 0;
    pattern = log_pattern_compile(context, &why);
    ck_assert(pattern || (torture_failed() && errno == ENOMEM));
    log_pattern_free(pattern);
    buf_free(&why);
}

START_TEST(patterns)
{
    ck_assert_uint_ge(torture_walk(compile, "%h %{User-Agent}i %{%FT%T}t %{outcome}x"), 5);
}
END_TEST

static Suite *
unit_suite(void)
{
    Suite *suite = suite_create("base/torture_log_pattern");
    TCase *tc = tcase_create("torture");

    tcase_add_test(tc, patterns);
    suite_add_tcase(suite, tc);
    return suite;
}
