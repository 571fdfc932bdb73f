/* What rules make of requests and responses, and which rules are refused. */
#include "rules/rules.h"

#include <stdio.h>

#include "http/request_head.h"
#include "tests/unit/unit.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

static struct rules *
make(const char *const *texts, struct buf *why)
{
    struct rules *rules = rules_create();

    ck_assert_ptr_nonnull(rules);
    for (; *texts; texts++)
        ck_assert_msg(rules_add(rules, *texts, why), "%s: %s", *texts, buf_str(why));
    return rules;
}

static const char *
place(void *context, size_t rule)
{
    (void)context;
    (void)rule;
    return "";
}

static struct rules *
finished(const char *const *texts)
{
    struct buf why;
    struct rules *rules;

    buf_init(&why, 4096);
    rules = make(texts, &why);
    ck_assert_msg(rules_finish(rules, place, NULL, &why), "%s", buf_str(&why));
    buf_free(&why);
    return rules;
}

static char bytes[16384];

static struct rules_answer
ask(const struct rules *rules, const char *url, const char *lines)
{
    const struct rules_request request = {
        .url = span_str(url), .lines = span_str(lines), .has = UINT32_MAX};
    struct rules_answer answer;

    rules_apply(rules, &request, bytes, sizeof(bytes), &answer);
    return answer;
}

#define assert_span(span, text)                                                                \
    ck_assert_msg(span_equal(span, span_str(text)), "\"%.*s\" is not \"%s\"", (int)(span).len, \
                  (span).ptr, text)

/* ---- reading --------------------------------------------------------------------------------- */

START_TEST(refused)
{
    static const struct {
        const char *text, *why;
    } rows[] = {
        {"", "has no action"},
        {"path=/a", "has no action"},
        {"pass", "KEY = VALUE"},
        {"pas=yes", "did you mean pass?"},
        {"pass=maybe", "yes or no"},
        {"pass=yes; pass=no", "twice"},
        {"path=a; pass=yes", "begins neither"},
        {"path=/a?b; pass=yes", "parameter"},
        {"host=a/b; pass=yes", "name of a host"},
        {"method=FETCH; pass=yes", "not a method"},
        {"deny=200", "400 to 599"},
        {"deny=401", "other than 401"},
        {"host=a.test:80; pass=yes", "without a port"},
        {"host=[0:0:0:0:0:0:0:1]; pass=yes", NULL},
        {"redirect=305 /a", "[301|302"},
        {"redirect=/a b", "[301|302"},
        {"rate=0", "rate a second"},
        {"lifetime=x", "not a time"},
        {"status=1xx; lifetime=1s", "not a status"},
        {"set-field=a", "NAME: VALUE"},
        {"set-field=Host: a", "does not change"},
        {"set-field=Range: bytes=0-1", "range or condition"},
        {"set-field=if-none-match: *", "range or condition"},
        {"remove-field=If-None-Match", NULL},
        {"set-response-field=Content-Length: 1", "does not change"},
        {"set-response-field=Cache-Origin-Control: a", "does not change"},
        {"set-field=Proxy-Authorization: a", "does not change"},
        {"remove-field=proxy-a", "does not change"},
        {"remove-response-field=Vary", "does not change"},
        {"override=all; lifetime=1s", "is not one of"},
        {"override=private; pass=yes", "beside lifetime"},
        {"status=404; pass=yes", "condition on the response"},
        {"status=404; key-field=A", "condition on the response"},
        {"cookie=a; lifetime=1s", "all requests for a URL share"},
        {"field=a; key-field=b", "all requests for a URL share"},
        {"parameter=a; set-response-field=a: b", "all requests for a URL share"},
        {"path=/a; path=; pass=yes", "is empty"},
        {"host-list=a; deny=403", "absolute path"},
        {"port=0; deny=403", "neither a port"},
        {"port=9-8; deny=403", "neither a port"},
        {"network=10.0.0.1/8; deny=403", "not a network"},
        {"time=monday; deny=403", "DAY-DAY"},
        {"time=mon-fri 8:00-9:00; deny=403", "DAY-DAY"},
        {"time=08:00-24:01; deny=403", "DAY-DAY"},
        {"time=; deny=403", "is empty"},
        {"network=::1; lifetime=1s", "all requests for a URL share"},
        {"time=mon; lifetime=1s", "all requests for a URL share"},
        {"host-list=/a; host-list=/b; deny=403", "twice"},
        {"user-list=a; deny=403", "absolute path"},
        {"user=a; lifetime=1s", "all requests for a URL share"},
        {"user=a; authenticate=no", "authenticate stands beside"},
        {"user-list=/a; authenticate=yes", "authenticate stands beside"},
        {"authenticate=maybe", "yes or no"},
        {"reason=a; pass=yes", "beside deny"},
        {"reason=a; deny=no", "beside deny"},
        {"deny=403; reason=a\x01", "one line"},
        {"deny=403; reason=\xff", "UTF-8"},
        {"status=404; error-page=a.html", "absolute path"},
        {"path=/a; error-page=/a.html", "beside status"},
    };

    for (size_t i = 0; i < LENGTH(rows); i++) {
        struct rules *rules = rules_create();
        struct buf why;

        buf_init(&why, 4096);
        ck_assert_msg(rules_add(rules, rows[i].text, &why) == !rows[i].why, "%s", rows[i].text);
        ck_assert_msg(!rows[i].why || strstr(buf_str(&why), rows[i].why), "%s: %s", rows[i].text,
                      buf_str(&why));
        buf_free(&why);
        rules_free(rules);
    }
}
END_TEST

