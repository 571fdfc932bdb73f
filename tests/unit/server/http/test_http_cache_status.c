/*
 * What the HTTP front states in Cache-Status (RFC 9211) about each way of a request, and where Age
 * has to be (RFC 9111 section 4).
 */
#include <errno.h>

#include "tests/unit/server/front_server.h"

#define URL "http://origin.test/page"
#define REQUEST(method, lines) method " " URL " HTTP/1.1\r\nHost: origin.test\r\n" lines "\r\n"
#define IF_ERROR "Cache-Control: max-age=3600, stale-if-error=3600\r\nETag: \"one\"\r\n"
#define VARIES MAX_AGE "Vary: X-Kind\r\n"

static const struct scene_options defaults = {.max_body = 4 * MIB};
static struct http_answer answer;

/* The origin's part in a request. */
enum part { ORIGIN_IDLE, ORIGIN_RESPONDS, ORIGIN_FAILS, ORIGIN_REFUSES };

struct row {
    const char *stored; /* field lines of what is stored before; NULL: nothing is */
    bool expired;       /* by a soft purge */
    const char *request;
    enum part origin;
    unsigned origin_status;
    const char *lines;  /* of the origin's response */
    unsigned status;    /* that the client gets */
    const char *expect; /* the beginning of the value, */
    const char *lacks;  /* and what must not be in it; or NULL */
};

static const struct row rows[] = {
    /* Nothing is forwarded. */
    {MAX_AGE, false, REQUEST("GET", ""), ORIGIN_IDLE, 0, "", 200, "sunproxy; hit; ttl=3", "fwd"},
    {MAX_AGE, false, REQUEST("HEAD", ""), ORIGIN_IDLE, 0, "", 200, "sunproxy; hit; ttl=3", "fwd"},
    {MAX_AGE, true, REQUEST("GET", "Cache-Control: max-stale\r\n"), ORIGIN_IDLE, 0, "", 200,
     "sunproxy; hit; ttl=", "fwd"},
    {NULL, false, REQUEST("GET", "Cache-Control: only-if-cached\r\n"), ORIGIN_IDLE, 0, "", 504,
     "sunproxy; detail=not-cached", "fwd"},
    {MAX_AGE, true, REQUEST("GET", "Cache-Control: only-if-cached\r\n"), ORIGIN_IDLE, 0, "", 504,
     "sunproxy; detail=not-cached", "fwd"},
    {NULL, false, REQUEST("GET", "Cache-Control: only-if-cached, no-store\r\n"), ORIGIN_IDLE, 0, "",
     504, "sunproxy; detail=not-cached", "fwd"},
    {NULL, false, REQUEST("GET", ""), ORIGIN_REFUSES, 0, "", 503, "sunproxy; detail=stopping",
     "fwd"},
    /* The cache has nothing for it. */
    {NULL, false, REQUEST("GET", ""), ORIGIN_RESPONDS, 200, MAX_AGE, 200,
     "sunproxy; fwd=uri-miss; stored", "hit"},
    {NULL, false, REQUEST("HEAD", ""), ORIGIN_RESPONDS, 200, MAX_AGE, 200, "sunproxy; fwd=uri-miss",
     "stored"},
    /* Its head may be sent before the end has come, and then needs the length. */
    {NULL, false, REQUEST("GET", "Range: bytes=1-2\r\n"), ORIGIN_RESPONDS, 200,
     MAX_AGE "Content-Length: 5\r\n", 206, "sunproxy; fwd=uri-miss", "hit"},
    {NULL, false, REQUEST("GET", ""), ORIGIN_FAILS, 0, "", 502,
     "sunproxy; fwd=uri-miss; detail=connect-failed", "hit"},
    {VARIES, false, REQUEST("GET", "X-Kind: other\r\n"), ORIGIN_RESPONDS, 200, VARIES, 200,
     "sunproxy; fwd=miss", "uri-miss"},
    /* It is not asked. */
    {MAX_AGE, false, REQUEST("GET", "Cache-Control: no-store\r\n"), ORIGIN_RESPONDS, 200, MAX_AGE,
     200, "sunproxy; fwd=bypass", "stored"},
    {MAX_AGE, false, REQUEST("OPTIONS", ""), ORIGIN_RESPONDS, 200, MAX_AGE, 200,
     "sunproxy; fwd=method", "stored"},
    {NULL, false, REQUEST("DELETE", ""), ORIGIN_FAILS, 0, "", 502,
     "sunproxy; fwd=method; detail=connect-failed", "stored"},
    /* What it has is stale. */
    {MAX_AGE, true, REQUEST("GET", ""), ORIGIN_RESPONDS, 200, MAX_AGE, 200, "sunproxy; fwd=stale",
     "fwd-status"},
    {IF_ERROR, true, REQUEST("GET", ""), ORIGIN_RESPONDS, 304, IF_ERROR, 200,
     "sunproxy; fwd=stale; fwd-status=304; stored; ttl=3", "hit"},
    {MAX_AGE, true, REQUEST("HEAD", ""), ORIGIN_RESPONDS, 200, MAX_AGE, 200, "sunproxy; fwd=stale",
     "fwd-status"},
    {MAX_AGE, true, REQUEST("GET", ""), ORIGIN_RESPONDS, 404, "", 404, "sunproxy; fwd=stale",
     "fwd-status"},
    {"Cache-Control: max-age=3600, must-revalidate\r\n", true, REQUEST("GET", ""), ORIGIN_FAILS, 0,
     "", 502, "sunproxy; fwd=stale; detail=connect-failed", "hit"},
    /* It is used all the same: section 2.1 takes it for a hit where the origin is not available. */
    {IF_ERROR, true, REQUEST("GET", ""), ORIGIN_RESPONDS, 503, "", 200,
     "sunproxy; fwd=stale; fwd-status=503; ttl=", "stored"},
    {IF_ERROR, true, REQUEST("GET", ""), ORIGIN_FAILS, 0, "", 200, "sunproxy; hit; ttl=", "fwd"},
    /* What it has is fresh, and the request does not accept it. */
    {IF_ERROR, false, REQUEST("GET", "Cache-Control: no-cache\r\n"), ORIGIN_RESPONDS, 304, IF_ERROR,
     200, "sunproxy; fwd=request; fwd-status=304; stored; ttl=3", "stale"},
    {MAX_AGE, false, REQUEST("GET", "Cache-Control: min-fresh=9999\r\n"), ORIGIN_RESPONDS, 200,
     MAX_AGE, 200, "sunproxy; fwd=request", "stale"},
};

