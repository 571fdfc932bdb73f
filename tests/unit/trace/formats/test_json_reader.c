/*
 * JSON as a stream: the grammar, texts that lie across the blocks of the input, and the memory that
 * a HAR file takes.
 */
#include "trace/formats/json_reader.h"

#include <math.h>

#include "tests/unit/trace/child.h"

#define MIB ((size_t)1 << 20)

static struct input *
open_bytes(const char *bytes, size_t len)
{
    struct input *in;
    char why[256];

    ck_assert_int_eq(input_open(scratch_write("json", bytes, len), 0, &in, why, sizeof(why)),
                     TRACE_OK);
    return in;
}

/* Reads over one value; true if that works. */
static bool
skips(const char *text, uint64_t *offset)
{
    struct input *in = open_bytes(text, strlen(text));
    struct json_reader r;

    json_reader_init(&r, in);
    json_reader_skip(&r);
    *offset = json_reader_offset(&r);
    input_close(in);
    return !r.failed;
}

START_TEST(the_grammar)
{
    static const char *const good[] = {
        "{}",
        "[]",
        " [ ] ",
        "{ }",
        "[1,2]",
        "[[],{},[{}]]",
        "{\"a\":1,\"b\":[true,false,null]}",
        "\"\"",
        "\"\\u00e9\\n\\\"\\\\\\/\"",
        "-1.5e+10",
        "0",
        "true",
        "null",
        "{\"a\" : {\"b\":[ {\"c\":\"}]\"} ]}\n,\t\"d\"\r:1}",
        "[\"\\ud800\",\"\\udc00x\"]",
        "\"\\u00E9\\uD83D\\uDE00\"",
    };
    static const struct {
        const char *text;
        uint64_t at;
    } bad[] = {
        {"", 0},           {"{", 1},           {"[", 1},         {"[1", 2},      {"[1,", 3},
        {"[1,]", 3},       {"[,1]", 1},        {"[1 2]", 3},     {"{\"a\"}", 4}, {"{\"a\":}", 5},
        {"{\"a\":1,}", 7}, {"{1:2}", 1},       {"{\"a\":1]", 6}, {"[1}", 2},     {"\"", 1},
        {"\"\\x\"", 3},    {"\"\\u12g4\"", 6}, {"tru", 3},       {"trye", 3},    {"-", 1},
        {"1e", 2},         {"1-2", 3},         {"]", 0},         {"nulL", 4},
    };
    uint64_t at;

    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        ck_assert_msg(skips(good[i], &at), "%s", good[i]);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        ck_assert_msg(!skips(bad[i].text, &at), "%s", bad[i].text);
        ck_assert_msg(at == bad[i].at, "%s: at %d", bad[i].text, (int)at);
    }
}
END_TEST

START_TEST(depth_is_bounded)
{
    static char text[2 * JSON_READER_DEPTH + 10];
    uint64_t at;

    for (unsigned depth = JSON_READER_DEPTH; depth <= JSON_READER_DEPTH + 1; depth++) {
        memset(text, '[', depth);
        memset(text + depth, ']', depth);
        text[2 * depth] = '\0';
        ck_assert_int_eq(skips(text, &at), depth == JSON_READER_DEPTH);
    }
}
END_TEST

