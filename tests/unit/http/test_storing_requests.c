/* What the conditions, the range and the user of a request say about storing the response to it. */
#include "http/storing.h"

#include "tests/unit/unit.h"

#define FRESH "Cache-Control: max-age=60\r\n"
#define PUBLIC "Cache-Control: max-age=60, public\r\n"

static enum http_reason
evaluate(const char *request, unsigned status, const char *lines)
{
    const struct http_received received = {
        .method = HTTP_GET,
        .request_lines = span_str(request),
        .status = status,
        .lines = span_str(lines),
        .arrival = {.wall_s = 784111777},
    };
    struct http_storing_rules rules;
    struct http_storing storing;

    http_storing_rules_init(&rules);
    http_evaluate_response(&received, &rules, &storing);
    return storing.refusal;
}

START_TEST(results_of_conditions_ranges_and_expectations)
{
    static const unsigned statuses[] = {304, 412, 416, 417};

    for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++) {
        ck_assert_int_eq(evaluate("", statuses[i], FRESH), HTTP_REASON_STATUS);
        ck_assert_int_eq(evaluate("", statuses[i], PUBLIC), HTTP_REASON_STATUS);
        ck_assert_int_eq(evaluate("Range: bytes=5-\r\n", statuses[i], FRESH), HTTP_REASON_STATUS);
    }
}
END_TEST

START_TEST(requests_that_the_origin_may_have_evaluated)
{
    static const char *const requests[] = {"Range: bytes=5-\r\n",     "If-Match: \"a\"\r\n",
                                           "If-None-Match: *\r\n",    "If-Modified-Since: x\r\n",
                                           "if-range: \"a\"\r\n",     "If-Unmodified-Since: x\r\n",
                                           "X-A: b\r\nrange: x=1\r\n"};
    static const unsigned others[] = {203, 301, 404, 410, 503};

    for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
        ck_assert_int_eq(evaluate(requests[i], 200, FRESH), HTTP_REASON_NONE);
        for (size_t k = 0; k < sizeof(others) / sizeof(others[0]); k++)
            ck_assert_msg(evaluate(requests[i], others[k], FRESH) == HTTP_REASON_STATUS, "%s %u",
                          requests[i], others[k]);
    }
    for (size_t k = 0; k < sizeof(others) / sizeof(others[0]); k++)
        ck_assert_int_eq(evaluate("Accept-Ranges: bytes\r\n", others[k], FRESH), HTTP_REASON_NONE);
}
END_TEST

/* ---- users ----------------------------------------------------------------------------------- */

#define TAG "ETag: \"a\"\r\n"
#define DATES                                  \
    "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n" \
    "Last-Modified: Sat, 05 Nov 1994 08:49:37 GMT\r\n"