START_TEST(contradictions)
{
    static const struct {
        const char *texts[3], *why;
    } rows[] = {
        {{"field=User-Agent: *; set-field=X-D: m"}, "key-field"},
        {{"cookie=a; remove-field=Accept"}, "key-field"},
        {{"response-field=X-C: yes; lifetime=1s", "remove-response-field=x-c"}, "X-C"},
        {{"user=a; set-field=X-D: m"}, "key-field"},
        {{"field=A; set-field=X-D: m; deny=no"}, "key-field"},
        {{"field=A; set-field=X-D: m", "key-field=x-d"}, NULL},
        {{"field=A; set-field=X-D: m; pass=yes"}, NULL},
        {{"cookie=a; set-field=Cookie: a=1", "key-cookie=a"}, NULL},
    };

    for (size_t i = 0; i < LENGTH(rows); i++) {
        struct buf why;
        struct rules *rules;

        buf_init(&why, 4096);
        rules = make(rows[i].texts, &why);
        ck_assert_int_eq(rules_finish(rules, place, NULL, &why), rows[i].why == NULL);
        ck_assert_msg(!rows[i].why || strstr(buf_str(&why), rows[i].why), "%s", buf_str(&why));
        buf_free(&why);
        rules_free(rules);
    }
}
END_TEST

START_TEST(separators_in_values)
{
    static const char *const texts[] = {" set-response-field = A: b\\; c\\\\d ; lifetime = 1s ;; ",
                                        NULL};
    struct rules *rules = finished(texts);
    const struct rules_response response = {
        .url = span_str("http://a/"), .status = 200, .lines = span_str("A: 1\r\nB: 2\r\n")};
    struct buf out;

    buf_init(&out, 1024);
    ck_assert(rules_edit_response(rules, &response, RULES_EDIT_ALL, response.lines, &out));
    ck_assert_str_eq(buf_str(&out), "B: 2\r\nA: b; c\\d\r\n");
    buf_free(&out);
    rules_free(rules);
}
END_TEST

/* ---- conditions ------------------------------------------------------------------------------ */