START_TEST(values)
{
    static const char text[] = "{\"x\\u0061\":\"\\ud83d\\ude00\\u20ac\\ud800-\\udc00\\ud800\","
                               "\"a name that is longer than the buffer\":-12.5e1,\"n\":[7]}";
    struct input *in = open_bytes(text, sizeof(text) - 1);
    struct json_reader r;
    struct buf name, value;
    double number;

    buf_init(&name, 10);
    buf_init(&value, 100);
    json_reader_init(&r, in);
    ck_assert(json_reader_enter(&r));
    ck_assert(json_reader_next(&r, &name));
    ck_assert_str_eq(buf_str(&name), "xa");
    ck_assert(json_reader_text(&r, &value));
    ck_assert_str_eq(buf_str(&value), "\xf0\x9f\x98\x80\xe2\x82\xac\xef\xbf\xbd-\xef\xbf\xbd"
                                      "\xef\xbf\xbd");
    ck_assert(json_reader_next(&r, &name));
    ck_assert_str_eq(buf_str(&name), "");
    ck_assert(json_reader_number(&r, &number));
    ck_assert(fabs(number + 125) < 1e-9);
    ck_assert(json_reader_next(&r, &name));
    ck_assert_int_eq(json_reader_kind(&r), JSON_READER_ARRAY);
    ck_assert(json_reader_enter(&r));
    ck_assert(json_reader_next(&r, &name));
    ck_assert(!json_reader_text(&r, &value)); /* a number */
    ck_assert(r.failed);
    ck_assert(!json_reader_next(&r, &name));
    buf_free(&name);
    buf_free(&value);
    input_close(in);
}
END_TEST

/* The first half of a character before an escape that is not the second. */
START_TEST(halves_of_characters)
{
    static const struct {
        const char *text, *value;
    } texts[] = {
        {"\"\\ud800\\u0041\"", "\xef\xbf\xbd\x41"},
        {"\"\\ud800\\n\"", "\xef\xbf\xbd\n"},
        {"\"\\ud800\\ud83d\\ude00\"", "\xef\xbf\xbd\xf0\x9f\x98\x80"},
        {"\"\\uDE00\\ue000\"", "\xef\xbf\xbd\xee\x80\x80"},
        {"\"\\ud800\\ue000\"", "\xef\xbf\xbd\xee\x80\x80"},
    };

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct input *in = open_bytes(texts[i].text, strlen(texts[i].text));
        struct json_reader r;
        struct buf value;

        buf_init(&value, 100);
        json_reader_init(&r, in);
        ck_assert(json_reader_text(&r, &value));
        ck_assert_str_eq(buf_str(&value), texts[i].value);
        buf_free(&value);
        input_close(in);
    }
}
END_TEST

/* What is asked for and is not there, or breaks off. */
START_TEST(other_kinds_than_asked_for)
{
    double number;

    for (int i = 0; i < 4; i++) {
        const char *text = i == 0 ? "1-" : i == 1 ? "\"1\"" : i == 2 ? "7" : "\"\\";
        struct input *in = open_bytes(text, strlen(text) + (i == 3)); /* a zero byte behind it */
        struct json_reader r;

        json_reader_init(&r, in);
        ck_assert(!(i < 2    ? json_reader_number(&r, &number)
                    : i == 2 ? json_reader_enter(&r)
                             : json_reader_text(&r, NULL)));
        ck_assert(r.failed);
        input_close(in);
    }
}
END_TEST

/* A number of any length is read over; one of 64 characters has no value. */
START_TEST(long_numbers)
{
    enum { LONGEST = 300 * 1024 }; /* more than a block of the input */
    static const size_t lengths[] = {63, 64, 1000, LONGEST};
    static char text[LONGEST + 8];

    for (size_t i = 0; i < 2 * sizeof(lengths) / sizeof(lengths[0]); i++) {
        size_t len = lengths[i / 2];
        double number = -1;
        struct json_reader r;
        struct input *in;

        memset(text, '0', len);
        text[0] = '7';
        text[1] = '.';
        strcpy(text + len, ",8 ");
        in = open_bytes(text, len + 3);
        json_reader_init(&r, in);
        if (i % 2 == 0) {
            json_reader_skip(&r);
        } else {
            ck_assert_int_eq(json_reader_number(&r, &number), len == 63);
            ck_assert_double_eq(number, len == 63 ? 7 : -1);
        }
        ck_assert(!r.failed);
        ck_assert_uint_eq(json_reader_offset(&r), len);
        input_close(in);
    }
}
END_TEST

