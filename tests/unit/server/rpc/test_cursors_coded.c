/*
 * Bodies with a content coding that are read piece by piece over version 2, and gathered for
 * version 1.
 */
#include "tests/unit/server/rpc/coded.h"
#include "tests/unit/cache/purge.h"
#include "tests/unit/server/rpc/cursor_scene.h"

static char coded[MOST + 65536];
static size_t coded_len;

static void
code(enum coding coding, size_t len)
{
    coded_len = code_text(coding, bytes, len, coded, sizeof(coded));
}

/* ---- the origin ------------------------------------------------------------------------------ */

/* The head of a response in that coding. */
static struct scene_fetch *
respond_coded_head(const char *url, enum coding coding)
{
    char lines[256];

    snprintf(lines, sizeof(lines),
             MAX_AGE "Content-Encoding: %s\r\nContent-Length: %zu\r\nA: b\r\n", coding_name(coding),
             coded_len);
    return origin_begins(url, lines, -1);
}

/* Sends the coded body as respond_text() does. */
static size_t
respond_coded(struct scene_fetch *fetch, size_t from, size_t to)
{
    enum fetch_flow flow;

    return respond_text(fetch, coded, from, to, &flow);
}

static void
respond_whole(const char *url, enum coding coding)
{
    struct scene_fetch *fetch = respond_coded_head(url, coding);

    ck_assert_uint_eq(respond_coded(fetch, 0, coded_len), coded_len);
    scene_done(fetch, FETCH_OK, "");
}

/* ---- whole bodies ---------------------------------------------------------------------------- */

static void
expect_whole(int fd, uint32_t xid, proxy_source source, size_t len)
{
    proxy_fetch_result result;
    const proxy_page *page = &result.proxy_fetch_result_u.page;

    receive_page(fd, xid, PROXY_OK, &result);
    ck_assert_int_eq(page->source, source);
    ck_assert_ptr_null(page->rest);
    ck_assert(
        span_starts_with(span_of(page->headers.proxy_headers_val, page->headers.proxy_headers_len),
                         span_str(MAX_AGE "A: b\r\nDate: ")));
    ck_assert_uint_eq(page->body.body_len, len);
    ck_assert(len == 0 || memcmp(page->body.body_val, bytes, len) == 0);
    free_page(&result);
}

/* What decodes to 1 MiB at most is one answer. */
START_TEST(a_body_of_one_piece)
{
    static const size_t lens[] = {0, 1, 511, 512, 513, 16384, 100000, PIECE - 1, PIECE};
    enum coding coding = (enum coding)_i;
    uint64_t sent = scene_metric("front_body_bytes{front=\"rpc2\"}"), all = 0;
    int fd = front_connect_tcp();
    uint32_t xid = 1;

    for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
        code(coding, lens[i]);
        send_get(fd, ++xid, URL, 0);
        respond_whole(URL, coding);
        expect_whole(fd, xid, PROXY_MISS, lens[i]);
        send_get(fd, ++xid, URL, 0);
        expect_whole(fd, xid, PROXY_HIT, lens[i]);
        all += 2 * lens[i];
        ck_assert_uint_eq(cache_purge_all(scene.cache), 1);
    }
    ck_assert_uint_eq(stats().opened, 0);
    AWAIT(memory_used(&scene.account, MEMORY_REPLIES) == 0);
    ck_assert_uint_eq(scene_metric("front_body_bytes{front=\"rpc2\"}") - sent, all);
    close(fd);
}
END_TEST

