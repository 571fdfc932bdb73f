/*
 * What a shared cache that does not validate may do with a response, by its head: RFC 9111 sections
 * 3, 4.1 and 4.2.
 */
#include "http/storing.h"

#include <stdio.h>

#include "tests/unit/unit.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))
#define NOW 784111777 /* Sun, 06 Nov 1994 08:49:37 GMT */
#define DATE "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
#define EVER INT64_MAX
#define S INT64_C(1000000)
#define MOST (((int64_t)1 << 31) * S)

struct row {
    const char *lines;
    enum http_reason refusal;
    int64_t fresh_us;
};

/* The refusal, and how long the response is fresh from its arrival on; EVER: it does not say. */
static enum http_reason
evaluate(struct span lines, int64_t waited_us, int64_t *fresh_us)
{
    static const struct http_storing_rules rules = {.any_status = true};
    const struct http_received received = {
        .lines = lines,
        .arrival = {.wall_s = NOW, .waited_us = waited_us},
    };
    struct http_storing storing;

    http_evaluate_response(&received, &rules, &storing);
    if (storing.refusal != HTTP_REASON_NONE)
        *fresh_us = 0;
    else if (storing.lifetime == HTTP_LIFETIME_UNSTATED)
        *fresh_us = EVER;
    else
        *fresh_us = storing.lifetime_us - storing.age_us;
    return storing.refusal;
}

static void
check(const struct row *rows, size_t count, int64_t waited_us)
{
    for (size_t i = 0; i < count; i++) {
        int64_t fresh_us = -1;
        enum http_reason refusal = evaluate(span_str(rows[i].lines), waited_us, &fresh_us);

        ck_assert_msg(refusal == rows[i].refusal, "%s: %s", rows[i].lines,
                      http_reason_word(refusal));
        ck_assert_msg(fresh_us == rows[i].fresh_us, "%s: %lld us", rows[i].lines,
                      (long long)fresh_us);
    }
}

