/* Which fields of a request go on to the origin. */
#include "http/hop_by_hop.h"

#include "tests/unit/unit.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

static struct buf out;

static void
set_up(void)
{
    buf_init(&out, 1 << 16);
}

static void
tear_down(void)
{
    buf_free(&out);
}

static void
expect_forwarded(const char *fields, const struct http_forwarding *forwarding, const char *wanted)
{
    char kept[1000];

    ck_assert_uint_lt(strlen(fields), sizeof(kept));
    buf_reset(&out);
    ck_assert(http_forward_fields(&out, span_of(kept, http_remove_listed(span_str(fields), kept)),
                                  forwarding));
    ck_assert_msg(span_equal(buf_span(&out), span_str(wanted)), "\"%s\": \"%s\", not \"%s\"",
                  fields, buf_str(&out), wanted);
}

START_TEST(what_goes_on)
{
    static const struct {
        const char *fields, *wanted;
    } rows[] = {
        {"", ""},
        {"Accept: */*\r\nX: y \r\n", "Accept: */*\r\nX: y \r\n"},
        /* RFC 9110 section 7.6.1 */
        {"Connection: close\r\nKeep-Alive: 5\r\nA: b\r\n", "A: b\r\n"},
        {"TE: trailers\r\nTrailer: X\r\nUpgrade: x\r\nTransfer-Encoding: chunked\r\n", ""},
        {"Proxy-Connection: close\r\nproxy-authorization: x\r\nProxy-Authenticate: y\r\n", ""},
        {"A: b\r\nc: D\r\nConnection: close, C\r\n", "A: b\r\n"},
        {"Connection: A\r\nA: b\r\nC: d\r\nConnection: C, E\r\ne: f\r\nG: h\r\n", "G: h\r\n"},
        {"Connection: x_y\r\nX_Y: 1\r\nX-Y: 2\r\n", "X-Y: 2\r\n"},
        {"Connection: x-y\r\nX_Y: 1\r\nX-Y: 2\r\n", ""},
        {"Connection: Authorization, Cookie, Cache-Control, Range, If-None-Match\r\n"
         "Authorization: a\r\nCookie: b\r\nCache-Control: c\r\nRange: d\r\nIf-None-Match: e\r\n",
         ""},
        {"Connection: a.b, A-C\r\nA_B: 1\r\nA.B: 2\r\na.c: 3\r\n", "A_B: 1\r\n"},
        /* what Connection must not remove */
        {"Connection: Via, Content-Type, Max-Forwards\r\nVia: 1.1 a\r\nContent-Type: b/c\r\n"
         "Max-Forwards: 3\r\n",
         "Via: 1.1 a\r\nContent-Type: b/c\r\nMax-Forwards: 3\r\n"},
        /* what the fetcher sets */
        {"Host: h\r\nContent-Length: 5\r\nExpect: 100-continue\r\nHTTP2-Settings: x\r\n", ""},
        {"Connection: Host, Content-Length\r\nHost: h\r\nContent-Length: 5\r\n", ""},
        /* aliases that are the same for CGI */
        {"Content_Length: 5\r\nTransfer_Encoding: chunked\r\nTransfer-encoding_: x\r\n",
         "Transfer-encoding_: x\r\n"},
        {"X_Forwarded_For: 1.2.3.4\r\nPROXY_FOO: x\r\nHost_: h\r\nA_B: c\r\n",
         "Host_: h\r\nA_B: c\r\n"},
        {"Transfer.Encoding: chunked\r\nContent~Length: 5\r\nX.Forwarded+For: 1.2.3\r\nA.B: c\r\n",
         "A.B: c\r\n"},
        {"Accept_Encoding: br\r\nIf.None.Match: *\r\nAccept-Encoding: gzip\r\n",
         "Accept-Encoding: gzip\r\n"},
        /* HTTP_PROXY of CGI */
        {"Proxy: http://a/\r\nPROXY: b\r\nProxied: c\r\n", "Proxied: c\r\n"},
        /* what a client says about itself */
        {"X-Forwarded-For: 1.2.3.4\r\nX-Forwarded-Host: i\r\nX-Forwarded-Whatever: j\r\n", ""},
        {"Forwarded: for=1.2.3.4\r\nX-Real-IP: 1.2.3.4\r\nX-Forward: a\r\n", "X-Forward: a\r\n"},
        /* other methods and URLs */
        {"X-HTTP-Method-Override: DELETE\r\nX-Original-URL: /admin\r\nx-rewrite-url: /b\r\n", ""},
        {"Content-Encoding: gzip\r\nContent-Type: a/b\r\n", "Content-Type: a/b\r\n"},
    };

    for (size_t i = 0; i < LENGTH(rows); i++)
        expect_forwarded(rows[i].fields,
                         &(struct http_forwarding){.method = HTTP_GET, .max_forwards = -1},
                         rows[i].wanted);
}
END_TEST

