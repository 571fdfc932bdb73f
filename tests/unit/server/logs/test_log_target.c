/* Where the access log goes: what is taken, what is refused, and what services are sent. */
#define UNIT_STARTS_NO_THREAD
#include "server/logs/log_target.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <syslog.h>
#include <unistd.h>

#include "tests/unit/unit.h"

static char folder[64], path[96];

static void
setup(void)
{
    snprintf(folder, sizeof(folder), "/tmp/sunproxy-test-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/socket", folder);
}

static void
teardown(void)
{
    unlink(path);
    rmdir(folder);
}

static struct log_target
parse(const char *text)
{
    struct log_target target;
    struct buf why;

    buf_init(&why, 1024);
    ck_assert_msg(log_target_parse(&target, text, &why), "%s: %s", text, buf_str(&why));
    buf_free(&why);
    return target;
}

START_TEST(targets)
{
    static const struct {
        const char *text;
        enum log_target_kind kind;
        const char *path;
        int priority, port;
    } rows[] = {
        {"/var/log/access.log", LOG_TARGET_FILE, "/var/log/access.log", 0, 0},
        {"-", LOG_TARGET_FILE, "-", 0, 0},
        {"log:1", LOG_TARGET_FILE, "log:1", 0, 0},
        {"./syslog:", LOG_TARGET_FILE, "./syslog:", 0, 0},
        {"| rotatelogs x", LOG_TARGET_COMMAND, "rotatelogs x", 0, 0},
        {"syslog:", LOG_TARGET_SYSLOG, "/dev/log", LOG_DAEMON | LOG_INFO, 0},
        {"syslog:local7", LOG_TARGET_SYSLOG, "/dev/log", LOG_LOCAL7 | LOG_INFO, 0},
        {"syslog:@/run/log", LOG_TARGET_SYSLOG, "/run/log", LOG_DAEMON | LOG_INFO, 0},
        {"syslog:user@192.0.2.1:514", LOG_TARGET_SYSLOG_UDP, NULL, LOG_USER | LOG_INFO, 514},
        {"syslog:@[2001:db8::1]:5514", LOG_TARGET_SYSLOG_UDP, NULL, LOG_DAEMON | LOG_INFO, 5514},
        {"journal:", LOG_TARGET_JOURNAL, "/run/systemd/journal/socket", 0, 0},
        {"journal:/run/j", LOG_TARGET_JOURNAL, "/run/j", 0, 0},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct log_target target = parse(rows[i].text);
        const struct sockaddr_un *local = (const void *)&target.address;
        const struct sockaddr_in *inet = (const void *)&target.address; /* the port of IPv6, too */

        ck_assert_msg(target.kind == rows[i].kind, "%s", rows[i].text);
        ck_assert_uint_eq(target.priority, (unsigned)rows[i].priority);
        if (target.address.ss_family == AF_UNIX)
            ck_assert_str_eq(local->sun_path, rows[i].path);
        else if (target.address.ss_family == AF_UNSPEC)
            ck_assert_str_eq(target.path, rows[i].path);
        else
            ck_assert_int_eq(ntohs(inet->sin_port), rows[i].port);
    }
}
END_TEST

START_TEST(what_is_wrong_is_said)
{
    static const char *const wrong[][2] = {
        {"|", "no command follows the |"},
        {"| \t", "no command follows the |"},
        {"syslog:loca1", "\"loca1\" is not a facility of syslog such as daemon and local0; did you "
                         "mean local1?"},
        {"syslog:@host:514", "\"host:514\" is not a place of syslog"},
        {"syslog:@localhost:514", "is not a place of syslog"},
        {"syslog:@unix:/dev/log", "is not a place of syslog"},
        {"syslog:@", "is not a place of syslog"},
        {"journal:socket", "\"socket\" is not the absolute path of a socket"},
        {"sylog:local0", "did you mean syslog:? A file of that name is ./sylog:local0"},
        {"journald:", "did you mean journal:?"},
    };

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct log_target target;
        struct buf why;

        buf_init(&why, 1024);
        ck_assert_msg(!log_target_parse(&target, wrong[i][0], &why), "%s", wrong[i][0]);
        ck_assert_msg(strstr(buf_str(&why), wrong[i][1]) != NULL, "%s", buf_str(&why));
        buf_free(&why);
    }
}
END_TEST