START_TEST(responses_to_a_request_with_a_cookie)
{
    static const struct {
        const char *lines;
        enum http_reason refusal;
    } rows[] = {
        /* a lifetime, public or Vary say that others may have it */
        {FRESH, HTTP_REASON_NONE},
        {"Cache-Control: s-maxage=1, max-age=0\r\n", HTTP_REASON_NONE},
        {"Expires: Sun, 06 Nov 1994 08:49:38 GMT\r\n", HTTP_REASON_NONE},
        {FRESH TAG "Age: 61\r\n", HTTP_REASON_NONE},
        {"Cache-Control: public\r\n" TAG, HTTP_REASON_NONE},
        {"Cache-Control: public, max-age=0\r\n" TAG, HTTP_REASON_NONE},
        {"Vary: Accept, cookie\r\n" TAG, HTTP_REASON_NONE},
        {"Vary: Cookie\r\nCache-Control: max-age=0, must-revalidate\r\n" TAG, HTTP_REASON_NONE},
        /* and nothing else does */
        {TAG, HTTP_REASON_COOKIE},
        {"Vary: Accept\r\n" TAG, HTTP_REASON_COOKIE},
        {"Cache-Control: max-age=0\r\n" TAG, HTTP_REASON_COOKIE},
        {"Cache-Control: max-age=0, must-revalidate\r\n" TAG, HTTP_REASON_COOKIE},
        {"Cache-Control: max-age=60, s-maxage=0\r\n" TAG, HTTP_REASON_COOKIE},
        {"Cache-Control: max-age=x\r\n" TAG, HTTP_REASON_COOKIE},
        {"Cache-Control: max-age=0, stale-if-error=60\r\n" TAG, HTTP_REASON_COOKIE},
        {"Expires: 0\r\n" TAG, HTTP_REASON_COOKIE},
        {"Pragma: public\r\n" TAG, HTTP_REASON_COOKIE},
        {DATES, HTTP_REASON_COOKIE},
        /* with no-cache it is never another client's: WordPress, before all others */
        {"Cache-Control: no-cache, must-revalidate, max-age=0\r\n" TAG, HTTP_REASON_COOKIE},
        {"Cache-Control: no-cache, max-age=60\r\n" TAG, HTTP_REASON_COOKIE},
        {"Cache-Control: no-cache, public\r\n" TAG, HTTP_REASON_COOKIE},
        {"Cache-Control: no-cache, s-maxage=60\r\n" TAG, HTTP_REASON_COOKIE},
        {"Cache-Control: no-cache\r\nVary: Cookie\r\n" TAG, HTTP_REASON_COOKIE},
        {"Cache-Control: no-cache=\"x-a\", max-age=60\r\n" TAG, HTTP_REASON_COOKIE},
        /* what is stored for no request */
        {"Cache-Control: no-store\r\n" TAG, HTTP_REASON_NO_STORE},
        {"Cache-Control: private, max-age=60\r\n" TAG, HTTP_REASON_PRIVATE},
        {"Set-Cookie: a=b\r\n" FRESH, HTTP_REASON_SET_COOKIE},
        {"", HTTP_REASON_UNSTATED},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        ck_assert_msg(evaluate("Cookie: s=1\r\n", 200, rows[i].lines) == rows[i].refusal, "%s",
                      rows[i].lines);
        ck_assert_msg(evaluate("cookie:\r\n", 200, rows[i].lines) == rows[i].refusal, "%s",
                      rows[i].lines);
        if (rows[i].refusal == HTTP_REASON_COOKIE)
            ck_assert_msg(evaluate("Cookie-A: s=1\r\n", 200, rows[i].lines) == HTTP_REASON_NONE,
                          "%s", rows[i].lines);
    }
}
END_TEST

