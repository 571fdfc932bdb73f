/*
 * Ranges of what is not in the cache: the whole is fetched once for all, or the range is the
 * origin's. A request for a part is never worth more of the origin's bytes than these.
 */
#define UNIT_STARTS_NO_THREAD

#include <stdio.h>

#include "base/clients.h"
#include "tests/unit/proxy/scene.h"

#define URL "http://origin.test/page"
#define FRESH "ETag: \"a\"\r\nCache-Control: max-age=60\r\n"
#define PRIVATE "Cache-Control: private\r\n"
#define LENGTH 8000000
#define WITH_LENGTH FRESH "Content-Length: 8000000\r\n"
#define FIRST "Range: bytes=0-99\r\n"
#define MIDDLE "Range: bytes=4000000-4000099\r\n"

static const struct scene_options defaults = {.max_body = 16 * MIB};

/* A request that is satisfied with the beginning of what comes. */
static void
visit_part(struct visit *v, const char *fields)
{
    *v = (struct visit){.url = URL,
                        .method = "GET",
                        .fields = fields,
                        .http = true,
                        .streams = true,
                        .cancels_in_head = true};
    ck_assert(!visit(v));
}

/* The head of a response with this status comes. */
static enum fetch_flow
begin(struct scene_fetch *fetch, unsigned status, const char *lines, int64_t length)
{
    enum fetch_flow flow;

    fetch->sink->begin(fetch->context);
    fetch->sink->response(
        fetch->context,
        &(struct fetch_response){.status = status, .lines = span_str(lines), .waited_us = 1000});
    flow = scene_head(fetch, status, lines, length);
    if (flow == FETCH_ABORT)
        scene_done(fetch, FETCH_CANCELLED, "");
    scene_run();
    return flow;
}

static void
grow(struct scene_fetch *fetch, size_t rest)
{
    while (rest) {
        size_t part = rest < MIB ? rest : MIB;

        (void)scene_body(fetch, part);
        rest -= part;
    }
    scene_run();
}

static void
end(struct scene_fetch *fetch, size_t rest)
{
    grow(fetch, rest);
    scene_done(fetch, FETCH_OK, "");
    scene_run();
}

static void
expect_hit(const char *fields, size_t len)
{
    struct visit v;

    ck_assert(visit_http(&v, URL, fields));
    expect_body(&v, OUTCOME_HIT, len);
    ck_assert_int_eq(v.evaluated, EVALUATED_NOTHING);
}

/* ---- the whole, once ------------------------------------------------------------------------- */

/* `_i`: the range of the first request, near or far. */
START_TEST(a_part_of_a_cold_file_leads_to_the_whole)
{
    const char *fields = _i ? MIDDLE : FIRST;
    struct scene_fetch *fetch;
    struct visit v[6];

    scene_begin(&defaults);
    visit_part(&v[0], fields);
    fetch = scene_fetch(URL);
    ck_assert_str_eq(fetch->fields, "");
    ck_assert_int_eq(begin(fetch, 200, WITH_LENGTH, LENGTH), FETCH_CONTINUE);
    if (_i) {
        /* What is far ahead is the origin's, beside. */
        ck_assert_uint_eq(v[0].heads, 0);
        ck_assert_uint_eq(scene_fetches(), 2);
        ck_assert_str_eq(TAILQ_NEXT(fetch, link)->fields, MIDDLE);
        begin(TAILQ_NEXT(fetch, link), 206, "Content-Range: bytes 4000000-4000099/8000000\r\n",
              100);
        ck_assert_uint_eq(v[0].heads, 1);
        scene_done(TAILQ_NEXT(fetch, link), FETCH_CANCELLED, "");
        scene_run();
    }
    ck_assert(v[0].ended);
    /* The fetch goes on though no request waits, and later ones find it on its way. */
    ck_assert(!scene_is_cancelled(fetch));
    for (unsigned i = 1; i < 6; i++) {
        visit_part(&v[i], FIRST);
        scene_run();
        ck_assert(v[i].ended);
        ck_assert_uint_eq(v[i].heads, 1);
    }
    ck_assert_uint_eq(scene_fetches(), 1);
    end(fetch, LENGTH);
    expect_hit(MIDDLE, LENGTH);
    ck_assert_uint_eq(scene.submitted, _i ? 2 : 1);
    scene_end();
}
END_TEST

