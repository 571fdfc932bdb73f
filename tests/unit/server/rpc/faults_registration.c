/*
 * The daemon's entries with rpcbind, on the model of rpcbind_model.h: what it registers, what it
 * replaces and what it keeps, and what it says while rpcbind is absent, refuses or does not
 * answer. tests/system/test_rpcbind.py has a real rpcbind.
 *
 * Waits for most of its time, so tests/run.sh runs it beside others.
 */
#include "server/rpc/registration.h"

#include <errno.h>
#include <string.h>

#include "proxy.h"
#include "server/logs/log.h"
#include "tests/unit/faults.h"
#include "tests/unit/server/logs/logged.h"
#include "tests/unit/server/rpc/rpcbind_model.h"
#include "tests/unit/unit.h"

/* Port 8000 is 31 * 256 + 64. */
#define TCP "0.0.0.0.31.64"
#define TCP6 "::.31.64"
#define LOCAL "/run/test.sock"
#define OTHER "0.0.0.0.1.1"

static struct listening listening;

static void
set_up(void)
{
    logged_begin();
    log_setup(LOG_LEVEL_INFO, LOG_FORMAT_PLAIN);
    listening = (struct listening){.port = 8000,
                                   .ipv4.ss_family = AF_INET,
                                   .ipv6.ss_family = AF_INET6,
                                   .sets[LISTEN_LOCAL].count = 1};
    listening.sets[LISTEN_LOCAL].sockets[0] = (struct local_socket){.path = LOCAL};
    rpcbind_model_begin();
}

static void
tear_down(void)
{
    rpcbind_model_end();
    logged_end();
}

static bool
registered(void)
{
    return logged_times("registered with rpcbind") == 1;
}

static bool
registered_again(void)
{
    return logged_times("registered with rpcbind") == 2;
}

static unsigned sets_seen, lists_seen;

/* Two whole rounds of registering, and looks, since *_seen were set. */
static bool
two_rounds(void)
{
    return rpcbind_model->sets >= sets_seen + 12;
}

static bool
looks_twice(void)
{
    return rpcbind_model->lists >= lists_seen + 14;
}

static bool
six_entries(void)
{
    return rpcbind_model_count() == 6;
}

static struct registration *
start(void)
{
    struct registration *registration = registration_start(&listening);

    ck_assert_ptr_nonnull(registration);
    return registration;
}

static void
check_ours(void)
{
    for (unsigned version = 1; version <= 2; version++) {
        ck_assert_str_eq(rpcbind_model_address(version, "tcp"), TCP);
        ck_assert_str_eq(rpcbind_model_address(version, "tcp6"), TCP6);
        ck_assert_str_eq(rpcbind_model_address(version, "local"), LOCAL);
    }
}

/* ---- entries that stand ---------------------------------------------------------------------- */

START_TEST(entries_stand_until_the_end)
{
    struct registration *registration = start();

    ck_assert(rpcbind_model_wait(registered));
    check_ours();
    sets_seen = rpcbind_model->sets;
    ck_assert(rpcbind_model_wait(two_rounds));
    ck_assert_uint_eq(logged_times("registered with rpcbind"), 1);
    registration_stop(registration);
    ck_assert_uint_eq(rpcbind_model_count(), 0);
    registration_stop(NULL);
}
END_TEST

START_TEST(the_entries_stay_for_a_process_that_takes_over)
{
    struct registration *registration = start();

    ck_assert(rpcbind_model_wait(registered));
    registration_leave(registration);
    ck_assert_str_eq(rpcbind_model_address(1, "tcp"), TCP);
    ck_assert_uint_ne(rpcbind_model_count(), 0);
    registration_leave(NULL);
}
END_TEST