START_TEST(what_is_shared_at_all)
{
    static const struct row rows[] = {
        {"", HTTP_REASON_NONE, EVER},
        {"Content-Type: text/html\r\nX: y\r\n", HTTP_REASON_NONE, EVER},
        {"Cache-Control: public\r\n", HTTP_REASON_NONE, EVER},
        {"Cache-Control:\r\n", HTTP_REASON_NONE, EVER},
        /* RFC 9111 5.2.2.5 */
        {"Cache-Control: no-store\r\n", HTTP_REASON_NO_STORE, 0},
        {"cache-control: max-age=60\r\nCACHE-CONTROL: no-store\r\n", HTTP_REASON_NO_STORE, 0},
        /* RFC 9111 5.2.2.3: the status, none here, is not understood, so no-store stands */
        {"Cache-Control: must-understand, no-store\r\n", HTTP_REASON_NO_STORE, 0},
        /* RFC 9111 5.2.2.7 */
        {"Cache-Control: private\r\n", HTTP_REASON_PRIVATE, 0},
        {"Cache-Control: max-age=60, private=\"x\"\r\n", HTTP_REASON_PRIVATE, 0},
        /* RFC 9111 5.2.2.4: nothing is validated yet */
        {"Cache-Control: no-cache\r\n", HTTP_REASON_NO_CACHE, 0},
        {"Cache-Control: no-cache=\"x\", max-age=60\r\n", HTTP_REASON_NO_CACHE, 0},
        /* RFC 9111 7.3 */
        {"Set-Cookie: a=b\r\n", HTTP_REASON_SET_COOKIE, 0},
        {"Set-Cookie:\r\n", HTTP_REASON_SET_COOKIE, 0},
        {"Cache-Control: public, max-age=60\r\nset-cookie: a=b\r\n", HTTP_REASON_SET_COOKIE, 0},
        {"Set-Cookie2: a=b\r\n", HTTP_REASON_SET_COOKIE, 0},
        /* RFC 9111 4.1 */
        {"Vary: *\r\n", HTTP_REASON_VARY_ANY, 0},
        {"Vary: *, *\r\n", HTTP_REASON_VARY_ANY, 0},
        {"Vary: , *\r\n", HTTP_REASON_VARY_ANY, 0},
        {"Vary: Foo, *\r\n", HTTP_REASON_VARY_ANY, 0},
        {"Vary: *, Foo\r\n", HTTP_REASON_VARY_ANY, 0},
        {"Vary: Foo\r\nVary: *\r\n", HTTP_REASON_VARY_ANY, 0},
        {"Vary:\r\nVary: *\r\n", HTTP_REASON_VARY_ANY, 0},
        {"Vary: *\r\nVary: Foo\r\n", HTTP_REASON_VARY_ANY, 0},
        {"Vary: Other:\r\n", HTTP_REASON_VARY_ANY, 0},
        {"Vary: Accept-Language, Cookie\r\n", HTTP_REASON_NONE, EVER},
        {"Vary:\r\n", HTTP_REASON_NONE, EVER},
        /* RFC 9111 5.4: in an answer it has no meaning */
        {"Pragma: no-cache\r\n", HTTP_REASON_NONE, EVER},
        /* RFC 9110 7.6.1: Connection does not hide what is for caches */
        {"Connection: close, Cache-Control\r\nCache-Control: private\r\n", HTTP_REASON_PRIVATE, 0},
        /* RFC 9112 5.1: the blank is taken off, and the field counts */
        {"Cache-Control : private\r\n", HTTP_REASON_PRIVATE, 0},
        {"Set-Cookie\t: a=b\r\n", HTTP_REASON_SET_COOKIE, 0},
        /* RFC 9112 5.2 and 5: its meaning is unknown */
        {"X: a\r\n Cache-Control: private\r\n", HTTP_REASON_MALFORMED, 0},
        {"Cache-Control: max-age=60,\r\n\tprivate\r\n", HTTP_REASON_MALFORMED, 0},
        {"Cache-Control\r\n", HTTP_REASON_MALFORMED, 0},
        {"Cache Control: private\r\n", HTTP_REASON_MALFORMED, 0},
        {": private\r\n", HTTP_REASON_MALFORMED, 0},
        {"Cache-Control: x=\"private\r\n", HTTP_REASON_MALFORMED, 0},
    };

    check(rows, LENGTH(rows), 0);
    check(rows, LENGTH(rows), 3600 * S);
}
END_TEST

