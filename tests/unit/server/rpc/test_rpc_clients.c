/* Which clients may call procedures over RPC (--client-net). */
#include "proxy.h"
#include "tests/unit/rpc/messages.h"
#include "tests/unit/server/front_server.h"

#define URL "http://host/page"

static void
set_up(void)
{
    static char net[] = "203.0.113.0/24", *items[] = {net, NULL};

    front_options.client_net = (struct option_list){.items = items, .count = 1};
    front_server_start(&(struct scene_options){.capacity_pages = 10}, VICTIMS_NONE);
}

static void
tear_down(void)
{
    front_server_stop();
}

static void
expect_words(int fd, const uint32_t *words, size_t count)
{
    struct buf reply;

    ck_assert(peer_receive(fd, &reply));
    ck_assert_uint_eq(reply.len, count * sizeof(*words));
    for (size_t i = 0; i < count; i++)
        ck_assert_uint_eq(get_word(&reply, i), words[i]);
    buf_free(&reply);
}

static void
send_without_arguments(int fd, uint32_t xid, uint32_t version, uint32_t procedure)
{
    struct buf b;

    buf_init(&b, 1024);
    put_call_to(&b, xid, PROXY_FETCHPROG, version, procedure);
    ck_assert(peer_send(fd, &b));
}

/* The connection persists, so that each of its calls gets an answer. */
START_TEST(a_client_of_another_network_is_denied)
{
    static const uint32_t denied[] = {1, REPLY, MSG_DENIED, AUTH_ERROR, AUTH_TOOWEAK};
    int fd = front_connect_tcp();

    send_fetch(fd, 1, URL, strlen(URL));
    expect_words(fd, denied, 5);
    send_get(fd, 1, URL, 0);
    expect_words(fd, denied, 5);
    send_without_arguments(fd, 1, PROXY_VERS2, PROXY_STAT);
    expect_words(fd, denied, 5);
    ck_assert_uint_eq(scene.submitted, 0);
    close(fd);
}
END_TEST

/* RFC 5531 section 12.1: it requires no authentication. */
START_TEST(the_null_procedure_is_for_all)
{
    int fd = front_connect_tcp();

    for (uint32_t version = 1; version <= 2; version++) {
        send_without_arguments(fd, version, version, NULLPROC);
        ck_assert_int_eq(receive_status(fd, version), SUCCESS);
    }
    close(fd);
}
END_TEST

START_TEST(over_af_unix_permissions_decide)
{
    int fd = front_connect();
    proxy_fetch_result result;

    send_get(fd, 1, URL, 0);
    origin_responds(URL, MAX_AGE, BODY_INLINE, "page", 4);
    receive_page(fd, 1, PROXY_OK, &result);
    free_page(&result);
    close(fd);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("server/rpc_clients");
    TCase *tests = tcase_create("clients");

    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, a_client_of_another_network_is_denied);
    tcase_add_test(tests, the_null_procedure_is_for_all);
    tcase_add_test(tests, over_af_unix_permissions_decide);
    suite_add_tcase(suite, tests);
    return suite;
}
