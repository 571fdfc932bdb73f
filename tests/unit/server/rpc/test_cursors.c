/*
 * Bodies that are read piece by piece over version 2, stored ones: PROXY_READ and PROXY_RELEASE.
 *
 * Waits for most of its time, so tests/run.sh runs it beside others.
 */
#include "tests/unit/server/rpc/cursor_scene.h"

/* ---- complete objects ------------------------------------------------------------------------ */

START_TEST(a_stored_body_is_read_at_any_offset)
{
    static const struct {
        uint64_t offset;
        uint32_t count;
        size_t len;
        bool ends;
    } rows[] = {
        {PIECE, PIECE, PIECE, false},
        {2 * PIECE, PIECE, PIECE, true},
        {0, 1, 1, false},
        {LARGE - 1, 10, 1, true},
        {LARGE, 10, 0, true},
        {UINT64_MAX, 10, 0, true},
        {17, UINT32_MAX, PIECE, false},
        {5, 0, 0, false},
        {LARGE - 3, 3, 3, true},
        {12345, 999999, 999999, false},
    };
    int fd = front_connect_tcp();
    const char *name = cursor_stored(fd);

    for (uint32_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        send_read(fd, 10 + i, name, rows[i].offset, rows[i].count);
        ck_assert_uint_eq(receive_piece(fd, 10 + i, rows[i].len ? rows[i].offset : 0, rows[i].ends),
                          rows[i].len);
    }
    /* Another one gets it from the cache, at once. */
    send_get(fd, 50, URL, 0);
    receive_first(fd, 50, PROXY_HIT, LARGE);
    ck_assert_uint_eq(stats().open, 2);
    close(fd);
}
END_TEST

/* What the cache has done with the page is known at its end. */
START_TEST(the_last_piece_has_the_ending)
{
    proxy_read_result result = {.status = PROXY_OK};
    const proxy_ending *ending;
    int fd = front_connect_tcp();
    const char *name;

    front_store("http://host/victim", MAX_AGE, BODY_INLINE, "x", 1);
    name = cursor_stored(fd);
    send_read(fd, 2, name, 2 * PIECE, PIECE);
    receive_result(fd, 2, (xdrproc_t)xdr_proxy_read_result, &result);
    ck_assert_int_eq(result.status, PROXY_OK);
    ending = result.proxy_read_result_u.piece.ending;
    ck_assert_ptr_nonnull(ending);
    ck_assert(ending->stored);
    ck_assert_uint_eq(ending->fetch_us, 2000);
    ck_assert_uint_eq(ending->evicted, 1);
    ck_assert_uint_eq(ending->victims.victims_len, 1);
    ck_assert_uint_eq(ending->victims.victims_val[0].proxy_url_len, strlen("http://host/victim"));
    xdr_free((xdrproc_t)xdr_proxy_read_result, &result);
    close(fd);
}
END_TEST

/* It stays readable for its holders when the cache has dropped it. */
START_TEST(a_purged_object_is_read_on)
{
    int fd = front_connect_tcp();
    const char *name = cursor_stored(fd);

    ck_assert_uint_eq(cache_purge_all(scene.cache), 1);
    send_read(fd, 2, name, PIECE, PIECE);
    ck_assert_uint_eq(receive_piece(fd, 2, PIECE, false), PIECE);
    expect_release(fd, 3, name, PROXY_OK);
    close(fd);
}
END_TEST

/* ---- access to an object, and its end -------------------------------------------------------- */

