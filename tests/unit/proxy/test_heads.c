/* What responses to HEAD mean for stored responses to GET: RFC 9111 section 4.3.5. */
#define UNIT_STARTS_NO_THREAD

#include <stdio.h>

#include "proxy/control.h"
#include "tests/unit/proxy/scene.h"

#define URL "http://origin.test/page"
#define MADE "ETag: \"a\"\r\nLast-Modified: Sat, 01 Aug 2015 00:00:00 GMT\r\nX-A: old\r\n"
#define FRESH "Cache-Control: max-age=1000\r\n"
#define AGAIN "Cache-Control: no-cache\r\n" /* of a request */

static const struct scene_options defaults;

static void
store(const char *fields, const char *lines)
{
    struct visit v;

    ck_assert(!visit_raw(&v, URL, fields));
    scene_answer(URL, 200, lines, 20);
    expect_body(&v, OUTCOME_MISS, 20);
    ck_assert(v.stored);
}

static void
begin_head(struct visit *v, const char *fields)
{
    *v = (struct visit){
        .url = URL, .raw = true, .streams = true, .method = "HEAD", .fields = fields};
    ck_assert(!visit(v));
    ck_assert_str_eq(scene_fetch(URL)->method, "HEAD");
}

static void
head(const char *fields, unsigned status, const char *lines)
{
    struct visit v;

    begin_head(&v, fields);
    scene_answer(URL, status, lines, 0);
    expect_body(&v, OUTCOME_BYPASS, 0);
    ck_assert_uint_eq(v.status, status);
}

/* A GET hits and gets this line. */
static void
expect_hit(const char *fields, const char *line)
{
    struct visit v;

    ck_assert(visit_raw(&v, URL, fields));
    expect_body(&v, OUTCOME_HIT, 20);
    ck_assert_msg(strstr(v.lines, line) != NULL, "%s", v.lines);
}

/* A GET asks the origin for a confirmation, and gets it. */
static void
expect_validation(const char *fields)
{
    struct visit v;

    ck_assert(!visit_raw(&v, URL, fields));
    ck_assert_ptr_nonnull(strstr(scene_fetch(URL)->fields, "If-None-Match: \"a\"\r\n"));
    scene_answer(URL, 304, FRESH, 0);
    expect_body(&v, OUTCOME_REVALIDATED, 20);
}

START_TEST(the_same_representation_is_updated)
{
    static const char *const rows[] = {
        "ETag: \"a\"\r\n",
        "ETag: \"a\"\r\nContent-Length: 20\r\n",
        "Last-Modified: Sat, 01 Aug 2015 00:00:00 GMT\r\n",
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char lines[200];
        struct visit v;

        scene_begin(&defaults);
        store("", MADE FRESH);
        scene.now_us += 1001 * SECOND;
        snprintf(lines, sizeof(lines), "%s" FRESH "X-A: new\r\nX-B: b\r\n", rows[i]);
        head("", 200, lines);
        expect_hit("", "X-A: new\r\n");
        expect_hit("", "X-B: b\r\n");
        expect_hit("", "ETag: \"a\"\r\n");
        ck_assert(visit_raw(&v, URL, ""));
        ck_assert_int_lt(v.age_us, SECOND);
        /* For as long as it states now. */
        scene.now_us += 999 * SECOND;
        expect_hit("", "X-A: new\r\n");
        scene.now_us += 2 * SECOND;
        expect_validation("");
        ck_assert_uint_eq(scene_stats().pages, 1);
        scene_end();
    }
}
END_TEST

START_TEST(another_representation_outdates_the_stored_one)
{
    static const char *const rows[] = {
        "ETag: \"b\"\r\n",
        "ETag: W/\"a\"\r\n",
        "Last-Modified: Sat, 01 Aug 2015 00:00:01 GMT\r\n",
        "ETag: \"a\"\r\nContent-Length: 21\r\n",
        /* It is the same one, and not to be used without a validation. */
        "ETag: \"a\"\r\nVary: X-C\r\n",
        "ETag: \"a\"\r\nCache-Control: no-cache\r\n",
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        scene_begin(&defaults);
        store("", MADE FRESH);
        head(AGAIN, 200, rows[i]);
        ck_assert_uint_eq(scene_stats().pages, 1);
        expect_validation("");
        scene_end();
    }
}
END_TEST

/* Not even while the origin does not respond. */
START_TEST(what_is_for_no_other_client_any_more_is_removed)
{
    static const char *const rows[] = {
        "ETag: \"a\"\r\nCache-Control: private\r\n",
        "ETag: \"a\"\r\nCache-Control: no-store\r\n",
        "ETag: \"a\"\r\nSet-Cookie: a=b\r\n",
        "ETag: \"b\"\r\nCache-Control: private\r\n",
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct visit v;

        scene_begin(&defaults);
        store("", MADE "Cache-Control: max-age=1000, stale-if-error=1000, "
                       "stale-while-revalidate=1000\r\n");
        head(AGAIN, 200, rows[i]);
        ck_assert_uint_eq(scene_stats().pages, 0);
        ck_assert(!visit_raw(&v, URL, ""));
        scene_answer(URL, 200, MADE FRESH, 20);
        expect_body(&v, OUTCOME_MISS, 20);
        scene_end();
    }
}
END_TEST

