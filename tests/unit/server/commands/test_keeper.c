/* Keepers: what their process has, what commands get, and the pauses between runs. */
#define UNIT_STARTS_NO_THREAD

#include "server/commands/keeper.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/unit.h"

START_TEST(pauses_grow)
{
    static const int64_t ran_us[] = {0, 1, KEEPER_STEADY_US - 1, KEEPER_STEADY_US, 0};
    static const int expected_ms[] = {100, 200, 400, 100, 200};
    int pause_ms = 0;

    for (unsigned i = 0; i < 5; i++)
        ck_assert_int_eq(keeper_next_pause(&pause_ms, 100, ran_us[i]), expected_ms[i]);
    for (unsigned i = 0; i < 20; i++)
        ck_assert_int_le(keeper_next_pause(&pause_ms, 100, 0), KEEPER_LONGEST_PAUSE_MS);
    ck_assert_int_eq(keeper_next_pause(&pause_ms, 100, 0), KEEPER_LONGEST_PAUSE_MS);
}
END_TEST

static const char *
end_of(const char *command)
{
    static char text[KEEPER_END_TEXT];
    int status;
    pid_t child = keeper_run(command, STDIN_FILENO, -1);

    ck_assert_int_gt(child, 0);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    return keeper_describe_end(status, text);
}

START_TEST(ends_are_described)
{
    ck_assert_str_eq(end_of("exit 0"), "has ended with status 0");
    ck_assert_str_eq(end_of("exit 255"), "has ended with status 255");
    ck_assert_str_eq(end_of("exec /nonexistent 2> /dev/null"), "has ended with status 127");
    ck_assert_str_eq(end_of("kill -9 $$"), "was ended by signal 9");
}
END_TEST

/* Reads to the end. */
static const char *
read_all(int fd)
{
    static char text[4096];
    size_t len = 0;
    ssize_t n;

    while ((n = read(fd, text + len, sizeof(text) - 1 - len)) > 0)
        len += (size_t)n;
    text[len] = '\0';
    return text;
}

/* Which of some signals the command ignores or blocks, its session, and its input. */
START_TEST(a_command_has_signals_as_usual)
{
    unsigned long long blocked, ignored;
    const char *said;
    char own[32];
    int ends[2];
    pid_t child;

    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    child = keeper_run("read -r line; grep -e SigBlk -e SigIgn /proc/self/status; "
                       "test $(cut -d ' ' -f 6 /proc/$$/stat) = $$ && echo \"own $line\"",
                       ends[1], ends[1]);
    signal(SIGPIPE, SIG_DFL);
    signal(SIGHUP, SIG_DFL);
    close(ends[1]);
    ck_assert_int_eq(write(ends[0], "word\n", 5), 5);
    said = read_all(ends[0]);
    ck_assert_int_eq(sscanf(said, "SigBlk: %llx SigIgn: %llx %31[a-z ]", &blocked, &ignored, own), 3);
    ck_assert_uint_eq(blocked, 0);
    /* The test may have been started with others ignored. */
    ck_assert_uint_eq(ignored & (1ULL << (SIGPIPE - 1) | 1ULL << (SIGHUP - 1)), 0);
    ck_assert_str_eq(own, "own word");
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
    close(ends[0]);
}
END_TEST

static bool
enter(const void *context)
{
    return context != NULL;
}

/* Says what it was given, and which descriptors it has. */
static void
keep(const void *what, int fd)
{
    dprintf(fd, "%s", (const char *)what);
    for (int i = 0; i < 64; i++)
        if (fcntl(i, F_GETFD) >= 0)
            dprintf(fd, " %d", i);
}

START_TEST(a_keeper_has_one_descriptor_more)
{
    const struct keeper keeper = {"sunproxyd-test", enter, "go on", keep, "it has"};
    int ends[2], other = open("/dev/null", O_RDONLY);
    pid_t child;

    ck_assert_int_ge(other, 0);
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    child = keeper_start(&keeper, ends[1]);
    close(ends[1]);
    ck_assert_str_eq(read_all(ends[0]), "it has 0 1 2 3");
    keeper_wait(child);
    ck_assert_int_eq(waitpid(child, NULL, WNOHANG), -1);
    close(ends[0]);
    close(other);
}
END_TEST

START_TEST(a_keeper_that_must_not_go_on)
{
    const struct keeper keeper = {"sunproxyd-test", enter, NULL, keep, "it has"};
    int ends[2];
    pid_t child;

    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    child = keeper_start(&keeper, ends[1]);
    close(ends[1]);
    ck_assert_str_eq(read_all(ends[0]), "");
    keeper_wait(child);
    ck_assert_int_eq(waitpid(child, NULL, WNOHANG), -1);
    close(ends[0]);
}
END_TEST

static Suite *
unit_suite(void)
{
    Suite *suite = suite_create("keepers");
    TCase *tcase = tcase_create("keepers");

    tcase_add_test(tcase, pauses_grow);
    tcase_add_test(tcase, ends_are_described);
    tcase_add_test(tcase, a_command_has_signals_as_usual);
    tcase_add_test(tcase, a_keeper_has_one_descriptor_more);
    tcase_add_test(tcase, a_keeper_that_must_not_go_on);
    suite_add_tcase(suite, tcase);
    return suite;
}
