/* Hits that are compared with their origins. */
#define UNIT_STARTS_NO_THREAD

#include <errno.h>
#include <stdio.h>

#include "proxy/control.h"
#include "tests/unit/proxy/scene.h"

#define HOST "http://origin.test"
#define URL HOST "/page"
#define FRESH "Cache-Control: max-age=1000\r\n"

static const struct scene_options all = {.verify_share = 1};

static void
store(const char *lines, size_t len)
{
    struct visit v;

    ck_assert(!visit_raw(&v, URL, ""));
    scene_answer(URL, 200, lines, len);
    expect_body(&v, OUTCOME_MISS, len);
    ck_assert(v.stored);
}

static void
hit(const char *fields, size_t len)
{
    struct visit v;

    ck_assert(visit_raw(&v, URL, fields));
    expect_body(&v, OUTCOME_HIT, len);
}

/* The origin's response to the fetch of a verification; `bytes` are those of a scene's body. */
static void
answer(unsigned status, const char *lines, size_t len, size_t wrong_at)
{
    struct scene_fetch *fetch = scene_fetch(URL);
    enum fetch_flow flow;

    fetch->sink->begin(fetch->context);
    flow = scene_head(fetch, status, lines, (int64_t)len);
    for (size_t at = 0; at < len && flow == FETCH_CONTINUE; at += 7) {
        char bytes[7];
        size_t n = len - at < 7 ? len - at : 7;

        for (size_t i = 0; i < n; i++)
            bytes[i] = (char)(scene_byte(at + i) ^ (at + i == wrong_at));
        flow = fetch->sink->body(fetch->context, bytes, n);
    }
    scene_done(fetch, flow == FETCH_CONTINUE ? FETCH_OK : FETCH_INTERNAL, "aborted");
}

static uint64_t
count(const char *result)
{
    char name[64];

    snprintf(name, sizeof(name), "verifications{result=\"%s\"}", result);
    return scene_metric(name);
}

START_TEST(responses_are_compared)
{
    static const struct {
        const char *stored, *lines;
        unsigned status;
        size_t len, wrong_at;
        enum verdict verdict;
        const char *cause;
    } rows[] = {
        {"", "", 200, 20, 99, VERDICT_SAME, ""},
        {"ETag: \"a\"\r\n", "ETag: \"b\"\r\n", 200, 20, 99, VERDICT_SAME, ""},
        {"", "", 200, 20, 0, VERDICT_STALE, "the origin's body differs after 0 bytes"},
        {"", "", 200, 20, 16, VERDICT_STALE, "the origin's body differs after 16 bytes"},
        {"", "", 200, 19, 99, VERDICT_STALE, "the origin's body has 19 bytes and not 20"},
        {"", "", 200, 0, 99, VERDICT_STALE, "the origin's body has 0 bytes and not 20"},
        {"", "", 200, 21, 99, VERDICT_STALE, "the origin's body has 21 bytes and not 20"},
        {"", "", 404, 20, 99, VERDICT_STALE, "the origin's status is 404"},
        {"", "", 301, 20, 99, VERDICT_STALE, "the origin's status is 301"},
        {"", "", 503, 20, 99, VERDICT_FAILED, "the origin's status is 503"},
        {"", "", 429, 20, 99, VERDICT_FAILED, "the origin's status is 429"},
        {"", "", 206, 20, 99, VERDICT_FAILED, "the origin's status is 206"},
        {"", "", 304, 0, 99, VERDICT_FAILED, "the origin's status is 304"},
        /* A strong ETag promises equal bytes, a weak one does not. */
        {"ETag: \"a\"\r\n", "ETag: \"a\"\r\n", 200, 20, 3, VERDICT_STALE,
         "the origin's body differs after 3 bytes"},
        {"ETag: W/\"a\"\r\n", "ETag: W/\"a\"\r\n", 200, 20, 3, VERDICT_SAME, ""},
        {"ETag: W/\"a\"\r\n", "ETag: W/\"b\"\r\n", 200, 20, 3, VERDICT_STALE,
         "the origin's body differs after 3 bytes"},
        {"ETag: W/\"a\"\r\n", "ETag: W/\"a\"\r\n", 200, 21, 99, VERDICT_SAME, ""},
        {"ETag: W/\"a\"\r\n", "", 200, 20, 3, VERDICT_STALE,
         "the origin's body differs after 3 bytes"},
    };
    static const char *const words[] = {"same", "stale", "changed", "failed"};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char lines[200];

        scene_begin(&all);
        snprintf(lines, sizeof(lines), FRESH "%s", rows[i].stored);
        store(lines, 20);
        scene.now_us += 5 * SECOND;
        hit("", 20);
        scene.now_us += 2 * SECOND;
        answer(rows[i].status, rows[i].lines, rows[i].len, rows[i].wrong_at);
        ck_assert_uint_eq(scene.verifications, 1);
        ck_assert_msg(scene.verified.verdict == rows[i].verdict, "row %zu", i);
        ck_assert_str_eq(scene.verified_cause, rows[i].cause);
        ck_assert_int_eq(scene.verified.age_us / 1000, 5001);
        ck_assert_int_eq(scene.verified.took_us, 2 * SECOND);
        for (unsigned k = 0; k < 4; k++)
            ck_assert_uint_eq(count(words[k]), k == (unsigned)rows[i].verdict);
        /* What is stored stays. */
        hit("", 20);
        answer(200, "", 20, 99);
        scene_end();
    }
}
END_TEST

