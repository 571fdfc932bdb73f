/*
 * Bodies that are read piece by piece over version 2 while they arrive.
 *
 * Waits for most of its time, so tests/run.sh runs it beside others.
 */
#include <poll.h>

#include "tests/unit/server/rpc/cursor_scene.h"

/* ---- growing objects ------------------------------------------------------------------------- */

START_TEST(a_growing_body_is_read_in_order)
{
    int64_t length = _i ? -1 : LARGE;
    int fd = front_connect_tcp();
    struct scene_fetch *fetch;
    const char *name;
    size_t at;

    send_get(fd, 1, URL, 0);
    fetch = respond_head(length);
    at = respond_body(fetch, 0, PIECE + 1);
    name = receive_first(fd, 1, PROXY_MISS, length);
    /* It waits until it is worth an answer. */
    send_read(fd, 2, name, PIECE, CURSOR_WORTHWHILE);
    at = respond_body(fetch, at, at + CURSOR_WORTHWHILE);
    ck_assert_uint_eq(receive_piece(fd, 2, PIECE, false), CURSOR_WORTHWHILE);
    /* What is asked for has come. */
    send_read(fd, 3, name, PIECE + CURSOR_WORTHWHILE, 1);
    ck_assert_uint_eq(receive_piece(fd, 3, PIECE + CURSOR_WORTHWHILE, false), 1);
    expect_refusal(fd, 4, name, PIECE, "not kept");
    /* Bytes may be skipped, also those that have not come. */
    send_read(fd, 5, name, LARGE - 100, 1000);
    send_read(fd, 6, name, LARGE, 1000);
    ck_assert_uint_eq(respond_body(fetch, at, LARGE), LARGE);
    scene_done(fetch, FETCH_OK, "");
    ck_assert_uint_eq(receive_piece(fd, 5, LARGE - 100, true), 100);
    ck_assert_uint_eq(receive_piece(fd, 6, 0, true), 0);
    /* Now it is in the cache: any offset can be read. */
    send_read(fd, 7, name, 3, 10);
    ck_assert_uint_eq(receive_piece(fd, 7, 3, false), 10);
    expect_release(fd, 8, name, PROXY_OK);
    close(fd);
}
END_TEST

/* What a slow origin sends is not kept back until a piece of it is there. */
START_TEST(a_slow_body_is_passed_on)
{
    int fd = front_connect_tcp();
    proxy_fetch_result result;
    const proxy_page *page = &result.proxy_fetch_result_u.page;
    struct scene_fetch *fetch;
    proxy_object name;

    send_get(fd, 1, URL, 0);
    fetch = respond_head(-1);
    respond_body(fetch, 0, 10);
    receive_page(fd, 1, PROXY_OK, &result);
    ck_assert_uint_eq(page->body.body_len, 10);
    ck_assert_uint_lt(page->total_us, CURSOR_WAIT_US / 2);
    ck_assert_ptr_nonnull(page->rest);
    memcpy(name, page->rest->object, sizeof(name));
    free_page(&result);
    /* Bytes that come at once, and those that come later than others are waited for. */
    send_read(fd, 2, name, 10, PIECE);
    respond_body(fetch, 10, 20);
    ck_assert_uint_eq(receive_piece(fd, 2, 10, false), 10);
    send_read(fd, 3, name, 20, PIECE);
    poll(NULL, 0, (int)(CURSOR_GATHER_US / 1000) + 200);
    respond_body(fetch, 20, 21);
    ck_assert_uint_eq(receive_piece(fd, 3, 20, false), 1);
    /* A call for no bytes is answered at once. */
    send_read(fd, 4, name, 21, 0);
    ck_assert_uint_eq(receive_piece(fd, 4, 21, false), 0);
    respond_body(fetch, 21, 22);
    scene_done(fetch, FETCH_OK, "");
    send_read(fd, 5, name, 21, PIECE);
    ck_assert_uint_eq(receive_piece(fd, 5, 21, true), 1);
    close(fd);
}
END_TEST