START_TEST(how_long_it_is_fresh)
{
    static const struct row rows[] = {
        /* RFC 9111 4.2.1, in its order */
        {DATE "Cache-Control: max-age=60\r\n", HTTP_REASON_NONE, 60 * S},
        {"Cache-Control: max-age=60\r\n", HTTP_REASON_NONE, 60 * S},
        {"Cache-Control: s-maxage=7, max-age=60\r\n", HTTP_REASON_NONE, 7 * S},
        {"Cache-Control: s-maxage=60, max-age=0\r\n", HTTP_REASON_NONE, 60 * S},
        {"Cache-Control: s-maxage=0, max-age=60\r\n", HTTP_REASON_STALE, 0},
        {"Cache-Control: max-age=60\r\nExpires: 0\r\n", HTTP_REASON_NONE, 60 * S},
        {"Cache-Control: max-age=0\r\nExpires: Sun, 06 Nov 1994 09:49:37 GMT\r\n",
         HTTP_REASON_STALE, 0},
        {"Cache-Control: max-age=0\r\n", HTTP_REASON_STALE, 0},
        {"Cache-Control: max-age='3600'\r\n", HTTP_REASON_STALE, 0},
        {"Cache-Control: max-age=60\r\nCache-Control: max-age=30\r\n", HTTP_REASON_NONE, 30 * S},
        /* RFC 9111 1.2.2 */
        {"Cache-Control: max-age=99999999999\r\n", HTTP_REASON_NONE, MOST},
        /* RFC 9111 5.3: less the date of the answer, or the time of its arrival */
        {DATE "Expires: Sun, 06 Nov 1994 08:50:37 GMT\r\n", HTTP_REASON_NONE, 60 * S},
        {"Expires: Sun, 06 Nov 1994 08:50:37 GMT\r\n", HTTP_REASON_NONE, 60 * S},
        {DATE "Expires: Sunday, 06-Nov-94 08:50:37 GMT\r\n", HTTP_REASON_NONE, 60 * S},
        {DATE "Expires: Sun Nov  6 08:50:37 1994\r\n", HTTP_REASON_NONE, 60 * S},
        {DATE "Expires: Sun, 06 Nov 1994 08:49:37 GMT\r\n", HTTP_REASON_STALE, 0},
        {DATE "Expires: Sun, 06 Nov 1994 08:49:36 GMT\r\n", HTTP_REASON_STALE, 0},
        {DATE "Expires: Sun, 06 Nov 9999 08:49:36 GMT\r\n", HTTP_REASON_NONE, MOST},
        {DATE "Expires: 0\r\n", HTTP_REASON_STALE, 0},
        {DATE "Expires: -1\r\n", HTTP_REASON_STALE, 0},
        {DATE "Expires:\r\n", HTTP_REASON_STALE, 0},
        {DATE "Expires: Sun, 06 Nov 1994 09:49:37 UTC\r\n", HTTP_REASON_STALE, 0},
        {DATE "Expires: Sun, 06 Nov 1994 09:49:37 GMT\r\n"
              "Expires: Sun, 06 Nov 1994 09:49:37 GMT\r\n",
         HTTP_REASON_STALE, 0},
        /* the origin's clock is fast: its dates are compared with each other */
        {"Date: Sun, 06 Nov 1994 10:49:37 GMT\r\nExpires: Sun, 06 Nov 1994 10:50:37 GMT\r\n",
         HTTP_REASON_NONE, 60 * S},
        {"Date: Sun, 06 Nov 1994 10:49:37 GMT\r\nExpires: Sun, 06 Nov 1994 09:49:37 GMT\r\n",
         HTTP_REASON_STALE, 0},
        /* RFC 9110 6.6.1: a date that is none is that of the arrival */
        {"Date: now\r\nExpires: Sun, 06 Nov 1994 08:50:37 GMT\r\n", HTTP_REASON_NONE, 60 * S},
        {"Date: now\r\nCache-Control: max-age=60\r\n", HTTP_REASON_NONE, 60 * S},
        {DATE DATE "Cache-Control: max-age=60\r\n", HTTP_REASON_NONE, 60 * S},
        {DATE "Date: Sun, 06 Nov 1994 08:49:30 GMT\r\n" DATE, HTTP_REASON_MALFORMED, 0},
        /* RFC 9111 4.2.3: the age that it came with */
        {"Age: 10\r\nCache-Control: max-age=60\r\n", HTTP_REASON_NONE, 50 * S},
        {"Age: 59\r\nCache-Control: max-age=60\r\n", HTTP_REASON_NONE, 1 * S},
        {"Age: 60\r\nCache-Control: max-age=60\r\n", HTTP_REASON_STALE, 0},
        {"Age: 7200\r\nCache-Control: max-age=3600\r\n", HTTP_REASON_STALE, 0},
        {"Age: 99999999999999999999\r\nCache-Control: max-age=99999999999\r\n", HTTP_REASON_STALE,
         0},
        {"Date: Sun, 06 Nov 1994 08:49:17 GMT\r\nCache-Control: max-age=60\r\n", HTTP_REASON_NONE,
         40 * S},
        {"Date: Sun, 06 Nov 1994 08:49:17 GMT\r\nAge: 10\r\nCache-Control: max-age=60\r\n",
         HTTP_REASON_NONE, 40 * S},
        {"Date: Sun, 06 Nov 1994 08:49:17 GMT\r\nAge: 30\r\nCache-Control: max-age=60\r\n",
         HTTP_REASON_NONE, 30 * S},
        {"Date: Sun, 06 Nov 1994 07:49:37 GMT\r\nCache-Control: max-age=3600\r\n",
         HTTP_REASON_STALE, 0},
        {"Date: Sun, 06 Nov 0001 07:49:37 GMT\r\nCache-Control: max-age=99999999999\r\n",
         HTTP_REASON_STALE, 0},
        {"Date: Sun, 06 Nov 1994 09:49:37 GMT\r\nCache-Control: max-age=60\r\n", HTTP_REASON_NONE,
         60 * S},
        {"Date: Sun, 06 Nov 1994 08:49:17 GMT\r\nExpires: Sun, 06 Nov 1994 08:50:17 GMT\r\n",
         HTTP_REASON_NONE, 40 * S},
        /* RFC 9111 5.1: the first member; one that is no number does not count */
        {"Age: 10, 30\r\nCache-Control: max-age=60\r\n", HTTP_REASON_NONE, 50 * S},
        {"Age: 10\r\nAge: 30\r\nCache-Control: max-age=60\r\n", HTTP_REASON_NONE, 50 * S},
        {"Age: 7200.0\r\nCache-Control: max-age=60\r\n", HTTP_REASON_NONE, 60 * S},
        {"Age: -7200\r\nCache-Control: max-age=60\r\n", HTTP_REASON_NONE, 60 * S},
        {"Age: x, 7200\r\nCache-Control: max-age=60\r\n", HTTP_REASON_NONE, 60 * S},
        /* nothing is stated, so nothing runs out */
        {"Date: Sun, 06 Nov 1994 07:49:37 GMT\r\nAge: 7200\r\n", HTTP_REASON_NONE, EVER},
        {"Last-Modified: Sun, 06 Nov 1994 07:49:37 GMT\r\n", HTTP_REASON_NONE, EVER},
    };

    check(rows, LENGTH(rows), 0);
}
END_TEST

