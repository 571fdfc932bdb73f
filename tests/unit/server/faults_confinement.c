/*
 * How the starting process gives up what it may do, in the model of process_model.h: which calls it
 * makes and in which order, which rights each file gets, and that a failure of any of them is
 * answered. What a kernel does with them is seen by test_sandbox.c, test_syscall_filter.c and
 * tests/system/test_sandbox.py.
 */
#include "server/confinement.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sysexits.h>
#include <unistd.h>

#include "server/log.h"
#include "server/sandbox.h"
#include "tests/unit/faults.h"
#include "tests/unit/server/logged.h"
#include "tests/unit/server/process_model.h"
#include "tests/unit/unit.h"

static char folder[PATH_MAX];
static struct options options;
static struct listening listening;
static struct sandbox_files files;
static struct service_user user;
static gid_t groups[] = {300, 301};
static struct buf restrictions, why;

/* A text with the test's folder in place of "@"; static memory, eight of them. */
static const char *
in(const char *format)
{
    static char texts[8][PATH_MAX + 256];
    static unsigned next;
    char *text = texts[next++ % 8];
    const char *at = strchr(format, '@');

    snprintf(text, sizeof(texts[0]), "%.*s%s%s", (int)(at - format), format, folder, at + 1);
    return text;
}

static int
make_socket(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    return fd;
}

static int
make_file(const char *path)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

    ck_assert_int_ge(fd, 0);
    return fd;
}

/* The daemon's files: run/ has the socket and its lock, log/ the access log. */
static void
set_up(void)
{
    char made[] = "/tmp/sunproxy-test-XXXXXX";

    ck_assert_ptr_nonnull(mkdtemp(made));
    ck_assert_ptr_nonnull(realpath(made, folder));
    ck_assert_int_eq(mkdir(in("@/run"), 0755), 0);
    ck_assert_int_eq(mkdir(in("@/log"), 0755), 0);
    close(make_file(in("@/log/access.log")));
    close(make_file(in("@/ca.pem")));
    ck_assert(options_init(&options));
    options.no_rpcbind = true;
    options.sandbox = SANDBOX_ON;
    free(options.access_log);
    options.access_log = strdup(in("@/log/access.log"));
    options.cacert = strdup(in("@/ca.pem"));
    options.user = strdup("4000");
    listening = (struct listening){.local = {.fd = make_socket(in("@/run/socket")),
                                             .bound = true,
                                             .lock = make_file(in("@/run/socket.lock")),
                                             .default_path = true}};
    snprintf(listening.local.path, sizeof(listening.local.path), "%s", in("@/run/socket"));
    files = (struct sandbox_files){.sockets = {listening.local.path},
                                   .access_log = options.access_log,
                                   .cacert = options.cacert};
    user = (struct service_user){.uid = 4000, .gid = 300, .groups = groups, .group_count = 2};
    unsetenv("NOTIFY_SOCKET");
    log_setup(LOG_LEVEL_INFO, LOG_FORMAT_PLAIN);
    process_model_begin(true);
    logged_begin();
    buf_init(&restrictions, 1024);
    buf_init(&why, 1024);
}

static void
tear_down(void)
{
    static const char *const names[] = {"@/run/socket", "@/run/socket.lock", "@/log/access.log",
                                        "@/log/second", "@/ca.pem",          "@/stderr"};

    logged_end();
    process_model_end();
    faults_fail_at(0, 0);
    options_free(&options);
    close(listening.local.fd);
    close(listening.local.lock);
    buf_free(&restrictions);
    buf_free(&why);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        unlink(in(names[i]));
    rmdir(in("@/run"));
    rmdir(in("@/log"));
    ck_assert_int_eq(rmdir(folder), 0);
}

/* ---- the sandbox ----------------------------------------------------------------------------- */

START_TEST(files_get_their_rights_and_no_more)
{
    const char *calls;

    process_model.no_new_privs = true;
    ck_assert_msg(sandbox_enter(&files, &restrictions, &why), "%s", buf_str(&why));
    ck_assert_str_eq(buf_str(&restrictions),
                     "files are restricted (Landlock 6), system calls are filtered");
    ck_assert(process_model_called(in("allow @/run remove_file")));
    ck_assert(process_model_called(in("allow @/log write_file make_reg")));
    ck_assert(process_model_called(in("allow @/ca.pem read_file")));
    ck_assert(process_model_called("allow /etc read_file read_dir"));
    ck_assert(process_model_called("allow /dev/null read_file write_file"));
    calls = process_model_calls();
    ck_assert_ptr_null(strstr(calls, "allow / "));
    ck_assert_ptr_null(strstr(calls, in("allow @ ")));
    ck_assert_ptr_null(strstr(calls, "allow /etc read_file read_dir write"));
    ck_assert(process_model_in_order(in("allow @/ca.pem read_file"), "restrict files"));
    ck_assert(process_model_in_order("restrict files", "filter system calls"));
}
END_TEST

