/* Waits for most of its time, so tests/run.sh runs it beside others. */
#include "server/logs/access_log.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "tests/unit/unit.h"

static char folder[64], path[128], moved[128];
static struct net_peer peer;
static struct access_format format; /* of the log that was opened last */

static void
setup(void)
{
    struct sockaddr_in *address = (struct sockaddr_in *)&peer.address;

    snprintf(folder, sizeof(folder), "/tmp/sunproxy-test-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/access.log", folder);
    snprintf(moved, sizeof(moved), "%s/access.log.1", folder);
    address->sin_family = AF_INET;
    inet_pton(AF_INET, "192.0.2.7", &address->sin_addr);
    log_setup(LOG_LEVEL_ERROR, LOG_FORMAT_PLAIN);
    signal(SIGPIPE, SIG_IGN); /* as the daemon does */
}

static void
teardown(void)
{
    unlink(path);
    unlink(moved);
    rmdir(folder);
}

static struct access_log *
open_log(const char *name, enum log_format words)
{
    int fd = access_log_open_file(name);

    format.words = words;
    return fd < 0 ? NULL : access_log_start(fd, name);
}

static struct buf
read_file(const char *name)
{
    FILE *file = fopen(name, "r");
    struct buf text;
    char piece[4096];
    size_t n;

    ck_assert_ptr_nonnull(file);
    buf_init(&text, 64u << 20);
    while ((n = fread(piece, 1, sizeof(piece), file)) > 0)
        buf_append(&text, piece, n);
    fclose(file);
    return text;
}

static size_t
count(const char *text, char c)
{
    size_t found = 0;

    for (; *text; text++)
        found += *text == c;
    return found;
}

static size_t
count_lines(const char *text)
{
    return count(text, '\n');
}

static void
add(struct access_log *log, const char *url)
{
    access_log_add(log, &(struct access_entry){.peer = &peer,
                                               .url = span_str(url),
                                               .outcome = "hit",
                                               .status = 200,
                                               .bytes = 1024,
                                               .us = 42}, &format);
}

START_TEST(a_plain_line_has_nine_fields)
{
    struct access_log *log = open_log(path, LOG_FORMAT_PLAIN);
    struct buf text;
    struct stat st;

    ck_assert_ptr_nonnull(log);
    add(log, "http://example.com/a b\t\\\n");
    access_log_close(log);
    text = read_file(path);
    ck_assert_ptr_nonnull(
        strstr(buf_str(&text),
               "Z\t192.0.2.7\thttp://example.com/a\\x20b\\x09\\x5c\\x0a\thit\t200\t1024\t42\t-\t-\n"));
    ck_assert_uint_eq(count_lines(buf_str(&text)), 1);
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_uint_eq(st.st_mode & 07777, 0640);
    buf_free(&text);
}
END_TEST

START_TEST(victims_stand_at_the_end)
{
    struct access_log *log = open_log(path, LOG_FORMAT_PLAIN);
    struct object *pages[2];
    struct cache_victims victims = {.pages = pages, .count = 2};
    struct buf text;

    for (int i = 0; i < 2; i++) {
        pages[i] = object_make(
            &(struct object_parts){.url = span_str(i ? "http://b/" : "http://a/"), .status = 200});
        ck_assert_ptr_nonnull(pages[i]);
    }
    access_log_add(log, &(struct access_entry){.peer = &peer,
                                               .url = span_str("http://c/"),
                                               .outcome = "miss",
                                               .reason = "no-store",
                                               .victims = &victims}, &format);
    access_log_close(log);
    text = read_file(path);
    ck_assert_ptr_nonnull(
        strstr(buf_str(&text), "\thttp://c/\tmiss\t-\t0\t0\thttp://a/ http://b/\tno-store\n"));
    buf_free(&text);
    for (int i = 0; i < 2; i++)
        object_release(&pages[i]);
}
END_TEST