START_TEST(conditions)
{
    static const struct {
        const char *rule, *url, *lines;
        bool holds;
    } rows[] = {
        {"", "http://a.test/", "", true},
        {"host=a.test; ", "http://a.test/", "", true},
        {"host=A.TEST; ", "http://a.test:81/x", "", true},
        {"host=a.test; ", "http://b.a.test/", "", false},
        {"host=a.test; host=b.test; ", "https://b.test/", "", true},
        {"host=*.test; ", "http://a.b.test/", "", true},
        {"host=*.test; ", "http://test/", "", false},
        {"host=*.test; ", "http://atest/", "", false},
        {"host=a.test.; ", "http://a.test/", "", true},
        {"host=[0:0:0:0:0:0:0:1]; ", "http://[::1]:81/", "", true},
        {"host=[::ffff:127.0.0.1]; ", "http://[::ffff:127.0.0.1]:81/", "", true},
        {"host=[::ffff:127.0.0.1]; ", "http://127.0.0.1/", "", true},
        {"host=127.0.0.1; ", "http://[::ffff:127.0.0.1]/", "", true},
        {"host=a.test; ", "http://u:p@a.test/", "", true},
        {"host=a.test; ", "http://:@a.test:81/", "", true},
        {"path=/admin*; ", "http://a/%61dmin/x", "", true},
        {"path=/admin*; ", "http://a/./admin", "", true},
        {"path=/admin*; ", "http://a//admin", "", true},
        {"path=/admin*; ", "http://a/x/../admin", "", true},
        {"path=/admin*; ", "http://a/x/..%2fadmin", "", false},
        {"path=/x; ", "http://a/x/y/..", "", false},
        {"path=/x/; ", "http://a/x/y/..", "", true},
        {"path=/; ", "http://a/../..", "", true},
        {"path=/a; ", "http://a/a", "", true},
        {"path=/a; ", "http://a/ab", "", false},
        {"path=/a; ", "http://a/a?b", "", true},
        {"path=/a*; path=*.css; ", "http://a/x.css?y", "", true},
        {"path=/; ", "http://a/", "", true},
        {"path=*b*; ", "http://a/abc", "", true},
        {"host=a; path=/x*; ", "http://b/x", "", false},
        {"port=80; ", "http://a/", "", true},
        {"port=80; ", "https://a/", "", false},
        {"port=400-500; ", "https://a/", "", true},
        {"port=81; port=82; ", "http://a:82/", "", true},
        {"port=8080; ", "http://[::1]:8080/", "", true},
        {"port=80; ", "http://[::1]/", "", true},
        {"network=0.0.0.0/0; ", "http://a/", "", false},
        {"time=mon-sun; ", "http://a/", "", true},
        {"time=sat-fri 00:00-24:00; ", "http://a/", "", true},
        {"time=12:00-12:00; ", "http://a/", "", false},
        {"method=HEAD; method=GET; ", "http://a/", "", true},
        {"method=POST; ", "http://a/", "", false},
        {"parameter=x; ", "http://a/?y=1&x", "", true},
        {"parameter=x; ", "http://a/?xy=1", "", false},
        {"parameter=cmd=r*; ", "http://a/?%63m%64=%72m", "", true},
        {"parameter=a*; ", "http://a/?%3Da", "", false},
        {"parameter=x=1*; ", "http://a/?x=2&x=12", "", true},
        {"parameter=x=; ", "http://a/?x=1", "", false},
        {"field=A; ", "http://a/", "a: 1\r\n", true},
        {"field=A; ", "http://a/", "ab: 1\r\n", false},
        {"field=A: *gzip*; ", "http://a/", "A: br, GZIP\r\n", true},
        {"cookie=s*; ", "http://a/", "Cookie: x=1; sid=2\r\n", true},
        {"cookie=s; ", "http://a/", "Cookie: sid=2\r\n", false},
        {"cookie=a=1; ", "http://a/", "Cookie: x\r\nCookie: a=1\r\n", true},
        {"cookie=a=2; ", "http://a/", "Cookie: a=1\r\n", false},
    };

    for (size_t i = 0; i < LENGTH(rows); i++) {
        char text[256];
        const char *const texts[] = {text, NULL};
        struct rules *rules;

        snprintf(text, sizeof(text), "%spass=yes", rows[i].rule);
        rules = finished(texts);
        ck_assert_msg(ask(rules, rows[i].url, rows[i].lines).passes == rows[i].holds, "%s %s",
                      rows[i].rule, rows[i].url);
        rules_free(rules);
    }
}
END_TEST

/* ---- users ----------------------------------------------------------------------------------- */

static struct rules_answer
ask_as(const struct rules *rules, const char *url, const char *user)
{
    const struct rules_request request = {.url = span_str(url),
                                          .lines = span_str(""),
                                          .user = user ? span_str(user) : span_of(NULL, 0)};
    struct rules_answer answer;

    rules_apply(rules, &request, bytes, sizeof(bytes), &answer);
    return answer;
}

START_TEST(users)
{
    static const char *const texts[] = {"user=alice; path=/a; deny=no",
                                        "path=/a; deny=403; reason=not you",
                                        "user=b*; user=carol; path=/b; deny=404",
                                        "user=*; path=/any; deny=410", NULL};
    static const struct {
        const char *path, *user;
        unsigned status;
    } rows[] = {
        {"/a", "alice", 0},  {"/a", "Alice", 403}, {"/a", "bob", 403}, {"/a", NULL, 403},
        {"/b", "bob", 404},  {"/b", "carol", 404}, {"/b", "dan", 0},   {"/b", NULL, 0},
        {"/any", "dan", 410}, {"/any", NULL, 0},
    };
    struct rules *rules = finished(texts);

    for (size_t i = 0; i < LENGTH(rows); i++) {
        char url[64];

        snprintf(url, sizeof(url), "http://h%s", rows[i].path);
        ck_assert_msg(ask_as(rules, url, rows[i].user).status == rows[i].status, "%s %s", url,
                      rows[i].user);
    }
    assert_span(ask_as(rules, "http://h/a", "bob").reason, "not you");
    ck_assert_uint_eq(ask_as(rules, "http://h/b", "bob").reason.len, 0);
    ck_assert(rules_know_users(rules));
    rules_free(rules);
}
END_TEST

