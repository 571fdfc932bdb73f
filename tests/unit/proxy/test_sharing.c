/* What may be shared of a response, and for how long. */
#define UNIT_STARTS_NO_THREAD

#include "proxy/sharing.h"

#include "http/known_fields.h"
#include "http/storing.h"
#include "proxy/proxy_rules.h"
#include "tests/unit/unit.h"

#define SECOND ((int64_t)1000000)
#define NOW (1000 * SECOND)
#define WALL_S 1780000000

/* To a request over RPC (`keeps`), or over HTTP. */
static void
evaluate(struct sharing *sharing, bool keeps, unsigned status, const char *lines)
{
    const struct http_received received = {
        .method = HTTP_GET,
        .status = status,
        .lines = span_str(lines),
        .arrival.wall_s = WALL_S,
    };
    struct http_storing_rules rules;

    http_storing_rules_init(&rules);
    rules.keeps_unstated = keeps;
    sharing_evaluate(sharing, &received, &rules, NOW);
}

START_TEST(what_is_for_one_client_is_not_shared)
{
    static const struct {
        const char *lines;
        enum http_reason unshared;
    } rows[] = {
        {"", HTTP_REASON_NONE},
        {"Cache-Control: max-age=60\r\n", HTTP_REASON_NONE},
        {"Set-Cookie: a=b\r\n", HTTP_REASON_SET_COOKIE},
        {"Cache-Control: private\r\n", HTTP_REASON_PRIVATE},
        {"Cache-Control: no-store\r\n", HTTP_REASON_NO_STORE},
        {"Vary: *\r\n", HTTP_REASON_VARY_ANY},
        {"Cache Control: x\r\n", HTTP_REASON_MALFORMED},
        /* It is of no use later, but says nothing of others. */
        {"Cache-Control: max-age=0\r\n", HTTP_REASON_NONE},
        {"Expires: 0\r\n", HTTP_REASON_NONE},
        {"Cache-Control: no-cache\r\n", HTTP_REASON_NONE},
    };

    for (size_t i = 0; i < 2 * sizeof(rows) / sizeof(rows[0]); i++) {
        const size_t row = i / 2;
        struct sharing sharing, any;

        sharing_init(&sharing, false, 0);
        sharing_init(&any, true, 0);
        evaluate(&sharing, i % 2, 200, rows[row].lines);
        evaluate(&any, i % 2, 200, rows[row].lines);
        ck_assert_msg(sharing.unshared == rows[row].unshared, "row %zu", row);
        ck_assert(!rows[row].unshared || (sharing.refusal && !sharing.joinable));
        /* With --freshness off all is shared, and stays. */
        ck_assert_int_eq(any.unshared, HTTP_REASON_NONE);
        ck_assert_int_eq(any.refusal, HTTP_REASON_NONE);
        ck_assert(any.joinable);
        ck_assert_uint_eq(any.notes, 0);
        ck_assert_int_eq(sharing_lifetime(&any, any.born_us), INT64_MAX);
    }
}
END_TEST

START_TEST(without_a_lifetime_it_is_kept_for_clients_that_know_no_freshness)
{
    static const unsigned statuses[] = {200, 301, 308};

    for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++) {
        struct sharing sharing;

        sharing_init(&sharing, false, 0);
        evaluate(&sharing, true, statuses[i], "X: y\r\n");
        ck_assert_int_eq(sharing.refusal, HTTP_REASON_NONE);
        ck_assert(sharing.joinable);
        ck_assert_uint_eq(sharing.notes, HTTP_KNOWN_UNSTATED);
        ck_assert_int_eq(sharing.fresh_until_us, INT64_MAX);
        ck_assert_int_eq(sharing_lifetime(&sharing, sharing.born_us), INT64_MAX);

        sharing_init(&sharing, false, 0);
        evaluate(&sharing, false, statuses[i], "X: y\r\n");
        ck_assert_int_eq(sharing.refusal, HTTP_REASON_UNSTATED);
        ck_assert(!sharing.joinable);

        sharing_init(&sharing, false, 0);
        evaluate(&sharing, false, statuses[i], "ETag: \"a\"\r\n");
        ck_assert_int_eq(sharing.refusal, HTTP_REASON_NONE);
        ck_assert(!sharing.joinable);
        ck_assert_uint_eq(sharing.notes, 0);
        ck_assert_int_eq(sharing_lifetime(&sharing, sharing.born_us), 0);
    }
}
END_TEST

START_TEST(other_statuses_are_not_kept_without_a_lifetime)
{
    static const unsigned statuses[] = {203, 302, 303, 307, 404, 410, 500, 503};

    for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++) {
        struct sharing sharing;

        sharing_init(&sharing, false, 0);
        evaluate(&sharing, true, statuses[i], "");
        ck_assert_int_eq(sharing.refusal, HTTP_REASON_UNSTATED);
        ck_assert_int_eq(sharing.unshared, HTTP_REASON_NONE);
        /* Those of them that wait have it nevertheless. */
        ck_assert(sharing.joinable);
        ck_assert_uint_eq(sharing.notes, HTTP_KNOWN_UNSTATED);
        sharing_init(&sharing, false, 0);
        evaluate(&sharing, false, statuses[i], "");
        ck_assert(!sharing.joinable);
        sharing_init(&sharing, true, 0);
        evaluate(&sharing, true, statuses[i], "");
        ck_assert_int_eq(sharing.refusal, HTTP_REASON_STATUS);
        ck_assert(sharing.joinable);
        /* With --freshness off what a redirect leads to is fetched for the same object. */
        ck_assert_int_eq(sharing.fresh_until_us, statuses[i] / 100 == 3 ? NOW : INT64_MAX);
    }
}
END_TEST

