/* Tags that rules give to objects, and what writes invalidate by tags. */
#include <errno.h>
#include <stdio.h>

#include "proxy/control.h"
#include "proxy/invalidation.h"
#include "tests/unit/proxy/scene.h"

#define HOST "http://origin.test"
#define OTHER "http://other.test"
#define FRESH "ETag: \"a\"\r\nCache-Control: max-age=1000\r\n"

static const struct scene_options defaults;

/* Begins a scene with a rule that tags paths with their first segments, and one for writes. */
static void
begin(void)
{
    scene_begin(&defaults);
    scene_add_rule(&scene.tag_rules, "/* -> $1");
    scene_add_rule(&scene.write_rules, "/paths -> users");
}

static void
store(const char *url, const char *lines)
{
    struct visit v;

    ck_assert(!visit_raw(&v, url, ""));
    scene_answer(url, 200, lines, 20);
    expect_body(&v, OUTCOME_MISS, 20);
    ck_assert(v.stored);
}

/* What is fetched is for its request alone. */
static void
pass(const char *url, const char *lines)
{
    struct visit leader, joined;
    struct scene_fetch *fetch;

    ck_assert(!visit_raw(&leader, url, ""));
    ck_assert(!visit_raw(&joined, url, ""));
    /* Behind that of a write to the same URL. */
    for (fetch = scene_fetch(url); *fetch->method && strcmp(fetch->method, "GET") != 0;)
        fetch = TAILQ_NEXT(fetch, link);
    scene_hop(fetch, lines, false);
    scene_head(fetch, 200, lines, 20);
    scene_body(fetch, 20);
    scene_done(fetch, FETCH_OK, "");
    scene_run();
    expect_body(&leader, OUTCOME_MISS, 20);
    ck_assert(!leader.stored);
    expect_waiting(&joined);
    visit_cancel(&joined);
    for (fetch = scene_fetch(url); *fetch->method && strcmp(fetch->method, "GET") != 0;)
        fetch = TAILQ_NEXT(fetch, link);
    ck_assert(fetch->cancelled);
    scene_done(fetch, FETCH_CANCELLED, "cancelled");
    scene_run();
}

static void
pass_rpc(const char *url)
{
    struct visit v = {0};

    visit_url(&v, url, 1);
    scene_respond(url, "", 10);
    expect_body(&v, OUTCOME_MISS, 10);
    ck_assert(!v.stored);
}

/* Is it in the cache? */
static bool
has(const char *url)
{
    struct visit v;

    ck_assert(visit_raw(&v, url, "Cache-Control: only-if-cached\r\n"));
    return v.fails == 0;
}

static void
begin_write(struct visit *v, const char *url, bool owned)
{
    *v = (struct visit){.url = url, .raw = true, .streams = true, .method = "PUT", .owned = owned};
    ck_assert(!visit(v));
}

static void
write_to(const char *url, bool owned, unsigned status, const char *lines)
{
    struct visit v;

    begin_write(&v, url, owned);
    scene_answer(url, status, lines, 5);
    expect_body(&v, OUTCOME_BYPASS, 5);
}

/* ---- the tags of objects --------------------------------------------------------------------- */

START_TEST(objects_have_the_tags_of_their_paths)
{
    struct visit v;

    begin();
    ck_assert(!visit_raw(&v, HOST "/users/1", ""));
    scene_answer(HOST "/users/1", 200, FRESH "Surrogate-Key: one users two\r\n", 20);
    ck_assert_str_eq(v.tags, "one users two");
    ck_assert(!visit_raw(&v, HOST "/users/2?q", ""));
    scene_answer(HOST "/users/2?q", 200, FRESH, 20);
    ck_assert_str_eq(v.tags, "users");
    /* They are those of the URL again after a 304. */
    scene.now_us += 1001 * SECOND;
    ck_assert(!visit_raw(&v, HOST "/users/2?q", ""));
    scene_answer(HOST "/users/2?q", 304, FRESH, 0);
    ck_assert_str_eq(v.tags, "users");
    /* RPC's objects have them, too. */
    scene_store(HOST "/users/3", "", 10);
    ck_assert_uint_eq(control_purge(&scene.proxy, CONTROL_PURGE_TAG, span_str("users")), 3);
    scene_end();
}
END_TEST

