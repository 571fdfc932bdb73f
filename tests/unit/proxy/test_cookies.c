/*
 * Set-Cookie of one client's response, where a rule or --store-cookies lets responses with it be
 * stored: a cookie that a rule overrides or removes is given to no client, and a 304 with one makes
 * no response shared that is one client's.
 */
#define UNIT_STARTS_NO_THREAD

#include <stdio.h>

#include "http/known_fields.h"
#include "proxy/control.h"
#include "rules/rules.h"
#include "tests/unit/proxy/scene.h"

#define URL "http://origin.test/page"
#define TAGGED "ETag: \"a\"\r\n"
#define FRESH TAGGED "Cache-Control: max-age=10\r\n"
#define HTML "Content-Type: text/html\r\n"
#define JSON "Content-Type: application/json\r\n"
#define MINE "Set-Cookie: session=mine\r\n"
#define YOURS "Set-Cookie: session=yours\r\n"
#define OVERRIDDEN "lifetime = 10; override = set-cookie"

static const struct scene_options defaults;
static struct rules *table;

static const char *
place(void *context, size_t rule)
{
    (void)context;
    (void)rule;
    return "";
}

static void
begin(const char *rule)
{
    struct buf why;

    scene_begin(&defaults);
    table = rules_create();
    buf_init(&why, 1000);
    ck_assert_msg(!rule || rules_add(table, rule, &why), "%s", buf_str(&why));
    ck_assert_msg(rules_finish(table, place, NULL, &why), "%s", buf_str(&why));
    buf_free(&why);
    scene.proxy_rules.table = table;
}

static void
end(void)
{
    scene_end();
    rules_free(table);
}

static void
expect_cookie(const struct visit *v, const char *cookie, const char *what)
{
    const char *found = strstr(v->lines, "Set-Cookie");

    ck_assert_msg(cookie ? found && strncmp(found, cookie, strlen(cookie)) == 0 : !found,
                  "%s: \"%s\"", what, v->lines);
}

/* ---- 304 ------------------------------------------------------------------------------------- */

static const struct {
    const char *what, *rule;
    bool option;                /* --store-cookies */
    const char *stored, *lines; /* of the 200, and of the 304 */
    const char *mine;           /* what the client that validates gets; NULL: no cookie */
    const char *others;         /* likewise a later one, where the response is still stored */
    bool shared;
} updates[] = {
    {"no rule", NULL, false, FRESH, FRESH MINE, MINE, NULL, false},
    {"overridden", OVERRIDDEN, false, TAGGED YOURS, TAGGED MINE, NULL, NULL, true},
    {"private", OVERRIDDEN, false, TAGGED, TAGGED MINE "Cache-Control: private\r\n", MINE, NULL,
     false},
    {"no-store", OVERRIDDEN, false, TAGGED, TAGGED MINE "Cache-Control: no-store\r\n", MINE, NULL,
     false},
    {"the lifetime is not the rule's", "default-lifetime = 10; override = set-cookie", false, FRESH,
     FRESH MINE, MINE, NULL, false},
    {"it becomes the rule's", "default-lifetime = 10; override = set-cookie", false, TAGGED,
     TAGGED MINE, NULL, NULL, true},
    {"a rule for what the 304 makes of it", "type = text/html; " OVERRIDDEN, false, FRESH JSON,
     FRESH HTML MINE, NULL, NULL, true},
    {"no rule for what the 304 makes of it", "type = text/html; " OVERRIDDEN, false, FRESH HTML,
     FRESH JSON MINE, MINE, NULL, false},
    {"removed", "remove-response-cookie = session", false, FRESH, FRESH MINE, NULL, NULL, true},
    {"another one is removed", "remove-response-cookie = lang", false, FRESH, FRESH MINE, MINE,
     NULL, false},
    {"the field is removed", "remove-response-field = Set-Cookie", false, FRESH, FRESH MINE, NULL,
     NULL, true},
    {"removed from what it no longer is", "type = text/html; remove-response-field = Set-Cookie",
     false, FRESH HTML, FRESH JSON MINE, MINE, NULL, false},
    {"allowed by the option", NULL, true, FRESH YOURS, FRESH MINE, MINE, MINE, true},
    {"the option, without a lifetime", NULL, true, TAGGED, TAGGED MINE, MINE, NULL, false},
    {"the option, private", NULL, true, FRESH, TAGGED MINE "Cache-Control: private\r\n", MINE, NULL,
     false},
    {"the option and a rule", OVERRIDDEN, true, TAGGED, FRESH MINE, NULL, NULL, true},
};

