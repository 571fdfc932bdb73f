/*
 * The calls of a service of the log with the first, the second ... failing: each failure is told by
 * its errno, and nothing is lost.
 */
#include "server/logs/log_target.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/unit/faults.h"
#include "tests/unit/unit.h"

static char folder[64], path[96];
static struct log_target target;
static int service;

static void
set_up(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    static char text[128];
    struct buf why;

    snprintf(folder, sizeof(folder), "/tmp/sunproxy-test-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/socket", folder);
    snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
    service = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(service, (const struct sockaddr *)&address, sizeof(address)), 0);
    snprintf(text, sizeof(text), "syslog:@%s", path);
    buf_init(&why, 1024);
    ck_assert(log_target_parse(&target, text, &why));
    buf_free(&why);
}

static void
tear_down(void)
{
    faults_fail_at(0, 0);
    close(service);
    unlink(path);
    rmdir(folder);
}

/* A service that cannot be connected to is connected to by the first line. */
static void
write_line(void *context)
{
    unsigned *descriptors = context;
    int fd = log_target_connect(&target), error;
    ssize_t n = fd < 0 ? -1 : log_target_write(&target, fd, span_str("line\n"));
    const char *failed = faults_failed();

    error = errno;
    faults_fail_at(0, 0);
    if (failed && strcmp(failed, "connect") != 0) {
        ck_assert_int_eq(n, -1);
        ck_assert_int_eq(error, EIO);
    } else {
        ck_assert_int_eq(n, 5);
    }
    if (fd >= 0)
        close(fd);
    ck_assert_uint_eq(unit_open_descriptors(), *descriptors);
}

START_TEST(lines)
{
    unsigned descriptors = unit_open_descriptors();

    ck_assert_uint_eq(faults_walk(write_line, &descriptors, EIO), 3); /* socket, connect, send */
}
END_TEST

START_TEST(a_service_without_memory_for_more)
{
    int fd = log_target_connect(&target);

    ck_assert_int_ge(fd, 0);
    faults_fail_at(1, ENOBUFS);
    ck_assert_int_eq(log_target_write(&target, fd, span_str("line\n")), -1);
    ck_assert_int_eq(errno, EAGAIN);
    ck_assert_str_eq(faults_failed(), "send");
    close(fd);
}
END_TEST

static Suite *
unit_suite(void)
{
    Suite *suite = suite_create("server/logs/faults_log_target");
    TCase *tc = tcase_create("faults");

    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, lines);
    tcase_add_test(tc, a_service_without_memory_for_more);
    suite_add_tcase(suite, tc);
    return suite;
}