START_TEST(what_redirects_lead_to_has_the_tags_of_both_paths)
{
    struct visit v = {.url = HOST "/old"};
    struct scene_fetch *fetch;

    begin();
    for (unsigned i = 0; i < 2; i++) {
        ck_assert(!visit(&v));
        fetch = scene_fetch(HOST "/old");
        scene_hop(fetch, "", false);
        fetch->sink->head(fetch->context,
                          &(struct fetch_head){.status = 200,
                                               .final_url = span_str(HOST "/users/1"),
                                               .headers = span_str("A: b\r\n"),
                                               .content_length = 0});
        scene_done(fetch, FETCH_OK, "");
        scene_run();
        ck_assert_str_eq(v.tags, "old users");
        ck_assert(scene_has(HOST "/old"));
        write_to(i ? HOST "/old/1" : HOST "/users/2", false, 204, "");
        ck_assert(!scene_has(HOST "/old"));
        v = (struct visit){.url = HOST "/old"};
    }
    scene_end();
}
END_TEST

START_TEST(a_response_to_post_that_is_stored_has_tags)
{
    static const char lines[] =
        "Content-Location: /users/1\r\nSurrogate-Key: x\r\nCache-Control: max-age=10\r\n";

    for (unsigned i = 0; i < 2; i++) {
        struct visit v = {.url = HOST "/users/1", .raw = true, .streams = true, .method = "POST"};

        begin();
        ck_assert(!visit(&v));
        scene_answer(HOST "/users/1", 200, lines, 20);
        ck_assert(has(HOST "/users/1"));
        ck_assert_uint_eq(
            control_purge(&scene.proxy, CONTROL_PURGE_TAG, span_str(i ? "users" : "x")), 1);
        ck_assert(!has(HOST "/users/1"));
        scene_end();
    }
}
END_TEST

/* No write would find it for those that come later. */
START_TEST(what_cannot_have_its_tags_is_not_stored)
{
    char url[200] = HOST "/", text[600] = "/* ->";
    struct visit v;

    scene_begin(&defaults);
    memset(url + strlen(url), 'x', 150);
    for (unsigned i = 0; i < 60; i++)
        snprintf(text + strlen(text), sizeof(text) - strlen(text), " %u$1", i);
    scene_add_rule(&scene.tag_rules, text);
    for (unsigned raw = 0; raw < 2; raw++) {
        struct visit joined, late;
        struct scene_fetch *fetch;

        v = joined = late = (struct visit){.url = url, .raw = raw, .streams = true};
        ck_assert(!visit(&v));
        ck_assert(!visit(&joined));
        fetch = scene_fetch(url);
        scene_hop(fetch, FRESH, false);
        ck_assert_int_eq(scene_head(fetch, 200, FRESH, 20), FETCH_CONTINUE);
        scene_run();
        ck_assert(!visit(&late));
        ck_assert_uint_eq(scene_fetches(), 3);
        scene_body(fetch, 20);
        scene_done(fetch, FETCH_OK, "");
        scene_answer(url, 200, FRESH, 20);
        scene_answer(url, 200, FRESH, 20);
        expect_body(&v, OUTCOME_MISS, 20);
        expect_body(&joined, OUTCOME_MISS, 20);
        expect_body(&late, OUTCOME_MISS, 20);
        ck_assert(!v.stored && !joined.stored && !late.stored);
    }
    scene_end();
}
END_TEST

/* ---- writes ---------------------------------------------------------------------------------- */

