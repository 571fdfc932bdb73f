/* Whole fetches with every allocation of the fetcher's thread failing in turn. */
#include "tests/unit/torture.h"

#include <stdio.h>

#include "tests/unit/fetch/armed.h"
#include "tests/unit/fetch/fixture.h"

static const struct armed_calls allocations = {.fail_at = torture_fail_at,
                                               .failed = torture_failed};

/* A name, and a page in chunks: answered without memory, and the next one is fine. */
START_TEST(whole_fetches)
{
    static const struct name_row names[] = {{"name.test", "127.0.0.1"}, {NULL, NULL}};
    static const struct line script[] = {
        {"/", "HTTP/1.1 200 OK\r\nA: b\r\nTransfer-Encoding: chunked\r\n\r\n4\r\npage\r\n0\r\n\r\n",
         0, CLOSE, 0},
        {NULL, NULL, 0, KEEP, 0}};
    struct origin *origin = origin_start(script);
    struct fetcher *fetcher;
    char url[64];

    snprintf(url, sizeof(url), "http://name.test:%u/", origin->port);
    names_use(&config, names);
    config.dns_ttl_us = 0;
    fetcher = start_fetcher(&config);
    ck_assert_uint_ge(
        armed_walk(fetcher, &allocations, &GET(OUTCOME_CLIENT, url, "A: b\r\n"), "page"), 10);
    expect_page(fetcher, "page", "%s", url);
    fetcher_destroy(fetcher);
    origin_stop(origin);
}
END_TEST

/* A body that is supplied with a pause, and an answer that is paused at every piece. */
START_TEST(whole_uploads)
{
    static const struct line script[] = {
        {"/",
         "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\npos\r\n3\r\nted\r\n0\r\n\r\n",
         0, KEEP, 0},
        {NULL, NULL, 0, KEEP, 0}};
    struct origin *origin = origin_start(script);
    struct fetcher *fetcher = start_fetcher(&config);
    struct request request;
    char url[64];

    snprintf(url, sizeof(url), "http://127.0.0.1:%u/", origin->port);
    request = GET(OUTCOME_CLIENT, url, "Content-Type: text/plain\r\n");
    request.method_name = span_str("POST");
    request.flags = REQUEST_STREAMS;
    request.body = (struct request_body){.kind = REQUEST_BODY_SUPPLIED,
                                         .length = _i ? -1 : (int64_t)strlen(ARMED_BODY)};
    ck_assert_uint_ge(armed_walk(fetcher, &allocations, &request, "posted"), 10);
    ck_assert_uint_eq(origin->last_body_len, strlen(ARMED_BODY));
    ck_assert_mem_eq(origin->last_body, ARMED_BODY, strlen(ARMED_BODY));
    fetcher_destroy(fetcher);
    origin_stop(origin);
}
END_TEST

Suite *
unit_suite(void)
{
    TCase *tcase;
    Suite *suite = fixture_suite("fetch/torture of whole fetches", &tcase);

    tcase_add_test(tcase, whole_fetches);
    tcase_add_loop_test(tcase, whole_uploads, 0, 2);
    return suite;
}
