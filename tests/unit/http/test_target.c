/* Authorities, and the URLs under which responses are cached. */
#include "http/target.h"

#include "tests/unit/unit.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

START_TEST(authorities)
{
    static const struct {
        const char *text, *host; /* no host: refused */
        unsigned port;
    } rows[] = {
        {"h", "h", 0},
        {"Example.COM:8080", "Example.COM", 8080},
        {"a_b-c.d.", "a_b-c.d", 0},
        {"a.b.:8080", "a.b", 8080},
        {"127.0.0.1:1", "127.0.0.1", 1},
        {"127.0.0.1.", "127.0.0.1", 0},
        {"255.255.255.255", "255.255.255.255", 0},
        {"1a.2b", "1a.2b", 0},
        {"1.2.3.4a", "1.2.3.4a", 0},
        {"0x7g", "0x7g", 0},
        {"1.0x7f.a", "1.0x7f.a", 0},
        {"127.1", NULL, 0},
        {"127.1.", NULL, 0},
        {"2130706433", NULL, 0},
        {"0x7f.1", NULL, 0},
        {"0X7F000001", NULL, 0},
        {"0x", NULL, 0},
        {"0177.0.0.1", NULL, 0},
        {"127.0.0.01", NULL, 0},
        {"127.0.0.256", NULL, 0},
        {"127.0.0.1.1", NULL, 0},
        {"1.2.3", NULL, 0},
        {"a.1", NULL, 0},
        {"a.0x1f", NULL, 0},
        {".", NULL, 0},
        {"..", NULL, 0},
        {".a", NULL, 0},
        {"a..", NULL, 0},
        {"a..b", NULL, 0},
        {"..:80", NULL, 0},
        {"h:", "h", 0},
        {"h:00080", "h", 80},
        {"h:65535", "h", 65535},
        {"[::1]", "[::1]", 0},
        {"[::1]:80", "[::1]", 80},
        {"[::ffff:127.0.0.1]", "[::ffff:127.0.0.1]", 0},
        {"", NULL, 0},
        {":", NULL, 0},
        {":80", NULL, 0},
        {"h:0", NULL, 0},
        {"h:65536", NULL, 0},
        {"h:000080", NULL, 0},
        {"h:8 0", NULL, 0},
        {"h:-1", NULL, 0},
        {"h:80:80", NULL, 0},
        {"u@h", NULL, 0},
        {"u:w@h", NULL, 0},
        {"h,i", NULL, 0},
        {"h i", NULL, 0},
        {"h/", NULL, 0},
        {"h%2e", NULL, 0},
        {"h\xc3", NULL, 0},
        {"[", NULL, 0},
        {"[]", NULL, 0},
        {"[::1", NULL, 0},
        {"[::1]a", NULL, 0},
        {"[::1]]", NULL, 0},
        {"[1.2.3.4]", NULL, 0},
        {"[::g]", NULL, 0},
        {"[fe80::1%lo]", NULL, 0},
        {"[1111:2222:3333:4444:5555:6666:7777:8888:9999:aaaa]", NULL, 0},
        {"::1", NULL, 0},
    };

    for (size_t i = 0; i < LENGTH(rows); i++) {
        struct http_authority authority;
        bool read = http_authority_read(span_str(rows[i].text), &authority);

        ck_assert_msg(read == (rows[i].host != NULL), "%s", rows[i].text);
        if (!read)
            continue;
        ck_assert_msg(span_equal(authority.host, span_str(rows[i].host)), "%s", rows[i].text);
        ck_assert_msg(authority.port == rows[i].port, "%s", rows[i].text);
    }
    ck_assert(!http_authority_read(span_of("h\0", 2), &(struct http_authority){0}));
    ck_assert(!http_authority_read(span_of("[::1\0]", 6), &(struct http_authority){0}));
    ck_assert(!http_authority_read(span_of(NULL, 0), &(struct http_authority){0}));
}
END_TEST

/* RFC 3986 section 3.1. */
START_TEST(schemes)
{
    static const struct {
        const char *reference;
        size_t len;
    } rows[] = {
        {"http://h/", 4}, {"a:", 1},    {"A1+-.z:b:c", 6}, {"mailto:a@b", 6}, {"", 0},
        {":", 0},         {"http", 0},  {"1a:", 0},        {"+a:", 0},        {"a b:", 0},
        {"/a:b", 0},      {"?a:b", 0},  {"a/b:c", 0},      {"//h:80/", 0},    {"a_b://h/", 0},
    };

    for (size_t i = 0; i < LENGTH(rows); i++)
        ck_assert_msg(http_scheme_length(span_str(rows[i].reference)) == rows[i].len, "%s",
                      rows[i].reference);
    ck_assert_uint_eq(http_scheme_length(span_of("a\0:", 3)), 0);
    ck_assert_uint_eq(http_scheme_length(span_of("a:", 1)), 0);
    ck_assert_uint_eq(http_scheme_length(span_of(NULL, 0)), 0);
}
END_TEST