/* For rules_load(). */
static bool
give_list(void *context, const char *path, struct buf *content, struct buf *why)
{
    (void)why;
    ck_assert_str_eq(path, strstr(context, "user") ? "/users" : "/hosts");
    return buf_append_str(content, context);
}

START_TEST(lists_of_users)
{
    static const char *const texts[] = {"user-list=/users; user=a*; deny=403", NULL};
    struct rules *rules = finished(texts);
    struct buf why;

    buf_init(&why, 4096);
    ck_assert(rules_load(rules, give_list, "# users\nalice\nbob\n", &why));
    ck_assert_int_eq(ask_as(rules, "http://h/", "alice").verdict, RULES_DENY);
    ck_assert_int_eq(ask_as(rules, "http://h/", "bob").verdict, RULES_GO_ON);
    ck_assert_int_eq(ask_as(rules, "http://h/", "anna").verdict, RULES_GO_ON);
    ck_assert_int_eq(ask_as(rules, "http://h/", NULL).verdict, RULES_GO_ON);
    buf_free(&why);
    rules_free(rules);
}
END_TEST

/* Whether there has to be a user is decided without regard to who it is. */
START_TEST(demands)
{
    static const char *const texts[] = {"path=/open/in/*; authenticate=yes",
                                        "path=/open/*; authenticate=no", "user=a; deny=403", NULL};
    static const char *const none[] = {"deny=403", NULL};
    static const struct {
        const char *url;
        bool demands;
    } rows[] = {{"http://h/open/in/x", true}, {"http://h/open/x", false}, {"http://h/x", true}};
    struct rules *rules = finished(texts);
    struct rules_request request = {.user = span_str("a")};

    for (size_t i = 0; i < LENGTH(rows); i++) {
        request.url = span_str(rows[i].url);
        ck_assert_msg(rules_demand_user(rules, &request) == rows[i].demands, "%s", rows[i].url);
    }
    rules_free(rules);
    rules = finished(none);
    ck_assert(rules_demand_user(rules, &request));
    ck_assert(!rules_know_users(rules));
    rules_free(rules);
}
END_TEST

/* ---- actions on requests --------------------------------------------------------------------- */

START_TEST(the_first_rule_decides)
{
    static const char *const texts[] = {"path=/a/public/*; pass=no", "path=/a/*; pass=yes",
                                        "path=/a/d; deny=410", "path=/a/d; redirect=/x", NULL};
    struct rules *rules = finished(texts);

    ck_assert(ask(rules, "http://h/a/1", "").passes);
    ck_assert(!ask(rules, "http://h/a/public/1", "").passes);
    ck_assert_int_eq(ask(rules, "http://h/a/d", "").verdict, RULES_DENY);
    ck_assert_uint_eq(ask(rules, "http://h/a/d", "").status, 410);
    rules_free(rules);
}
END_TEST

START_TEST(urls)
{
    static const struct {
        const char *rules[4], *url, *edited;
    } rows[] = {
        {{"remove-parameter=utm_*"}, "http://a/x?utm_a=1&b=2&utm_c", "http://a/x?b=2"},
        {{"remove-parameter=utm_*"}, "http://a/x?utm_a=1", "http://a/x"},
        {{"remove-parameter=utm_*"}, "http://a/x", "http://a/x"},
        {{"keep-parameter=id"}, "http://a/x?v=1&id=2&w=3", "http://a/x?id=2"},
        {{"keep-parameter=id", "keep-parameter=v"},
         "http://a/x?v=1&id=2&w=3",
         "http://a/x?v=1&id=2"},
        {{"keep-parameter=*", "remove-parameter=v"}, "http://a/x?v=1&id=2", "http://a/x?id=2"},
        {{"sort-parameters=yes"}, "http://a/x?b=2&a=2&b=1&a=1", "http://a/x?a=2&a=1&b=2&b=1"},
        {{"path=/y; sort-parameters=yes"}, "http://a/x?b=2&a=2", "http://a/x?b=2&a=2"},
        {{"sort-parameters=no", "sort-parameters=yes"}, "http://a/x?b&a", "http://a/x?b&a"},
        {{"parameter=b; remove-parameter=b", "sort-parameters=yes"},
         "http://a/x?c&b&a",
         "http://a/x?a&c"},
    };

    for (size_t i = 0; i < LENGTH(rows); i++) {
        struct rules *rules = finished(rows[i].rules);
        const struct rules_request request = {.url = span_str(rows[i].url)};

        assert_span(ask(rules, rows[i].url, "").url, rows[i].edited);
        assert_span(rules_edit_url(rules, &request, bytes, sizeof(bytes)), rows[i].edited);
        rules_free(rules);
    }
}
END_TEST

