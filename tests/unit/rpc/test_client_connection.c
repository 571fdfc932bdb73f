/* The connection under the calls: its beginning, its limits, its end, and time that runs out. */
#define UNIT_STARTS_NO_THREAD

#include <errno.h>
#include <netinet/in.h>

#include "proxy.h"
#include "tests/unit/rpc/client_fixture.h"

START_TEST(garbage_ends_the_connection)
{
    static const char *const garbage[] = {
        "HTTP/1.1 400 Bad Request\r\n\r\n", /* a fragment of a GiB, as marks go */
        "\x80\x00\x00\x02xx",               /* too short to be any message */
        "\xff\xff\xff\xff",
    };
    static const size_t lens[] = {28, 6, 4};
    struct outcome a, b;

    for (size_t i = 0; i < 3; i++) {
        call(&a, 1);
        call(&b, 2);
        peer_send(&peer, garbage[i], lens[i]);
        ck_assert(!rpc_client_run(client, SECOND * 10));
        ck_assert_int_eq(a.status, RPC_CLIENT_BAD_REPLY);
        ck_assert_int_eq(b.status, RPC_CLIENT_BAD_REPLY);
        ck_assert_int_eq(rpc_client_call(client, 1, 1, 1, NULL, NULL, NULL, NULL, SECOND, note, &a),
                         RPC_CLIENT_LOST);
        client_tear_down();
        client_set_up();
    }
}
END_TEST

START_TEST(a_reply_is_bounded)
{
    /* The same many bytes, in one fragment and in many, the last of which goes over. */
    for (int way = 0; way < 2; way++) {
        struct outcome outcome;
        char *bytes = calloc(1, MAX_REPLY + 4);
        uint32_t head[] = {htonl(call(&outcome, 1)), htonl(REPLY), 0, 0, 0, 0, htonl(77)};

        ck_assert_ptr_nonnull(bytes);
        memcpy(bytes, head, sizeof(head));
        peer_send_record(&peer, bytes, MAX_REPLY, way ? 50000 : SIZE_MAX);
        run_until_done(&outcome);
        ck_assert_int_eq(outcome.status, RPC_CLIENT_OK);
        ck_assert_uint_eq(outcome.value, 77);

        call(&outcome, 1);
        peer_send_record(&peer, bytes, MAX_REPLY + 4, way ? 50000 : SIZE_MAX);
        run_until_done(&outcome);
        ck_assert_int_eq(outcome.status, RPC_CLIENT_BAD_REPLY);
        free(bytes);
        client_tear_down();
        client_set_up();
    }
}
END_TEST

START_TEST(a_lost_connection_ends_every_call)
{
    struct outcome a, b, c;
    uint32_t xid = call(&a, 1);

    call(&b, 2);
    call_within(&c, 3, 60 * SECOND);
    reply_value(xid, 8);
    peer_hang_up(&peer);
    while (rpc_client_run(client, SECOND))
        ck_assert_uint_ne(rpc_client_pending(client), 0);
    ck_assert_uint_eq(rpc_client_pending(client), 0);
    ck_assert_int_eq(a.status, RPC_CLIENT_OK); /* had been sent before the end */
    ck_assert_int_eq(b.status, RPC_CLIENT_LOST);
    ck_assert_int_eq(c.status, RPC_CLIENT_LOST);
    ck_assert(!rpc_client_run(client, SECOND));
}
END_TEST

START_TEST(closing_ends_every_call)
{
    struct outcome a, b;

    call(&a, 1);
    call_within(&b, 2, SECOND);
    rpc_client_close(client);
    client = NULL;
    ck_assert_int_eq(a.status, RPC_CLIENT_LOST);
    ck_assert_int_eq(b.status, RPC_CLIENT_LOST);
    rpc_client_close(NULL);
}
END_TEST

START_TEST(each_call_has_its_own_time)
{
    struct outcome slow, fast;
    struct peer_call seen;
    uint32_t xid_slow, xid_fast;

    call_within(&slow, 1, 600 * SECOND);
    call_within(&fast, 2, 20000);
    ck_assert(rpc_client_run(client, 600 * SECOND));
    xid_slow = peer_take_call(&peer, &seen);
    xid_fast = peer_take_call(&peer, &seen);
    ck_assert_int_eq(fast.status, RPC_CLIENT_TIMED_OUT);
    ck_assert_uint_eq(fast.place, 1);
    ck_assert_uint_eq(slow.place, 0);
    reply_value(xid_fast, 1); /* too late: no call waits for it */
    reply_value(xid_slow, 2);
    run_until_done(&slow);
    ck_assert_int_eq(slow.status, RPC_CLIENT_OK);
    ck_assert_uint_eq(slow.value, 2);
}
END_TEST