START_TEST(files_that_are_not_given_get_no_rights)
{
    files = (struct sandbox_files){0};
    process_model.no_new_privs = true;
    ck_assert(sandbox_enter(&files, &restrictions, &why));
    ck_assert_ptr_null(strstr(process_model_calls(), folder));
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
        buf_reset(&restrictions);
        ck_assert(sandbox_enter(&files, &restrictions, &why));
        ck_assert(process_model.files_restricted == (version > 0));
        ck_assert(process_model.calls_filtered);
        if (version)
            ck_assert_msg(process_model_called(rulesets[version]), "%s", process_model_calls());
        else
            ck_assert_str_eq(buf_str(&restrictions),
                             "files are not restricted, this kernel has no "
                             "Landlock in force, system calls are filtered");
    }
}
END_TEST

/* The end is reported to the service manager, whose socket may be an abstract one. */
START_TEST(an_abstract_notify_socket_stays_in_reach)
{
    setenv("NOTIFY_SOCKET", "@manager", 1);
    ck_assert(sandbox_enter(&files, &restrictions, &why));
    ck_assert(process_model_called("landlock files=ffff ports=1 scopes=2"));
    process_model_begin(true);
    setenv("NOTIFY_SOCKET", "/run/manager", 1);
    ck_assert(sandbox_enter(&files, &restrictions, &why));
    ck_assert(process_model_called("landlock files=ffff ports=1 scopes=3"));
    unsetenv("NOTIFY_SOCKET");
}
END_TEST

/* The folder in which another daemon replaces resolv.conf is read, unless it has all sorts. */
START_TEST(resolv_conf_is_read_where_it_leads)
{
    const char *path = in("@/run/resolv.conf");

    process_model.resolv_conf = path;
    ck_assert(sandbox_enter(&files, &restrictions, &why));
    ck_assert(process_model_called(in("allow @/run read_file read_dir")));
    process_model_begin(true);
    process_model.resolv_conf = "/run/resolv.conf";
    ck_assert(sandbox_enter(&files, &restrictions, &why));
    ck_assert(!process_model_called("allow /run read_file read_dir"));
    process_model_begin(true);
    process_model.resolv_conf = "/resolv.conf";
    ck_assert(sandbox_enter(&files, &restrictions, &why));
    ck_assert(!process_model_called("allow / read_file read_dir"));
}
END_TEST

START_TEST(access_logs_of_other_kinds)
{
    files.access_log = "/dev/full";
    ck_assert(sandbox_enter(&files, &restrictions, &why));
    ck_assert(process_model_called("allow /dev/full write_file"));
    ck_assert(!process_model_called("allow /dev write_file make_reg"));

    process_model_begin(true);
    files.access_log = in("@/log/second");
    ck_assert(sandbox_enter(&files, &restrictions, &why));
    ck_assert_msg(!process_model_called(in("allow @/log write_file make_reg")),
                  "of a file that is gone there is nothing to open again");

    process_model_begin(true);
    ck_assert_int_eq(mkfifo(in("@/log/second"), 0600), 0);
    files.access_log = in("@/log/second");
    ck_assert(sandbox_enter(&files, &restrictions, &why));
    ck_assert(process_model_called(in("allow @/log write_file make_reg")));
    ck_assert(process_model_called(in("allow @/log/second read_file")));
}
END_TEST

START_TEST(sockets_anywhere)
{
    static char too_long[PATH_MAX + 16];
    char here[PATH_MAX], line[PATH_MAX + 32];

    files.sockets[0] = "socket";
    ck_assert(sandbox_enter(&files, &restrictions, &why));
    ck_assert_ptr_nonnull(getcwd(here, sizeof(here)));
    snprintf(line, sizeof(line), "allow %s remove_file", here);
    ck_assert_msg(process_model_called(line), "%s", process_model_calls());

    process_model_begin(true);
    files.sockets[0] = "/socket";
    ck_assert(sandbox_enter(&files, &restrictions, &why));
    ck_assert(process_model_called("allow / remove_file"));

    process_model_begin(true);
    memset(too_long, 'x', sizeof(too_long) - 1);
    too_long[PATH_MAX + 1] = '/';
    files.sockets[0] = too_long;
    ck_assert(!sandbox_enter(&files, &restrictions, &why));
    ck_assert_ptr_nonnull(strstr(buf_str(&why), strerror(ENAMETOOLONG)));
    ck_assert(!process_model.files_restricted && !process_model.calls_filtered);
}
END_TEST

