/* Responses as the origin sent them: coded bodies, redirects, parts, and what was asked for. */
#include <stdio.h>
#include <zlib.h>

#include "tests/unit/fetch/fixture.h"
#include "tests/unit/fetch/paced.h"

static char plain_gzip[512], chunked_gzip[512]; /* answers, with their heads */
static unsigned char coded[256];
static size_t coded_len;

static struct line script[] = {
    {.path = "/gzip", .bytes = plain_gzip},
    {.path = "/chunked-gzip", .bytes = chunked_gzip},
    {.path = "/moved",
     .bytes = "HTTP/1.1 301 Moved\r\nLocation: /end\r\nContent-Length: 5\r\n\r\nmoved"},
    {.path = "/circle",
     .bytes = "HTTP/1.1 302 F\r\nLocation: /circle\r\nContent-Length: 0\r\n\r\n"},
    {.path = "/elsewhere",
     .bytes = "HTTP/1.1 308 P\r\nLocation: http://10.0.0.1/\r\nContent-Length: 0\r\n\r\n"},
    {.path = "/part",
     .bytes = "HTTP/1.1 206 Part\r\nContent-Range: bytes 0-3/9\r\nContent-Length: 4\r\n\r\npart"},
    {.path = "/same", .bytes = "HTTP/1.1 304 Same\r\nETag: \"a\"\r\n\r\n"},
    {.path = "/early",
     .bytes = "HTTP/1.1 103 Early Hints\r\nX: early\r\n\r\n"
              "HTTP/1.1 200 OK\r\nX-Own: 1\r\nConnection: X-Own\r\n"
              "Content-Length: 4\r\nX: a\r\n b\r\n\r\nhere"},
    {.path = NULL},
};

static void
set_up(void)
{
    z_stream z = {.next_in = (Bytef *)(uintptr_t) "plain text", .avail_in = 10};
    int len;

    fixture_set_up();
    ck_assert_int_eq(deflateInit2(&z, 9, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY), Z_OK);
    z.next_out = coded;
    z.avail_out = sizeof(coded);
    ck_assert_int_eq(deflate(&z, Z_FINISH), Z_STREAM_END);
    coded_len = z.total_out;
    deflateEnd(&z);
    len = snprintf(plain_gzip, sizeof(plain_gzip),
                   "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %zu\r\n\r\n",
                   coded_len);
    memcpy(plain_gzip + len, coded, coded_len);
    script[0].len = (size_t)len + coded_len;
    len = snprintf(chunked_gzip, sizeof(chunked_gzip),
                   "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n"
                   "Transfer-Encoding: chunked\r\n\r\n%zx;a=b\r\n",
                   coded_len);
    memcpy(chunked_gzip + len, coded, coded_len);
    memcpy(chunked_gzip + len + coded_len, "\r\n0\r\nX: y\r\n\r\n", 13);
    script[1].len = (size_t)len + coded_len + 13;
}

/* Fetches a path with these flags and headers. */
static void
fetch_path(struct origin *origin, unsigned flags, const char *path, const char *headers,
           struct paced *paced)
{
    struct fetcher *fetcher = start_fetcher(&config);
    struct request request;
    char url[64];

    paced_init(paced, fetcher);
    request = paced_request(url, sizeof(url), origin->port, "", path, flags);
    request.fields = span_str(headers);
    paced_submit(paced, &request);
    outcome_wait(&paced->outcome);
    fetcher_destroy(fetcher);
}

/* ---- codings ------------------------------------------------------------------------- */

START_TEST(a_coded_body)
{
    struct origin *origin = origin_start(script);
    struct paced paced;
    char fields[128];

    fetch_path(origin, 0, "/gzip", "Accept-Encoding: gzip, br\r\n", &paced);
    paced_expect(&paced, FETCH_OK);
    ck_assert_uint_eq(paced.outcome.body_len, coded_len);
    ck_assert_mem_eq(paced.outcome.body, coded, coded_len);
    ck_assert_int_eq(paced.outcome.content_length, (int64_t)coded_len);
    snprintf(fields, sizeof(fields), "Content-Encoding: gzip\r\nContent-Length: %zu\r\n",
             coded_len);
    ck_assert_str_eq(paced.outcome.headers, fields);
    paced_free(&paced);
    origin_stop(origin);
}
END_TEST

/* The framing is of the connection, and goes; the coding stays. */
START_TEST(a_coded_body_in_chunks)
{
    struct origin *origin = origin_start(script);
    struct paced paced;

    fetch_path(origin, 0, "/chunked-gzip", "", &paced);
    paced_expect(&paced, FETCH_OK);
    ck_assert_uint_eq(paced.outcome.body_len, coded_len);
    ck_assert_mem_eq(paced.outcome.body, coded, coded_len);
    ck_assert_int_eq(paced.outcome.content_length, -1);
    ck_assert_str_eq(paced.outcome.headers, "Content-Encoding: gzip\r\n");
    paced_free(&paced);
    origin_stop(origin);
}
END_TEST

/* ---- redirects ----------------------------------------------------------------------- */

