/*
 * What must come of which answer: a row for each case of RFC 9110 and RFC 9112 that a proxy's GET
 * can meet, and after each a second request, which must get its own answer, over the same
 * connection or over a new one.
 */
#include <stdio.h>

#include "tests/unit/fetch/fixture.h"

#define OK "HTTP/1.1 200 OK\r\n"
#define PAGE "Content-Length: 5\r\n\r\nhello"
#define FORGED OK "Content-Length: 6\r\n\r\nforged"
#define CHUNKED OK "Transfer-Encoding: chunked\r\n\r\n"

enum after {
    REUSED,  /* the connection serves the next request */
    DROPPED, /* it must not */
    EITHER   /* the origin closed it, or it does not matter */
};

static const struct row {
    const char *section;
    const char *what;
    const char *answer;
    size_t len; /* 0: strlen(answer) */
    enum then then;
    enum after after;
    const char *request; /* its header lines, or NULL */
    enum fetch_error error;
    unsigned status;  /* if there is no error ... */
    const char *body; /* ... and the body */
    bool no_store;
} rows[] = {
    /* interim answers */
    {"9110 15.2", "103", "HTTP/1.1 103 Hints\r\nLink: x\r\n\r\n" OK PAGE, .status = 200,
     .body = "hello"},
    {"9110 15.2.1", "unasked 100", "HTTP/1.1 100 Continue\r\n\r\n" OK PAGE, .status = 200,
     .body = "hello"},
    {"9110 15.2.2", "unasked 101", "HTTP/1.1 101 Switch\r\nUpgrade: x\r\n\r\n" OK PAGE,
     .after = DROPPED, .error = FETCH_ORIGIN_BROKE},
    {"9110 15.2", "1xx in HTTP/1.0", "HTTP/1.0 100 Continue\r\n\r\n" OK PAGE, .after = DROPPED,
     .error = FETCH_ORIGIN_BROKE},
    {"9112 4", "a head within a head", OK "Content-Length: 99\r\n" OK PAGE, .after = DROPPED,
     .error = FETCH_ORIGIN_BROKE},
    /* status lines */
    {"9110 15", "status of 4 digits", "HTTP/1.1 2000 OK\r\n" PAGE, .after = DROPPED,
     .error = FETCH_ORIGIN_BROKE},
    {"9110 15", "status over 599", "HTTP/1.1 700 Odd\r\n" PAGE, .status = 700, .body = "hello"},
    {"9112 4", "no status line", "hello\r\n\r\n", .then = CLOSE, .after = EITHER,
     .error = FETCH_ORIGIN_BROKE},
    /* answers without a body */
    {"9112 6.3", "204 with a length", "HTTP/1.1 204 No\r\nContent-Length: 5\r\n\r\n", .status = 204,
     .body = ""},
    {"9112 6.3", "204 with chunks", "HTTP/1.1 204 No\r\nTransfer-Encoding: chunked\r\n\r\n",
     .status = 204, .body = ""},
    {"9112 6.3", "304 with a length and a coding",
     "HTTP/1.1 304 Same\r\nContent-Length: 5\r\nContent-Encoding: gzip\r\n\r\n",
     .request = "If-None-Match: \"x\"\r\n", .status = 304, .body = ""},
    {"9112 9.2", "bytes after 204", "HTTP/1.1 204 No\r\n\r\n" FORGED, .after = DROPPED,
     .status = 204, .body = ""},
    {"9112 9.2", "bytes after 304", "HTTP/1.1 304 Same\r\n\r\n" FORGED, .after = DROPPED,
     .request = "If-Modified-Since: x\r\n", .status = 304, .body = ""},
    {"9112 9.2", "bytes after an empty body", OK "Content-Length: 0\r\n\r\n" FORGED,
     .after = DROPPED, .status = 200, .body = ""},
    /* Content-Length; stricter than 9112 9.2, which would keep the stated bytes */
    {"9112 9.2", "body over its length", OK PAGE FORGED, .after = DROPPED,
     .error = FETCH_ORIGIN_BROKE},
    {"9112 8", "body under its length", OK "Content-Length: 9\r\n\r\nhello", .then = CLOSE,
     .after = EITHER, .error = FETCH_ORIGIN_BROKE},
    {"9112 8", "no length", OK "\r\nhello", .then = CLOSE, .after = EITHER, .status = 200,
     .body = "hello"},
    {"9112 6.3", "two lengths", OK "Content-Length: 9\r\n" PAGE, .after = DROPPED,
     .error = FETCH_ORIGIN_BROKE},
    {"9110 8.6", "length 5abc", OK "Content-Length: 5abc\r\n\r\nhello", .after = DROPPED,
     .error = FETCH_ORIGIN_BROKE},
    {"9110 8.6", "length +5", OK "Content-Length: +5\r\n\r\nhello", .after = DROPPED,
     .error = FETCH_ORIGIN_BROKE},
    {"9110 8.6", "length 05", OK "Content-Length: 05\r\n\r\nhello", .status = 200, .body = "hello"},
    {"9110 8.6", "the same length twice", OK "Content-Length: 5\r\n" PAGE, .status = 200,
     .body = "hello"},
    {"9112 5.1", "blank after Content-Length", OK "Content-Length : 5\r\n\r\nhello",
     .after = DROPPED, .error = FETCH_ORIGIN_BROKE},
    {"9112 5.2", "folded Content-Length", OK "Content-Length: 5\r\n 5\r\n\r\nhello",
     .after = DROPPED, .error = FETCH_ORIGIN_BROKE},
    /* Transfer-Encoding */
    {"9112 7.1", "chunks", CHUNKED "5\r\nhello\r\n0\r\n\r\n", .status = 200, .body = "hello"},
    {"9112 6.3", "length and chunks",
     OK "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
     .after = DROPPED, .status = 200, .body = "hello", .no_store = true},
    {"9112 6.1", "unknown transfer coding", OK "Transfer-Encoding: x\r\n" PAGE, .after = DROPPED,
     .error = FETCH_ORIGIN_BROKE},
    {"9112 6.3", "chunked is not last",
     OK "Transfer-Encoding: chunked, gzip\r\n\r\n5\r\nhello\r\n0\r\n\r\n", .after = DROPPED,
     .error = FETCH_ORIGIN_BROKE},
    {"9112 7.4", "unasked gzip, chunked",
     OK "Transfer-Encoding: gzip, chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", .after = DROPPED,
     .error = FETCH_ORIGIN_BROKE},
    {"9112 6.1", "chunked twice",
     OK "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
     .after = DROPPED, .error = FETCH_ORIGIN_BROKE},
    {"9112 6.1", "chunks in HTTP/1.0",
     "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
     .after = DROPPED, .error = FETCH_ORIGIN_BROKE},
    {"9112 5.1", "blank after Transfer-Encoding",
     OK "Transfer-Encoding : chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", .after = DROPPED,
     .error = FETCH_ORIGIN_BROKE},
    {"9112 7.1", "chunk size 5zzz", CHUNKED "5zzz\r\nhello\r\n0\r\n\r\n", .after = DROPPED,
     .error = FETCH_ORIGIN_BROKE},
    {"9112 7.1", "chunk size 0x5", CHUNKED "0x5\r\nhello\r\n0\r\n\r\n", .after = DROPPED,
     .error = FETCH_ORIGIN_BROKE},
    {"9112 7.1", "bare LF after a chunk size", CHUNKED "5\nhello\r\n0\r\n\r\n", .after = DROPPED,
     .error = FETCH_ORIGIN_BROKE},
    {"9112 7.1", "bare LF after a chunk", CHUNKED "5\r\nhello\n0\r\n\r\n", .after = DROPPED,
     .error = FETCH_ORIGIN_BROKE},
    {"9112 7.1.1", "LF in a chunk extension", CHUNKED "5;a=\"\n\"\r\nhello\r\n0\r\n\r\n",
     .after = DROPPED, .error = FETCH_ORIGIN_BROKE},
    {"9112 8", "no last chunk", CHUNKED "5\r\nhello\r\n", .then = CLOSE, .after = EITHER,
     .error = FETCH_ORIGIN_BROKE},
    {"9112 9.2", "bytes after the last chunk", CHUNKED "5\r\nhello\r\n0\r\n\r\n" FORGED,
     .after = DROPPED, .error = FETCH_ORIGIN_BROKE},
    {"9112 7.1.2", "trailers", CHUNKED "5\r\nhello\r\n0\r\nX-Late: 1\r\nETag: \"x\"\r\n\r\n",
     .status = 200, .body = "hello"},
    {"9112 2.3", "HTTP/2 over HTTP/1.1", "HTTP/2 200 OK\r\n" PAGE, .after = DROPPED,
     .error = FETCH_ORIGIN_BROKE},
    /* fields */
    {"9112 5.1", "blank before a colon", OK "A : b\r\n" PAGE, .status = 200, .body = "hello"},
    {"9112 5.2", "folded field", OK "A: b\r\n c\r\n" PAGE, .status = 200, .body = "hello"},
    {"9110 5.5", "NUL in a value", OK "A: b\0c\r\n" PAGE, .len = sizeof(OK "A: b\0c\r\n" PAGE) - 1,
     .after = DROPPED, .error = FETCH_ORIGIN_BROKE},
    {"9110 5.5", "CR in a value", OK "A: b\rc\r\n" PAGE, .after = DROPPED,
     .error = FETCH_ORIGIN_BROKE},
    {"9110 5.1", "no token for a name", OK "A b: c\r\n" PAGE, .after = DROPPED,
     .error = FETCH_ORIGIN_BROKE},
    {"9112 5", "line without a colon", OK "nothing\r\n" PAGE, .after = DROPPED,
     .error = FETCH_ORIGIN_BROKE},
    /* content codings */
    {"9110 8.4", "two codings", OK "Content-Encoding: gzip, gzip\r\n" PAGE, .after = DROPPED,
     .error = FETCH_ORIGIN_BROKE},
    {"9110 8.4", "two codings in two fields",
     OK "Content-Encoding: gzip\r\nContent-Encoding: br\r\n" PAGE, .after = DROPPED,
     .error = FETCH_ORIGIN_BROKE},
    {"9110 8.4", "unknown coding", OK "Content-Encoding: rot13\r\n" PAGE, .after = DROPPED,
     .error = FETCH_ORIGIN_BROKE},
    {"1952 2.3", "no gzip", OK "Content-Encoding: gzip\r\n" PAGE, .after = DROPPED,
     .error = FETCH_ORIGIN_BROKE},
    /* answers to another request */
    {"9110 15.3.7", "unasked 206", "HTTP/1.1 206 Part\r\nContent-Range: bytes 0-4/9\r\n" PAGE,
     .after = DROPPED, .error = FETCH_ORIGIN_BROKE},
    {"9110 15.3.7", "206", "HTTP/1.1 206 Part\r\nContent-Range: bytes 0-4/9\r\n" PAGE,
     .request = "Range: bytes=0-4\r\n", .status = 206, .body = "hello"},
    {"9110 15.4.5", "unasked 304", "HTTP/1.1 304 Same\r\n\r\n", .after = DROPPED,
     .error = FETCH_ORIGIN_BROKE},
};