START_TEST(only_what_is_listened_on_is_registered)
{
    struct registration *registration;

    listening.sets[LISTEN_LOCAL].count = 0;
    listening.ipv6.ss_family = AF_UNSPEC;
    registration = start();
    ck_assert(rpcbind_model_wait(registered));
    ck_assert_uint_eq(rpcbind_model_count(), 2);
    ck_assert_str_eq(rpcbind_model_address(1, "tcp"), TCP);
    registration_stop(registration);

    listening.sets[LISTEN_LOCAL].count = 1;
    listening.ipv4.ss_family = AF_UNSPEC;
    registration = start();
    ck_assert(rpcbind_model_wait(registered_again));
    ck_assert_uint_eq(rpcbind_model_count(), 2);
    ck_assert_str_eq(rpcbind_model_address(2, "local"), LOCAL);
    registration_stop(registration);
}
END_TEST

START_TEST(an_only_address_is_registered_as_it_is)
{
    struct registration *registration;

    ((struct sockaddr_in *)&listening.ipv4)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ((struct sockaddr_in6 *)&listening.ipv6)->sin6_addr = in6addr_loopback;
    registration = start();
    ck_assert(rpcbind_model_wait(registered));
    ck_assert_uint_eq(rpcbind_model_count(), 6);
    ck_assert_str_eq(rpcbind_model_address(1, "tcp"), "127.0.0.1.31.64");
    ck_assert_str_eq(rpcbind_model_address(2, "tcp6"), "::1.31.64");
    registration_stop(registration);
}
END_TEST

START_TEST(what_rpcbind_forgot_is_registered_again)
{
    struct registration *registration = start();

    ck_assert(rpcbind_model_wait(registered));
    rpcbind_model_forget();
    ck_assert(rpcbind_model_wait(six_entries));
    check_ours();
    registration_stop(registration);
    ck_assert_uint_eq(rpcbind_model_count(), 0);
}
END_TEST

/* ---- entries of others ----------------------------------------------------------------------- */

START_TEST(what_was_left_behind_is_replaced)
{
    struct registration *registration;

    rpcbind_model_add(PROXY_FETCHPROG, 1, "tcp", OTHER, "superuser");
    registration = start();
    ck_assert(rpcbind_model_wait(registered));
    check_ours();
    ck_assert_uint_eq(logged_times("rpcbind had version 1 on tcp at " OTHER "; replaced"), 1);
    registration_stop(registration);
}
END_TEST

static bool
refused_by_owner(void)
{
    return logged_times("rpcbind refuses version 2 on tcp6; it has ::.1.1, registered by "
                        "77; that user or root can remove it with \"rpcinfo -d ") == 1;
}

/* Reported once, and not taken out at the end. */
START_TEST(entries_of_another_user_are_reported)
{
    struct registration *registration;

    strcpy(rpcbind_model->caller, "4000");
    rpcbind_model_add(PROXY_FETCHPROG, 2, "tcp6", "::.1.1", "77");
    registration = start();
    ck_assert(rpcbind_model_wait(refused_by_owner));
    sets_seen = rpcbind_model->sets;
    ck_assert(rpcbind_model_wait(two_rounds));
    ck_assert(refused_by_owner());
    ck_assert_uint_eq(rpcbind_model_count(), 6);
    registration_stop(registration);
    ck_assert_uint_eq(rpcbind_model_count(), 1);
    ck_assert_str_eq(rpcbind_model_address(2, "tcp6"), "::.1.1");
}
END_TEST

static bool
gone_to_another(void)
{
    return logged_times("rpcbind refuses version 1 on tcp; it has " OTHER) == 1;
}

/* A server that registers after this daemon keeps the entry; when it ends, we register again. */
START_TEST(entries_of_a_later_daemon_are_left_alone)
{
    struct registration *registration = start();

    ck_assert(rpcbind_model_wait(registered));
    rpcbind_model_replace(1, "tcp", OTHER);
    ck_assert(rpcbind_model_wait(gone_to_another));
    ck_assert_str_eq(rpcbind_model_address(1, "tcp"), OTHER);
    rpcbind_model_forget();
    ck_assert(rpcbind_model_wait(registered_again));
    check_ours();
    rpcbind_model_replace(2, "local", "/run/later.sock");
    registration_stop(registration);
    ck_assert_str_eq(rpcbind_model_address(2, "local"), "/run/later.sock");
    ck_assert_uint_eq(rpcbind_model_count(), 1);
}
END_TEST

