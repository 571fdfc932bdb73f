/* Ranges of bytes: RFC 9110 section 14. */
#include "http/range.h"

#include <stdio.h>

#include "tests/unit/unit.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))
#define MOST "9223372036854775807"

/* What a Range asks of a content: "first-last,..." or "whole", "416". */
static void
answer(const char *lines, int64_t length, char *text, size_t size)
{
    struct http_ranges requested, resolved;
    size_t len = 0;

    snprintf(text, size, "whole");
    if (!http_ranges_read(&requested, span_str(lines)))
        return;
    switch (http_ranges_resolve(&requested, length, &resolved)) {
    case HTTP_RANGE_WHOLE:
        return;
    case HTTP_RANGE_UNSATISFIABLE:
        snprintf(text, size, "416");
        return;
    case HTTP_RANGE_PARTIAL:
        break;
    }
    for (size_t i = 0; i < resolved.count; i++)
        len += (size_t)snprintf(text + len, size - len, "%s%lld-%lld", i ? "," : "",
                                (long long)resolved.of[i].first, (long long)resolved.of[i].last);
}

START_TEST(requests)
{
    static const struct {
        const char *lines;
        int64_t length;
        const char *answer;
    } rows[] = {
        {"", 10, "whole"},
        {"Range: bytes=0-1\r\n", 10, "0-1"},
        {"range: BYTES=0-1\r\n", 10, "0-1"},
        {"Range: bytes=0-0\r\n", 10, "0-0"},
        {"Range: bytes=0-\r\n", 10, "0-9"},
        {"Range: bytes=1-\r\n", 10, "1-9"},
        {"Range: bytes=9-\r\n", 10, "9-9"},
        {"Range: bytes=10-\r\n", 10, "416"},
        {"Range: bytes=0-9\r\n", 10, "0-9"},
        {"Range: bytes=0-10\r\n", 10, "0-9"},
        {"Range: bytes=5-99999999999999999999\r\n", 10, "5-9"},
        {"Range: bytes=99999999999999999999-\r\n", 10, "416"},
        {"Range: bytes=" MOST "-\r\n", INT64_MAX, "416"},
        {"Range: bytes=-1\r\n", 10, "9-9"},
        {"Range: bytes=-10\r\n", 10, "0-9"},
        {"Range: bytes=-11\r\n", 10, "0-9"},
        {"Range: bytes=-99999999999999999999\r\n", 10, "0-9"},
        {"Range: bytes=-0\r\n", 10, "416"},
        {"Range: bytes=0-\r\n", 0, "416"},
        {"Range: bytes=-5\r\n", 0, "416"},
        /* the grammar */
        {"Range: bytes=2-1\r\n", 10, "whole"},
        {"Range: bytes=-\r\n", 10, "whole"},
        {"Range: bytes=\r\n", 10, "whole"},
        {"Range: bytes=,\r\n", 10, "whole"},
        {"Range: bytes\r\n", 10, "whole"},
        {"Range: bytes 0-1\r\n", 10, "whole"},
        {"Range: bytes =0-1\r\n", 10, "whole"},
        {"Range: bytes=0 -1\r\n", 10, "whole"},
        {"Range: bytes=0-1x\r\n", 10, "whole"},
        {"Range: bytes=+0-1\r\n", 10, "whole"},
        {"Range: bytes=--1\r\n", 10, "whole"},
        {"Range: bytes=0x0-1\r\n", 10, "whole"},
        {"Range: bytes=0-1;2-3\r\n", 10, "whole"},
        {"Range: items=0-1\r\n", 10, "whole"},
        {"Range:\r\n", 10, "whole"},
        {"Range: bytes=0-1\r\nRange: bytes=0-1\r\n", 10, "whole"},
        {"Range: bytes=0-1, x\r\n", 10, "whole"},
        /* several */
        {"Range: bytes=0-1,3-4\r\n", 10, "0-1,3-4"},
        {"Range: bytes= 0-1 ,, 3-4 \r\n", 10, "0-1,3-4"},
        {"Range: bytes=3-4,0-1\r\n", 10, "3-4,0-1"},
        {"Range: bytes=0-1,2-3\r\n", 10, "0-1,2-3"},
        {"Range: bytes=0-1,20-30\r\n", 10, "0-1"},
        {"Range: bytes=20-30,40-\r\n", 10, "416"},
        {"Range: bytes=0-0,-1\r\n", 10, "0-0,9-9"},
        /* overlaps */
        {"Range: bytes=0-1,1-2\r\n", 10, "whole"},
        {"Range: bytes=1-2,0-1\r\n", 10, "whole"},
        {"Range: bytes=0-,5-6\r\n", 10, "whole"},
        {"Range: bytes=5-6,0-\r\n", 10, "whole"},
        {"Range: bytes=0-0,0-0\r\n", 10, "whole"},
        {"Range: bytes=0-8,-2\r\n", 10, "whole"},
        {"Range: bytes=-1,-1\r\n", 10, "whole"},
        /* their number */
        {"Range: bytes=0-0,2-2,4-4,6-6,8-8,10-10,12-12,14-14\r\n", 15,
         "0-0,2-2,4-4,6-6,8-8,10-10,12-12,14-14"},
        {"Range: bytes=0-0,2-2,4-4,6-6,8-8,10-10,12-12,14-14,16-16\r\n", 20, "whole"},
    };

    for (size_t i = 0; i < LENGTH(rows); i++) {
        char text[256];

        answer(rows[i].lines, rows[i].length, text, sizeof(text));
        ck_assert_msg(strcmp(text, rows[i].answer) == 0, "%s: %s", rows[i].lines, text);
    }
}
END_TEST

