/* URLs, header blocks of requests and where connections go. */
#define UNIT_STARTS_NO_THREAD

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>

#include "fetch/headers.h"
#include "fetch/settings.h"
#include "tests/unit/unit.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

START_TEST(urls_that_can_be_fetched)
{
    static const struct {
        const char *url, *host, *origin;
        bool literal;
    } cases[] = {
        {"http://example.com/", "example.com", "http://example.com:80", false},
        {"HTTPS://Example.COM:8443/a?b#c", "example.com", "https://example.com:8443", false},
        {"http://192.0.2.1/", "192.0.2.1", "http://192.0.2.1:80", true},
        {"http://3221225985/", "192.0.2.1", "http://192.0.2.1:80", true},
        {"http://0300.0.2.1/", "192.0.2.1", "http://192.0.2.1:80", true},
        {"http://0xc0.0x0.0x2.0x1/", "192.0.2.1", "http://192.0.2.1:80", true},
        {"http://127.1/", "127.0.0.1", "http://127.0.0.1:80", true},
        {"http://[2001:DB8::1]:81/", "2001:db8::1", "http://2001:db8::1:81", true},
        {"http://[::ffff:127.0.0.1]/", "::ffff:127.0.0.1", "http://::ffff:127.0.0.1:80", true},
        {"http://user:word@example.com/", "example.com", "http://example.com:80", false},
        {"http://under_score.example./", "under_score.example", "http://under_score.example:80",
         false},
        {"http://192.0.2.1./", "192.0.2.1", "http://192.0.2.1:80", true},
        {"http://192.0.2.1%2e/", "192.0.2.1", "http://192.0.2.1:80", true},
    };

    for (size_t i = 0; i < LENGTH(cases); i++) {
        struct target target;
        bool has_user = !cases[i].literal;
        char why[256] = "";
        enum fetch_error error = target_parse(&target, span_str(cases[i].url), why, sizeof(why));

        ck_assert_msg(error == FETCH_OK, "%s: %s", cases[i].url, why);
        ck_assert_str_eq(target.host, cases[i].host);
        ck_assert_str_eq(target.origin, cases[i].origin);
        ck_assert_msg(target.literal == cases[i].literal, "%s", cases[i].url);
        target_free(&target);
        ck_assert_int_eq(fetch_check_url(span_str(cases[i].url), &has_user, why, sizeof(why)),
                         FETCH_OK);
        ck_assert_msg(has_user == (strstr(cases[i].url, "user:") != NULL), "%s", cases[i].url);
    }
}
END_TEST

START_TEST(user_information_is_seen_wherever_libcurl_sees_it)
{
    static const struct {
        const char *url;
        bool has_user;
    } cases[] = {
        {"http://user:word@h/", true}, {"http://user@h/", true},
        {"http://:word@h/", true},     {"http://user:@h/", true},
        {"HTTP://user@h:80?x", true},  {"http:/user@h/", true},
        {"http://user@h#x", true},     {"https://user:word@[2001:db8::1]:8443/", true},
        {"http://h/", false},          {"http://h/@", false},
        {"http://h/a@b:c", false},     {"http://h?a@b", false},
        {"http://h#a@b", false},       {"http://h/?url=http://user:word@i/", false},
    };

    for (size_t i = 0; i < LENGTH(cases); i++) {
        bool has_user = !cases[i].has_user;
        char why[256] = "";

        ck_assert_msg(fetch_check_url(span_str(cases[i].url), &has_user, why, sizeof(why)) ==
                          FETCH_OK,
                      "%s: %s", cases[i].url, why);
        ck_assert_msg(has_user == cases[i].has_user, "%s", cases[i].url);
    }
}
END_TEST

