/* Conditional requests: RFC 9110 section 13, RFC 9111 section 4.3. */
#include "http/conditional.h"

#include "http/request_head.h"

#include "tests/unit/unit.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))
#define NOW 784115377 /* Sun, 06 Nov 1994 09:49:37 GMT */
#define EARLIER "Sun, 06 Nov 1994 08:49:36 GMT"
#define MODIFIED "Sun, 06 Nov 1994 08:49:37 GMT"
#define LATER "Sun, 06 Nov 1994 08:49:38 GMT"
#define TAG "ETag: \"a\"\r\n"
#define LM "Last-Modified: " MODIFIED "\r\n"

enum {
    GO = HTTP_CONDITION_PROCEED,
    SAME = HTTP_CONDITION_NOT_MODIFIED,
    FAILED = HTTP_CONDITION_FAILED
};

START_TEST(conditions)
{
    static const struct {
        const char *request, *stored;
        int result;
    } rows[] = {
        {"", TAG LM, GO},
        {"Range: bytes=0-1\r\n", TAG LM, GO},
        /* 13.1.2: weak comparison */
        {"If-None-Match: \"a\"\r\n", TAG, SAME},
        {"If-None-Match: W/\"a\"\r\n", TAG, SAME},
        {"If-None-Match: \"a\"\r\n", "ETag: W/\"a\"\r\n", SAME},
        {"If-None-Match: W/\"a\"\r\n", "ETag: W/\"a\"\r\n", SAME},
        {"If-None-Match: \"b\"\r\n", TAG, GO},
        {"If-None-Match: \"A\"\r\n", TAG, GO},
        {"If-None-Match: \"a\"\r\n", LM, GO},
        {"If-None-Match: *\r\n", TAG, SAME},
        {"If-None-Match: *\r\n", "", SAME},
        {"If-None-Match: \"*\"\r\n", TAG, GO},
        {"If-None-Match: \"b\", \"a\"\r\n", TAG, SAME},
        {"If-None-Match: \"a\", \"b\", \"c\"\r\n", TAG, SAME},
        {"If-None-Match: \"b\",, W/\"c\" ,\"a\"\r\n", TAG, SAME},
        {"If-None-Match: \"b\"\r\nIf-None-Match: \"a\"\r\n", TAG, SAME},
        {"If-None-Match:\r\n", TAG, GO},
        /* 8.8.3: a comma and a backslash are characters like others */
        {"If-None-Match: \"x\", \"a,b\"\r\n", "ETag: \"a,b\"\r\n", SAME},
        {"If-None-Match: \"a,b\"\r\n", "ETag: \"b\"\r\n", GO},
        {"If-None-Match: \"a\\\", \"b\"\r\n", "ETag: \"b\"\r\n", SAME},
        {"If-None-Match: \"a\\\"\r\n", "ETag: \"a\\\"\r\n", SAME},
        {"If-None-Match: \"abcdef\xfc\"\r\n", "ETag: \"abcdef\xfc\"\r\n", SAME},
        /* what breaks the grammar is compared as it stands */
        {"If-None-Match: a\r\n", "ETag: a\r\n", SAME},
        {"If-None-Match: a\r\n", TAG, GO},
        {"If-None-Match: \"a\"\r\n", "ETag: a\r\n", GO},
        {"If-None-Match: \"a\"\r\n", "ETag: \"a\"\r\nETag: \"b\"\r\n", GO},
        {"If-None-Match: \"a\"\r\n", "ETag:\r\n", GO},
        /* 13.1.3, 13.2.2: If-Modified-Since counts without If-None-Match only */
        {"If-Modified-Since: " MODIFIED "\r\n", LM, SAME},
        {"If-Modified-Since: " LATER "\r\n", LM, SAME},
        {"If-Modified-Since: " EARLIER "\r\n", LM, GO},
        {"If-Modified-Since: Sunday, 06-Nov-94 08:49:37 GMT\r\n", LM, SAME},
        {"If-Modified-Since: yesterday\r\n", LM, GO},
        {"If-Modified-Since: " LATER "\r\nIf-Modified-Since: " EARLIER "\r\n", LM, GO},
        {"If-Modified-Since: " LATER "\r\nIf-None-Match: \"b\"\r\n", TAG LM, GO},
        {"If-None-Match: \"a\"\r\nIf-Modified-Since: " EARLIER "\r\n", TAG LM, SAME},
        {"If-None-Match:\r\nIf-Modified-Since: " LATER "\r\n", TAG LM, GO},
        /* RFC 9111 4.3.2: by Date where there is no Last-Modified */
        {"If-Modified-Since: " MODIFIED "\r\n", "Date: " MODIFIED "\r\n", SAME},
        {"If-Modified-Since: " EARLIER "\r\n", "Date: " MODIFIED "\r\n", GO},
        {"If-Modified-Since: " LATER "\r\n", "", GO},
        {"If-Modified-Since: " LATER "\r\n", "Last-Modified: x\r\n", GO},
        /* 13.1.1: strong comparison */
        {"If-Match: \"a\"\r\n", TAG, GO},
        {"If-Match: \"b\", \"a\"\r\n", TAG, GO},
        {"If-Match: *\r\n", "", GO},
        {"If-Match: \"b\"\r\n", TAG, FAILED},
        {"If-Match: W/\"a\"\r\n", "ETag: W/\"a\"\r\n", FAILED},
        {"If-Match: \"a\"\r\n", "ETag: W/\"a\"\r\n", FAILED},
        {"If-Match: a\r\n", "ETag: a\r\n", FAILED},
        {"If-Match: \"a\"\r\n", "", FAILED},
        /* 13.1.4, 13.2.2: If-Unmodified-Since counts without If-Match only */
        {"If-Unmodified-Since: " MODIFIED "\r\n", LM, GO},
        {"If-Unmodified-Since: " LATER "\r\n", LM, GO},
        {"If-Unmodified-Since: " EARLIER "\r\n", LM, FAILED},
        {"If-Unmodified-Since: x\r\n", LM, GO},
        {"If-Unmodified-Since: " LATER "\r\n", "", FAILED},
        {"If-Unmodified-Since: " EARLIER "\r\nIf-Match: \"a\"\r\n", TAG LM, GO},
        /* 13.2.2: the order */
        {"If-None-Match: \"a\"\r\nIf-Match: \"b\"\r\n", TAG, FAILED},
        {"If-None-Match: \"a\"\r\nIf-Match: \"a\"\r\n", TAG, SAME},
        {"If-Modified-Since: " LATER "\r\nIf-Unmodified-Since: " LATER "\r\n", LM, SAME},
        {"If-Modified-Since: " LATER "\r\nIf-Unmodified-Since: " EARLIER "\r\n", LM, FAILED},
    };

    for (size_t i = 0; i < LENGTH(rows); i++) {
        int result = (int)http_evaluate_conditions(span_str(rows[i].request), UINT32_MAX,
                                                   span_str(rows[i].stored), NOW);

        ck_assert_msg(result == rows[i].result, "%s on %s: %d", rows[i].request, rows[i].stored,
                      result);
    }
}
END_TEST

