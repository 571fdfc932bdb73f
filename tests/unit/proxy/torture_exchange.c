/*
 * Requests with every allocation failing in turn, on their own thread and on the fetcher's: each is
 * answered, by its response or by a failure, and nothing is lost.
 */
#include "proxy/control.h"
#include "tests/unit/cache/validity.h"
#include "tests/unit/proxy/scene.h"
#include "tests/unit/torture.h"

#define URL "http://origin.test/page"

enum { VISITS = 4 };

static struct visit visits[VISITS];
static unsigned answered, failed;

static void
tear_down(void)
{
    torture_fail_at(0);
}

/* An answer is complete, or a failure for want of memory. */
static void
check_visits(void)
{
    for (unsigned i = 0; i < VISITS; i++) {
        const struct visit *v = &visits[i];

        ck_assert(v->ended);
        if (v->fails) {
            ck_assert_int_eq(v->why, FAILURE_INTERNAL);
            ck_assert_str_ne(v->sentence, "");
            failed++;
        } else {
            ck_assert_uint_eq(v->heads, 1);
            ck_assert_uint_eq(v->got, 40000);
            answered++;
        }
    }
}

static void
visit_quietly(struct visit *v, unsigned client)
{
    *v = (struct visit){.url = URL, .client = unit_client(client), .streams = v->streams};
    visit(v);
}

/* The origin's response to all that is fetched, as far as it is wanted. */
static void
respond_to_all(const char *lines, bool known)
{
    struct scene_fetch *fetch;

    while ((fetch = scene_find(NULL))) {
        enum fetch_flow flow;

        fetch->sink->begin(fetch->context);
        scene_response(fetch, lines, false);
        flow = scene_head(fetch, 200, lines, known ? 40000 : -1);
        for (unsigned i = 0; i < 4 && flow == FETCH_CONTINUE; i++)
            flow = scene_body(fetch, 10000);
        scene_done(fetch, flow == FETCH_CONTINUE ? FETCH_OK : FETCH_INTERNAL, "aborted");
        scene_run();
    }
}

struct scenario {
    const char *lines;
    bool known, stored;
};

/* Two wait for the end and two stream; the last joins when the body has begun. */
static void
request(void *context)
{
    const struct scenario *scenario = context;

    for (unsigned i = 0; i < VISITS; i++)
        visits[i].streams = i % 2;
    for (unsigned i = 0; i < VISITS; i++)
        visit_quietly(&visits[i], i);
    respond_to_all(scenario->lines, scenario->known);
    scene_run();
}

static void
body(void *context)
{
    const struct scenario *scenario = context;

    request(context);
    /* What is counted from here on is the test's. */
    torture_fail_at(0);
    check_visits();
    if (scenario->stored)
        control_purge(&scene.proxy, CONTROL_PURGE_ALL, span_of(NULL, 0));
    ck_assert(cache_is_valid(scene.cache));
    ck_assert_uint_eq(client_share_total(&scene.proxy.waiting), 0);
    ck_assert_uint_eq(memory_used(&scene.account, MEMORY_REQUESTS), 0);
    ck_assert_uint_eq(memory_used(&scene.account, MEMORY_PAGES), 0);
}

static void
walk(struct scenario *scenario, unsigned least)
{
    unsigned n;

    answered = failed = 0;
    scene_begin(&(struct scene_options){0});
    n = torture_walk(body, scenario);
    torture_fail_at(0);
    ck_assert_uint_ge(n, least);
    ck_assert_uint_gt(answered, failed);
    ck_assert_uint_gt(failed, 0);
    scene_end();
}

START_TEST(a_shared_response)
{
    walk(&(struct scenario){.lines = "", .known = _i, .stored = true}, 6);
}
END_TEST

START_TEST(a_private_response)
{
    walk(&(struct scenario){.lines = "Set-Cookie: a=b\r\n", .known = _i, .stored = true}, 12);
}
END_TEST

/* ---- requests over HTTP ---------------------------------------------------------------------- */

#define VARIES "Vary: Accept\r\nETag: \"a\"\r\nCache-Control: max-age=10, stale-if-error=100\r\n"

/* A request with the field that selects a variant. */
static void
visit_variant(struct visit *v, const char *method, unsigned variant)
{
    *v = (struct visit){.url = URL,
                        .http = true,
                        .streams = true,
                        .method = method,
                        .fields = variant ? "Accept: a\r\n" : "Accept: b\r\n",
                        .has_body = strcmp(method, "POST") == 0,
                        .body_length = -1};
    visit(v);
    if (!v->ended && v->has_body) {
        ck_assert_uint_eq(exchange_send(&v->exchange, "body", 4), 4);
        exchange_send_end(&v->exchange);
    }
}

/* An interim response, and then this one to each fetch. */
static void
answer_http(unsigned status, size_t len)
{
    struct scene_fetch *fetch;

    while ((fetch = scene_find(NULL))) {
        fetch->sink->interim(fetch->context, 103, span_str("Link: </a>\r\n"));
        scene_answer(URL, status, VARIES, len);
    }
}

