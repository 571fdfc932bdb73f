/*
 * The sandbox in the model of process_model.h: which rights each file gets, what kernels restrict,
 * and that a failure of any call is answered. What a kernel does with them is seen by
 * test_sandbox.c, test_syscall_filter.c and tests/system/test_sandbox.py.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/faults.h"
#include "tests/unit/server/confine/confined.h"
#include "tests/unit/server/logs/logged.h"
#include "tests/unit/server/confine/process_model.h"
#include "tests/unit/unit.h"

START_TEST(files_get_their_rights_and_no_more)
{
    const char *calls;

    process_model.no_new_privs = true;
    ck_assert_msg(sandbox_enter(&confined.files, &confined.restrictions, &confined.why), "%s",
                  buf_str(&confined.why));
    ck_assert_str_eq(buf_str(&confined.restrictions),
                     "files are restricted (Landlock 6), system calls are filtered");
    ck_assert(process_model_called(confined_in("allow @/run remove_file")));
    ck_assert(process_model_called(confined_in("allow @/log write_file make_reg truncate")));
    ck_assert(process_model_called(confined_in("allow @/ca.pem read_file")));
    ck_assert(process_model_called("allow /etc read_file read_dir"));
    ck_assert(process_model_called("allow /dev/null read_file write_file"));
    calls = process_model_calls();
    ck_assert_ptr_null(strstr(calls, "allow / "));
    ck_assert_ptr_null(strstr(calls, confined_in("allow @ ")));
    ck_assert_ptr_null(strstr(calls, "allow /etc read_file read_dir write"));
    ck_assert(process_model_in_order(confined_in("allow @/ca.pem read_file"), "restrict files"));
    ck_assert(process_model_in_order("restrict files", "filter system calls"));
}
END_TEST

START_TEST(files_that_are_not_given_get_no_rights)
{
    confined.files = (struct sandbox_files){0};
    process_model.no_new_privs = true;
    ck_assert(sandbox_enter(&confined.files, &confined.restrictions, &confined.why));
    ck_assert_ptr_null(strstr(process_model_calls(), confined.folder));
}
END_TEST

/* Each version of Landlock restricts what it knows; none restricts nothing, and that is reported.
 */
START_TEST(kernels_restrict_what_they_know)
{
    static const char *const rulesets[] = {
        NULL,
        "landlock files=1fff ports=0 scopes=0",
        "landlock files=3fff ports=0 scopes=0",
        "landlock files=7fff ports=0 scopes=0",
        "landlock files=7fff ports=1 scopes=0",
        "landlock files=ffff ports=1 scopes=0",
        "landlock files=ffff ports=1 scopes=3",
        "landlock files=ffff ports=1 scopes=3",
    };

    for (int version = 0; version < 8; version++) {
        process_model_begin(true);
        process_model.landlock = version;
        buf_reset(&confined.restrictions);
        ck_assert(sandbox_enter(&confined.files, &confined.restrictions, &confined.why));
        ck_assert(process_model.files_restricted == (version > 0));
        ck_assert(process_model.calls_filtered);
        if (version)
            ck_assert_msg(process_model_called(rulesets[version]), "%s", process_model_calls());
        else
            ck_assert_str_eq(buf_str(&confined.restrictions),
                             "files are not restricted, this kernel has no "
                             "Landlock in force, system calls are filtered");
    }
}
END_TEST

/* The end is reported to the service manager, whose socket may be an abstract one. */
START_TEST(an_abstract_notify_socket_stays_in_reach)
{
    setenv("NOTIFY_SOCKET", "@manager", 1);
    ck_assert(sandbox_enter(&confined.files, &confined.restrictions, &confined.why));
    ck_assert(process_model_called("landlock files=ffff ports=1 scopes=2"));
    process_model_begin(true);
    setenv("NOTIFY_SOCKET", "/run/manager", 1);
    ck_assert(sandbox_enter(&confined.files, &confined.restrictions, &confined.why));
    ck_assert(process_model_called("landlock files=ffff ports=1 scopes=3"));
    unsetenv("NOTIFY_SOCKET");
}
END_TEST

/* The folder in which another daemon replaces resolv.conf is read, unless it has all sorts. */
START_TEST(resolv_conf_is_read_where_it_leads)
{
    const char *path = confined_in("@/run/resolv.conf");

    process_model.resolv_conf = path;
    ck_assert(sandbox_enter(&confined.files, &confined.restrictions, &confined.why));
    ck_assert(process_model_called(confined_in("allow @/run read_file read_dir")));
    process_model_begin(true);
    process_model.resolv_conf = "/run/resolv.conf";
    ck_assert(sandbox_enter(&confined.files, &confined.restrictions, &confined.why));
    ck_assert(!process_model_called("allow /run read_file read_dir"));
    process_model_begin(true);
    process_model.resolv_conf = "/resolv.conf";
    ck_assert(sandbox_enter(&confined.files, &confined.restrictions, &confined.why));
    ck_assert(!process_model_called("allow / read_file read_dir"));
}
END_TEST

