/* Cache-Control of responses and requests (RFC 9111 section 5.2), CDN-Cache-Control (RFC 9213). */
#include "http/cache_control.h"

#include "base/buf.h"
#include "tests/unit/unit.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))
#define NONE HTTP_SECONDS_ABSENT
#define MOST HTTP_SECONDS_MAX

enum {
    NO_STORE = 1,
    NO_CACHE = 2,
    PRIVATE = 4,
    MALFORMED = 8,
    PUBLIC = 16,
    MUST_REVALIDATE = 32,
    PROXY_REVALIDATE = 64,
    MUST_UNDERSTAND = 128,
    NAMES_PRIVATE = 256,
    NAMES_NO_CACHE = 512,
};

static int
flags_of(const struct http_cache_control *control)
{
    return (control->no_store ? NO_STORE : 0) | (control->no_cache ? NO_CACHE : 0) |
           (control->is_private ? PRIVATE : 0) | (control->malformed ? MALFORMED : 0) |
           (control->is_public ? PUBLIC : 0) | (control->must_revalidate ? MUST_REVALIDATE : 0) |
           (control->proxy_revalidate ? PROXY_REVALIDATE : 0) |
           (control->must_understand ? MUST_UNDERSTAND : 0) |
           (control->names_private ? NAMES_PRIVATE : 0) |
           (control->names_no_cache ? NAMES_NO_CACHE : 0);
}

