/* A store behind the cache: what is offered to it, and what requests get from it. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "proxy/control.h"
#include "store/store.h"
#include "tests/unit/proxy/scene.h"

#define URL "http://origin.test/page"
#define FRESH "Cache-Control: max-age=100\r\n"
#define TAGGED "ETag: \"a\"\r\nCache-Control: max-age=10\r\n"

static char folder[64];
static struct store *store;
static bool reads_later; /* by the store's threads, and not at once */

static void
open_store(bool write_all)
{
    struct buf why;

    buf_init(&why, 1000);
    store = store_open(
        &(struct store_config){
            .folder = folder,
            .max_bytes = STORE_LEAST,
            .write_all = write_all,
            .reads_later = reads_later,
            .readers = 2,
            .late_us = 600 * SECOND,  /* on a busy machine none is given up, and fetched */
            .stuck_us = 600 * SECOND, /* the clock goes on while the log is synced */
            .sync_us = 1000,
            .cache = scene.cache,
            .account = &scene.account,
            .failure = FAILURE_INTERNAL,
            .clock = {.monotonic_us = scene.proxy.config.clock.monotonic_us,
                      .wall_us = scene.proxy.config.clock.wall_us},
        },
        &why);
    ck_assert_msg(store != NULL, "%s", buf_str(&why));
    buf_free(&why);
    scene.proxy.config.sources[0] = store_source(store);
    store_settle(store);
}

static void
begin_with(const struct scene_options *options, bool later)
{
    reads_later = later;
    snprintf(folder, sizeof(folder), "/tmp/stored-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    scene_begin(options);
    open_store(false);
}

static void
begin(bool later)
{
    begin_with(&(struct scene_options){0}, later);
}

static void
end(void)
{
    char command[128];

    store_close(store);
    scene_end();
    snprintf(command, sizeof(command), "rm -r %s", folder);
    ck_assert_int_eq(system(command), 0);
}

/* The memory has nothing, and the store all that was written to it. */
static void
forget(void)
{
    store_settle(store);
    cache_purge_all(scene.cache);
}

static uint64_t
count(enum store_count which)
{
    struct store_stats stats;

    store_settle(store);
    store_get_stats(store, &stats);
    return stats.counts[which];
}

static void
await(struct visit *v)
{
    while (!v->ended) {
        scene_run();
        unit_pause();
    }
}

/* A visit that is answered without its origin. */
static void
expect_stored(struct visit *v, const char *url, const char *fields, size_t len)
{
    ck_assert_int_eq(visit_http(v, url, fields), !reads_later);
    while (!v->ended) {
        ck_assert_uint_eq(scene_fetches(), 0);
        scene_run();
        unit_pause();
    }
    expect_body(v, OUTCOME_HIT, len);
}

/* A visit that comes to its origin, after the store has been asked perhaps. */
static void
expect_fetched(struct visit *v, const char *url, const char *fields)
{
    ck_assert(!visit_http(v, url, fields));
    while (!scene_find(url)) {
        ck_assert(!v->ended);
        scene_run();
        unit_pause();
    }
}

static void
store_twice(const char *url, const char *lines, size_t len)
{
    expect_http_miss(url, "", lines, len);
    expect_http_hit(url, "", len);
    forget();
}

/* It is not what the request gets: the sanitizer finds what is left of it. */
START_TEST(an_expired_page_evicts_another_one)
{
    struct visit v;

    begin_with(&(struct scene_options){.capacity_pages = 1}, _i);
    store_twice(URL, TAGGED, 300);
    expect_http_miss(URL "2", "", FRESH, 300);
    scene.now_us += 11 * SECOND;
    expect_fetched(&v, URL, "");
    scene_answer(URL, 200, FRESH, 300);
    await(&v);
    expect_body(&v, OUTCOME_MISS, 300);
    end();
}
END_TEST

START_TEST(the_second_request_has_a_page_written)
{
    struct visit v;

    begin(_i);
    expect_http_miss(URL, "", FRESH, 300);
    ck_assert_uint_eq(count(STORE_WRITTEN), 0);
    expect_http_hit(URL, "", 300);
    expect_http_hit(URL, "", 300);
    ck_assert_uint_eq(count(STORE_WRITTEN), 1);
    forget();
    expect_stored(&v, URL, "", 300);
    ck_assert_uint_eq(count(STORE_HITS), 1);
    /* It is in memory again. */
    expect_http_hit(URL, "", 300);
    ck_assert_uint_eq(count(STORE_WRITTEN), 1);
    ck_assert_uint_eq(count(STORE_HITS), 1);
    end();
}
END_TEST

START_TEST(so_does_a_second_fetch)
{
    begin(_i);
    expect_http_miss(URL, "", FRESH, 300);
    forget();
    expect_http_miss(URL, "", FRESH, 300);
    ck_assert_uint_eq(count(STORE_WRITTEN), 1);
    end();
}
END_TEST

START_TEST(all_are_written_on_demand)
{
    begin(_i);
    store_close(store);
    open_store(true);
    expect_http_miss(URL, "", FRESH, 300);
    ck_assert_uint_eq(count(STORE_WRITTEN), 1);
    end();
}
END_TEST

START_TEST(what_is_for_one_client_is_never_written)
{
    static const char *const lines[] = {
        "Cache-Control: private, max-age=100\r\n", "Cache-Control: no-store\r\n",
        (FRESH "Set-Cookie: a=b\r\n"), "Vary: *\r\n" FRESH};

    begin(_i);
    store_close(store);
    open_store(true);
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        struct visit v;
        char url[64];

        snprintf(url, sizeof(url), URL "%zu", i);
        for (unsigned again = 0; again < 3; again++) {
            ck_assert(!visit_http(&v, url, ""));
            scene_respond(url, lines[i], 100);
            ck_assert(v.ended && !v.stored);
        }
    }
    ck_assert_uint_eq(count(STORE_WRITTEN), 0);
    end();
}
END_TEST

