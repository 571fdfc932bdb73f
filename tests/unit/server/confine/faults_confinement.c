/*
 * How the starting process gives up what it may do, in the model of process_model.h: which calls it
 * makes and in which order, and that a failure of any of them is answered. faults_sandbox.c has the
 * sandbox by itself.
 */
#include "server/confine/confinement.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sysexits.h>
#include <unistd.h>

#include "tests/unit/faults.h"
#include "tests/unit/server/confine/confined.h"
#include "tests/unit/server/logs/logged.h"
#include "tests/unit/server/confine/process_model.h"
#include "tests/unit/unit.h"

/* ---- privileges ------------------------------------------------------------------------------ */

static bool
is_user(void)
{
    return process_model.real == confined.user.uid &&
           process_model.effective == confined.user.uid &&
           process_model.saved == confined.user.uid &&
           process_model.real_group == confined.user.gid &&
           process_model.effective_group == confined.user.gid &&
           process_model.saved_group == confined.user.gid && process_model.group_count == 2 &&
           process_model.groups[0] == 300 && process_model.groups[1] == 301;
}

START_TEST(root_becomes_a_user_for_good)
{
    ck_assert_msg(privileges_become(&confined.user, &confined.why), "%s", buf_str(&confined.why));
    ck_assert(is_user());
    ck_assert_uint_eq(process_model.capabilities, 0);
    ck_assert_uint_eq(process_model.bounding, 0);
    ck_assert(!process_model.ambient);
    ck_assert(!process_model.dumpable);
    ck_assert(process_model_in_order("drop bounding set", "setgroups 300 301"));
    ck_assert(process_model_in_order("setgroups 300 301", "setresgid 300 300 300"));
    ck_assert(process_model_in_order("setresgid 300 300 300", "setresuid 4000 4000 4000"));
    ck_assert(process_model_in_order("setresuid 4000 4000 4000", "back to root"));
    ck_assert(process_model_in_order("back to root", "dumpable 0"));
}
END_TEST

START_TEST(only_root_becomes_another)
{
    process_model_begin(false);
    ck_assert(!privileges_become(&confined.user, &confined.why));
    ck_assert_str_eq(buf_str(&confined.why), "only root can change to another user");
    confined.user.uid = confined.user.gid = 1000;
    ck_assert(privileges_become(&confined.user, &confined.why));
    confined.user.gid = 1001;
    ck_assert(!privileges_become(&confined.user, &confined.why));
    ck_assert_str_eq(process_model_calls(), "");
}
END_TEST

START_TEST(a_change_that_is_not_for_good_is_refused)
{
    process_model.returns_to_root = true;
    ck_assert(!privileges_become(&confined.user, &confined.why));
    ck_assert_str_eq(buf_str(&confined.why), "the change of user is not permanent");
    for (unsigned kept = 1; kept <= 32; kept *= 2) {
        process_model_begin(true);
        process_model.ids_kept = kept;
        buf_reset(&confined.why);
        ck_assert_msg(!privileges_become(&confined.user, &confined.why), "id %u", kept);
        ck_assert_str_eq(buf_str(&confined.why), "the change of user is not permanent");
    }
}
END_TEST

static void
become(void *context)
{
    bool became;

    (void)context;
    process_model_begin(true);
    process_model.no_capget = true;
    buf_reset(&confined.why);
    became = privileges_become(&confined.user, &confined.why);
    if (became)
        ck_assert(is_user() && process_model.capabilities == 0 && !process_model.dumpable);
    else
        ck_assert_msg(confined.why.len != 0, "%s", faults_failed());
    /* One that does not know the ambient set has none. */
    ck_assert(became || faults_failed());
}

START_TEST(a_user_is_changed_or_the_failure_reported)
{
    ck_assert_uint_ge(faults_walk(become, NULL, EPERM), 7);
    ck_assert_uint_ge(faults_walk(become, NULL, EINVAL), 7);
}
END_TEST

