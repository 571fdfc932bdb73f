/*
 * HTTP clients that leave: one that has closed its connection, or ended its side of it, while the
 * response depends on the origin, keeps no fetch going. The origin is the test's.
 */
#include <errno.h>

#include "tests/unit/net/stream.h"
#include "tests/unit/server/http/http_scene.h"

#define GET REQUEST("GET", "")
#define LINES MAX_AGE "Content-Length: 2000000\r\n"

static struct http_answer answer;

/* How a client leaves; a reset is a close with bytes that it has not read. */
enum manner { CLOSES, ENDS_ITS_SIDE, RESETS, MANNERS };

static void
leave(int fd, enum manner manner)
{
    const struct linger none = {.l_onoff = 1};

    if (manner == ENDS_ITS_SIDE) {
        ck_assert_int_eq(shutdown(fd, SHUT_WR), 0);
        return;
    }
    if (manner == RESETS)
        ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof(none)), 0);
    close(fd);
}

/* The connection has ended, of a client that has ended its side only. */
static void
expect_end(int fd, enum manner manner)
{
    char byte;

    if (manner != ENDS_ITS_SIDE)
        return;
    while (peer_read(fd, &byte, 1)) {
    }
    close(fd);
}

static void
expect_cancelled(struct scene_fetch *fetch)
{
    AWAIT(scene_is_cancelled(fetch));
    scene_done(fetch, FETCH_CANCELLED, "cancelled");
}

static void
read_head(int fd)
{
    char bytes[4] = "";

    while (memcmp(bytes, "\r\n\r\n", 4) != 0) {
        memmove(bytes, bytes + 1, 3);
        ck_assert(peer_read(fd, bytes + 3, 1));
    }
}

/* ---- while the origin is silent -------------------------------------------------------------- */

/* `_i`: how it leaves, and whether bytes of a further request wait behind this one. */
START_TEST(before_the_head)
{
    enum manner manner = (enum manner)(_i % MANNERS);
    bool pipelines = _i >= MANNERS;
    struct scene_fetch *fetch;
    int fd;

    http_begin();
    http_store(URL "2", MAX_AGE "Content-Length: 3\r\n", "hit");
    fd = http_connect();
    ck_assert(http_send(fd, "GET " URL "2 HTTP/1.1\r\nHost: x\r\n\r\n" GET));
    if (pipelines)
        ck_assert(http_send(fd, "G"));
    fetch = await_fetch(URL);
    ck_assert(http_receive(fd, &answer, false));
    ck_assert_str_eq(answer.body, "hit");
    leave(fd, manner);
    expect_cancelled(fetch);
    expect_end(fd, manner);
    front_server_stop();
}
END_TEST

/* A stream of events whose origin says nothing more for now. */
START_TEST(after_the_head)
{
    enum manner manner = (enum manner)(_i % MANNERS);
    bool pipelines = _i >= MANNERS;
    struct scene_fetch *fetch;
    char part[8];
    int fd;

    http_begin();
    fd = http_connect();
    ck_assert(http_send(fd, GET));
    if (pipelines)
        ck_assert(http_send(fd, "G"));
    fetch =
        origin_begins(URL, "Cache-Control: no-store\r\nContent-Type: text/event-stream\r\n", -1);
    (void)fetch->sink->body(fetch->context, "data", 4);
    read_head(fd);
    ck_assert(peer_read(fd, part, 7));
    ck_assert(memcmp(part, "4\r\ndata", 7) == 0);
    leave(fd, manner);
    expect_cancelled(fetch);
    expect_end(fd, manner);
    front_server_stop();
}
END_TEST

/* It has not ended whole, so its peer must not take it for such. */
START_TEST(a_response_until_the_close_is_reset)
{
    struct scene_fetch *fetch;
    char part[4], byte;
    int fd;

    http_begin();
    fd = http_connect();
    ck_assert(http_send(fd, "GET " URL " HTTP/1.0\r\n\r\n"));
    fetch = origin_begins(URL, "Cache-Control: no-store\r\n", -1);
    (void)fetch->sink->body(fetch->context, "data", 4);
    read_head(fd);
    ck_assert(peer_read(fd, part, 4));
    leave(fd, ENDS_ITS_SIDE);
    expect_cancelled(fetch);
    ck_assert_int_eq(recv(fd, &byte, 1, 0), -1);
    ck_assert_int_eq(errno, ECONNRESET);
    close(fd);
    front_server_stop();
}
END_TEST