START_TEST(requests_join)
{
    struct visit visits[20];

    begin(_i);
    store_twice(URL, FRESH, 300);
    for (unsigned i = 0; i < 20; i++)
        (void)visit_http(&visits[i], URL, "");
    for (unsigned i = 0; i < 20; i++) {
        await(&visits[i]);
        expect_body(&visits[i], OUTCOME_HIT, 300);
    }
    ck_assert_uint_eq(count(STORE_HITS), 1);
    end();
}
END_TEST

START_TEST(what_has_expired_is_validated)
{
    struct visit v;

    begin(_i);
    store_twice(URL, TAGGED, 300);
    scene.now_us += 11 * SECOND;
    expect_fetched(&v, URL, "");
    ck_assert_str_eq(scene_fetch(URL)->fields, "If-None-Match: \"a\"\r\n");
    scene_answer(URL, 304, TAGGED, 0);
    expect_body(&v, OUTCOME_REVALIDATED, 300);
    /* What was confirmed is written as it is now. */
    ck_assert_uint_eq(count(STORE_WRITTEN), 2);
    forget();
    expect_stored(&v, URL, "", 300);
    end();
}
END_TEST

/* A 304 that sets a cookie makes it its client's: it is read from the store no more. */
START_TEST(what_a_304_makes_private_is_outdated)
{
    struct visit v;

    begin(_i);
    store_twice(URL, TAGGED, 300);
    scene.now_us += 11 * SECOND;
    expect_fetched(&v, URL, "");
    scene_answer(URL, 304, TAGGED "Set-Cookie: a=b\r\n", 0);
    expect_body(&v, OUTCOME_REVALIDATED, 300);
    ck_assert(!v.stored);
    forget();
    expect_fetched(&v, URL, "");
    ck_assert_str_eq(scene_fetch(URL)->fields, "");
    scene_answer(URL, 200, TAGGED, 400);
    expect_body(&v, OUTCOME_MISS, 400);
    end();
}
END_TEST

START_TEST(requests_that_demand_more_go_to_the_origin)
{
    static const char *const fields[] = {"Cache-Control: no-cache\r\n",
                                         "Cache-Control: max-age=1\r\n"};

    for (size_t i = 0; i < 2; i++) {
        struct visit v;

        begin(_i);
        store_twice(URL, FRESH, 300);
        scene.now_us += 2 * SECOND;
        expect_fetched(&v, URL, fields[i]);
        scene_respond(URL, FRESH, 400);
        expect_body(&v, OUTCOME_MISS, 400);
        /* The later response has replaced the one on disk. */
        forget();
        expect_stored(&v, URL, "", 400);
        end();
    }
}
END_TEST

static void
visit_as(struct visit *v, const char *method, const char *fields)
{
    *v = (struct visit){
        .url = URL, .http = true, .streams = true, .method = method, .fields = fields};
    (void)visit(v);
}