/* One that counts as not sent leaves the others. */
START_TEST(removed)
{
    static const struct {
        const char *request;
        uint32_t removed;
        int result;
    } rows[] = {
        {"If-None-Match: \"a\"\r\nIf-Modified-Since: " EARLIER "\r\n", HTTP_HAS_IF_NONE_MATCH, GO},
        {"If-None-Match: \"b\"\r\nIf-Modified-Since: " LATER "\r\n", HTTP_HAS_IF_NONE_MATCH, SAME},
        {"If-Modified-Since: " LATER "\r\n", HTTP_HAS_IF_MODIFIED_SINCE, GO},
        {"If-Match: \"b\"\r\nIf-None-Match: \"a\"\r\n", HTTP_HAS_IF_MATCH, SAME},
        {"If-Unmodified-Since: " EARLIER "\r\n", HTTP_HAS_IF_UNMODIFIED_SINCE, GO},
    };

    for (size_t i = 0; i < LENGTH(rows); i++)
        ck_assert_int_eq((int)http_evaluate_conditions(span_str(rows[i].request), ~rows[i].removed,
                                                       span_str(TAG LM), NOW),
                         rows[i].result);
}
END_TEST

START_TEST(if_range)
{
    static const struct {
        const char *request, *stored;
        bool matches;
    } rows[] = {
        {"", TAG, true},
        {"If-Range: \"a\"\r\n", TAG, true},
        {"If-Range: \"b\"\r\n", TAG, false},
        {"If-Range: W/\"a\"\r\n", TAG, false},
        {"If-Range: \"a\"\r\n", "ETag: W/\"a\"\r\n", false},
        {"If-Range: W/\"a\"\r\n", "ETag: W/\"a\"\r\n", false},
        {"If-Range: \"a\"\r\n", LM, false},
        {"If-Range: a\r\n", "ETag: a\r\n", false},
        {"If-Range: \"a\"\r\nIf-Range: \"b\"\r\n", TAG, false},
        {"If-Range:\r\n", TAG, false},
        /* 8.8.2.2: a date is strong only if Date is later */
        {"If-Range: " MODIFIED "\r\n", LM "Date: " LATER "\r\n", true},
        {"If-Range: " MODIFIED "\r\n", LM "Date: " MODIFIED "\r\n", false},
        {"If-Range: " MODIFIED "\r\n", LM, false},
        {"If-Range: " LATER "\r\n", LM "Date: " LATER "\r\n", false},
        {"If-Range: " EARLIER "\r\n", LM "Date: " LATER "\r\n", false},
        {"If-Range: " MODIFIED "\r\n", TAG, false},
    };

    for (size_t i = 0; i < LENGTH(rows); i++)
        ck_assert_msg(http_if_range(span_str(rows[i].request), span_str(rows[i].stored), NOW) ==
                          rows[i].matches,
                      "%s on %s", rows[i].request, rows[i].stored);
}
END_TEST