static void
collect_key(void *context, struct span key)
{
    buf_printf(context, " %.*s", (int)key.len, key.ptr);
}

/* All spellings of a URL that a purge has to find, each once. */
START_TEST(keys)
{
    static const struct {
        const char *rules[4], *url, *keys;
    } rows[] = {
        {{"remove-parameter=a"}, "http://h/x?a&b", " http://h/x?b"},
        {{"remove-parameter=a"}, "http://h/x?b", ""},
        {{"remove-parameter=a"}, "http://h/x", ""},
        {{"method=POST; remove-parameter=a"}, "http://h/x?a", ""},
        {{"field=A; remove-parameter=a", "field=B; remove-parameter=b"},
         "http://h/x?a&b&c",
         " http://h/x?b&c http://h/x?a&c http://h/x?c"},
        {{"cookie=a; remove-parameter=a", "time=mon; remove-parameter=z", "remove-parameter=b"},
         "http://h/x?a&b",
         " http://h/x?a http://h/x"},
        {{"network=::/0; sort-parameters=yes", "user=a; keep-parameter=a"},
         "http://h/x?b&a",
         " http://h/x?a&b http://h/x?a"},
        {{"parameter=c; field=A; remove-parameter=a", "parameter=a; remove-parameter=a"},
         "http://h/x?a&b",
         " http://h/x?b"},
        {{"path=/y; field=A; remove-parameter=a", "pass=yes"}, "http://h/x?a&b", ""},
    };

    for (size_t i = 0; i < LENGTH(rows); i++) {
        struct rules *rules = finished(rows[i].rules);
        struct buf found;

        buf_init(&found, 1024);
        rules_visit_keys(rules, span_str(rows[i].url), bytes, sizeof(bytes), collect_key, &found);
        ck_assert_str_eq(buf_str(&found), rows[i].keys);
        buf_free(&found);
        rules_free(rules);
    }
}
END_TEST

/* Seven rules with this beside them, where %u is the number. */
static bool
may_be_seven(const char *beside)
{
    struct rules *rules = rules_create();
    struct buf why;
    char text[256];
    bool ok;

    buf_init(&why, 4096);
    for (unsigned i = 0; i < 7; i++) {
        int len = snprintf(text, sizeof(text), "field=F%u; remove-parameter=p%u; ", i, i);

        snprintf(text + len, sizeof(text) - (size_t)len, beside, i);
        ck_assert_msg(rules_add(rules, text, &why), "%s", buf_str(&why));
    }
    /* One that meets all of them, of which no two meet. */
    ck_assert(rules_add(rules, "cookie=c; sort-parameters=yes", &why));
    ok = rules_finish(rules, place, NULL, &why);
    ck_assert(ok || strstr(buf_str(&why), "more than 6 rules"));
    buf_free(&why);
    rules_free(rules);
    return ok;
}

START_TEST(combinations_are_bounded)
{
    ck_assert(!may_be_seven("path=*"));
    ck_assert(!may_be_seven("method=GET; path=/a*; path=/%u"));
    ck_assert(!may_be_seven("host=*.h; host=%u.a.h"));
    ck_assert(!may_be_seven("path=*%u"));
    ck_assert(may_be_seven("method=POST"));
    ck_assert(may_be_seven("path=/%u/*"));
    ck_assert(may_be_seven("path=/%u"));
    ck_assert(may_be_seven("host=*.%u.h"));
    ck_assert(may_be_seven("host=%u.h"));
}
END_TEST