START_TEST(a_range_is_near_what_has_come_or_not)
{
    static const struct {
        const char *fields;
        uint64_t come;
        int64_t length;
        bool near;
    } rows[] = {
        {"Range: bytes=1048576-1048577\r\n", 0, LENGTH, true},
        {"Range: bytes=1048577-1048578\r\n", 0, LENGTH, false},
        {"Range: bytes=1048577-1048578\r\n", 1, LENGTH, true},
        {"Range: bytes=7000000-\r\n", 6500000, LENGTH, true},
        {"Range: bytes=-1000000\r\n", 6500000, LENGTH, true},
        {"Range: bytes=-1000000\r\n", 1000000, LENGTH, false},
        {"Range: bytes=0-1,3-4\r\n", 6500000, LENGTH, false},
        {"Range: bytes=8000000-\r\n", 0, LENGTH, true},       /* it is not satisfiable */
        {"Range: bytes=7000000-\r\n", 0, -1, true},           /* the whole is the response */
        {"Range: lines=7000000-7000001\r\n", 0, LENGTH, true}, /* likewise */
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *lines = rows[i].length < 0 ? FRESH : WITH_LENGTH;
        struct scene_fetch *fetch;
        struct visit whole, v;

        scene_begin(&defaults);
        ck_assert(!visit_http(&whole, URL, ""));
        fetch = scene_fetch(URL);
        begin(fetch, 200, lines, rows[i].length);
        grow(fetch, rows[i].come);
        ck_assert(!visit_http(&v, URL, rows[i].fields));
        scene_run();
        ck_assert_msg(scene_fetches() == (rows[i].near ? 1 : 2), "row %zu", i);
        ck_assert_uint_eq(v.heads, rows[i].near);
        if (!rows[i].near) {
            ck_assert_str_eq(TAILQ_NEXT(fetch, link)->fields, rows[i].fields);
            begin(TAILQ_NEXT(fetch, link), 206, "", 0);
            scene_done(TAILQ_NEXT(fetch, link), FETCH_OK, "");
            scene_run();
            ck_assert_uint_eq(v.status, 206);
        }
        end(fetch, (size_t)(LENGTH - rows[i].come));
        ck_assert(v.ended && whole.ended);
        scene_end();
    }
}
END_TEST

/* ---- what is not for the cache --------------------------------------------------------------- */

/* What the whole would be: it is given up at its head, and ranges are the origin's from then on. */
START_TEST(ranges_of_what_is_not_filled_are_the_origins)
{
    static const struct {
        const char *policy, *lines;
        int64_t length;
        uint64_t range_fill;
        bool gives_up, gives_up_to_end;
    } rows[] = {
        {NULL, WITH_LENGTH, LENGTH, 0, false, false},
        {NULL, WITH_LENGTH, LENGTH, LENGTH, false, false},
        {NULL, WITH_LENGTH, LENGTH, LENGTH - 1, true, false},
        {NULL, WITH_LENGTH, 20 * (int64_t)MIB, 0, true, true}, /* more than is stored */
        {NULL, FRESH, -1, 0, true, false},
        {NULL, PRIVATE, LENGTH, 0, true, true},
        {NULL, "Cache-Control: no-store\r\n", LENGTH, 0, true, true},
        {NULL, PRIVATE "Accept-Ranges: none\r\n", LENGTH, 0, false, false},
        {"none", WITH_LENGTH, LENGTH, 0, true, true},
    };

    for (size_t i = 0; i < 2 * sizeof(rows) / sizeof(rows[0]); i++) {
        const struct scene_options options = {.policy = rows[i / 2].policy,
                                              .max_body = 16 * MIB,
                                              .range_fill = rows[i / 2].range_fill};
        bool gives_up = i % 2 ? rows[i / 2].gives_up_to_end : rows[i / 2].gives_up;
        const char *fields = i % 2 ? "Range: bytes=5-\r\n" : FIRST;
        struct scene_fetch *fetch;
        struct visit v, joined;

        scene_begin(&options);
        ck_assert(!visit_http(&v, URL, fields));
        ck_assert(!visit_http(&joined, URL, "Range: bytes=7-9\r\n"));
        fetch = scene_fetch(URL);
        ck_assert_msg((begin(fetch, 200, rows[i / 2].lines, rows[i / 2].length) == FETCH_ABORT) ==
                          gives_up,
                      "row %zu", i);
        if (gives_up) {
            ck_assert_uint_eq(scene_stats().passed, 1);
            ck_assert_uint_eq(scene_fetches(), 2);
            ck_assert_str_eq(scene_fetch(URL)->fields, "Range: bytes=7-9\r\n");
            scene_answer(URL, 206, PRIVATE, 100);
            ck_assert_uint_eq(joined.status, 206);
            ck_assert_str_eq(scene_fetch(URL)->fields, fields);
            scene_answer(URL, 206, PRIVATE, 100);
            ck_assert_uint_eq(v.status, 206);
            ck_assert_int_eq(v.evaluated, EVALUATED_ALL);
            /* Later ones ask for nothing else. */
            ck_assert(!visit_http(&v, URL, MIDDLE));
            ck_assert_uint_eq(scene_fetches(), 1);
            ck_assert_str_eq(scene_fetch(URL)->fields, MIDDLE);
            scene_answer(URL, 206, PRIVATE, 100);
        } else {
            while (scene_fetches()) {
                scene_done(scene_fetch(URL), FETCH_ORIGIN_BROKE, "broken");
                scene_run();
            }
        }
        scene_end();
    }
}
END_TEST

