/* The command behind the access log: it reads, ends, is started again, and ends with the daemon. */
#define UNIT_STARTS_NO_THREAD
#include "server/logs/log_command.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "server/commands/keeper.h"
#include "server/logs/log.h"
#include "tests/unit/server/logs/logged.h"
#include "tests/unit/unit.h"

static char folder[64], path[96];

static void
setup(void)
{
    snprintf(folder, sizeof(folder), "/tmp/sunproxy-test-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/out", folder);
    log_setup(LOG_LEVEL_INFO, LOG_FORMAT_PLAIN);
    signal(SIGPIPE, SIG_IGN);
    logged_begin();
}

static void
teardown(void)
{
    logged_end();
    unlink(path);
    rmdir(folder);
}

static bool
enter(const void *context)
{
    return context != NULL;
}

/* Starts a command, in which %s is the file. */
static int
start(const char *format, pid_t *keeper)
{
    char command[256];
    int fd;

    snprintf(command, sizeof(command), format, path);
    fd = log_command_start(command, enter, path, keeper);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_gt(*keeper, 0);
    return fd;
}

static const char *
content(void)
{
    static char text[65536];
    FILE *file = fopen(path, "r");
    size_t n = file ? fread(text, 1, sizeof(text) - 1, file) : 0;

    text[n] = '\0';
    if (file)
        fclose(file);
    return text;
}

static void
await_content(const char *expected)
{
    for (int i = 0; i < 3000 && strcmp(content(), expected) != 0; i++)
        usleep(10000);
    ck_assert_str_eq(content(), expected);
}

static void
put(int fd, const char *text)
{
    ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
}

START_TEST(it_reads_to_the_end)
{
    pid_t keeper;
    int fd = start("cat > %s", &keeper);

    put(fd, "one\n");
    await_content("one\n");
    put(fd, "two\n");
    close(fd);
    keeper_wait(keeper);
    ck_assert_str_eq(content(), "one\ntwo\n");
    ck_assert_int_eq(waitpid(keeper, NULL, WNOHANG), -1);
    ck_assert_uint_eq(logged_times("has ended"), 0);
    keeper_wait(0);
}
END_TEST

/* Each run reads a line and half of the next one, which the next run gets as a whole. */
START_TEST(a_line_that_was_read_in_part_is_read_again)
{
    pid_t keeper;
    int fd = start("dd bs=6 count=1 2> /dev/null >> %s", &keeper);

    put(fd, "one\ntwo\nthree\n");
    await_content("one\ntwtwo\nth");
    ck_assert_uint_eq(logged_times("\" has ended with status 0; it is started again in 1 s"), 1);
    close(fd);
    keeper_wait(keeper);
    /* What is left is read once more behind the end. */
    await_content("one\ntwtwo\nththree\n");
}
END_TEST

/* `_i`: the lines are written before or while it is not running. */
START_TEST(no_line_is_lost_by_a_new_start)
{
    pid_t keeper;
    int fd = start("read line; echo $line >> %s", &keeper);

    put(fd, _i ? "one\n" : "one\ntwo\nthree\n");
    await_content("one\n");
    if (_i)
        put(fd, "two\nthree\n");
    await_content("one\ntwo\n");
    await_content("one\ntwo\nthree\n");
    close(fd);
    keeper_wait(keeper);
    ck_assert_str_eq(content(), "one\ntwo\nthree\n");
}
END_TEST

START_TEST(a_command_that_cannot_be_run)
{
    pid_t keeper;
    int fd = start("%s/none", &keeper);

    for (int i = 0; i < 3000 && logged_times("has ended with status 127") == 0; i++)
        usleep(10000);
    ck_assert_uint_eq(logged_times("has ended with status 127; it is started again in 1 s"), 1);
    put(fd, "line\n"); /* waits in the pipe */
    close(fd);
    keeper_wait(keeper);
}
END_TEST

/* A command that does not read is neither waited for nor ended; it ends by itself here. */
START_TEST(a_command_that_does_not_read)
{
    pid_t keeper;
    int fd = start("exec sleep 3 > %s", &keeper);
    char line[4096] = "";
    ssize_t n = 0;

    for (int i = 0; i < 1000 && n >= 0; i++)
        n = write(fd, line, sizeof(line));
    ck_assert_int_eq(n, -1);
    ck_assert_int_eq(errno, EAGAIN);
    close(fd);
    keeper_wait(keeper);
    ck_assert_int_eq(waitpid(keeper, NULL, 0), keeper);
}
END_TEST

START_TEST(privileges_that_cannot_be_given_up)
{
    struct pollfd end;
    pid_t keeper;
    int fd = log_command_start("cat > /dev/null", enter, NULL, &keeper);

    ck_assert_int_ge(fd, 0);
    end = (struct pollfd){.fd = fd};
    ck_assert_int_eq(poll(&end, 1, -1), 1); /* no process has the other end */
    ck_assert_int_ne(end.revents & POLLERR, 0);
    close(fd);
    keeper_wait(keeper);
}
END_TEST

static Suite *
unit_suite(void)
{
    Suite *suite = suite_create("server/logs/log_command");
    TCase *tc = tcase_create("commands");

    tcase_set_timeout(tc, 300);
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, it_reads_to_the_end);
    tcase_add_test(tc, a_line_that_was_read_in_part_is_read_again);
    tcase_add_loop_test(tc, no_line_is_lost_by_a_new_start, 0, 2);
    tcase_add_test(tc, a_command_that_cannot_be_run);
    tcase_add_test(tc, a_command_that_does_not_read);
    tcase_add_test(tc, privileges_that_cannot_be_given_up);
    suite_add_tcase(suite, tc);
    return suite;
}