/* A service at a socket of the test's. */
static int
serve(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
    unlink(path);
    ck_assert_int_eq(bind(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
    return fd;
}

/* What it has received; static memory. */
static const char *
received(int service)
{
    static char text[4096];
    ssize_t n = recv(service, text, sizeof(text) - 1, 0);

    text[n > 0 ? n : 0] = '\0';
    return text;
}

static struct log_target
target_at(const char *prefix)
{
    static char text[160];

    snprintf(text, sizeof(text), "%s%s", prefix, path);
    return parse(text);
}

START_TEST(syslog_gets_a_datagram_for_each_line)
{
    const struct log_target target = target_at("syslog:local0@");
    int service = serve(), fd = log_target_connect(&target);
    const char *const text = "first\tline\nsecond\n";
    char end[64];

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(log_target_write(&target, fd, span_str(text)), 11);
    ck_assert_int_eq(log_target_write(&target, fd, span_str(text + 11)), 7);
    snprintf(end, sizeof(end), " sunproxyd[%d]: first\tline", (int)getpid());
    ck_assert_int_eq(strncmp(received(service), "<134>", 5), 0);
    ck_assert_ptr_nonnull(strstr(received(service), " sunproxyd["));
    ck_assert_int_eq(log_target_write(&target, fd, span_str(text)), 11);
    ck_assert_ptr_nonnull(strstr(received(service), end));
    close(fd);
    close(service);
}
END_TEST

START_TEST(a_service_comes_goes_and_comes_back)
{
    const struct log_target target = target_at("syslog:@");
    int fd = log_target_connect(&target), service;

    ck_assert_int_ge(fd, 0);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(log_target_write(&target, fd, span_str("line\n")), -1);
        ck_assert_int_eq(errno, EPIPE);
        service = serve();
        ck_assert_int_eq(log_target_write(&target, fd, span_str("line\n")), 5);
        ck_assert_ptr_nonnull(strstr(received(service), ": line"));
        close(service);
    }
    close(fd);
}
END_TEST

START_TEST(a_service_that_does_not_read)
{
    const struct log_target target = target_at("syslog:@");
    int service = serve(), fd = log_target_connect(&target);
    ssize_t n = 0;

    for (int i = 0; i < 100000 && n >= 0; i++)
        n = log_target_write(&target, fd, span_str("line\n"));
    ck_assert_int_eq(n, -1);
    ck_assert_int_eq(errno, EAGAIN);
    close(fd);
    close(service);
}
END_TEST

START_TEST(a_line_that_no_datagram_takes)
{
    const struct log_target target = target_at("syslog:@");
    int service = serve(), fd = log_target_connect(&target);
    char *line = malloc(900001);

    ck_assert_ptr_nonnull(line);
    memset(line, 'x', 900000);
    line[900000] = '\n';
    ck_assert_int_eq(log_target_write(&target, fd, span_of(line, 900001)), -1);
    ck_assert_int_eq(errno, EMSGSIZE);
    free(line);
    close(fd);
    close(service);
}
END_TEST

START_TEST(the_journal_gets_fields)
{
    const struct log_target target = target_at("journal:");
    int service = serve(), fd = log_target_connect(&target);

    ck_assert_int_ge(log_target_write(&target, fd, span_str("A=1\tC=-\tB=x y\tMESSAGE=a\tb\tMESSAGE=c\n")),
                     0);
    ck_assert_str_eq(received(service), "A=1\nB=x y\nMESSAGE=a\tb\tMESSAGE=c\n");
    close(fd);
    close(service);
}
END_TEST

static Suite *
unit_suite(void)
{
    Suite *suite = suite_create("server/logs/log_target");
    TCase *tc = tcase_create("targets");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, targets);
    tcase_add_test(tc, what_is_wrong_is_said);
    tcase_add_test(tc, syslog_gets_a_datagram_for_each_line);
    tcase_add_test(tc, a_service_comes_goes_and_comes_back);
    tcase_add_test(tc, a_service_that_does_not_read);
    tcase_add_test(tc, a_line_that_no_datagram_takes);
    tcase_add_test(tc, the_journal_gets_fields);
    suite_add_tcase(suite, tc);
    return suite;
}