/* Of a request for which more pages are evicted than a line lists. `_i`: the format. */
START_TEST(many_victims_do_not_keep_a_line_out)
{
    static const char *const formats[] = {"plain", "json", "%{victims}x;%{url}x;%{reason}x"};
    static const char *const ends[] = {"/ +2964\tno-store\n", "/\"],\"more_victims\":2964}\n",
                                       "/ +2964;http://c/;no-store\n"};
    static struct object *pages[3000]; /* 36 of 449 bytes are listed */
    const struct cache_victims victims = {.pages = pages, .count = 3000};
    struct access_log *log = access_log_start(access_log_open_file(path), path);
    struct access_format own;
    char url[512];
    struct buf text;

    buf_init(&text, 1024);
    ck_assert(access_format_init(&own, formats[_i], &text));
    memset(url, 'x', sizeof(url));
    memcpy(url, "http://a/", 9);
    url[447] = '/';
    for (int i = 0; i < 3000; i++)
        pages[i] = object_make(&(struct object_parts){.url = span_of(url, 448), .status = 200});
    for (int i = 0; i < 2; i++)
        access_log_add(log, &(struct access_entry){.peer = &peer,
                                                   .url = span_str("http://c/"),
                                                   .outcome = "miss",
                                                   .reason = "no-store",
                                                   .victims = &victims}, &own);
    ck_assert_uint_eq(access_log_lost(log), 0);
    access_log_close(log);
    text = read_file(path);
    ck_assert_uint_eq(count_lines(buf_str(&text)), 2);
    ck_assert_ptr_nonnull(strstr(buf_str(&text), ends[_i]));
    buf_free(&text);
    access_format_free(&own);
    for (int i = 0; i < 3000; i++)
        object_release(&pages[i]);
}
END_TEST

START_TEST(json_lines)
{
    struct access_log *log = open_log(path, LOG_FORMAT_JSON);
    struct buf text;

    add(log, "http://example.com/\"");
    access_log_close(log);
    text = read_file(path);
    ck_assert_ptr_nonnull(strstr(buf_str(&text),
                                 "\"client\":\"192.0.2.7\",\"url\":\"http://example.com/\\\"\","
                                 "\"outcome\":\"hit\",\"reason\":null,\"status\":200,\"bytes\":1024,\"us\":42,"
                                 "\"victims\":[]}\n"));
    buf_free(&text);
}
END_TEST

/* What a client sends neither ends a quoted text nor the line. */
START_TEST(combined_lines)
{
    const struct access_http requests[] = {
        {.method = span_str("GET"),
         .target = span_str("http://a/\"\\"),
         .minor = 1,
         .referer = span_str("a\nb\" 200 1"),
         .agent = span_str("x \x1b\x80")},
        {.target = span_str("/")},
    };
    struct access_log *log = open_log(path, LOG_FORMAT_PLAIN);
    struct buf text;

    for (size_t i = 0; i < 2; i++)
        access_log_add(log, &(struct access_entry){.peer = &peer,
                                                   .user = span_str(i ? "a b" : ""),
                                                   .outcome = "hit",
                                                   .reason = i ? "" : "no-store",
                                                   .status = 200,
                                                   .bytes = 1024,
                                                   .http = &requests[i]}, &format);
    access_log_close(log);
    text = read_file(path);
    ck_assert_int_eq(strncmp(buf_str(&text), "192.0.2.7 - - [", 15), 0);
    ck_assert_ptr_nonnull(strstr(buf_str(&text),
                                 " +0000] \"GET http://a/\\x22\\x5c HTTP/1.1\" 200 1024 "
                                 "\"a\\x0ab\\x22 200 1\" \"x \\x1b\\x80\" no-store\n"));
    ck_assert_ptr_nonnull(strstr(buf_str(&text), "192.0.2.7 - a\\x20b ["));
    ck_assert_ptr_nonnull(strstr(buf_str(&text), " +0000] \"-\" 200 1024 \"-\" \"-\" -\n"));
    ck_assert_uint_eq(count_lines(buf_str(&text)), 2);
    buf_free(&text);
}
END_TEST