START_TEST(a_lifetime_counts_from_the_age_0_on)
{
    static const struct {
        const char *lines;
        int64_t age_us, lifetime_us;
        bool joinable;
    } rows[] = {
        {"Cache-Control: max-age=60\r\n", 0, 60 * SECOND, true},
        {"Cache-Control: max-age=60\r\nAge: 59\r\n", 59 * SECOND, 60 * SECOND, true},
        {"Cache-Control: max-age=60\r\nAge: 60\r\nETag: \"a\"\r\n", 60 * SECOND, 60 * SECOND,
         false},
        {"Cache-Control: max-age=60, no-cache\r\nETag: \"a\"\r\n", 0, 0, false},
        /* The second 1780000000 and a minute. */
        {"Expires: Thu, 28 May 2026 20:27:40 GMT\r\n", 0, 60 * SECOND, true},
        {"Expires: Thu, 28 May 2026 20:26:40 GMT\r\nETag: \"a\"\r\n", 0, 0, false},
    };

    for (size_t i = 0; i < 2 * sizeof(rows) / sizeof(rows[0]); i++) {
        const size_t row = i / 2;
        struct sharing sharing;

        sharing_init(&sharing, false, 0);
        evaluate(&sharing, i % 2, 200, rows[row].lines);
        ck_assert_int_eq(sharing.refusal, HTTP_REASON_NONE);
        ck_assert_int_eq(sharing.born_us, NOW - rows[row].age_us);
        ck_assert_int_eq(sharing_lifetime(&sharing, sharing.born_us), rows[row].lifetime_us);
        ck_assert_msg(sharing.joinable == rows[row].joinable, "row %zu", row);
    }
}
END_TEST

START_TEST(the_bound_on_the_age_counts_from_the_arrival_on)
{
    static const struct {
        const char *lines;
        int64_t lifetime_us; /* from the arrival on */
    } rows[] = {
        {"Cache-Control: max-age=60\r\n", 30 * SECOND},
        {"Cache-Control: max-age=20\r\n", 20 * SECOND},
        {"", 30 * SECOND},
        /* The age that a response had on arrival does not count. */
        {"Cache-Control: max-age=600\r\nAge: 100\r\n", 30 * SECOND},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct sharing sharing, any;

        sharing_init(&sharing, false, 30 * SECOND);
        sharing_init(&any, true, 30 * SECOND);
        evaluate(&sharing, true, 200, rows[i].lines);
        evaluate(&any, true, 200, rows[i].lines);
        ck_assert_int_eq(sharing_lifetime(&sharing, NOW), rows[i].lifetime_us);
        ck_assert_int_eq(sharing_lifetime(&any, NOW), 30 * SECOND);
        ck_assert_int_eq(sharing_lifetime(&any, NOW + 31 * SECOND), 0);
        ck_assert_int_eq(any.unshared, HTTP_REASON_NONE);
    }
}
END_TEST

START_TEST(stale_while_revalidate_counts_where_the_age_is_not_bounded)
{
    static const char lines[] = "Cache-Control: max-age=60, stale-while-revalidate=20\r\n";
    struct sharing sharing;

    sharing_init(&sharing, false, 0);
    evaluate(&sharing, true, 200, lines);
    ck_assert_int_eq(sharing.while_revalidate_us, 20 * SECOND);
    sharing_init(&sharing, false, 30 * SECOND);
    evaluate(&sharing, true, 200, lines);
    ck_assert_int_eq(sharing.while_revalidate_us, 0);
}
END_TEST

/* ---- what was stored under other options ----------------------------------------------------- */

static int64_t
now_us(void *context)
{
    (void)context;
    return NOW;
}

static int64_t
wall_us(void *context)
{
    (void)context;
    return WALL_S * SECOND;
}