/* The requests that others have joined go on. */
START_TEST(others_have_the_response)
{
    struct scene_fetch *fetch;
    int leaves, stays;

    http_begin();
    leaves = http_connect();
    stays = http_connect();
    ck_assert(http_send(leaves, GET));
    fetch = origin_begins(URL, MAX_AGE "Content-Length: 5\r\n", 5);
    ck_assert(http_send(stays, GET));
    read_head(leaves);
    read_head(stays);
    leave(leaves, ENDS_ITS_SIDE);
    expect_end(leaves, ENDS_ITS_SIDE);
    ck_assert(!scene_is_cancelled(fetch));
    (void)fetch->sink->body(fetch->context, "hello", 5);
    scene_done(fetch, FETCH_OK, "");
    ck_assert(peer_read(stays, answer.body, 5));
    ck_assert(memcmp(answer.body, "hello", 5) == 0);
    http_expect_hit(stays, URL, "hello", 5);
    close(stays);
    front_server_stop();
}
END_TEST

/* ---- what does not depend on the origin any more --------------------------------------------- */

/* Of what is complete, the rest is sent to a client that has ended its side; and what it has sent
 * before is answered. */
START_TEST(hits_are_sent_whole)
{
    const char *bytes = plain_bytes(2000000);
    int fd;

    http_begin();
    fd = http_connect();
    ck_assert(http_send(fd, GET));
    origin_responds(URL, LINES, BODY_SEGMENTED, bytes, 2000000);
    ck_assert(http_receive(fd, &answer, false));
    for (unsigned i = 0; i < 4; i++)
        ck_assert(http_send(fd, GET));
    leave(fd, ENDS_ITS_SIDE);
    for (unsigned i = 0; i < 4; i++) {
        ck_assert(http_receive(fd, &answer, false));
        ck_assert_uint_eq(answer.status, 200);
        ck_assert_uint_eq(answer.body_len, 2000000);
        ck_assert(memcmp(answer.body, bytes, 2000000) == 0);
    }
    expect_end(fd, ENDS_ITS_SIDE);
    front_server_stop();
}
END_TEST

/*
 * A write whose body has come reaches the origin, over TCP and AF_UNIX, though its client does not
 * wait for the answer.
 */
START_TEST(a_whole_body_is_passed_on)
{
    enum { SIZE = 200000 };
    enum manner manner = _i & 1 ? CLOSES : ENDS_ITS_SIDE;
    const char *bytes = plain_bytes(SIZE);
    static char got[SIZE];
    struct scene_fetch *fetch;
    size_t total = 0, len;
    int fd;

    http_begin();
    fd = _i & 2 ? http_connect_local() : http_connect();
    ck_assert(http_send(fd, REQUEST("POST", "Content-Length: 200000\r\n")));
    ck_assert(peer_write(fd, bytes, SIZE));
    fetch = await_fetch(URL);
    leave(fd, manner);
    for (;;) {
        enum fetch_supply supply = scene_supply(fetch, got + total, sizeof(got) - total, &len);

        if (supply == FETCH_SUPPLIED)
            total += len;
        else if (supply == FETCH_SUPPLY_END)
            break;
        ck_assert_int_ne(supply, FETCH_SUPPLY_FAILED);
        usleep(1000);
    }
    ck_assert_uint_eq(total, SIZE);
    ck_assert(memcmp(got, bytes, SIZE) == 0);
    expect_end(fd, manner);
    ck_assert(!scene_is_cancelled(fetch));
    scene_response(fetch, "", false);
    (void)scene_head(fetch, 204, "", 0);
    scene_done(fetch, FETCH_OK, "");
    front_server_stop();
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("server: HTTP clients that leave");
    TCase *tcase = tcase_create("all");

    tcase_set_timeout(tcase, 120);
    tcase_add_loop_test(tcase, before_the_head, 0, 2 * MANNERS);
    tcase_add_loop_test(tcase, after_the_head, 0, 2 * MANNERS);
    tcase_add_test(tcase, a_response_until_the_close_is_reset);
    tcase_add_test(tcase, others_have_the_response);
    tcase_add_test(tcase, hits_are_sent_whole);
    tcase_add_loop_test(tcase, a_whole_body_is_passed_on, 0, 4);
    suite_add_tcase(suite, tcase);
    return suite;
}