START_TEST(a_request_with_a_body_keeps_what_describes_it)
{
    struct http_forwarding forwarding = {.method = HTTP_POST, .has_body = true, .max_forwards = -1};

    expect_forwarded("Content-Encoding: gzip\r\nX-HTTP-Method-Override: PATCH\r\n", &forwarding,
                     "Content-Encoding: gzip\r\nX-HTTP-Method-Override: PATCH\r\n");
}
END_TEST

START_TEST(the_way_is_added)
{
    struct http_forwarding forwarding = {
        .method = HTTP_OPTIONS,
        .via = span_str("1.1 sunproxy"),
        .for_ = span_str("10.0.0.1"),
        .proto = span_str("https"),
        .host = span_str("h:81"),
        .sender = span_str("2001:db8::1"),
        .max_forwards = 2,
    };

    expect_forwarded("Via: 1.0 a\r\nX-Forwarded-For: 9.9.9.9\r\nMax-Forwards: 3\r\n", &forwarding,
                     "Via: 1.0 a\r\n"
                     "Max-Forwards: 2\r\n"
                     "Via: 1.1 sunproxy\r\n"
                     "X-Forwarded-For: 10.0.0.1\r\n"
                     "X-Forwarded-Proto: https\r\n"
                     "X-Forwarded-Host: h:81\r\n"
                     "Forwarded: for=\"[2001:db8::1]\";proto=https;host=\"h:81\"\r\n");
    forwarding = (struct http_forwarding){.method = HTTP_GET, .max_forwards = -1};
    expect_forwarded("Max-Forwards: 3\r\n", &forwarding, "Max-Forwards: 3\r\n");
}
END_TEST

/* What trusted proxies have stated goes on in the one field that is believed. */
START_TEST(a_chain_goes_on)
{
    static const char fields[] = "X-Forwarded-For: 6.6.6.6, 203.0.113.7\r\nForwarded: for=a\r\n"
                                 "x-forwarded-for:  10.0.0.2 \r\nX-Forwarded-For: \r\n"
                                 "X_Forwarded_For: 5.5.5.5\r\nForwarded: for=b;proto=https\r\n";
    struct http_way way = {.scheme = HTTP_SCHEME_HTTPS, .members = 1};
    struct http_forwarding forwarding = {
        .method = HTTP_GET,
        .for_ = span_str("10.0.0.1"),
        .chain = HTTP_WAY_X,
        .max_forwards = -1,
    };

    expect_forwarded(fields, &forwarding,
                     "X-Forwarded-For: 6.6.6.6, 203.0.113.7, 10.0.0.2, 10.0.0.1\r\n");
    forwarding.for_ = span_str("203.0.113.7");
    forwarding.proto = span_str("https");
    forwarding.sender = span_str("10.0.0.1");
    forwarding.chain = HTTP_WAY_FORWARDED;
    forwarding.way = &way;
    expect_forwarded(fields, &forwarding,
                     "X-Forwarded-For: 203.0.113.7\r\nX-Forwarded-Proto: https\r\n"
                     "Forwarded: for=b;proto=https, for=10.0.0.1\r\n");
    /* What they have not stated is added. */
    forwarding.host = span_str("h");
    way.members = 2;
    expect_forwarded(fields, &forwarding,
                     "X-Forwarded-For: 203.0.113.7\r\nX-Forwarded-Proto: https\r\n"
                     "X-Forwarded-Host: h\r\n"
                     "Forwarded: for=a, for=b;proto=https, for=10.0.0.1;host=\"h\"\r\n");
    forwarding.host = span_of(NULL, 0);
    forwarding.chain = HTTP_WAY_NONE;
    expect_forwarded(fields, &forwarding,
                     "X-Forwarded-For: 203.0.113.7\r\nX-Forwarded-Proto: https\r\n"
                     "Forwarded: for=10.0.0.1;proto=https\r\n");
}
END_TEST

/* Also Forwarded, whatever it is worth; the lines of other fields stay as they are. */
START_TEST(what_trusted_proxies_state_is_not_removed)
{
    const char *fields =
        "X-Forwarded-For: a\r\nB: c \r\nConnection: X-Forwarded-For, B, Forwarded, D\r\n"
        "Forwarded: for=a\r\nd:\r\nX-Forwarded-Proto: https\r\nE:f\r\n";
    char kept[200];
    size_t len = http_remove_listed(span_str(fields), kept);

    ck_assert(span_equal(span_of(kept, len),
                         span_str("X-Forwarded-For: a\r\n"
                                  "Connection: X-Forwarded-For, B, Forwarded, D\r\n"
                                  "Forwarded: for=a\r\nX-Forwarded-Proto: https\r\nE:f\r\n")));
}
END_TEST

/* They end at the proxy, which reads them: Upgrade counts only if Connection lists it. */
START_TEST(fields_of_the_connection_are_not_removed)
{
    const char *fields = "Connection: Upgrade, TE, Keep-Alive, A\r\nA: 1\r\n"
                         "Upgrade: websocket\r\nTE: trailers\r\nKeep-Alive: 5\r\n";
    char kept[200];
    size_t len = http_remove_listed(span_str(fields), kept);

    ck_assert(span_equal(span_of(kept, len),
                         span_str("Connection: Upgrade, TE, Keep-Alive, A\r\n"
                                  "Upgrade: websocket\r\nTE: trailers\r\nKeep-Alive: 5\r\n")));
}
END_TEST