/* In each row all options but one are as when it was stored, with a lifetime of 900 s. */
START_TEST(what_was_stored_under_other_options_is_reviewed)
{
    enum { MAX_AGE = 1, NO_HEURISTIC = 2, REDIRECT = 4, ERROR = 8, NO_COOKIES = 16, NO_400 = 32 };
    static const struct {
        const char *lines;
        unsigned status, options;
        unsigned notes;
        int lifetime_s;
        enum http_reason refusal;
    } rows[] = {
        {"Cache-Control: max-age=900\r\n", 200, NO_HEURISTIC | REDIRECT | ERROR | NO_COOKIES, 0,
         900, HTTP_REASON_NONE},
        {"Cache-Control: max-age=900\r\n", 200, MAX_AGE, 0, 12, HTTP_REASON_NONE},
        /* Stored 4 s ago, after a fetch of 2 s, with an age of 3 s. */
        {"Cache-Control: max-age=900\r\nAge: 3\r\n", 200, MAX_AGE, 0, 15, HTTP_REASON_NONE},
        {"Last-Modified: Mon, 01 Jan 2024 00:00:00 GMT\r\n", 200, 0, 0, 900, HTTP_REASON_NONE},
        {"Last-Modified: Mon, 01 Jan 2024 00:00:00 GMT\r\n", 200, NO_HEURISTIC, 0, 0,
         HTTP_REASON_NONE},
        /* Of a client that knows nothing of freshness. */
        {"ETag: \"a\"\r\n", 200, NO_HEURISTIC, HTTP_KNOWN_UNSTATED, 900, HTTP_REASON_NONE},
        {"Cache-Control: max-age=900\r\n", 302, REDIRECT, 0, 20, HTTP_REASON_NONE},
        {"Cache-Control: max-age=900\r\n", 404, ERROR, 0, 30, HTTP_REASON_NONE},
        {"Cache-Control: max-age=900\r\n", 404, REDIRECT, 0, 900, HTTP_REASON_NONE},
        {"Cache-Control: max-age=900\r\nSet-Cookie: a=b\r\n", 200, 0, 0, 900, HTTP_REASON_NONE},
        {"Cache-Control: max-age=900\r\nSet-Cookie: a=b\r\n", 200, NO_COOKIES, 0, 900,
         HTTP_REASON_SET_COOKIE},
        {"Cache-Control: max-age=900\r\n", 400, 0, 0, 900, HTTP_REASON_NONE},
        {"Cache-Control: max-age=900\r\n", 400, NO_400, 0, 900, HTTP_REASON_STATUS},
        /* Without a date, long after its arrival by the wall clock. */
        {"Expires: Thu, 28 May 2026 20:41:36 GMT\r\n", 200, 0, 0, 900, HTTP_REASON_NONE},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const unsigned options = rows[i].options;
        struct http_storing_rules storing;
        const struct proxy_rules rules = {.max_age_us = options & MAX_AGE ? 10 * SECOND : 0,
                                          .storing = &storing};
        const struct proxy proxy = {.config = {.follows_http = true,
                                               .rules = &rules,
                                               .clock = {.monotonic_us = now_us,
                                                         .wall_us = wall_us}}};
        struct source_head head = {
            .url = span_str("http://a.test/"),
            .fields = span_str(rows[i].lines),
            .status = rows[i].status,
            .notes = rows[i].notes,
            .born_us = NOW - 4 * SECOND,
            .fetch_us = 2 * SECOND,
            .lifetime_us = 900 * SECOND,
        };

        http_storing_rules_init(&storing);
        storing.heuristic_percent = options & NO_HEURISTIC ? 0 : 10;
        storing.redirect_max_us = options & REDIRECT ? 20 * SECOND : HTTP_UNLIMITED;
        storing.negative_max_us = options & ERROR ? 30 * SECOND : HTTP_UNLIMITED;
        storing.set_cookie = !(options & NO_COOKIES);
        storing.client_errors = !(options & NO_400);
        ck_assert_msg(sharing_review(&proxy, &(struct request){0}, &head) == rows[i].refusal,
                      "row %zu", i);
        ck_assert_msg(rows[i].refusal || head.lifetime_us == rows[i].lifetime_s * SECOND,
                      "row %zu: %lld", i, (long long)head.lifetime_us);
    }
}
END_TEST

START_TEST(without_rules_of_http_the_age_alone_is_bounded)
{
    const struct proxy_rules rules = {.max_age_us = 10 * SECOND};
    const struct proxy proxy = {
        .config = {.rules = &rules, .clock = {.monotonic_us = now_us, .wall_us = wall_us}}};
    struct source_head head = {.fields = span_str("Cache-Control: no-store\r\nAge: 5\r\n"),
                               .status = 200,
                               .born_us = NOW,
                               .fetch_us = SECOND,
                               .lifetime_us = INT64_MAX};

    ck_assert_int_eq(sharing_review(&proxy, &(struct request){0}, &head), HTTP_REASON_NONE);
    ck_assert_int_eq(head.lifetime_us, 11 * SECOND);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("proxy: sharing");
    TCase *tests = tcase_create("sharing");

    tcase_add_test(tests, what_is_for_one_client_is_not_shared);
    tcase_add_test(tests, without_a_lifetime_it_is_kept_for_clients_that_know_no_freshness);
    tcase_add_test(tests, other_statuses_are_not_kept_without_a_lifetime);
    tcase_add_test(tests, a_lifetime_counts_from_the_age_0_on);
    tcase_add_test(tests, the_bound_on_the_age_counts_from_the_arrival_on);
    tcase_add_test(tests, stale_while_revalidate_counts_where_the_age_is_not_bounded);
    tcase_add_test(tests, what_was_stored_under_other_options_is_reviewed);
    tcase_add_test(tests, without_rules_of_http_the_age_alone_is_bounded);
    suite_add_tcase(suite, tests);
    return suite;
}