START_TEST(a_fetch_that_fails_proves_nothing)
{
    scene_begin(&all);
    store(FRESH, 20);
    hit("", 20);
    scene_done(scene_fetch(URL), FETCH_CONNECT_FAILED, "no connection");
    ck_assert_int_eq(scene.verified.verdict, VERDICT_FAILED);
    ck_assert_str_eq(scene.verified_cause, "no connection");
    /* Also in the middle of the body. */
    hit("", 20);
    scene_head(scene_fetch(URL), 200, "", 20);
    scene_done(scene_fetch(URL), FETCH_ORIGIN_BROKE, "broken");
    ck_assert_int_eq(scene.verified.verdict, VERDICT_FAILED);
    ck_assert_uint_eq(count("failed"), 2);
    scene_end();
}
END_TEST

/* A change after the hit is not counted as stale. */
START_TEST(what_the_cache_has_dropped_since_has_changed)
{
    for (unsigned way = 0; way < 3; way++) {
        struct visit v = {.url = URL, .raw = true, .streams = true, .method = "PUT"};

        scene_begin(&all);
        store(way == 1 ? "Cache-Control: max-age=10\r\n" : FRESH, 20);
        hit("", 20);
        if (way == 0) {
            struct scene_fetch *fetch = scene_fetch(URL), *put;

            ck_assert(!visit(&v));
            put = TAILQ_NEXT(fetch, link);
            scene_head(put, 204, "", 0);
            scene_done(put, FETCH_OK, "");
            scene_run();
        } else if (way == 1) {
            scene.now_us += 11 * SECOND;
        } else {
            control_expire(&scene.proxy, CONTROL_PURGE_URL, span_str(URL));
        }
        answer(200, "", 20, 3);
        ck_assert_int_eq(scene.verified.verdict, VERDICT_CHANGED);
        ck_assert_uint_eq(count("changed"), 1);
        scene_end();
    }
}
END_TEST

START_TEST(the_request_is_that_of_the_hit_without_what_concerns_caches)
{
    static const char fields[] = "Accept: a\r\nIf-None-Match: \"x\"\r\nRange: bytes=0-3\r\n"
                                 "Cache-Control: max-stale\r\nPragma: x\r\nX-A: c\r\n";
    const struct scene_fetch *fetch;

    scene_begin(&all);
    store(FRESH, 20);
    hit(fields, 20);
    fetch = scene_fetch(URL);
    ck_assert_str_eq(fetch->method, "");
    ck_assert_str_eq(fetch->fields, "Accept: a\r\nX-A: c\r\nCache-Control: no-cache\r\n");
    ck_assert_uint_eq(fetch->flags, FETCH_UNDECODED | FETCH_NO_REDIRECTS | FETCH_ANY_LENGTH);
    ck_assert_uint_eq(fetch->client.kind, CLIENT_UNKNOWN);
    answer(200, "", 20, 99);
    scene_end();
}
END_TEST

