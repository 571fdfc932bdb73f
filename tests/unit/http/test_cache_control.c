/* Cache-Control of responses: RFC 9111 section 5.2. */
#include "http/cache_control.h"

#include "tests/unit/unit.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))
#define NONE HTTP_SECONDS_ABSENT
#define MOST HTTP_SECONDS_MAX

enum { NO_STORE = 1, NO_CACHE = 2, PRIVATE = 4, MALFORMED = 8 };

START_TEST(directives)
{
    static const struct {
        const char *value;
        int flags;
        int64_t max_age, s_maxage;
    } rows[] = {
        {"", 0, NONE, NONE},
        {" , ,", 0, NONE, NONE},
        {"public, must-revalidate, immutable, x=y, x=\"y, no-store\"", 0, NONE, NONE},
        /* 5.2.2: names in any case, any order */
        {"no-store", NO_STORE, NONE, NONE},
        {"No-Store", NO_STORE, NONE, NONE},
        {"public,no-store", NO_STORE, NONE, NONE},
        {"no-cache, private , no-store", NO_STORE | NO_CACHE | PRIVATE, NONE, NONE},
        {"no-storex, xno-store, no_store", 0, NONE, NONE},
        /* 5.2.2.4, 5.2.2.7: with the names of fields, as a whole */
        {"private=\"set-cookie\"", PRIVATE, NONE, NONE},
        {"no-cache=\"set-cookie, x-a\"", NO_CACHE, NONE, NONE},
        {"private=set-cookie", PRIVATE, NONE, NONE},
        {"no-store=\"x\"", NO_STORE, NONE, NONE},
        /* 5.2.2.1, 5.2.2.10 */
        {"max-age=3600", 0, 3600, NONE},
        {"MAX-AGE=3600, S-MAXAGE=7", 0, 3600, 7},
        {"s-maxage=0", 0, NONE, 0},
        {"max-age=0", 0, 0, NONE},
        {"max-age=003600", 0, 3600, NONE},
        /* 5.2: an argument may be quoted */
        {"max-age=\"3600\"", 0, 3600, NONE},
        /* 1.2.2: saturation */
        {"max-age=2147483647", 0, 2147483647, NONE},
        {"max-age=2147483648", 0, MOST, NONE},
        {"max-age=2147483649", 0, MOST, NONE},
        {"max-age=99999999999999999999999999999999", 0, MOST, NONE},
        /* 4.2.1: what is no number makes it stale */
        {"max-age", 0, 0, NONE},
        {"max-age=", 0, 0, NONE},
        {"max-age=''", 0, 0, NONE},
        {"max-age='3600'", 0, 0, NONE},
        {"max-age=-1", 0, 0, NONE},
        {"max-age=+1", 0, 0, NONE},
        {"max-age=3600.0", 0, 0, NONE},
        {"max-age=1e3", 0, 0, NONE},
        {"max-age=0x10", 0, 0, NONE},
        {"max-age= 3600", 0, 0, NONE},
        {"max-age=36 00", 0, 0, NONE},
        {"max-age=\"36\\00\"", 0, 0, NONE},
        {"max-age=60; private", 0, 0, NONE},
        {"s-maxage=x, max-age=3600", 0, 3600, 0},
        /* 4.2.1: of several the smallest */
        {"max-age=60, max-age=30, max-age=90", 0, 30, NONE},
        {"max-age=60, max-age=x", 0, 0, NONE},
        /* RFC 9110 5.6.4: what stands in quotes is no directive */
        {"x=\"max-age=3600\", max-age=1", 0, 1, NONE},
        {"x=\"\\\", no-store\", max-age=1", 0, 1, NONE},
        {"x=\", no-store, \", max-age=1", 0, 1, NONE},
        /* no directives */
        {"max-age =3600", MALFORMED, NONE, NONE},
        {"public; max-age=60", MALFORMED, NONE, NONE},
        {"=3600", MALFORMED, NONE, NONE},
        {"max age=3600", MALFORMED, NONE, NONE},
        {"private\", max-age=60", MALFORMED, NONE, NONE},
        {"x=\"private, max-age=60", MALFORMED, NONE, NONE},
        {"x=\"y\"z, max-age=60", MALFORMED, 60, NONE},
        {"x=\"y\\\", max-age=60", MALFORMED, NONE, NONE},
        {"max-age=60\x01", MALFORMED, 0, NONE},
    };

    for (size_t i = 0; i < LENGTH(rows); i++) {
        struct http_cache_control control;
        int flags;

        http_cache_control_init(&control);
        http_cache_control_read(&control, span_str(rows[i].value));
        flags = (control.no_store ? NO_STORE : 0) | (control.no_cache ? NO_CACHE : 0) |
                (control.is_private ? PRIVATE : 0) | (control.malformed ? MALFORMED : 0);
        ck_assert_msg(flags == rows[i].flags, "%s: flags %d", rows[i].value, flags);
        ck_assert_msg(control.max_age == rows[i].max_age, "%s: max-age %lld", rows[i].value,
                      (long long)control.max_age);
        ck_assert_msg(control.s_maxage == rows[i].s_maxage, "%s: s-maxage %lld", rows[i].value,
                      (long long)control.s_maxage);
    }
}
END_TEST

START_TEST(several_lines_add_up)
{
    struct http_cache_control control;

    http_cache_control_init(&control);
    http_cache_control_read(&control, span_str("max-age=60"));
    http_cache_control_read(&control, span_str("private"));
    http_cache_control_read(&control, span_str("max-age=90"));
    ck_assert(control.is_private && !control.no_store);
    ck_assert_int_eq(control.max_age, 60);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("http/cache_control");
    TCase *tests = tcase_create("cache_control");

    tcase_add_test(tests, directives);
    tcase_add_test(tests, several_lines_add_up);
    suite_add_tcase(suite, tests);
    return suite;
}