START_TEST(redirects)
{
    static const struct {
        const char *rule, *url, *location; /* NULL: the request goes on */
    } rows[] = {
        {"redirect=301 https://{host}{path}{query}", "http://a:81/x?y", "https://a:81/x?y"},
        {"redirect={scheme}://b/", "http://a/x", "http://b/"},
        {"redirect=/new{path}{query}", "http://a/x", "/new/x"},
        {"redirect=/x", "http://a/x", NULL},
        {"redirect=http://a/x", "http://a/x", NULL},
        {"redirect=/x{query}", "http://a/x?y", NULL},
        {"redirect=http://a", "http://a/", NULL},
        {"redirect=http://A:80/", "http://a/", NULL},
        {"redirect={path}new", "http://a//evil.test/", "/evil.test/new"},
        {"redirect={path}{query}", "http://a/\\evil.test/?\\", "/%5Cevil.test/?%5C"},
        {"redirect={other}/{path", "http://a/x", "{other}/{path"},
    };

    for (size_t i = 0; i < LENGTH(rows); i++) {
        const char *const texts[] = {rows[i].rule, NULL};
        struct rules *rules = finished(texts);
        struct rules_answer answer = ask(rules, rows[i].url, "");

        ck_assert_int_eq(answer.verdict, rows[i].location ? RULES_REDIRECT : RULES_GO_ON);
        if (rows[i].location)
            assert_span(answer.location, rows[i].location);
        rules_free(rules);
    }
}
END_TEST

/* A location that is too long is not cut, and the request does not go on. */
START_TEST(long_locations_are_refused)
{
    static const char *const texts[] = {"redirect=https://b{path}", NULL};
    struct rules *rules = finished(texts);
    char url[4096];

    snprintf(url, sizeof(url), "http://a/%03000d", 0);
    ck_assert_int_eq(ask(rules, url, "").verdict, RULES_DENY);
    ck_assert_uint_eq(ask(rules, url, "").status, 414);
    rules_free(rules);
}
END_TEST

START_TEST(fields)
{
    static const struct {
        const char *rules[3], *lines, *edited;
        bool has_cookie;
    } rows[] = {
        {{"remove-cookie=_ga*"}, "A: 1\r\nCookie: _ga=1; b=2\r\n", "A: 1\r\nCookie: b=2\r\n", true},
        {{"remove-cookie=_ga*"}, "Cookie: _ga=1;_ga_x=2\r\nA: 1\r\n", "A: 1\r\n", false},
        {{"keep-cookie=s"},
         "Cookie: a=1; s=2\r\nCookie: s=3\r\n",
         "Cookie: s=2\r\nCookie: s=3\r\n",
         true},
        {{"keep-cookie=s", "key-cookie=l"}, "Cookie: a; s; l=3\r\n", "Cookie: s; l=3\r\n", true},
        {{"remove-cookie=b"},
         "Cookie:a=1;b=2;c=3;  d\r\nA: 1\r\n",
         "Cookie:a=1;c=3; d\r\nA: 1\r\n",
         true},
        {{"remove-cookie=a"}, "cookie:  a=1;b=2\r\n", "cookie:  b=2\r\n", true},
        {{"remove-cookie=z"}, "Cookie:a=1;b=2\r\n", "Cookie:a=1;b=2\r\n", true},
        {{"remove-cookie=z"}, "A:1\nCookie:a=1;z\nB:2\n", "A:1\nCookie:a=1\nB:2\n", true},
        {{"remove-field=cookie"}, "Cookie: a=1\r\nB: 1\r\n", "B: 1\r\n", false},
        {{"set-field=B: 2"}, "B: 1\r\nC: 3\r\n", "C: 3\r\nB: 2\r\n", true},
        {{"remove-field=B", "set-field=B: 3"}, "b: 1\r\n", "B: 3\r\n", true},
    };

    for (size_t i = 0; i < LENGTH(rows); i++) {
        struct rules *rules = finished(rows[i].rules);
        const struct rules_request request = {
            .url = span_str("http://a/"), .lines = span_str(rows[i].lines), .has = UINT32_MAX};
        struct rules_answer answer = ask(rules, "http://a/", rows[i].lines);
        struct buf lines;

        buf_init(&lines, 1024);
        buf_append_str(&lines, rows[i].lines);
        rules_edit_fields(rules, &request, &lines);
        ck_assert_str_eq(buf_str(&lines), rows[i].edited);
        ck_assert(answer.edits);
        if (strstr(rows[i].lines, "Cookie"))
            ck_assert_int_eq((answer.has & HTTP_HAS_COOKIE) != 0, rows[i].has_cookie);
        buf_free(&lines);
        rules_free(rules);
    }
}
END_TEST