START_TEST(codings_that_are_refused)
{
    static const char *const lines[] = {
        MAX_AGE "Content-Encoding: rot13\r\n",
        MAX_AGE "Content-Encoding: gzip, gzip\r\n",
        MAX_AGE "Content-Encoding: gzip\r\n",
    };
    int fd = front_connect_tcp();
    proxy_fetch_result result;

    send_get(fd, 1, URL, 0);
    origin_responds(URL, lines[_i], BODY_SEGMENTED, "abcdef", 6);
    receive_page(fd, 1, PROXY_ORIGIN_BROKE, &result);
    ck_assert_str_eq(result.proxy_fetch_result_u.sentence,
                     "the origin has not sent a valid response");
    free_page(&result);
    /* Stored, an unknown coding is not decoded either; what has not been decoded is fetched anew.
     */
    send_get(fd, 2, URL, 0);
    if (_i == 2)
        origin_responds(URL, lines[_i], BODY_SEGMENTED, "abcdef", 6);
    receive_page(fd, 2, PROXY_ORIGIN_BROKE, &result);
    free_page(&result);
    send_fetch(fd, 3, URL, strlen(URL));
    if (_i == 2)
        origin_responds(URL, lines[_i], BODY_SEGMENTED, "abcdef", 6);
    ck_assert_int_eq(receive_status(fd, 3), SYSTEM_ERR);
    ck_assert_uint_eq(purge_by(scene.cache, CACHE_BY_URL, span_str(URL)), _i != 2);
    close(fd);
}
END_TEST

/* ---- version 1 ------------------------------------------------------------------------------- */

/* It is decoded in turns of the loop. */
START_TEST(a_body_of_version_1)
{
    static const size_t lens[] = {0, 3, 1000, PIECE + 1, 3 << 20};
    enum coding coding = (enum coding)_i;
    int fd = front_connect_tcp();
    uint32_t xid = 1;

    for (size_t i = 0; i < MOST; i++)
        bytes[i] = bytes[i] ? bytes[i] : 'x';
    for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
        code(coding, lens[i]);
        send_fetch(fd, ++xid, URL, strlen(URL));
        respond_whole(URL, coding);
        expect_text_1(fd, xid, bytes, lens[i]);
        send_fetch(fd, ++xid, URL, strlen(URL));
        expect_text_1(fd, xid, bytes, lens[i]);
        ck_assert_uint_eq(cache_purge_all(scene.cache), 1);
    }
    close(fd);
    bytes[MOST - 1] = 0; /* they are made again */
}
END_TEST

/* Decoded, it has a zero byte, or is too large. */
START_TEST(a_body_that_version_1_cannot_carry)
{
    int fd = front_connect_tcp();

    memset(bytes, 'x', MOST);
    if (_i == 0)
        bytes[2 << 20] = '\0';
    code(CODING_GZIP, _i ? 4 * MIB + 1 : 3 * MIB);
    send_fetch(fd, 1, URL, strlen(URL));
    respond_whole(URL, CODING_GZIP);
    ck_assert_int_eq(receive_status(fd, 1), SYSTEM_ERR);
    close(fd);
    bytes[MOST - 1] = 0;
}
END_TEST

/* While its body is decoded. */
START_TEST(a_client_of_version_1_that_goes)
{
    const struct linger at_once = {.l_onoff = 1};
    int fd = front_connect_tcp(), other = front_connect();

    memset(bytes, 'x', MOST);
    code(CODING_GZIP, 4 * MIB);
    send_fetch(other, 1, URL, strlen(URL));
    respond_whole(URL, CODING_GZIP);
    expect_text_1(other, 1, bytes, 4 * MIB);
    for (uint32_t i = 0; i < 20; i++)
        send_fetch(fd, i, URL, strlen(URL));
    ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once)), 0);
    close(fd);
    AWAIT(memory_used(&scene.account, MEMORY_REPLIES) == 0);
    send_fetch(other, 2, URL, strlen(URL));
    expect_text_1(other, 2, bytes, 4 * MIB);
    close(other);
    bytes[MOST - 1] = 0;
}
END_TEST

/* ---- complete objects ------------------------------------------------------------------------ */

