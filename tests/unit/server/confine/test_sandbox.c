#include "server/confine/sandbox.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "server/confine/landlock.h"
#include "tests/unit/unit.h"

#define NO_SANDBOX 250 /* exit status */

static char folder[64];
static struct sandbox_files files;
static int version; /* of Landlock */

/* A path in the test's folder; static memory, eight of them. */
static const char *
in(const char *name)
{
    static char paths[8][160];
    static unsigned next;
    char *path = paths[next++ % 8];

    snprintf(path, sizeof(paths[0]), "%s/%s", folder, name);
    return path;
}

static void
make_file(const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT, 0644);

    ck_assert_int_ge(fd, 0);
    close(fd);
}

/* run/ has the socket, log/ the access log; the others are the machine's. */
static void
setup(void)
{
    snprintf(folder, sizeof(folder), "/tmp/sunproxy-test-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    ck_assert_int_eq(mkdir(in("run"), 0755), 0);
    ck_assert_int_eq(mkdir(in("log"), 0755), 0);
    make_file(in("run/socket"));
    make_file(in("log/access.log"));
    make_file(in("ca.pem"));
    make_file(in("other"));
    files = (struct sandbox_files){.sockets = {strdup(in("run/socket"))},
                                   .access_log = strdup(in("log/access.log")),
                                   .cacert = strdup(in("ca.pem"))};
}

static void
teardown(void)
{
    static const char *const names[] = {
        "run/socket", "run/new", "log/access.log", "log/new", "ca.pem", "other", "new"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        unlink(in(names[i]));
    rmdir(in("run"));
    rmdir(in("log"));
    ck_assert_int_eq(rmdir(folder), 0);
    free((char *)(uintptr_t)files.sockets[0]);
    free((char *)(uintptr_t)files.access_log);
    free((char *)(uintptr_t)files.cacert);
}

/* The errno of an attempt in the sandbox, 0 if it succeeds. */
static int
try(int (*attempt)(const char *), const char *path)
{
    int status;
    pid_t child = fork();

    ck_assert_int_ge(child, 0);
    if (child == 0) {
        struct buf restrictions, why;

        buf_init(&restrictions, 1024);
        buf_init(&why, 1024);
        /* What a log in a file needs is tested by that of the access log. */
        if (dup2(open("/dev/null", O_WRONLY), STDERR_FILENO) < 0)
            _exit(NO_SANDBOX);
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
            !sandbox_enter(&files, &restrictions, &why))
            _exit(NO_SANDBOX);
        _exit(attempt(path));
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_msg(WIFEXITED(status), "ended by signal %d", WTERMSIG(status));
    return WEXITSTATUS(status);
}

static int
read_file(const char *path)
{
    return open(path, O_RDONLY) < 0 ? errno : 0;
}

static int
append_file(const char *path)
{
    return open(path, O_WRONLY | O_APPEND | O_CREAT, 0640) < 0 ? errno : 0;
}

static int
remove_file(const char *path)
{
    return unlink(path) < 0 ? errno : 0;
}

START_TEST(files_of_the_daemon)
{
    ck_assert_int_eq(try(append_file, in("log/access.log")), 0);
    ck_assert_int_eq(try(append_file, in("log/new")), 0);
    ck_assert_int_eq(try(read_file, in("ca.pem")), 0);
    ck_assert_int_eq(try(remove_file, in("run/socket")), 0);
    ck_assert_int_eq(try(read_file, "/etc/nsswitch.conf"), 0);
    ck_assert_int_eq(try(read_file, "/etc/resolv.conf"), 0);
    ck_assert_int_eq(try(append_file, "/dev/null"), 0);
    ck_assert_int_eq(try(read_file, "/proc/self/maps"), 0);
}
END_TEST

START_TEST(no_other_files)
{
    ck_assert_int_eq(try(read_file, in("other")), EACCES);
    ck_assert_int_eq(try(read_file, in("log/access.log")), EACCES);
    ck_assert_int_eq(try(append_file, in("other")), EACCES);
    ck_assert_int_eq(try(append_file, in("new")), EACCES);
    ck_assert_int_eq(try(append_file, in("ca.pem")), EACCES);
    ck_assert_int_eq(try(append_file, in("run/new")), EACCES);
    ck_assert_int_eq(try(remove_file, in("log/access.log")), EACCES);
    ck_assert_int_eq(try(remove_file, in("other")), EACCES);
    ck_assert_int_eq(try(read_file, "/proc/1/status"), EACCES);
    ck_assert_int_eq(try(append_file, "/etc/hosts"), EACCES);
    ck_assert_int_eq(access(in("new"), F_OK), -1);
}
END_TEST

static int
write_database(const char *path)
{
    int fd = open(path, O_RDWR | O_CREAT, 0640);

    return fd < 0 || write(fd, "text", 4) != 4 || ftruncate(fd, 2) != 0 || fdatasync(fd) != 0 ||
                   fsync(fd) != 0 || unlink(path) != 0
               ? errno
               : 0;
}

static int
truncate_nothing(const char *unused)
{
    (void)unused;
    return ftruncate(-1, 0) == 0 ? 0 : errno;
}

static int
sync_nothing(const char *unused)
{
    (void)unused;
    return fdatasync(-1) == 0 ? 0 : errno;
}

static int
cut_file(const char *path)
{
    int fd = open(path, O_WRONLY | O_APPEND | O_CREAT, 0640);

    return fd < 0 || write(fd, "text", 4) != 4 || ftruncate(fd, 2) != 0 ? errno : 0;
}

START_TEST(an_access_log_is_cut)
{
    ck_assert_int_eq(try(cut_file, in("log/access.log")), 0);
    ck_assert_int_eq(try(cut_file, in("other")), EACCES);
    ck_assert_int_eq(try(sync_nothing, NULL), ENOSYS);
    free((char *)(uintptr_t)files.access_log);
    files.access_log = NULL;
    ck_assert_int_eq(try(truncate_nothing, NULL), EPERM);
}
END_TEST

START_TEST(a_database_is_written_in_its_folder_and_nowhere_else)
{
    ck_assert_int_eq(try(sync_nothing, NULL), ENOSYS);
    ck_assert_int_eq(try(write_database, in("run/new")), EACCES);
    /* There is no such file yet. */
    files.request_db = strdup(in("run/requests.db"));
    ck_assert_int_eq(try(truncate_nothing, NULL), EBADF);
    ck_assert_int_eq(try(sync_nothing, NULL), EBADF);
    ck_assert_int_eq(try(write_database, files.request_db), 0);
    ck_assert_int_eq(try(write_database, in("run/new")), 0);
    ck_assert_int_eq(try(write_database, in("log/new")), EACCES);
    ck_assert_int_eq(try(write_database, in("other")), EACCES);
    free((char *)(uintptr_t)files.request_db);
}
END_TEST

/* Of a device there is only one: its folder is not the log's. */
START_TEST(a_log_that_is_a_device)
{
    free((char *)(uintptr_t)files.access_log);
    files.access_log = strdup("/dev/full");
    ck_assert_int_eq(try(append_file, "/dev/full"), 0);
    ck_assert_int_eq(try(append_file, "/dev/sunproxy-test"), EACCES);
    ck_assert_int_eq(try(append_file, "/dev/zero"), EACCES);
}
END_TEST

/* A FIFO without a reader is opened for reading as well, and a file may stand there later. */
START_TEST(a_log_that_is_a_fifo)
{
    ck_assert_int_eq(unlink(files.access_log), 0);
    ck_assert_int_eq(mkfifo(files.access_log, 0600), 0);
    ck_assert_int_eq(try(append_file, in("log/new")), 0);
    ck_assert_int_eq(try(read_file, in("log/new")), EACCES);
}
END_TEST

static int
bind_a_port(const char *unused)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    (void)unused;
    inet_pton(AF_INET, "127.0.0.1", &address.sin_addr);
    return bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ? errno : 0;
}

static int
connect_to_abstract(const char *name)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    size_t len = strlen(name);

    memcpy(address.sun_path + 1, name, len);
    return connect(fd, (struct sockaddr *)&address,
                   (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + len)) < 0
               ? errno
               : 0;
}