static bool
refused_without_reason(void)
{
    return logged_times("rpcbind refuses version") == 6;
}

START_TEST(refusals_are_reported_once)
{
    struct registration *registration;

    rpcbind_model->refuses = true;
    registration = start();
    ck_assert(rpcbind_model_wait(refused_without_reason));
    ck_assert_uint_eq(logged_times("; it has"), 0);
    lists_seen = rpcbind_model->lists;
    ck_assert(rpcbind_model_wait(looks_twice));
    ck_assert(refused_without_reason());
    rpcbind_model->refuses = false;
    ck_assert(rpcbind_model_wait(registered));
    registration_stop(registration);
    ck_assert_uint_eq(rpcbind_model_count(), 0);
}
END_TEST

/* ---- no rpcbind ------------------------------------------------------------------------------ */

static bool
told_absent(void)
{
    return logged_times("rpcbind cannot be reached; serving without it and retrying") == 1;
}

static bool
told_absent_again(void)
{
    return logged_times("rpcbind cannot be reached") == 2;
}

START_TEST(an_absent_rpcbind_may_come_later)
{
    struct registration *registration;

    rpcbind_model->absent = true;
    registration = start();
    ck_assert(rpcbind_model_wait(told_absent));
    sets_seen = rpcbind_model->sets;
    ck_assert(rpcbind_model_wait(two_rounds));
    ck_assert(told_absent());
    rpcbind_model->absent = false;
    ck_assert(rpcbind_model_wait(registered));
    check_ours();

    /* It goes, with its entries kept, and comes again. */
    rpcbind_model->absent = true;
    ck_assert(rpcbind_model_wait(told_absent_again));
    rpcbind_model->absent = false;
    ck_assert(rpcbind_model_wait(registered_again));
    registration_stop(registration);
    ck_assert_uint_eq(rpcbind_model_count(), 0);
}
END_TEST

START_TEST(the_end_without_rpcbind)
{
    struct registration *registration;

    registration = start();
    ck_assert(rpcbind_model_wait(registered));
    rpcbind_model->absent = true;
    registration_stop(registration);
    ck_assert_uint_eq(rpcbind_model_count(), 6);
}
END_TEST

/* Without its description of a transport libtirpc reaches nothing. */
START_TEST(unknown_transports_and_addresses)
{
    struct registration *registration;

    rpcbind_model->no_transports = true;
    registration = start();
    ck_assert(rpcbind_model_wait(told_absent));
    rpcbind_model->no_transports = false;
    ck_assert(rpcbind_model_wait(registered));
    rpcbind_model->no_transports = true;
    registration_stop(registration);
    ck_assert_uint_eq(rpcbind_model_count(), 6);

    rpcbind_model->no_transports = false;
    rpcbind_model->no_addresses = true;
    rpcbind_model_forget();
    registration = start();
    ck_assert(rpcbind_model_wait(refused_without_reason));
    registration_stop(registration);
    ck_assert_uint_eq(rpcbind_model_count(), 0);
}
END_TEST

static bool
thread_has_ended(void)
{
    return rpcbind_model_count() == 0;
}

/* The thread is left to itself, and what it holds goes with it. */
START_TEST(the_end_while_rpcbind_does_not_answer)
{
    struct registration *registration = start();

    ck_assert(rpcbind_model_wait(registered));
    sets_seen = rpcbind_model->sets;
    rpcbind_model->hangs = true;
    registration_stop(registration);
    ck_assert_uint_eq(logged_times("rpcbind does not answer; its entries were not removed"), 1);
    ck_assert_uint_eq(rpcbind_model_count(), 6);
    rpcbind_model->hangs = false;
    ck_assert(rpcbind_model_wait(thread_has_ended));
}
END_TEST