START_TEST(directives)
{
    static const struct {
        const char *value;
        int flags;
        int64_t max_age, s_maxage;
    } rows[] = {
        {"", 0, NONE, NONE},
        {" , ,", 0, NONE, NONE},
        {"nothing-to-see-here, immutable, x=y, x=\"y, no-store\"", 0, NONE, NONE},
        {"public, must-revalidate, Proxy-Revalidate, MUST-understand",
         PUBLIC | MUST_REVALIDATE | PROXY_REVALIDATE | MUST_UNDERSTAND, NONE, NONE},
        /* 5.2.2: names in any case, any order */
        {"no-store", NO_STORE, NONE, NONE},
        {"No-Store", NO_STORE, NONE, NONE},
        {"public,no-store", PUBLIC | NO_STORE, NONE, NONE},
        {"no-cache, private , no-store", NO_STORE | NO_CACHE | PRIVATE, NONE, NONE},
        {"no-storex, xno-store, no_store", 0, NONE, NONE},
        /* 5.2.2.4, 5.2.2.7: with the names of fields, quoted or not */
        {"private=\"set-cookie\"", NAMES_PRIVATE, NONE, NONE},
        {"no-cache=\"set-cookie, x-a\"", NAMES_NO_CACHE, NONE, NONE},
        {"private=set-cookie", NAMES_PRIVATE, NONE, NONE},
        {"private=\"a\", private", PRIVATE | NAMES_PRIVATE, NONE, NONE},
        /* what names nothing, or what cannot be a name, concerns everything */
        {"private=\"\"", PRIVATE, NONE, NONE},
        {"private=", PRIVATE, NONE, NONE},
        {"no-cache=\" , \"", NO_CACHE, NONE, NONE},
        {"no-cache=\"a b\"", NO_CACHE, NONE, NONE},
        {"no-cache=\"x, vary\"", NO_CACHE, NONE, NONE},
        {"private=Content-Encoding", PRIVATE, NONE, NONE},
        {"private=\"a, b:\"", PRIVATE, NONE, NONE},
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
        flags = flags_of(&control);
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

START_TEST(windows_of_staleness)
{
    static const struct {
        const char *value;
        int64_t while_revalidate, if_error;
    } rows[] = {
        {"max-age=1", NONE, NONE},
        {"stale-while-revalidate=30, stale-if-error=60", 30, 60},
        {"Stale-While-Revalidate=\"30\"", 30, NONE},
        {"stale-if-error=99999999999", NONE, MOST},
        {"stale-while-revalidate", 0, NONE},
        {"stale-if-error=x", NONE, 0},
        {"stale-if-error=9, stale-if-error=5", NONE, 5},
    };

    for (size_t i = 0; i < LENGTH(rows); i++) {
        struct http_cache_control control;

        http_cache_control_init(&control);
        http_cache_control_read(&control, span_str(rows[i].value));
        ck_assert_msg(control.stale_while_revalidate == rows[i].while_revalidate, "%s",
                      rows[i].value);
        ck_assert_msg(control.stale_if_error == rows[i].if_error, "%s", rows[i].value);
    }
}
END_TEST

START_TEST(named_fields)
{
    struct http_cache_control control;
    struct buf many;

    http_cache_control_read_lines(&control,
                                  span_str("Cache-Control: private=\"a, Set-Cookie\"\r\n"
                                           "X: y\r\nCache-control: no-cache=b, no-cache=A\r\n"));
    ck_assert_int_eq(flags_of(&control), NAMES_PRIVATE | NAMES_NO_CACHE);
    ck_assert_uint_eq(control.named_count, 3);
    ck_assert(http_cache_control_names(&control, span_str("set-cookie")));
    ck_assert(http_cache_control_names(&control, span_str("A")));
    ck_assert(http_cache_control_names(&control, span_str("b")));
    ck_assert(!http_cache_control_names(&control, span_str("x")));

    /* More than are kept: the whole response. */
    buf_init(&many, 4096);
    buf_append_str(&many, "no-cache=\"f0");
    for (int i = 1; i <= HTTP_NAMED_FIELDS_MAX; i++)
        buf_printf(&many, ", f%d", i);
    buf_append_str(&many, "\"");
    ck_assert(!buf_failed(&many));
    http_cache_control_init(&control);
    http_cache_control_read(&control, buf_span(&many));
    ck_assert_int_eq(flags_of(&control), NO_CACHE);
    buf_free(&many);
}
END_TEST

START_TEST(for_caches_of_the_origin)
{
    static const struct {
        const char *lines;
        bool read;
        int flags;
        int64_t max_age;
    } rows[] = {
        {"Cache-Control: max-age=1\r\n", false, 0, 0},
        {"CDN-Cache-Control: max-age=3600\r\n", true, 0, 3600},
        {"cdn-cache-control: max-age=3600\r\nCache-Control: no-store\r\n", true, 0, 3600},
        {"CDN-Cache-Control: max-age=2147483648\r\n", true, 0, MOST},
        {"CDN-Cache-Control: max-age=99999999999\r\n", true, 0, MOST},
        {"CDN-Cache-Control: foobar, max-age=3600\r\n", true, 0, 3600},
        {"CDN-Cache-Control: max-age=3600;p=1;q, x=(a b \"c\");d\r\n", true, 0, 3600},
        {"CDN-Cache-Control: private\r\n", true, PRIVATE, NONE},
        {"CDN-Cache-Control: private=\"a, b\"\r\n", true, NAMES_PRIVATE, NONE},
        {"CDN-Cache-Control: no-cache, no-store\r\n", true, NO_CACHE | NO_STORE, NONE},
        {"CDN-Cache-Control: no-store=?1, public=?0\r\n", true, NO_STORE, NONE},
        {"CDN-Cache-Control: no-store=5\r\n", true, NO_STORE, NONE},
        {"CDN-Cache-Control: max-age=60\r\nCDN-Cache-Control: no-store\r\n", true, NO_STORE, 60},
        /* RFC 8941 4.2.2: the last of one key */
        {"CDN-Cache-Control: max-age=60, max-age=90\r\n", true, 0, 90},
        /* RFC 9213 2.1: empty or invalid, so it is ignored */
        {"CDN-Cache-Control:\r\n", false, 0, 0},
        {"CDN-Cache-Control: max-age=10000, &&&&&\r\n", false, 0, 0},
        {"CDN-Cache-Control: max-age=\"10000\"\r\n", false, 0, 0},
        {"CDN-Cache-Control: max-age=1.5\r\n", false, 0, 0},
        {"CDN-Cache-Control: max-age=-1\r\n", false, 0, 0},
        {"CDN-Cache-Control: max-age\r\n", false, 0, 0},
        {"CDN-Cache-Control: max-age =100\r\n", false, 0, 0},
        {"CDN-Cache-Control: max-age= 100\r\n", false, 0, 0},
        {"CDN-Cache-Control: MaX-aGe=3600\r\n", false, 0, 0},
        {"CDN-Cache-Control: max-age=3600,\r\n", false, 0, 0},
        {"CDN-Cache-Control: max-age=3600\r\nCDN-Cache-Control: &\r\n", false, 0, 0},
    };

    for (size_t i = 0; i < LENGTH(rows); i++) {
        struct http_cache_control control = {.max_age = 12345};
        bool read = http_cdn_cache_control_read(&control, span_str(rows[i].lines));

        ck_assert_msg(read == rows[i].read, "%s", rows[i].lines);
        ck_assert_msg(control.max_age == (read ? rows[i].max_age : 12345), "%s: %lld",
                      rows[i].lines, (long long)control.max_age);
        ck_assert_msg(flags_of(&control) == rows[i].flags, "%s", rows[i].lines);
    }
}
END_TEST

START_TEST(requests)
{
    enum { ONLY_IF_CACHED = 1024 };
    static const struct {
        const char *lines;
        int flags;
        int64_t max_age, min_fresh, max_stale;
    } rows[] = {
        {"", 0, NONE, 0, 0},
        {"Accept: no-cache\r\n", 0, NONE, 0, 0},
        {"Cache-Control: no-cache\r\n", NO_CACHE, NONE, 0, 0},
        {"cache-control: No-Store, ONLY-if-cached\r\n", NO_STORE | ONLY_IF_CACHED, NONE, 0, 0},
        {"Cache-Control: max-age=0\r\n", 0, 0, 0, 0},
        {"Cache-Control: max-age=\"60\", min-fresh=30\r\n", 0, 60, 30, 0},
        {"Cache-Control: max-age=60\r\nCache-Control: max-age=30\r\n", 0, 30, 0, 0},
        {"Cache-Control: max-age=x\r\n", 0, 0, 0, 0},
        {"Cache-Control: max-age\r\n", 0, 0, 0, 0},
        {"Cache-Control: min-fresh=5, min-fresh=50, min-fresh=x\r\n", 0, NONE, 50, 0},
        {"Cache-Control: max-stale\r\n", 0, NONE, 0, HTTP_SECONDS_ANY},
        {"Cache-Control: max-stale=1000\r\n", 0, NONE, 0, 1000},
        {"Cache-Control: max-stale, max-stale=10\r\n", 0, NONE, 0, 10},
        {"Cache-Control: max-stale=x\r\n", 0, NONE, 0, 0},
        {"Cache-Control: max-stale=\r\n", 0, NONE, 0, 0},
        {"Cache-Control: x=\"no-cache\", y\r\n", 0, NONE, 0, 0},
        /* 5.4: Pragma counts only alone */
        {"Pragma: no-cache\r\n", NO_CACHE, NONE, 0, 0},
        {"Pragma: x, No-Cache\r\n", NO_CACHE, NONE, 0, 0},
        {"Pragma: unrecognised-extension\r\n", 0, NONE, 0, 0},
        {"Pragma: no-cache\r\nCache-Control: max-age=60\r\n", 0, 60, 0, 0},
        {"Cache-Control: x\r\nPragma: no-cache\r\n", 0, NONE, 0, 0},
    };

    for (size_t i = 0; i < LENGTH(rows); i++) {
        struct http_request_control control;
        int flags;

        http_request_control_read(&control, span_str(rows[i].lines));
        flags = (control.no_cache ? NO_CACHE : 0) | (control.no_store ? NO_STORE : 0) |
                (control.only_if_cached ? ONLY_IF_CACHED : 0);
        ck_assert_msg(flags == rows[i].flags, "%s", rows[i].lines);
        ck_assert_msg(control.max_age == rows[i].max_age, "%s", rows[i].lines);
        ck_assert_msg(control.min_fresh == rows[i].min_fresh, "%s", rows[i].lines);
        ck_assert_msg(control.max_stale == rows[i].max_stale, "%s", rows[i].lines);
    }
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("http/cache_control");
    TCase *tests = tcase_create("cache_control");

    tcase_add_test(tests, directives);
    tcase_add_test(tests, several_lines_add_up);
    tcase_add_test(tests, windows_of_staleness);
    tcase_add_test(tests, named_fields);
    tcase_add_test(tests, for_caches_of_the_origin);
    tcase_add_test(tests, requests);
    suite_add_tcase(suite, tests);
    return suite;
}