/* Waits, within bounds, until the file of that name is there. */
static void
await_file(const char *name)
{
    for (int i = 0; i < 500 && access(name, F_OK) != 0; i++)
        usleep(10000);
    ck_assert_int_eq(access(name, F_OK), 0);
}

START_TEST(clients_over_ipv6)
{
    static const struct {
        const char *address, *written;
    } cases[] = {
        {"::ffff:198.51.100.4", "\t198.51.100.4\t"}, /* IPv4 by way of a socket for both */
        {"2001:db8::7", "\t2001:db8::7\t"},
        {"::ffff", "\t::ffff\t"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct access_log *log = open_log(path, LOG_FORMAT_PLAIN);
        struct sockaddr_in6 *address = (struct sockaddr_in6 *)&peer.address;
        struct buf text;

        *address = (struct sockaddr_in6){.sin6_family = AF_INET6};
        ck_assert_int_eq(inet_pton(AF_INET6, cases[i].address, &address->sin6_addr), 1);
        add(log, "http://x/");
        access_log_close(log);
        text = read_file(path);
        ck_assert_msg(strstr(buf_str(&text), cases[i].written), "%s", buf_str(&text));
        buf_free(&text);
    }
}
END_TEST

START_TEST(clients_on_this_machine)
{
    struct access_log *log = open_log(path, LOG_FORMAT_PLAIN);
    struct buf text;

    peer = (struct net_peer){.has_uid = true, .uid = 4000};
    add(log, "http://x/");
    peer = (struct net_peer){.has_uid = false};
    add(log, "http://y/");
    access_log_close(log);
    text = read_file(path);
    ck_assert_msg(strstr(buf_str(&text), "\tunix:4000\t"), "%s", buf_str(&text));
    ck_assert_msg(strstr(buf_str(&text), "\t-\t"), "%s", buf_str(&text));
    buf_free(&text);
}
END_TEST

START_TEST(reopening_begins_a_new_file)
{
    struct access_log *log = open_log(path, LOG_FORMAT_PLAIN);
    struct buf before, after;

    add(log, "http://before/");
    ck_assert_int_eq(rename(path, moved), 0);
    access_log_reopen(log);
    ck_assert_msg(access(path, F_OK) == 0, "done when it returns");
    add(log, "http://after/");
    access_log_close(log);
    before = read_file(moved);
    after = read_file(path);
    ck_assert_ptr_nonnull(strstr(buf_str(&before), "http://before/"));
    ck_assert_uint_eq(count_lines(buf_str(&before)), 1);
    ck_assert_ptr_nonnull(strstr(buf_str(&after), "http://after/"));
    ck_assert_uint_eq(count_lines(buf_str(&after)), 1);
    buf_free(&before);
    buf_free(&after);
}
END_TEST

START_TEST(a_full_disk_loses_lines_and_counts_them)
{
    struct access_log *log = open_log("/dev/full", LOG_FORMAT_PLAIN);

    ck_assert_ptr_nonnull(log);
    for (int i = 0; i < 10; i++)
        add(log, "http://example.com/");
    for (int i = 0; i < 500 && access_log_lost(log) < 10; i++)
        usleep(10000);
    ck_assert_uint_eq(access_log_lost(log), 10);
    access_log_close(log);
}
END_TEST

/* What is written to standard error, in a file of its own. */
static int
divert_errors(void)
{
    int before = dup(STDERR_FILENO), fd = open(moved, O_RDWR | O_CREAT | O_TRUNC, 0600);

    ck_assert_int_ge(before, 0);
    ck_assert_int_ge(fd, 0);
    dup2(fd, STDERR_FILENO);
    close(fd);
    return before;
}

/* The limit of a file's size stands for a disk that is full, and has space again. */
START_TEST(lines_stay_whole_where_a_disk_was_full)
{
    struct access_log *log = open_log(path, LOG_FORMAT_PLAIN);
    struct rlimit before, limit;
    unsigned lines = 0;
    struct buf text;

    signal(SIGXFSZ, SIG_IGN);
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &before), 0);
    limit = before;
    limit.rlim_cur = 4096 + 7;
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    for (unsigned i = 0; i < 200; i++)
        add(log, "http://a.test/before");
    while (access_log_lost(log) == 0)
        usleep(1000);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &before), 0);
    add(log, "http://a.test/after");
    access_log_close(log);
    text = read_file(path);
    ck_assert_uint_gt(text.len, 4096 + 7);
    ck_assert_int_eq(text.data[text.len - 1], '\n');
    for (char *line = strtok(text.data, "\n"); line; line = strtok(NULL, "\n"), lines++)
        ck_assert_msg(count(line, '\t') == 8, "%s", line);
    ck_assert_uint_gt(lines, 10);
    ck_assert_uint_lt(lines, 201);
    buf_free(&text);
}
END_TEST

