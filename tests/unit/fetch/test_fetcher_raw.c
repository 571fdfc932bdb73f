/* Responses as the origin sent them: bodies that stay coded, redirects that are answers. */
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
    {.path = "/codings",
     .bytes = "HTTP/1.1 200 OK\r\nContent-Encoding: gzip, x-own\r\nContent-Length: 3\r\n\r\nraw"},
    {.path = "/bad-chunks",
     .bytes = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5zzz\r\nabcde\r\n0\r\n\r\n",
     .then = CLOSE},
    {.path = "/moved",
     .bytes = "HTTP/1.1 301 Moved\r\nLocation: /end\r\nContent-Length: 5\r\n\r\nmoved"},
    {.path = "/circle",
     .bytes = "HTTP/1.1 302 F\r\nLocation: /circle\r\nContent-Length: 0\r\n\r\n"},
    {.path = "/elsewhere",
     .bytes = "HTTP/1.1 308 P\r\nLocation: http://10.0.0.1/\r\nContent-Length: 0\r\n\r\n"},
    {.path = "/part",
     .bytes = "HTTP/1.1 206 Part\r\nContent-Range: bytes 0-3/9\r\nContent-Length: 4\r\n\r\npart"},
    {.path = "/same", .bytes = "HTTP/1.1 304 Same\r\nETag: \"a\"\r\n\r\n"},
    {.path = "/end", .bytes = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nend"},
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
fetch_raw(struct origin *origin, unsigned flags, const char *path, const char *headers,
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

    fetch_raw(origin, REQUEST_RAW, "/gzip", "Accept-Encoding: gzip, br\r\n", &paced);
    paced_expect(&paced, FETCH_OK);
    ck_assert_uint_eq(paced.outcome.body_len, coded_len);
    ck_assert_mem_eq(paced.outcome.body, coded, coded_len);
    ck_assert_int_eq(paced.outcome.content_length, (int64_t)coded_len);
    snprintf(fields, sizeof(fields), "Content-Encoding: gzip\r\nContent-Length: %zu\r\n",
             coded_len);
    ck_assert_str_eq(paced.outcome.headers, fields);
    ck_assert_ptr_nonnull(strstr(origin->last_request, "\r\nAccept-Encoding: gzip, br\r\n"));
    ck_assert_ptr_null(strstr(origin->last_request, "identity"));
    paced_free(&paced);
    /* Decoded by default, as ever. */
    fetch_raw(origin, 0, "/gzip", "", &paced);
    paced_expect(&paced, FETCH_OK);
    ck_assert_str_eq(paced.outcome.body, "plain text");
    ck_assert_str_eq(paced.outcome.headers, "");
    ck_assert_int_eq(paced.outcome.content_length, -1);
    ck_assert_ptr_nonnull(strstr(origin->last_request, "\r\nAccept-Encoding: identity\r\n"));
    paced_free(&paced);
    origin_stop(origin);
}
END_TEST

/* The framing is of the connection, and goes; the coding stays. */
START_TEST(a_coded_body_in_chunks)
{
    struct origin *origin = origin_start(script);
    struct paced paced;

    fetch_raw(origin, REQUEST_RAW, "/chunked-gzip", "", &paced);
    paced_expect(&paced, FETCH_OK);
    ck_assert_uint_eq(paced.outcome.body_len, coded_len);
    ck_assert_mem_eq(paced.outcome.body, coded, coded_len);
    ck_assert_int_eq(paced.outcome.content_length, -1);
    ck_assert_str_eq(paced.outcome.headers, "Content-Encoding: gzip\r\n");
    ck_assert_ptr_null(strstr(origin->last_request, "Accept-Encoding"));
    paced_free(&paced);
    fetch_raw(origin, REQUEST_RAW, "/bad-chunks", "", &paced);
    paced_expect(&paced, FETCH_ORIGIN_BROKE);
    paced_free(&paced);
    origin_stop(origin);
}
END_TEST

/* Refused where it would have to be decoded, passed on where not. */
START_TEST(codings_that_are_not_known)
{
    struct origin *origin = origin_start(script);
    struct paced paced;

    fetch_raw(origin, REQUEST_RAW, "/codings", "", &paced);
    paced_expect(&paced, FETCH_OK);
    ck_assert_str_eq(paced.outcome.body, "raw");
    paced_free(&paced);
    fetch_raw(origin, 0, "/codings", "", &paced);
    paced_expect(&paced, FETCH_ORIGIN_BROKE);
    paced_free(&paced);
    fetch_raw(origin, 0, "/codings", "Accept-Encoding: gzip\r\n", &paced);
    paced_expect(&paced, FETCH_BAD_HEADERS);
    paced_free(&paced);
    origin_stop(origin);
}
END_TEST

/* ---- redirects ----------------------------------------------------------------------- */

START_TEST(redirects_that_are_not_followed)
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
        fetch_raw(origin, REQUEST_RAW, rows[i].path, "", &paced);
        paced_expect(&paced, FETCH_OK);
        ck_assert_uint_eq(paced.outcome.status, rows[i].status);
        ck_assert_ptr_nonnull(strstr(paced.outcome.headers, rows[i].location));
        ck_assert_str_eq(paced.outcome.final_url, paced.outcome.url);
        ck_assert_uint_eq(paced.outcome.body_len, rows[i].body ? strlen(rows[i].body) : 0);
        if (rows[i].body)
            ck_assert_str_eq(paced.outcome.body, rows[i].body);
        ck_assert_uint_eq(origin_requests(origin), i + 1);
        paced_free(&paced);
    }
    fetch_raw(origin, 0, "/moved", "", &paced);
    paced_expect(&paced, FETCH_OK);
    ck_assert_str_eq(paced.outcome.body, "end");
    paced_free(&paced);
    fetch_raw(origin, 0, "/circle", "", &paced);
    paced_expect(&paced, FETCH_BAD_REDIRECT);
    paced_free(&paced);
    origin_stop(origin);
}
END_TEST