START_TEST(hits_of_rpc_are_verified)
{
    struct visit v = {.url = URL};

    scene_begin(&all);
    scene_store(URL, "", 20);
    ck_assert(visit(&v));
    ck_assert_uint_eq(scene_fetch(URL)->flags, FETCH_ANY_LENGTH);
    answer(200, "", 20, 5);
    ck_assert_int_eq(scene.verified.verdict, VERDICT_STALE);
    scene_end();
}
END_TEST

START_TEST(what_is_not_verified)
{
    struct visit v = {.url = URL, .raw = true, .streams = true, .method = "HEAD"};

    scene_begin(&all);
    store("Cache-Control: public, max-age=1000\r\n", 20);
    ck_assert(visit(&v));
    hit("Authorization: x\r\n", 20);
    hit("Cookie: x\r\n", 20);
    ck_assert_uint_eq(scene_fetches(), 0);
    control_purge(&scene.proxy, CONTROL_PURGE_ALL, span_of(NULL, 0));
    ck_assert(!visit_raw(&v, URL, ""));
    scene_answer(URL, 404, FRESH, 20);
    ck_assert(v.stored);
    hit("", 20);
    ck_assert_uint_eq(scene_fetches(), 0);
    /* Nor misses, stale hits, and hits where it is off. */
    scene.now_us += 1001 * SECOND;
    ck_assert(visit_raw(&v, URL, "Cache-Control: max-stale\r\n"));
    expect_body(&v, OUTCOME_STALE, 20);
    ck_assert_uint_eq(scene_fetches(), 0);
    ck_assert_uint_eq(count("skipped"), 0);
    scene_end();
    scene_begin(&(struct scene_options){0});
    store(FRESH, 20);
    hit("", 20);
    ck_assert_uint_eq(scene_fetches(), 0);
    scene_end();
}
END_TEST

START_TEST(a_share_of_the_hits_is_verified)
{
    scene_begin(&(struct scene_options){.verify_share = 0.1});
    store(FRESH, 20);
    for (unsigned i = 0; i < 2000; i++) {
        hit("", 20);
        if (scene_find(URL))
            answer(200, "", 20, 99);
    }
    ck_assert_uint_ge(count("same"), 150);
    ck_assert_uint_le(count("same"), 250);
    scene_end();
}
END_TEST

/* The part of the body from `at` on. */
static enum fetch_flow
send_part(struct scene_fetch *fetch, size_t at, size_t len)
{
    char bytes[64];

    scene_bytes(bytes, at, len);
    return fetch->sink->body(fetch->context, bytes, len);
}

/* The length is not known before the end: chunked, or decoded for RPC. */
START_TEST(bodies_of_unknown_length_are_compared)
{
    static const size_t lengths[] = {19, 20, 21};
    static const char *const causes[] = {"the origin's body ends after 19 bytes", "",
                                         "the origin's body goes on after 20 bytes"};

    for (unsigned i = 0; i < 3; i++) {
        struct scene_fetch *fetch;

        scene_begin(&all);
        store(FRESH, 20);
        hit("", 20);
        fetch = scene_fetch(URL);
        scene_head(fetch, 200, "", -1);
        send_part(fetch, 0, lengths[i]);
        scene_done(fetch, FETCH_OK, "");
        ck_assert_str_eq(scene.verified_cause, causes[i]);
        scene_end();
    }
}
END_TEST