/* What is answered from memory alone, or passes, is answered from disk as well. */
START_TEST(requests_for_which_nothing_is_fetched_ask_the_store)
{
    static const struct {
        const char *method, *fields;
    } rows[] = {{"HEAD", ""},
                {"GET", "Cache-Control: only-if-cached\r\n"},
                {"HEAD", "Cache-Control: only-if-cached\r\n"},
                {"GET", "Cache-Control: only-if-cached, max-age=50\r\n"},
                {"GET", "Cache-Control: max-age=50\r\n"}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct visit v;

        begin(_i);
        store_twice(URL, FRESH, 300);
        visit_as(&v, rows[i].method, rows[i].fields);
        await(&v);
        ck_assert_uint_eq(scene_fetches(), 0);
        expect_body(&v, OUTCOME_HIT, 300);
        ck_assert_uint_eq(count(STORE_HITS), 1);
        /* It is in memory since. */
        visit_as(&v, rows[i].method, rows[i].fields);
        ck_assert(v.ended);
        expect_body(&v, OUTCOME_HIT, 300);
        end();
    }
}
END_TEST

START_TEST(what_the_store_does_not_have_is_not_found_or_is_passed_on)
{
    struct visit v, get;

    begin(_i);
    visit_as(&v, "GET", "Cache-Control: only-if-cached\r\n");
    ck_assert(v.ended);
    ck_assert_uint_eq(v.why, FAILURE_NOT_CACHED);
    /* What has expired will not do. */
    store_twice(URL, FRESH, 300);
    scene.now_us += 101 * SECOND;
    visit_as(&v, "GET", "Cache-Control: only-if-cached\r\n");
    await(&v);
    ck_assert_uint_eq(v.why, FAILURE_NOT_CACHED);
    cache_purge_all(scene.cache);
    visit_as(&v, "HEAD", "");
    while (!scene_find(URL)) {
        scene_run();
        unit_pause();
    }
    ck_assert_str_eq(scene_fetch(URL)->method, "HEAD");
    scene_answer(URL, 200, FRESH, 0);
    expect_body(&v, OUTCOME_BYPASS, 0);
    /* What was purged is not there, though the index leads to it. */
    cache_purge_all(scene.cache);
    (void)store_mark(store, CACHE_BY_PREFIX, false, span_str(URL), span_of(NULL, 0), NULL);
    visit_as(&v, "GET", "Cache-Control: only-if-cached\r\n");
    await(&v);
    ck_assert_uint_eq(v.why, FAILURE_NOT_CACHED);
    /* Nor is another request's fetch waited for. */
    ck_assert(!visit_http(&get, URL, ""));
    visit_as(&v, "GET", "Cache-Control: only-if-cached\r\n");
    ck_assert(v.ended);
    ck_assert_uint_eq(v.why, FAILURE_NOT_CACHED);
    scene_respond(URL, FRESH, 400);
    expect_body(&get, OUTCOME_MISS, 400);
    end();
}
END_TEST

START_TEST(a_later_response_that_is_not_stored_removes_it)
{
    struct visit v;

    begin(_i);
    store_twice(URL, FRESH, 300);
    expect_fetched(&v, URL, "Cache-Control: no-cache\r\n");
    scene_respond(URL, "Cache-Control: no-store\r\n", 400);
    forget();
    expect_fetched(&v, URL, "");
    scene_respond(URL, FRESH, 500);
    expect_body(&v, OUTCOME_MISS, 500);
    end();
}
END_TEST

/* One that varies takes the place of one that does not, and the other way round. */
START_TEST(a_later_response_of_another_kind_replaces_it)
{
    static const char *const kinds[] = {FRESH, FRESH "Vary: Accept-Language\r\n"};
    struct visit v;

    begin(_i);
    for (unsigned i = 0; i < 2; i++) {
        char url[64];

        snprintf(url, sizeof(url), URL "%u", i);
        expect_http_miss(url, "Accept-Language: de\r\n", kinds[i], 300);
        expect_http_hit(url, "Accept-Language: de\r\n", 300);
        forget();
        expect_fetched(&v, url, "Accept-Language: fr\r\nCache-Control: no-cache\r\n");
        scene_respond(url, kinds[1 - i], 400);
        forget();
        expect_stored(&v, url, "Accept-Language: fr\r\n", 400);
        forget();
        if (i == 0) {
            expect_fetched(&v, url, "Accept-Language: de\r\n");
            scene_respond(url, kinds[1], 200);
            expect_body(&v, OUTCOME_MISS, 200);
        } else {
            expect_stored(&v, url, "Accept-Language: de\r\n", 400);
        }
    }
    end();
}
END_TEST