struct seen {
    struct outcome outcome; /* first: the context of its call-backs */
    bool no_store;
};

static enum fetch_flow
seen_head(void *context, const struct fetch_head *head)
{
    struct seen *seen = context;

    seen->no_store = head->no_store;
    return outcome_head(&seen->outcome, head);
}

static const struct fetch_sink seen_sink = {
    .head = seen_head, .body = outcome_body, .done = outcome_done};

static void
play(const struct row *row)
{
    const struct line script[] = {
        {.path = "/row", .bytes = row->answer, .len = row->len, .then = row->then},
        {.path = "/next", .bytes = OK "Content-Length: 4\r\n\r\nnext"},
        {.path = NULL},
    };
    struct origin *origin = origin_start(script);
    struct fetcher *fetcher = start_fetcher(&config);
    struct seen seen = {.no_store = false};
    struct outcome *o = &seen.outcome;
    char url[64];

    snprintf(url, sizeof(url), "http://127.0.0.1:%u/row", origin->port);
    outcome_init(o);
    ck_assert(submit_request(fetcher, &GET(OUTCOME_CLIENT, url, row->request ? row->request : ""),
                             &seen_sink, &seen, NULL));
    outcome_wait(o);
    ck_assert_msg(o->error == row->error, "RFC %s, %s: %d: %s", row->section, row->what, o->error,
                  o->sentence);
    if (!row->error) {
        ck_assert_msg(o->status == row->status, "%s: %u", row->what, o->status);
        ck_assert_msg(strcmp(o->body ? o->body : "", row->body) == 0, "%s: %s", row->what, o->body);
        ck_assert_msg(seen.no_store == row->no_store, "%s", row->what);
        ck_assert_msg(!strstr(o->headers, "X-Late"), "%s: %s", row->what, o->headers);
        ck_assert_msg(!strstr(o->headers, "A :"), "%s: %s", row->what, o->headers);
    }
    outcome_free(o);
    expect_page(fetcher, "next", "http://127.0.0.1:%u/next", origin->port);
    if (row->after != EITHER)
        ck_assert_msg(origin->connections == (row->after == REUSED ? 1 : 2),
                      "RFC %s, %s: %u connections", row->section, row->what, origin->connections);
    fetcher_destroy(fetcher);
    origin_stop(origin);
}

START_TEST(every_row)
{
    play(&rows[_i]);
}
END_TEST

Suite *
unit_suite(void)
{
    TCase *tc;
    Suite *suite = fixture_suite("fetch/answers", &tc);

    tcase_add_loop_test(tc, every_row, 0, (int)(sizeof(rows) / sizeof(rows[0])));
    return suite;
}
