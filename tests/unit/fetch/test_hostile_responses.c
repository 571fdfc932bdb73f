/*
 * Ambiguous, malformed and forbidden responses, each with the section of the RFC that decides and
 * the outcome that it must have, whether its consumer bounds the body or the fetcher does. After
 * each one a second request must get its own response, over the same connection or over another
 * one. 9110 and 9112 are RFCs; "strict" marks what the RFC permits to repair and the fetcher
 * refuses.
 */
#include <stdio.h>

#include "tests/unit/fetch/fixture.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))
#define BYTES(text) .bytes = (text), .len = sizeof(text) - 1
#define OK "HTTP/1.1 200 OK\r\n"
#define FIVE "Content-Length: 5\r\n"
#define CHUNKED "Transfer-Encoding: chunked\r\n"
#define HELLO "\r\n5\r\nhello\r\n0\r\n\r\n"
#define FORGED OK "Content-Length: 6\r\n\r\nforged"

/* What may become of the connection. */
enum after {
    ANY,    /* not looked at: the origin closes it */
    KEPT,   /* a second request uses it */
    CLOSED, /* a second request gets another one */
};

struct row {
    const char *what;
    const char *section;
    const char *bytes;
    size_t len;
    enum then then;
    const char *method; /* NULL: GET */
    const char *fields; /* of the request */
    unsigned status;    /* of the response that goes on; 0: FETCH_ORIGIN_BROKE */
    const char *body;   /* that goes on; NULL: empty */
    const char *has;    /* among the fields that go on; NULL: not looked at */
    const char *lacks;  /* likewise not among them */
    const char *interim;
    enum after after;
    bool no_store;
};