START_TEST(capabilities_are_given_up)
{
    ck_assert_msg(privileges_give_up(&confined.why), "%s", buf_str(&confined.why));
    ck_assert_uint_eq(process_model.capabilities, 0);
    ck_assert_uint_eq(process_model.bounding, 0);
    ck_assert(!process_model.ambient && process_model.no_new_privs);
    ck_assert_uint_eq(process_model.effective, 0);
    ck_assert(process_model_in_order("drop bounding set", "capabilities 0"));
    ck_assert(process_model_in_order("drop ambient set", "capabilities 0"));
    ck_assert(process_model_in_order("capabilities 0", "no new privileges"));
}
END_TEST

START_TEST(a_process_without_any_asks_for_nothing)
{
    process_model_begin(false);
    ck_assert(privileges_give_up(&confined.why));
    ck_assert_str_eq(process_model_calls(), "no new privileges\n");
}
END_TEST

static void
give_up(void *context)
{
    (void)context;
    process_model_begin(true);
    buf_reset(&confined.why);
    if (privileges_give_up(&confined.why))
        ck_assert(process_model.capabilities == 0 && process_model.no_new_privs);
    else
        ck_assert_msg(confined.why.len != 0, "%s", faults_failed());
}

START_TEST(capabilities_are_given_up_or_the_failure_reported)
{
    ck_assert_uint_eq(faults_walk(give_up, NULL, EPERM), 3);
    ck_assert_uint_eq(faults_walk(give_up, NULL, EINVAL), 3);
}
END_TEST

START_TEST(users_of_many_groups)
{
    struct service_user found;

    process_model.user_groups = 1000;
    ck_assert_msg(privileges_find_user("daemon", &found, &confined.why), "%s",
                  buf_str(&confined.why));
    ck_assert_int_eq(found.group_count, 1000);
    ck_assert_uint_eq(found.groups[0], found.gid);
    ck_assert_uint_eq(found.groups[999], 1999);
    privileges_free_user(&found);
    process_model.user_groups = 100000;
    ck_assert(!privileges_find_user("daemon", &found, &confined.why));
    ck_assert_str_eq(buf_str(&confined.why), "daemon is in more than 65536 groups");
    ck_assert_ptr_null(found.groups);
}
END_TEST

/* ---- the access log -------------------------------------------------------------------------- */

static pid_t keeper;

START_TEST(a_log_is_opened_for_its_user)
{
    int fd = confinement_open_log(&confined.options, &confined.user, &keeper);

    ck_assert_int_ge(fd, 0);
    close(fd);
    ck_assert_str_eq(process_model_calls(),
                     "setgroups 300 301\nsetfsgid 300\nsetfsuid 4000\nsetfsuid 0\nsetfsgid 0\n");
    process_model_begin(false);
    fd = confinement_open_log(&confined.options, &confined.user, &keeper);
    ck_assert_int_ge(fd, 0);
    close(fd);
    ck_assert_str_eq(process_model_calls(), "");
}
END_TEST

/* The first call is that of setgroups(). */
enum { OPENING = 2 };

/* Where the user may not, root does: its own file becomes the user's, if it has one name. */
START_TEST(a_log_is_opened_by_root)
{
    int fd;

    faults_fail_at(OPENING, EACCES);
    fd = confinement_open_log(&confined.options, &confined.user, &keeper);
    ck_assert_int_ge(fd, 0);
    close(fd);
    ck_assert(process_model_called(confined_in("chown @/log/access.log 4000 300")) ==
              (getuid() == 0));

    process_model_begin(true);
    process_model.chown_error = EROFS;
    faults_fail_at(OPENING, EACCES);
    fd = confinement_open_log(&confined.options, &confined.user, &keeper);
    if (getuid() == 0) {
        ck_assert_int_eq(errno, EROFS);
        ck_assert_int_eq(fd, -1);
    } else {
        close(fd);
    }

    process_model_begin(true);
    ck_assert_int_eq(link(confined.options.access_log, confined_in("@/log/second")), 0);
    faults_fail_at(OPENING, EACCES);
    fd = confinement_open_log(&confined.options, &confined.user, &keeper);
    ck_assert_int_ge(fd, 0);
    close(fd);
    ck_assert_ptr_null(strstr(process_model_calls(), "chown"));
}
END_TEST