START_TEST(names_of_conditions)
{
    ck_assert(!http_has_condition(span_str("Range: bytes=0-1\r\nIf: x\r\n")));
    ck_assert(http_has_condition(span_str("X: y\r\nif-range: \"a\"\r\n")));
    ck_assert(http_has_condition(span_str("If-None-Match:\r\n")));
    ck_assert(!http_has_origin_condition(span_str("If-None-Match: \"a\"\r\nIf-Range: \"a\"\r\n")));
    ck_assert(http_has_origin_condition(span_str("If-Match: \"a\"\r\n")));
    ck_assert(http_has_origin_condition(span_str("If-Unmodified-Since: x\r\n")));
}
END_TEST

START_TEST(validations)
{
    static const struct {
        const char *stored, *fields;
    } rows[] = {
        {"X: y\r\n", ""},
        {TAG, "If-None-Match: \"a\"\r\n"},
        {"etag: W/\"a\"\r\n", "If-None-Match: W/\"a\"\r\n"},
        {LM, "If-Modified-Since: " MODIFIED "\r\n"},
        {LM TAG, "If-None-Match: \"a\"\r\nIf-Modified-Since: " MODIFIED "\r\n"},
        {"Last-Modified: x\r\n", ""},
        {"ETag:\r\n", ""},
        {TAG "ETag: \"b\"\r\n" LM, "If-Modified-Since: " MODIFIED "\r\n"},
        {TAG TAG, "If-None-Match: \"a\"\r\n"},
        {"ETag: a, b\r\n" LM, "If-Modified-Since: " MODIFIED "\r\n"},
        {"ETag: \"a,b\"\r\n", "If-None-Match: \"a,b\"\r\n"},
    };

    for (size_t i = 0; i < LENGTH(rows); i++) {
        struct buf fields;

        buf_init(&fields, 1024);
        ck_assert_msg(http_write_validation(span_str(rows[i].stored), NOW, &fields) ==
                          (rows[i].fields[0] != 0),
                      "%s", rows[i].stored);
        ck_assert_str_eq(buf_str(&fields), rows[i].fields);
        buf_free(&fields);
    }
}
END_TEST

/* RFC 9111 section 4.3.4. */
START_TEST(which_response_a_304_concerns)
{
    static const struct {
        const char *lines, *stored;
        bool concerns;
    } rows[] = {
        {"", TAG LM, true},
        {TAG, TAG, true},
        {"ETag: \"b\"\r\n", TAG, false},
        {"ETag: \"b\"\r\n", TAG LM, false},
        {"ETag: \"a\"\r\n", LM, false},
        {"ETag: W/\"a\"\r\n", TAG, true},
        {"ETag: W/\"b\"\r\n", TAG, false},
        {"ETag: \"a\"\r\n", "ETag: W/\"a\"\r\n", false},
        {"ETag: W/\"a\"\r\n" LM, LM, true},
        {LM, LM, true},
        {LM, TAG LM, true},
        {LM, TAG, true},
        {"Last-Modified: " LATER "\r\n", LM, false},
        {"Last-Modified: " LATER "\r\n" TAG, TAG LM, true},
    };

    for (size_t i = 0; i < LENGTH(rows); i++)
        ck_assert_msg(http_not_modified_concerns(span_str(rows[i].lines), span_str(rows[i].stored),
                                                 NOW) == rows[i].concerns,
                      "%s on %s", rows[i].lines, rows[i].stored);
}
END_TEST

START_TEST(fields_of_a_304)
{
    static const char stored[] = "Date: " LATER "\r\nContent-Type: text/html\r\n" LM
                                 "Content-Length: 5\r\nCache-Control: max-age=1\r\n"
                                 "content-encoding: gzip\r\nContent-Language: de\r\nVary: A\r\n"
                                 "Content-Range: x\r\nContent-Location: /a\r\nX: y\r\n";
    struct buf fields, both;

    buf_init(&fields, 1024);
    http_write_not_modified(span_str(stored), &fields);
    ck_assert_str_eq(buf_str(&fields), "Date: " LATER "\r\n" LM "Cache-Control: max-age=1\r\n"
                                       "Vary: A\r\nContent-Location: /a\r\nX: y\r\n");
    buf_init(&both, 1024);
    buf_append_str(&both, LM TAG);
    buf_reset(&fields);
    http_write_not_modified(buf_span(&both), &fields);
    ck_assert_str_eq(buf_str(&fields), TAG);
    buf_free(&both);
    buf_free(&fields);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("http/conditional");
    TCase *tests = tcase_create("conditional");

    tcase_add_test(tests, conditions);
    tcase_add_test(tests, removed);
    tcase_add_test(tests, if_range);
    tcase_add_test(tests, names_of_conditions);
    tcase_add_test(tests, validations);
    tcase_add_test(tests, which_response_a_304_concerns);
    tcase_add_test(tests, fields_of_a_304);
    suite_add_tcase(suite, tests);
    return suite;
}