START_TEST(rates)
{
    static const char *const texts[] = {"path=/a; rate=2:3", NULL};
    struct rules *rules = finished(texts);
    struct rules_request request = {.url = span_str("http://a/a"), .now_us = 1000000};
    struct rules_answer answer;
    int taken = 0;

    for (int i = 0; i < 10; i++) {
        rules_apply(rules, &request, bytes, sizeof(bytes), &answer);
        taken += answer.verdict == RULES_GO_ON;
    }
    ck_assert_int_eq(taken, 3);
    ck_assert_uint_eq(answer.status, 429);
    request.now_us += 1000000;
    for (int i = 0; i < 10; i++) {
        rules_apply(rules, &request, bytes, sizeof(bytes), &answer);
        taken += answer.verdict == RULES_GO_ON;
    }
    ck_assert_int_eq(taken, 5);
    rules_free(rules);
}
END_TEST

/* ---- actions on responses -------------------------------------------------------------------- */

START_TEST(lifetimes)
{
    static const char *const texts[] = {"path=/a; status=404; lifetime=1s",
                                        "path=/a; lifetime=2s; override=private",
                                        "path=/a; default-lifetime=3s; grace=4s; key-field=X",
                                        "type=image/*; lifetime=5s",
                                        "path=/a; key-cookie=l; grace=9s",
                                        NULL};
    struct rules *rules = finished(texts);
    struct rules_response response = {.url = span_str("http://h/a"), .status = 200};
    struct http_storing_rules storing;

    http_storing_rules_init(&storing);
    rules_set_storing(rules, &response, &storing);
    ck_assert_int_eq(storing.lifetime_us, 2000000);
    ck_assert_int_eq(storing.default_us, 3000000);
    ck_assert_int_eq(storing.grace_us, 4000000);
    ck_assert_uint_eq(storing.overrides, HTTP_OVERRIDE_PRIVATE);
    ck_assert_uint_eq(storing.key_count, 2);
    assert_span(storing.key_names[0], "X");
    assert_span(storing.key_names[1], "Cookie");

    response.status = 301;
    http_storing_rules_init(&storing);
    rules_set_storing(rules, &response, &storing);
    ck_assert_int_eq(storing.lifetime_us, 2000000);
    response.status = 302;
    http_storing_rules_init(&storing);
    rules_set_storing(rules, &response, &storing);
    ck_assert_uint_eq(storing.decided, HTTP_DECIDED_GRACE);
    ck_assert_uint_eq(storing.overrides, 0);

    response.status = 404;
    http_storing_rules_init(&storing);
    rules_set_storing(rules, &response, &storing);
    ck_assert_int_eq(storing.lifetime_us, 1000000);
    ck_assert_uint_eq(storing.overrides, 0);

    response = (struct rules_response){.url = span_str("http://h/b"),
                                       .status = 200,
                                       .lines = span_str("Content-Type: Image/png; x\r\n")};
    http_storing_rules_init(&storing);
    rules_set_storing(rules, &response, &storing);
    ck_assert_int_eq(storing.lifetime_us, 5000000);
    ck_assert_uint_eq(storing.key_count, 0);
    rules_free(rules);
}
END_TEST

START_TEST(responses)
{
    static const char *const texts[] = {"path=/a; remove-response-cookie=_*; "
                                        "set-response-field=Cache-Control: no-store; "
                                        "remove-response-field=X",
                                        NULL};
    static const char lines[] = "Set-Cookie: _a=1; Path=/\r\nCache-Control: max-age=1\r\nX: 1\r\n"
                                "set-cookie: b=_\r\n";
    struct rules *rules = finished(texts);
    struct rules_response response = {
        .url = span_str("http://h/a"), .status = 200, .lines = span_str(lines)};
    struct buf out, restored;

    buf_init(&out, 1024);
    ck_assert(rules_edit_response(rules, &response, RULES_EDIT_ALL, response.lines, &out));
    ck_assert_str_eq(buf_str(&out), "set-cookie: b=_\r\nCache-Control: no-store\r\n"
                                    "Cache-Origin-Control: Cache-Control: max-age=1\r\n");
    buf_init(&restored, 1024);
    ck_assert(rules_restore_response(buf_span(&out), &restored));
    ck_assert_str_eq(buf_str(&restored), "set-cookie: b=_\r\nCache-Control: max-age=1\r\n");
    buf_free(&restored);
    buf_reset(&out);
    ck_assert(rules_edit_response(rules, &response, RULES_EDIT_BUT_CONTROL, response.lines, &out));
    ck_assert_str_eq(buf_str(&out), "Cache-Control: max-age=1\r\nset-cookie: b=_\r\n");
    buf_reset(&out);
    response.url = span_str("http://h/b");
    ck_assert(!rules_edit_response(rules, &response, RULES_EDIT_ALL, response.lines, &out));
    ck_assert_uint_eq(out.len, 0);
    buf_free(&out);
    rules_free(rules);
}
END_TEST

