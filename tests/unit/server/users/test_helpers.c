/*
 * Checks of users by helpers, which are shell scripts here: what they answer, and what happens when
 * they end, hang, or answer something else. Waits for most of its time.
 */
#include "server/users/users.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "server/commands/keeper.h"
#include "server/logs/log.h"
#include "server/users/helper_keeper.h"
#include "server/users/helpers.h"
#include "tests/unit/server/logs/logged.h"
#include "tests/unit/unit.h"

enum { SECOND = 1000000 };

/* The password says what a helper does. */
#define CASES                                                                                     \
    "right) say OK;; wrong) say ERR;; bh) say 'BH message=\"no directory\"';; "                   \
    "die) exit 3;; kill) kill -9 $$;; hang) sleep 1000;; nonsense) echo 'hello world';; "         \
    "twice) say OK; say OK;; long) printf '%05000d\\n' 7;; slowly) printf O; sleep 0.2; say K;; " \
    "number) say \"$$\";; close) exec >&-; exec <&-; sleep 1000;; "
#define ONE_AT_A_TIME "say() { echo \"$1\"; }; while read u p; do case $p in " CASES " esac; done"
#define SEVERAL                                                                    \
    "say() { echo \"$c $1\"; }; while read c u p; do case $p in " CASES            \
    "other) echo '7 OK';; missing) echo '99 OK';; later) held=$c;; both) say OK; " \
    "echo \"$held ERR\";; esac; done"

static struct users *users;
static pid_t keeper;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

struct asked {
    struct user_check check;
    bool done; /* protected by lock */
};