START_TEST(an_answer_that_is_there_is_in_time)
{
    struct outcome outcome;
    struct peer_call seen;

    /* The caller is busy for longer than the call's time. */
    call_within(&outcome, 1, SECOND);
    ck_assert(rpc_client_run(client, 0));
    reply_value(peer_take_call(&peer, &seen), 7);
    usleep(1050000);
    ck_assert(rpc_client_run(client, SECOND));
    ck_assert_int_eq(outcome.status, RPC_CLIENT_OK);
    ck_assert_uint_eq(outcome.value, 7);
}
END_TEST

START_TEST(more_is_queued_than_a_socket_takes)
{
    enum { CALLS = 400 };
    static struct outcome outcomes[CALLS];
    static char url[PROXY_MAX_URL];
    proxy_purge_args purge = {.kind = PROXY_PURGE_URL};

    memset(url, 'u', sizeof(url));
    purge.url.proxy_url_val = url;
    purge.url.proxy_url_len = 4000;
    for (unsigned i = 0; i < CALLS; i++) {
        outcomes[i] = (struct outcome){.place = 0};
        ck_assert_int_eq(rpc_client_call(client, 1, 1, 1, (xdrproc_t)xdr_proxy_purge_args, &purge,
                                         (xdrproc_t)xdr_u_int, &outcomes[i].value, 60 * SECOND,
                                         note, &outcomes[i]),
                         RPC_CLIENT_OK);
    }
    for (unsigned i = 0; i < CALLS; i++) {
        struct peer_call seen;

        ck_assert(rpc_client_run(client, 0));
        reply_value(peer_take_call(&peer, &seen), i);
    }
    while (rpc_client_pending(client) != 0)
        ck_assert(rpc_client_run(client, SECOND * 10));
    for (unsigned i = 0; i < CALLS; i++)
        ck_assert_uint_eq(outcomes[i].value, i);
}
END_TEST

START_TEST(a_connection_that_cannot_be_made_says_why)
{
    struct sockaddr_un nowhere = {.sun_family = AF_UNIX, .sun_path = "/nonexistent/socket"};
    struct sockaddr_in closed = {.sin_family = AF_INET};
    socklen_t len = sizeof(closed);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    ck_assert_ptr_null(
        rpc_client_connect((struct sockaddr *)&nowhere, sizeof(nowhere), SECOND, MAX_REPLY));
    ck_assert_int_eq(errno, ENOENT);
    /* Bound and not listening: no other process can listen there meanwhile. */
    closed.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&closed, sizeof(closed)), 0);
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&closed, &len), 0);
    ck_assert_ptr_null(
        rpc_client_connect((struct sockaddr *)&closed, sizeof(closed), SECOND, MAX_REPLY));
    ck_assert_int_eq(errno, ECONNREFUSED);
    close(fd);
}
END_TEST

START_TEST(a_full_backlog_times_out)
{
    struct rpc_client *others[64];
    unsigned count = 0;

    while (count < 64 &&
           (others[count] = rpc_client_connect((struct sockaddr *)&peer.address,
                                               sizeof(peer.address), 20000, MAX_REPLY)))
        count++;
    ck_assert_uint_lt(count, 64);
    ck_assert_int_eq(errno, ETIMEDOUT);
    while (count > 0)
        rpc_client_close(others[--count]);
}
END_TEST

Suite *
unit_suite(void)
{
    TCase *tc;
    Suite *suite = client_suite("rpc/client_connection", &tc);

    tcase_add_test(tc, garbage_ends_the_connection);
    tcase_add_test(tc, a_reply_is_bounded);
    tcase_add_test(tc, a_lost_connection_ends_every_call);
    tcase_add_test(tc, closing_ends_every_call);
    tcase_add_test(tc, each_call_has_its_own_time);
    tcase_add_test(tc, an_answer_that_is_there_is_in_time);
    tcase_add_test(tc, more_is_queued_than_a_socket_takes);
    tcase_add_test(tc, a_connection_that_cannot_be_made_says_why);
    tcase_add_test(tc, a_full_backlog_times_out);
    return suite;
}