/* A file of more than is filled for a range goes on for a request that waits for the whole. `_i`:
 * the range, near or far. */
START_TEST(a_range_ends_no_fetch_that_others_wait_for)
{
    const struct scene_options options = {.max_body = 16 * MIB, .range_fill = MIB};
    struct scene_fetch *fetch;
    struct visit part, whole;

    scene_begin(&options);
    visit_part(&part, _i ? MIDDLE : FIRST);
    ck_assert(!visit_http(&whole, URL, ""));
    fetch = scene_fetch(URL);
    ck_assert_int_eq(begin(fetch, 200, WITH_LENGTH, LENGTH), FETCH_CONTINUE);
    ck_assert_uint_eq(scene_stats().passed, 0);
    if (_i) {
        ck_assert_str_eq(TAILQ_NEXT(fetch, link)->fields, MIDDLE);
        begin(TAILQ_NEXT(fetch, link), 206, "Content-Range: bytes 4000000-4000099/8000000\r\n",
              100);
        scene_done(TAILQ_NEXT(fetch, link), FETCH_CANCELLED, "");
        scene_run();
    }
    ck_assert_uint_eq(part.heads, 1);
    ck_assert(part.ended && !whole.ended && !scene_is_cancelled(fetch));
    end(fetch, LENGTH);
    expect_body(&whole, OUTCOME_COALESCED, LENGTH);
    expect_hit("", LENGTH);
    ck_assert_uint_eq(scene.submitted, _i ? 2 : 1);
    scene_end();
}
END_TEST

/* Its credentials leave no mark, and the repetition does not lead to the same again. */
START_TEST(a_users_range_is_the_origins)
{
    struct visit v;

    scene_begin(&defaults);
    ck_assert(!visit_http(&v, URL, "Authorization: a\r\n" FIRST));
    ck_assert_str_eq(scene_fetch(URL)->fields, "Authorization: a\r\n");
    ck_assert_int_eq(begin(scene_fetch(URL), 200, WITH_LENGTH, LENGTH), FETCH_ABORT);
    ck_assert_str_eq(scene_fetch(URL)->fields, "Authorization: a\r\n" FIRST);
    scene_answer(URL, 206, FRESH, 100);
    expect_body(&v, OUTCOME_MISS, 100);
    ck_assert_uint_eq(v.status, 206);
    ck_assert_uint_eq(scene.submitted, 2);
    scene_end();
}
END_TEST