static const char *const urls[] = {HOST "/users/1", HOST "/users/2", HOST "/paths/1", HOST "/x"};

static void
store_all(void)
{
    for (unsigned i = 0; i < 4; i++)
        store(urls[i], FRESH);
    scene_store(HOST "/users/3", "", 10);
}

static void
expect(bool users, bool paths)
{
    ck_assert(has(urls[0]) == users && has(urls[1]) == users);
    ck_assert(scene_has(HOST "/users/3") == users);
    ck_assert(has(urls[2]) == paths);
    ck_assert(has(urls[3]));
}

START_TEST(a_write_invalidates_by_the_rules_before_and_after)
{
    static const unsigned statuses[] = {200, 302, 404, 500};

    for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++) {
        struct visit v;

        begin();
        store_all();
        begin_write(&v, HOST "/users/9", false);
        expect(false, true);
        /* What comes meanwhile may be older than the write. */
        pass(urls[0], FRESH);
        pass(HOST "/users/9", FRESH);
        pass_rpc(HOST "/users/3");
        expect(false, true);
        scene_answer(HOST "/users/9", statuses[i], "", 5);
        expect_body(&v, OUTCOME_BYPASS, 5);
        expect(false, true);
        store(urls[0], FRESH);
        store(urls[1], FRESH);
        scene_store(HOST "/users/3", "", 10);
        expect(true, true);
        scene_end();
    }
}
END_TEST

START_TEST(a_write_invalidates_the_tags_that_rules_name)
{
    struct visit v;

    begin();
    store_all();
    begin_write(&v, HOST "/paths", false);
    expect(false, false);
    pass(urls[0], FRESH);
    pass(urls[2], FRESH);
    scene_done(scene_fetch(HOST "/paths"), FETCH_ORIGIN_BROKE, "broken");
    scene_run();
    expect_failure(&v, FAILURE_ORIGIN, "broken");
    expect(false, false);
    scene_end();
}
END_TEST

START_TEST(requests_that_are_safe_or_no_writes_of_rules_leave_tags)
{
    struct visit v = {.url = HOST "/users/9", .raw = true, .streams = true, .method = "OPTIONS"};

    begin();
    store_all();
    ck_assert(!visit(&v));
    scene_answer(HOST "/users/9", 200, "", 5);
    expect(true, true);
    write_to(HOST "/", false, 200, "");
    write_to(HOST "/y", false, 200, "");
    expect(true, true);
    scene_end();
}
END_TEST

/* A fetch that began before the write's response and ends after it, reached by its tag alone. */
START_TEST(what_is_fetched_during_a_write_is_not_stored)
{
    /* The head comes before the write, before its response, or after it. */
    for (unsigned moment = 0; moment < 3; moment++) {
        struct visit write, before, during, joined, after;
        struct scene_fetch *fetch;

        begin();
        ck_assert(!visit_raw(&before, urls[0], ""));
        fetch = scene_fetch(urls[0]);
        for (unsigned m = 0; m < 3; m++) {
            if (moment == m) {
                scene_hop(fetch, FRESH, false);
                ck_assert_int_eq(scene_head(fetch, 200, FRESH, 20), FETCH_CONTINUE);
            }
            if (m == 0) {
                begin_write(&write, urls[2], false);
                ck_assert(!visit_raw(&during, urls[1], ""));
                ck_assert(!visit_raw(&joined, urls[1], ""));
            } else if (m == 1) {
                scene_answer(urls[2], 204, "", 0);
            }
        }
        scene_body(fetch, 20);
        scene_done(fetch, FETCH_OK, "");
        scene_run();
        expect_body(&before, OUTCOME_MISS, 20);
        ck_assert(!before.stored && !has(urls[0]));
        scene_answer(urls[1], 200, FRESH, 20);
        expect_body(&during, OUTCOME_MISS, 20);
        ck_assert(!during.stored && !has(urls[1]));
        /* The request that has joined looks up again. */
        expect_waiting(&joined);
        scene_answer(urls[1], 200, FRESH, 20);
        expect_body(&joined, OUTCOME_MISS, 20);
        ck_assert(joined.stored && has(urls[1]));
        ck_assert(!visit_raw(&after, urls[0], ""));
        scene_answer(urls[0], 200, FRESH, 20);
        ck_assert(after.stored);
        scene_end();
    }
}
END_TEST

