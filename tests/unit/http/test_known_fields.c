/* The fields of a stored response that are found once. */
#include "http/known_fields.h"
#include "tests/unit/unit.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

START_TEST(each_field_has_its_bit)
{
    static const struct {
        const char *line;
        unsigned field;
    } rows[] = {
        {"Age: 1\r\n", HTTP_KNOWN_AGE},
        {"aGE:1\n", HTTP_KNOWN_AGE},
        {"DATE: x\r\n", HTTP_KNOWN_DATE},
        {"content-length: 1\r\n", HTTP_KNOWN_LENGTH},
        {"Content-Type: a/b\r\n", HTTP_KNOWN_TYPE},
        {"Content-Range: bytes */1\r\n", HTTP_KNOWN_RANGE},
        {"Content-Encoding: gzip\r\n", HTTP_KNOWN_CODING},
        {"Content-Language: en\r\n", HTTP_KNOWN_LANGUAGE},
        {"Location: /\r\n", HTTP_KNOWN_LOCATION},
        {"Content-Location: /\r\n", HTTP_KNOWN_LOCATION},
        {"Ages: 1\r\n", 0},
        {"Ag: Age:\r\n", 0},
        {"Content-Lengths: 1\r\n", 0},
        {"X-Date: x\r\n", 0},
        {"Cache-Control: max-age=1\r\n", 0},
        {"\r\n", 0},
    };

    for (size_t i = 0; i < LENGTH(rows); i++)
        ck_assert_msg(http_known_field(span_str(rows[i].line)) == rows[i].field, "%s",
                      rows[i].line);
}
END_TEST

START_TEST(bits_of_all_lines)
{
    ck_assert_uint_eq(http_known_fields(span_of(NULL, 0)), HTTP_KNOWN);
    ck_assert_uint_eq(http_known_fields(span_str("Server: x\r\nETag: \"Date:\"\r\n")), HTTP_KNOWN);
    ck_assert_uint_eq(http_known_fields(span_str("Server: x\r\nDate: x\r\nLocation: /\r\nAge: 1")),
                      HTTP_KNOWN | HTTP_KNOWN_DATE | HTTP_KNOWN_LOCATION | HTTP_KNOWN_AGE);
}
END_TEST

/* RFC 9110 section 8.6. A message with such a line is not framed by it. */
START_TEST(a_length_is_a_number)
{
    static const struct {
        const char *lines;
        bool is;
        uint64_t length;
    } rows[] = {
        {"Content-Length: 0\r\n", true, 0},
        {"Content-Length:\t17 \r\n", true, 17},
        {"A: b\nContent-Length: 9223372036854775807\n", true, INT64_MAX},
        {"Content-Length: 5\r\nContent-Length: x\r\n", true, 5},
        {"Content-Length: 9223372036854775808\r\n", false, 0},
        {"Content-Length: \r\n", false, 0},
        {"Content-Length: 1x\r\n", false, 0},
        {"Content-Length: -1\r\n", false, 0},
        {"A: b\r\n", false, 0},
    };

    for (size_t i = 0; i < LENGTH(rows); i++) {
        uint64_t length = 0;
        struct span lines = span_str(rows[i].lines);

        ck_assert_msg(http_known_length(lines, &length) == rows[i].is, "%s", rows[i].lines);
        ck_assert_msg(!(http_known_fields(lines) & HTTP_KNOWN_LENGTH) == !rows[i].is, "%s",
                      rows[i].lines);
        ck_assert_uint_eq(length, rows[i].length);
    }
}
END_TEST

START_TEST(the_last_value_of_a_field)
{
    const struct span lines =
        span_str("Content-Type: a/b\r\nAge: 1\r\nContent-Type: \t c/d ;e=f \r\nX: y\r\n");

    ck_assert(span_equal(http_known_value(lines, HTTP_KNOWN_TYPE), span_str("c/d ;e=f")));
    ck_assert(span_equal(http_known_value(lines, HTTP_KNOWN_AGE), span_str("1")));
    ck_assert_ptr_null(http_known_value(lines, HTTP_KNOWN_DATE).ptr);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("http/known_fields");
    TCase *tests = tcase_create("known_fields");

    tcase_add_test(tests, each_field_has_its_bit);
    tcase_add_test(tests, bits_of_all_lines);
    tcase_add_test(tests, a_length_is_a_number);
    tcase_add_test(tests, the_last_value_of_a_field);
    suite_add_tcase(suite, tests);
    return suite;
}
