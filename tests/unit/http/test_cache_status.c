/* Cache-Status (RFC 9211) and Age (RFC 9111 section 5.1). */
#include "http/cache_status.h"

#include <stdio.h>

#include "tests/unit/unit.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

START_TEST(members)
{
    static const struct {
        struct http_cache_status status;
        const char *line;
    } rows[] = {
        {{.cache = "sunproxy", .hit = true}, "Cache-Status: sunproxy; hit\r\n"},
        {{.cache = "sunproxy", .hit = true, .has_ttl = true, .ttl_s = 376},
         "Cache-Status: sunproxy; hit; ttl=376\r\n"},
        {{.cache = "sunproxy", .hit = true, .has_ttl = true, .ttl_s = -412},
         "Cache-Status: sunproxy; hit; ttl=-412\r\n"},
        {{.cache = "sunproxy", .has_ttl = true, .ttl_s = INT64_MAX},
         "Cache-Status: sunproxy; ttl=999999999999999\r\n"},
        {{.cache = "sunproxy", .has_ttl = true, .ttl_s = INT64_MIN},
         "Cache-Status: sunproxy; ttl=-999999999999999\r\n"},
        {{.cache = "sunproxy", .forwarded = HTTP_FORWARDED_URI_MISS},
         "Cache-Status: sunproxy; fwd=uri-miss\r\n"},
        {{.cache = "sunproxy",
          .forwarded = HTTP_FORWARDED_STALE,
          .origin_status = 304,
          .stored = true,
          .collapsed = true,
          .has_ttl = true,
          .ttl_s = 60},
         "Cache-Status: sunproxy; fwd=stale; fwd-status=304; stored; collapsed; ttl=60\r\n"},
        {{.cache = "sunproxy", .forwarded = HTTP_FORWARDED_BYPASS},
         "Cache-Status: sunproxy; fwd=bypass\r\n"},
        {{.cache = "sunproxy", .forwarded = HTTP_FORWARDED_METHOD},
         "Cache-Status: sunproxy; fwd=method\r\n"},
        {{.cache = "sunproxy", .forwarded = HTTP_FORWARDED_VARY_MISS},
         "Cache-Status: sunproxy; fwd=vary-miss\r\n"},
        {{.cache = "sunproxy", .forwarded = HTTP_FORWARDED_MISS},
         "Cache-Status: sunproxy; fwd=miss\r\n"},
        {{.cache = "sunproxy", .forwarded = HTTP_FORWARDED_REQUEST},
         "Cache-Status: sunproxy; fwd=request\r\n"},
        {{.cache = "sunproxy", .forwarded = HTTP_FORWARDED_PARTIAL},
         "Cache-Status: sunproxy; fwd=partial\r\n"},
        /* section 2: what belongs to fwd does not stand with a hit */
        {{.cache = "sunproxy",
          .hit = true,
          .forwarded = HTTP_FORWARDED_STALE,
          .origin_status = 200,
          .stored = true,
          .collapsed = true},
         "Cache-Status: sunproxy; hit\r\n"},
        {{.cache = "sunproxy", .origin_status = 200, .stored = true}, "Cache-Status: sunproxy\r\n"},
        {{.cache = "my cache", .hit = true}, "Cache-Status: \"my cache\"; hit\r\n"},
        {{.cache = "1st", .hit = true}, "Cache-Status: \"1st\"; hit\r\n"},
        {{.cache = "", .hit = true}, "Cache-Status: \"\"; hit\r\n"},
    };

    for (size_t i = 0; i < LENGTH(rows); i++) {
        char bytes[512];
        struct http_writer writer = http_writer_of(bytes, sizeof(bytes) - 1);

        http_write_cache_status(&writer, &rows[i].status);
        bytes[writer.len] = 0;
        ck_assert(!writer.full);
        ck_assert_str_eq(bytes, rows[i].line);
    }
}
END_TEST

START_TEST(details)
{
    static const struct {
        const char *detail, *written;
    } rows[] = {
        {"MEMORY", "MEMORY"},
        {"timed out", "\"timed out\""},
        {"a \"b\" \\c", "\"a \\\"b\\\" \\\\c\""},
        {"x\r\nSet-Cookie: a", "\"x??Set-Cookie: a\""},
        {"\xc3\xbc", "\"??\""},
    };
    char bytes[1024], expected[256], many[2048];
    struct http_writer writer;
    struct http_cache_status status = {.cache = "c"};

    for (size_t i = 0; i < LENGTH(rows); i++) {
        writer = http_writer_of(bytes, sizeof(bytes));
        status.detail = span_str(rows[i].detail);
        http_write_cache_status(&writer, &status);
        snprintf(expected, sizeof(expected), "Cache-Status: c; detail=%s\r\n", rows[i].written);
        ck_assert(span_equal(http_written(&writer), span_str(expected)));
    }
    /* Long ones are cut, and nothing is written beyond the writer. */
    memset(many, '"', sizeof(many));
    status.detail = span_of(many, sizeof(many));
    writer = http_writer_of(bytes, sizeof(bytes));
    http_write_cache_status(&writer, &status);
    ck_assert(!writer.full);
    ck_assert_uint_eq(writer.len, strlen("Cache-Status: c; detail=\"\"\r\n") +
                                      2 * HTTP_CACHE_STATUS_DETAIL_MAX);
    writer = http_writer_of(bytes, 20);
    http_write_cache_status(&writer, &status);
    ck_assert(writer.full);
}
END_TEST

START_TEST(ages)
{
    static const struct {
        int64_t age_us;
        const char *line;
    } rows[] = {
        {0, "Age: 0\r\n"},
        {-5000000, "Age: 0\r\n"},
        {999999, "Age: 0\r\n"},
        {1000000, "Age: 1\r\n"},
        {INT64_C(86400) * 1000000 + 1, "Age: 86400\r\n"},
        {INT64_MAX, "Age: 2147483648\r\n"},
    };

    for (size_t i = 0; i < LENGTH(rows); i++) {
        char bytes[64];
        struct http_writer writer = http_writer_of(bytes, sizeof(bytes));

        http_write_age(&writer, rows[i].age_us);
        ck_assert(span_equal(http_written(&writer), span_str(rows[i].line)));
    }
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("http/cache_status");
    TCase *tests = tcase_create("cache_status");

    tcase_add_test(tests, members);
    tcase_add_test(tests, details);
    tcase_add_test(tests, ages);
    suite_add_tcase(suite, tests);
    return suite;
}
