/* Lines of the access log by format strings: what each directive writes. */
#define UNIT_STARTS_NO_THREAD
#include "server/logs/access_pattern.h"

#include <arpa/inet.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/unit.h"

#define ENDED_US ((int64_t)1700000001250500) /* Tue, 14 Nov 2023 22:13:21 GMT */

static struct net_peer peer;

static void
setup(void)
{
    struct sockaddr_in *address = (struct sockaddr_in *)&peer.address;

    memset(&peer, 0, sizeof(peer));
    address->sin_family = AF_INET;
    address->sin_port = htons(4711);
    inet_pton(AF_INET, "192.0.2.7", &address->sin_addr);
}

static struct access_entry
http_entry(const struct access_http *http)
{
    return (struct access_entry){.peer = &peer,
                                 .url = span_str("http://user@a.test:8080/x y?q=\"1\"#f"),
                                 .outcome = "miss",
                                 .user = span_str("a b"),
                                 .response = span_str("Content-Type: text/html\r\n"),
                                 .member = span_str("http://b/|"),
                                 .reason = "uri-miss",
                                 .protocol = "http",
                                 .worker = 3,
                                 .status = 200,
                                 .bytes = 1024,
                                 .us = 1500750,
                                 .fetch_us = 77,
                                 .http = http};
}

#define FIELDS                                                                           \
    "Host: a.test\r\nUser-Agent: m \"x\" \x80\r\nCookie: a=1; sid = 2 3; b\r\nCookie: sid=9\r\n" \
    "Proxy-Authorization: Basic YTpi\r\n"

static const struct access_http http = {
    .method = {"GET", 3},
    .target = {"/x\ty", 4},
    .minor = 1,
    .fields = {FIELDS, sizeof(FIELDS) - 1}};

/* The line without its end. */
static void
expect(const struct access_entry *entry, const char *format, const char *line)
{
    struct log_pattern *pattern;
    struct buf text, why;

    buf_init(&text, 65536);
    buf_init(&why, 1024);
    pattern = log_pattern_compile(format, &why);
    ck_assert_msg(pattern != NULL, "%s", buf_str(&why));
    access_pattern_append(&text, entry, pattern, ENDED_US);
    ck_assert_uint_gt(text.len, 0);
    ck_assert_int_eq(text.data[text.len - 1], '\n');
    buf_truncate(&text, text.len - 1);
    ck_assert_msg(strcmp(buf_str(&text), line) == 0, "%s: \"%s\" instead of \"%s\"", format,
                  buf_str(&text), line);
    log_pattern_free(pattern);
    buf_free(&text);
    buf_free(&why);
}

START_TEST(a_request_over_http)
{
    const struct access_entry entry = http_entry(&http);
    static const char *const lines[][2] = {
        {"%h %a %l %u", "192.0.2.7 192.0.2.7 - a b"},
        {"%{user}x", "a b"},
        {"%{proxy-authorization}i", "-"},
        {"%t", "[14/Nov/2023:22:13:19 +0000]"},
        {"%{end:}t", "[14/Nov/2023:22:13:21 +0000]"},
        {"%{sec}t %{msec}t %{usec}t", "1699999999 1699999999749 1699999999749750"},
        {"%{msec_frac}t %{end:usec_frac}t", "749 250500"},
        {"%{%FT%T}t", "2023-11-14T22:13:19"},
        {"\"%r\"", "\"GET /x\\x09y HTTP/1.1\""},
        {"%r %m", "GET\\x20/x\\x09y\\x20HTTP/1.1 GET"},
        {"%m;%U%q;%H", "GET;/x y?q=\\x221\\x22;HTTP/1.1"},
        {"%U %q", "/x\\x20y ?q=\\x221\\x22"},
        {"%v:%p %V", "a.test:8080 a.test"},
        {"%s %>s %b %B %D %T %{s}T %{ms}T %{us}T", "200 200 1024 1024 1500750 1 1 1500 1500750"},
        {"%{content-type}o|%{Absent}o|%{remote}p", "text/html|-|4711"},
        {"%{user-agent}i|%{Absent}i", "m \\x22x\\x22 \\x80|-"},
        {"%{sid}C|%{b}C|%{a}C", "2 3|-|1"},
        {"%{url}x", "http://user@a.test:8080/x y?q=\\x221\\x22#f"},
        {"%{key}x|%{member}x", "http://user@a.test:8080/x y?q=\\x221\\x22#f|http://b/|"},
        {"%{member}x %D", "http://b/| 1500750"},
        {"%{outcome}x %{reason}x %{error}x %{protocol}x %{fetch_us}x %{victims}x %{worker}x",
         "miss uri-miss - http 77 - 3"},
        {"100%% %404D %!404D", "100% - 1500750"},
    };

    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
        expect(&entry, lines[i][0], lines[i][1]);
}
END_TEST

