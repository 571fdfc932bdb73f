/* Calls and their answers, in every order and form. */
#include <pthread.h>

#include "proxy.h"
#include "tests/unit/rpc/client_fixture.h"

START_TEST(a_call_is_what_rfc_5531_says)
{
    struct outcome outcome;
    struct peer_call seen;

    call_within(&outcome, 0x01020304, SECOND * 60);
    ck_assert_uint_eq(rpc_client_pending(client), 1);
    ck_assert(rpc_client_run(client, 0));
    peer_take_call(&peer, &seen);
    ck_assert_uint_eq(seen.words[1], CALL);
    ck_assert_uint_eq(seen.words[2], 2);
    ck_assert_uint_eq(seen.words[3], 100);
    ck_assert_uint_eq(seen.words[4], 2);
    ck_assert_uint_eq(seen.words[5], 7);
    for (int i = 6; i < 10; i++)
        ck_assert_uint_eq(seen.words[i], 0);
    ck_assert_uint_eq(seen.args_len, 4);
    ck_assert_mem_eq(seen.args, "\1\2\3\4", 4);
    reply_value(seen.words[0], 42);
    run_until_done(&outcome);
    ck_assert_int_eq(outcome.status, RPC_CLIENT_OK);
    ck_assert_uint_eq(outcome.value, 42);
    ck_assert_uint_eq(rpc_client_pending(client), 0);
}
END_TEST

START_TEST(answers_come_in_any_order)
{
    struct outcome outcomes[100];
    uint32_t xids[100];

    for (u_int i = 0; i < 100; i++)
        xids[i] = call(&outcomes[i], i);
    for (int i = 99; i >= 0; i--)
        reply_value(xids[i], (uint32_t)i * 10);
    while (rpc_client_pending(client) != 0)
        ck_assert(rpc_client_run(client, SECOND));
    for (u_int i = 0; i < 100; i++) {
        ck_assert_int_eq(outcomes[i].status, RPC_CLIENT_OK);
        ck_assert_uint_eq(outcomes[i].value, i * 10);
        ck_assert_uint_eq(outcomes[i].place, 100 - i);
    }
}
END_TEST

START_TEST(a_reply_may_come_in_fragments)
{
    static const char empty[4 * 1000]; /* fragments without a byte are legal */
    struct outcome a, b, c;
    uint32_t xid_a = call(&a, 1), xid_b = call(&b, 2), xid_c = call(&c, 3);

    peer_send_words(&peer, (uint32_t[]){xid_b, REPLY, MSG_ACCEPTED, AUTH_NONE, 0, SUCCESS, 22}, 7,
                    3);
    peer_send(&peer, empty, sizeof(empty));
    peer_send_words(&peer, (uint32_t[]){xid_a, REPLY, MSG_ACCEPTED, AUTH_NONE, 0, SUCCESS, 11}, 7,
                    1);
    reply_value(xid_c, 33);
    while (rpc_client_pending(client) != 0)
        ck_assert(rpc_client_run(client, SECOND));
    ck_assert_uint_eq(a.value, 11);
    ck_assert_uint_eq(b.value, 22);
    ck_assert_uint_eq(c.value, 33);
}
END_TEST

START_TEST(a_reply_may_come_byte_by_byte)
{
    struct outcome outcome;
    uint32_t xid = call(&outcome, 1);
    uint32_t wire[] = {htonl(0x80000000 | 28), htonl(xid), htonl(REPLY), 0, 0, 0, 0, htonl(5)};

    for (size_t i = 0; i < sizeof(wire); i++) {
        ck_assert_uint_eq(outcome.place, 0);
        peer_send(&peer, (char *)wire + i, 1);
        ck_assert(rpc_client_run(client, 0));
    }
    run_until_done(&outcome);
    ck_assert_uint_eq(outcome.value, 5);
}
END_TEST