START_TEST(a_304_hands_on_no_cookie_and_shares_nothing)
{
    struct visit v[3];

    begin(updates[_i].rule);
    scene.rules.set_cookie = updates[_i].option;
    expect_http_miss(URL, "", updates[_i].stored, 20);
    scene.now_us += 20 * SECOND;
    /* The second one waits for the validation of the first. */
    ck_assert(!visit_http(&v[0], URL, ""));
    ck_assert(!visit_http(&v[1], URL, ""));
    ck_assert_uint_eq(scene_fetches(), 1);
    scene_answer(URL, 304, updates[_i].lines, 0);
    expect_body(&v[0], OUTCOME_REVALIDATED, 20);
    expect_cookie(&v[0], updates[_i].mine, updates[_i].what);
    ck_assert_msg(v[0].stored == updates[_i].shared, "%s", updates[_i].what);
    ck_assert_msg(v[1].ended == updates[_i].shared, "%s", updates[_i].what);
    if (!updates[_i].shared)
        scene_answer(URL, 200, FRESH, 30);
    ck_assert(visit_http(&v[2], URL, ""));
    for (unsigned i = 1; i < 3; i++) {
        ck_assert_uint_eq(v[i].got, updates[_i].shared ? 20 : 30);
        expect_cookie(&v[i], updates[_i].others, updates[_i].what);
    }
    end();
}
END_TEST

/* What --store-cookies has stored, when it is off: a client gets no other one's cookie, for
 * whatever reason the response is its own now. */
static const char *const terms[][2] = {
    {MINE, ""},
    {MINE, "Cache-Control: private\r\n"},
    {MINE, "Cache-Control: no-store\r\n"},
    {MINE, "Vary: *\r\n"},
    {"Set-Cookie2: session=mine\r\n", "Cache-Control: max-age=10\r\n"},
};

START_TEST(a_304_to_what_was_stored_with_a_cookie)
{
    char scratch[200];
    struct visit v;

    begin(NULL);
    scene.rules.set_cookie = true;
    snprintf(scratch, sizeof(scratch), FRESH "%s", terms[_i][0]);
    expect_http_miss(URL, "", scratch, 20);
    scene.now_us += 20 * SECOND;
    scene.rules.set_cookie = false;
    ck_assert(!visit_http(&v, URL, ""));
    snprintf(scratch, sizeof(scratch), TAGGED "%s", terms[_i][1]);
    scene_answer(URL, 304, scratch, 0);
    ck_assert(!v.ended);
    ck_assert_str_eq(scene_fetch(URL)->fields, "");
    scene_answer(URL, 200, FRESH YOURS, 30);
    expect_body(&v, OUTCOME_MISS, 30);
    expect_cookie(&v, YOURS, terms[_i][1]);
    end();
}
END_TEST

/* ---- 200 ------------------------------------------------------------------------------------- */

/* The response to a POST that is a representation of its URL: its client's cookie is not stored for
 * requests with GET. */
START_TEST(a_cookie_for_a_post_is_not_for_others)
{
    static const char lines[] = "Content-Location: /page\r\nCache-Control: max-age=60\r\n" MINE;
    struct visit v = {.url = URL, .method = "POST", .http = true, .streams = true};

    begin(_i ? OVERRIDDEN : NULL);
    ck_assert(!visit(&v));
    scene_answer(URL, 200, lines, 20);
    expect_body(&v, OUTCOME_BYPASS, 20);
    expect_cookie(&v, MINE, "POST");
    ck_assert(!visit_http(&v, URL, ""));
    scene_answer(URL, 200, FRESH, 30);
    expect_body(&v, OUTCOME_MISS, 30);
    expect_cookie(&v, NULL, "GET");
    end();
}
END_TEST

/* Over RPC requests share what is not stored because of its status. */
START_TEST(a_cookie_for_one_that_leads_is_not_for_those_that_wait)
{
    struct visit v[2] = {0};

    begin("status = 429; " OVERRIDDEN);
    for (unsigned i = 0; i < 2; i++)
        visit_url(&v[i], URL, i);
    scene_answer(URL, 429, TAGGED MINE, 20);
    for (unsigned i = 0; i < 2; i++) {
        expect_body(&v[i], i ? OUTCOME_COALESCED : OUTCOME_MISS, 20);
        expect_cookie(&v[i], NULL, i ? "waits" : "leads");
    }
    end();
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("proxy: cookies");
    TCase *cases = tcase_create("all");

    tcase_add_loop_test(cases, a_304_hands_on_no_cookie_and_shares_nothing, 0,
                        sizeof(updates) / sizeof(updates[0]));
    tcase_add_loop_test(cases, a_304_to_what_was_stored_with_a_cookie, 0,
                        sizeof(terms) / sizeof(terms[0]));
    tcase_add_loop_test(cases, a_cookie_for_a_post_is_not_for_others, 0, 2);
    tcase_add_test(cases, a_cookie_for_one_that_leads_is_not_for_those_that_wait);
    suite_add_tcase(suite, cases);
    return suite;
}
