/* Printing tables and curves does not change the signals of the process. */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "cli/interrupt.h"
#include "study/simulate/simulate.h"
#include "tests/unit/unit.h"

static char path[32];
static struct simulate_options options;
static struct simulate_subject subject;

static void
set_up(void)
{
    static const char list[] = "http://h/a\nhttp://h/b\nhttp://h/a\n";
    struct policy_spec *spec = malloc(sizeof(*spec));
    int fd;

    strcpy(path, "/tmp/sunproxy-test-XXXXXX");
    fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, list, sizeof(list) - 1), sizeof(list) - 1);
    close(fd);
    simulate_options_init(&options);
    options.jobs = 1;
    ck_assert_ptr_nonnull(spec);
    *spec = policy_spec_of(policy_find("lru"));
    options.specs = spec;
    options.spec_count = 1;
    ck_assert_int_eq(simulate_subject_load((char *[]){path}, 1, &options, &subject), EX_OK);
    ck_assert_int_ne(interrupt_catch(), 0);
}

static void
tear_down(void)
{
    interrupt_release();
    simulate_subject_free(&subject);
    simulate_options_free(&options);
    unlink(path);
}

static void
report_all(enum simulate_output output)
{
    struct simulate_row row = {.path = path, .spec = options.specs[0], .urls = 1, .share = 0.5};
    struct simulate_curves curves;
    struct simulate_report report;
    int before = dup(STDOUT_FILENO), nowhere = open("/dev/null", O_WRONLY);

    ck_assert_int_eq(simulate_curves_make(&curves, &subject, &options, false, 2), EX_OK);
    fflush(stdout);
    dup2(nowhere, STDOUT_FILENO);
    simulate_report_begin(&report, output, false);
    row.job = simulate_job(&subject, &options, &row.spec, row.urls, row.bytes);
    simulate_report_trace(&report, &subject, &row, 1);
    simulate_report_curves(&report, &curves);
    ck_assert_int_eq(simulate_report_flush(&report), EX_OK);
    ck_assert_int_eq(simulate_report_end(&report), EX_OK);
    fflush(stdout);
    dup2(before, STDOUT_FILENO);
    close(before);
    close(nowhere);
    simulate_curves_free(&curves);
}

START_TEST(signals_stay_caught)
{
    sigset_t blocked;

    report_all((enum simulate_output)_i);
    ck_assert_int_eq(pthread_sigmask(SIG_BLOCK, NULL, &blocked), 0);
    ck_assert_int_eq(sigismember(&blocked, SIGINT), 1);
    ck_assert_int_eq(sigismember(&blocked, SIGTERM), 1);
}
END_TEST

/* What an output says of a run that ended at its second request of three, or after one seed. */
static const char *
report_stopped(enum simulate_output output, uint64_t requests)
{
    static char text[8192];
    struct simulate_row row = {.path = path, .spec = options.specs[0], .urls = 7};
    struct simulate_report report;
    FILE *file = tmpfile();
    int before = dup(STDOUT_FILENO);
    size_t len;

    ck_assert_ptr_nonnull(file);
    fflush(stdout);
    dup2(fileno(file), STDOUT_FILENO);
    simulate_report_begin(&report, output, false);
    row.job = simulate_job(&subject, &options, &row.spec, row.urls, row.bytes);
    row.job.runs = 5;
    row.job.error = SIM_STOPPED;
    row.job.result.requests = requests;
    row.job.result.hit_ratio = 0.25;
    row.job.spread.runs = 1;
    simulate_report_trace(&report, &subject, &row, 1);
    simulate_report_interrupted(&report, 0);
    ck_assert_int_eq(simulate_report_end(&report), EX_OK);
    fflush(stdout);
    dup2(before, STDOUT_FILENO);
    close(before);
    rewind(file);
    len = fread(text, 1, sizeof(text) - 1, file);
    text[len] = '\0';
    fclose(file);
    return text;
}

START_TEST(what_was_not_finished_is_apart)
{
    const char *text = report_stopped(SIMULATE_TABLE, 2);

    ck_assert_ptr_nonnull(strstr(text, "\nnot finished:\n  lru with 7 URLs: hit ratio 25.00 % "
                                       "up to request 2 of 3\n"));
    ck_assert_ptr_nonnull(strstr(text, "interrupted: 0 of 1 runs are finished"));
    text = report_stopped(SIMULATE_TABLE, 3);
    ck_assert_ptr_nonnull(strstr(text, "hit ratio 25.00 % with 1 of 5 seeds\n"));
    ck_assert_ptr_null(strstr(report_stopped(SIMULATE_TABLE, 0), "not finished"));
    text = report_stopped(SIMULATE_JSON, 2);
    ck_assert_msg(strstr(text, "\"results\":[]"), "%s", text);
    ck_assert_ptr_nonnull(strstr(text, "\"up_to_request\":2,\"hit_ratio\":0.25"));
    ck_assert_ptr_null(strstr(report_stopped(SIMULATE_JSON, 0), "unfinished"));
    /* A line of CSV would look as those of whole runs. */
    ck_assert_ptr_null(strstr(report_stopped(SIMULATE_CSV, 2), "lru"));
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("study/simulate_report");
    TCase *tcase = tcase_create("signals");

    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_loop_test(tcase, signals_stay_caught, SIMULATE_TABLE, SIMULATE_CSV + 1);
    tcase_add_test(tcase, what_was_not_finished_is_apart);
    suite_add_tcase(suite, tcase);
    return suite;
}