/* Without a place for its cursor a slow body is whole in the answer, as a fast one is. */
START_TEST(a_slow_body_waits_where_there_is_no_place_for_it)
{
    int fd, other;
    proxy_fetch_result result;
    struct scene_fetch *fetch;

    front_options.max_cursors = 4;
    set_up();
    fd = front_connect_tcp();
    other = front_connect_tcp();
    cursor_stored(fd);
    send_get(other, 2, URL "?2", 0);
    fetch = origin_begins(URL "?2", MAX_AGE, -1);
    respond_body(fetch, 0, 10);
    poll(NULL, 0, (int)(CURSOR_GATHER_US / 1000) + 300);
    respond_body(fetch, 10, 20);
    scene_done(fetch, FETCH_OK, "");
    receive_page(other, 2, PROXY_OK, &result);
    ck_assert_uint_eq(result.proxy_fetch_result_u.page.body.body_len, 20);
    ck_assert_ptr_null(result.proxy_fetch_result_u.page.rest);
    free_page(&result);
    ck_assert_uint_eq(stats().refused, 0);
    ck_assert_uint_eq(stats().open, 1);
    close(fd);
    close(other);
    front_server_stop();
}
END_TEST

/* A client that is kept from reading on by its own output. */
START_TEST(calls_for_no_bytes_keep_an_object)
{
    const char *name;
    int fd;

    front_options.cursor_timeout = SECOND;
    set_up();
    fd = front_connect_tcp();
    name = cursor_stored(fd);
    for (uint32_t i = 0; i < 12; i++) {
        poll(NULL, 0, 100);
        send_read(fd, 10 + i, name, PIECE, 0);
        ck_assert_uint_eq(receive_piece(fd, 10 + i, PIECE, false), 0);
    }
    send_read(fd, 2, name, PIECE, PIECE);
    ck_assert_uint_eq(receive_piece(fd, 2, PIECE, false), PIECE);
    close(fd);
    front_server_stop();
}
END_TEST

/* A body that is not stored: the origin is as fast as the reader, and what was read is freed. */
START_TEST(a_body_that_is_not_stored_is_read_through_a_window)
{
    struct passing_body body = {.text = bytes, .len = MOST, .window = 3 * MIB, .length = MOST};
    int fd = front_connect_tcp();
    uint32_t xid = 1;
    const char *name;

    send_get(fd, xid, URL, 0);
    body.fetch = respond_head(MOST);
    name = read_passing(fd, &xid, &body);
    /* Its beginning has been freed. */
    expect_refusal(fd, ++xid, name, PIECE, "not kept");
    close(fd);
}
END_TEST

/* Of two readers the slow one does not slow the fast one down, but must fetch for itself. */
START_TEST(a_reader_far_behind_another_fetches_again)
{
    int fast = front_connect_tcp(), slow = front_connect();
    struct scene_fetch *fetch;
    proxy_object name, slow_name;
    size_t sent, got;
    uint32_t xid = 10;
    unsigned resumes = 0;

    send_get(fast, 1, URL, 0);
    await_fetch(URL);
    AWAIT_ONE_MORE(send_get(slow, 2, URL, 0));
    fetch = respond_head(MOST);
    sent = respond_body(fetch, 0, MOST);
    memcpy(name, receive_first(fast, 1, PROXY_MISS, MOST), sizeof(name));
    memcpy(slow_name, receive_first(slow, 2, PROXY_COALESCED, MOST), sizeof(name));
    for (got = PIECE; got < 7 * MIB;) {
        send_read(fast, ++xid, name, got, PIECE);
        got += receive_piece(fast, xid, got, false);
        if (sent - got > MIB / 2)
            continue;
        AWAIT(scene_resumes(fetch) > resumes);
        resumes = scene_resumes(fetch);
        sent = respond_body(fetch, sent, MOST - 1);
    }
    send_read(slow, 3, slow_name, PIECE, PIECE);
    receive_refusal(slow, 3, PROXY_NO_OBJECT, "fetch again");
    expect_refusal(slow, 4, slow_name, PIECE, "no such object");
    ck_assert_uint_eq(stats().ended[CURSOR_FAILED], 1);
    close(fast);
    close(slow);
    AWAIT(scene_is_cancelled(fetch));
    scene_done(fetch, FETCH_CANCELLED, "");
}
END_TEST