START_TEST(an_object_is_read_on_its_connection_until_its_release)
{
    int fd = front_connect(), other = front_connect();
    proxy_object name, unknown = {0};

    memcpy(name, cursor_stored(fd), sizeof(name));
    expect_refusal(other, 2, name, PIECE, "no such object");
    expect_release(other, 3, name, PROXY_NO_OBJECT);
    expect_refusal(fd, 4, unknown, PIECE, "no such object");
    send_read(fd, 5, name, PIECE, 1);
    ck_assert_uint_eq(receive_piece(fd, 5, PIECE, false), 1);
    expect_release(fd, 6, name, PROXY_OK);
    expect_release(fd, 7, name, PROXY_NO_OBJECT);
    expect_refusal(fd, 8, name, PIECE, "no such object");
    ck_assert_uint_eq(stats().open, 0);
    ck_assert_uint_eq(stats().ended[CURSOR_RELEASED], 1);
    close(fd);
    close(other);
}
END_TEST

START_TEST(an_object_goes_with_its_connection)
{
    int fd = front_connect_tcp();

    cursor_stored(fd);
    ck_assert_uint_eq(stats().open, 1);
    close(fd);
    AWAIT(stats().ended[CURSOR_DISCONNECTED] == 1);
    ck_assert_uint_eq(stats().open, 0);
}
END_TEST

START_TEST(an_object_that_is_not_read_expires)
{
    const char *name;
    int fd;

    front_options.cursor_timeout = SECOND; /* no less: the whole body comes within it */
    set_up();
    fd = front_connect_tcp();
    name = cursor_stored(fd);
    AWAIT(stats().ended[CURSOR_EXPIRED] == 1);
    expect_refusal(fd, 2, name, PIECE, "no such object");
    close(fd);
    front_server_stop();
}
END_TEST

/* A call that asks for `count` bytes. */
static proxy_status
ask_for(int fd, uint32_t xid, const char *name, uint64_t offset, uint32_t count)
{
    proxy_read_result result = {.status = PROXY_OK};
    proxy_status status;

    send_read(fd, xid, name, offset, count);
    receive_result(fd, xid, (xdrproc_t)xdr_proxy_read_result, &result);
    status = result.status;
    xdr_free((xdrproc_t)xdr_proxy_read_result, &result);
    return status;
}

/* While memory is short. Calls for no bytes do not keep it. */
START_TEST(an_object_that_is_not_read_gives_way)
{
    const struct timespec pause = {.tv_nsec = 50000000};
    int fd = front_connect_tcp();
    const char *name = cursor_stored(fd);
    unsigned calls = 0;

    while (calls < 500 && ask_for(fd, 10 + calls, name, PIECE, 0) == PROXY_OK) {
        cursors_note_shortage(front_service.cursors);
        nanosleep(&pause, NULL);
        calls++;
    }
    ck_assert_uint_lt(calls, 500);
    ck_assert_uint_eq(stats().ended[CURSOR_DISPLACED], 1);
    /* Nor is a call needed. */
    send_get(fd, 2, URL, 0);
    receive_first(fd, 2, PROXY_HIT, LARGE);
    cursors_note_shortage(front_service.cursors);
    AWAIT((cursors_note_shortage(front_service.cursors), stats().ended[CURSOR_DISPLACED] == 2));
    ck_assert_uint_eq(stats().open, 0);
    close(fd);
}
END_TEST

START_TEST(an_object_that_is_read_does_not_give_way)
{
    const struct timespec pause = {.tv_nsec = 100000000};
    int fd = front_connect_tcp();
    const char *name = cursor_stored(fd);

    for (uint32_t i = 0; i < 2 * CURSOR_UNREAD_US / 100000; i++) {
        cursors_note_shortage(front_service.cursors);
        ck_assert_int_eq(
            ask_for(fd, 10 + i, name, PIECE + i * 65536, LARGE / CURSOR_LEAST_SENT + 1), PROXY_OK);
        nanosleep(&pause, NULL);
    }
    ck_assert_uint_eq(stats().open, 1);
    close(fd);
}
END_TEST