/* It may have been sent, as far as the client knows. */
START_TEST(a_write_that_cannot_be_forwarded_has_invalidated)
{
    struct visit v = {.url = HOST "/users/9", .raw = true, .streams = true, .method = "PUT"};

    begin();
    store_all();
    scene.refuses = ENOMEM;
    ck_assert(visit(&v));
    expect_failure(&v, FAILURE_INTERNAL, "");
    scene.refuses = 0;
    expect(false, true);
    store(urls[0], FRESH);
    store(urls[1], FRESH);
    scene_store(HOST "/users/3", "", 10);
    expect(true, true);
    scene_end();
}
END_TEST

/* ---- tags that origins give ------------------------------------------------------------------ */

START_TEST(a_write_invalidates_the_tags_of_the_object_of_its_url)
{
    for (unsigned early = 0; early < 2; early++) {
        struct visit v;

        scene_begin(&defaults);
        scene.proxy.config.invalidates_early = early;
        store(HOST "/a", FRESH "Surrogate-Key: x y\r\n");
        store(HOST "/b", FRESH "Surrogate-Key: y z\r\n");
        store(HOST "/c", FRESH "Surrogate-Key: z\r\n");
        begin_write(&v, HOST "/a", false);
        ck_assert(has(HOST "/a") == !early && has(HOST "/b") == !early && has(HOST "/c"));
        /* The tags are known still when the object is not there any more. */
        if (early)
            pass(HOST "/b", FRESH "Surrogate-Key: y z\r\n");
        scene_answer(HOST "/a", 204, "", 0);
        ck_assert(!has(HOST "/a") && !has(HOST "/b") && has(HOST "/c"));
        scene_end();
    }
}
END_TEST

START_TEST(an_error_leaves_tags_that_no_rule_gives)
{
    scene_begin(&defaults);
    store(HOST "/a", FRESH "Surrogate-Key: x\r\n");
    store(HOST "/b", FRESH "Surrogate-Key: x\r\n");
    write_to(HOST "/a", false, 500, "");
    ck_assert(has(HOST "/a") && has(HOST "/b"));
    scene_end();
}
END_TEST

/* ---- origins --------------------------------------------------------------------------------- */

/* Objects of RPC are stored under the URLs as their clients have spelt them. */
START_TEST(tags_of_an_origin_are_invalidated_in_each_spelling)
{
    static const char *const spellings[] = {"http://Origin.test/users/1",
                                            "http://origin.test:80/users/1",
                                            "HTTP://origin.test/users/1"};

    begin();
    for (unsigned i = 0; i < 3; i++)
        scene_store(spellings[i], "", 10);
    scene_store("http://Origin.test:8080/users/1", "", 10);
    write_to(HOST "/users/9", false, 200, "");
    for (unsigned i = 0; i < 3; i++)
        ck_assert(!scene_has(spellings[i]));
    ck_assert(scene_has("http://Origin.test:8080/users/1"));
    scene_end();
}
END_TEST

START_TEST(tags_of_other_origins_are_invalidated_by_their_owner_only)
{
    for (unsigned owned = 0; owned < 2; owned++) {
        begin();
        store(HOST "/users/1", FRESH);
        store(OTHER "/users/1", FRESH);
        store("http://origin.test.other/users/1", FRESH);
        write_to(HOST "/users/9", owned != 0, 200, "");
        ck_assert(!has(HOST "/users/1"));
        ck_assert(has(OTHER "/users/1") == !owned);
        ck_assert(has("http://origin.test.other/users/1") == !owned);
        scene_end();
    }
}
END_TEST