/* Each is refused, or cached under the URL that is fetched, which has one spelling. */
START_TEST(what_is_fetched_is_what_is_keyed)
{
    static const struct {
        const char *sent, *normal; /* NULL: as it was sent; "": refused */
    } rows[] = {
        {"http:/a.example/b", "http://a.example/b"},
        {"http:///a.example/b", "http://a.example/b"},
        {"http:////a.example/b", ""},
        {"http:a.example/b", ""},
        {"HTTP://A.Example:80", "http://a.example/"},
        {"http://%61.ex%41mple/b", "http://a.example/b"},
        {"http://a%2eexample/b", "http://a.example/b"},
        {"http://a%2fb.example/b", ""},
        {"http://a%00.example/b", ""},
        {"http://a.example%20/b", ""},
        {"http://b\xc3\xbc"
         "cher.example/b",
         "http://xn--bcher-kva.example/b"},
        {"http://a\xe3\x80\x82"
         "example/b",
         "http://a.example/b"},
        {"http:\\\\a.example\\b", ""},
        {"http://a.example\\b", ""},
        {"http://a.example/b\\c", NULL},
        {"http://a\t.example/b", ""},
        {"\thttp://a.example/b", ""},
        {"http://a.example/\tb", ""},
        {"http://a.example /b", ""},
        {"http://@a.example/b", ""},
        {"http://:@a.example/b", ""},
        {"http:/@a.example/b", ""},
        {"http://0x7f.1/b", "http://127.0.0.1/b"},
        {"http://127.1:8000/b", "http://127.0.0.1:8000/b"},
        {"http://2130706433/b", "http://127.0.0.1/b"},
        {"http://017700000001/b", "http://127.0.0.1/b"},
        {"http://%31%32%37.0.0.1/b", "http://127.0.0.1/b"},
        {"http://\xe2\x91\xa0\xe2\x91\xa1\xe2\x91\xa6.0.0.1/b", "http://127.0.0.1/b"},
        {"http://\xe2\x91\xa0\xe2\x91\xa1\xe2\x91\xa6.1/b", ""},
        {"http://127.0.0.1./b", "http://127.0.0.1/b"},
        {"http://127.1./b", ""},
        {"http://0x7f.1./b", ""},
        {"http://127.0.0.1.1/b", ""},
        {"http://127.0.0.256/b", ""},
        {"http://a.1/b", ""},
        {"http://a.example./b", "http://a.example/b"},
        {"http://a.example.:80/b", "http://a.example/b"},
        {"http://a.example../b", ""},
        {"http://.a.example/b", ""},
        {"http://a..example/b", ""},
        {"http://[0:0::0:1]/b", "http://[::1]/b"},
        {"http://[::ffff:7f00:1]/b", "http://[::ffff:127.0.0.1]/b"},
        {"http://[fe80::1%25lo]/b", ""},
        {"http://[fe80::1%lo]/b", ""},
        {"http://a.example:080/b", "http://a.example/b"},
        {"http://a.example:/b", "http://a.example/b"},
        {"http://a.example:0/b", ""},
        {"http://a.example:+80/b", ""},
        {"http://a.example?b", "http://a.example/?b"},
        {"http://a.example#b", "http://a.example/"},
        /* path and query are the origin's to read */
        {"http://a.example/%2F%2f/../b//", NULL},
        {"http://a.example/?%c3%BC", NULL},
    };
    char normal[FETCH_NORMAL_SIZE], again[FETCH_NORMAL_SIZE];

    ck_assert(setlocale(LC_CTYPE, "C.UTF-8")); /* as sunproxyd does */
    for (size_t i = 0; i < LENGTH(rows); i++) {
        const char *wanted = rows[i].normal ? rows[i].normal : rows[i].sent;
        struct span url = fetch_normal_url(span_str(rows[i].sent), normal, sizeof(normal));
        enum fetch_error error;
        struct target target;
        bool has_user = false;
        char why[256] = "";

        error = fetch_check_url(url, &has_user, why, sizeof(why));
        if (!*wanted) {
            ck_assert_msg(error == FETCH_BAD_URL || has_user, "%s: %.*s", rows[i].sent,
                          (int)url.len, url.ptr);
            continue;
        }
        ck_assert_msg(span_equal(url, span_str(wanted)), "%s: %.*s", rows[i].sent, (int)url.len,
                      url.ptr);
        ck_assert_msg(error == FETCH_OK && !has_user, "%s: %s", rows[i].sent, why);
        ck_assert(span_equal(fetch_normal_url(url, again, sizeof(again)), url));
        if (strncmp(rows[i].sent, "http://", 7) == 0 && strchr(rows[i].sent + 7, '/'))
            ck_assert(
                span_equal(fetch_normal_prefix(span_str(rows[i].sent), again, sizeof(again)), url));
        ck_assert_int_eq(target_parse(&target, url, why, sizeof(why)), FETCH_OK);
        ck_assert_msg(span_equal(span_str(target.text), url), "%s: %s", rows[i].sent, target.text);
        target_free(&target);
    }
    setlocale(LC_CTYPE, "C");
}
END_TEST

