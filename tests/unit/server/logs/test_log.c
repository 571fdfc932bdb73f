#define UNIT_STARTS_NO_THREAD

#include "server/logs/log.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/buf.h"
#include "tests/unit/unit.h"

static int before, pipe_ends[2];

/* Standard error is a pipe that the test reads when it wants to. */
static void
setup(void)
{
    before = dup(STDERR_FILENO);
    ck_assert_int_ge(before, 0);
    ck_assert_int_eq(pipe(pipe_ends), 0);
    dup2(pipe_ends[1], STDERR_FILENO);
}

static void
teardown(void)
{
    dup2(before, STDERR_FILENO);
    close(before);
    close(pipe_ends[0]);
    close(pipe_ends[1]);
    log_setup(LOG_LEVEL_ERROR, LOG_FORMAT_PLAIN);
}

/* Everything that is in the pipe. */
static struct buf
read_pipe(void)
{
    struct buf text;
    char piece[65536];
    ssize_t n;

    buf_init(&text, 4u << 20);
    fcntl(pipe_ends[0], F_SETFL, O_NONBLOCK);
    while ((n = read(pipe_ends[0], piece, sizeof(piece))) > 0)
        buf_append(&text, piece, (size_t)n);
    return text;
}

START_TEST(a_pipe_that_is_not_read_loses_lines_and_says_how_many)
{
    unsigned written = 0, found = 0;
    struct buf text;
    char *line;

    log_setup(LOG_LEVEL_INFO, LOG_FORMAT_PLAIN);
    /* More than a pipe holds; a blocking write would never return. */
    for (; written < 20000; written++)
        log_info("line %u", written);
    text = read_pipe();
    for (line = strtok(text.data, "\n"); line; line = strtok(NULL, "\n"), found++) {
        char end[32];

        snprintf(end, sizeof(end), "sunproxyd: line %u", found);
        if (found < 10)
            ck_assert_msg(strstr(line, end), "%s", line);
    }
    ck_assert_uint_gt(found, 100);
    ck_assert_uint_lt(found, written);
    buf_free(&text);

    log_info("after it");
    text = read_pipe();
    line = strstr(buf_str(&text), "warning: ");
    ck_assert_msg(line && strstr(line, " lines of this log are lost"), "%s", buf_str(&text));
    ck_assert_uint_eq(strtoul(line + strlen("warning: "), NULL, 10), written - found);
    ck_assert_ptr_nonnull(strstr(buf_str(&text), "sunproxyd: after it\n"));
    buf_free(&text);

    log_info("later");
    text = read_pipe();
    ck_assert_ptr_null(strstr(buf_str(&text), "lost"));
    buf_free(&text);
}
END_TEST

/* A line that is longer than PIPE_BUF is written in two pieces, of which a pipe that holds an even
 * number of pages takes one after a shorter line. */
START_TEST(a_line_that_was_cut_gets_its_rest)
{
    char words[6001] = {0};
    struct buf text, more;
    unsigned found = 0;
    char *lost;

    memset(words, 'w', sizeof(words) - 1);
    log_setup(LOG_LEVEL_INFO, LOG_FORMAT_PLAIN);
    log_info("short");
    for (unsigned i = 0; i < 100; i++)
        log_info("%s", words);
    text = read_pipe();
    ck_assert_int_ne(text.data[text.len - 1], '\n');
    log_info("after it");
    more = read_pipe();
    buf_append(&text, more.data, more.len);
    lost = strstr(buf_str(&text), "warning: ");
    ck_assert_ptr_nonnull(lost);
    lost[0] = 0;
    ck_assert_ptr_nonnull(strstr(strtok(text.data, "\n"), "short"));
    while (strstr(strtok(NULL, "\n"), words))
        found++;
    ck_assert_uint_gt(found, 1);
    ck_assert_uint_eq(strtoul(lost + strlen("warning: "), NULL, 10), 100 - found);
    buf_free(&text);
    buf_free(&more);
}
END_TEST

START_TEST(a_long_line_is_written_whole)
{
    char *words = malloc(8001);
    struct buf text;

    memset(words, 'w', 8000);
    words[8000] = '\0';
    log_setup(LOG_LEVEL_WARNING, LOG_FORMAT_JSON);
    log_info("not wanted");
    log_warning("%s", words);
    text = read_pipe();
    ck_assert_ptr_nonnull(strstr(buf_str(&text), words));
    ck_assert_ptr_null(strstr(buf_str(&text), "not wanted"));
    ck_assert_int_eq(text.data[text.len - 1], '\n');
    buf_free(&text);
    free(words);
}
END_TEST

/* The limit of a file's size stands for a disk that is full, and has space again. */
START_TEST(no_part_of_a_line_stays_on_a_full_disk)
{
    char path[] = "/tmp/sunproxy-test-XXXXXX", text[16384];
    int fd = mkostemp(path, O_CLOEXEC), stderr_before = dup(STDERR_FILENO);
    struct rlimit usual, limit;
    ssize_t len;

    ck_assert_int_ge(fd, 0);
    unlink(path);
    signal(SIGXFSZ, SIG_IGN);
    log_setup(LOG_LEVEL_INFO, LOG_FORMAT_PLAIN);
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &usual), 0);
    limit = usual;
    limit.rlim_cur = 4096 + 7;
    dup2(fd, STDERR_FILENO); /* not for appending */
    setrlimit(RLIMIT_FSIZE, &limit);
    for (unsigned i = 0; i < 200; i++)
        log_info("a line of the log that is not short");
    len = pread(fd, text, sizeof(text), 0);
    setrlimit(RLIMIT_FSIZE, &usual);
    log_info("the last line");
    dup2(stderr_before, STDERR_FILENO);
    close(stderr_before);
    ck_assert_int_gt(len, 4000);
    ck_assert_int_eq(text[len - 1], '\n');
    len = pread(fd, text, sizeof(text) - 1, 0);
    text[len] = '\0';
    ck_assert_ptr_nonnull(strstr(text, " lines of this log are lost: they could not be written\n"));
    ck_assert_ptr_nonnull(strstr(text, "the last line\n"));
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
        ck_assert_msg(strstr(line, "Z sunproxyd: ") != NULL, "%s", line);
    close(fd);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("server/log");
    TCase *tc = tcase_create("log");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, a_pipe_that_is_not_read_loses_lines_and_says_how_many);
    tcase_add_test(tc, a_line_that_was_cut_gets_its_rest);
    tcase_add_test(tc, a_long_line_is_written_whole);
    tcase_add_test(tc, no_part_of_a_line_stays_on_a_full_disk);
    suite_add_tcase(suite, tc);
    return suite;
}