/* A purge says that the object is not to be used, also if it is the origin's. */
START_TEST(what_a_soft_purge_has_expired_stays_expired)
{
    static const struct {
        enum control_purge kind;
        const char *what;
    } rows[] = {
        {CONTROL_PURGE_URL, URL},
        {CONTROL_PURGE_PREFIX, "http://origin.test/"},
        {CONTROL_PURGE_TAG, "x"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        /* Before the request, or before its response. */
        for (unsigned during = 0; during < 2; during++) {
            struct visit v;

            scene_begin(&defaults);
            store("", MADE FRESH "Surrogate-Key: x\r\n");
            if (during)
                begin_head(&v, AGAIN);
            ck_assert_uint_eq(control_expire(&scene.proxy, rows[i].kind, span_str(rows[i].what)),
                              1);
            if (!during)
                begin_head(&v, "");
            scene_answer(URL, 200, "ETag: \"a\"\r\nX-A: new\r\n" FRESH, 0);
            expect_body(&v, OUTCOME_BYPASS, 0);
            expect_validation("");
            scene_end();
        }
    }
}
END_TEST

START_TEST(responses_without_an_effect)
{
    static const unsigned statuses[] = {304, 404, 410, 500, 301};

    for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++) {
        scene_begin(&defaults);
        store("", MADE FRESH);
        head(AGAIN, statuses[i], "ETag: \"b\"\r\nX-A: new\r\n");
        expect_hit("", "X-A: old\r\n");
        scene_end();
    }
    /* What one client may see is not for all, and says nothing about what all may. */
    scene_begin(&defaults);
    store("", MADE FRESH);
    head(AGAIN "Authorization: x\r\n", 200, "ETag: \"a\"\r\nX-A: new\r\n" FRESH);
    expect_hit("", "X-A: old\r\n");
    /* Likewise another representation that is the user's. */
    head(AGAIN "Authorization: x\r\n", 200, "ETag: \"b\"\r\n" FRESH);
    head(AGAIN "Authorization: x\r\n", 200, "ETag: \"b\"\r\nCache-Control: private\r\n");
    head(AGAIN "Cookie: x\r\n", 200, "ETag: \"b\"\r\nCache-Control: private\r\n");
    head(AGAIN "Cookie: x\r\n", 200, "ETag: \"a\"\r\nSet-Cookie: a\r\n");
    expect_hit("", "X-A: old\r\n");
    /* It is for all where the origin says so. */
    head(AGAIN "Authorization: x\r\n", 200, "ETag: \"b\"\r\nCache-Control: public\r\n");
    expect_validation("");
    scene_end();
    /* Without a validator it may be the stored one or another one. */
    scene_begin(&defaults);
    store("", MADE FRESH);
    head(AGAIN, 200, "Content-Length: 20\r\nX-A: new\r\n" FRESH);
    head(AGAIN, 200, "X-A: new\r\n" FRESH);
    expect_hit("", "X-A: old\r\n");
    scene.now_us += 1001 * SECOND;
    head("", 200, FRESH);
    expect_validation("");
    scene_end();
}
END_TEST

START_TEST(only_the_variant_of_the_request_is_concerned)
{
    scene_begin(&defaults);
    store("", MADE FRESH "Vary: X-C\r\n");
    store("X-C: 1\r\n", MADE FRESH "Vary: X-C\r\n");
    head(AGAIN "X-C: 1\r\n", 200, "ETag: \"a\"\r\nX-A: new\r\n" FRESH "Vary: X-C\r\n");
    expect_hit("", "X-A: old\r\n");
    expect_hit("X-C: 1\r\n", "X-A: new\r\n");
    head(AGAIN, 200, "ETag: \"b\"\r\n" FRESH "Vary: X-C\r\n");
    expect_validation("");
    expect_hit("X-C: 1\r\n", "X-A: new\r\n");
    scene_end();
}
END_TEST

START_TEST(an_object_from_later_is_not_concerned)
{
    static const char *const lines[] = {"ETag: \"a\"\r\nX-A: new\r\n" FRESH,
                                        "ETag: \"b\"\r\n" FRESH};

    for (unsigned i = 0; i < 2; i++) {
        struct scene_fetch *fetch;
        struct visit v, get;

        scene_begin(&defaults);
        store("", MADE FRESH);
        begin_head(&v, AGAIN);
        fetch = scene_fetch(URL);
        ck_assert(!visit_raw(&get, URL, AGAIN));
        TAILQ_REMOVE(&scene.fetches, fetch, link);
        scene_answer(URL, 200, "ETag: \"a\"\r\nX-A: later\r\n" FRESH, 20);
        TAILQ_INSERT_TAIL(&scene.fetches, fetch, link);
        expect_body(&get, OUTCOME_MISS, 20);
        scene_answer(URL, 200, lines[i], 0);
        expect_body(&v, OUTCOME_BYPASS, 0);
        expect_hit("", "X-A: later\r\n");
        scene_end();
    }
}
END_TEST