/* Forward, whether or not it is stored. */
START_TEST(a_stored_body_is_read_in_order)
{
    enum coding coding = (enum coding)_i;
    int fd = front_connect_tcp();
    proxy_object name, again;

    code(coding, LARGE);
    send_get(fd, 1, URL, 0);
    respond_whole(URL, coding);
    memcpy(name, receive_first(fd, 1, PROXY_MISS, -1), sizeof(name));
    send_get(fd, 2, URL, 0);
    memcpy(again, receive_first(fd, 2, PROXY_HIT, -1), sizeof(again));
    /* Each has its own place. */
    send_read(fd, 3, name, PIECE, PIECE);
    ck_assert_uint_eq(receive_piece(fd, 3, PIECE, false), PIECE);
    expect_refusal(fd, 4, name, PIECE, "not kept");
    send_read(fd, 5, name, 2 * PIECE, PIECE);
    ck_assert_uint_eq(receive_piece(fd, 5, 2 * PIECE, true), PIECE);
    send_read(fd, 6, name, LARGE, PIECE);
    ck_assert_uint_eq(receive_piece(fd, 6, 0, true), 0);
    expect_release(fd, 7, name, PROXY_OK);
    send_read(fd, 8, again, 2 * PIECE + 17, 5);
    ck_assert_uint_eq(receive_piece(fd, 8, 2 * PIECE + 17, false), 5);
    send_read(fd, 9, again, LARGE - 3, UINT32_MAX);
    ck_assert_uint_eq(receive_piece(fd, 9, LARGE - 3, true), 3);
    send_read(fd, 10, again, UINT64_MAX, PIECE);
    ck_assert_uint_eq(receive_piece(fd, 10, 0, true), 0);
    expect_release(fd, 11, again, PROXY_OK);
    AWAIT(memory_used(&scene.account, MEMORY_REPLIES) == 0);
    close(fd);
}
END_TEST

/* Calls that the client does not wait between. */
START_TEST(calls_that_wait_for_each_other)
{
    enum { CALLS = 100, STEP = 20000 };
    int fd = front_connect_tcp();
    const char *name;

    code(CODING_ZSTD, LARGE);
    send_get(fd, 1, URL, 0);
    respond_whole(URL, CODING_ZSTD);
    name = receive_first(fd, 1, PROXY_MISS, -1);
    for (uint32_t i = 0; i < CALLS; i++)
        send_read(fd, 100 + i, name, PIECE + i * STEP, i % 10 == 9 ? 0 : STEP);
    for (uint32_t i = 0; i < CALLS; i++)
        ck_assert_uint_eq(receive_piece(fd, 100 + i, PIECE + i * STEP, false),
                          i % 10 == 9 ? 0 : STEP);
    close(fd);
    AWAIT(stats().open == 0);
}
END_TEST

/* Hits that come at once share a worker's turns, and each is answered whole, in any order. */
START_TEST(many_hits_at_once)
{
    enum { HITS = 60 };
    int fd = front_connect_tcp();
    bool answered[HITS] = {false};

    memset(bytes, 'x', 200000);
    code(CODING_GZIP, 200000);
    send_get(fd, 1, URL, 0);
    respond_whole(URL, CODING_GZIP);
    expect_whole(fd, 1, PROXY_MISS, 200000);
    for (uint32_t xid = 2; xid < 2 + HITS; xid++)
        send_get(fd, xid, URL, 0);
    for (unsigned i = 0; i < HITS; i++) {
        const uint32_t xid = next_xid(fd);

        ck_assert(xid >= 2 && xid < 2 + HITS && !answered[xid - 2]);
        answered[xid - 2] = true;
        expect_whole(fd, xid, PROXY_HIT, 200000);
    }
    ck_assert_uint_eq(stats().opened, 0);
    close(fd);
}
END_TEST

/* It takes several turns of the worker. */
START_TEST(a_body_that_decodes_to_little)
{
    const size_t len = 65;
    int fd = front_connect_tcp();
    proxy_fetch_result result;

    coded_len = code_thinly(bytes, len, coded, sizeof(coded));
    send_get(fd, 1, URL, 0);
    respond_whole(URL, CODING_DEFLATE);
    receive_page(fd, 1, PROXY_OK, &result);
    free_page(&result);
    send_get(fd, 2, URL, 0);
    receive_page(fd, 2, PROXY_OK, &result);
    ck_assert_int_eq(result.proxy_fetch_result_u.page.source, PROXY_HIT);
    ck_assert_ptr_null(result.proxy_fetch_result_u.page.rest);
    ck_assert_uint_eq(result.proxy_fetch_result_u.page.body.body_len, len);
    free_page(&result);
    close(fd);
}
END_TEST