/* Both are the request's; other requests have the fetcher's. */
START_TEST(what_is_asked_for_is_what_the_request_has)
{
    struct origin *origin = origin_start(script);
    struct paced paced;

    fetch_raw(origin, REQUEST_RAW, "/gzip", "X: y\r\n", &paced);
    ck_assert_ptr_nonnull(strstr(origin->last_request, "X: y\r\n"));
    ck_assert_ptr_null(strcasestr(origin->last_request, "\r\nAccept:"));
    ck_assert_ptr_null(strcasestr(origin->last_request, "\r\nUser-Agent:"));
    paced_free(&paced);
    fetch_raw(origin, REQUEST_RAW, "/gzip", "accept: a/b\r\nUser-Agent: me\r\n", &paced);
    ck_assert_ptr_nonnull(strstr(origin->last_request, "accept: a/b\r\n"));
    ck_assert_ptr_nonnull(strstr(origin->last_request, "User-Agent: me\r\n"));
    paced_free(&paced);
    fetch_raw(origin, 0, "/gzip", "", &paced);
    ck_assert_ptr_nonnull(strstr(origin->last_request, "\r\nAccept: */*\r\n"));
    ck_assert_ptr_nonnull(strstr(origin->last_request, "\r\nUser-Agent: sunproxy/"));
    paced_free(&paced);
    origin_stop(origin);
}
END_TEST

/* A decoded body has no head that says what it is a part of. */
START_TEST(answers_that_were_not_asked_for)
{
    static const unsigned all = REQUEST_RAW | REQUEST_STREAMS;
    static const struct {
        const char *path, *headers;
        enum fetch_error decoded;
    } rows[] = {
        {"/part", "", FETCH_ORIGIN_BROKE},
        {"/part", "Range: bytes=0-3\r\n", FETCH_OK},
        {"/same", "", FETCH_ORIGIN_BROKE},
        {"/same", "If-None-Match: \"a\"\r\n", FETCH_OK},
    };
    struct origin *origin = origin_start(script);
    struct paced paced;

    for (size_t i = 0; i < 2 * sizeof(rows) / sizeof(rows[0]); i++) {
        fetch_raw(origin, i % 2 ? all : 0, rows[i / 2].path, rows[i / 2].headers, &paced);
        paced_expect(&paced, i % 2 ? FETCH_OK : rows[i / 2].decoded);
        paced_free(&paced);
    }
    origin_stop(origin);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("fetch/raw");
    TCase *tc = tcase_create("raw");

    tcase_add_checked_fixture(tc, set_up, fixture_tear_down);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, a_coded_body);
    tcase_add_test(tc, what_is_asked_for_is_what_the_request_has);
    tcase_add_test(tc, a_coded_body_in_chunks);
    tcase_add_test(tc, codings_that_are_not_known);
    tcase_add_test(tc, redirects_that_are_not_followed);
    tcase_add_test(tc, answers_that_were_not_asked_for);
    suite_add_tcase(suite, tc);
    return suite;
}
