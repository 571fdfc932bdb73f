/*
 * Whole subcommands with each of their allocations failing in turn: the exit status says so, unless
 * the command does without, and nothing is lost. (Allocations of other threads do not fail.)
 */
#include "tests/unit/cli/commands.h"
#include "tests/unit/torture.h"
#include "tests/unit/unit.h"

#include <string.h>
#include <sysexits.h>

static void
run(void *context)
{
    unsigned row = *(const unsigned *)context;
    int status = commands_run(row);
    bool failed = torture_failed();

    torture_fail_at(0);
    if (!failed)
        ck_assert_msg(status == EX_OK, "%s: %d", commands_text(row), status);
    else
        ck_assert_msg(status == EX_OK || (status >= EX__BASE && status <= EX__MAX), "%s: %d",
                      commands_text(row), status);
}

START_TEST(no_memory)
{
    unsigned row = (unsigned)_i;

    /* `policies` prints from tables. */
    ck_assert(torture_walk(run, &row) >= 1 || strncmp(commands_text(row), "policies", 8) == 0);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("commands under torture");
    TCase *tcase = tcase_create("commands under torture");

    tcase_add_checked_fixture(tcase, commands_set_up, commands_tear_down);
    tcase_add_loop_test(tcase, no_memory, 0, (int)commands_count());
    suite_add_tcase(suite, tcase);
    return suite;
}