/* The connection goes, or the object is released, while bytes are skipped. */
START_TEST(a_client_that_goes_while_bytes_are_skipped)
{
    int fd = front_connect_tcp();
    const char *name;

    memset(bytes, 0, MOST - 1);
    bytes[MOST - 1] = 1;
    code(CODING_GZIP, MOST);
    send_get(fd, 1, URL, 0);
    respond_whole(URL, CODING_GZIP);
    name = receive_first(fd, 1, PROXY_MISS, -1);
    for (uint32_t i = 0; i < 3; i++)
        send_read(fd, 2 + i, name, MOST - 3 + i, 1);
    if (_i)
        send_call(fd, 5, PROXY_RELEASE, (xdrproc_t)xdr_proxy_object, (void *)(uintptr_t)name);
    close(fd);
    AWAIT(stats().open == 0);
    AWAIT(memory_used(&scene.account, MEMORY_REPLIES) == 0);
    bytes[MOST - 1] = 0;
}
END_TEST

/* ---- growing objects ------------------------------------------------------------------------- */

START_TEST(a_growing_body)
{
    enum coding coding = (enum coding)_i;
    int fd = front_connect_tcp();
    struct scene_fetch *fetch;
    uint32_t xid = 1;
    const char *name;
    size_t sent = 0, got = PIECE;

    code(coding, LARGE);
    send_get(fd, xid, URL, 0);
    fetch = respond_coded_head(URL, coding);
    sent = respond_coded(fetch, 0, coded_len / 2);
    name = receive_first(fd, xid, PROXY_MISS, -1);
    /* It waits until it is worth an answer. */
    send_read(fd, ++xid, name, got, 1000);
    ck_assert_uint_eq(receive_piece(fd, xid, got, false), 1000);
    got += 1000;
    expect_refusal(fd, ++xid, name, got - 1, "not kept");
    send_read(fd, ++xid, name, got, PIECE);
    sent = respond_coded(fetch, sent, coded_len);
    scene_done(fetch, FETCH_OK, "");
    while (got < LARGE) {
        size_t len = receive_piece(fd, xid, got, got + PIECE >= LARGE);

        got += len;
        if (got < LARGE)
            send_read(fd, ++xid, name, got, PIECE);
    }
    ck_assert_uint_eq(sent, coded_len);
    send_read(fd, ++xid, name, LARGE, 0);
    ck_assert_uint_eq(receive_piece(fd, xid, 0, true), 0);
    close(fd);
}
END_TEST

/* What a slow origin has sent is decoded and passed on. */
START_TEST(a_slow_body)
{
    int fd = front_connect_tcp();
    proxy_fetch_result result;
    const proxy_page *page = &result.proxy_fetch_result_u.page;
    struct scene_fetch *fetch;
    proxy_object name;
    size_t got, len;

    code(CODING_BROTLI, 1000);
    send_get(fd, 1, URL, 0);
    fetch = respond_coded_head(URL, CODING_BROTLI);
    respond_coded(fetch, 0, 500);
    receive_page(fd, 1, PROXY_OK, &result);
    got = page->body.body_len;
    ck_assert_uint_ge(got, 400);
    ck_assert_uint_lt(got, 500);
    ck_assert(memcmp(page->body.body_val, bytes, got) == 0);
    ck_assert_ptr_nonnull(page->rest);
    ck_assert_int_eq(page->rest->length, -1);
    memcpy(name, page->rest->object, sizeof(name));
    free_page(&result);
    send_read(fd, 2, name, got, PIECE);
    respond_coded(fetch, 500, 700);
    len = receive_piece(fd, 2, got, false);
    ck_assert_uint_ge(len, 100);
    got += len;
    send_read(fd, 3, name, got, 0);
    ck_assert_uint_eq(receive_piece(fd, 3, got, false), 0);
    send_read(fd, 4, name, got, PIECE);
    respond_coded(fetch, 700, coded_len);
    scene_done(fetch, FETCH_OK, "");
    ck_assert_uint_eq(receive_piece(fd, 4, got, true), 1000 - got);
    close(fd);
}
END_TEST