/* Every failure is one of memory; every response is whole. */
static void
check_http(unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        const struct visit *v = &visits[i];

        ck_assert(v->ended);
        if (v->fails)
            ck_assert_str_ne(v->sentence, "");
        failed += v->fails != 0;
        answered += v->fails == 0;
    }
}

/*
 * Two variants are stored; when they have expired, one is confirmed and the other one is used
 * because the origin fails, or replaced; a request with a body invalidates both.
 */
static void
request_http(void *context)
{
    const unsigned *status = context;

    control_purge(&scene.proxy, CONTROL_PURGE_ALL, span_of(NULL, 0));
    for (unsigned i = 0; i < VISITS; i++)
        visit_variant(&visits[i], "GET", i % 2);
    answer_http(200, 40000);
    scene_run();
    check_http(VISITS);
    scene.now_us += 11 * SECOND;
    for (unsigned i = 0; i < VISITS; i++)
        visit_variant(&visits[i], "GET", i % 2);
    answer_http(*status, *status == 304 ? 0 : 40000);
    scene_run();
    check_http(VISITS);
    scene.now_us += 11 * SECOND;
    visit_variant(&visits[0], "HEAD", 0);
    answer_http(200, 0);
    scene_run();
    check_http(1);
    visit_variant(&visits[0], "POST", 0);
    visit_variant(&visits[1], "HEAD", 0);
    answer_http(204, 0);
    scene_run();
    check_http(2);
    visit_variant(&visits[0], "POST", 0);
    if (scene_find(NULL))
        scene_answer(URL, 200, "Content-Location: /page\r\nCache-Control: max-age=10\r\n", 4000);
    scene_run();
    check_http(1);
    torture_fail_at(0);
    ck_assert(cache_is_valid(scene.cache));
    ck_assert_uint_eq(client_share_total(&scene.proxy.waiting), 0);
    ck_assert_uint_eq(memory_used(&scene.account, MEMORY_REQUESTS), 0);
    ck_assert_uint_eq(memory_used(&scene.account, MEMORY_PAGES), 0);
}

START_TEST(requests_over_http)
{
    unsigned status[] = {304, 200, 503}, n;

    answered = failed = 0;
    scene_begin(&(struct scene_options){0});
    n = torture_walk(request_http, &status[_i]);
    torture_fail_at(0);
    ck_assert_uint_ge(n, 40);
    ck_assert_uint_gt(answered, failed);
    ck_assert_uint_gt(failed, 0);
    scene_end();
}
END_TEST

/* With pages to evict, no request fails for an allocation of the cache or of the account's. */
START_TEST(memory_is_reclaimed_for_a_lookup)
{
    struct visit v = {.url = URL};

    scene_begin(&(struct scene_options){0});
    scene_store("http://other.test/", "", 5000);
    torture_fail_at(1);
    ck_assert(!visit(&v));
    ck_assert(torture_failed());
    torture_fail_at(0);
    ck_assert_uint_eq(scene_stats().evictions, 1);
    scene_respond(URL, "", 5);
    expect_body(&v, OUTCOME_MISS, 5);
    scene_end();
}
END_TEST

START_TEST(a_proxy_is_made_or_it_is_not)
{
    struct proxy proxy;
    unsigned n = 0;
    bool made;

    scene_begin(&(struct scene_options){0});
    do {
        torture_fail_at(++n);
        made = proxy_init(&proxy, &scene.proxy.config);
        torture_fail_at(0);
        ck_assert(made == !torture_failed());
    } while (!made);
    ck_assert_uint_ge(n, 2);
    proxy_destroy(&proxy);
    scene_end();
}
END_TEST

START_TEST(a_change_without_memory_changes_nothing)
{
    struct cache_config config;
    char why[CONTROL_SENTENCE];

    scene_begin(&(struct scene_options){0});
    scene_store(URL, "", 5);
    torture_fail_at(1);
    ck_assert_int_eq(control_configure(&scene.proxy,
                                       &(struct control_change){.policy = "lfu", .cold = true},
                                       &config, why, sizeof(why)),
                     CONTROL_NO_MEMORY);
    torture_fail_at(0);
    ck_assert_str_eq(why, "out of memory; nothing has changed");
    ck_assert(scene_has(URL));
    scene_end();
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("proxy without memory");
    TCase *tests = tcase_create("requests");

    tcase_add_checked_fixture(tests, NULL, tear_down);
    tcase_add_loop_test(tests, a_shared_response, 0, 2);
    tcase_add_loop_test(tests, a_private_response, 0, 2);
    tcase_add_loop_test(tests, requests_over_http, 0, 3);
    tcase_add_test(tests, memory_is_reclaimed_for_a_lookup);
    tcase_add_test(tests, a_proxy_is_made_or_it_is_not);
    tcase_add_test(tests, a_change_without_memory_changes_nothing);
    suite_add_tcase(suite, tests);
    return suite;
}
