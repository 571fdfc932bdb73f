/* The index of rules finds the rules that a look at each one finds. */
#include "rules/rules.h"

#include <stdio.h>
#include <stdlib.h>

#include "http/request_head.h"
#include "tests/unit/unit.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

#define FIRST 430u /* status of a rule */
#define RULES 150u
#define SETS 40u
#define REQUESTS 400u

static const char *const hosts[] = {"a.example",    "b.example", "*.example", "*.b.example",
                                    "x.b.example",  "10.0.0.1",  "[::1]",     "example",
                                    "aa.b.example", "e"};
static const char *const paths[] = {"/",     "/a",      "/a/*", "/a/b*",
                                    "*.png", "*/index", "*",    "/long/path/to/*",
                                    "*g",    "/a*z",    "/*b",  "/a/b/c"};
static const char *const parameters[] = {"p", "q=1", "utm_*", "q=*"};
static const char *const cookies[] = {"id", "_ga*", "id=1"};

static const char *
any(const char *const *of, size_t count)
{
    return of[(size_t)rand() % count];
}

#define ANY(array) any(array, LENGTH(array))

static bool
chance(int of)
{
    return rand() % of == 0;
}

static void
write_rule(struct buf *rule, unsigned status)
{
    buf_reset(rule);
    for (int some = rand() % 3; some > 0; some--)
        buf_printf(rule, "host=%s; ", ANY(hosts));
    for (int some = rand() % 3; some > 0; some--)
        buf_printf(rule, "path=%s; ", chance(40) ? "*" : paths[(size_t)rand() % LENGTH(paths)]);
    if (chance(3))
        buf_printf(rule, "parameter=%s; ", ANY(parameters));
    if (chance(3))
        buf_printf(rule, "cookie=%s; ", ANY(cookies));
    if (chance(3) || !rule->len)
        buf_printf(rule, "host=%s; path=%s; ", ANY(hosts), chance(2) ? "/a/b/*" : "*.png");
    buf_printf(rule, "deny=%u", status);
}

static const char *
place(void *context, size_t rule)
{
    (void)context;
    (void)rule;
    return "";
}

static struct rules *
make(unsigned count)
{
    struct rules *rules = rules_create();
    struct buf rule, why;

    buf_init(&rule, 4096);
    buf_init(&why, 4096);
    for (unsigned i = 0; i < count; i++) {
        write_rule(&rule, FIRST + i);
        ck_assert_msg(rules_add(rules, buf_str(&rule), &why), "%s: %s", buf_str(&rule),
                      buf_str(&why));
    }
    ck_assert_msg(rules_finish(rules, place, NULL, &why), "%s", buf_str(&why));
    buf_free(&why);
    buf_free(&rule);
    return rules;
}

static void
write_url(struct buf *url)
{
    static const char *const of_hosts[] = {"a.example", "x.b.example", "b.example", "10.0.0.1",
                                           "[::1]",     "other",       "e",         "example"};
    static const char *const of_paths[] = {"/",        "/a",       "/a/b/c.png", "/a/%62/c",
                                           "//a/./b",  "/x/index", "/abz",       "/long/path/to/g",
                                           "/other/x", "/p/q.pn",  "/a/b",       "/g"};
    static const char *const queries[] = {"", "", "?", "?p", "?q=1&utm_x=2", "?q=2", "?x"};

    buf_reset(url);
    buf_printf(url, "http://%s%s%s%s", ANY(of_hosts), chance(4) ? ":8080" : "", ANY(of_paths),
               ANY(queries));
}

static void
find_first(void *context, size_t rule)
{
    unsigned *status = context;

    if (!*status)
        *status = FIRST + (unsigned)rule;
}

/* Rules deny, so that the first one that matches tells its number. */
static unsigned
check(const struct rules *rules, struct span url)
{
    static const char *const lines[] = {"", "Cookie: id=1\r\n", "Cookie: _gab=1; x\r\n",
                                        "User-Agent: id\r\n"};
    struct rules_request request = {.url = url, .lines = span_str(ANY(lines)), .now_us = 1};
    struct rules_answer answer;
    unsigned status = 0;
    char bytes[4096];

    if (span_starts_with(request.lines, span_str("Cookie")))
        request.has = HTTP_HAS_COOKIE;
    rules_visit(rules, &request, find_first, &status);
    rules_peek(rules, &request, bytes, sizeof(bytes), &answer);
    ck_assert_msg(answer.status == status, "%.*s with \"%.*s\": %u is not %u", (int)url.len,
                  url.ptr, (int)request.lines.len, request.lines.ptr, answer.status, status);
    return status;
}

START_TEST(the_index_leaves_nothing_out)
{
    unsigned denied = 0, passed = 0;
    struct buf url;

    srand(1);
    buf_init(&url, 4096);
    for (unsigned set = 0; set < SETS; set++) {
        /* Few rules, so that many requests reach none of them, and more than a word has. */
        struct rules *rules = make(set % 2 ? RULES : 1 + set % 5);

        for (unsigned i = 0; i < REQUESTS; i++) {
            write_url(&url);
            *(check(rules, buf_span(&url)) ? &denied : &passed) += 1;
        }
        rules_free(rules);
    }
    /* The requests are of both sorts. */
    ck_assert_uint_gt(denied, SETS * REQUESTS / 10);
    ck_assert_uint_gt(passed, SETS * REQUESTS / 10);
    buf_free(&url);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("rules/matching");
    TCase *tests = tcase_create("matching");

    tcase_add_test(tests, the_index_leaves_nothing_out);
    suite_add_tcase(suite, tests);
    return suite;
}