/* The file as it is, also when the log ends, in whole lines of nine fields. */
static void
expect_whole_lines(size_t least)
{
    struct buf text = read_file(path);
    unsigned lines = 0;

    ck_assert_uint_gt(text.len, 0);
    ck_assert_int_eq(text.data[text.len - 1], '\n');
    for (char *line = strtok(text.data, "\n"); line; line = strtok(NULL, "\n"), lines++)
        ck_assert_msg(count(line, '\t') == 8, "%s", line);
    ck_assert_uint_ge(lines, least);
    buf_free(&text);
}

START_TEST(no_part_of_a_line_stays_on_a_full_disk)
{
    struct access_log *log = open_log(path, LOG_FORMAT_PLAIN);
    struct rlimit before, limit;

    signal(SIGXFSZ, SIG_IGN);
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &before), 0);
    limit = before;
    limit.rlim_cur = 4096 + 7;
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    for (unsigned i = 0; i < 200; i++)
        add(log, "http://a.test/before");
    while (access_log_lost(log) == 0)
        usleep(1000);
    expect_whole_lines(40);
    add(log, "http://a.test/after");
    access_log_close(log);
    expect_whole_lines(40);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &before), 0);
}
END_TEST

START_TEST(a_line_that_a_crash_has_torn_is_ended)
{
    FILE *file = fopen(path, "w");
    struct access_log *log;
    struct buf text;

    ck_assert_ptr_nonnull(file);
    fputs("torn", file);
    fclose(file);
    for (int i = 0; i < 2; i++) {
        log = open_log(path, LOG_FORMAT_PLAIN);
        add(log, "http://a.test/");
        access_log_close(log);
    }
    text = read_file(path);
    ck_assert_int_eq(strncmp(buf_str(&text), "torn\n2", 6), 0);
    ck_assert_uint_eq(count_lines(buf_str(&text)), 3);
    buf_free(&text);
}
END_TEST

START_TEST(a_reader_that_does_not_read_costs_lines_which_is_reported)
{
    struct access_log *log;
    uint64_t lost = 0, lines = 0;
    struct buf text, errors;
    char piece[65536], message[64];
    int reader, before;

    ck_assert_int_eq(mkfifo(path, 0600), 0);
    reader = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    ck_assert_int_ge(reader, 0);
    before = divert_errors();
    log_setup(LOG_LEVEL_WARNING, LOG_FORMAT_PLAIN);
    log = open_log(path, LOG_FORMAT_PLAIN);
    ck_assert_ptr_nonnull(log);
    for (; lost < 10 && lines < 1000000; lines++) {
        add(log, "http://example.com/a-url-of-some-length-so-that-it-takes-fewer-of-them");
        lost = access_log_lost(log);
    }
    ck_assert_uint_eq(lost, 10);
    snprintf(message, sizeof(message), "; %d lines lost so far", (int)lost);
    buf_init(&text, 64u << 20);
    for (int i = 0; i < 1000 && count_lines(buf_str(&text)) < lines - lost; i++) {
        ssize_t n;

        while ((n = read(reader, piece, sizeof(piece))) > 0)
            buf_append(&text, piece, (size_t)n);
        usleep(10000);
    }
    ck_assert_uint_eq(count_lines(buf_str(&text)), lines - lost);
    access_log_close(log);
    dup2(before, STDERR_FILENO);
    close(before);
    close(reader);
    errors = read_file(moved);
    ck_assert_msg(strstr(buf_str(&errors), message), "%s", buf_str(&errors));
    buf_free(&errors);
    buf_free(&text);
}
END_TEST