START_TEST(schemes_of_urls)
{
    static const struct {
        const char *text, *rest; /* no rest: neither */
        bool https;
    } rows[] = {
        {"http://h/", "h/", false}, {"HTTPS://h", "h", true}, {"hTTp://", "", false},
        {"http:/h", NULL, false},   {"httpx://h", NULL, false}, {"https:", NULL, false},
        {"htt", NULL, false},       {"", NULL, false},          {"ftp://h", NULL, false},
    };

    for (size_t i = 0; i < LENGTH(rows); i++) {
        struct span rest = span_str(rows[i].text);
        bool https = false, taken = http_take_scheme(&rest, &https);

        ck_assert_msg(taken == (rows[i].rest != NULL), "%s", rows[i].text);
        ck_assert(span_equal(rest, span_str(taken ? rows[i].rest : rows[i].text)));
        ck_assert(!taken || https == rows[i].https);
    }
}
END_TEST

START_TEST(urls)
{
    static const struct {
        bool https;
        const char *host;
        uint16_t port;
        const char *path, *url;
    } rows[] = {
        /* RFC 9110 section 4.2.3, RFC 3986 section 6.2.2.1 */
        {false, "Example.COM", 0, "/", "http://example.com/"},
        {false, "h", 80, "/a", "http://h/a"},
        {false, "h", 443, "/a", "http://h:443/a"},
        {true, "h", 443, "/a", "https://h/a"},
        {true, "h", 80, "/a", "https://h:80/a"},
        {false, "h", 65535, "/a", "http://h:65535/a"},
        {false, "[FE80::A]", 8080, "/", "http://[fe80::a]:8080/"},
        /* RFC 5952 */
        {false, "[0:0:0:0:0:0:0:1]", 0, "/", "http://[::1]/"},
        {false, "[2001:0DB8::0:1]", 80, "/", "http://[2001:db8::1]/"},
        {false, "h", 0, "?x", "http://h/?x"},
        {false, "h", 0, "", "http://h/"},
        {false, "h", 0, "*", "http://h/"},
        /* the path is the client's, byte by byte */
        {false, "h", 0, "/A/../%2E%2e/./b//c?D=%41;e&&f", "http://h/A/../%2E%2e/./b//c?D=%41;e&&f"},
        {false, "h", 0, "//i/a", "http://h//i/a"},
    };

    for (size_t i = 0; i < LENGTH(rows); i++) {
        size_t wanted = strlen(rows[i].url), size;
        char url[128];
        size_t len = http_write_url(url, sizeof(url), rows[i].https, span_str(rows[i].host),
                                    rows[i].port, span_str(rows[i].path));

        ck_assert_msg(span_equal(span_of(url, len), span_str(rows[i].url)), "%.*s, not %s",
                      (int)len, url, rows[i].url);
        size = strlen(rows[i].host) + strlen(rows[i].path) + HTTP_URL_EXTRA;
        ck_assert_uint_ge(size, wanted);
        ck_assert_uint_eq(http_write_url(url, size, rows[i].https, span_str(rows[i].host),
                                         rows[i].port, span_str(rows[i].path)),
                          wanted);
    }
}
END_TEST

START_TEST(a_url_that_may_not_fit_is_not_written)
{
    char url[32] = "untouched";

    for (size_t size = 0; size < 2 + 3 + HTTP_URL_EXTRA; size++)
        ck_assert_uint_eq(http_write_url(url, size, false, span_str("ho"), 0, span_str("/ab")), 0);
    ck_assert_str_eq(url, "untouched");
    ck_assert_uint_gt(
        http_write_url(url, 2 + 3 + HTTP_URL_EXTRA, false, span_str("ho"), 0, span_str("/ab")), 0);
}
END_TEST

struct spelling {
    const char *sent, *normal; /* NULL: as it was sent; "": none */
};