/* The write is refused, and nothing but what it concerns is removed. */
START_TEST(without_memory_for_the_tags_of_what_is_removed_a_write_is_refused)
{
    static char lines[6200];
    unsigned refused = 0, forwarded = 0;
    char fields[20];

    for (size_t left = 0; left < 65536; left += 2000) {
        struct visit v = {.url = HOST "/a", .raw = true, .streams = true, .method = "PUT"};
        struct visit get;
        bool early;

        scene_begin(&(struct scene_options){.memory = 8 * 65536});
        scene.proxy.config.invalidates_early = true;
        for (unsigned i = 0; i < 3; i++) {
            strcpy(lines, FRESH "Vary: X-A\r\nSurrogate-Key: ");
            memset(lines + strlen(lines), 'x' + (int)i, 6000);
            strcat(lines, "\r\n");
            snprintf(fields, sizeof(fields), "X-A: %u\r\n", i);
            ck_assert(!visit_raw(&get, HOST "/a", fields));
            scene_answer(HOST "/a", 200, lines, 20);
            ck_assert(get.stored);
            memset(lines, 0, sizeof(lines));
        }
        store(HOST "/b", FRESH);
        store(OTHER "/a", FRESH);
        ck_assert(memory_charge(&scene.account, MEMORY_REQUESTS, 65536 - left));
        if (visit(&v))
            expect_failure(&v, FAILURE_OVERLOADED, "try again");
        else
            scene_answer(HOST "/a", 204, "", 0);
        memory_uncharge(&scene.account, MEMORY_REQUESTS, 65536 - left);
        ck_assert(visit_raw(&get, HOST "/a", "X-A: 1\r\nCache-Control: only-if-cached\r\n"));
        early = get.fails != 0;
        ck_assert(early || v.fails);
        refused += early && v.fails;
        forwarded += !v.fails;
        ck_assert(has(HOST "/b") && has(OTHER "/a"));
        scene_end();
    }
    ck_assert_uint_gt(refused, 0);
    ck_assert_uint_gt(forwarded, 0);
}
END_TEST

/* The memory of requests is used up: nothing else is removed, and nothing less. */
START_TEST(a_response_to_a_write_needs_no_memory_of_requests)
{
    for (unsigned early = 0; early < 2; early++) {
        struct invalidation_row none = {0};
        struct invalidation write;
        size_t taken = 0;

        scene_begin(&(struct scene_options){.memory = 8 * 65536});
        if (early)
            scene_add_rule(&scene.write_rules, "/a -> y");
        store(HOST "/a", FRESH "Surrogate-Key: x y\r\n");
        store(HOST "/b", FRESH "Surrogate-Key: x\r\n");
        store(HOST "/c", FRESH "Surrogate-Key: y\r\n");
        store(HOST "/d", FRESH "Surrogate-Key: z\r\n");
        invalidation_init(&write, &scene.proxy, &none, span_str(HOST "/a"), false);
        ck_assert(invalidation_before(&write));
        while (memory_charge(&scene.account, MEMORY_REQUESTS, 16))
            taken += 16;
        invalidation_after(&write, 204, span_str(""));
        memory_uncharge(&scene.account, MEMORY_REQUESTS, taken);
        invalidation_free(&write);
        ck_assert(!has(HOST "/a") && !has(HOST "/b") && !has(HOST "/c") && has(HOST "/d"));
        scene_end();
    }
}
END_TEST

