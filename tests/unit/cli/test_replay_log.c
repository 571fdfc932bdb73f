#define UNIT_STARTS_NO_THREAD

#include "cli/replay_log.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/unit.h"

static const struct span victims[] = {{"http://a b/", 11}, {"http://c/", 9}};

static struct replay_entry
entry(enum replay_outcome outcome)
{
    return (struct replay_entry){.run = 2,
                                 .number = 41,
                                 .url = span_str("http://x/?a b"),
                                 .outcome = outcome,
                                 .status = 200,
                                 .bytes = 1234,
                                 .us = 56};
}

static void
expect(enum replay_log_format format, bool with_run, const struct replay_entry *of,
       const char *wanted)
{
    struct buf line;

    buf_init(&line, 4096);
    replay_log_format(&line, format, with_run, of);
    ck_assert_str_eq(buf_str(&line), wanted);
    buf_free(&line);
}

START_TEST(lines_have_their_columns)
{
    struct replay_entry e = entry(REPLAY_MISS);

    expect(REPLAY_LOG_TSV, false, &e, "41\thttp://x/?a b\tmiss\t\t200\t1234\t56\n");
    expect(REPLAY_LOG_TSV, true, &e, "2\t41\thttp://x/?a b\tmiss\t\t200\t1234\t56\n");
    e.outcome = REPLAY_EVICTED;
    e.evicted = 2;
    e.victims = victims;
    e.victim_count = 2;
    expect(REPLAY_LOG_TSV, false, &e,
           "41\thttp://x/?a b\tevicted\thttp://a\\sb/ http://c/\t200\t1234\t56\n");
    expect(REPLAY_LOG_JSONL, true, &e,
           "{\"run\":2,\"number\":41,\"url\":\"http://x/?a b\",\"outcome\":\"evicted\","
           "\"victims\":[\"http://a b/\",\"http://c/\"],\"evicted\":2,\"status\":200,"
           "\"error\":null,\"bytes\":1234,\"us\":56}\n");
}
END_TEST

START_TEST(failures_name_their_error)
{
    struct replay_entry e = entry(REPLAY_FAILED);

    e.status = 0;
    e.bytes = 0;
    e.error = "timed_out";
    expect(REPLAY_LOG_TSV, false, &e, "41\thttp://x/?a b\tfailed\t\ttimed_out\t0\t56\n");
    expect(REPLAY_LOG_JSONL, false, &e,
           "{\"number\":41,\"url\":\"http://x/?a b\",\"outcome\":\"failed\",\"victims\":[],"
           "\"evicted\":0,\"status\":null,\"error\":\"timed_out\",\"bytes\":0,\"us\":56}\n");
}
END_TEST

START_TEST(no_url_breaks_a_line)
{
    struct replay_entry e = entry(REPLAY_HIT);

    e.url = span_of("a\tb\nc\rd\\e\0f", 11);
    expect(REPLAY_LOG_TSV, false, &e, "41\ta\\tb\\nc\\rd\\\\e\\0f\thit\t\t200\t1234\t56\n");
}
END_TEST

/* What a terminal would obey: C0, delete, C1 as UTF-8 and as a byte, a change of direction. */
START_TEST(what_is_not_printable_is_escaped)
{
    static const struct span victim[] = {{"a\x1b b\xc3\xa9", 6}};
    struct replay_entry e = entry(REPLAY_EVICTED);

    e.url = span_str("\x1b]0;x\x07\x7f\xc2\x9b\x9b"
                     "1\xe2\x80\xae\xe2\x82\xac\xe2\x80");
    e.victims = victim;
    e.victim_count = 1;
    expect(REPLAY_LOG_TSV, false, &e,
           "41\t\\x1b]0;x\\x07\\x7f\\xc2\\x9b\\x9b1\\xe2\\x80\\xae\xe2\x82\xac\\xe2\\x80\tevicted\t"
           "a\\x1b\\sb\xc3\xa9\t200\t1234\t56\n");
}
END_TEST

START_TEST(outcomes_have_their_names)
{
    static const char *const names[] = {"miss",   "hit",      "evicted", "coalesced",
                                        "bypass", "uncached", "failed"};

    for (int i = 0; i < REPLAY_OUTCOMES; i++)
        ck_assert_str_eq(replay_outcome_name((enum replay_outcome)i), names[i]);
}
END_TEST

START_TEST(the_name_of_the_file_tells_the_format)
{
    ck_assert_int_eq(replay_log_format_of("a.jsonl"), REPLAY_LOG_JSONL);
    ck_assert_int_eq(replay_log_format_of(".jsonl"), REPLAY_LOG_JSONL);
    ck_assert_int_eq(replay_log_format_of("a.json"), REPLAY_LOG_TSV);
    ck_assert_int_eq(replay_log_format_of("jsonl"), REPLAY_LOG_TSV);
    ck_assert_int_eq(replay_log_format_of(""), REPLAY_LOG_TSV);
}
END_TEST

START_TEST(a_file_begins_with_names)
{
    char path[] = "/tmp/sunproxy-test-XXXXXX", content[256];
    int fd = mkstemp(path);
    struct replay_entry e = entry(REPLAY_HIT);
    struct replay_log *log;
    ssize_t len;

    ck_assert_int_ge(fd, 0);
    log = replay_log_open(path, REPLAY_LOG_TSV, 2);
    ck_assert_ptr_nonnull(log);
    ck_assert_int_eq(replay_log_write(log, &e), 0);
    ck_assert_int_eq(replay_log_close(log), 0);
    len = read(fd, content, sizeof(content) - 1);
    ck_assert_int_gt(len, 0);
    content[len] = '\0';
    ck_assert_str_eq(content, "run\tnumber\turl\toutcome\tvictim\tstatus\tbytes\tus\n"
                              "2\t41\thttp://x/?a b\thit\t\t200\t1234\t56\n");
    close(fd);
    unlink(path);
}
END_TEST

START_TEST(a_full_disk_is_reported)
{
    struct replay_entry e = entry(REPLAY_HIT);
    struct replay_log *log = replay_log_open("/dev/full", REPLAY_LOG_JSONL, 1);

    ck_assert_ptr_nonnull(log);
    replay_log_write(log, &e);
    ck_assert_int_eq(replay_log_close(log), ENOSPC);
    ck_assert_ptr_null(replay_log_open("/nonexistent/log", REPLAY_LOG_TSV, 1));
    ck_assert_int_eq(errno, ENOENT);
    ck_assert_int_eq(replay_log_close(NULL), 0);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("replay log");
    TCase *tcase = tcase_create("replay log");

    tcase_add_test(tcase, lines_have_their_columns);
    tcase_add_test(tcase, failures_name_their_error);
    tcase_add_test(tcase, no_url_breaks_a_line);
    tcase_add_test(tcase, what_is_not_printable_is_escaped);
    tcase_add_test(tcase, outcomes_have_their_names);
    tcase_add_test(tcase, the_name_of_the_file_tells_the_format);
    tcase_add_test(tcase, a_file_begins_with_names);
    tcase_add_test(tcase, a_full_disk_is_reported);
    suite_add_tcase(suite, tcase);
    return suite;
}
