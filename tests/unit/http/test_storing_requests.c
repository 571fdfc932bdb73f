/* What the conditions and the range of a request say about storing the response to it. */
#include "http/storing.h"

#include "tests/unit/unit.h"

#define FRESH "Cache-Control: max-age=60\r\n"
#define PUBLIC "Cache-Control: max-age=60, public\r\n"

static enum http_unstorable
evaluate(const char *request, unsigned status, const char *lines)
{
    const struct http_received received = {
        .method = span_str("GET"),
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
        ck_assert_int_eq(evaluate("", statuses[i], FRESH), HTTP_REFUSED_STATUS);
        ck_assert_int_eq(evaluate("", statuses[i], PUBLIC), HTTP_REFUSED_STATUS);
        ck_assert_int_eq(evaluate("Range: bytes=5-\r\n", statuses[i], FRESH), HTTP_REFUSED_STATUS);
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
        ck_assert_int_eq(evaluate(requests[i], 200, FRESH), HTTP_STORABLE);
        for (size_t k = 0; k < sizeof(others) / sizeof(others[0]); k++)
            ck_assert_msg(evaluate(requests[i], others[k], FRESH) == HTTP_REFUSED_STATUS, "%s %u",
                          requests[i], others[k]);
    }
    for (size_t k = 0; k < sizeof(others) / sizeof(others[0]); k++)
        ck_assert_int_eq(evaluate("Accept-Ranges: bytes\r\n", others[k], FRESH), HTTP_STORABLE);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("http/storing: requests");
    TCase *tests = tcase_create("requests");

    tcase_add_test(tests, results_of_conditions_ranges_and_expectations);
    tcase_add_test(tests, requests_that_the_origin_may_have_evaluated);
    suite_add_tcase(suite, tests);
    return suite;
}