START_TEST(rpc_errors_are_distinguished)
{
    static const struct {
        uint32_t words[8]; /* after xid and REPLY */
        size_t count;
        enum rpc_client_status status;
    } cases[] = {
        {{MSG_ACCEPTED, 0, 0, PROG_UNAVAIL}, 4, RPC_CLIENT_PROG_UNAVAIL},
        {{MSG_ACCEPTED, 0, 0, PROG_MISMATCH, 1, 2}, 6, RPC_CLIENT_PROG_MISMATCH},
        {{MSG_ACCEPTED, 0, 0, PROC_UNAVAIL}, 4, RPC_CLIENT_PROC_UNAVAIL},
        {{MSG_ACCEPTED, 0, 0, GARBAGE_ARGS}, 4, RPC_CLIENT_GARBAGE_ARGS},
        {{MSG_ACCEPTED, 0, 0, SYSTEM_ERR}, 4, RPC_CLIENT_SYSTEM_ERR},
        {{MSG_ACCEPTED, 0, 0, 6}, 4, RPC_CLIENT_BAD_REPLY},
        {{MSG_ACCEPTED, 0, 0, SUCCESS}, 4, RPC_CLIENT_BAD_REPLY},     /* no result */
        {{MSG_ACCEPTED, 0, 401, SUCCESS}, 4, RPC_CLIENT_BAD_REPLY},   /* verifier too long */
        {{MSG_ACCEPTED, 0, 16, SUCCESS, 1}, 5, RPC_CLIENT_BAD_REPLY}, /* verifier cut short */
        {{MSG_ACCEPTED, 1, 3, 7, SUCCESS, 9}, 6, RPC_CLIENT_OK},      /* verifier padded */
        {{MSG_DENIED, RPC_MISMATCH, 2, 2}, 4, RPC_CLIENT_DENIED},
        {{MSG_DENIED, AUTH_ERROR, AUTH_BADCRED}, 3, RPC_CLIENT_DENIED},
        {{MSG_DENIED, 2}, 2, RPC_CLIENT_BAD_REPLY},
        {{2}, 1, RPC_CLIENT_BAD_REPLY},
        {{0}, 0, RPC_CLIENT_BAD_REPLY},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct outcome outcome;
        uint32_t words[10] = {call(&outcome, 1), REPLY};

        memcpy(words + 2, cases[i].words, cases[i].count * sizeof(words[0]));
        peer_send_words(&peer, words, cases[i].count + 2, SIZE_MAX);
        run_until_done(&outcome);
        ck_assert_msg(outcome.status == cases[i].status, "case %zu: %s", i,
                      rpc_client_strstatus(outcome.status));
    }
    /* None of these broke the connection. */
    ck_assert(rpc_client_run(client, 0));
}
END_TEST

START_TEST(a_call_in_place_of_a_reply_is_none)
{
    struct outcome outcome;

    PEER_SEND_WORDS(&peer, call(&outcome, 1), CALL, 2, 100, 2, 7, 0, 0, 0, 0);
    run_until_done(&outcome);
    ck_assert_int_eq(outcome.status, RPC_CLIENT_BAD_REPLY);
}
END_TEST

START_TEST(answers_to_no_call_are_dropped)
{
    struct outcome outcome;
    uint32_t xid = call(&outcome, 1);

    reply_value(xid + 1, 1);
    reply_value(xid - 16, 2); /* the same slot */
    reply_value(xid, 3);
    reply_value(xid, 4); /* twice */
    run_until_done(&outcome);
    ck_assert_uint_eq(outcome.value, 3);
    xid = call(&outcome, 1);
    reply_value(xid, 5);
    run_until_done(&outcome);
    ck_assert_uint_eq(outcome.value, 5);
}
END_TEST

START_TEST(a_long_wait_does_not_widen_the_table)
{
    static struct outcome stuck; /* its end comes with the connection's */
    struct outcome quick;

    /* Far more calls than there are slots, while one stays: xids go around it. */
    call(&stuck, 0);
    for (u_int i = 1; i < 200; i++) {
        reply_value(call(&quick, i), i);
        run_until_done(&quick);
        ck_assert_uint_eq(quick.value, i);
    }
    ck_assert_uint_eq(stuck.place, 0);
    ck_assert_uint_eq(rpc_client_pending(client), 1);
}
END_TEST

/* Keeps one call under way until ten have been made. */
static void
call_again(void *context, enum rpc_client_status status, void *result)
{
    struct outcome *outcome = context;

    note(context, status, result);
    if (places < 10 && status == RPC_CLIENT_OK) {
        outcome->place = 0;
        ck_assert_int_eq(rpc_client_call(client, 1, 1, 0, NULL, NULL, (xdrproc_t)xdr_u_int,
                                         &outcome->value, SECOND * 60, call_again, outcome),
                         RPC_CLIENT_OK);
    }
}

START_TEST(an_answer_may_lead_to_the_next_call)
{
    struct outcome outcome = {.place = 0};
    struct peer_call seen;

    ck_assert_int_eq(rpc_client_call(client, 1, 1, 0, NULL, NULL, (xdrproc_t)xdr_u_int,
                                     &outcome.value, SECOND * 60, call_again, &outcome),
                     RPC_CLIENT_OK);
    for (unsigned i = 1; i <= 10; i++) {
        ck_assert(rpc_client_run(client, 0));
        reply_value(peer_take_call(&peer, &seen), i);
        ck_assert_uint_eq(seen.args_len, 0);
        ck_assert(rpc_client_run(client, SECOND * 10));
        ck_assert_uint_eq(places, i);
    }
    ck_assert_uint_eq(outcome.value, 10);
    ck_assert_uint_eq(rpc_client_pending(client), 0);
}
END_TEST

START_TEST(what_cannot_be_encoded_is_not_sent)
{
    struct outcome outcome = {.place = 0}, after;
    proxy_purge_args purge = {.kind = PROXY_PURGE_URL};
    char *url = calloc(1, PROXY_MAX_URL_SENT + 1);

    ck_assert_ptr_nonnull(url);
    purge.url.proxy_url_val = url;
    purge.url.proxy_url_len = PROXY_MAX_URL_SENT + 1;
    ck_assert_int_eq(rpc_client_call(client, 1, 1, 1, (xdrproc_t)xdr_proxy_purge_args, &purge, NULL,
                                     NULL, SECOND, note, &outcome),
                     RPC_CLIENT_GARBAGE_ARGS);
    ck_assert_uint_eq(outcome.place, 0);
    reply_value(call(&after, 1), 6);
    run_until_done(&after);
    ck_assert_uint_eq(after.value, 6);
    free(url);
}
END_TEST

