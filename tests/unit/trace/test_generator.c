/*
 * The traces that ship with the project are what their generator makes, and have the figures that
 * were published.
 */
#include <stdlib.h>

#include "tests/unit/unit.h"

START_TEST(the_generator_makes_what_is_shipped)
{
    if (system("command -v python3 >/dev/null") != 0)
        unit_skip("python3 is not installed");
    ck_assert_int_eq(system("python3 -B datasets/generate.py --check"), 0);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("generator");
    TCase *tcase = tcase_create("check");

    tcase_add_test(tcase, the_generator_makes_what_is_shipped);
    suite_add_tcase(suite, tcase);
    return suite;
}