/* Files are restricted and calls filtered, or the failure has a sentence. */
static void
enter_sandbox(void)
{
    bool entered;

    process_model.files_restricted = process_model.calls_filtered = false;
    buf_reset(&why);
    buf_reset(&restrictions);
    entered = sandbox_enter(&files, &restrictions, &why);
    if (entered) {
        ck_assert(process_model.files_restricted && process_model.calls_filtered);
    } else {
        ck_assert_msg(why.len != 0, "%s", faults_failed());
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
        failures += why.len != 0;
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
        buf_reset(&restrictions);
        ck_assert(sandbox_enter(&files, &restrictions, &why));
        ck_assert_str_eq(buf_str(&restrictions),
                         "files are restricted (Landlock 6), system calls are not "
                         "filtered, this kernel has no seccomp filters");
    }
    process_model.filter_error = EACCES;
    ck_assert(!sandbox_enter(&files, &restrictions, &why));
    ck_assert_str_eq(buf_str(&why), "system calls cannot be filtered: Permission denied");
}
END_TEST

/* ---- privileges ------------------------------------------------------------------------------ */

static bool
is_user(void)
{
    return process_model.real == user.uid && process_model.effective == user.uid &&
           process_model.saved == user.uid && process_model.real_group == user.gid &&
           process_model.effective_group == user.gid && process_model.saved_group == user.gid &&
           process_model.group_count == 2 && process_model.groups[0] == 300 &&
           process_model.groups[1] == 301;
}

START_TEST(root_becomes_a_user_for_good)
{
    ck_assert_msg(privileges_become(&user, &why), "%s", buf_str(&why));
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
    ck_assert(!privileges_become(&user, &why));
    ck_assert_str_eq(buf_str(&why), "user: only root can change to another user");
    user.uid = user.gid = 1000;
    ck_assert(privileges_become(&user, &why));
    user.gid = 1001;
    ck_assert(!privileges_become(&user, &why));
    ck_assert_str_eq(process_model_calls(), "");
}
END_TEST