START_TEST(no_thread)
{
    faults_fail_at(3, EAGAIN); /* behind the lock and its condition */
    ck_assert_ptr_null(registration_start(&listening));
    ck_assert_int_eq(errno, EAGAIN);
    ck_assert_str_eq(faults_failed(), "pthread_create");
    ck_assert_uint_eq(rpcbind_model->sets, 0);
}
END_TEST

/* ---- before root becomes another user -------------------------------------------------------- */

START_TEST(entries_of_other_users_make_way)
{
    rpcbind_model_add(PROXY_FETCHPROG, 1, "tcp", OTHER, "superuser");
    rpcbind_model_add(PROXY_FETCHPROG, 2, "tcp", OTHER, "4000");
    rpcbind_model_add(PROXY_FETCHPROG, 2, "unheard-of", OTHER, "superuser");
    rpcbind_model_add(100003, 2, "tcp", OTHER, "superuser");
    registration_make_way(4000);
    ck_assert_ptr_null(rpcbind_model_address(1, "tcp"));
    ck_assert_str_eq(rpcbind_model_address(2, "tcp"), OTHER);
    ck_assert_uint_eq(rpcbind_model_count(), 2);
    ck_assert_uint_eq(logged_times("; removed"), 1);
    ck_assert_uint_eq(
        logged_times("rpcbind had version 1 on tcp at " OTHER ", registered by superuser; removed"),
        1);
}
END_TEST

START_TEST(no_entries_make_way)
{
    strcpy(rpcbind_model->caller, "77");
    rpcbind_model_add(PROXY_FETCHPROG, 1, "tcp", OTHER, "superuser");
    registration_make_way(4000);
    ck_assert_uint_eq(rpcbind_model_count(), 1);
    ck_assert_uint_eq(logged_times("removed"), 0);
    rpcbind_model->absent = true;
    registration_make_way(4000);
    rpcbind_model->no_transports = true;
    registration_make_way(4000);
    ck_assert_uint_eq(rpcbind_model_count(), 1);
}
END_TEST

/* Serving does not wait for it. */
START_TEST(making_way_while_rpcbind_does_not_answer)
{
    rpcbind_model_add(PROXY_FETCHPROG, 1, "tcp", OTHER, "superuser");
    rpcbind_model->hangs = true;
    registration_make_way(4000);
    ck_assert_uint_eq(
        logged_times("rpcbind does not answer; its entries of other users were not removed"), 1);
    ck_assert_uint_eq(rpcbind_model_count(), 1);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("server/registration");
    TCase *tcase = tcase_create("registration");

    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, entries_stand_until_the_end);
    tcase_add_test(tcase, the_entries_stay_for_a_process_that_takes_over);
    tcase_add_test(tcase, only_what_is_listened_on_is_registered);
    tcase_add_test(tcase, an_only_address_is_registered_as_it_is);
    tcase_add_test(tcase, what_rpcbind_forgot_is_registered_again);
    tcase_add_test(tcase, what_was_left_behind_is_replaced);
    tcase_add_test(tcase, entries_of_another_user_are_reported);
    tcase_add_test(tcase, entries_of_a_later_daemon_are_left_alone);
    tcase_add_test(tcase, refusals_are_reported_once);
    tcase_add_test(tcase, an_absent_rpcbind_may_come_later);
    tcase_add_test(tcase, the_end_without_rpcbind);
    tcase_add_test(tcase, unknown_transports_and_addresses);
    tcase_add_test(tcase, the_end_while_rpcbind_does_not_answer);
    tcase_add_test(tcase, no_thread);
    tcase_add_test(tcase, entries_of_other_users_make_way);
    tcase_add_test(tcase, no_entries_make_way);
    tcase_add_test(tcase, making_way_while_rpcbind_does_not_answer);
    suite_add_tcase(suite, tcase);
    return suite;
}