START_TEST(a_log_that_root_cannot_open_either)
{
    int fd;

    ck_assert_int_eq(unlink(confined.options.access_log), 0);
    ck_assert_int_eq(symlink("/dev/null", confined.options.access_log), 0);
    faults_fail_at(OPENING, EACCES);
    fd = confinement_open_log(&confined.options, &confined.user, &keeper);
    ck_assert_int_eq(errno, ELOOP);
    ck_assert_int_eq(fd, -1);
    faults_fail_at(OPENING, EIO);
    fd = confinement_open_log(&confined.options, &confined.user, &keeper);
    ck_assert_int_eq(errno, EIO);
    ck_assert_int_eq(fd, -1);
}
END_TEST

/* ---- all of it ------------------------------------------------------------------------------- */

static int
enter(void)
{
    logged_clear();
    return confinement_enter(&confined.options, &confined.listening, &confined.user);
}

START_TEST(root_enters)
{
    ck_assert_msg(enter() == EX_OK, "%s", logged_text());
    ck_assert(is_user());
    ck_assert(process_model.no_new_privs && process_model.files_restricted &&
              process_model.calls_filtered && process_model.capabilities == 0);
    ck_assert(process_model_in_order(confined_in("chown @/run/socket.lock 4000 300"),
                                     confined_in("chown @/run/socket 4000 300")));
    ck_assert(process_model_in_order(confined_in("chown @/run 4000 300"), "setgroups 300 301"));
    ck_assert(process_model_in_order("dumpable 0", "no new privileges"));
    ck_assert(process_model_in_order("no new privileges", "restrict files"));
    ck_assert_ptr_nonnull(strstr(logged_text(),
                                 "sandbox: capabilities and new privileges are dropped, "
                                 "files are restricted (Landlock 6), system calls are "
                                 "filtered"));
    ck_assert_ptr_null(strstr(logged_text(), "root"));
}
END_TEST

START_TEST(a_user_enters)
{
    process_model_begin(false);
    confined.user.uid = confined.user.gid = 1000;
    ck_assert_msg(enter() == EX_OK, "%s", logged_text());
    ck_assert_ptr_null(strstr(process_model_calls(), "chown"));
    ck_assert(process_model.calls_filtered);
    confined.user.uid = 1001;
    process_model_begin(false);
    ck_assert_int_eq(enter(), EX_OSERR);
    ck_assert_ptr_nonnull(strstr(logged_text(), "only root can change to another user"));
}
END_TEST

/* What is not asked for is left as it is, and serving as root is worth a warning. */
START_TEST(options_disable_restrictions)
{
    free(confined.options.user);
    confined.options.user = NULL;
    confined.options.sandbox = SANDBOX_OFF;
    ck_assert_int_eq(enter(), EX_OK);
    ck_assert_str_eq(process_model_calls(), "");
    ck_assert_ptr_nonnull(strstr(logged_text(), "serving as root; --user NAME"));

    confined.options.sandbox = SANDBOX_ON;
    confined.listening.sets[LISTEN_LOCAL].sockets[0].bound = false;
    free(confined.options.access_log);
    confined.options.access_log = strdup("-");
    ck_assert_int_eq(enter(), EX_OK);
    ck_assert(!process_model_called(confined_in("allow @/run remove_file")));
    ck_assert(!process_model_called(confined_in("allow @/log write_file make_reg")));
    ck_assert(process_model_called(confined_in("allow @/ca.pem read_file")));

    process_model_begin(true);
    confined.options.user = strdup("4000");
    free(confined.options.access_log);
    confined.options.access_log = NULL;
    ck_assert_int_eq(enter(), EX_OK);
    ck_assert_ptr_null(strstr(process_model_calls(), "chown"));
}
END_TEST