/* clang-format off */
static const struct row rows[] = {
    /* framing */
    {"CL", "9112 6.3", BYTES(OK FIVE "\r\nhello"), .status = 200, .body = "hello", .after = KEPT},
    {"CL twice, different", "9112 6.3", BYTES(OK FIVE "Content-Length: 6\r\n\r\nhello!"),
     .after = CLOSED},
    {"CL twice, equal", "9110 8.6", BYTES(OK FIVE FIVE "\r\nhello"), .status = 200, .body = "hello",
     .has = "Content-Length: 5\r\n", .lacks = "5\r\nContent-Length: 5\r\n", .after = KEPT},
    {"CL list", "9110 8.6 strict", BYTES(OK "Content-Length: 5, 5\r\n\r\nhello"), .after = CLOSED},
    {"CL 2abc", "9110 8.6", BYTES(OK "Content-Length: 2abc\r\n\r\nhello"), .after = CLOSED},
    {"CL +5", "9110 8.6", BYTES(OK "Content-Length: +5\r\n\r\nhello"), .after = CLOSED},
    {"CL -5", "9110 8.6", BYTES(OK "Content-Length: -5\r\n\r\nhello"), .after = CLOSED},
    {"CL 0x5", "9110 8.6", BYTES(OK "Content-Length: 0x5\r\n\r\nhello"), .after = CLOSED},
    {"CL empty", "9110 8.6", BYTES(OK "Content-Length:\r\n\r\nhello"), .then = CLOSE},
    {"CL 2^64 + 5", "9110 8.6",
     BYTES(OK "Content-Length: 18446744073709551621\r\n\r\nhello"), .after = CLOSED},
    {"CL 0005", "9110 8.6", BYTES(OK "Content-Length: 0005\r\n\r\nhello"), .status = 200,
     .body = "hello",
     .has = "Content-Length: 5\r\n", .after = KEPT},
    {"CL with a blank before the colon", "9112 5.1",
     BYTES(OK "Content-Length : 5\r\n\r\nhello"), .then = CLOSE},
    {"CL folded", "9112 5.2", BYTES(OK "Content-Length:\r\n 5\r\n\r\nhello"), .then = CLOSE},
    {"CL folded behind a value", "9112 5.2", BYTES(OK "Content-Length: 5\r\n 5\r\n\r\nhello"),
     .after = CLOSED},
    {"CL with an underscore", "none", BYTES(OK "Content_Length: 2\r\n" FIVE "\r\nhello"),
     .status = 200, .body = "hello", .after = KEPT},
    {"CL and chunks", "9112 6.3", BYTES(OK "Content-Length: 2\r\n" CHUNKED HELLO),
     .status = 200, .body = "hello",
     .lacks = "Content-Length", .after = CLOSED, .no_store = true},
    {"chunks and CL", "9112 6.3", BYTES(OK CHUNKED "Content-Length: 2\r\n" HELLO),
     .status = 200, .body = "hello",
     .lacks = "Content-Length", .after = CLOSED, .no_store = true},
    {"TE gzip", "9112 6.3 strict", BYTES(OK "Transfer-Encoding: gzip\r\n\r\nhello"), .then = CLOSE},
    {"TE x and CL", "9112 6.1", BYTES(OK "Transfer-Encoding: x\r\n" FIVE "\r\nhello"),
     .after = CLOSED},
    {"TE xchunked", "9112 6.3 strict", BYTES(OK "Transfer-Encoding: xchunked\r\n" HELLO),
     .then = CLOSE},
    {"TE chunked, gzip", "9112 6.3 strict",
     BYTES(OK "Transfer-Encoding: chunked, gzip\r\n" HELLO), .after = CLOSED},
    {"TE gzip, chunked", "9112 6.1 strict",
     BYTES(OK "Transfer-Encoding: gzip, chunked\r\n" HELLO), .after = CLOSED},
    {"TE chunked twice", "9112 6.1", BYTES(OK CHUNKED CHUNKED HELLO), .after = CLOSED},
    {"TE chunked;a=b", "9112 7", BYTES(OK "Transfer-Encoding: chunked;a=b\r\n" HELLO),
     .after = CLOSED},
    {"TE with VT", "9112 7", BYTES(OK "Transfer-Encoding: \vchunked\r\n" HELLO), .after = CLOSED},
    {"TE with a blank before the colon", "9112 5.1",
     BYTES(OK "Transfer-Encoding : chunked\r\n" HELLO), .then = CLOSE},
    {"TE in HTTP/1.0", "9112 6.1 strict", BYTES("HTTP/1.0 200 OK\r\n" CHUNKED HELLO),
     .then = CLOSE},
    {"neither CL nor TE", "9112 6.3", BYTES(OK "\r\nhello"), .then = CLOSE, .status = 200,
     .body = "hello"},
    {"a body that ends early", "9112 8", BYTES(OK "Content-Length: 6\r\n\r\nhello"), .then = CLOSE},
    {"a body that goes on", "9112 9.2", BYTES(OK FIVE "\r\nhello, world"), .status = 200,
     .body = "hello", .after = CLOSED},

    /* chunks */
    {"chunks", "9112 7.1", BYTES(OK CHUNKED HELLO), .status = 200, .body = "hello", .after = KEPT},
    {"no last chunk", "9112 8", BYTES(OK CHUNKED "\r\n5\r\nhello\r\n"), .then = CLOSE},
    {"a chunk that ends early", "9112 8", BYTES(OK CHUNKED "\r\n6\r\nhello"), .then = CLOSE},
    {"size 5zzz", "9112 7.1", BYTES(OK CHUNKED "\r\n5zzz\r\nhello\r\n0\r\n\r\n"), .after = CLOSED},
    {"size 0x5", "9112 7.1", BYTES(OK CHUNKED "\r\n0x5\r\nhello\r\n0\r\n\r\n"), .after = CLOSED},
    {"size -5", "9112 7.1", BYTES(OK CHUNKED "\r\n-5\r\nhello\r\n0\r\n\r\n"), .after = CLOSED},
    {"size empty", "9112 7.1", BYTES(OK CHUNKED "\r\n\r\nhello\r\n0\r\n\r\n"), .after = CLOSED},
    {"size 2^64 + 5", "9112 7.1",
     BYTES(OK CHUNKED "\r\n10000000000000005\r\nhello\r\n0\r\n\r\n"), .after = CLOSED},
    {"a size ended by LF", "9112 7.1", BYTES(OK CHUNKED "\r\n5\nhello\r\n0\r\n\r\n"),
     .after = CLOSED},
    {"data ended by LF", "9112 7.1", BYTES(OK CHUNKED "\r\n5\r\nhello\n0\r\n\r\n"),
     .after = CLOSED},
    {"data not ended", "9112 7.1", BYTES(OK CHUNKED "\r\n5\r\nhello0\r\n\r\n"), .after = CLOSED},
    {"LF in an extension", "9112 7.1.1",
     BYTES(OK CHUNKED "\r\n5;a\nb\r\nhello\r\n0\r\n\r\n"), .after = CLOSED},
    {"LF in a quoted string", "9112 7.1.1",
     BYTES(OK CHUNKED "\r\n5;a=\"\n\"\r\nhello\r\n0\r\n\r\n"), .after = CLOSED},
    {"CR LF in a quoted string", "9112 7.1.1",
     BYTES(OK CHUNKED "\r\n5;a=\"\r\n\"\r\nhello\r\n0\r\n\r\n"), .after = CLOSED},
    {"trailers", "9110 6.5.1",
     BYTES(OK CHUNKED "\r\n5\r\nhello\r\n0\r\nContent-Length: 2\r\nA: b\r\n\r\n"),
     .status = 200, .body = "hello",
     .lacks = "A: b", .after = KEPT},
    {"bytes behind the last chunk", "9112 9.2 strict",
     BYTES(OK CHUNKED HELLO "HTTP/1.1 200 OK\r\n\r\n"), .after = CLOSED},

    /* statuses without body */
    {"204 with CL", "9112 6.3", BYTES("HTTP/1.1 204 No\r\n" FIVE "\r\n"), .status = 204,
     .lacks = "Content-Length", .after = KEPT},
    {"204 with a body", "9112 9.2", BYTES("HTTP/1.1 204 No\r\n" FIVE "\r\nhello"),
     .status = 204, .after = CLOSED},
    {"204 with chunks", "9112 6.3", BYTES("HTTP/1.1 204 No\r\n" CHUNKED HELLO),
     .status = 204, .after = CLOSED},
    {"204 with TE", "9112 6.3", BYTES("HTTP/1.1 204 No\r\n" CHUNKED "\r\n"), .status = 204,
     .after = KEPT},
    {"bytes after 204", "9112 9.2", BYTES("HTTP/1.1 204 No\r\n\r\n" FORGED), .status = 204,
     .after = CLOSED},
    {"304 with CL and a coding", "9112 6.3",
     BYTES("HTTP/1.1 304 No\r\n" FIVE "Content-Encoding: gzip\r\n\r\n"),
     .fields = "If-None-Match: \"a\"\r\n", .status = 304,
     .has = "Content-Encoding: gzip\r\n", .after = KEPT},
    {"bytes after 304", "9112 9.2", BYTES("HTTP/1.1 304 No\r\n\r\n" FORGED),
     .fields = "If-Modified-Since: x\r\n", .status = 304, .after = CLOSED},
    {"304 with a body", "9112 9.2", BYTES("HTTP/1.1 304 No\r\n" FIVE "\r\nhello"),
     .fields = "If-None-Match: \"a\"\r\n", .status = 304,
     .has = "Content-Length: 5\r\n", .after = CLOSED},
    {"304 unasked", "9110 15.4.5", BYTES("HTTP/1.1 304 No\r\nETag: \"a\"\r\n\r\n"),
     .status = 304, .has = "ETag: \"a\"\r\n", .after = KEPT},
    {"304 unasked with a body", "9112 9.2", BYTES("HTTP/1.1 304 No\r\n" FIVE "\r\nhello"),
     .status = 304, .has = "Content-Length: 5\r\n", .after = CLOSED},
    {"HEAD with CL", "9110 9.3.2", BYTES(OK FIVE "\r\n"), .method = "HEAD", .status = 200,
     .has = "Content-Length: 5\r\n", .after = KEPT},
    {"HEAD with a body", "9112 9.2", BYTES(OK FIVE "\r\nhello"), .method = "HEAD",
     .status = 200, .after = CLOSED},
    {"206 unasked", "9110 15.3.7",
     BYTES("HTTP/1.1 206 Part\r\nContent-Range: bytes 0-4/9\r\n" FIVE "\r\nhello"),
     .status = 206, .body = "hello", .has = "Content-Range: bytes 0-4/9\r\n", .after = KEPT},
    {"206", "9110 15.3.7",
     BYTES("HTTP/1.1 206 Part\r\nContent-Range: bytes 0-4/9\r\n" FIVE "\r\nhello"),
     .fields = "Range: bytes=0-4\r\n",
     .status = 206, .body = "hello", .after = KEPT},

    /* interim responses */
    {"103", "9110 15.2",
     BYTES("HTTP/1.1 103 Early\r\nLink: </a>\r\nConnection: x\r\nX: y\r\n\r\n" OK FIVE "\r\nhello"),
     .status = 200, .body = "hello", .lacks = "Link", .interim = "103 Link: </a>\r\n",
     .after = KEPT},
    {"102, 103, 199", "9110 15.2",
     BYTES("HTTP/1.1 102 P\r\n\r\nHTTP/1.1 103 E\r\nA: b\r\n\r\nHTTP/1.1 199 X\r\n\r\n"
     OK FIVE "\r\nhello"),
     .status = 200, .body = "hello", .interim = "102 103 A: b\r\n199 ", .after = KEPT},
    {"103 with CL", "9110 8.6", BYTES("HTTP/1.1 103 Early\r\n" FIVE "\r\n" OK FIVE "\r\nhello"),
     .status = 200, .body = "hello", .interim = "103 ", .after = KEPT},
    {"103 malformed", "9112 5",
     BYTES("HTTP/1.1 103 Early\r\nLink\r\n\r\n" OK FIVE "\r\nhello"), .after = CLOSED},
    {"100 unasked", "9110 15.2.1",
     BYTES("HTTP/1.1 100 Continue\r\nA: b\r\n\r\n" OK FIVE "\r\nhello"), .status = 200,
     .body = "hello",
     .lacks = "A: b", .after = KEPT},
    {"101 unasked", "9110 15.2.2", BYTES("HTTP/1.1 101 Switch\r\nUpgrade: x\r\n\r\nhello"),
     .after = CLOSED},
    {"1xx in HTTP/1.0", "9110 15.2",
     BYTES("HTTP/1.0 103 Early\r\n\r\n" OK FIVE "\r\nhello"), .after = CLOSED},

    /* lines */
    {"no status line", "9112 4", BYTES("hello"), .then = CLOSE},
    {"a status of four digits", "9112 4", BYTES("HTTP/1.1 2000 OK\r\n" FIVE "\r\nhello"),
     .after = CLOSED},
    {"a status of two digits", "9112 4", BYTES("HTTP/1.1 20 OK\r\n" FIVE "\r\nhello"),
     .after = CLOSED},
    {"status 999", "9110 15", BYTES("HTTP/1.1 999 X\r\n" FIVE "\r\nhello"), .status = 999,
     .body = "hello", .after = KEPT},
    {"a head within a head", "9112 4", BYTES(OK "Content-Length: 99\r\n" OK FIVE "\r\nhello"),
     .after = CLOSED},
    {"HTTP/0.9", "9112 2.3", BYTES("<html>\r\n\r\n"), .then = CLOSE},
    {"HTTP/2 over TCP", "9112 2.3", BYTES("HTTP/2 200 OK\r\n" FIVE "\r\nhello"), .then = CLOSE},
    {"a folded line", "9112 5.2", BYTES(OK "A: b\r\n\tc\r\n" FIVE "\r\nhello"),
     .status = 200, .body = "hello", .has = "A: b c\r\n", .after = KEPT},
    {"a blank before the colon", "9112 5.1", BYTES(OK "A : b\r\n" FIVE "\r\nhello"),
     .status = 200, .body = "hello", .has = "A: b\r\n", .after = KEPT},
    {"a name that is no token", "9110 5.1", BYTES(OK "A(: b\r\n" FIVE "\r\nhello"),
     .after = CLOSED},
    {"a blank in a name", "9110 5.1", BYTES(OK "A b: c\r\n" FIVE "\r\nhello"), .after = CLOSED},
    {"an empty name", "9110 5.1", BYTES(OK ": b\r\n" FIVE "\r\nhello"), .after = CLOSED},
    {"no colon", "9112 5", BYTES(OK "hello\r\n" FIVE "\r\nhello"), .after = CLOSED},
    {"NUL in a value", "9110 5.5", BYTES(OK "A: b\0c\r\n" FIVE "\r\nhello"), .after = CLOSED},
    {"CR in a value", "9110 5.5", BYTES(OK "A: b\rc\r\n" FIVE "\r\nhello"), .after = CLOSED},
    {"a line that begins with CR", "9112 2.2", BYTES(OK FIVE "\rX\r\nhello"), .after = CLOSED},
    {"a line that begins with CR, and an empty one", "9112 2.2",
     BYTES(OK FIVE "\rX: y\r\n\r\nhello"), .after = CLOSED},
    {"CR CR LF for the empty line", "9112 2.2", BYTES(OK FIVE "\r\r\nhello"), .after = CLOSED},
    {"CR CR LF without a body", "9112 2.2", BYTES(OK "Content-Length: 0\r\n\r\r\n"),
     .after = CLOSED},
    {"CR CR LF to HEAD", "9112 2.2", BYTES(OK FIVE "\r\r\n"), .method = "HEAD", .after = CLOSED},
    {"CR CR LF after 204", "9112 2.2", BYTES("HTTP/1.1 204 No\r\n\r\r\n"), .after = CLOSED},
    {"CR CR LF before chunks", "9112 2.2", BYTES(OK CHUNKED "\r\r\n5\r\nhello\r\n0\r\n\r\n"),
     .after = CLOSED},
    {"CR CR LF after 103", "9112 2.2",
     BYTES("HTTP/1.1 103 Early\r\n\r\r\n" OK FIVE "\r\nhello"), .after = CLOSED},
    {"CR before the first field", "9112 2.2", BYTES(OK "\rA: b\r\n" FIVE "\r\nhello"),
     .after = CLOSED},
    {"CR CR LF for a head", "9112 4", BYTES("\r\r\nhello"), .then = CLOSE},
    {"an empty line for a head", "9112 4", BYTES("\r\n" OK FIVE "\r\nhello"), .after = CLOSED},
    {"two final heads", "9112 9.2", BYTES(OK "Content-Length: 0\r\n\r\n" OK FIVE "\r\nhello"),
     .status = 200, .after = CLOSED},
    {"103 after the final head", "9112 9.2",
     BYTES(OK "Content-Length: 0\r\n\r\nHTTP/1.1 103 Early\r\n\r\n"), .status = 200,
     .after = CLOSED},
    {"an interim head alone", "9110 15.2", BYTES("HTTP/1.1 103 Early\r\n\r\n"), .then = CLOSE,
     .interim = "103 "},
    {"ESC in a value", "9110 5.5", BYTES(OK "A: b\x1b[2J\r\n" FIVE "\r\nhello"),
     .status = 200, .body = "hello", .has = "A: b [2J\r\n", .after = KEPT},
    {"Connection lists fields", "9110 7.6.1",
     BYTES(OK "Connection: A, Content-Length, Cache-Control\r\nA: b\r\nCache-Control: private\r\n"
           FIVE "\r\nhello"),
     .status = 200, .body = "hello", .has = "Cache-Control: private\r\n", .lacks = "A: b",
     .after = KEPT},
    {"a challenge", "9110 11.6.1",
     BYTES("HTTP/1.1 401 No\r\nWWW-Authenticate: Basic realm=\"ntlm\", Digest x=y\r\n" FIVE
           "\r\nhello"),
     .status = 401, .body = "hello", .after = KEPT},
    {"a challenge to a connection", "9110 3.3",
     BYTES("HTTP/1.1 401 No\r\nWWW-Authenticate: NTLM TlRMTVNTUAAC\r\n" FIVE "\r\nhello"),
     .status = 401, .body = "hello", .has = "WWW-Authenticate: NTLM", .after = CLOSED},
    {"a challenge to a connection among others", "9110 3.3",
     BYTES("HTTP/1.1 401 No\r\nWWW-Authenticate: Basic realm=\"a\"\r\n"
           "www-authenticate: Digest x=\"y\" ,negotiate\r\n" FIVE "\r\nhello"),
     .status = 401, .body = "hello", .after = CLOSED},
    {"a challenge by a proxy", "9110 15.5.8",
     BYTES("HTTP/1.1 407 No\r\nProxy-Authenticate: Basic realm=\"a\"\r\nProxy-A: b\r\n" FIVE
           "\r\nhello"),
     .status = 407, .body = "hello", .has = "Proxy-Authenticate: Basic realm=\"a\"\r\n",
     .lacks = "Proxy-A:", .after = KEPT},
    {"a challenge by a proxy beside 401", "9110 11.7.1",
     BYTES("HTTP/1.1 401 No\r\nProxy-Authenticate: Basic realm=\"a\"\r\n" FIVE "\r\nhello"),
     .status = 401, .body = "hello", .lacks = "Proxy-Authenticate", .after = KEPT},
    {"credentials", "9110 11.6.2", BYTES(OK FIVE "\r\nhello"),
     .fields = "Authorization: Basic TlRMTVNTUAAB\r\n", .status = 200, .body = "hello",
     .after = KEPT},
    {"credentials for a connection", "9110 3.3", BYTES(OK FIVE "\r\nhello"),
     .fields = "Authorization: NTLM TlRMTVNTUAAB\r\n", .status = 200, .body = "hello",
     .after = CLOSED},
    {"credentials for a connection by Kerberos", "9110 3.3", BYTES(OK FIVE "\r\nhello"),
     .fields = "A: b\r\nauthorization: negotiate YII=\r\n", .status = 200, .body = "hello",
     .after = CLOSED},
    {"credentials of a similar name", "9110 11.6.2", BYTES(OK FIVE "\r\nhello"),
     .fields = "Authorization: Negotiator YII=\r\n", .status = 200, .body = "hello",
     .after = KEPT},

    /* what is left to the consumer */
    {"two codings", "9110 8.4", BYTES(OK "Content-Encoding: gzip, gzip\r\n" FIVE "\r\nhello"),
     .status = 200, .body = "hello", .has = "Content-Encoding: gzip, gzip\r\n", .after = KEPT},
    {"an unknown coding", "9110 8.4", BYTES(OK "Content-Encoding: rot13\r\n" FIVE "\r\nhello"),
     .status = 200, .body = "hello", .has = "Content-Encoding: rot13\r\n", .after = KEPT},
    {"a body that is not gzip", "9110 8.4",
     BYTES(OK "Content-Encoding: gzip\r\n" FIVE "\r\nhello"), .status = 200, .body = "hello",
     .has = "Content-Encoding: gzip\r\nContent-Length: 5\r\n", .after = KEPT},
    {"a redirect", "9110 15.4",
     BYTES("HTTP/1.1 302 F\r\nLocation: http://127.0.0.1:1/\r\n" FIVE "\r\nhello"),
     .status = 302, .body = "hello", .after = KEPT},
};
/* clang-format on */

