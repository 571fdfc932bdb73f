/* The process that reads the configuration again. */
#define UNIT_STARTS_NO_THREAD

#include "server/config/opener.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <time.h>
#include <unistd.h>

#include "server/logs/log.h"
#include "tests/unit/unit.h"

static char path[] = "/tmp/sunproxy-opener-XXXXXX";
static struct options options;
static struct opener opener;
static struct buf text, authorities, why;
static char gate[sizeof(path) + 8]; /* a FIFO: sockets are opened when a process writes to it */

static void
write_file(const char *content)
{
    FILE *file = fopen(path, "w");

    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs(content, file), 0);
    ck_assert_int_eq(fclose(file), 0);
}

/* What the parts of the daemon check. */
static int
check(const struct options *read)
{
    if (read->workers != 13)
        return EX_OK;
    log_error("thirteen workers");
    log_error("no such number");
    return EX_CONFIG;
}

/* What the daemon has is all; or what the file names, with 7 workers when the gate is open. */
static bool
open_some(const struct options *read, struct taken_sockets *taken, struct listening *listening,
          struct buf *sentence)
{
    if (read->workers == 7)
        close(open(gate, O_RDONLY | O_CLOEXEC));
    if (read->workers >= 7)
        return listen_open(listening, read, taken, sentence) == LISTEN_OK;
    if (read->workers == 5)
        buf_printf(sentence, "%u sockets are enough", taken->count);
    return read->workers != 5;
}

static bool
read_now(void)
{
    buf_reset(&text);
    buf_reset(&why);
    return opener_read(&opener, &text, &authorities, &why);
}

static void
set_up(void)
{
    static char program[] = "/nonexistent/sunproxyd", age[] = "--max-age=7s", config[] = "--config";
    static char *argv[] = {program, age, config, path};

    strcpy(strrchr(path, '-'), "-XXXXXX");
    close(mkstemp(path));
    write_file("workers = 3\n");
    snprintf(gate, sizeof(gate), "%s.gate", path);
    buf_init(&text, 1 << 20);
    buf_init(&authorities, 1 << 20);
    buf_init(&why, 1 << 20);
    ck_assert(options_init(&options));
    ck_assert_int_eq(options_parse(&options, 4, argv, &why), EX_OK);
    ck_assert(opener_start(&opener, &options, check, open_some));
}

static void
tear_down(void)
{
    opener_stop(&opener);
    ck_assert_int_eq(kill(opener.pid, 0), -1);
    options_free(&options);
    buf_free(&text);
    buf_free(&authorities);
    buf_free(&why);
    unlink(path);
}

START_TEST(it_reads_the_file_as_it_is_now)
{
    ck_assert_msg(read_now(), "%s", buf_str(&why));
    ck_assert_ptr_nonnull(strstr(buf_str(&text), "\nworkers = 3\n"));
    ck_assert_ptr_nonnull(strstr(buf_str(&text), "\nmax-age = 7s\n"));
    write_file("workers = 4\nmax-age = 9s\n");
    ck_assert_msg(read_now(), "%s", buf_str(&why));
    ck_assert_ptr_nonnull(strstr(buf_str(&text), "\nworkers = 4\n"));
    ck_assert_ptr_nonnull(strstr(buf_str(&text), "\nmax-age = 7s\n"));
}
END_TEST