/* The variants of a URL may have more tags together than one object can. */
START_TEST(a_write_invalidates_all_tags_of_all_variants)
{
    enum { VARIANTS = 60, TAGS = 64 };
    static char lines[1200], url[100], fields[40];

    for (unsigned early = 0; early < 2; early++) {
        struct visit v;

        scene_begin(&defaults);
        scene.proxy.config.invalidates_early = early;
        for (unsigned i = 0; i < VARIANTS; i++) {
            strcpy(lines, FRESH "Vary: X-A\r\nSurrogate-Key:");
            for (unsigned t = 0; t < TAGS; t++)
                snprintf(lines + strlen(lines), sizeof(lines) - strlen(lines), " tag%u-%u", i, t);
            strcat(lines, "\r\n");
            snprintf(fields, sizeof(fields), "X-A: %u\r\n", i);
            ck_assert(!visit_raw(&v, HOST "/a", fields));
            scene_answer(HOST "/a", 200, lines, 20);
            ck_assert(v.stored);
        }
        for (unsigned i = 0; i < VARIANTS; i += 20) {
            snprintf(lines, sizeof(lines), FRESH "Surrogate-Key: tag%u-63\r\n", i);
            snprintf(url, sizeof(url), OTHER "/%u", i);
            store(url, lines);
        }
        store(HOST "/b", FRESH "Surrogate-Key: tag60-0\r\n");
        begin_write(&v, HOST "/a", true);
        scene_answer(HOST "/a", 204, "", 0);
        for (unsigned i = 0; i < VARIANTS; i += 20) {
            snprintf(url, sizeof(url), OTHER "/%u", i);
            ck_assert(!has(url));
        }
        ck_assert(!has(HOST "/a") && has(HOST "/b"));
        scene_end();
    }
}
END_TEST

/* No object has a tag of that length. */
START_TEST(a_write_to_a_long_path_invalidates_no_more_than_others)
{
    static char url[100000];

    /* Escaped, the second is longer than any URL. */
    for (unsigned i = 0; i < 2; i++) {
        struct invalidation_row none = {0};
        struct invalidation write;

        scene_begin(&defaults);
        scene_add_rule(&scene.tag_rules, "/* -> $1 all");
        store(HOST "/x", FRESH);
        scene_add_rule(&scene.write_rules, "/* -> never");
        store("http://host.test", FRESH "Surrogate-Key: other\r\n");
        strcpy(url, HOST "/");
        memset(url + strlen(url), ',', i ? 60000 : 3000);
        url[strlen(HOST "/") + (i ? 60000 : 3000)] = '\0';
        invalidation_init(&write, &scene.proxy, &none, span_str(url), true);
        ck_assert(invalidation_before(&write));
        ck_assert(!has(HOST "/x") && has("http://host.test"));
        invalidation_after(&write, 404, span_str(""));
        invalidation_free(&write);
        ck_assert(has("http://host.test"));
        scene_end();
    }
}
END_TEST

START_TEST(a_write_invalidates_the_tags_of_the_objects_of_its_references)
{
    scene_begin(&defaults);
    store(HOST "/a", FRESH "Surrogate-Key: x\r\n");
    store(HOST "/b", FRESH "Surrogate-Key: x\r\n");
    store(HOST "/c", FRESH "Surrogate-Key: y\r\n");
    write_to(HOST "/new", false, 201, "Location: /a\r\n");
    ck_assert(!has(HOST "/a") && !has(HOST "/b") && has(HOST "/c"));
    scene_end();
}
END_TEST

/* More of them at a time than are held: what comes meanwhile is removed at the end. */
START_TEST(many_writes_at_a_time)
{
    enum { WRITES = 300 };
    static struct visit writes[WRITES];
    static char targets[WRITES][64];

    begin();
    for (unsigned i = 0; i < WRITES; i++) {
        snprintf(targets[i], sizeof(targets[i]), HOST "/users/w%u", i);
        begin_write(&writes[i], targets[i], false);
    }
    pass(urls[0], FRESH);
    for (unsigned i = 0; i < WRITES; i++) {
        scene_answer(targets[i], 204, "", 0);
        expect_body(&writes[i], OUTCOME_BYPASS, 0);
    }
    ck_assert(!has(urls[0]));
    store(urls[0], FRESH);
    ck_assert(has(urls[0]));
    scene_end();
}
END_TEST

