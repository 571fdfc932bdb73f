/* Checks of users: their queue, their answers, what is given up. */
#include "server/users/users.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "http/basic_credentials.h"
#include "tests/unit/server/users/made_hash.h"
#include "tests/unit/unit.h"

enum { SECOND = 1000000 };

static const struct users_config config = {.timeout_us = (int64_t)600 * SECOND,
                                           .ttl_us = (int64_t)600 * SECOND};
static struct users *users;
static struct user_file *file;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static unsigned done_count; /* protected by lock */

/* One check of a test. */
struct asked {
    struct user_check check;
    unsigned order; /* in which they were answered, from 1; 0: it was not. Protected by lock */
};

static void
is_done(struct user_check *check)
{
    struct asked *asked = (struct asked *)(void *)check;

    pthread_mutex_lock(&lock);
    asked->order = ++done_count;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static void
wait_for(const struct asked *asked)
{
    pthread_mutex_lock(&lock);
    while (!asked->order)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

static enum user_answer
ask(struct asked *asked, const char *name, const char *password, unsigned client)
{
    const struct user_request request = {.name = span_str(name),
                                         .password = span_str(password),
                                         .file = file,
                                         .client = unit_client(client)};

    *asked = (struct asked){.check.done = is_done};
    return users_check(users, &request, clock_monotonic_us(), &asked->check);
}

/* The answer, at once or later. */
static enum user_answer
answer_to(const char *name, const char *password)
{
    struct asked asked;
    enum user_answer answer = ask(&asked, name, password, 1);

    if (answer != USER_PENDING)
        return answer;
    wait_for(&asked);
    return asked.check.answer;
}

static struct user_file *
read_users(unsigned long cost)
{
    char text[4 * CRYPT_OUTPUT_SIZE], anna[CRYPT_OUTPUT_SIZE], bert[CRYPT_OUTPUT_SIZE];
    struct user_file *made;
    struct buf why;

    buf_init(&why, 4096);
    snprintf(text, sizeof(text), "anna:%s\nbert:%s\n", make_hash(anna, "$2b$", cost, "of anna"),
             make_hash(bert, "$2b$", cost, "of bert"));
    made = user_file_read(span_str(text), "users", &why);
    ck_assert_msg(made, "%s", buf_str(&why));
    buf_free(&why);
    return made;
}

static struct users_stats
stats(void)
{
    struct users_stats now;

    users_get_stats(users, &now);
    return now;
}

static void
set_up(void)
{
    done_count = 0;
    file = read_users(4);
    users = users_create(&config);
    ck_assert_ptr_nonnull(users);
}

static void
tear_down(void)
{
    users_destroy(users);
    user_file_free(file);
    ck_assert(unit_clients_are_idle());
}

START_TEST(a_password_is_checked)
{
    struct users_stats now;

    ck_assert_int_eq(answer_to("anna", "of anna"), USER_ACCEPTED);
    ck_assert_int_eq(answer_to("anna", "of bert"), USER_REFUSED);
    ck_assert_int_eq(answer_to("bert", "of bert"), USER_ACCEPTED);
    ck_assert_int_eq(answer_to("cleo", "of anna"), USER_REFUSED);
    ck_assert_int_eq(answer_to("cleo", "of bert"), USER_REFUSED);
    now = stats();
    ck_assert_uint_eq(now.accepted, 2);
    ck_assert_uint_eq(now.refused, 3);
    ck_assert_uint_eq(now.cached, 0);
}
END_TEST

START_TEST(what_no_user_can_have_is_refused_at_once)
{
    static const char *const rows[][2] = {{"", "x"},       {"anna", ""},     {"an:na", "x"},
                                          {"an\nna", "x"}, {"anna", "x\ny"}, {"anna", "\x7f"}};
    char name[HTTP_BASIC_NAME_MAX + 2], password[514];
    struct asked asked;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        ck_assert_int_eq(ask(&asked, rows[i][0], rows[i][1], 1), USER_REFUSED);
    snprintf(name, sizeof(name), "%0256d", 7);
    ck_assert_int_eq(ask(&asked, name, "x", 1), USER_REFUSED);
    snprintf(password, sizeof(password), "%0512d", 7);
    ck_assert_int_eq(ask(&asked, "anna", password, 1), USER_REFUSED);
    ck_assert_uint_eq(stats().refused, 0);
    users_cancel(users, &asked.check);
}
END_TEST

START_TEST(answers_are_used_again)
{
    struct user_file *first = file;
    struct asked asked;

    ck_assert_int_eq(answer_to("anna", "of anna"), USER_ACCEPTED);
    ck_assert_int_eq(ask(&asked, "anna", "of anna", 1), USER_ACCEPTED);
    ck_assert_int_gt(asked.check.until_us, clock_monotonic_us() + (int64_t)500 * SECOND);
    ck_assert_int_eq(answer_to("cleo", "x"), USER_REFUSED);
    ck_assert_int_eq(ask(&asked, "cleo", "x", 1), USER_REFUSED);
    ck_assert_int_le(asked.check.until_us, clock_monotonic_us() + USERS_REFUSED_US);
    ck_assert_uint_eq(stats().cached, 2);
    /* Another hash of the same password has to be checked. */
    file = read_users(4);
    ck_assert_int_eq(ask(&asked, "anna", "of anna", 1), USER_PENDING);
    wait_for(&asked);
    ck_assert_int_eq(asked.check.answer, USER_ACCEPTED);
    user_file_free(file);
    file = first;
}
END_TEST

START_TEST(without_a_time_no_answer_is_used_again)
{
    users_configure(users, &(struct users_config){.timeout_us = config.timeout_us});
    ck_assert_int_eq(answer_to("anna", "of anna"), USER_ACCEPTED);
    ck_assert_int_eq(answer_to("anna", "of anna"), USER_ACCEPTED);
    ck_assert_uint_eq(stats().accepted, 2);
    ck_assert_uint_eq(stats().cached, 0);
}
END_TEST

/* Connections of a browser that ask at once cost one check. */
START_TEST(the_same_question_is_checked_once)
{
    enum user_answer answers[6];
    struct asked asked[6];

    for (unsigned i = 0; i < 6; i++)
        answers[i] = ask(&asked[i], "anna", "of anna", 1);
    for (unsigned i = 0; i < 6; i++)
        if (answers[i] == USER_PENDING)
            wait_for(&asked[i]);
    for (unsigned i = 0; i < 6; i++)
        ck_assert_int_eq(asked[i].check.answer, USER_ACCEPTED);
    ck_assert_uint_eq(stats().accepted, 1);
    ck_assert_uint_eq(stats().cached, 5);
}
END_TEST

/* Asks for users that are not there; returns how many are pending. */
static unsigned
flood(struct asked *asked, unsigned count, unsigned client)
{
    unsigned pending = 0;
    char name[16];

    for (unsigned i = 0; i < count; i++) {
        snprintf(name, sizeof(name), "u%u", i);
        pending += ask(&asked[i], name, "wrong", client) == USER_PENDING;
    }
    return pending;
}

START_TEST(a_flood_waits_for_nobody_else)
{
    enum { FLOOD = 5000 };
    struct asked *asked = calloc(FLOOD, sizeof(*asked)), other;
    unsigned answered_before;

    user_file_free(file);
    file = read_users(8);
    ck_assert_uint_lt(flood(asked, FLOOD, 1), FLOOD);
    pthread_mutex_lock(&lock);
    answered_before = done_count;
    pthread_mutex_unlock(&lock);
    ck_assert_int_eq(ask(&other, "anna", "of anna", 2), USER_PENDING);
    wait_for(&other);
    ck_assert_int_eq(other.check.answer, USER_ACCEPTED);
    /* Behind those that were answered meanwhile, one in work, one whose turn it was, and one that
     * had to make room. */
    ck_assert_uint_le(other.order, answered_before + 40);
    ck_assert_uint_ge(stats().unavailable, FLOOD - USERS_MAX_QUEUED - other.order);
    for (unsigned i = 0; i < FLOOD; i++)
        users_cancel(users, &asked[i].check);
    free(asked);
}
END_TEST

START_TEST(a_full_queue_drops_the_last_of_the_client_with_the_most)
{
    struct asked *asked = calloc(2 * USERS_MAX_QUEUED, sizeof(*asked)), other[50];
    unsigned dropped = 0;

    user_file_free(file);
    file = read_users(8);
    flood(asked, 2 * USERS_MAX_QUEUED, 1);
    for (unsigned i = 0; i < 50; i++) {
        char name[16];

        snprintf(name, sizeof(name), "v%u", i);
        ck_assert_int_eq(ask(&other[i], name, "wrong", 2 + i % 3), USER_PENDING);
    }
    for (unsigned i = 0; i < 50; i++) {
        users_cancel(users, &other[i].check);
        ck_assert(!other[i].order || other[i].check.answer == USER_REFUSED);
    }
    for (unsigned i = 0; i < 2 * USERS_MAX_QUEUED; i++) {
        users_cancel(users, &asked[i].check);
        dropped += asked[i].check.answer == USER_UNAVAILABLE;
    }
    ck_assert_uint_ge(dropped, USERS_MAX_QUEUED / 2);
    free(asked);
}
END_TEST

START_TEST(a_check_has_a_time)
{
    struct asked asked[3];

    user_file_free(file);
    file = read_users(8);
    users_configure(users, &(struct users_config){.timeout_us = 1});
    for (unsigned i = 0; i < 3; i++)
        ck_assert_int_eq(ask(&asked[i], i ? "anna" : "bert", "x", 1 + i), USER_PENDING);
    for (unsigned i = 0; i < 3; i++)
        wait_for(&asked[i]);
    ck_assert_int_eq(asked[2].check.answer, USER_UNAVAILABLE);
}
END_TEST

START_TEST(what_is_given_up_is_not_answered)
{
    struct asked asked[64];
    char name[16];

    for (unsigned i = 0; i < 64; i++) {
        snprintf(name, sizeof(name), "u%u", i);
        ck_assert_int_eq(ask(&asked[i], name, "x", i % 5), USER_PENDING);
        if (i % 3 == 0)
            users_cancel(users, &asked[i].check);
    }
    for (unsigned i = 0; i < 64; i++) {
        bool answered;

        users_cancel(users, &asked[i].check);
        pthread_mutex_lock(&lock);
        answered = asked[i].order != 0;
        pthread_mutex_unlock(&lock);
        /* Otherwise nothing touches it from now on. */
        if (!answered)
            memset(&asked[i], 0xff, sizeof(asked[i]));
        users_cancel(users, &(struct user_check){.question = NULL});
    }
}
END_TEST

struct owner {
    struct shared shared;
    atomic_bool gone;
};

static void
destroy_owner(struct shared *shared)
{
    ((struct owner *)(void *)shared)->gone = true;
}

START_TEST(a_file_is_kept_for_its_checks)
{
    static struct owner owner;
    struct shared *mine = &owner.shared;
    struct user_request request = {.name = span_str("anna"),
                                   .password = span_str("of anna"),
                                   .file = file,
                                   .keeps = &owner.shared,
                                   .client = unit_client(1)};
    struct asked asked = {.check.done = is_done};

    shared_init(&owner.shared, destroy_owner);
    ck_assert_int_eq(users_check(users, &request, clock_monotonic_us(), &asked.check),
                     USER_PENDING);
    shared_release(&mine);
    wait_for(&asked);
    users_cancel(users, &asked.check);
    ck_assert(owner.gone);
}
END_TEST

START_TEST(without_a_helper_no_check_is_made)
{
    struct user_file *kept = file;

    file = NULL;
    ck_assert_int_eq(answer_to("anna", "of anna"), USER_UNAVAILABLE);
    file = kept;
}
END_TEST

static Suite *
unit_suite(void)
{
    Suite *suite = suite_create("users");
    TCase *tcase = tcase_create("checks");

    tcase_set_timeout(tcase, 60);
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, a_password_is_checked);
    tcase_add_test(tcase, what_no_user_can_have_is_refused_at_once);
    tcase_add_test(tcase, answers_are_used_again);
    tcase_add_test(tcase, without_a_time_no_answer_is_used_again);
    tcase_add_test(tcase, the_same_question_is_checked_once);
    tcase_add_test(tcase, a_flood_waits_for_nobody_else);
    tcase_add_test(tcase, a_full_queue_drops_the_last_of_the_client_with_the_most);
    tcase_add_test(tcase, a_check_has_a_time);
    tcase_add_test(tcase, what_is_given_up_is_not_answered);
    tcase_add_test(tcase, a_file_is_kept_for_its_checks);
    tcase_add_test(tcase, without_a_helper_no_check_is_made);
    suite_add_tcase(suite, tcase);
    return suite;
}