/* Not stored: the coded bytes that were decoded are freed, and the origin is as fast as the reader.
 */
START_TEST(a_body_that_is_read_through_a_window)
{
    struct passing_body body = {.text = coded, .window = 4 * MIB, .length = -1};
    int fd = front_connect_tcp();
    uint32_t xid = 1;

    code(CODING_BROTLI, MOST);
    body.len = coded_len;
    send_get(fd, xid, URL, 0);
    body.fetch = respond_coded_head(URL, CODING_BROTLI);
    (void)read_passing(fd, &xid, &body);
    close(fd);
}
END_TEST

/* ---- memory ---------------------------------------------------------------------------------- */

/* The share of replies is used up before the first piece, or behind it. */
START_TEST(memory_that_is_used_up)
{
    const size_t share = UINT64_MAX / 32;
    int fd = front_connect_tcp();
    proxy_fetch_result result;
    proxy_object name;

    code(CODING_ZSTD, LARGE);
    send_get(fd, 1, URL, 0);
    respond_whole(URL, CODING_ZSTD);
    memcpy(name, receive_first(fd, 1, PROXY_MISS, -1), sizeof(name));
    memory_charge_anyway(&scene.account, MEMORY_REQUESTS, share);
    send_get(fd, 2, URL, 0);
    receive_page(fd, 2, PROXY_OVERLOADED, &result);
    ck_assert_ptr_nonnull(strstr(result.proxy_fetch_result_u.sentence, "no memory for the answer"));
    free_page(&result);
    send_fetch(fd, 3, URL, strlen(URL));
    ck_assert_int_eq(receive_status(fd, 3), SYSTEM_ERR);
    send_read(fd, 4, name, PIECE, PIECE);
    receive_refusal(fd, 4, PROXY_OVERLOADED, "no memory for the answer");
    expect_refusal(fd, 5, name, PIECE, "no such object");
    memory_uncharge(&scene.account, MEMORY_REQUESTS, share);
    ck_assert_uint_eq(stats().ended[CURSOR_FAILED], 1);
    send_get(fd, 6, URL, 0);
    receive_first(fd, 6, PROXY_HIT, -1);
    close(fd);
}
END_TEST

/* ---- failures behind the first piece --------------------------------------------------------- */

/* Of what has been stored, or while more of it comes. */
START_TEST(a_body_that_breaks_off)
{
    int fd = front_connect_tcp();
    struct scene_fetch *fetch;
    const char *name;

    code(CODING_GZIP, LARGE);
    coded[coded_len - 6] ^= 1; /* the check sum */
    send_get(fd, 1, URL, 0);
    fetch = respond_coded_head(URL, CODING_GZIP);
    respond_coded(fetch, 0, coded_len);
    if (_i == 0)
        scene_done(fetch, FETCH_OK, "");
    name = receive_first(fd, 1, PROXY_MISS, -1);
    send_read(fd, 2, name, PIECE, PIECE);
    ck_assert_uint_eq(receive_piece(fd, 2, PIECE, false), PIECE);
    send_read(fd, 3, name, 2 * PIECE, PIECE);
    receive_refusal(fd, 3, PROXY_ORIGIN_BROKE, "the origin has not sent a valid response");
    expect_refusal(fd, 4, name, 2 * PIECE, "no such object");
    ck_assert_uint_eq(stats().ended[CURSOR_FAILED], 1);
    AWAIT(memory_used(&scene.account, MEMORY_REPLIES) == 0);
    if (_i == 1)
        scene_done(fetch, FETCH_OK, "");
    close(fd);
}
END_TEST