START_TEST(ports_and_abstract_sockets)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const char *name = folder + strlen("/tmp/");
    size_t len = strlen(name);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);

    ck_assert_int_eq(bind_a_port(""), 0);
    ck_assert_int_eq(try(bind_a_port, ""), version >= 4 ? EACCES : 0);

    memcpy(address.sun_path + 1, name, len);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address,
                          (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + len)),
                     0);
    ck_assert_int_eq(listen(fd, 5), 0);
    unsetenv("NOTIFY_SOCKET");
    ck_assert_int_eq(try(connect_to_abstract, name), version >= 6 ? EPERM : 0);
    setenv("NOTIFY_SOCKET", "@manager", 1);
    ck_assert_int_eq(try(connect_to_abstract, name), 0);
    unsetenv("NOTIFY_SOCKET");
    close(fd);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("server/sandbox");
    TCase *tc = tcase_create("sandbox");
    struct landlock landlock;

    if (landlock_begin(&landlock, true) == 0 && landlock_end(&landlock, false) == 0)
        version = landlock.version;
    if (version == 0)
        unit_skip("this kernel has no Landlock in force");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, an_access_log_is_cut);
    tcase_add_test(tc, a_database_is_written_in_its_folder_and_nowhere_else);
    tcase_add_test(tc, files_of_the_daemon);
    tcase_add_test(tc, no_other_files);
    tcase_add_test(tc, a_log_that_is_a_device);
    tcase_add_test(tc, a_log_that_is_a_fifo);
    tcase_add_test(tc, ports_and_abstract_sockets);
    suite_add_tcase(suite, tc);
    return suite;
}