#define FINE "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfine"

/* ---- a sink that also keeps what head() says beside the fields ------------------------------- */

struct seen {
    struct outcome outcome; /* the first member: the context of its call-backs */
    bool no_store;
};

static enum fetch_flow
take_head(void *context, const struct fetch_head *head)
{
    struct seen *seen = context;

    seen->no_store = head->no_store;
    return outcome_head(&seen->outcome, head);
}

static void
run(struct fetcher *fetcher, const struct origin *origin, const struct row *row, unsigned flags,
    struct seen *seen)
{
    static const struct fetch_sink sink = {
        .interim = outcome_interim,
        .head = take_head,
        .body = outcome_body,
        .done = outcome_done,
    };
    char url[64];
    struct request request = {
        .client = OUTCOME_CLIENT,
        .method_name = span_str(row && row->method ? row->method : "GET"),
        .fields = span_str(row && row->fields ? row->fields : ""),
        .flags = flags,
    };

    snprintf(url, sizeof(url), "http://127.0.0.1:%u%s", origin->port, row ? "/row" : "/fine");
    request.url = span_str(url);
    *seen = (struct seen){.no_store = false};
    outcome_init(&seen->outcome);
    ck_assert(submit_request(fetcher, &request, &sink, seen, NULL));
    outcome_wait(&seen->outcome);
}