/* In the first piece or behind it. No reader is left, so that the fetch ends. */
START_TEST(a_fetch_whose_body_breaks_off)
{
    const size_t enough = 3 * MIB / 2;
    int fd = front_connect_tcp();
    struct scene_fetch *fetch;
    proxy_fetch_result result;
    size_t sent;

    code(CODING_BROTLI, MOST);
    coded[(size_t)(_i ? 20 : 1) * (65536 + 3)] = 0x0e; /* a meta-block with the reserved bit */
    send_get(fd, 1, URL, 0);
    fetch = respond_coded_head(URL, CODING_BROTLI);
    sent = respond_coded(fetch, 0, enough);
    if (_i == 0) {
        receive_page(fd, 1, PROXY_ORIGIN_BROKE, &result);
        free_page(&result);
    } else {
        send_read(fd, 2, receive_first(fd, 1, PROXY_MISS, -1), PIECE, PIECE);
        if (sent < enough)
            AWAIT(scene_resumes(fetch) > 0);
        respond_coded(fetch, sent, enough);
        receive_refusal(fd, 2, PROXY_ORIGIN_BROKE, "the origin has not sent a valid response");
    }
    AWAIT(scene_is_cancelled(fetch) || fetch->sink->body(fetch->context, coded, 16) == FETCH_ABORT);
    scene_done(fetch, FETCH_CANCELLED, "");
    AWAIT(stats().open == 0);
    close(fd);
}
END_TEST

/* ---- servers that end ------------------------------------------------------------------------ */

/* With a task under way. */
START_TEST(a_server_that_ends_while_a_body_is_decoded)
{
    const char *name;
    int fd;

    set_up();
    fd = front_connect();
    memset(bytes, 'x', MOST);
    code(CODING_GZIP, 4 * MIB);
    send_get(fd, 1, URL, 0);
    respond_whole(URL, CODING_GZIP);
    name = receive_first(fd, 1, PROXY_MISS, -1);
    send_read(fd, 2, name, 4 * MIB - 1, 1);
    for (uint32_t i = 0; i < 5; i++)
        send_fetch(fd, 3 + i, URL, strlen(URL));
    rpc_server_stop_accepting(front_service.rpc);
    front_server_halt(0);
    front_server_free();
    close(fd);
    bytes[MOST - 1] = 0;
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("server: cursors of bodies with a content coding");
    TCase *tests = tcase_create("stored");

    tcase_set_timeout(tests, 120);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_loop_test(tests, a_body_of_one_piece, CODING_GZIP, CODING_UNKNOWN);
    tcase_add_loop_test(tests, codings_that_are_refused, 0, 3);
    tcase_add_loop_test(tests, a_body_of_version_1, CODING_GZIP, CODING_UNKNOWN);
    tcase_add_loop_test(tests, a_body_that_version_1_cannot_carry, 0, 2);
    tcase_add_test(tests, a_client_of_version_1_that_goes);
    tcase_add_loop_test(tests, a_stored_body_is_read_in_order, CODING_GZIP, CODING_UNKNOWN);
    tcase_add_test(tests, calls_that_wait_for_each_other);
    tcase_add_test(tests, a_body_that_decodes_to_little);
    tcase_add_test(tests, many_hits_at_once);
    tcase_add_loop_test(tests, a_client_that_goes_while_bytes_are_skipped, 0, 2);
    tcase_add_loop_test(tests, a_growing_body, CODING_GZIP, CODING_UNKNOWN);
    tcase_add_test(tests, a_slow_body);
    tcase_add_test(tests, memory_that_is_used_up);
    tcase_add_loop_test(tests, a_body_that_breaks_off, 0, 2);
    suite_add_tcase(suite, tests);
    tests = tcase_create("not stored");
    tcase_set_timeout(tests, 120);
    tcase_add_checked_fixture(tests, set_up_unstored, tear_down);
    tcase_add_test(tests, a_body_that_is_read_through_a_window);
    tcase_add_loop_test(tests, a_fetch_whose_body_breaks_off, 0, 2);
    suite_add_tcase(suite, tests);
    tests = tcase_create("servers of their own");
    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, a_server_that_ends_while_a_body_is_decoded);
    suite_add_tcase(suite, tests);
    return suite;
}
