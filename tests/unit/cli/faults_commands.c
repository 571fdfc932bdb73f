/*
 * Whole subcommands with each of their system calls failing in turn: the exit status says so,
 * unless the command does without, and no temporary file stays behind.
 */
#include "tests/unit/cli/commands.h"
#include "tests/unit/faults.h"
#include "tests/unit/unit.h"

#include <errno.h>
#include <sysexits.h>

static void
run(void *context)
{
    unsigned row = *(const unsigned *)context;
    int status = commands_run(row);
    const char *failed = faults_failed();

    faults_fail_at(0, 0);
    if (!failed)
        ck_assert_msg(status == EX_OK, "%s: %d", commands_text(row), status);
    else
        ck_assert_msg(status == EX_OK || (status >= EX__BASE && status <= EX__MAX), "%s, %s: %d",
                      commands_text(row), failed, status);
}

START_TEST(no_system)
{
    unsigned row = (unsigned)_i;

    faults_walk(run, &row, EIO);
    faults_walk(run, &row, EMFILE);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("commands with faults");
    TCase *tcase = tcase_create("commands with faults");

    tcase_add_checked_fixture(tcase, commands_set_up, commands_tear_down);
    tcase_add_loop_test(tcase, no_system, 0, (int)commands_count());
    suite_add_tcase(suite, tcase);
    return suite;
}