START_TEST(redirects_are_responses)
{
    static const struct {
        const char *path;
        unsigned status;
        const char *location, *body;
    } rows[] = {
        {"/moved", 301, "Location: /end\r\n", "moved"},
        {"/circle", 302, "Location: /circle\r\n", NULL},
        {"/elsewhere", 308, "Location: http://10.0.0.1/\r\n", NULL},
    };
    struct origin *origin = origin_start(script);
    struct paced paced;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        fetch_path(origin, 0, rows[i].path, "", &paced);
        paced_expect(&paced, FETCH_OK);
        ck_assert_uint_eq(paced.outcome.status, rows[i].status);
        ck_assert_ptr_nonnull(strstr(paced.outcome.headers, rows[i].location));
        ck_assert_uint_eq(paced.outcome.body_len, rows[i].body ? strlen(rows[i].body) : 0);
        if (rows[i].body)
            ck_assert_str_eq(paced.outcome.body, rows[i].body);
        ck_assert_uint_eq(origin_requests(origin), i + 1);
        paced_free(&paced);
    }
    origin_stop(origin);
}
END_TEST

/* ---- requests ------------------------------------------------------------------------ */

/* These fields are sent only where the request has them. */
START_TEST(what_is_asked_for_is_what_the_request_has)
{
    static const char *const lines[] = {"Accept: a/b\r\n", "User-Agent: me\r\n",
                                        "Accept-Encoding: gzip, br\r\n"};
    struct origin *origin = origin_start(script);

    for (unsigned has = 0; has < 8; has++) {
        char headers[128] = "X: y\r\n";
        struct paced paced;

        for (unsigned i = 0; i < 3; i++)
            if (has >> i & 1)
                strcat(headers, lines[i]);
        fetch_path(origin, 0, "/gzip", headers, &paced);
        paced_expect(&paced, FETCH_OK);
        ck_assert_ptr_nonnull(strstr(origin->last_request, "\r\nX: y\r\n"));
        for (unsigned i = 0; i < 3; i++) {
            char name[32];

            snprintf(name, sizeof(name), "\r\n%.*s:", (int)strcspn(lines[i], ":"), lines[i]);
            ck_assert_int_eq(strcasestr(origin->last_request, name) != NULL, has >> i & 1);
            ck_assert_int_eq(strstr(origin->last_request, lines[i]) != NULL, has >> i & 1);
        }
        paced_free(&paced);
    }
    origin_stop(origin);
}
END_TEST

/* What the origin makes of a request without a range or a condition is for the consumer to judge.
 */
START_TEST(answers_that_were_not_asked_for)
{
    static const struct {
        const char *path, *headers;
        unsigned status;
    } rows[] = {
        {"/part", "", 206},
        {"/part", "Range: bytes=0-3\r\n", 206},
        {"/same", "", 304},
        {"/same", "If-None-Match: \"a\"\r\n", 304},
    };
    struct origin *origin = origin_start(script);
    struct paced paced;

    for (size_t i = 0; i < 2 * sizeof(rows) / sizeof(rows[0]); i++) {
        fetch_path(origin, i % 2 ? REQUEST_STREAMS : 0, rows[i / 2].path, rows[i / 2].headers,
                   &paced);
        paced_expect(&paced, FETCH_OK);
        ck_assert_uint_eq(paced.outcome.status, rows[i / 2].status);
        paced_free(&paced);
    }
    origin_stop(origin);
}
END_TEST

/* ---- heads --------------------------------------------------------------------------- */

/* With the lines that do not go on, before its head and without the interim ones. */
START_TEST(a_response_is_shown_as_it_came)
{
    struct origin *origin = origin_start(script);
    struct fetcher *fetcher = start_fetcher(&config);
    struct outcome o;

    for (unsigned i = 0; i < 2; i++) {
        fetch_fine(fetcher, &o, "http://%s127.0.0.1:%u/early", i ? "user@" : "", origin->port);
        ck_assert_uint_eq(o.responses, 1);
        ck_assert_uint_eq(o.response[0].status, 200);
        ck_assert_str_eq(o.response[0].lines, "X-Own: 1\r\nConnection: X-Own\r\n"
                                              "Content-Length: 4\r\nX: a\r\n b\r\n");
        ck_assert_uint_eq(o.response[0].heads_before, 0);
        ck_assert_int_eq(o.response[0].has_user, i);
        ck_assert(o.response[0].waited_us >= 0 && o.response[0].waited_us <= o.total_us);
        ck_assert_str_eq(o.interim, "103 X: early\r\n");
        ck_assert_str_eq(o.headers, "Content-Length: 4\r\nX: a b\r\n");
        outcome_free(&o);
    }
    fetcher_destroy(fetcher);
    origin_stop(origin);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("fetch/responses");
    TCase *tc = tcase_create("responses");

    tcase_add_checked_fixture(tc, set_up, fixture_tear_down);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, a_coded_body);
    tcase_add_test(tc, a_coded_body_in_chunks);
    tcase_add_test(tc, redirects_are_responses);
    tcase_add_test(tc, what_is_asked_for_is_what_the_request_has);
    tcase_add_test(tc, answers_that_were_not_asked_for);
    tcase_add_test(tc, a_response_is_shown_as_it_came);
    suite_add_tcase(suite, tc);
    return suite;
}