/* fetch_check_url() has a short way for usual URLs, which must agree with the parser's. */
START_TEST(the_check_agrees_with_the_parser)
{
    static const char *const seeds[] = {
        "http://example.com/", "https://h:8443/a?b#c", "http://192.0.2.1:80/x",
        "http://a-b.c./@",     "http://0x7f.1:65535/",
    };
    static const char bytes[] = "/:.@?#%[]-_\\ \t\x7f\x80"
                                "0159aZxX*,;&=+!";
    unsigned accepted = 0, refused = 0;
    uint32_t state = 1;

    for (unsigned i = 0; i < 200000; i++) {
        const char *seed = seeds[i % LENGTH(seeds)];
        char url[64], why[256] = "";
        size_t len = strlen(seed), changes;
        struct target target;
        enum fetch_error parsed, checked;
        bool has_user = false;

        memcpy(url, seed, len);
        for (changes = 0; changes < 1 + i % 3; changes++) {
            size_t at;

            state = state * 1664525u + 1013904223u;
            at = (state >> 8) % len;
            if (state >> 31) {
                memmove(url + at + 1, url + at, len - at);
                len++;
            }
            url[at] = bytes[(state >> 16) % (sizeof(bytes) - 1)];
        }
        parsed = target_parse(&target, span_of(url, len), why, sizeof(why));
        checked = fetch_check_url(span_of(url, len), &has_user, why, sizeof(why));
        ck_assert_msg(parsed == checked, "%.*s: %d, and %d from the check", (int)len, url, parsed,
                      checked);
        if (parsed == FETCH_OK)
            ck_assert_msg(has_user == target.has_user, "%.*s", (int)len, url);
        accepted += parsed == FETCH_OK;
        refused += parsed != FETCH_OK;
        target_free(&target);
    }
    ck_assert_uint_gt(accepted, 20000);
    ck_assert_uint_gt(refused, 20000);
}
END_TEST

/* Other queries keep their spelling. */
START_TEST(queries_beyond_ascii)
{
    static const struct {
        const char *url, *text;
    } rows[] = {
        {"http://h/?\xc3\xbc", "http://h/?%c3%bc"},
        {"http://h?a=\xff&b=+", "http://h/?a=%ff&b=+"},
        {"http://h/?%C3%bc|", "http://h/?%C3%bc|"},
    };

    for (size_t i = 0; i < LENGTH(rows); i++) {
        struct target target;
        char why[256];

        ck_assert(target_parse(&target, span_str(rows[i].url), why, sizeof(why)) == FETCH_OK);
        ck_assert_str_eq(target.text, rows[i].text);
        target_free(&target);
    }
}
END_TEST

START_TEST(names_beyond_ascii)
{
    static const char url[] = "http://B\xc3\xbc"
                              "cher.example/";
    struct target target;
    char why[256];

    ck_assert_int_eq(target_parse(&target, span_str(url), why, sizeof(why)), FETCH_BAD_URL);
    if (!setlocale(LC_CTYPE, "C.UTF-8"))
        return;
    ck_assert_int_eq(target_parse(&target, span_str(url), why, sizeof(why)), FETCH_OK);
    ck_assert_str_eq(target.host, "xn--bcher-kva.example");
    target_free(&target);
    setlocale(LC_CTYPE, "C");
}
END_TEST