static void
respond(const struct row *row)
{
    struct scene_fetch *fetch = await_fetch(URL);
    bool has_body = row->origin_status != 304 && strcmp(fetch->method, "HEAD") != 0;

    fetch->sink->begin(fetch->context);
    scene_response(fetch, row->lines, false);
    if (scene_head(fetch, row->origin_status, row->lines, has_body ? 5 : 0) != FETCH_ABORT &&
        has_body)
        (void)fetch->sink->body(fetch->context, "hello", 5);
    scene_done(fetch, FETCH_OK, "");
}

/* Why a response is not stored, or a stale one is used: section 2.8. */
static const struct {
    struct row row;
    const char *end; /* of the value */
} reasons[] = {
#define GET_ANSWERED(status, lines)                                   \
    {NULL, false, REQUEST("GET", ""), ORIGIN_RESPONDS, status, lines, \
     status, "sunproxy; fwd=", "hit"}
    {GET_ANSWERED(200, "Cache-Control: no-store\r\n"), "fwd=uri-miss; detail=no-store"},
    {GET_ANSWERED(200, "Cache-Control: private\r\n"), "; detail=private"},
    {GET_ANSWERED(200, "Set-Cookie: a=b\r\n"), "; detail=set-cookie"},
    {GET_ANSWERED(200, "Vary: *\r\n"), "; detail=vary-any"},
    {GET_ANSWERED(200, "Expires: 0\r\n"), "; detail=stale-on-arrival"},
    {GET_ANSWERED(200, ""), "; detail=no-lifetime"},
    {GET_ANSWERED(200, MAX_AGE "Date: a\r\nDate: b\r\n"), "; detail=malformed"},
    {{NULL, false, REQUEST("GET", "Cookie: a=b\r\n"), ORIGIN_RESPONDS, 200, "ETag: \"a\"\r\n", 200,
      "sunproxy; fwd=", "hit"},
     "; detail=cookie"},
    {{NULL, false, REQUEST("GET", "Authorization: x\r\n"), ORIGIN_RESPONDS, 200, MAX_AGE, 200,
      "sunproxy; fwd=", "hit"},
     "; detail=authorization"},
    {{NULL, false, REQUEST("GET", "Cache-Control: no-store\r\n"), ORIGIN_RESPONDS, 200, MAX_AGE,
      200, "sunproxy; fwd=", "hit"},
     "fwd=bypass; detail=request-no-store"},
    {{NULL, false, REQUEST("GET", "If-Match: \"a\"\r\n"), ORIGIN_RESPONDS, 200, MAX_AGE, 200,
      "sunproxy; fwd=", "hit"},
     "fwd=bypass; detail=request-condition"},
    {{NULL, false, REQUEST("OPTIONS", ""), ORIGIN_RESPONDS, 200, MAX_AGE, 200, "sunproxy; fwd=",
      "hit"},
     "fwd=method; detail=method"},
    {{MAX_AGE, true, REQUEST("GET", "Cache-Control: max-stale\r\n"), ORIGIN_IDLE, 0, "", 200,
      "sunproxy; hit; ttl=", "fwd"},
     "; detail=max-stale"},
    {{IF_ERROR, true, REQUEST("GET", ""), ORIGIN_RESPONDS, 503, "", 200,
      "sunproxy; fwd=stale; fwd-status=503; ttl=", "stored"},
     "; detail=stale-if-error"},
    {{IF_ERROR, true, REQUEST("GET", ""), ORIGIN_FAILS, 0, "", 200, "sunproxy; hit; ttl=", "fwd"},
     "; detail=disconnected"},
};