START_TEST(responses_to_an_authorized_request_with_no_cache)
{
    static const struct {
        const char *lines;
        enum http_reason refusal;
    } rows[] = {
        {"Cache-Control: max-age=60, must-revalidate\r\n", HTTP_REASON_NONE},
        {"Cache-Control: public\r\n" TAG, HTTP_REASON_NONE},
        {"Cache-Control: max-age=0, must-revalidate\r\n" TAG, HTTP_REASON_AUTHORIZATION},
        {"Cache-Control: s-maxage=0\r\n" TAG, HTTP_REASON_AUTHORIZATION},
        {"Cache-Control: must-revalidate\r\n" DATES, HTTP_REASON_AUTHORIZATION},
        {"Cache-Control: no-cache, must-revalidate, max-age=0\r\n" TAG,
         HTTP_REASON_AUTHORIZATION},
        {"Cache-Control: no-cache, s-maxage=60\r\n" TAG, HTTP_REASON_AUTHORIZATION},
        {"Cache-Control: no-cache, public\r\n" TAG, HTTP_REASON_AUTHORIZATION},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        ck_assert_msg(evaluate("Authorization: x\r\n", 200, rows[i].lines) == rows[i].refusal,
                      "%s", rows[i].lines);
}
END_TEST

/* Evaluates what a 304 has made of the fields of a stored response. */
static enum http_reason
evaluate_updated(unsigned made_for, const char *request, const char *lines)
{
    const struct http_received received = {
        .method = HTTP_GET,
        .request_lines = span_str(request),
        .status = 200,
        .lines = span_str(lines),
        .validated_by = span_str(""),
        .arrival = {.wall_s = 784111777},
        .made_for = made_for,
    };
    struct http_storing_rules rules;
    struct http_storing storing;

    http_storing_rules_init(&rules);
    http_evaluate_response(&received, &rules, &storing);
    ck_assert_uint_eq(storing.made_for, made_for | (*request ? HTTP_FOR_COOKIE : 0u));
    return storing.refusal;
}

START_TEST(a_304_does_not_give_a_users_response_to_another_client)
{
    static const char *const requests[] = {"", "Cookie: s=1\r\n"};

    for (size_t i = 0; i < 4; i++) {
        unsigned made_for = i & 1 ? HTTP_FOR_COOKIE : 0;
        const char *request = requests[i >> 1];
        enum http_reason refusal = i ? HTTP_REASON_COOKIE : HTTP_REASON_NONE;

        ck_assert_int_eq(evaluate_updated(made_for, request, FRESH TAG), HTTP_REASON_NONE);
        ck_assert_int_eq(evaluate_updated(made_for, request, TAG), refusal);
        ck_assert_int_eq(evaluate_updated(made_for, request, "Cache-Control: no-cache\r\n" TAG),
                         refusal);
    }
    ck_assert_int_eq(evaluate_updated(HTTP_FOR_AUTHORIZATION, "", FRESH TAG),
                     HTTP_REASON_AUTHORIZATION);
    ck_assert_int_eq(evaluate_updated(HTTP_FOR_AUTHORIZATION, "", PUBLIC TAG), HTTP_REASON_NONE);
}
END_TEST

START_TEST(no_heuristic_applies_to_users)
{
    static const struct {
        const char *request, *lines;
        enum http_lifetime lifetime;
    } rows[] = {
        {"", DATES, HTTP_LIFETIME_HEURISTIC},
        {"", "Cache-Control: public\r\n" DATES, HTTP_LIFETIME_HEURISTIC},
        {"Cookie: s=1\r\n", "Cache-Control: public\r\n" DATES, HTTP_LIFETIME_UNSTATED},
        {"Cookie: s=1\r\n", "Vary: Cookie\r\n" DATES, HTTP_LIFETIME_UNSTATED},
        {"Authorization: x\r\n", "Cache-Control: public\r\n" DATES, HTTP_LIFETIME_UNSTATED},
        {"", "Set-Cookie: a=b\r\n" DATES, HTTP_LIFETIME_UNSTATED},
        {"", "Set-Cookie2: a=b\r\n" DATES, HTTP_LIFETIME_UNSTATED},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct http_received received = {
            .method = HTTP_GET,
            .request_lines = span_str(rows[i].request),
            .status = 200,
            .lines = span_str(rows[i].lines),
            .arrival = {.wall_s = 784111777},
        };
        struct http_storing_rules rules;
        struct http_storing storing;

        http_storing_rules_init(&rules);
        rules.heuristic_percent = 10;
        http_evaluate_response(&received, &rules, &storing);
        ck_assert_msg(storing.lifetime == rows[i].lifetime, "row %zu", i);
    }
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("http/storing: requests");
    TCase *tests = tcase_create("requests");

    tcase_add_test(tests, results_of_conditions_ranges_and_expectations);
    tcase_add_test(tests, requests_that_the_origin_may_have_evaluated);
    tcase_add_test(tests, responses_to_a_request_with_a_cookie);
    tcase_add_test(tests, responses_to_an_authorized_request_with_no_cache);
    tcase_add_test(tests, a_304_does_not_give_a_users_response_to_another_client);
    tcase_add_test(tests, no_heuristic_applies_to_users);
    suite_add_tcase(suite, tests);
    return suite;
}