START_TEST(urls_that_cannot)
{
    static const char *const cases[] = {
        "",
        "example.com",
        "/path",
        "ftp://example.com/",
        "file:///etc/passwd",
        "gopher://example.com/",
        "javascript:alert(1)",
        "http://",
        "http:///",
        "http://example.com:99999/",
        "http://example.com:0/",
        "http://example.com:x/",
        "http://exa mple.com/",
        "http://example.com/a b",
        "http://example.com/\r\nHost: x",
        "http://*/",
        "http://a,b/",
        "http://a:b:c/",
        "http://[::1/",
        "http://[nonsense]/",
        "http://a%00b/",
        "http://%2a/",
        "http://-\x7f/",
        "http://192.0.2.1../",
        "http://192.0.2.1.%2e/",
        "http://127.1./",
        "http://2130706433./",
        "http://./",
    };
    bool has_user;
    char why[256];
    char *longest = malloc(URL_MAX + 2);

    for (size_t i = 0; i < LENGTH(cases); i++) {
        why[0] = '\0';
        ck_assert_msg(fetch_check_url(span_str(cases[i]), &has_user, why, sizeof(why)) ==
                          FETCH_BAD_URL,
                      "%s", cases[i]);
        ck_assert_msg(why[0] != '\0', "%s", cases[i]);
    }
    ck_assert_int_eq(fetch_check_url(span_of("http://h/a\0b", 12), &has_user, why, sizeof(why)),
                     FETCH_BAD_URL);
    memset(longest, 'a', URL_MAX + 1);
    memcpy(longest, "http://h/", 9);
    ck_assert_int_eq(fetch_check_url(span_of(longest, URL_MAX), &has_user, why, sizeof(why)),
                     FETCH_OK);
    ck_assert_int_eq(fetch_check_url(span_of(longest, URL_MAX + 1), &has_user, why, sizeof(why)),
                     FETCH_BAD_URL);
    free(longest);
}
END_TEST

/* Of a plain GET. */
static enum fetch_error
check_headers(struct span headers, char *why, size_t why_size)
{
    return headers_check(&(struct request){0}, headers, why, why_size);
}

START_TEST(request_headers)
{
    static const char *const good[] = {
        "",
        "Accept: text/html\r\n",
        "X-Empty:\r\nX-B:  b \t\r\n",
        "If-None-Match: \"a:b\"\r\nCookie: a=b\r\nAuthorization: Basic x\r\n",
        "X-Bytes: \xc3\xbc\r\n",
        "Host-Of-Mine: a\r\n",
        "Accept-Encoding: gzip\r\nUser-Agent: me\r\n",
    };
    static const char *const bad[] = {
        "Accept: a",
        "Accept: a\n",
        "Accept a\r\n",
        ": a\r\n",
        " Accept: a\r\n",
        "Accept : a\r\n",
        "A: b\r\n folded\r\n",
        "A: b\r\n\r\n",
        "A: b\rc\r\n",
        "A: \x01\r\n",
        "A\xc3\xbc: b\r\n",
        "Host: a\r\n",
        "hOST: a\r\n",
        "Connection: close\r\n",
        "Content-Length: 1\r\n",
        "Transfer-Encoding: chunked\r\n",
        "TE: trailers\r\n",
        "Trailer: a\r\n",
        "Upgrade: h2c\r\n",
        "Keep-Alive: 1\r\n",
        "Proxy-Authorization: x\r\n",
        "proxy-anything: x\r\n",
        "Expect: 100-continue\r\n",
    };
    char why[256];
    char *longest = malloc(HEADERS_MAX + 1);

    for (size_t i = 0; i < LENGTH(good); i++)
        ck_assert_msg(check_headers(span_str(good[i]), why, sizeof(why)) == FETCH_OK, "%s",
                      good[i]);
    for (size_t i = 0; i < LENGTH(bad); i++) {
        why[0] = '\0';
        ck_assert_msg(check_headers(span_str(bad[i]), why, sizeof(why)) == FETCH_BAD_HEADERS, "%s",
                      bad[i]);
        ck_assert_msg(why[0] != '\0', "%s", bad[i]);
    }
    ck_assert_int_eq(check_headers(span_of("A: b\0c\r\n", 8), why, sizeof(why)), FETCH_BAD_HEADERS);
    memset(longest, 'a', HEADERS_MAX + 1);
    memcpy(longest, "A:", 2);
    memcpy(longest + HEADERS_MAX - 2, "\r\n", 2);
    ck_assert_int_eq(check_headers(span_of(longest, HEADERS_MAX), why, sizeof(why)), FETCH_OK);
    memcpy(longest + HEADERS_MAX - 2, "a\r\n", 3);
    ck_assert_int_eq(check_headers(span_of(longest, HEADERS_MAX + 1), why, sizeof(why)),
                     FETCH_BAD_HEADERS);
    free(longest);
}
END_TEST

/* These lines, and nothing beside them. */
static void
expect_lines(const char *fields, const char *host, const char *const *lines)
{
    const struct request request = {0};
    struct curl_slist *list, *line;

    ck_assert(headers_to_list(
        &request, &(struct headers_sent){.fields = span_str(fields), .host = span_str(host)},
        &list));
    for (line = list; *lines; lines++, line = line->next) {
        ck_assert_ptr_nonnull(line);
        ck_assert_str_eq(line->data, *lines);
    }
    ck_assert_ptr_null(line);
    curl_slist_free_all(list);
}