static void
check(const struct row *row, const struct seen *seen)
{
    const struct outcome *o = &seen->outcome;
    const char *body = row->body ? row->body : "";

    ck_assert_msg(o->error == (row->status ? FETCH_OK : FETCH_ORIGIN_BROKE), "%s (%s): %d %s",
                  row->what, row->section, o->error, o->sentence);
    ck_assert_msg(strcmp(o->interim, row->interim ? row->interim : "") == 0, "%s (%s): %s",
                  row->what, row->section, o->interim);
    if (!row->status)
        return;
    ck_assert_msg(o->status == row->status, "%s (%s): %u", row->what, row->section, o->status);
    ck_assert_msg(strcmp(o->body ? o->body : "", body) == 0, "%s (%s): %s", row->what, row->section,
                  o->body ? o->body : "");
    ck_assert_msg(!row->has || strstr(o->headers, row->has), "%s (%s): %s", row->what, row->section,
                  o->headers);
    ck_assert_msg(!row->lacks || !strstr(o->headers, row->lacks), "%s (%s): %s", row->what,
                  row->section, o->headers);
    ck_assert_msg(seen->no_store == row->no_store, "%s (%s)", row->what, row->section);
}

/* Each with an origin of its own, so that its connections can be counted. */
START_TEST(each_has_its_outcome)
{
    const struct row *row = &rows[_i / 2];
    const unsigned flags = _i % 2 ? REQUEST_STREAMS : 0;
    const struct line script[] = {
        {.path = "/row", .bytes = row->bytes, .len = row->len, .then = row->then},
        {.path = "/fine", .bytes = FINE},
        {.path = NULL},
    };
    struct origin *origin = origin_start(script);
    struct fetcher *fetcher = start_fetcher(&config);
    struct seen seen;

    run(fetcher, origin, row, flags, &seen);
    check(row, &seen);
    outcome_free(&seen.outcome);
    run(fetcher, origin, NULL, flags, &seen);
    ck_assert_msg(seen.outcome.error == FETCH_OK && strcmp(seen.outcome.body, "fine") == 0,
                  "after %s: %d %s", row->what, seen.outcome.error, seen.outcome.sentence);
    outcome_free(&seen.outcome);
    ck_assert_msg(row->after == ANY || origin->connections == (row->after == KEPT ? 1 : 2),
                  "%s (%s): %u connections", row->what, row->section, origin->connections);
    ck_assert_msg(origin->requests == 2, "%s: %u requests", row->what, origin->requests);
    fetcher_destroy(fetcher);
    origin_stop(origin);
}
END_TEST

Suite *
unit_suite(void)
{
    TCase *tc;
    Suite *suite = fixture_suite("fetch: hostile responses", &tc);

    tcase_add_loop_test(tc, each_has_its_outcome, 0, 2 * (int)LENGTH(rows));
    return suite;
}