static void
is_done(struct user_check *check)
{
    pthread_mutex_lock(&lock);
    ((struct asked *)(void *)check)->done = true;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static enum user_answer
wait_for(struct asked *asked)
{
    pthread_mutex_lock(&lock);
    while (!asked->done)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    return asked->check.answer;
}

static enum user_answer
ask(struct asked *asked, const char *name, const char *password)
{
    const struct user_request request = {
        .name = span_str(name), .password = span_str(password), .client = unit_client(1)};

    *asked = (struct asked){.check.done = is_done};
    return users_check(users, &request, clock_monotonic_us(), &asked->check);
}

static enum user_answer
answer_to(const char *name, const char *password)
{
    struct asked asked;
    enum user_answer answer = ask(&asked, name, password);

    return answer == USER_PENDING ? wait_for(&asked) : answer;
}

static bool
enter(const void *context)
{
    (void)context;
    return true;
}

static void
start(const char *command, unsigned count, unsigned concurrency, int64_t timeout_us)
{
    const struct users_config config = {.timeout_us = timeout_us,
                                        .ttl_us = 60 * SECOND,
                                        .helpers = count,
                                        .concurrency = concurrency,
                                        .keeper =
                                            helper_keeper_start(command, enter, NULL, &keeper)};

    ck_assert_int_ge(config.keeper, 0);
    users = users_create(&config);
    ck_assert_ptr_nonnull(users);
}

static struct users_stats
stats(void)
{
    struct users_stats now;

    users_get_stats(users, &now);
    return now;
}

static void
await_running(unsigned count)
{
    while (stats().helpers != count)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

static void
await_restart(void)
{
    while (stats().helpers_restarted == 0)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

static void
set_up(void)
{
    signal(SIGPIPE, SIG_IGN);
    log_setup(LOG_LEVEL_INFO, LOG_FORMAT_PLAIN);
    logged_begin();
}

static void
tear_down(void)
{
    users_destroy(users);
    users = NULL;
    keeper_wait(keeper);
    ck_assert_int_eq(waitpid(keeper, NULL, WNOHANG), -1);
    ck_assert(unit_clients_are_idle());
    logged_end();
}

START_TEST(a_helper_answers)
{
    start(ONE_AT_A_TIME, 2, 0, 60 * SECOND);
    ck_assert_int_eq(answer_to("anna", "right"), USER_ACCEPTED);
    ck_assert_int_eq(answer_to("anna", "wrong"), USER_REFUSED);
    ck_assert_int_eq(answer_to("anna", "slowly"), USER_ACCEPTED);
    ck_assert_int_eq(answer_to("anna", "bh"), USER_REFUSED);
    ck_assert_uint_eq(logged_times("a user that cannot be checked is refused: no directory"), 1);
    ck_assert_int_eq(answer_to("anna", "right"), USER_ACCEPTED);
    ck_assert_int_eq(answer_to("anna", "wrong"), USER_REFUSED);
    ck_assert_uint_eq(stats().cached, 2);
    ck_assert_uint_eq(stats().refused, 2);
    ck_assert_int_eq(answer_to("anna", "bh"), USER_REFUSED);
    ck_assert_uint_eq(stats().refused, 3);
    await_running(2);
    ck_assert_uint_eq(stats().helpers_restarted, 0);
}
END_TEST

/* What is wrong with a helper, how it is noticed, and what the request gets. */
static const struct {
    const char *password, *logged;
    enum user_answer answer;
} faults[] = {
    {"die", "has ended and is started again", USER_UNAVAILABLE},
    {"die", "has ended with status 3", USER_UNAVAILABLE},
    {"kill", "has ended and is started again", USER_UNAVAILABLE},
    {"close", "has ended and is started again", USER_UNAVAILABLE},
    {"nonsense", "has answered something else than OK, ERR or BH and is replaced",
     USER_UNAVAILABLE},
    {"number", "has answered something else than OK, ERR or BH and is replaced", USER_UNAVAILABLE},
    {"long", "has answered a line that is too long and is replaced", USER_UNAVAILABLE},
    {"twice", "has answered what it was not asked and is replaced", USER_ACCEPTED},
};

START_TEST(a_helper_that_fails_is_replaced)
{
    start(ONE_AT_A_TIME, 1, 0, 60 * SECOND);
    ck_assert_int_eq(answer_to("anna", faults[_i].password), faults[_i].answer);
    ck_assert_int_eq(answer_to("anna", "right"), USER_ACCEPTED);
    while (logged_times(faults[_i].logged) == 0)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    await_restart();
}
END_TEST

START_TEST(with_channels_too)
{
    start(SEVERAL, 1, 8, 60 * SECOND);
    ck_assert_int_eq(answer_to("anna", "right"), USER_ACCEPTED);
    ck_assert_int_eq(answer_to("anna", faults[_i].password), faults[_i].answer);
    ck_assert_int_eq(answer_to("bert", "right"), USER_ACCEPTED);
    await_restart();
}
END_TEST

START_TEST(a_helper_that_hangs_is_replaced)
{
    struct asked asked;

    start(ONE_AT_A_TIME, 1, 0, SECOND);
    ck_assert_int_eq(ask(&asked, "anna", "hang"), USER_PENDING);
    ck_assert_int_eq(wait_for(&asked), USER_UNAVAILABLE);
    await_restart(); /* with a longer time it would be later */
    users_configure(users, &(struct users_config){.timeout_us = 60 * SECOND});
    ck_assert_int_eq(answer_to("anna", "right"), USER_ACCEPTED);
    ck_assert_uint_eq(logged_times("has not answered in time and is replaced"), 1);
    ck_assert_uint_eq(stats().helpers_restarted, 1);
}
END_TEST

/* One question's helper ends; another question that it had is asked of the next one. */
START_TEST(a_question_beside_one_that_fails_is_asked_again)
{
    struct asked later, die;

    start(SEVERAL, 1, 8, 60 * SECOND);
    ck_assert_int_eq(ask(&later, "anna", "later"), USER_PENDING);
    ck_assert_int_eq(ask(&die, "bert", "die"), USER_PENDING);
    ck_assert_int_eq(wait_for(&die), USER_UNAVAILABLE);
    /* By now it has been with two helpers. */
    ck_assert_int_eq(wait_for(&later), USER_UNAVAILABLE);
    ck_assert_int_eq(answer_to("cleo", "right"), USER_ACCEPTED);
}
END_TEST

START_TEST(answers_of_channels_come_in_any_order)
{
    struct asked later, both;

    start(SEVERAL, 1, 8, 60 * SECOND);
    ck_assert_int_eq(ask(&later, "anna", "later"), USER_PENDING);
    ck_assert_int_eq(ask(&both, "bert", "both"), USER_PENDING);
    ck_assert_int_eq(wait_for(&both), USER_ACCEPTED);
    ck_assert_int_eq(wait_for(&later), USER_REFUSED);
    ck_assert_uint_eq(stats().helpers_restarted, 0);
}
END_TEST

/* Nobody gets in by an answer on a channel that was not asked. */
START_TEST(answers_of_other_channels_are_refused)
{
    start(SEVERAL, 1, 8, 60 * SECOND);
    ck_assert_int_eq(answer_to("anna", "other"), USER_UNAVAILABLE);
    ck_assert_int_eq(answer_to("anna", "missing"), USER_UNAVAILABLE);
    ck_assert_int_eq(answer_to("anna", "wrong"), USER_REFUSED);
    ck_assert_uint_eq(stats().accepted, 0);
}
END_TEST

/* ---- without the thread, by a clock of the test's ---------------------------------------------
 */

static unsigned answered;

static void
note_answer(void *context, struct helper_job *job, enum helper_answer answer)
{
    (void)context;
    (void)job;
    (void)answer;
    answered++;
}

static void
work_until_free(struct helpers *helpers, int64_t *now_us)
{
    struct pollfd fds[HELPERS_FDS];

    while (!helpers_are_free(helpers)) {
        (void)poll(fds, helpers_get_fds(helpers, fds), 1);
        helpers_work(helpers, fds, 60 * SECOND, *now_us);
        *now_us += 1000;
    }
}

/* Its time in a queue is not the helper's. */
START_TEST(a_question_that_is_given_up_stays_with_its_helper)
{
    const struct helpers_config config = {
        .keeper = helper_keeper_start(ONE_AT_A_TIME, enter, NULL, &keeper),
        .count = 1,
        .answered = note_answer};
    struct helpers *helpers = helpers_create(&config);
    struct helper_job job = {0};
    struct helpers_stats stats;
    int64_t now_us = 1000 * SECOND;

    work_until_free(helpers, &now_us);
    helpers_ask(helpers, &job, "anna", "slowly", now_us);
    helpers_give_up(&job);
    ck_assert(!helpers_are_free(helpers));
    work_until_free(helpers, &now_us);
    helpers_ask(helpers, &job, "anna", "right", now_us);
    work_until_free(helpers, &now_us);
    ck_assert_uint_eq(answered, 1);
    helpers_get_stats(helpers, &stats);
    ck_assert_uint_eq(stats.restarted, 0);
    /* One that hangs is replaced, whether or not its question was given up. */
    helpers_ask(helpers, &job, "anna", "hang", now_us);
    helpers_give_up(&job);
    ck_assert_int_eq(helpers_next_us(helpers, 60 * SECOND), now_us + 60 * SECOND);
    now_us += 60 * SECOND;
    work_until_free(helpers, &now_us);
    helpers_get_stats(helpers, &stats);
    ck_assert_uint_eq(stats.restarted, 1);
    ck_assert_uint_eq(answered, 1);
    helpers_destroy(helpers);
}
END_TEST

START_TEST(a_command_that_cannot_be_run)
{
    start("/nonexistent/helper", 2, 0, SECOND);
    ck_assert_int_eq(answer_to("anna", "right"), USER_UNAVAILABLE);
    while (logged_times("\"/nonexistent/helper\" has ended with status 127") == 0)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}
END_TEST

START_TEST(a_command_that_says_nothing)
{
    start("exec cat > /dev/null", 1, 0, SECOND / 10);
    await_running(1);
    ck_assert_int_eq(answer_to("anna", "right"), USER_UNAVAILABLE);
}
END_TEST

START_TEST(a_command_that_does_not_read)
{
    struct asked asked[200];
    char name[16];

    start("exec sleep 1000", 1, 64, SECOND);
    for (unsigned i = 0; i < 200; i++) {
        snprintf(name, sizeof(name), "user%u", i);
        ck_assert_int_eq(ask(&asked[i], name, "right"), USER_PENDING);
    }
    for (unsigned i = 0; i < 200; i++)
        ck_assert_int_eq(wait_for(&asked[i]), USER_UNAVAILABLE);
}
END_TEST

START_TEST(without_its_keeper_there_are_no_helpers)
{
    start(ONE_AT_A_TIME, 1, 0, SECOND);
    ck_assert_int_eq(answer_to("anna", "right"), USER_ACCEPTED);
    kill(keeper, SIGKILL);
    while (logged_times("the process that starts helpers has ended") == 0)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    /* The helper that runs is still asked. */
    ck_assert_int_eq(answer_to("bert", "right"), USER_ACCEPTED);
    ck_assert_int_eq(answer_to("bert", "die"), USER_UNAVAILABLE);
    ck_assert_int_eq(answer_to("cleo", "right"), USER_UNAVAILABLE);
    ck_assert_int_eq(answer_to("bert", "right"), USER_ACCEPTED);
}
END_TEST

START_TEST(many_questions)
{
    static struct asked asked[1000];
    char name[16];

    start(ONE_AT_A_TIME, 4, 0, 60 * SECOND);
    for (unsigned i = 0; i < 1000; i++) {
        snprintf(name, sizeof(name), "user%u", i);
        ck_assert_int_eq(ask(&asked[i], name, i % 3 ? "right" : "wrong"), USER_PENDING);
        if (i % 7 == 0)
            users_cancel(users, &asked[i].check);
    }
    for (unsigned i = 0; i < 1000; i++)
        if (i % 7)
            ck_assert_int_eq(wait_for(&asked[i]), i % 3 ? USER_ACCEPTED : USER_REFUSED);
    ck_assert_uint_eq(stats().helpers_restarted, 0);
}
END_TEST

static Suite *
unit_suite(void)
{
    Suite *suite = suite_create("helpers");
    TCase *tcase = tcase_create("helpers");
    const int count = sizeof(faults) / sizeof(faults[0]);

    tcase_set_timeout(tcase, 300);
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, a_helper_answers);
    tcase_add_loop_test(tcase, a_helper_that_fails_is_replaced, 0, count);
    tcase_add_loop_test(tcase, with_channels_too, 0, count);
    tcase_add_test(tcase, a_helper_that_hangs_is_replaced);
    tcase_add_test(tcase, a_question_beside_one_that_fails_is_asked_again);
    tcase_add_test(tcase, answers_of_channels_come_in_any_order);
    tcase_add_test(tcase, answers_of_other_channels_are_refused);
    tcase_add_test(tcase, a_question_that_is_given_up_stays_with_its_helper);
    tcase_add_test(tcase, a_command_that_cannot_be_run);
    tcase_add_test(tcase, a_command_that_says_nothing);
    tcase_add_test(tcase, a_command_that_does_not_read);
    tcase_add_test(tcase, without_its_keeper_there_are_no_helpers);
    tcase_add_test(tcase, many_questions);
    suite_add_tcase(suite, tcase);
    return suite;
}