/* Statuses that do not depend on a range are for the leader as they are. */
START_TEST(other_statuses_are_passed_on)
{
    static const unsigned statuses[] = {204, 302, 304, 404, 500};

    for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++) {
        struct visit v;

        scene_begin(&defaults);
        ck_assert(!visit_http(&v, URL, FIRST));
        scene_answer(URL, statuses[i], "", 0);
        ck_assert(v.ended);
        ck_assert_uint_eq(v.status, statuses[i]);
        ck_assert_uint_eq(scene.submitted, 1);
        scene_end();
    }
}
END_TEST

START_TEST(a_part_that_was_not_asked_for_is_for_one_request)
{
    struct visit first, second;

    scene_begin(&defaults);
    ck_assert(!visit_http(&first, URL, ""));
    ck_assert(!visit_http(&second, URL, ""));
    scene_answer(URL, 206, "Content-Range: bytes 5-9/10\r\nCache-Control: max-age=60\r\n", 5);
    expect_body(&first, OUTCOME_MISS, 5);
    ck_assert(!first.stored && first.status == 206);
    scene_answer(URL, 200, FRESH, 20);
    expect_body(&second, OUTCOME_MISS, 20);
    ck_assert(second.stored);
    scene_end();
}
END_TEST

/* ---- conditions ------------------------------------------------------------------------------ */

/* A new response that its client has already costs the origin once, too. */
START_TEST(what_has_answered_a_condition_is_stored)
{
    struct scene_fetch *fetch;
    struct visit v;

    scene_begin(&defaults);
    ck_assert(!visit_http(&v, URL, ""));
    scene_answer(URL, 200, "ETag: \"old\"\r\nCache-Control: max-age=10\r\n", 20);
    scene.now_us += 11 * SECOND;
    visit_part(&v, "If-None-Match: \"a\"\r\n");
    fetch = scene_fetch(URL);
    begin(fetch, 200, WITH_LENGTH, LENGTH);
    ck_assert(v.ended && !scene_is_cancelled(fetch));
    end(fetch, LENGTH);
    expect_hit("", LENGTH);
    scene_end();
}
END_TEST

/* ---- rates ----------------------------------------------------------------------------------- */

/* Each file counts, and so does what is fetched beside it. */
START_TEST(each_fetch_counts_for_its_client)
{
    struct clients *table =
        clients_create(&(struct clients_config){.rates.fetches = {.per_second = 1, .burst = 3}});
    struct client *client;
    char url[64];

    scene_begin(&defaults);
    ck_assert_ptr_nonnull(table);
    client = clients_find_uid(table, 1, scene.now_us);
    ck_assert_ptr_nonnull(client);
    for (unsigned i = 0; i < 3; i++) {
        struct visit v = {.url = url,
                          .method = "GET",
                          .fields = MIDDLE,
                          .http = true,
                          .streams = true,
                          .client = client,
                          .bounded = true};

        snprintf(url, sizeof(url), URL "%u", i);
        ck_assert_int_eq(visit(&v), i == 2);
        if (i == 2) {
            expect_failure(&v, FAILURE_OVERLOADED, "the rate of fetches");
            break;
        }
        begin(scene_fetch(url), 200, WITH_LENGTH, LENGTH);
        ck_assert_uint_eq(scene_fetches(), 2);
        while (scene_fetches()) {
            scene_done(scene_fetch(NULL), FETCH_ORIGIN_BROKE, "broken");
            scene_run();
        }
    }
    ck_assert_uint_eq(scene.submitted, 4);
    scene_end();
    client_release(&client);
    clients_destroy(table);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("proxy: ranges");
    TCase *cases = tcase_create("all");

    tcase_add_loop_test(cases, a_part_of_a_cold_file_leads_to_the_whole, 0, 2);
    tcase_add_test(cases, a_range_is_near_what_has_come_or_not);
    tcase_add_test(cases, ranges_of_what_is_not_filled_are_the_origins);
    tcase_add_loop_test(cases, a_range_ends_no_fetch_that_others_wait_for, 0, 2);
    tcase_add_test(cases, a_users_range_is_the_origins);
    tcase_add_test(cases, other_statuses_are_passed_on);
    tcase_add_test(cases, a_part_that_was_not_asked_for_is_for_one_request);
    tcase_add_test(cases, what_has_answered_a_condition_is_stored);
    tcase_add_test(cases, each_fetch_counts_for_its_client);
    suite_add_tcase(suite, cases);
    return suite;
}