/* The connection's end is noticed when the call that waits has been answered. */
static void
set_up_short_waits(void)
{
    front_cursor_wait_us = 2 * SECOND;
    set_up_unstored();
}

static void
tear_down_short_waits(void)
{
    tear_down();
    front_cursor_wait_us = 0;
}

START_TEST(a_fetch_ends_with_its_only_reader)
{
    int fd = front_connect_tcp();
    struct scene_fetch *fetch;
    const char *name;

    send_get(fd, 1, URL, 0);
    fetch = respond_head(MOST);
    respond_body(fetch, 0, MOST);
    name = receive_first(fd, 1, PROXY_MISS, MOST);
    if (_i == 0)
        expect_release(fd, 2, name, PROXY_OK);
    if (_i == 1) /* with a call that waits */
        send_read(fd, 2, name, MOST - 1, 1);
    if (_i != 0)
        close(fd);
    AWAIT(scene_is_cancelled(fetch));
    scene_done(fetch, FETCH_CANCELLED, "");
    AWAIT(stats().open == 0);
    if (_i == 0)
        close(fd);
}
END_TEST

/* A client that has gone before the first piece does not keep a fetch alive, either. */
START_TEST(a_client_that_has_gone_before_the_first_piece)
{
    const struct linger at_once = {.l_onoff = 1};
    int fd = front_connect_tcp();
    struct scene_fetch *fetch;
    struct rpc_stats of;

    send_get(fd, 1, URL, 0);
    fetch = respond_head(MOST);
    respond_body(fetch, 0, 100000);
    ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once)), 0);
    close(fd);
    AWAIT((rpc_server_get_stats(front_service.rpc, &of), of.net.connections == 0));
    AWAIT(scene_is_cancelled(fetch) || fetch->sink->body(fetch->context, bytes, 16) == FETCH_ABORT);
    scene_done(fetch, FETCH_CANCELLED, "");
    ck_assert_uint_eq(stats().opened, 0);
}
END_TEST

/* ---- failures -------------------------------------------------------------------------------- */

/* The fetch fails behind the first piece: while a call waits, or before it. */
START_TEST(a_body_that_breaks_off)
{
    int fd = front_connect_tcp();
    struct scene_fetch *fetch;
    const char *name;

    send_get(fd, 1, URL, 0);
    fetch = respond_head(LARGE);
    respond_body(fetch, 0, PIECE + 1);
    name = receive_first(fd, 1, PROXY_MISS, LARGE);
    if (_i == 0)
        send_read(fd, 2, name, PIECE, PIECE);
    scene_done(fetch, FETCH_ORIGIN_BROKE, "host: the body was cut short");
    if (_i == 1) {
        AWAIT(scene_metric("requests{outcome=\"failure\"}") == 1);
        send_read(fd, 2, name, PIECE, PIECE);
    }
    receive_refusal(fd, 2, PROXY_ORIGIN_BROKE, "the origin has not sent a valid response");
    expect_refusal(fd, 3, name, PIECE, "no such object");
    ck_assert_uint_eq(stats().ended[CURSOR_FAILED], 1);
    ck_assert_uint_eq(memory_used(&scene.account, MEMORY_PAGES), 0);
    close(fd);
}
END_TEST