/* What a stored response owes to rules, by the method of the request that has made it. */
START_TEST(concerns)
{
    static const struct {
        const char *rule;
        enum rules_concern get, post;
    } rows[] = {
        {"pass=yes", RULES_CONCERN_NOT, RULES_CONCERN_NOT},
        {"path=/b; lifetime=1s", RULES_CONCERN_NOT, RULES_CONCERN_NOT},
        {"lifetime=1s; override=private", RULES_CONCERN_STORING, RULES_CONCERN_STORING},
        {"method=POST; grace=1s", RULES_CONCERN_NOT, RULES_CONCERN_STORING},
        {"status=404; set-response-field=A: b", RULES_CONCERN_CONTENT, RULES_CONCERN_CONTENT},
        {"method=GET; remove-response-field=A", RULES_CONCERN_CONTENT, RULES_CONCERN_NOT},
        {"method=POST; set-field=A: b", RULES_CONCERN_NOT, RULES_CONCERN_CONTENT},
        {"method=POST; keep-cookie=a", RULES_CONCERN_NOT, RULES_CONCERN_CONTENT},
    };

    for (size_t i = 0; i < LENGTH(rows); i++) {
        const char *const texts[] = {rows[i].rule, NULL};
        struct rules *rules = finished(texts);
        const struct span url = span_str("http://h/a");

        ck_assert_int_eq(rules_concern(rules, 0, 1, HTTP_GET, url), rows[i].get);
        ck_assert_int_eq(rules_concern(rules, 0, 1, HTTP_POST, url), rows[i].post);
        ck_assert_int_eq(rules_concern(rules, 1, 1, HTTP_GET, url), RULES_CONCERN_NOT);
        rules_free(rules);
    }
}
END_TEST

/* As many rules as there may be: each finds its own, and one more is refused. */
START_TEST(many_rules)
{
    struct rules *rules = rules_create();
    struct buf why;
    char text[128], url[128];

    buf_init(&why, 4096);
    for (unsigned i = 0; i < RULES_MAX; i++) {
        snprintf(text, sizeof(text), "path=/%u/*; deny=%u", i, 500 + i % 100);
        ck_assert(rules_add(rules, text, &why));
    }
    ck_assert(!rules_add(rules, "deny=400", &why));
    ck_assert_ptr_nonnull(strstr(buf_str(&why), "4096"));
    ck_assert(rules_finish(rules, place, NULL, &why));
    for (unsigned i = 0; i < RULES_MAX; i++) {
        snprintf(url, sizeof(url), "http://a/%u/x", i);
        ck_assert_uint_eq(ask(rules, url, "").status, 500 + i % 100);
    }
    ck_assert_int_eq(ask(rules, "http://a/x", "").verdict, RULES_GO_ON);
    buf_free(&why);
    rules_free(rules);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("rules/rules");
    TCase *tests = tcase_create("rules");

    tcase_add_test(tests, refused);
    tcase_add_test(tests, contradictions);
    tcase_add_test(tests, separators_in_values);
    tcase_add_test(tests, conditions);
    tcase_add_test(tests, users);
    tcase_add_test(tests, lists_of_users);
    tcase_add_test(tests, demands);
    tcase_add_test(tests, the_first_rule_decides);
    tcase_add_test(tests, urls);
    tcase_add_test(tests, keys);
    tcase_add_test(tests, combinations_are_bounded);
    tcase_add_test(tests, redirects);
    tcase_add_test(tests, long_locations_are_refused);
    tcase_add_test(tests, fields);
    tcase_add_test(tests, rates);
    tcase_add_test(tests, lifetimes);
    tcase_add_test(tests, responses);
    tcase_add_test(tests, concerns);
    tcase_add_test(tests, many_rules);
    suite_add_tcase(suite, tests);
    return suite;
}