START_TEST(access_logs_of_other_kinds)
{
    confined.files.access_log = "/dev/full";
    ck_assert(sandbox_enter(&confined.files, &confined.restrictions, &confined.why));
    ck_assert(process_model_called("allow /dev/full write_file"));
    ck_assert(!process_model_called("allow /dev write_file make_reg"));

    process_model_begin(true);
    confined.files.access_log = confined_in("@/log/second");
    ck_assert(sandbox_enter(&confined.files, &confined.restrictions, &confined.why));
    ck_assert_msg(!process_model_called(confined_in("allow @/log write_file make_reg truncate")),
                  "of a file that is gone there is nothing to open again");

    process_model_begin(true);
    ck_assert_int_eq(mkfifo(confined_in("@/log/second"), 0600), 0);
    confined.files.access_log = confined_in("@/log/second");
    ck_assert(sandbox_enter(&confined.files, &confined.restrictions, &confined.why));
    ck_assert(process_model_called(confined_in("allow @/log write_file make_reg truncate")));
    ck_assert(process_model_called(confined_in("allow @/log/second read_file")));
}
END_TEST

START_TEST(sockets_anywhere)
{
    static char too_long[PATH_MAX + 16];
    char here[PATH_MAX], line[PATH_MAX + 32];

    confined.files.sockets[0] = "socket";
    ck_assert(sandbox_enter(&confined.files, &confined.restrictions, &confined.why));
    ck_assert_ptr_nonnull(getcwd(here, sizeof(here)));
    snprintf(line, sizeof(line), "allow %s remove_file", here);
    ck_assert_msg(process_model_called(line), "%s", process_model_calls());

    process_model_begin(true);
    confined.files.sockets[0] = "/socket";
    ck_assert(sandbox_enter(&confined.files, &confined.restrictions, &confined.why));
    ck_assert(process_model_called("allow / remove_file"));

    process_model_begin(true);
    memset(too_long, 'x', sizeof(too_long) - 1);
    too_long[PATH_MAX + 1] = '/';
    confined.files.sockets[0] = too_long;
    ck_assert(!sandbox_enter(&confined.files, &confined.restrictions, &confined.why));
    ck_assert_ptr_nonnull(strstr(buf_str(&confined.why), strerror(ENAMETOOLONG)));
    ck_assert(!process_model.files_restricted && !process_model.calls_filtered);
}
END_TEST

/* Files are restricted and calls filtered, or the failure has a sentence. */
static void
enter_sandbox(void)
{
    bool entered;

    process_model.files_restricted = process_model.calls_filtered = false;
    buf_reset(&confined.why);
    buf_reset(&confined.restrictions);
    entered = sandbox_enter(&confined.files, &confined.restrictions, &confined.why);
    if (entered) {
        ck_assert(process_model.files_restricted && process_model.calls_filtered);
    } else {
        ck_assert_msg(confined.why.len != 0, "%s", faults_failed());
        ck_assert_msg(!process_model.calls_filtered, "%s", faults_failed());
    }
}

/* Returns the number of failures that were reported. Of the filter's rules, which are many and
 * alike, each 40th fails. */
static unsigned
walk_sandbox(int error)
{
    unsigned failures = 0;

    for (unsigned n = 1; n < 2000; n++) {
        const char *failed;

        process_model_begin(true);
        faults_fail_at(n, error);
        enter_sandbox();
        failed = faults_failed();
        faults_fail_at(0, 0);
        if (!failed)
            return failures;
        failures += confined.why.len != 0;
        if (strcmp(failed, "seccomp_rule_add") == 0)
            n += 40;
    }
    ck_abort_msg("no end");
}

START_TEST(a_sandbox_is_whole_or_refused)
{
    ck_assert_uint_ge(walk_sandbox(EIO), 20);
    ck_assert_uint_ge(walk_sandbox(ENOENT), 5);
    ck_assert_uint_ge(walk_sandbox(EBADFD), 5);
}
END_TEST

START_TEST(kernels_without_filters_are_reported)
{
    static const int errors[] = {ENOSYS, EINVAL};

    for (size_t i = 0; i < 2; i++) {
        process_model_begin(true);
        process_model.filter_error = errors[i];
        buf_reset(&confined.restrictions);
        ck_assert(sandbox_enter(&confined.files, &confined.restrictions, &confined.why));
        ck_assert_str_eq(buf_str(&confined.restrictions),
                         "files are restricted (Landlock 6), system calls are not "
                         "filtered, this kernel has no seccomp filters");
    }
    process_model.filter_error = EACCES;
    ck_assert(!sandbox_enter(&confined.files, &confined.restrictions, &confined.why));
    ck_assert_str_eq(buf_str(&confined.why), "system calls cannot be filtered: Permission denied");
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("server/sandbox");
    TCase *tcase = tcase_create("sandbox");

    tcase_add_checked_fixture(tcase, confined_set_up, confined_tear_down);
    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, files_get_their_rights_and_no_more);
    tcase_add_test(tcase, files_that_are_not_given_get_no_rights);
    tcase_add_test(tcase, kernels_restrict_what_they_know);
    tcase_add_test(tcase, an_abstract_notify_socket_stays_in_reach);
    tcase_add_test(tcase, resolv_conf_is_read_where_it_leads);
    tcase_add_test(tcase, access_logs_of_other_kinds);
    tcase_add_test(tcase, sockets_anywhere);
    tcase_add_test(tcase, a_sandbox_is_whole_or_refused);
    tcase_add_test(tcase, kernels_without_filters_are_reported);
    suite_add_tcase(suite, tcase);
    return suite;
}