START_TEST(a_line_that_is_too_long_is_reported)
{
    static char url[2 << 20];
    struct access_log *log = open_log(path, LOG_FORMAT_PLAIN);
    int before = divert_errors();
    struct buf errors;

    memset(url, 'x', sizeof(url) - 1);
    log_setup(LOG_LEVEL_WARNING, LOG_FORMAT_PLAIN);
    add(log, url);
    ck_assert_uint_eq(access_log_lost(log), 1);
    access_log_close(log);
    dup2(before, STDERR_FILENO);
    close(before);
    errors = read_file(moved);
    ck_assert_ptr_nonnull(strstr(buf_str(&errors), ": a line is longer than 1 MiB, or there is no "
                                                   "memory for it; 1 lines lost so far"));
    ck_assert_ptr_null(strstr(buf_str(&errors), "faster"));
    buf_free(&errors);
}
END_TEST

START_TEST(lines_wait_for_the_reader_of_a_fifo)
{
    struct access_log *log;
    char piece[4096];
    struct buf text;
    int reader;

    ck_assert_int_eq(mkfifo(path, 0600), 0);
    log = open_log(path, LOG_FORMAT_PLAIN);
    ck_assert_ptr_nonnull(log);
    for (int i = 0; i < 10; i++)
        add(log, "http://example.com/early");
    usleep(500000); /* in which the thread finds that there is no reader */
    reader = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    ck_assert_int_ge(reader, 0);
    buf_init(&text, 1u << 20);
    for (int i = 0; i < 1000 && count_lines(buf_str(&text)) < 10; i++) {
        ssize_t n = read(reader, piece, sizeof(piece));

        if (n > 0)
            buf_append(&text, piece, (size_t)n);
        usleep(10000);
    }
    ck_assert_uint_eq(count_lines(buf_str(&text)), 10);
    ck_assert_uint_eq(access_log_lost(log), 0);
    access_log_close(log);
    close(reader);
    buf_free(&text);
}
END_TEST

START_TEST(closing_does_not_wait_for_a_reader)
{
    int reader = -1;

    ck_assert_int_eq(mkfifo(path, 0600), 0);
    for (int has_reader = 0; has_reader < 2; has_reader++) {
        struct access_log *log;

        if (has_reader) /* one that never reads */
            reader = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
        log = open_log(path, LOG_FORMAT_PLAIN);
        ck_assert_ptr_nonnull(log);
        for (int i = 0; i < 20000; i++)
            add(log, "http://example.com/more-than-a-pipe-takes");
        access_log_close(log); /* would hang; the time-out of the case ends it */
    }
    close(reader);
}
END_TEST

START_TEST(another_file_is_opened_while_a_pipe_is_full)
{
    struct access_log *log;
    int reader;
    struct buf text;

    ck_assert_int_eq(mkfifo(path, 0600), 0);
    reader = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    log = open_log(path, LOG_FORMAT_PLAIN);
    for (int i = 0; i < 20000; i++)
        add(log, "http://example.com/more-than-a-pipe-takes");
    ck_assert_int_eq(rename(path, moved), 0);
    usleep(300000); /* in which the thread fills the pipe */
    access_log_reopen(log);
    await_file(path);
    add(log, "http://after/");
    ck_assert_uint_gt(access_log_lost(log), 0);
    access_log_close(log);
    text = read_file(path);
    ck_assert_ptr_nonnull(strstr(buf_str(&text), "http://after/"));
    buf_free(&text);
    close(reader);
}
END_TEST