START_TEST(a_call_over_rpc)
{
    const struct access_entry entry = {.peer = &peer,
                                       .url = span_str("https://[::1]/"),
                                       .outcome = "timed_out",
                                       .error = span_str("took\ntoo long"),
                                       .protocol = "rpc1",
                                       .fetch_us = -1};

    expect(&entry, "%v:%p \"%r\" %U%q", "[::1]:443 \"GET https://[::1]/ RPC/1\" /");
    expect(&entry, "%s %b %B %{fetch_us}x", "- - 0 -");
    expect(&entry, "%{User-Agent}i %{a}C %{reason}x %{error}x", "- - - took\\x0atoo long");
}
END_TEST

/* A request that could not be read, a tunnel, a client that is a user, a path for a reverse proxy. */
START_TEST(requests_without_some_of_it)
{
    const struct access_http unread = {.minor = 1};
    struct access_entry entry = {.peer = &peer, .url = {"", 0}, .outcome = "local", .http = &unread};
    struct sockaddr_storage *address = &peer.address;

    expect(&entry, "\"%r\" %m %U %v %p %{url}x", "\"-\" - - - - -");
    entry.url = span_str("b.test:443");
    expect(&entry, "%v:%p %U", "b.test:443 -");
    entry.url = span_str("/path?x");
    expect(&entry, "%v:%p %U%q", "-:- /path?x");
    entry.url = span_str("http://a.test:99999x/");
    expect(&entry, "%v:%p", "a.test:80");
    entry.url = span_str("http://a b\tc|:8080/");
    expect(&entry, "%v:%p %v|", "a\\x20b\\x09c|:8080 a\\x20b\\x09c\\x7c|");
    entry.url = span_str("http://[a b\n|]:81/");
    expect(&entry, "%v:%p %v|", "[a\\x20b\\x0a|]:81 [a\\x20b\\x0a|]|");
    memset(address, 0, sizeof(*address));
    address->ss_family = AF_UNIX;
    peer.has_uid = true;
    peer.uid = 12;
    expect(&entry, "%h %b %{remote}p %{Age}o", "unix:12 - - -");
}
END_TEST

START_TEST(evicted_pages)
{
    struct object *pages[2];
    struct cache_victims victims = {.pages = pages, .count = 2};
    struct access_entry entry = http_entry(&http);

    for (int i = 0; i < 2; i++) {
        pages[i] = object_make(
            &(struct object_parts){.url = span_str(i ? "http://b/" : "http://a/"), .status = 200});
        ck_assert_ptr_nonnull(pages[i]);
    }
    entry.victims = &victims;
    expect(&entry, "%{victims}x|%D", "http://a/ http://b/|1500750");
    expect(&entry, "%{victims}x %D", "http://a/\\x20http://b/ 1500750");
    for (int i = 0; i < 2; i++)
        object_release(&pages[i]);
}
END_TEST

static Suite *
unit_suite(void)
{
    Suite *suite = suite_create("server/logs/access_pattern");
    TCase *tc = tcase_create("lines");

    tcase_add_checked_fixture(tc, setup, NULL);
    tcase_add_test(tc, a_request_over_http);
    tcase_add_test(tc, a_call_over_rpc);
    tcase_add_test(tc, requests_without_some_of_it);
    tcase_add_test(tc, evicted_pages);
    suite_add_tcase(suite, tc);
    return suite;
}