/* RFC 3986 sections 6.2.2.1 and 6.2.3; percent-encoding and dot segments stay. */
START_TEST(urls_have_one_spelling)
{
    static const struct spelling rows[] = {
        {"http://host.example/a", NULL},
        {"https://host.example/", NULL},
        {"http://host.example:8080/a?b=C", NULL},
        {"http://[::a]/a", NULL},
        {"HTTP://Host.EXAMPLE:80/a", "http://host.example/a"},
        {"Https://HOST:443/A/B?C=D", "https://host/A/B?C=D"},
        {"http://host:443/", NULL},
        {"https://host:80", "https://host:80/"},
        {"http://host:/a", "http://host/a"},
        {"http://host:08080/a", "http://host:8080/a"},
        {"http://host", "http://host/"},
        {"http://host?a=b", "http://host/?a=b"},
        {"http://host#part", "http://host/"},
        {"http://host/a?b#c#d", "http://host/a?b"},
        {"http://[::A]:80", "http://[::a]/"},
        {"http://host/%7ea/../%2F//B;c", NULL},
        {"HTTP://host/%7Ea", "http://host/%7Ea"},
        {"http://host.example./a", "http://host.example/a"},
        {"http://host.example.:80/a", "http://host.example/a"},
        {"http://192.0.2.1/a", NULL},
        {"http://192.0.2.1./a", "http://192.0.2.1/a"},
        {"https://[2001:db8:0:0:0:0:0:1]/a", "https://[2001:db8::1]/a"},
        /* What fetches them may have a spelling for them. */
        {"", ""},
        {"http", ""},
        {"HTTP:", ""},
        {"HTTP://", ""},
        {"HTTP:///a", ""},
        {"HTTP:/Host/", ""},
        {"Host/a", ""},
        {"FTP://Host/a", ""},
        {"httpx://Host/a", ""},
        {"HTTP://User@Host/a#b", ""},
        {"HTTP://Host:0/a", ""},
        {"HTTP://Host:99999/a", ""},
        {"HTTP://B\xc3\xbc"
         "cher/a",
         ""},
        {"HTTP://H%6Fst/a", ""},
        {"http://ho%73t.example/a", ""},
        {"http://host.\xe3\x80\x82xample/a", ""},
        {"http://host,example/a", ""},
        {"HTTP://[::A%25lo]/a", ""},
        {"http://3221225985/a", ""},
        {"http://192.0.513/a", ""},
    };
    char out[64];

    for (size_t i = 0; i < LENGTH(rows); i++) {
        struct span url = http_normal_url(span_str(rows[i].sent), out, sizeof(out));
        const char *normal = rows[i].normal ? rows[i].normal : rows[i].sent;

        ck_assert_msg(span_equal(url, span_str(normal)), "%s: %.*s", rows[i].sent, (int)url.len,
                      url.ptr);
        ck_assert_msg(!url.ptr == !*normal, "%s", rows[i].sent);
        if (!url.ptr)
            continue;
        ck_assert_msg(rows[i].normal || url.ptr == rows[i].sent, "%s", rows[i].sent);
        url = http_normal_prefix(span_str(normal), out, sizeof(out));
        if (rows[i].normal)
            ck_assert_msg(span_equal(url, span_str(normal)), "%s", normal);
    }
}
END_TEST

START_TEST(a_spelling_that_does_not_fit_stays)
{
    static const char sent[] = "HTTP://host/a";
    char out[32] = "untouched";

    for (size_t size = 0; size < 4 + 2 + HTTP_URL_EXTRA; size++)
        ck_assert_ptr_null(http_normal_url(span_str(sent), out, size).ptr);
    for (size_t size = 0; size < strlen("HTTP://host"); size++)
        ck_assert_int_eq(*http_normal_prefix(span_str("HTTP://host"), out, size).ptr, 'H');
    ck_assert_str_eq(out, "untouched");
}
END_TEST

START_TEST(prefixes_have_the_spelling_of_what_they_begin)
{
    static const struct spelling rows[] = {
        {"", NULL},
        {"ht", NULL},
        {"HTTP://", "http://"},
        {"HTTP://Host.EX", "http://host.ex"},
        {"HTTP://Host:80", "http://host:80"},
        {"HTTP://Host:80/", "http://host/"},
        {"HTTPS://Host:443/A", "https://host/A"},
        {"http://host?a", "http://host/?a"},
        {"http://[::A", "http://[::a"},
        {"HTTP://User@Ho", NULL},
        {"HTTP://Host/a#b", NULL},
        {"FTP://Host/", NULL},
    };
    char out[64];

    for (size_t i = 0; i < LENGTH(rows); i++) {
        struct span prefix = http_normal_prefix(span_str(rows[i].sent), out, sizeof(out));
        const char *normal = rows[i].normal ? rows[i].normal : rows[i].sent;

        ck_assert_msg(span_equal(prefix, span_str(normal)), "%s: %.*s", rows[i].sent,
                      (int)prefix.len, prefix.ptr);
    }
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("http/target");
    TCase *tests = tcase_create("target");

    tcase_add_test(tests, authorities);
    tcase_add_test(tests, schemes);
    tcase_add_test(tests, schemes_of_urls);
    tcase_add_test(tests, urls);
    tcase_add_test(tests, a_url_that_may_not_fit_is_not_written);
    tcase_add_test(tests, urls_have_one_spelling);
    tcase_add_test(tests, a_spelling_that_does_not_fit_stays);
    tcase_add_test(tests, prefixes_have_the_spelling_of_what_they_begin);
    suite_add_tcase(suite, tests);
    return suite;
}