/* Of the variants under the earlier fields none is used. */
START_TEST(a_later_response_that_varies_by_other_fields_replaces_it)
{
    static const char both[] = "Accept-Language: de\r\nAccept-Encoding: gzip\r\n";
    static const char by_language[] = FRESH "Vary: Accept-Language\r\n",
                      by_encoding[] = FRESH "Vary: Accept-Encoding\r\n";
    struct visit v;

    begin(_i);
    store_close(store);
    open_store(true);
    expect_http_miss(URL, both, by_language, 300);
    forget();
    expect_fetched(&v, URL, "Accept-Language: fr\r\nAccept-Encoding: gzip\r\n");
    scene_respond(URL, by_encoding, 400);
    expect_body(&v, OUTCOME_MISS, 400);
    forget();
    expect_fetched(&v, URL, "Accept-Language: de\r\n");
    scene_respond(URL, by_encoding, 500);
    expect_body(&v, OUTCOME_MISS, 500);
    forget();
    expect_stored(&v, URL, both, 400);
    end();
}
END_TEST

/* One that the store does not take replaces what is there all the same. */
START_TEST(a_later_response_that_is_refused_removes_it)
{
    struct visit v;

    begin(_i);
    store_twice(URL, FRESH, 300);
    expect_fetched(&v, URL, "Cache-Control: no-cache\r\n");
    scene_respond(URL, FRESH, 400000);
    ck_assert_uint_eq(count(STORE_WRITE_REFUSED), 1);
    forget();
    store_close(store);
    open_store(false);
    expect_fetched(&v, URL, "");
    scene_respond(URL, FRESH, 500);
    expect_body(&v, OUTCOME_MISS, 500);
    end();
}
END_TEST

/*
 * What its request keeps from being stored says nothing about other variants, unless they are
 * selected by other fields.
 */
START_TEST(a_response_to_one_user_leaves_the_other_variants)
{
    static const char user[] = "Authorization: Basic YTpi\r\n",
                      unasked[] = "Authorization: Basic YTpi\r\nCache-Control: no-cache\r\n";
    static const struct {
        const char *request, *response;
        bool stays;
    } rows[] = {
        {user, FRESH "Vary: Authorization\r\n", true},
        {user, FRESH "Vary: Authorization, Accept-Language\r\n", false},
        {user, FRESH, false},
        {user, "Cache-Control: private\r\nVary: Authorization\r\n", false},
        {user, "Cache-Control: no-store\r\nVary: Authorization\r\n", false},
        /* The names that the store has are not read for it. */
        {unasked, FRESH "Vary: Authorization\r\n", false},
        {unasked, FRESH "Vary: Accept-Language\r\n", false},
    };

    begin(_i);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char url[64];
        struct visit v;

        snprintf(url, sizeof(url), URL "%zu", i);
        expect_http_miss(url, "", FRESH "Vary: Authorization\r\n", 300);
        expect_http_hit(url, "", 300);
        forget();
        expect_fetched(&v, url, rows[i].request);
        scene_respond(url, rows[i].response, 400);
        await(&v);
        forget();
        if (rows[i].stays) {
            expect_stored(&v, url, "", 300);
            continue;
        }
        expect_fetched(&v, url, "");
        scene_respond(url, FRESH, 500);
        expect_body(&v, OUTCOME_MISS, 500);
    }
    end();
}
END_TEST

START_TEST(the_age_goes_on)
{
    struct visit v;

    begin(_i);
    store_twice(URL, FRESH, 300);
    scene.now_us += 40 * SECOND;
    expect_stored(&v, URL, "", 300);
    ck_assert_int_eq(v.age_us / SECOND, 40);
    end();
}
END_TEST

START_TEST(options_in_force_bound_its_lifetime)
{
    struct visit v;

    begin(_i);
    store_twice(URL, FRESH, 300);
    scene.proxy_rules.max_age_us = 5 * SECOND;
    scene.now_us += 4 * SECOND;
    expect_stored(&v, URL, "", 300);
    scene.now_us += 2 * SECOND;
    expect_fetched(&v, URL, "");
    scene_respond(URL, FRESH, 400);
    expect_body(&v, OUTCOME_MISS, 400);
    end();
}
END_TEST