/* Version 1 has begun the fetch, and bounds it; version 2 fetches for itself. */
START_TEST(a_body_too_large_for_version_1)
{
    int first = front_connect_tcp(), second = front_connect();
    struct scene_fetch *fetch;

    send_fetch(first, 1, URL, strlen(URL));
    fetch = await_fetch(URL);
    ck_assert(!(fetch->flags & REQUEST_STREAMS));
    AWAIT_ONE_MORE(send_get(second, 2, URL, 0));
    scene_done(fetch, FETCH_TOO_LARGE, "host: too large");
    ck_assert_int_eq(receive_status(first, 1), SYSTEM_ERR);
    fetch = respond_head(LARGE);
    ck_assert(fetch->flags & REQUEST_STREAMS);
    respond_body(fetch, 0, LARGE);
    scene_done(fetch, FETCH_OK, "");
    receive_first(second, 2, PROXY_MISS, LARGE);
    /* A hit is too large for it, too. */
    ck_assert_uint_eq(front_service.proxy.config.max_body, 2 * MIB);
    send_fetch(first, 3, URL, strlen(URL));
    ck_assert_int_eq(receive_status(first, 3), SYSTEM_ERR);
    close(first);
    close(second);
}
END_TEST

static void
set_up_small(void)
{
    begin(&(struct scene_options){.capacity_pages = 1, .max_body = 2 * MIB, .max_page = 4 * MIB});
}

/* ---- servers that end ------------------------------------------------------------------------ */

START_TEST(a_server_that_ends_while_bodies_are_read)
{
    struct scene_fetch *fetch;
    int fd;

    set_up_unstored();
    fd = front_connect();
    send_get(fd, 1, URL, 0);
    fetch = respond_head(MOST);
    respond_body(fetch, 0, MOST);
    if (_i == 1) /* a call waits; otherwise the first piece has not been read */
        send_read(fd, 2, receive_first(fd, 1, PROXY_MISS, MOST), MOST - 1, 1);
    else
        AWAIT(stats().open == 1);
    rpc_server_stop_accepting(front_service.rpc);
    scene_done(fetch, FETCH_STOPPING, "the server is stopping");
    front_server_halt(0);
    front_server_free();
    close(fd);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("server: cursors of bodies that grow");
    TCase *tests = tcase_create("stored");

    tcase_set_timeout(tests, 120);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_loop_test(tests, a_growing_body_is_read_in_order, 0, 2);
    tcase_add_test(tests, a_slow_body_is_passed_on);
    tcase_add_loop_test(tests, a_body_that_breaks_off, 0, 2);
    suite_add_tcase(suite, tests);
    tests = tcase_create("not stored");
    tcase_set_timeout(tests, 120);
    tcase_add_checked_fixture(tests, set_up_unstored, tear_down);
    tcase_add_test(tests, a_body_that_is_not_stored_is_read_through_a_window);
    tcase_add_test(tests, a_reader_far_behind_another_fetches_again);
    tcase_add_test(tests, a_client_that_has_gone_before_the_first_piece);
    suite_add_tcase(suite, tests);
    tests = tcase_create("not stored, with short waits");
    tcase_set_timeout(tests, 120);
    tcase_add_checked_fixture(tests, set_up_short_waits, tear_down_short_waits);
    tcase_add_loop_test(tests, a_fetch_ends_with_its_only_reader, 0, 3);
    suite_add_tcase(suite, tests);
    tests = tcase_create("beside version 1");
    tcase_add_checked_fixture(tests, set_up_small, tear_down);
    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, a_body_too_large_for_version_1);
    suite_add_tcase(suite, tests);
    tests = tcase_create("servers of their own");
    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, a_slow_body_waits_where_there_is_no_place_for_it);
    tcase_add_test(tests, calls_for_no_bytes_keep_an_object);
    tcase_add_loop_test(tests, a_server_that_ends_while_bodies_are_read, 0, 2);
    suite_add_tcase(suite, tests);
    return suite;
}