START_TEST(the_objects_of_a_connection_are_bounded)
{
    int fd = front_connect_tcp();
    proxy_object first, second;

    memcpy(first, cursor_stored(fd), sizeof(first));
    for (uint32_t i = 1; i < CURSORS_PER_CONNECTION; i++) {
        send_get(fd, 100 + i, URL, 0);
        memcpy(second, receive_first(fd, 100 + i, PROXY_HIT, LARGE), sizeof(second));
    }
    ck_assert_uint_eq(stats().ended[CURSOR_DISPLACED], 0);
    /* The first one was used last. */
    send_read(fd, 2, first, PIECE, 1);
    receive_piece(fd, 2, PIECE, false);
    send_get(fd, 3, URL, 0);
    receive_first(fd, 3, PROXY_HIT, LARGE);
    ck_assert_uint_eq(stats().ended[CURSOR_DISPLACED], 1);
    ck_assert_uint_eq(stats().open, CURSORS_PER_CONNECTION);
    send_read(fd, 4, first, PIECE, 1);
    receive_piece(fd, 4, PIECE, false);
    close(fd);
}
END_TEST

/* A client has a quarter of all. A connection that has one gives it up for another. */
START_TEST(the_objects_of_a_client_are_bounded)
{
    proxy_fetch_result result;
    int fd, other;

    front_options.max_cursors = 4;
    set_up();
    fd = front_connect_tcp();
    other = front_connect_tcp();
    cursor_stored(fd);
    send_get(other, 2, URL, 0);
    receive_page(other, 2, PROXY_OVERLOADED, &result);
    free_page(&result);
    ck_assert_uint_eq(stats().refused, 1);
    send_get(fd, 3, URL, 0);
    receive_first(fd, 3, PROXY_HIT, LARGE);
    ck_assert_uint_eq(stats().open, 1);
    ck_assert_uint_eq(stats().ended[CURSOR_DISPLACED], 1);
    close(fd);
    close(other);
    front_server_stop();
}
END_TEST

/* The fetch of a body that may have no cursor has no reader: it ends. */
START_TEST(a_growing_body_that_may_have_no_cursor_is_refused)
{
    struct scene_fetch *fetch;
    proxy_fetch_result result;
    int fd, other;

    front_options.max_cursors = 4;
    set_up_unstored();
    fd = front_connect_tcp();
    other = front_connect_tcp();
    send_get(fd, 1, URL, 0);
    fetch = respond_head(LARGE);
    respond_body(fetch, 0, LARGE);
    receive_first(fd, 1, PROXY_MISS, LARGE);
    send_get(other, 2, URL "?2", 0);
    fetch = origin_begins(URL "?2", MAX_AGE, LARGE);
    respond_body(fetch, 0, LARGE);
    receive_page(other, 2, PROXY_OVERLOADED, &result);
    free_page(&result);
    AWAIT(scene_is_cancelled(fetch));
    scene_done(fetch, FETCH_CANCELLED, "");
    close(fd);
    close(other);
    AWAIT(scene_is_cancelled(scene_fetch(URL)));
    scene_done(scene_fetch(URL), FETCH_CANCELLED, "");
    front_server_stop();
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("server: cursors");
    TCase *tests = tcase_create("stored");

    tcase_set_timeout(tests, 120);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, a_stored_body_is_read_at_any_offset);
    tcase_add_test(tests, the_last_piece_has_the_ending);
    tcase_add_test(tests, a_purged_object_is_read_on);
    tcase_add_test(tests, an_object_is_read_on_its_connection_until_its_release);
    tcase_add_test(tests, an_object_goes_with_its_connection);
    tcase_add_test(tests, an_object_that_is_not_read_gives_way);
    tcase_add_test(tests, an_object_that_is_read_does_not_give_way);
    tcase_add_test(tests, the_objects_of_a_connection_are_bounded);
    suite_add_tcase(suite, tests);
    tests = tcase_create("servers of their own");
    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, an_object_that_is_not_read_expires);
    tcase_add_test(tests, the_objects_of_a_client_are_bounded);
    tcase_add_test(tests, a_growing_body_that_may_have_no_cursor_is_refused);
    suite_add_tcase(suite, tests);
    return suite;
}