/* Escapes at every place around the end of a block of the input. */
START_TEST(across_blocks)
{
    enum { BLOCK = 256 * 1024, AROUND = 16 };
    static char text[BLOCK + 100];
    struct buf value;

    buf_init(&value, BLOCK);
    for (size_t fill = BLOCK - AROUND; fill < BLOCK + 2; fill++) {
        struct json_reader r;
        struct input *in;
        int len;

        memset(text, 'x', fill);
        text[0] = '"';
        len = sprintf(text + fill, "\\ud83d\\ude00\\n\"");
        in = open_bytes(text, fill + (size_t)len);
        json_reader_init(&r, in);
        ck_assert_int_eq(json_reader_text(&r, &value), fill - 1 + 5 <= BLOCK);
        ck_assert(!r.failed);
        ck_assert_uint_eq(json_reader_offset(&r), fill + (size_t)len);
        if (value.len)
            ck_assert_str_eq(value.data + fill - 1, "\xf0\x9f\x98\x80\n");
        input_close(in);
    }
    buf_free(&value);
}
END_TEST

/* 30 or 50 MB: of numbers, of names, of one body, of nesting. */
static const struct {
    const char *before, *repeated, *after;
} archives[] = {
    {"\"timings\":[0", ",0", "]"},
    {"\"cookies\":[{}", ",{\"name\":\"\"}", "]"},
    {"\"response\":{\"status\":200,\"content\":{\"size\":7,\"text\":\"", "\\u0000\\ud800", "\"}}"},
    {"\"a\":[0", ",[[[[[[[[[[[]]]]]]]]]]]", "]"},
    {"\"a\":{\"\":0", ",\"\":0", "}"},
};

#define ARCHIVES ((int)(sizeof(archives) / sizeof(archives[0])))

START_TEST(an_archive_takes_less_memory_than_it_has_bytes)
{
    enum { ENTRIES = 3 };
    const long bytes = (_i == 0 ? 50 : 30) * 1000 * 1000;
    struct trace_options options = TRACE_OPTIONS_DEFAULT;
    const char *path = scratch_path("har");
    FILE *file = fopen(path, "we");
    struct child_result result;

    ck_assert_ptr_nonnull(file);
    fputs("{\"log\":{\"entries\":[", file);
    for (int i = 0; i < ENTRIES; i++) {
        fprintf(file, "%s{\"request\":{\"method\":\"GET\",\"url\":\"http://a.test/%d\"},%s",
                i ? "," : "", i, archives[_i].before);
        for (long at = 0; at < bytes / ENTRIES; at += (long)strlen(archives[_i].repeated))
            fputs(archives[_i].repeated, file);
        fprintf(file, "%s}", archives[_i].after);
    }
    fputs("]}}", file);
    ck_assert_int_ge(ftell(file), bytes);
    ck_assert_int_eq(fclose(file), 0);
    result = child_load(path, &options);
    ck_assert_msg(result.error == TRACE_OK, "%s", result.why);
    ck_assert_uint_eq(result.requests, ENTRIES);
    ck_assert_msg(result.peak_bytes < (size_t)bytes / 5, "%zu MiB: %.1f times the file",
                  result.peak_bytes / MIB, (double)result.peak_bytes / (double)bytes);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("json_reader");
    TCase *tcase = tcase_create("stream");

    tcase_set_timeout(tcase, 300);
    tcase_add_checked_fixture(tcase, scratch_make, scratch_remove);
    tcase_add_test(tcase, the_grammar);
    tcase_add_test(tcase, depth_is_bounded);
    tcase_add_test(tcase, values);
    tcase_add_test(tcase, halves_of_characters);
    tcase_add_test(tcase, other_kinds_than_asked_for);
    tcase_add_test(tcase, long_numbers);
    tcase_add_test(tcase, across_blocks);
    tcase_add_loop_test(tcase, an_archive_takes_less_memory_than_it_has_bytes, 0, ARCHIVES);
    suite_add_tcase(suite, tcase);
    return suite;
}