START_TEST(a_change_that_is_not_for_good_is_refused)
{
    process_model.returns_to_root = true;
    ck_assert(!privileges_become(&user, &why));
    ck_assert_str_eq(buf_str(&why), "the change of user is not permanent");
    for (unsigned kept = 1; kept <= 32; kept *= 2) {
        process_model_begin(true);
        process_model.ids_kept = kept;
        buf_reset(&why);
        ck_assert_msg(!privileges_become(&user, &why), "id %u", kept);
        ck_assert_str_eq(buf_str(&why), "the change of user is not permanent");
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
    buf_reset(&why);
    became = privileges_become(&user, &why);
    if (became)
        ck_assert(is_user() && process_model.capabilities == 0 && !process_model.dumpable);
    else
        ck_assert_msg(why.len != 0, "%s", faults_failed());
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
    ck_assert_msg(privileges_give_up(&why), "%s", buf_str(&why));
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
    ck_assert(privileges_give_up(&why));
    ck_assert_str_eq(process_model_calls(), "no new privileges\n");
}
END_TEST

static void
give_up(void *context)
{
    (void)context;
    process_model_begin(true);
    buf_reset(&why);
    if (privileges_give_up(&why))
        ck_assert(process_model.capabilities == 0 && process_model.no_new_privs);
    else
        ck_assert_msg(why.len != 0, "%s", faults_failed());
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
    ck_assert_msg(privileges_find_user("daemon", &found, &why), "%s", buf_str(&why));
    ck_assert_int_eq(found.group_count, 1000);
    ck_assert_uint_eq(found.groups[0], found.gid);
    ck_assert_uint_eq(found.groups[999], 1999);
    privileges_free_user(&found);
    process_model.user_groups = 100000;
    ck_assert(!privileges_find_user("daemon", &found, &why));
    ck_assert_str_eq(buf_str(&why), "user: daemon is in more than 65536 groups");
    ck_assert_ptr_null(found.groups);
}
END_TEST

/* ---- the access log -------------------------------------------------------------------------- */

START_TEST(a_log_is_opened_for_its_user)
{
    int fd = confinement_open_log(&options, &user);

    ck_assert_int_ge(fd, 0);
    close(fd);
    ck_assert_str_eq(process_model_calls(),
                     "setgroups 300 301\nsetfsgid 300\nsetfsuid 4000\nsetfsuid 0\nsetfsgid 0\n");
    process_model_begin(false);
    fd = confinement_open_log(&options, &user);
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
    fd = confinement_open_log(&options, &user);
    ck_assert_int_ge(fd, 0);
    close(fd);
    ck_assert(process_model_called(in("chown @/log/access.log 4000 300")) == (getuid() == 0));

    process_model_begin(true);
    process_model.chown_error = EROFS;
    faults_fail_at(OPENING, EACCES);
    fd = confinement_open_log(&options, &user);
    if (getuid() == 0) {
        ck_assert_int_eq(errno, EROFS);
        ck_assert_int_eq(fd, -1);
    } else {
        close(fd);
    }

    process_model_begin(true);
    ck_assert_int_eq(link(options.access_log, in("@/log/second")), 0);
    faults_fail_at(OPENING, EACCES);
    fd = confinement_open_log(&options, &user);
    ck_assert_int_ge(fd, 0);
    close(fd);
    ck_assert_ptr_null(strstr(process_model_calls(), "chown"));
}
END_TEST

START_TEST(a_log_that_root_cannot_open_either)
{
    int fd;

    ck_assert_int_eq(unlink(options.access_log), 0);
    ck_assert_int_eq(symlink("/dev/null", options.access_log), 0);
    faults_fail_at(OPENING, EACCES);
    fd = confinement_open_log(&options, &user);
    ck_assert_int_eq(errno, ELOOP);
    ck_assert_int_eq(fd, -1);
    faults_fail_at(OPENING, EIO);
    fd = confinement_open_log(&options, &user);
    ck_assert_int_eq(errno, EIO);
    ck_assert_int_eq(fd, -1);
}
END_TEST

/* ---- all of it ------------------------------------------------------------------------------- */

static int
enter(void)
{
    logged_clear();
    return confinement_enter(&options, &listening, &user);
}

START_TEST(root_enters)
{
    ck_assert_msg(enter() == EX_OK, "%s", logged_text());
    ck_assert(is_user());
    ck_assert(process_model.no_new_privs && process_model.files_restricted &&
              process_model.calls_filtered && process_model.capabilities == 0);
    ck_assert(process_model_in_order(in("chown @/run/socket.lock 4000 300"),
                                     in("chown @/run/socket 4000 300")));
    ck_assert(process_model_in_order(in("chown @/run 4000 300"), "setgroups 300 301"));
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
    user.uid = user.gid = 1000;
    ck_assert_msg(enter() == EX_OK, "%s", logged_text());
    ck_assert_ptr_null(strstr(process_model_calls(), "chown"));
    ck_assert(process_model.calls_filtered);
    user.uid = 1001;
    process_model_begin(false);
    ck_assert_int_eq(enter(), EX_OSERR);
    ck_assert_ptr_nonnull(strstr(logged_text(), "only root can change to another user"));
}
END_TEST

/* What is not asked for is left as it is, and serving as root is worth a warning. */
START_TEST(options_disable_restrictions)
{
    free(options.user);
    options.user = NULL;
    options.sandbox = SANDBOX_OFF;
    ck_assert_int_eq(enter(), EX_OK);
    ck_assert_str_eq(process_model_calls(), "");
    ck_assert_ptr_nonnull(strstr(logged_text(), "serving as root; --user NAME"));

    options.sandbox = SANDBOX_ON;
    listening.local.bound = false;
    free(options.access_log);
    options.access_log = strdup("-");
    ck_assert_int_eq(enter(), EX_OK);
    ck_assert(!process_model_called(in("allow @/run remove_file")));
    ck_assert(!process_model_called(in("allow @/log write_file make_reg")));
    ck_assert(process_model_called(in("allow @/ca.pem read_file")));

    process_model_begin(true);
    options.user = strdup("4000");
    free(options.access_log);
    options.access_log = NULL;
    ck_assert_int_eq(enter(), EX_OK);
    ck_assert_ptr_null(strstr(process_model_calls(), "chown"));
}
END_TEST

/* A given path's folder is not ours to give. */
START_TEST(only_the_default_folder_is_given)
{
    listening.local.default_path = false;
    ck_assert_int_eq(enter(), EX_OK);
    ck_assert(process_model_called(in("chown @/run/socket 4000 300")));
    ck_assert(!process_model_called(in("chown @/run 4000 300")));
}
END_TEST

/* A user that can write in the folder could put root's file in the socket's place. */
START_TEST(what_is_not_a_socket_is_not_given)
{
    ck_assert_int_eq(unlink(listening.local.path), 0);
    ck_assert_int_eq(symlink("/etc/passwd", listening.local.path), 0);
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
    status = confinement_enter(&options, &listening, &user);
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

    ck_assert_int_eq(confinement_find_user(&options, &found), EX_CONFIG);
    free(options.user);
    options.user = strdup("4000:300");
    ck_assert_int_eq(confinement_find_user(&options, &found), EX_OK);
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

    tcase_add_checked_fixture(tcase, set_up, tear_down);
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