/* Its fetch may have come before the response, or after it: it decides. */
START_TEST(an_object_that_is_being_validated_is_not_concerned)
{
    struct scene_fetch *fetch;
    struct visit v, get;

    scene_begin(&defaults);
    store("", MADE FRESH);
    begin_head(&v, AGAIN);
    ck_assert(!visit_raw(&get, URL, AGAIN));
    fetch = scene_fetch(URL);
    scene_hop(fetch, FRESH, false);
    scene_head(fetch, 200, "ETag: \"a\"\r\nX-A: new\r\n" FRESH, 0);
    scene_done(fetch, FETCH_OK, "");
    scene_run();
    expect_body(&v, OUTCOME_BYPASS, 0);
    scene_answer(URL, 304, "X-A: later\r\n" FRESH, 0);
    expect_body(&get, OUTCOME_REVALIDATED, 20);
    expect_hit("", "X-A: later\r\n");
    scene_end();
}
END_TEST

/* It may have been sent before the other representation came to be. */
START_TEST(a_validation_of_what_a_head_outdates_is_not_stored)
{
    struct scene_fetch *fetch;
    struct visit v, get;

    scene_begin(&defaults);
    store("", MADE FRESH);
    ck_assert(!visit_raw(&get, URL, AGAIN));
    fetch = scene_fetch(URL);
    TAILQ_REMOVE(&scene.fetches, fetch, link);
    begin_head(&v, AGAIN);
    scene_answer(URL, 200, "ETag: \"b\"\r\n" FRESH, 0);
    expect_body(&v, OUTCOME_BYPASS, 0);
    TAILQ_INSERT_TAIL(&scene.fetches, fetch, link);
    scene_answer(URL, 304, FRESH, 0);
    expect_body(&get, OUTCOME_REVALIDATED, 20);
    ck_assert(!get.stored);
    ck_assert(!visit_raw(&get, URL, ""));
    scene_answer(URL, 200, "ETag: \"b\"\r\n" FRESH, 20);
    expect_body(&get, OUTCOME_MISS, 20);
    scene_end();
}
END_TEST

START_TEST(what_has_been_purged_meanwhile_stays_away)
{
    for (unsigned i = 0; i < 3; i++) {
        struct visit v;

        scene_begin(&defaults);
        store("", MADE FRESH "Surrogate-Key: x\r\n");
        begin_head(&v, AGAIN);
        if (i == 0)
            control_purge(&scene.proxy, CONTROL_PURGE_URL, span_str(URL));
        else
            control_purge(&scene.proxy, CONTROL_PURGE_TAG, span_str(i == 1 ? "x" : "y"));
        scene_answer(URL, 200, "ETag: \"a\"\r\nSurrogate-Key: y\r\nX-A: new\r\n" FRESH, 0);
        expect_body(&v, OUTCOME_BYPASS, 0);
        ck_assert(visit_raw(&v, URL, "Cache-Control: only-if-cached\r\n"));
        /* The response has a tag that has been purged since the request; the object had not. */
        if (i == 2)
            ck_assert_ptr_nonnull(strstr(v.lines, "X-A: old\r\n"));
        else
            expect_failure(&v, FAILURE_NOT_CACHED, "");
        scene_end();
    }
}
END_TEST

START_TEST(an_updated_object_has_the_tags_of_its_fields)
{
    scene_begin(&defaults);
    scene_add_rule(&scene.tag_rules, "/* -> $1");
    store("", MADE FRESH "Surrogate-Key: x\r\n");
    head(AGAIN, 200, "ETag: \"a\"\r\nSurrogate-Key: y\r\n" FRESH);
    ck_assert_uint_eq(control_purge(&scene.proxy, CONTROL_PURGE_TAG, span_str("x")), 0);
    ck_assert_uint_eq(control_expire(&scene.proxy, CONTROL_PURGE_TAG, span_str("page")), 1);
    ck_assert_uint_eq(control_purge(&scene.proxy, CONTROL_PURGE_TAG, span_str("y")), 1);
    scene_end();
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("proxy: HEAD and stored responses");
    TCase *tests = tcase_create("heads");

    tcase_add_test(tests, the_same_representation_is_updated);
    tcase_add_test(tests, another_representation_outdates_the_stored_one);
    tcase_add_test(tests, what_is_for_no_other_client_any_more_is_removed);
    tcase_add_test(tests, what_a_soft_purge_has_expired_stays_expired);
    tcase_add_test(tests, responses_without_an_effect);
    tcase_add_test(tests, only_the_variant_of_the_request_is_concerned);
    tcase_add_test(tests, an_object_from_later_is_not_concerned);
    tcase_add_test(tests, an_object_that_is_being_validated_is_not_concerned);
    tcase_add_test(tests, a_validation_of_what_a_head_outdates_is_not_stored);
    tcase_add_test(tests, what_has_been_purged_meanwhile_stays_away);
    tcase_add_test(tests, an_updated_object_has_the_tags_of_its_fields);
    suite_add_tcase(suite, tests);
    return suite;
}
