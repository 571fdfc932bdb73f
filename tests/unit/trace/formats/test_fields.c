/*
 * Words, numbers and dates as logs have them.
 */
#include "trace/formats/fields.h"

#include "tests/unit/unit.h"
#include "trace/trace.h"

#define S INT64_C(1000000)

static const struct {
    const char *text;
    int64_t us;
} log_dates[] = {
    {"17/May/2015:10:05:03 +0000", 1431857103 * S},
    {"01/Jul/1995:00:00:01 -0400", 804571201 * S},
    {"29/Feb/2000:23:59:60 +0530", 951848940 * S + 60 * S},
    {"01/Jan/1970:00:00:00 +0000", 0},
    {"31/Dec/1969:23:59:59 +0000", -S},
    {"29:23:53:25", (29 * 86400 + 23 * 3600 + 53 * 60 + 25) * S},
};

START_TEST(log_date)
{
    int64_t us;

    ck_assert(fields_log_date(span_str(log_dates[_i].text), &us));
    ck_assert_int_eq(us, log_dates[_i].us);
}
END_TEST

static const struct {
    const char *text;
    int64_t us;
} iso_dates[] = {
    {"2022-02-04T05:23:40.045Z", 1643952220 * S + 45000},
    {"2016-05-29T05:22:54.142+00:00", 1464499374 * S + 142000},
    {"2016-05-29T07:22:54+0200", 1464499374 * S},
    {"2016-05-29 05:22:54", 1464499374 * S},
    {"2016-05-29T05:22:54.1234567Z", 1464499374 * S + 123456},
    {"2016-05-29T05:22", 1464499320 * S},
    {"2016-05-29 07:22+02:00", 1464499320 * S},
    {"1970-01-02", 86400 * S},
    {"1970-01-02+02:00", 79200 * S},
    {"1999-12-31", 946598400 * S},
    {"2000-02-29", 951782400 * S},
    {"1600-02-29", -11670998400 * S},
};

START_TEST(iso_date)
{
    int64_t us;

    ck_assert(fields_iso_date(span_str(iso_dates[_i].text), &us));
    ck_assert_int_eq(us, iso_dates[_i].us);
}
END_TEST

static const char *const no_dates[] = {
    "",
    "17/May/2015",
    "17/Mai/2015:10:05:03 +0000",
    "00/May/2015:10:05:03 +0000",
    "32/May/2015:10:05:03 +0000",
    "17/May/2015:24:05:03 +0000",
    "17/May/2015:10:60:03 +0000",
    "17/May/2015:10:05:61 +0000",
    "17/May/2015:10:05:03 +00",
    "17/May/2015:10:05:03 +000000",
    "17/May/2015:10:05:03 UTC",
    "29:23:53",
    "29:23:53:25:1",
    "30/Feb/2000:23:59:59 +0530",
    "17/May/2015:10:05 +0000",
    "29:23:53:",
    "2022-02-29",
    "1900-02-29",
    "2022-04-31",
    "2022-12-32",
    "2022-02-04T05:23:",
    "2022-02-04T05:23.5",
    "2022-13-04",
    "2022-00-04",
    "2022-02-04X05:23:40",
    "2022-02-04T",
    "2022-02-04T05:23:40.Z",
    "2022-02-04T05:23:40.1.2",
    "2022-2-4",
    "99999-01-01",
};

START_TEST(no_date)
{
    int64_t us;

    ck_assert(!fields_log_date(span_str(no_dates[_i]), &us));
    ck_assert(!fields_iso_date(span_str(no_dates[_i]), &us));
}
END_TEST

START_TEST(seconds)
{
    int64_t us;

    ck_assert(fields_seconds(span_str("1157689312.049"), &us));
    ck_assert_int_eq(us, 1157689312049000);
    ck_assert(fields_seconds(span_str("-1.5"), &us));
    ck_assert_int_eq(us, -1500000);
    ck_assert(fields_seconds(span_str("7"), &us));
    ck_assert_int_eq(us, 7000000);
    ck_assert(fields_seconds(span_str("0.0000019"), &us));
    ck_assert_int_eq(us, 1);
    ck_assert(!fields_seconds(span_str(""), &us));
    ck_assert(!fields_seconds(span_str("1."), &us));
    ck_assert(!fields_seconds(span_str(".5"), &us));
    ck_assert(!fields_seconds(span_str("1e3"), &us));
    ck_assert(!fields_seconds(span_str("--1"), &us));
    ck_assert(!fields_seconds(span_str("9223372036855"), &us));
    ck_assert(fields_seconds(span_str("9223372036853"), &us));
}
END_TEST

START_TEST(numbers)
{
    uint64_t n;
    int64_t i;

    ck_assert(fields_uint(span_str("18446744073709551615"), &n) && n == UINT64_MAX);
    ck_assert(!fields_uint(span_str("18446744073709551616"), &n));
    ck_assert(!fields_uint(span_str("000000000000000000001"), &n));
    ck_assert(!fields_uint(span_str("+1"), &n));
    ck_assert(fields_int(span_str("-9223372036854775807"), &i) && i == -INT64_MAX);
    ck_assert(!fields_int(span_str("9223372036854775808"), &i));
    ck_assert(fields_size(span_str("-"), &i) && i == -1);
    ck_assert(fields_size(span_str(""), &i) && i == -1);
    ck_assert(fields_size(span_str("0"), &i) && i == 0);
    ck_assert(!fields_size(span_str("-5"), &i));
}
END_TEST

START_TEST(statuses)
{
    unsigned status;

    ck_assert(fields_status(span_str("304"), &status) && status == 304);
    ck_assert(fields_status(span_str("000"), &status) && status == TRACE_STATUS_NONE);
    ck_assert(fields_status(span_str("-2"), &status) && status == TRACE_STATUS_NONE);
    ck_assert(fields_status(span_str("-"), &status) && status == TRACE_STATUS_NONE);
    ck_assert(!fields_status(span_str("2x0"), &status));
    ck_assert(!fields_status(span_str("70000"), &status));
}
END_TEST

START_TEST(words)
{
    struct span rest = span_str("  one\ttwo   three");
    const char *const expected[] = {"one", "two", "three", ""};

    for (int i = 0; i < 4; i++)
        ck_assert(span_equal(fields_word(&rest), span_str(expected[i])));
    ck_assert(span_equal(fields_trim(span_str(" \tx y\t ")), span_str("x y")));
    ck_assert(span_equal(fields_trim_spaces(span_str(" \tx ")), span_str("\tx")));
}
END_TEST

#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("fields");
    TCase *tcase = tcase_create("fields");

    tcase_add_loop_test(tcase, log_date, 0, COUNT(log_dates));
    tcase_add_loop_test(tcase, iso_date, 0, COUNT(iso_dates));
    tcase_add_loop_test(tcase, no_date, 0, COUNT(no_dates));
    tcase_add_test(tcase, seconds);
    tcase_add_test(tcase, numbers);
    tcase_add_test(tcase, statuses);
    tcase_add_test(tcase, words);
    suite_add_tcase(suite, tcase);
    return suite;
}