START_TEST(a_comparison_ends_after_a_while)
{
    struct scene_fetch *fetch;

    scene_begin(&all);
    store(FRESH, 20);
    hit("", 20);
    fetch = scene_fetch(URL);
    scene_head(fetch, 200, "", 20);
    ck_assert_int_eq(send_part(fetch, 0, 1), FETCH_CONTINUE);
    /* The fetcher sees to it, whether bytes of the body come or not. */
    ck_assert_int_eq(fetch->limit_us, VERIFIER_LONGEST_US);
    scene_done(fetch, FETCH_TIMED_OUT, "origin.test: the whole fetch took too long");
    ck_assert_int_eq(scene.verified.verdict, VERDICT_FAILED);
    ck_assert_str_eq(scene.verified_cause, "origin.test: the whole fetch took too long");
    scene_end();
}
END_TEST

static void
hit_of(const char *url)
{
    struct visit v;

    ck_assert(visit_raw(&v, url, ""));
}

START_TEST(few_are_under_way_at_once)
{
    char url[64];

    scene_begin(&all);
    for (unsigned i = 0; i < VERIFIER_MOST; i++) {
        struct visit v;

        snprintf(url, sizeof(url), "http://origin%u.test/", i);
        ck_assert(!visit_raw(&v, url, ""));
        scene_answer(url, 200, FRESH, 20);
    }
    store(FRESH, 20);
    /* Of one origin fewer than of all. */
    for (unsigned i = 0; i < VERIFIER_MOST_OF_ORIGIN + 3; i++)
        hit("", 20);
    ck_assert_uint_eq(scene_fetches(), VERIFIER_MOST_OF_ORIGIN);
    ck_assert_uint_eq(count("skipped"), 3);
    for (unsigned i = 0; i < VERIFIER_MOST; i++) {
        snprintf(url, sizeof(url), "http://origin%u.test/", i);
        hit_of(url);
    }
    ck_assert_uint_eq(scene_fetches(), VERIFIER_MOST);
    ck_assert_uint_eq(count("skipped"), 3 + VERIFIER_MOST_OF_ORIGIN);
    while (scene_fetches())
        scene_done(scene_fetch(NULL), FETCH_CONNECT_FAILED, "no connection");
    /* Nor where the origin takes no request. A hit that is not of the share takes no turn. */
    scene.refuses = ESHUTDOWN;
    for (unsigned i = 0; i < VERIFIER_MOST; i++) {
        hit("", 20);
        hit("Cookie: x\r\n", 20);
    }
    scene.refuses = 0;
    ck_assert_uint_eq(count("skipped"), 3 + VERIFIER_MOST_OF_ORIGIN + VERIFIER_MOST);
    hit("", 20);
    ck_assert_uint_gt(memory_used(&scene.account, MEMORY_REQUESTS), 0);
    answer(200, "", 20, 99);
    ck_assert_uint_eq(count("same"), 1);
    scene_end();
}
END_TEST

START_TEST(without_memory_for_it_a_hit_is_not_verified)
{
    scene_begin(&(struct scene_options){.verify_share = 1, .memory = 8 * 65536});
    store(FRESH, 20);
    ck_assert(memory_charge(&scene.account, MEMORY_REQUESTS, 65536));
    hit("", 20);
    memory_uncharge(&scene.account, MEMORY_REQUESTS, 65536);
    ck_assert_uint_eq(scene_fetches(), 0);
    ck_assert_uint_eq(count("skipped"), 1);
    scene_end();
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("proxy: verification of hits");
    TCase *tests = tcase_create("verifier");

    tcase_add_test(tests, responses_are_compared);
    tcase_add_test(tests, a_fetch_that_fails_proves_nothing);
    tcase_add_test(tests, what_the_cache_has_dropped_since_has_changed);
    tcase_add_test(tests, the_request_is_that_of_the_hit_without_what_concerns_caches);
    tcase_add_test(tests, hits_of_rpc_are_verified);
    tcase_add_test(tests, what_is_not_verified);
    tcase_add_test(tests, a_share_of_the_hits_is_verified);
    tcase_add_test(tests, bodies_of_unknown_length_are_compared);
    tcase_add_test(tests, a_comparison_ends_after_a_while);
    tcase_add_test(tests, few_are_under_way_at_once);
    tcase_add_test(tests, without_memory_for_it_a_hit_is_not_verified);
    suite_add_tcase(suite, tests);
    return suite;
}