/* A given path's folder is not ours to give. */
START_TEST(only_the_default_folder_is_given)
{
    confined.listening.sets[LISTEN_LOCAL].sockets[0].default_path = false;
    ck_assert_int_eq(enter(), EX_OK);
    ck_assert(process_model_called(confined_in("chown @/run/socket 4000 300")));
    ck_assert(!process_model_called(confined_in("chown @/run 4000 300")));
}
END_TEST

/* A user that can write in the folder could put root's file in the socket's place. */
START_TEST(what_is_not_a_socket_is_not_given)
{
    ck_assert_int_eq(unlink(confined.listening.sets[LISTEN_LOCAL].sockets[0].path), 0);
    ck_assert_int_eq(symlink("/etc/passwd", confined.listening.sets[LISTEN_LOCAL].sockets[0].path), 0);
    ck_assert_int_eq(enter(), EX_OSERR);
    ck_assert_ptr_nonnull(strstr(logged_text(), "cannot be given to its user"));
    ck_assert_ptr_null(strstr(process_model_calls(), "passwd"));
    ck_assert_int_eq(process_model.effective, 0);
}
END_TEST

static void
enter_whole(void)
{
    int status;

    process_model_begin(true);
    status = confinement_enter(&confined.options, &confined.listening, &confined.user);
    if (status == EX_OK)
        ck_assert(is_user() && process_model.no_new_privs);
    else
        ck_assert_int_eq(status, EX_OSERR);
    ck_assert(status == EX_OK || faults_failed());
}

START_TEST(the_process_is_confined_or_does_not_serve)
{
    unsigned refused = 0;

    for (unsigned n = 1; n <= 40; n++) {
        faults_fail_at(n, EACCES);
        enter_whole();
        faults_fail_at(0, 0);
        ck_assert_ptr_nonnull(faults_failed());
        refused += !process_model.calls_filtered;
    }
    ck_assert_uint_ge(refused, 12);
}
END_TEST

START_TEST(users_of_the_options)
{
    struct service_user found;

    ck_assert_int_eq(confinement_find_user(&confined.options, &found), EX_CONFIG);
    free(confined.options.user);
    confined.options.user = strdup("4000:300");
    ck_assert_int_eq(confinement_find_user(&confined.options, &found), EX_OK);
    ck_assert_uint_eq(found.uid, 4000);
    ck_assert_uint_eq(found.gid, 300);
    privileges_free_user(&found);
}
END_TEST

Suite *

unit_suite(void)
{
    Suite *suite = suite_create("server/confinement");
    TCase *tcase = tcase_create("confinement");

    tcase_add_checked_fixture(tcase, confined_set_up, confined_tear_down);
    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, root_becomes_a_user_for_good);
    tcase_add_test(tcase, only_root_becomes_another);
    tcase_add_test(tcase, a_change_that_is_not_for_good_is_refused);
    tcase_add_test(tcase, a_user_is_changed_or_the_failure_reported);
    tcase_add_test(tcase, capabilities_are_given_up);
    tcase_add_test(tcase, a_process_without_any_asks_for_nothing);
    tcase_add_test(tcase, capabilities_are_given_up_or_the_failure_reported);
    tcase_add_test(tcase, users_of_many_groups);
    tcase_add_test(tcase, a_log_is_opened_for_its_user);
    tcase_add_test(tcase, a_log_is_opened_by_root);
    tcase_add_test(tcase, a_log_that_root_cannot_open_either);
    tcase_add_test(tcase, root_enters);
    tcase_add_test(tcase, a_user_enters);
    tcase_add_test(tcase, options_disable_restrictions);
    tcase_add_test(tcase, only_the_default_folder_is_given);
    tcase_add_test(tcase, what_is_not_a_socket_is_not_given);
    tcase_add_test(tcase, the_process_is_confined_or_does_not_serve);
    tcase_add_test(tcase, users_of_the_options);
    suite_add_tcase(suite, tcase);
    return suite;
}