/* As a daemon does not where it stored them under other terms (store_config). */
START_TEST(options_in_force_refuse_it)
{
    static const char cookie[] = FRESH "Set-Cookie: a=b\r\n";
    struct visit v;

    begin(_i);
    scene.rules.set_cookie = true;
    store_twice(URL, cookie, 300);
    scene.rules.set_cookie = false;
    expect_fetched(&v, URL, "");
    scene_respond(URL, cookie, 400);
    expect_body(&v, OUTCOME_MISS, 400);
    end();
}
END_TEST

/* What was read before the options changed is validated: its cookies are given to no other. */
START_TEST(cookies_are_not_given_after_a_validation)
{
    static const char cookie[] = "ETag: \"a\"\r\n" FRESH "Set-Cookie: a=b\r\n";
    struct visit v;

    begin(_i);
    scene.rules.set_cookie = true;
    store_twice(URL, cookie, 300);
    expect_stored(&v, URL, "", 300);
    control_expire(&scene.proxy, CONTROL_PURGE_URL, span_str(URL));
    scene.rules.set_cookie = false;
    expect_fetched(&v, URL, "");
    ck_assert_str_eq(scene_fetch(URL)->fields, "If-None-Match: \"a\"\r\n");
    scene_answer(URL, 304, FRESH, 0);
    ck_assert(!v.ended);
    ck_assert_str_eq(scene_fetch(URL)->fields, "");
    scene_answer(URL, 200, cookie, 400);
    expect_body(&v, OUTCOME_MISS, 400);
    end();
}
END_TEST

START_TEST(variants)
{
    static const char *const languages[] = {"Accept-Language: de\r\n", "Accept-Language: fr\r\n"};
    struct visit v;

    begin(_i);
    for (unsigned i = 0; i < 2; i++) {
        expect_http_miss(URL, languages[i], FRESH "Vary: Accept-Language\r\n", 300 + i);
        expect_http_hit(URL, languages[i], 300 + i);
    }
    for (unsigned round = 0; round < 2; round++) {
        forget();
        expect_stored(&v, URL, languages[round], 300 + round);
        expect_stored(&v, URL, languages[1 - round], 301 - round);
    }
    forget();
    expect_fetched(&v, URL, "Accept-Language: it\r\n");
    scene_respond(URL, FRESH "Vary: Accept-Language\r\n", 17);
    expect_body(&v, OUTCOME_MISS, 17);
    end();
}
END_TEST

START_TEST(purges_concern_it)
{
    static const struct {
        enum control_purge kind;
        const char *name;
    } rows[] = {
        {CONTROL_PURGE_URL, URL},
        {CONTROL_PURGE_PREFIX, "http://origin.test/"},
        {CONTROL_PURGE_TAG, "red"},
        {CONTROL_PURGE_ALL, ""},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct visit v;

        begin(_i);
        store_twice(URL, FRESH "Cache-Tag: red\r\n", 300);
        control_purge(&scene.proxy, rows[i].kind, span_str(rows[i].name));
        expect_fetched(&v, URL, "");
        scene_respond(URL, FRESH, 200);
        expect_body(&v, OUTCOME_MISS, 200);
        end();
    }
}
END_TEST

START_TEST(a_soft_purge_has_it_validated)
{
    struct visit v;

    begin(_i);
    store_twice(URL, "ETag: \"a\"\r\n" FRESH, 300);
    control_expire(&scene.proxy, CONTROL_PURGE_URL, span_str(URL));
    expect_fetched(&v, URL, "");
    ck_assert_str_eq(scene_fetch(URL)->fields, "If-None-Match: \"a\"\r\n");
    scene_answer(URL, 304, FRESH, 0);
    expect_body(&v, OUTCOME_REVALIDATED, 300);
    end();
}
END_TEST

START_TEST(a_write_invalidates_it)
{
    struct visit v, post = {.url = URL, .http = true, .streams = true, .method = "POST"};

    begin(_i);
    store_twice(URL, FRESH, 300);
    ck_assert(!visit(&post));
    /* It is answered when what it purges is on disk. */
    scene_respond(URL, "", 10);
    await(&post);
    expect_body(&post, OUTCOME_BYPASS, 10);
    ck_assert_uint_eq(count(STORE_PURGES), 1);
    expect_fetched(&v, URL, "");
    scene_respond(URL, FRESH, 200);
    expect_body(&v, OUTCOME_MISS, 200);
    end();
}
END_TEST

START_TEST(requests_over_rpc_get_the_same_objects)
{
    struct visit v = {.url = URL};

    begin(_i);
    store_twice(URL, FRESH, 300);
    (void)visit(&v);
    await(&v);
    expect_body(&v, OUTCOME_HIT, 300);
    end();
}
END_TEST