static void
expect_bad_reply(void *context, enum rpc_client_status status, void *result)
{
    (void)result;
    ck_assert_int_eq(status, RPC_CLIENT_BAD_REPLY);
    ++*(unsigned *)context;
}

START_TEST(a_result_cut_short_leaks_nothing)
{
    /* A page with two victims: cut anywhere, what was decoded by then is freed (ASan watches). */
    static const uint32_t page[] = {PROXY_OK, 200, PROXY_MISS, 0, 0, 7, 1, 0, 8, 2, 2, 4, 0, 4, 0};
    size_t count = sizeof(page) / sizeof(page[0]);
    unsigned ended = 0;

    for (size_t cut = 0; cut <= count; cut++) {
        proxy_fetch_result result = {.status = PROXY_OK};
        struct peer_call seen;
        uint32_t words[32] = {0, REPLY, MSG_ACCEPTED, AUTH_NONE, 0, SUCCESS};

        ck_assert_int_eq(rpc_client_call(client, 1, 2, 1, NULL, NULL,
                                         (xdrproc_t)xdr_proxy_fetch_result, &result, SECOND * 60,
                                         expect_bad_reply, &ended),
                         RPC_CLIENT_OK);
        ck_assert(rpc_client_run(client, 0));
        words[0] = peer_take_call(&peer, &seen);
        memcpy(words + 6, page, cut * sizeof(page[0]));
        peer_send_words(&peer, words, 6 + cut, SIZE_MAX);
        ck_assert(rpc_client_run(client, SECOND * 10));
        ck_assert_uint_eq(ended, cut + 1);
    }
}
END_TEST

struct echo {
    size_t body;
};

/* Answers one PROXY_GET with a page of that length, as a server would, on a thread of its own. */
static void *
serve_page(void *context)
{
    const struct echo *echo = context;
    struct peer_call seen;
    uint32_t *words = calloc(1, 21 * 4 + echo->body);

    ck_assert_ptr_nonnull(words);
    words[0] = htonl(peer_take_call(&peer, &seen));
    words[1] = htonl(REPLY);
    words[7] = htonl(200);
    words[8] = htonl(PROXY_MISS);
    words[12] = htonl(1);                    /* stored, after age and total_us */
    words[20] = htonl((uint32_t)echo->body); /* after victims, final_url, headers and rest */
    memset(words + 21, 'x', echo->body);
    peer_send_record(&peer, words, 21 * 4 + echo->body, 4000);
    free(words);
    return NULL;
}

START_TEST(a_page_is_fetched_in_one_call)
{
    struct echo echo = {.body = 80000};
    proxy_fetch_args args = {.flags = PROXY_FLAG_NO_STORE};
    proxy_fetch_result result = {.status = PROXY_OK};
    pthread_t thread;
    char url[] = "http://a/";

    args.url.proxy_url_val = url;
    args.url.proxy_url_len = sizeof(url) - 1;
    ck_assert_int_eq(pthread_create(&thread, NULL, serve_page, &echo), 0);
    ck_assert_int_eq(rpc_client_call_wait(client, PROXY_FETCHPROG, PROXY_VERS2, PROXY_GET,
                                          (xdrproc_t)xdr_proxy_fetch_args, &args,
                                          (xdrproc_t)xdr_proxy_fetch_result, &result, 60 * SECOND),
                     RPC_CLIENT_OK);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert_int_eq(result.status, PROXY_OK);
    ck_assert_uint_eq(result.proxy_fetch_result_u.page.http_status, 200);
    ck_assert_uint_eq(result.proxy_fetch_result_u.page.body.body_len, 80000);
    ck_assert_int_eq(result.proxy_fetch_result_u.page.body.body_val[79999], 'x');
    xdr_free((xdrproc_t)xdr_proxy_fetch_result, &result);
}
END_TEST

Suite *
unit_suite(void)
{
    TCase *tc;
    Suite *suite = client_suite("rpc/client", &tc);

    tcase_add_test(tc, a_call_is_what_rfc_5531_says);
    tcase_add_test(tc, answers_come_in_any_order);
    tcase_add_test(tc, a_reply_may_come_in_fragments);
    tcase_add_test(tc, a_reply_may_come_byte_by_byte);
    tcase_add_test(tc, rpc_errors_are_distinguished);
    tcase_add_test(tc, a_call_in_place_of_a_reply_is_none);
    tcase_add_test(tc, answers_to_no_call_are_dropped);
    tcase_add_test(tc, a_long_wait_does_not_widen_the_table);
    tcase_add_test(tc, an_answer_may_lead_to_the_next_call);
    tcase_add_test(tc, what_cannot_be_encoded_is_not_sent);
    tcase_add_test(tc, a_result_cut_short_leaks_nothing);
    tcase_add_test(tc, a_page_is_fetched_in_one_call);
    return suite;
}