START_TEST(request_headers_for_libcurl)
{
    /* libcurl sends no Accept of its own then. */
    expect_lines("A:  b \r\nEmpty:\r\nCOOKIE: c\r\nauthorization: d\r\nE: f:g\r\n", "",
                 (const char *const[]){"A: b", "Empty;", "COOKIE: c", "authorization: d", "E: f:g",
                                       "Accept:", NULL});
    expect_lines("accept: a\r\n", "h:81", (const char *const[]){"accept: a", "Host: h:81", NULL});
    expect_lines("", "", (const char *const[]){"Accept:", NULL});
}
END_TEST

/* The origin is asked for what the response is stored under. */
START_TEST(dot_segments_stay)
{
    static const char *const urls[] = {"http://h/a/../b", "http://h/./..",
                                       "http://h/a/%2e%2e/b?../c"};

    for (size_t i = 0; i < LENGTH(urls); i++) {
        struct target target;
        char why[256];

        ck_assert_int_eq(target_parse(&target, span_str(urls[i]), why, sizeof(why)), FETCH_OK);
        ck_assert_str_eq(target.text, urls[i]);
        target_free(&target);
    }
}
END_TEST

START_TEST(where_redirects_lead)
{
    static const struct {
        const char *from, *location, *to;
        bool same_origin;
    } rows[] = {
        {"http://h.example:81/a/b", "/x", "http://h.example:81/x", true},
        {"http://h.example:81/a/b", "x", "http://h.example:81/a/x", true},
        {"http://h.example:81/a/b", "../x", "http://h.example:81/x", true},
        {"http://h.example:81/a/b", "/a/./b/../c/..", "http://h.example:81/a/", true},
        {"http://h.example:81/a/b", "http://other/a/../b", "http://other/b", false},
        {"http://h.example:81/a/b", "?q", "http://h.example:81/a/b?q", true},
        {"http://h.example:81/a/b", "//other/x", "http://other/x", false},
        {"http://h.example:81/a/b", "https://other", "https://other/", false},
        {"http://h.example:81/a/b", "/a b", "http://h.example:81/a%20b", true},
        {"http://h.example:81/a/b", "//H.EXAMPLE:81/x", "http://h.example:81/x", true},
        {"http://h/a", "http://h:80/x", "http://h:80/x", true},
        {"http://h/a", "https://h/a", "https://h/a", false},
        {"http://h/a", "http://h:81/a", "http://h:81/a", false},
        {"http://h/a", "//www.h/a", "http://www.h/a", false},
        /* The dot segments of the URL that redirects are removed, too. */
        {"http://h/a/b/../c/d", "../x", "http://h/a/x", true},
        /* A name and a password stay with the host that they were given for. */
        {"http://u:p@h/a", "/x", "http://u:p@h/x", true},
        {"http://u:p@h/a", "//other/x", "http://other/x", false},
    };

    for (size_t i = 0; i < LENGTH(rows); i++) {
        bool same_origin = !rows[i].same_origin;
        struct buf next;
        char why[256];

        buf_init(&next, URL_MAX + 1);
        buf_append_str(&next, ">");
        ck_assert_msg(fetch_follow(span_str(rows[i].from), span_str(rows[i].location), &next,
                                   &same_origin, why, sizeof(why)) == FETCH_OK,
                      "%s: %s", rows[i].location, why);
        ck_assert_str_eq(buf_str(&next) + 1, rows[i].to);
        ck_assert_msg(same_origin == rows[i].same_origin, "%s, %s", rows[i].from, rows[i].location);
        buf_free(&next);
    }
}
END_TEST