/* RFC 9111 section 4.2.3: response_delay. */
START_TEST(the_time_that_it_took_counts)
{
    static const struct row rows[] = {
        {DATE "Cache-Control: max-age=60\r\n", HTTP_REASON_NONE, 60 * S - 2500000},
        {DATE "Age: 10\r\nCache-Control: max-age=60\r\n", HTTP_REASON_NONE, 50 * S - 2500000},
        {"Date: Sun, 06 Nov 1994 08:49:27 GMT\r\nCache-Control: max-age=60\r\n", HTTP_REASON_NONE,
         50 * S},
        {DATE "Cache-Control: max-age=2\r\n", HTTP_REASON_STALE, 0},
        {DATE "Cache-Control: max-age=3\r\n", HTTP_REASON_NONE, 500000},
    };

    check(rows, LENGTH(rows), 2500000);
}
END_TEST

START_TEST(a_zero_byte_hides_nothing)
{
    static const char lines[] = "X: a\0b\r\nCache-Control: private\r\n";
    static const char inside[] = "Cache-Control: max-age=60\0, private\r\n";
    int64_t fresh_us;

    ck_assert_int_eq(evaluate(span_of(lines, sizeof(lines) - 1), 0, &fresh_us),
                     HTTP_REASON_PRIVATE);
    ck_assert_int_eq(evaluate(span_of(inside, sizeof(inside) - 1), 0, &fresh_us),
                     HTTP_REASON_MALFORMED);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("http/storing: a cache that does not validate");
    TCase *tests = tcase_create("unvalidated");

    tcase_add_test(tests, what_is_shared_at_all);
    tcase_add_test(tests, how_long_it_is_fresh);
    tcase_add_test(tests, the_time_that_it_took_counts);
    tcase_add_test(tests, a_zero_byte_hides_nothing);
    suite_add_tcase(suite, tests);
    return suite;
}