/* Returns the line. */
static const char *
check(const struct row *row)
{
    static char line[256];
    const char *field;
    int fd = http_connect_local();

    if (row->stored)
        http_store(URL, row->stored, "page");
    if (row->expired)
        http_expect(fd, REQUEST("PURGE", "Purge: soft\r\n"), &answer, 200);
    scene.refuses = row->origin == ORIGIN_REFUSES ? ESHUTDOWN : 0;
    ck_assert(http_send(fd, row->request));
    if (row->origin == ORIGIN_RESPONDS)
        respond(row);
    else if (row->origin == ORIGIN_FAILS)
        origin_fails(URL, FETCH_CONNECT_FAILED, "no connection");
    ck_assert(http_receive(fd, &answer, strncmp(row->request, "HEAD", 4) == 0));
    scene.refuses = 0;
    ck_assert_msg(answer.status == row->status, "%s%s", row->request, answer.head);
    snprintf(line, sizeof(line), "Cache-Status: %s", row->expect);
    ck_assert_msg(http_has_start(&answer, line), "%s%s", row->request, answer.head);
    field = strstr(answer.head, "Cache-Status: ");
    snprintf(line, sizeof(line), "%.*s", (int)strcspn(field, "\r"), field);
    ck_assert_msg(!strstr(line, row->lacks), "%s%s", row->request, line);
    /* Used without a validation, also if it has just been stored. */
    if (strstr(line, "; hit") || strstr(line, "fwd-status=503"))
        ck_assert_msg(http_has_start(&answer, "Age: 0"), "%s%s", row->request, answer.head);
    close(fd);
    return line;
}

START_TEST(cache_status_states_why_a_request_is_forwarded)
{
    front_server_start(&defaults, VICTIMS_ALL);
    check(&rows[_i]);
    front_server_stop();
}
END_TEST

START_TEST(cache_status_states_why_a_response_is_not_stored)
{
    const char *line;
    size_t len, end = strlen(reasons[_i].end);

    front_server_start(&defaults, VICTIMS_ALL);
    line = check(&reasons[_i].row);
    len = strlen(line);
    ck_assert_msg(len > end && strcmp(line + len - end, reasons[_i].end) == 0, "%s", line);
    ck_assert_ptr_null(strstr(line, "; stored; detail"));
    front_server_stop();
}
END_TEST

/* Of requests that share a fetch each states what the cache had for itself. */
START_TEST(collapsed_requests_state_their_own_reason)
{
    struct scene_fetch *fetch;
    const struct cache_fill *fill;
    int fd, joined;

    front_server_start(&defaults, VICTIMS_ALL);
    fd = http_connect_local();
    joined = http_connect_local();
    http_store(URL, MAX_AGE, "page");
    http_expect(fd, REQUEST("PURGE", "Purge: soft\r\n"), &answer, 200);
    ck_assert(http_send(fd, REQUEST("GET", "")));
    fetch = await_fetch(URL);
    fill = fetch->given_context;
    ck_assert(http_send(joined, REQUEST("GET", "")));
    while (atomic_load(&fill->waiter_count) < 2)
        usleep(1000);
    origin_responds(URL, MAX_AGE "Content-Length: 5\r\n", BODY_INLINE, "hello", 5);
    ck_assert(http_receive(fd, &answer, false));
    ck_assert_msg(http_has_start(&answer, "Cache-Status: sunproxy; fwd=stale"), "%s", answer.head);
    ck_assert_ptr_null(strstr(answer.head, "; collapsed"));
    ck_assert(http_receive(joined, &answer, false));
    ck_assert_msg(http_has_start(&answer, "Cache-Status: sunproxy; fwd=stale"), "%s", answer.head);
    ck_assert_msg(strstr(answer.head, "; collapsed"), "%s", answer.head);
    close(fd);
    close(joined);
    front_server_stop();
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("server: Cache-Status");
    TCase *tcase = tcase_create("all");

    tcase_add_loop_test(tcase, cache_status_states_why_a_request_is_forwarded, 0,
                        sizeof(rows) / sizeof(rows[0]));
    tcase_add_loop_test(tcase, cache_status_states_why_a_response_is_not_stored, 0,
                        sizeof(reasons) / sizeof(reasons[0]));
    tcase_add_test(tcase, collapsed_requests_state_their_own_reason);
    suite_add_tcase(suite, tcase);
    return suite;
}