START_TEST(a_user_gets_no_page_that_states_no_lifetime)
{
    struct visit v;

    begin(_i);
    scene.rules.heuristic_percent = 10;
    scene.rules.heuristic_max_us = 3600 * SECOND;
    store_twice(URL, "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n", 300);
    expect_fetched(&v, URL, "Cookie: a=b\r\n");
    scene_respond(URL, "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n", 200);
    ck_assert(v.ended);
    end();
}
END_TEST

START_TEST(a_client_leaves)
{
    struct visit v;

    begin(_i);
    store_twice(URL, FRESH, 300);
    if (!visit_http(&v, URL, "") && !visit_cancel(&v))
        await(&v);
    store_close(store);
    open_store(false);
    expect_http_hit(URL, "", 300);
    end();
}
END_TEST

START_TEST(without_memory_the_origin_is_asked)
{
    struct visit v;

    begin_with(&(struct scene_options){.memory = 4 << 20}, _i);
    store_twice(URL, FRESH, 300000);
    memory_charge_anyway(&scene.account, MEMORY_PAGES, 3 << 20);
    ck_assert(!visit_http(&v, URL, ""));
    while (!v.ended && !scene_find(URL)) {
        scene_run();
        unit_pause();
    }
    if (!v.ended) {
        scene_done(scene_fetch(URL), FETCH_CONNECT_FAILED, "no");
        scene_run();
    }
    ck_assert(v.ended && v.fails == 1);
    memory_uncharge(&scene.account, MEMORY_PAGES, 3 << 20);
    end();
}
END_TEST

static Suite *
unit_suite(void)
{
    Suite *suite = suite_create("stored");
    TCase *tc = tcase_create("stored");

    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, an_expired_page_evicts_another_one, 0, 2);
    tcase_add_loop_test(tc, the_second_request_has_a_page_written, 0, 2);
    tcase_add_loop_test(tc, so_does_a_second_fetch, 0, 2);
    tcase_add_loop_test(tc, all_are_written_on_demand, 0, 2);
    tcase_add_loop_test(tc, what_is_for_one_client_is_never_written, 0, 2);
    tcase_add_loop_test(tc, requests_join, 0, 2);
    tcase_add_loop_test(tc, what_has_expired_is_validated, 0, 2);
    tcase_add_loop_test(tc, what_a_304_makes_private_is_outdated, 0, 2);
    tcase_add_loop_test(tc, requests_that_demand_more_go_to_the_origin, 0, 2);
    tcase_add_loop_test(tc, requests_for_which_nothing_is_fetched_ask_the_store, 0, 2);
    tcase_add_loop_test(tc, what_the_store_does_not_have_is_not_found_or_is_passed_on, 0, 2);
    tcase_add_loop_test(tc, a_later_response_that_is_not_stored_removes_it, 0, 2);
    tcase_add_loop_test(tc, a_later_response_of_another_kind_replaces_it, 0, 2);
    tcase_add_loop_test(tc, a_later_response_that_varies_by_other_fields_replaces_it, 0, 2);
    tcase_add_loop_test(tc, a_later_response_that_is_refused_removes_it, 0, 2);
    tcase_add_loop_test(tc, a_response_to_one_user_leaves_the_other_variants, 0, 2);
    tcase_add_loop_test(tc, the_age_goes_on, 0, 2);
    tcase_add_loop_test(tc, options_in_force_bound_its_lifetime, 0, 2);
    tcase_add_loop_test(tc, options_in_force_refuse_it, 0, 2);
    tcase_add_loop_test(tc, cookies_are_not_given_after_a_validation, 0, 2);
    tcase_add_loop_test(tc, variants, 0, 2);
    tcase_add_loop_test(tc, purges_concern_it, 0, 2);
    tcase_add_loop_test(tc, a_soft_purge_has_it_validated, 0, 2);
    tcase_add_loop_test(tc, a_write_invalidates_it, 0, 2);
    tcase_add_loop_test(tc, requests_over_rpc_get_the_same_objects, 0, 2);
    tcase_add_loop_test(tc, a_user_gets_no_page_that_states_no_lifetime, 0, 2);
    tcase_add_loop_test(tc, a_client_leaves, 0, 2);
    tcase_add_loop_test(tc, without_memory_the_origin_is_asked, 0, 2);
    suite_add_tcase(suite, tc);
    return suite;
}
