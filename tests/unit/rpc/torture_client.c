#include "rpc/client.h"

#include <pthread.h>

#include "tests/unit/rpc/scripted_peer.h"
#include "tests/unit/torture.h"

#define CALLS 40 /* more than the first table holds */
#define SECOND ((int64_t)1000000)

struct tally {
    unsigned ok, other;
};

static void
count(void *context, enum rpc_client_status status, void *result)
{
    struct tally *tally = context;

    (void)result;
    if (status == RPC_CLIENT_OK)
        tally->ok++;
    else
        tally->other++;
}

/* Answers every call of one connection after the other, until a connection without a call. */
static void *
answer(void *context)
{
    struct peer *peer = context;
    unsigned calls;

    do {
        uint32_t call[12]; /* mark, xid, header, argument */

        peer_accept(peer);
        for (calls = 0; recv(peer->fd, call, 48, MSG_WAITALL) == 48; calls++) {
            uint32_t reply[8] = {htonl(0x80000000 | 28), call[1], htonl(REPLY)};

            /* A client without memory hangs up in the middle. */
            send(peer->fd, reply, sizeof(reply), MSG_NOSIGNAL);
        }
        peer_hang_up(peer);
    } while (calls != 0);
    return NULL;
}

struct torture {
    struct peer peer;
    bool failed; /* Check itself allocates: nothing is asserted while an allocation may fail */
};

/* Every call that was queued is done exactly once, whatever allocation fails. */
static void
call_and_answer(void *context)
{
    struct torture *torture = context;
    struct tally tally = {0};
    struct rpc_client *client =
        rpc_client_connect((struct sockaddr *)&torture->peer.address, sizeof(torture->peer.address),
                           20 * SECOND, 200000);
    u_int results[CALLS] = {0};
    unsigned queued = 0;

    if (!client) {
        torture->failed |= !torture_failed();
        return;
    }
    for (u_int i = 0; i < CALLS; i++) {
        enum rpc_client_status status =
            rpc_client_call(client, 1, 1, 1, (xdrproc_t)xdr_u_int, &i, (xdrproc_t)xdr_u_int,
                            &results[i], 60 * SECOND, count, &tally);

        if (status == RPC_CLIENT_OK)
            queued++;
        else
            torture->failed |= status != RPC_CLIENT_NO_MEMORY;
    }
    torture->failed |= queued < CALLS - 1 || rpc_client_pending(client) != queued;
    while (rpc_client_pending(client) != 0 && rpc_client_run(client, 60 * SECOND))
        ;
    torture->failed |= tally.ok + tally.other != queued;
    torture->failed |= !torture_failed() && tally.ok != CALLS;
    rpc_client_close(client);
}

START_TEST(every_failing_allocation_is_answered)
{
    struct torture torture = {.failed = false};
    struct rpc_client *last;
    pthread_t thread;
    unsigned seams;

    peer_listen(&torture.peer);
    ck_assert_int_eq(pthread_create(&thread, NULL, answer, &torture.peer), 0);
    seams = torture_walk(call_and_answer, &torture);
    last = rpc_client_connect((struct sockaddr *)&torture.peer.address,
                              sizeof(torture.peer.address), 20 * SECOND, 100);
    ck_assert_ptr_nonnull(last);
    rpc_client_close(last);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert(!torture.failed);
    /* The client, its table and that grown, the calls, both buffers. */
    ck_assert_uint_ge(seams, 4 + CALLS);
    peer_free(&torture.peer);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("client torture");
    TCase *tcase = tcase_create("client torture");

    tcase_add_test(tcase, every_failing_allocation_is_answered);
    suite_add_tcase(suite, tcase);
    return suite;
}