START_TEST(redirects_that_lead_nowhere)
{
    static char too_long[URL_MAX + 1] = "/", spaces[URL_MAX / 2] = "/";
    const struct {
        struct span url, location;
        enum fetch_error error;
    } rows[] = {
        {span_str("http://h/"), span_str("file:///etc/passwd"), FETCH_BAD_URL},
        {span_str("http://h/"), span_str("ftp://other/"), FETCH_BAD_URL},
        {span_str("http://h/"), span_str("http://"), FETCH_BAD_URL},
        {span_str("http://h/"), span_str("http://a:b:c/"), FETCH_BAD_URL},
        {span_str("http://h/"), span_of("/a\0b", 4), FETCH_BAD_URL},
        {span_str("http://h/"), span_of(too_long, URL_MAX), FETCH_BAD_URL},
        {span_str("http://h/"), span_of(spaces, sizeof(spaces) - 1), FETCH_BAD_URL},
        {span_str("file:///a"), span_str("/x"), FETCH_BAD_URL},
        /* A buffer that is too small. */
        {span_str("http://host.example/"), span_str("/0123456789"), FETCH_INTERNAL},
    };

    memset(too_long + 1, 'a', sizeof(too_long) - 1);
    memset(spaces + 1, ' ', sizeof(spaces) - 2);
    for (size_t i = 0; i < LENGTH(rows); i++) {
        char why[256] = "";
        bool same_origin;
        struct buf next;

        buf_init(&next, rows[i].error == FETCH_INTERNAL ? 20 : URL_MAX);
        ck_assert_msg(fetch_follow(rows[i].url, rows[i].location, &next, &same_origin, why,
                                   sizeof(why)) == rows[i].error,
                      "%zu: %s", i, why);
        ck_assert_str_ne(why, "");
        ck_assert_uint_eq(next.len, 0);
        buf_free(&next);
    }
}
END_TEST

static struct route
route_of(const struct settings *settings, const char *url)
{
    struct target target;
    static char host[256];
    struct route route;
    char why[256];

    ck_assert_int_eq(target_parse(&target, span_str(url), why, sizeof(why)), 0);
    route = settings_route(settings, &target);
    snprintf(host, sizeof(host), "%s", route.host);
    route.host = host;
    target_free(&target);
    return route;
}

START_TEST(where_connections_go)
{
    static const char *const rules[] = {"a.example:80:b.example:81",
                                        "[2001:db8::1]:80:[::1]:8080",
                                        "C.example::127.0.0.1:",
                                        "d.example:443::444",
                                        "::last:9",
                                        NULL};
    struct address_policy *addresses = address_policy_create();
    struct fetch_config config;
    struct settings settings;
    struct route route;
    char why[256];

    fetch_config_default(&config);
    config.addresses = addresses;
    config.connect_to = rules;
    ck_assert_msg(settings_init(&settings, &config, why, sizeof(why)), "%s", why);
    route = route_of(&settings, "http://A.example/");
    ck_assert_str_eq(route.host, "b.example");
    ck_assert_uint_eq(route.port, 81);
    ck_assert(route.by_operator && route.redirected && !route.proxied);
    route = route_of(&settings, "http://[2001:db8::1]/");
    ck_assert_str_eq(route.host, "::1");
    ck_assert_uint_eq(route.port, 8080);
    route = route_of(&settings, "https://c.example/");
    ck_assert_str_eq(route.host, "127.0.0.1");
    ck_assert_uint_eq(route.port, 443);
    route = route_of(&settings, "https://d.example/");
    ck_assert_str_eq(route.host, "d.example");
    ck_assert_uint_eq(route.port, 444);
    ck_assert(!route.by_operator);
    route = route_of(&settings, "http://d.example/");
    ck_assert_str_eq(route.host, "last");
    settings_free(&settings);
    address_policy_destroy(addresses);
}
END_TEST

START_TEST(ports_of_other_protocols)
{
    static const char *const some[] = {"25", "8080", NULL};
    static const char *const any[] = {"any", NULL};
    static const char *const bad[][2] = {{"0", NULL}, {"65536", NULL}, {"x", NULL}, {"", NULL}};
    struct address_policy *addresses = address_policy_create();
    struct settings settings;
    struct fetch_config with;
    unsigned blocked = 0;
    char why[256];

    fetch_config_default(&with);
    with.addresses = addresses;
    ck_assert(settings_init(&settings, &with, why, sizeof(why)));
    for (unsigned port = 0; port <= UINT16_MAX; port++)
        blocked += !settings_permit_port(&settings, (uint16_t)port);
    ck_assert_uint_eq(blocked, 83);
    ck_assert(!settings_permit_port(&settings, 25) && !settings_permit_port(&settings, 10080));
    ck_assert(settings_permit_port(&settings, 80) && settings_permit_port(&settings, 443));
    settings_free(&settings);
    with.allow_ports = some;
    ck_assert(settings_init(&settings, &with, why, sizeof(why)));
    ck_assert(settings_permit_port(&settings, 25) && !settings_permit_port(&settings, 22));
    settings_free(&settings);
    with.allow_ports = any;
    ck_assert(settings_init(&settings, &with, why, sizeof(why)));
    ck_assert(settings_permit_port(&settings, 25) && settings_permit_port(&settings, 22));
    settings_free(&settings);
    for (size_t i = 0; i < LENGTH(bad); i++) {
        with.allow_ports = bad[i];
        ck_assert(!settings_init(&settings, &with, why, sizeof(why)));
        settings_free(&settings);
    }
    address_policy_destroy(addresses);
}
END_TEST