START_TEST(it_opens_what_the_file_names)
{
    static struct taken_sockets offer, opened;
    const struct sockaddr_in loopback = {.sin_family = AF_INET,
                                         .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    ck_assert_int_eq(bind(fd, (const struct sockaddr *)&loopback, sizeof(loopback)), 0);
    ck_assert_int_eq(listen(fd, 1), 0);
    offer.count = 1;
    offer.items[0].role = LISTEN_HTTP;
    offer.items[0].socket = LOCAL_SOCKET_NONE;
    offer.items[0].socket.fd = fd;
    ck_assert_msg(!opener_open_sockets(&opener, &offer, &opened, &why), "nothing was read yet");
    ck_assert_msg(read_now(), "%s", buf_str(&why));
    ck_assert_msg(opener_open_sockets(&opener, &offer, &opened, &why), "%s", buf_str(&why));
    ck_assert_uint_eq(opened.count, 0);
    write_file("workers = 5\n");
    ck_assert(read_now());
    ck_assert(!opener_open_sockets(&opener, &offer, &opened, &why));
    ck_assert_str_eq(buf_str(&why), "1 sockets are enough");
    close(fd);
    ck_assert_msg(read_now(), "%s", buf_str(&why));
}
END_TEST

/* With SIGTERM pending no answer is waited for. */
static void
pend(bool on)
{
    sigset_t term;

    sigemptyset(&term);
    sigaddset(&term, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &term, NULL);
    if (on)
        kill(getpid(), SIGTERM);
    else
        ck_assert_int_eq(sigtimedwait(&term, NULL, &(struct timespec){0}), SIGTERM);
}

static void
count_calls(void *calls)
{
    (*(unsigned *)calls)++;
}

/* `_i`: what is wished next. */
START_TEST(sockets_that_come_late_are_dropped)
{
    static const char file[] = "listen = none\nsocket = none\nhttp = 127.0.0.1:0\n";
    static struct taken_sockets offer, opened;
    char lines[256];
    unsigned calls = 0;
    int connection;
    pid_t writer;

    ck_assert_int_eq(mkfifo(gate, 0600), 0);
    snprintf(lines, sizeof(lines), "%sworkers = 7\n", file);
    write_file(lines);
    ck_assert_msg(read_now(), "%s", buf_str(&why));
    pend(true);
    ck_assert(!opener_open_sockets(&opener, &offer, &opened, &why));
    ck_assert_str_eq(buf_str(&why), "the sockets could not be opened within 30 s");
    /* While the answer lacks, nothing else is sent: that could fill the socket. */
    for (int i = 0; i < 2000; i++)
        ck_assert(!read_now());
    pend(false);
    writer = fork();
    if (writer == 0) {
        close(opener.fd);
        alarm(60);
        usleep(300000);
        close(open(gate, O_WRONLY));
        _exit(0);
    }
    opener.work = count_calls;
    opener.context = &calls;
    snprintf(lines, sizeof(lines), "%sworkers = 8\n", file);
    write_file(lines);
    if (_i) {
        connection = opener_launch(&opener, &why);
        ck_assert_int_ge(connection, 0);
        close(connection);
    }
    ck_assert_msg(read_now(), "%s", buf_str(&why));
    ck_assert_uint_gt(calls, 0);
    ck_assert_ptr_nonnull(strstr(buf_str(&text), "\nworkers = 8\n"));
    ck_assert_msg(opener_open_sockets(&opener, &offer, &opened, &why), "%s", buf_str(&why));
    ck_assert_uint_eq(opened.count, 1);
    taken_sockets_close(&opened);
    ck_assert_int_eq(waitpid(writer, NULL, 0), writer);
    unlink(gate);
}
END_TEST

/* Of an answer to another wish, and of lengths without a bound. `_i`: the bytes of that. */
START_TEST(an_answer_that_makes_no_sense_is_not_waited_for)
{
    const struct {
        uint32_t number, flags;
        uint64_t len, files;
    } answer = {_i ? 1 : 7, 0, _i == 1 ? UINT64_MAX / 2 : 1, _i == 2 ? UINT64_MAX / 2 : 1};
    int ends[2];

    opener_stop(&opener);
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    opener = (struct opener){.fd = ends[0], .pid = fork()};
    if (opener.pid == 0) {
        close(ends[0]);
        while (read(ends[1], &(char){0}, 1) > 0)
            ;
        _exit(0);
    }
    ck_assert_int_eq(write(ends[1], &answer, sizeof(answer)), (ssize_t)sizeof(answer));
    close(ends[1]);
    for (int i = 0; i < 2; i++) {
        ck_assert(!read_now());
        ck_assert_str_eq(buf_str(&why), "the process that reads the configuration has ended; a "
                                        "restart of the daemon starts it again");
        ck_assert_int_eq(opener.fd, -1);
    }
}
END_TEST

START_TEST(it_says_all_that_is_wrong)
{
    char expected[256];

    write_file("workers = x\nmx-age = 1\n");
    ck_assert(!read_now());
    ck_assert_uint_eq(text.len, 0);
    snprintf(expected, sizeof(expected), "%s:1: workers: ", path);
    ck_assert_ptr_nonnull(strstr(buf_str(&why), expected));
    ck_assert_ptr_nonnull(strstr(buf_str(&why), "did you mean max-age?"));
    write_file("workers = 13\n");
    ck_assert(!read_now());
    ck_assert_str_eq(buf_str(&why), "thirteen workers\nno such number");
    unlink(path);
    ck_assert(!read_now());
    ck_assert_ptr_nonnull(strstr(buf_str(&why), "No such file"));
    write_file("workers = 3\n");
    ck_assert(read_now());
}
END_TEST

START_TEST(a_long_list_of_errors_is_cut)
{
    FILE *file = fopen(path, "w");

    for (unsigned i = 0; i < 10000; i++)
        fprintf(file, "junk %u\n", i);
    ck_assert_int_eq(fclose(file), 0);
    ck_assert(!read_now());
    ck_assert_uint_lt(why.len, 65536);
    ck_assert_ptr_nonnull(strstr(buf_str(&why), ":1: \"junk 0\""));
    ck_assert_ptr_nonnull(strstr(buf_str(&why), "\nand further errors"));
    write_file("workers = 3\n");
    ck_assert_msg(read_now(), "%s", buf_str(&why));
}
END_TEST

/* A file that is read for ever: the daemon ends all the same. */
START_TEST(a_file_that_hangs_does_not_keep_the_daemon_from_its_end)
{
    unlink(path);
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    pend(true);
    ck_assert(!read_now());
    ck_assert_ptr_nonnull(strstr(buf_str(&why), "could not be read"));
    /* What comes late is no answer to a later wish. */
    pend(false);
    write_file("workers = 5\n"); /* to the reader of the FIFO */
    unlink(path);
    write_file("workers = 6\n");
    ck_assert_msg(read_now(), "%s", buf_str(&why));
    ck_assert_ptr_nonnull(strstr(buf_str(&text), "\nworkers = 6\n"));
}
END_TEST

/* socketpair(2) then gives it the number of a standard descriptor. */
START_TEST(a_daemon_without_standard_input)
{
    int kept = dup(STDIN_FILENO);

    opener_stop(&opener);
    close(STDIN_FILENO);
    ck_assert(opener_start(&opener, &options, check, open_some));
    ck_assert_msg(read_now(), "%s", buf_str(&why));
    opener_stop(&opener);
    ck_assert_int_eq(kill(opener.pid, 0), -1);
    dup2(kept, STDIN_FILENO);
    close(kept);
}
END_TEST

/* Messages are captured while a file is checked, and no longer. */
START_TEST(a_program_that_cannot_be_started_is_logged_after_a_reload)
{
    int ends[2], kept = dup(STDERR_FILENO), connection;
    char logged[512] = "", c;

    opener_stop(&opener);
    ck_assert_int_eq(pipe(ends), 0);
    dup2(ends[1], STDERR_FILENO);
    ck_assert(opener_start(&opener, &options, check, open_some));
    dup2(kept, STDERR_FILENO);
    close(kept);
    close(ends[1]);
    write_file("workers = 13\n");
    ck_assert(!read_now());
    write_file("workers = 3\n");
    ck_assert_msg(read_now(), "%s", buf_str(&why));
    connection = opener_launch(&opener, &why);
    ck_assert_msg(connection >= 0, "%s", buf_str(&why));
    ck_assert_int_eq(fcntl(connection, F_SETFL, 0), 0);
    ck_assert_int_eq(read(connection, &c, 1), 0);
    close(connection);
    opener_stop(&opener);
    ck_assert_int_gt(read(ends[0], logged, sizeof(logged) - 1), 0);
    close(ends[0]);
    ck_assert_ptr_nonnull(strstr(logged, "cannot start /nonexistent/sunproxyd: No such file"));
}
END_TEST

START_TEST(its_end_is_noticed)
{
    ck_assert(read_now());
    ck_assert_int_eq(kill(opener.pid, SIGKILL), 0);
    ck_assert(!read_now());
    ck_assert_ptr_nonnull(strstr(buf_str(&why), "has ended"));
    ck_assert_int_eq(opener.fd, -1);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("server/opener");
    TCase *tests = tcase_create("opener");

    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, it_reads_the_file_as_it_is_now);
    tcase_add_test(tests, it_opens_what_the_file_names);
    tcase_add_loop_test(tests, sockets_that_come_late_are_dropped, 0, 2);
    tcase_add_loop_test(tests, an_answer_that_makes_no_sense_is_not_waited_for, 0, 3);
    tcase_add_test(tests, it_says_all_that_is_wrong);
    tcase_add_test(tests, a_long_list_of_errors_is_cut);
    tcase_add_test(tests, a_file_that_hangs_does_not_keep_the_daemon_from_its_end);
    tcase_add_test(tests, a_daemon_without_standard_input);
    tcase_add_test(tests, a_program_that_cannot_be_started_is_logged_after_a_reload);
    tcase_add_test(tests, its_end_is_noticed);
    suite_add_tcase(suite, tests);
    return suite;
}