START_TEST(what_is_wanted_of_the_whole)
{
    static const struct {
        const char *lines;
        enum http_wanted wanted;
    } rows[] = {
        {"", HTTP_WANTS_WHOLE},
        {"Range: lines=0-\r\n", HTTP_WANTS_WHOLE},
        {"Range: bytes=0-\r\n", HTTP_WANTS_TO_END},
        {"Range: bytes=99-\r\n", HTTP_WANTS_TO_END},
        {"Range: bytes=100-\r\n", HTTP_WANTS_PART},
        {"Range: bytes=0-5\r\n", HTTP_WANTS_PART},
        {"Range: bytes=-5\r\n", HTTP_WANTS_PART},
        {"Range: bytes=0-,5-\r\n", HTTP_WANTS_PART},
    };

    for (size_t i = 0; i < LENGTH(rows); i++)
        ck_assert_msg(http_wanted_read(span_str(rows[i].lines), 100) == rows[i].wanted, "%s",
                      rows[i].lines);
}
END_TEST

START_TEST(as_requested)
{
    struct http_ranges ranges;

    ck_assert(http_ranges_read(&ranges, span_str("Range: bytes=5-,-7,1-2\r\n")));
    ck_assert_uint_eq(ranges.count, 3);
    ck_assert_int_eq(ranges.of[0].first, 5);
    ck_assert_int_eq(ranges.of[0].last, INT64_MAX);
    ck_assert_int_eq(ranges.of[1].first, -1);
    ck_assert_int_eq(ranges.of[1].last, 7);
    ck_assert_int_eq(ranges.of[2].last, 2);
}
END_TEST