START_TEST(configurations_that_cannot_be)
{
    static const char *const bad_rules[] = {
        "",
        "a",
        "a:80",
        "a:80:b",
        "a:80:b:81:c",
        "a:x:b:81",
        "a:80:b:70000",
        "a:0:b:80",
        "[::1:80:b:81",
        "[::1]x:80:b:81",
        "a/b:80:c:81",
        "a:80:[nonsense]:81",
        "a:80:*:81",
    };
    static const char *const bad_proxies[] = {"", "proxy", "socks5://h:1", "http://", "file:///x"};
    struct address_policy *addresses = address_policy_create();
    struct fetch_config config, bad;
    struct settings settings;
    char why[512];

    fetch_config_default(&config);
    config.addresses = addresses;
    for (size_t i = 0; i < LENGTH(bad_rules); i++) {
        const char *const rules[] = {bad_rules[i], NULL};

        bad = config;
        bad.connect_to = rules;
        why[0] = '\0';
        ck_assert_msg(!settings_init(&settings, &bad, why, sizeof(why)), "%s", bad_rules[i]);
        ck_assert(why[0] != '\0');
        settings_free(&settings);
    }
    for (size_t i = 0; i < LENGTH(bad_proxies); i++) {
        bad = config;
        bad.upstream_proxy = bad_proxies[i];
        ck_assert_msg(!settings_init(&settings, &bad, why, sizeof(why)), "%s", bad_proxies[i]);
        settings_free(&settings);
    }
    bad = config;
    bad.cacert = "/nonexistent/ca.pem";
    ck_assert(!settings_init(&settings, &bad, why, sizeof(why)));
    settings_free(&settings);
    bad.cacert = "/dev/null";
    ck_assert(!settings_init(&settings, &bad, why, sizeof(why)));
    settings_free(&settings);
    bad = config;
    bad.max_active = 0;
    ck_assert_ptr_null(fetcher_create(&bad, why, sizeof(why)));
    bad = config;
    bad.stall_timeout_us = 0;
    ck_assert_ptr_null(fetcher_create(&bad, why, sizeof(why)));
    bad = config;
    bad.total_timeout_us = INT64_MAX;
    ck_assert_ptr_null(fetcher_create(&bad, why, sizeof(why)));
    bad = config;
    bad.dns_ttl_us = -1;
    ck_assert_ptr_null(fetcher_create(&bad, why, sizeof(why)));
    bad = config;
    bad.addresses = NULL;
    ck_assert_ptr_null(fetcher_create(&bad, why, sizeof(why)));
    address_policy_destroy(addresses);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("fetch/url");
    TCase *tc = tcase_create("url");

    tcase_add_test(tc, urls_that_can_be_fetched);
    tcase_add_test(tc, user_information_is_seen_wherever_libcurl_sees_it);
    tcase_add_test(tc, what_is_fetched_is_what_is_keyed);
    tcase_add_test(tc, the_check_agrees_with_the_parser);
    tcase_add_test(tc, queries_beyond_ascii);
    tcase_add_test(tc, names_beyond_ascii);
    tcase_add_test(tc, urls_that_cannot);
    tcase_add_test(tc, request_headers);
    tcase_add_test(tc, request_headers_for_libcurl);
    tcase_add_test(tc, dot_segments_stay);
    tcase_add_test(tc, where_redirects_lead);
    tcase_add_test(tc, redirects_that_lead_nowhere);
    tcase_add_test(tc, where_connections_go);
    tcase_add_test(tc, ports_of_other_protocols);
    tcase_add_test(tc, configurations_that_cannot_be);
    suite_add_tcase(suite, tc);
    return suite;
}
