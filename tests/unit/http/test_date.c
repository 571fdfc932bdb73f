/* Dates in the three formats of RFC 9110 section 5.6.7, and what is none. */
#include "http/date.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "tests/unit/unit.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))
#define NOW 1700000000 /* Tue, 14 Nov 2023 22:13:20 GMT */

START_TEST(dates)
{
    static const struct {
        const char *text;
        int64_t seconds;
    } rows[] = {
        /* the RFC's own examples */
        {"Sun, 06 Nov 1994 08:49:37 GMT", 784111777},
        {"Sunday, 06-Nov-94 08:49:37 GMT", 784111777},
        {"Sun Nov  6 08:49:37 1994", 784111777},
        /* any case: RFC 9111 section 4.2 */
        {"sUN, 06 nOV 1994 08:49:37 gmt", 784111777},
        {"SUNDAY, 06-NOV-94 08:49:37 GMT", 784111777},
        {"sun nov  6 08:49:37 1994", 784111777},
        /* the calendar */
        {"Thu, 01 Jan 1970 00:00:00 GMT", 0},
        {"Wed, 31 Dec 1969 23:59:59 GMT", -1},
        {"Tue, 29 Feb 2000 12:00:00 GMT", 951825600},
        {"Wed, 01 Mar 2000 00:00:00 GMT", 951868800},
        {"Wed Nov 16 08:49:37 1994", 784975777},
        {"Fri, 01 Jan 1904 00:00:00 GMT", -2082844800},
        {"Sat, 20 Nov 2286 17:46:40 GMT", 10000000000},
        {"Fri, 31 Dec 9999 23:59:59 GMT", 253402300799},
        {"Sat, 01 Jan 0000 00:00:00 GMT", -62167219200},
        {"Mon, 01 Jan 0001 00:00:00 GMT", -62135596800},
        /* no later than it says: a leap second */
        {"Sat, 31 Dec 2016 23:59:60 GMT", 1483228799},
        /* the weekday is not compared with the date */
        {"Mon, 06 Nov 1994 08:49:37 GMT", 784111777},
        /* two digits of a year: at most 50 years ahead of NOW */
        {"Tuesday, 14-Nov-73 22:13:20 GMT", 3277923200},
        {"Tuesday, 14-Nov-73 22:13:21 GMT", 122163201},
        {"Monday, 14-Nov-22 22:13:20 GMT", 1668464000},
    };

    for (size_t i = 0; i < LENGTH(rows); i++) {
        int64_t seconds = 0;

        ck_assert_msg(http_date_parse(span_str(rows[i].text), NOW, &seconds), "%s", rows[i].text);
        ck_assert_msg(seconds == rows[i].seconds, "%s: %lld", rows[i].text, (long long)seconds);
    }
}
END_TEST