/* Lines wait for it as before. `_i`: what stands for the pipe. */
START_TEST(nothing_is_given_up_for_what_is_not_opened_anew)
{
    static const char *const names[] = {"|cat", "-", "syslog:"};
    enum { LINES = 5000 };
    struct access_log *log;
    char bytes[4096];
    unsigned lines = 0;
    ssize_t n;
    int ends[2];

    ck_assert_int_eq(_i == 2 ? socketpair(AF_UNIX, SOCK_DGRAM, 0, ends) : pipe(ends), 0);
    ck_assert_int_eq(fcntl(ends[1], F_SETFL, O_NONBLOCK), 0);
    format.words = LOG_FORMAT_PLAIN;
    log = access_log_start(ends[1], names[_i]);
    for (int i = 0; i < LINES; i++)
        add(log, "http://example.com/more-than-a-pipe-takes");
    usleep(300000); /* in which the thread fills the pipe */
    access_log_reopen(log);
    ck_assert_uint_eq(access_log_lost(log), 0);
    while (lines < LINES && (n = read(ends[0], bytes, sizeof(bytes))) > 0)
        for (ssize_t i = 0; i < n; i++)
            lines += _i == 2 ? i == 0 : bytes[i] == '\n';
    ck_assert_uint_eq(lines, LINES);
    ck_assert_uint_eq(access_log_lost(log), 0);
    access_log_close(log);
    close(ends[0]);
}
END_TEST

START_TEST(a_file_that_cannot_be_made)
{
    ck_assert_ptr_null(open_log("/nonexistent/access.log", LOG_FORMAT_PLAIN));
}
END_TEST

static void *
add_many(void *log)
{
    for (int i = 0; i < 5000; i++)
        add(log, "http://example.com/many");
    return NULL;
}

START_TEST(lines_of_many_threads_stay_whole)
{
    struct access_log *log = open_log(path, LOG_FORMAT_PLAIN);
    pthread_t threads[4];
    struct buf text;
    uint64_t lost;

    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, add_many, log);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    lost = access_log_lost(log);
    access_log_close(log);
    text = read_file(path);
    ck_assert_uint_eq(count_lines(buf_str(&text)) + lost, 20000);
    for (char *line = text.data, *end; line && (end = strchr(line, '\n')); line = end + 1) {
        *end = '\0';
        ck_assert_msg(strstr(line, "\thttp://example.com/many\thit\t200\t1024\t42\t-"), "%s", line);
    }
    buf_free(&text);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("server/access_log");
    TCase *tc = tcase_create("access_log");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, a_plain_line_has_nine_fields);
    tcase_add_test(tc, victims_stand_at_the_end);
    tcase_add_loop_test(tc, many_victims_do_not_keep_a_line_out, 0, 3);
    tcase_add_test(tc, json_lines);
    tcase_add_test(tc, combined_lines);
    tcase_add_test(tc, clients_over_ipv6);
    tcase_add_test(tc, clients_on_this_machine);
    tcase_add_test(tc, reopening_begins_a_new_file);
    tcase_add_test(tc, a_full_disk_loses_lines_and_counts_them);
    tcase_add_test(tc, lines_stay_whole_where_a_disk_was_full);
    tcase_add_test(tc, no_part_of_a_line_stays_on_a_full_disk);
    tcase_add_test(tc, a_line_that_a_crash_has_torn_is_ended);
    tcase_add_test(tc, a_reader_that_does_not_read_costs_lines_which_is_reported);
    tcase_add_test(tc, a_line_that_is_too_long_is_reported);
    tcase_add_test(tc, lines_wait_for_the_reader_of_a_fifo);
    tcase_add_test(tc, closing_does_not_wait_for_a_reader);
    tcase_add_test(tc, another_file_is_opened_while_a_pipe_is_full);
    tcase_add_loop_test(tc, nothing_is_given_up_for_what_is_not_opened_anew, 0, 3);
    tcase_add_test(tc, a_file_that_cannot_be_made);
    tcase_add_test(tc, lines_of_many_threads_stay_whole);
    suite_add_tcase(suite, tc);
    return suite;
}