START_TEST(content_ranges)
{
    static const struct {
        const char *value;
        bool valid;
        int64_t first, last, length;
    } rows[] = {
        {"bytes 0-4/10", true, 0, 4, 10},
        {"Bytes 0-9/10", true, 0, 9, 10},
        {"bytes 0-4/*", true, 0, 4, -1},
        {"bytes */10", true, -1, -1, 10},
        {"bytes */0", true, -1, -1, 0},
        {"bytes 0-"
         "9223372036854775805"
         "/9223372036854775806",
         true, 0, INT64_MAX - 2, INT64_MAX - 1},
        {"bytes 0-10/10", false, 0, 0, 0},
        {"bytes 5-4/10", false, 0, 0, 0},
        {"bytes 0-4/", false, 0, 0, 0},
        {"bytes 0-4", false, 0, 0, 0},
        {"bytes 0-/10", false, 0, 0, 0},
        {"bytes -4/10", false, 0, 0, 0},
        {"bytes */*", false, 0, 0, 0},
        {"bytes *", false, 0, 0, 0},
        {"bytes=0-4/10", false, 0, 0, 0},
        {"bytes  0-4/10", false, 0, 0, 0},
        {"bytes 0-4/10 ", false, 0, 0, 0},
        {"bytes 0-4/10x", false, 0, 0, 0},
        {"bytes 0-4/+10", false, 0, 0, 0},
        {"bytes 0-" MOST "/*", false, 0, 0, 0},
        {"bytes 0-4/" MOST, false, 0, 0, 0},
        {"bytes 0-4/99999999999999999999", false, 0, 0, 0},
        {"items 0-4/10", false, 0, 0, 0},
        {"", false, 0, 0, 0},
    };

    for (size_t i = 0; i < LENGTH(rows); i++) {
        struct http_content_range range;
        char bytes[128], line[128];
        struct http_writer writer = http_writer_of(bytes, sizeof(bytes));

        ck_assert_msg(http_content_range_parse(&range, span_str(rows[i].value)) == rows[i].valid,
                      "%s", rows[i].value);
        if (!rows[i].valid)
            continue;
        ck_assert_int_eq(range.first, rows[i].first);
        ck_assert_int_eq(range.last, rows[i].last);
        ck_assert_int_eq(range.length, rows[i].length);
        /* It is written as it was read. */
        http_write_content_range(&writer, &range);
        snprintf(line, sizeof(line), "Content-Range: b%s\r\n", rows[i].value + 1);
        ck_assert(span_equal(http_written(&writer), span_str(line)));
    }
}
END_TEST

START_TEST(several_parts)
{
    static const struct http_ranges ranges = {{{0, 1}, {5, 5}}, 2};
    char bytes[512], boundary[HTTP_BOUNDARY_SIZE];
    struct http_writer writer = http_writer_of(bytes, sizeof(bytes));
    struct http_multipart multipart = {boundary, span_str("text/plain"), 10};

    http_boundary_make(boundary, 0xabc);
    ck_assert_str_eq(boundary, "sunproxy0000000000000abc");
    http_write_multipart_type(&writer, &multipart);
    ck_assert(span_equal(http_written(&writer), span_str("Content-Type: multipart/byteranges; "
                                                         "boundary=sunproxy0000000000000abc\r\n")));
    writer.len = 0;
    http_write_part_head(&writer, &multipart, &ranges.of[0], true);
    http_write_text(&writer, "01");
    http_write_part_head(&writer, &multipart, &ranges.of[1], false);
    http_write_text(&writer, "5");
    http_write_multipart_end(&writer, &multipart);
    ck_assert(!writer.full);
    ck_assert(span_equal(http_written(&writer),
                         span_str("--sunproxy0000000000000abc\r\nContent-Type: text/plain\r\n"
                                  "Content-Range: bytes 0-1/10\r\n\r\n01"
                                  "\r\n--sunproxy0000000000000abc\r\nContent-Type: text/plain\r\n"
                                  "Content-Range: bytes 5-5/10\r\n\r\n5"
                                  "\r\n--sunproxy0000000000000abc--\r\n")));
    ck_assert_int_eq(http_multipart_length(&multipart, &ranges), (int64_t)writer.len);
    /* Without a type. */
    multipart.content_type = span_of(NULL, 0);
    writer.len = 0;
    http_write_part_head(&writer, &multipart, &ranges.of[0], true);
    ck_assert(span_equal(http_written(&writer), span_str("--sunproxy0000000000000abc\r\n"
                                                         "Content-Range: bytes 0-1/10\r\n\r\n")));
}
END_TEST

START_TEST(large_parts)
{
    static const struct http_ranges ranges = {
        {{0, INT64_C(1) << 40}, {INT64_C(1) << 41, INT64_C(1) << 42}}, 2};
    struct http_multipart multipart = {"b", span_str("a/b"), INT64_C(1) << 62};
    int64_t bytes = (INT64_C(1) << 40) + 1 + (INT64_C(1) << 41) + 1, length;

    length = http_multipart_length(&multipart, &ranges);
    ck_assert_int_gt(length, bytes);
    ck_assert_int_lt(length, bytes + 400);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("http/range");
    TCase *tests = tcase_create("range");

    tcase_add_test(tests, requests);
    tcase_add_test(tests, what_is_wanted_of_the_whole);
    tcase_add_test(tests, as_requested);
    tcase_add_test(tests, content_ranges);
    tcase_add_test(tests, several_parts);
    tcase_add_test(tests, large_parts);
    suite_add_tcase(suite, tests);
    return suite;
}