START_TEST(a_write_that_is_not_forwarded_holds_nothing)
{
    struct visit v = {.url = HOST "/users/9", .raw = true, .streams = true, .method = "PUT"};

    begin();
    scene.refuses = ENOMEM;
    ck_assert(visit(&v));
    scene.refuses = 0;
    store(urls[0], FRESH);
    store(HOST "/users/9", FRESH);
    scene_end();
}
END_TEST

/* Paths below the bases of a row may differ, and with them the tags of the same resource. */
START_TEST(a_write_invalidates_the_tags_below_each_base)
{
    const struct span bases[] = {span_str(HOST "/one"), span_str(OTHER "/two"),
                                 span_str("http://third.test")};

    for (unsigned used = 0; used < 3; used++) {
        const struct invalidation_row row = {.bases = bases, .count = 3, .used = used};
        struct invalidation write;
        char url[100];

        scene_begin(&defaults);
        scene_add_rule(&scene.tag_rules, "/one/* -> one-$1");
        scene_add_rule(&scene.tag_rules, "/two/* -> two-$1");
        scene_add_rule(&scene.tag_rules, "/* -> of-$1");
        store(HOST "/one/users/1", FRESH);
        store(OTHER "/two/users/1", FRESH);
        store("http://third.test/users/1", FRESH);
        store("http://third.test/paths/1", FRESH);
        snprintf(url, sizeof(url), "%s/users", bases[used].ptr);
        invalidation_init(&write, &scene.proxy, &row, span_str(url), true);
        ck_assert(invalidation_before(&write));
        invalidation_free(&write);
        ck_assert(!has(HOST "/one/users/1") && !has(OTHER "/two/users/1") &&
                  !has("http://third.test/users/1") && has("http://third.test/paths/1"));
        scene_end();
    }
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("proxy: writes and tags");
    TCase *tests = tcase_create("writes");

    tcase_add_test(tests, objects_have_the_tags_of_their_paths);
    tcase_add_test(tests, what_redirects_lead_to_has_the_tags_of_both_paths);
    tcase_add_test(tests, a_response_to_post_that_is_stored_has_tags);
    tcase_add_test(tests, what_cannot_have_its_tags_is_not_stored);
    tcase_add_test(tests, a_write_invalidates_by_the_rules_before_and_after);
    tcase_add_test(tests, a_write_invalidates_the_tags_that_rules_name);
    tcase_add_test(tests, requests_that_are_safe_or_no_writes_of_rules_leave_tags);
    tcase_add_test(tests, what_is_fetched_during_a_write_is_not_stored);
    tcase_add_test(tests, a_write_that_cannot_be_forwarded_has_invalidated);
    tcase_add_test(tests, a_write_invalidates_the_tags_of_the_object_of_its_url);
    tcase_add_test(tests, an_error_leaves_tags_that_no_rule_gives);
    tcase_add_test(tests, tags_of_an_origin_are_invalidated_in_each_spelling);
    tcase_add_test(tests, tags_of_other_origins_are_invalidated_by_their_owner_only);
    tcase_add_test(tests, without_memory_for_the_tags_of_what_is_removed_a_write_is_refused);
    tcase_add_test(tests, a_response_to_a_write_needs_no_memory_of_requests);
    tcase_add_test(tests, a_write_invalidates_all_tags_of_all_variants);
    tcase_add_test(tests, a_write_to_a_long_path_invalidates_no_more_than_others);
    tcase_add_test(tests, a_write_invalidates_the_tags_of_the_objects_of_its_references);
    tcase_add_test(tests, a_write_invalidates_the_tags_below_each_base);
    tcase_add_test(tests, many_writes_at_a_time);
    tcase_add_test(tests, a_write_that_is_not_forwarded_holds_nothing);
    suite_add_tcase(suite, tests);
    return suite;
}