START_TEST(no_dates)
{
    static const char *const rows[] = {
        "",
        "0",
        "-1",
        "3600",
        "never",
        /* another zone, or none */
        "Sun, 06 Nov 1994 08:49:37 UTC",
        "Sun, 06 Nov 1994 08:49:37 AEST",
        "Sun, 06 Nov 1994 08:49:37 +0000",
        "Sun, 06 Nov 1994 08:49:37",
        "Sunday, 06-Nov-94 08:49:37 UTC",
        "Sun Nov  6 08:49:37 1994 GMT",
        /* a mixture of formats */
        "Sun, 06 Nov 94 08:49:37 GMT",
        "Sun 06 Nov 1994 08:49:37 GMT",
        "Sun, 06-Nov-1994 08:49:37 GMT",
        "Sunday, 06 Nov 1994 08:49:37 GMT",
        "Sunday, 06-Nov-1994 08:49:37 GMT",
        "06 Nov 1994 08:49:37 GMT",
        /* spaces */
        "Sun,  06 Nov 1994 08:49:37 GMT",
        "Sun, 06  Nov 1994 08:49:37 GMT",
        "Sun, 06 Nov 1994  08:49:37 GMT",
        "Sun, 06 Nov 1994 08:49:37  GMT",
        "Sun,06 Nov 1994 08:49:37 GMT",
        " Sun, 06 Nov 1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 08:49:37 GMT ",
        "Sun Nov 6 08:49:37 1994",
        "Sun Nov   6 08:49:37 1994",
        /* digits */
        "Sun, 6 Nov 1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 8:49:37 GMT",
        "Sun, 06 Nov 1994 08:49 GMT",
        "Sun, 06 Nov 1994 08.49.37 GMT",
        "Sun, 06 Nov 19940 08:49:37 GMT",
        "Sun, 06 Nov +994 08:49:37 GMT",
        /* no such day, month or time */
        "Sun, 00 Nov 1994 08:49:37 GMT",
        "Thu, 31 Nov 1994 08:49:37 GMT",
        "Wed, 29 Feb 1995 08:49:37 GMT",
        "Thu, 29 Feb 1900 08:49:37 GMT",
        "Sun, 06 Nix 1994 08:49:37 GMT",
        "Son, 06 Nov 1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 24:00:00 GMT",
        "Sun, 06 Nov 1994 08:60:37 GMT",
        "Sun, 06 Nov 1994 08:49:61 GMT",
        /* two of them */
        "Sun, 06 Nov 1994 08:49:37 GMT, Sun, 06 Nov 1994 08:49:37 GMT",
    };

    for (size_t i = 0; i < LENGTH(rows); i++) {
        int64_t seconds;

        ck_assert_msg(!http_date_parse(span_str(rows[i]), NOW, &seconds), "%s", rows[i]);
    }
    /* Cut anywhere, a date is none, and nothing behind the cut is read. */
    for (const char *const *text = (const char *const[]){"Sun, 06 Nov 1994 08:49:37 GMT",
                                                         "Sunday, 06-Nov-94 08:49:37 GMT",
                                                         "Sun Nov  6 08:49:37 1994", NULL};
         *text; text++)
        for (size_t len = 0; len < strlen(*text); len++) {
            char *cut = malloc(len ? len : 1);
            int64_t seconds;

            ck_assert_ptr_nonnull(cut);
            memcpy(cut, *text, len);
            ck_assert(!http_date_parse(span_of(cut, len), NOW, &seconds));
            free(cut);
        }
}
END_TEST

/* The C library's calendar as the reference, a day and some seconds apart, from 1970 to 2400. */
START_TEST(the_same_as_the_c_library)
{
    for (int64_t t = 0; t < 13569465600; t += 86400 * 5 + 3601) {
        time_t time = (time_t)t;
        struct tm tm;
        char text[64];
        int64_t seconds;

        ck_assert_ptr_nonnull(gmtime_r(&time, &tm));
        ck_assert(strftime(text, sizeof(text), "%a, %d %b %Y %H:%M:%S GMT", &tm) > 0);
        ck_assert_msg(http_date_parse(span_str(text), NOW, &seconds), "%s", text);
        ck_assert_int_eq(seconds, t);
        ck_assert_ptr_nonnull(asctime_r(&tm, text));
        ck_assert(http_date_parse(span_of(text, strlen(text) - 1), NOW, &seconds));
        ck_assert_int_eq(seconds, t);
    }
}
END_TEST

START_TEST(what_is_written)
{
    static const struct {
        int64_t seconds;
        const char *text;
    } rows[] = {
        {0, "Thu, 01 Jan 1970 00:00:00 GMT"},
        {-1, "Wed, 31 Dec 1969 23:59:59 GMT"},
        {784111777, "Sun, 06 Nov 1994 08:49:37 GMT"},
        {951782400, "Tue, 29 Feb 2000 00:00:00 GMT"},
        {1709251199, "Thu, 29 Feb 2024 23:59:59 GMT"},
        {-62167219200, "Sat, 01 Jan 0000 00:00:00 GMT"},
        {253402300799, "Fri, 31 Dec 9999 23:59:59 GMT"},
        {INT64_MIN, "Sat, 01 Jan 0000 00:00:00 GMT"},
        {INT64_MAX, "Fri, 31 Dec 9999 23:59:59 GMT"},
    };
    char text[HTTP_DATE_SIZE];
    uint64_t state = 1;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        http_date_format(rows[i].seconds, text);
        ck_assert_str_eq(text, rows[i].text);
    }
    /* Any time is read as what was written. */
    for (int i = 0; i < 20000; i++) {
        int64_t seconds = (int64_t)unit_draw(&state, 1000000) * 315569 + unit_draw(&state, 86400) -
                          62167219200,
                again;

        http_date_format(seconds, text);
        ck_assert(http_date_parse(span_str(text), 0, &again));
        ck_assert_int_eq(again, seconds);
    }
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("http/date");
    TCase *tests = tcase_create("date");

    tcase_add_test(tests, dates);
    tcase_add_test(tests, no_dates);
    tcase_add_test(tests, the_same_as_the_c_library);
    tcase_add_test(tests, what_is_written);
    suite_add_tcase(suite, tests);
    return suite;
}