START_TEST(connection_lists_are_bounded)
{
    struct buf fields;
    char kept[2000];
    size_t before;

    buf_init(&fields, 1 << 16);
    buf_append_str(&fields, "Connection: close");
    for (unsigned i = 1; i < HTTP_CONNECTION_OPTIONS_MAX; i++)
        buf_printf(&fields, ", x%u", i);
    buf_append_str(&fields, "\r\n");
    before = fields.len;
    buf_append_str(&fields, "x1: a\r\n");
    ck_assert_uint_eq(http_remove_listed(buf_span(&fields), kept), before);
    buf_append_str(&fields, "Connection: y\r\n");
    before = fields.len;
    ck_assert_uint_eq(http_remove_listed(buf_span(&fields), kept), before);
    buf_free(&fields);
}
END_TEST

START_TEST(a_full_buffer_is_reported)
{
    struct http_forwarding forwarding = {.method = HTTP_GET, .max_forwards = -1};

    buf_free(&out);
    buf_init(&out, 8);
    ck_assert(!http_forward_fields(&out, span_str("Abcdef: gh\r\n"), &forwarding));
    ck_assert(buf_failed(&out));
}
END_TEST

START_TEST(responses_keep_what_controls_caches)
{
    struct http_connection_options options = {.count = 0};

    /* RFC 9110 section 7.6.1: "Cache-Control is never appropriate as a connection option" */
    ck_assert(http_connection_options_add(&options, span_str("X-A, Cache-Control, Set-Cookie")));
    ck_assert(http_connection_options_add(&options, span_str("Content-Length,Vary")));
    ck_assert(http_is_hop_by_hop(span_str("x-a"), &options));
    ck_assert(http_is_hop_by_hop(span_str("Keep-Alive"), &options));
    ck_assert(!http_is_hop_by_hop(span_str("X-B"), &options));
    ck_assert(!http_is_hop_by_hop(span_str("cache-control"), &options));
    ck_assert(!http_is_hop_by_hop(span_str("Set-Cookie"), &options));
    ck_assert(!http_is_hop_by_hop(span_str("Content-Length"), &options));
    ck_assert(!http_is_hop_by_hop(span_str("Vary"), &options));
}
END_TEST

START_TEST(max_forwards)
{
    static const struct {
        const char *fields;
        int64_t wanted;
    } rows[] = {
        /* RFC 9110 section 7.6.2 */
        {"", -1},
        {"A: 1\r\n", -1},
        {"Max-Forwards: 0\r\n", 0},
        {"A: b\r\nmax-forwards: 10\r\n", 10},
        {"Max-Forwards: 007\r\n", 7},
        {"Max-Forwards:\r\n", -1},
        {"Max-Forwards: -1\r\n", -1},
        {"Max-Forwards: 1, 2\r\n", -1},
        {"Max-Forwards: 99999999999999999999\r\n", INT64_MAX},
    };

    for (size_t i = 0; i < LENGTH(rows); i++)
        ck_assert_msg(http_max_forwards(span_str(rows[i].fields)) == rows[i].wanted, "%s",
                      rows[i].fields);
}
END_TEST

START_TEST(loops_show_in_via)
{
    static const struct {
        const char *fields;
        bool wanted;
    } rows[] = {
        /* RFC 9110 section 7.6.3 */
        {"Via: 1.1 sun\r\n", true},
        {"Via: 1.0 a, HTTP/1.1  Sun (b, c), 1.1 d\r\n", true},
        {"Via: 1.0 a\r\nVia: 1.1 sun:80, 1.1\tsun\r\n", true},
        {"Via: 1.1 sunny\r\n", false},
        {"Via: sun 1.1\r\n", false},
        {"Via: sun\r\n", false},
        {"A: 1.1 sun\r\n", false},
        {"", false},
    };

    for (size_t i = 0; i < LENGTH(rows); i++)
        ck_assert_msg(http_via_has(span_str(rows[i].fields), span_str("sun")) == rows[i].wanted,
                      "%s", rows[i].fields);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("http/hop_by_hop");
    TCase *tests = tcase_create("hop_by_hop");

    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, what_goes_on);
    tcase_add_test(tests, a_request_with_a_body_keeps_what_describes_it);
    tcase_add_test(tests, the_way_is_added);
    tcase_add_test(tests, a_chain_goes_on);
    tcase_add_test(tests, what_trusted_proxies_state_is_not_removed);
    tcase_add_test(tests, fields_of_the_connection_are_not_removed);
    tcase_add_test(tests, connection_lists_are_bounded);
    tcase_add_test(tests, a_full_buffer_is_reported);
    tcase_add_test(tests, responses_keep_what_controls_caches);
    tcase_add_test(tests, max_forwards);
    tcase_add_test(tests, loops_show_in_via);
    suite_add_tcase(suite, tests);
    return suite;
}
