/*
 * Helpers and their keeper with each call of the operating system failing in turn: a question is
 * answered rightly, now or by another helper, or the keeper is lost, and the log says so. (Calls of
 * the keeper's process fail, too.)
 */
#include "server/users/helpers.h"

#include <errno.h>
#include <signal.h>

#include "base/clock.h"
#include "server/commands/keeper.h"
#include "server/logs/log.h"
#include "tests/unit/faults.h"
#include "tests/unit/server/logs/logged.h"
#include "tests/unit/unit.h"

#define TIMEOUT_US ((int64_t)60 * 1000000)

/* What a test asks, and what it was told. */
struct asked {
    struct helper_job job;
    bool told;
    enum helper_answer answer;
};

static void
answered(void *context, struct helper_job *job, enum helper_answer answer)
{
    struct asked *asked = context;

    ck_assert_ptr_eq(job, &asked->job);
    asked->told = true;
    asked->answer = answer;
}

static bool
enter(const void *context)
{
    (void)context;
    return true;
}

static bool
is_lost(void)
{
    return logged_times("the process that starts helpers has ended") > 0;
}

/* Until it is answered by a helper, or none can be. */
static void
ask(struct helpers *helpers, struct asked *asked, const char *password)
{
    struct pollfd fds[HELPERS_FDS];

    asked->told = false;
    for (;;) {
        unsigned count;

        if (!asked->job.helper && helpers_are_free(helpers))
            helpers_ask(helpers, &asked->job, "anna", password, clock_monotonic_us());
        count = helpers_get_fds(helpers, fds);
        (void)poll(fds, count, 10);
        helpers_work(helpers, fds, TIMEOUT_US, clock_monotonic_us());
        if (asked->told && asked->answer != HELPER_ENDED)
            return;
        asked->told = false;
        if (!asked->job.helper && is_lost() && !helpers_are_free(helpers))
            return;
    }
}

static void
run(void *context)
{
    struct asked asked = {.told = false};
    struct helpers_config config = {.count = 2, .answered = answered, .context = &asked};
    struct helpers *helpers;
    pid_t keeper;

    (void)context;
    logged_clear();
    config.keeper = helper_keeper_start("while read u p; do case $p in right) echo OK;; "
                                        "*) echo ERR;; esac; done",
                                        enter, NULL, &keeper);
    if (config.keeper < 0) {
        ck_assert_ptr_nonnull(faults_failed());
        return;
    }
    helpers = helpers_create(&config);
    ck_assert_ptr_nonnull(helpers);
    for (unsigned i = 0; i < 3; i++) {
        ask(helpers, &asked, i % 2 ? "wrong" : "right");
        ck_assert(asked.told ? asked.answer == (i % 2 ? HELPER_REFUSED : HELPER_ACCEPTED)
                             : is_lost());
    }
    helpers_destroy(helpers);
    faults_fail_at(0, 0);
    keeper_wait(keeper);
}

START_TEST(each_failure_is_answered)
{
    unsigned descriptors = unit_open_descriptors();

    faults_spare("poll");
    ck_assert_uint_ge(faults_walk(run, NULL, ECONNRESET), 4);
    ck_assert_uint_eq(unit_open_descriptors(), descriptors);
}
END_TEST

static void
set_up(void)
{
    signal(SIGPIPE, SIG_IGN);
    logged_begin();
    log_setup(LOG_LEVEL_INFO, LOG_FORMAT_PLAIN);
}

static void
tear_down(void)
{
    logged_end();
}

static Suite *
unit_suite(void)
{
    Suite *suite = suite_create("helpers' calls failing");
    TCase *tcase = tcase_create("helpers");

    tcase_set_timeout(tcase, 300);
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, each_failure_is_answered);
    suite_add_tcase(suite, tcase);
    return suite;
}
