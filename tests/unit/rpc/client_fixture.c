#include "tests/unit/rpc/client_fixture.h"

struct peer peer;
struct rpc_client *client;
unsigned places;

void
note(void *context, enum rpc_client_status status, void *result)
{
    struct outcome *outcome = context;

    ck_assert_ptr_eq(result, &outcome->value);
    ck_assert_uint_eq(outcome->place, 0);
    outcome->status = status;
    outcome->place = ++places;
}

void
client_set_up(void)
{
    places = 0;
    peer_listen(&peer);
    client = rpc_client_connect((struct sockaddr *)&peer.address, sizeof(peer.address), SECOND,
                                MAX_REPLY);
    ck_assert_ptr_nonnull(client);
    peer_accept(&peer);
}

void
client_tear_down(void)
{
    rpc_client_close(client);
    client = NULL;
    peer_free(&peer);
}

Suite *
client_suite(const char *name, TCase **tc)
{
    Suite *suite = suite_create(name);

    *tc = tcase_create(name);
    tcase_add_checked_fixture(*tc, client_set_up, client_tear_down);
    suite_add_tcase(suite, *tc);
    return suite;
}

void
call_within(struct outcome *outcome, u_int argument, int64_t timeout_us)
{
    *outcome = (struct outcome){.place = 0};
    ck_assert_int_eq(rpc_client_call(client, 100, 2, 7, (xdrproc_t)xdr_u_int, &argument,
                                     (xdrproc_t)xdr_u_int, &outcome->value, timeout_us, note,
                                     outcome),
                     RPC_CLIENT_OK);
}

uint32_t
call(struct outcome *outcome, u_int argument)
{
    struct peer_call seen;

    call_within(outcome, argument, 60 * SECOND);
    ck_assert(rpc_client_run(client, 0));
    return peer_take_call(&peer, &seen);
}

void
run_until_done(const struct outcome *outcome)
{
    for (int i = 0; outcome->place == 0 && i < 1000; i++)
        rpc_client_run(client, SECOND);
    ck_assert_uint_ne(outcome->place, 0);
}

void
reply_value(uint32_t xid, uint32_t value)
{
    PEER_SEND_WORDS(&peer, xid, REPLY, MSG_ACCEPTED, AUTH_NONE, 0, SUCCESS, value);
}
