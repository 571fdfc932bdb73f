/* The file of users, their checks and their helpers, with every allocation failing in turn: the
 * right password is accepted, unless no check could be made. */
#include "server/users/users.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>

#include "base/clock.h"
#include "server/commands/keeper.h"
#include "server/users/helper_keeper.h"
#include "tests/unit/server/users/made_hash.h"
#include "tests/unit/torture.h"
#include "tests/unit/unit.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool done; /* protected by lock */
static char text[CRYPT_OUTPUT_SIZE + 16];

static void
is_done(struct user_check *check)
{
    (void)check;
    pthread_mutex_lock(&lock);
    done = true;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static enum user_answer
answer_to(struct users *users, const struct user_file *file, const char *password)
{
    const struct user_request request = {.name = span_str("anna"),
                                         .password = span_str(password),
                                         .file = file,
                                         .client = unit_client(1)};
    struct user_check check = {.done = is_done};
    enum user_answer answer;

    done = false;
    answer = users_check(users, &request, clock_monotonic_us(), &check);
    if (answer != USER_PENDING)
        return answer;
    pthread_mutex_lock(&lock);
    while (!done)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    return check.answer;
}

static void
check_all(struct users *users, const struct user_file *file)
{
    static const char *const passwords[] = {"of anna", "wrong", "of anna"};

    for (unsigned i = 0; i < 3; i++) {
        const enum user_answer right = i == 1 ? USER_REFUSED : USER_ACCEPTED;
        enum user_answer answer = answer_to(users, file, passwords[i]);

        ck_assert(answer == right || (answer == USER_UNAVAILABLE && torture_failed()));
        if (answer != right)
            ck_assert_int_eq(answer_to(users, file, passwords[i]), right);
    }
}

static struct user_file *
read_file(void)
{
    struct user_file *file;
    struct buf why;

    buf_init(&why, 4096);
    file = user_file_read(span_str(text), "users", &why);
    ck_assert(file ? why.len == 0 : torture_failed());
    buf_free(&why);
    return file;
}

static void
by_file(void *context)
{
    const struct users_config config = {.timeout_us = (int64_t)60000000, .ttl_us = 60000000};
    struct user_file *file = read_file();
    struct users *users = file ? users_create(&config) : NULL;

    (void)context;
    if (users)
        check_all(users, file);
    else
        ck_assert(torture_failed());
    users_destroy(users);
    user_file_free(file);
    ck_assert(unit_clients_are_idle());
}

static bool
enter(const void *context)
{
    (void)context;
    return true;
}

static void
by_helpers(void *context)
{
    struct users_config config = {
        .timeout_us = (int64_t)60000000, .ttl_us = 60000000, .helpers = 2, .concurrency = 3};
    struct users *users;
    pid_t keeper;

    (void)context;
    config.keeper = helper_keeper_start("while read c u p; do case $p in of%20anna) echo $c OK;; "
                                        "*) echo $c ERR;; esac; done",
                                        enter, NULL, &keeper);
    ck_assert_int_ge(config.keeper, 0);
    users = users_create(&config);
    if (users)
        check_all(users, NULL);
    else
        ck_assert(torture_failed());
    users_destroy(users);
    keeper_wait(keeper);
    ck_assert(unit_clients_are_idle());
}

START_TEST(a_file_and_its_checks)
{
    ck_assert_uint_ge(torture_walk(by_file, NULL), 8);
}
END_TEST

START_TEST(helpers_and_their_answers)
{
    ck_assert_uint_ge(torture_walk(by_helpers, NULL), 8);
}
END_TEST

static void
set_up(void)
{
    char hash[CRYPT_OUTPUT_SIZE];

    signal(SIGPIPE, SIG_IGN);
    snprintf(text, sizeof(text), "anna:%s\n", make_quick_hash(hash, "of anna"));
}

static Suite *
unit_suite(void)
{
    Suite *suite = suite_create("users without memory");
    TCase *tcase = tcase_create("checks");

    tcase_set_timeout(tcase, 300);
    tcase_add_checked_fixture(tcase, set_up, NULL);
    tcase_add_test(tcase, a_file_and_its_checks);
    tcase_add_test(tcase, helpers_and_their_answers);
    suite_add_tcase(suite, tcase);
    return suite;
}
