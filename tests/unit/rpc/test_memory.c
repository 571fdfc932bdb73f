/* What the server charges to its account, and what happens when the account is used up. */
#include "base/container_of.h"
#include "rpc/gather.h"
#include "rpc/transport.h"
#include "tests/unit/rpc/small_server.h"

#define SHARE ((uint64_t)65536) /* of each group but that for fetching */

static struct memory_account account;
static struct rpc_limits limits;

static void
start(unsigned workers)
{
    memory_account_init(&account, 8 * SHARE, NULL);
    limits.net.memory = &account;
    tiny_start(&tiny, &limits, workers);
}

static void
set_up(void)
{
    limits = small;
    limits.max_record = 131072;
}

/* All is given back once the connections have gone. */
static void
stop(void)
{
    expect_serving(&tiny);
    AWAIT(tiny_stats(&tiny).net.connections == 0);
    ck_assert_uint_eq(tiny_stop(&tiny, 5000000), 0);
    for (unsigned kind = 0; kind < MEMORY_KINDS; kind++)
        ck_assert_uint_eq(memory_used(&account, (enum memory_kind)kind), 0);
}

static uint64_t
records(void)
{
    return memory_used(&account, MEMORY_RECORDS);
}

static uint64_t
requests(void)
{
    return memory_used(&account, MEMORY_REQUESTS);
}

/* ---- records --------------------------------------------------------------------------------- */

enum { ECHO = 8192 };

/* The first `len` bytes of an echo's call that is padded to 60,000 bytes. */
static void
send_part(int fd, uint32_t len)
{
    struct buf stream;

    buf_init(&stream, 1u << 20);
    put_word(&stream, 0x80000000u | 60000);
    put_call(&stream, 7, TINY_ECHO);
    put_word(&stream, ECHO);
    while (stream.len < 60004)
        put_word(&stream, 0x61616161);
    ck_assert(peer_write(fd, stream.data, len));
    buf_free(&stream);
}

START_TEST(a_record_in_pieces_is_charged)
{
    int fd;

    start(1);
    fd = peer_connect(&tiny);
    send_part(fd, 1000);
    AWAIT(records() == 1024);
    close(fd);
    AWAIT(records() == 0);
    stop();
}
END_TEST

START_TEST(the_record_begun_longest_ago_goes)
{
    int first, second, third;

    start(1);
    first = peer_connect(&tiny);
    second = peer_connect(&tiny);
    third = peer_connect(&tiny);
    send_part(first, 20000);
    AWAIT(records() == 32768);
    send_part(second, 20000);
    AWAIT(records() == 65536);
    ck_assert_uint_eq(tiny_stats(&tiny).net.connections_timed_out, 0);
    send_part(third, 20000);
    ck_assert(peer_is_cut(first));
    AWAIT(records() == 65536);
    ck_assert_uint_eq(tiny_stats(&tiny).net.connections_timed_out, 1);
    close(first);
    close(second);
    close(third);
    AWAIT(records() == 0);
    tiny_stop(&tiny, 5000000);
}
END_TEST

struct holder {
    struct net_task task;
    _Atomic bool holds, ended;
};

static void
hold_worker(struct net_task *task)
{
    struct holder *holder = container_of(task, struct holder, task);

    atomic_store(&holder->holds, true);
    while (!atomic_load(&holder->ended))
        usleep(1000);
}

/* All three are ready at once, and the first has a reply when the third finds no memory. */
START_TEST(a_reply_that_waits_for_its_group_is_written)
{
    struct holder holder = {.task.run = hold_worker};
    int first, second, third;

    start(1);
    first = peer_connect(&tiny);
    second = peer_connect(&tiny);
    third = peer_connect(&tiny);
    AWAIT(tiny_stats(&tiny).net.connections == 3);
    net_worker_post(net_server_connections(rpc_server_net(tiny.server), 0)->worker, &holder.task);
    AWAIT(atomic_load(&holder.holds));
    ck_assert(peer_call(first, 1, TINY_WORKER, 0));
    send_part(first, 20000);
    send_part(second, 20000);
    send_part(third, 20000);
    atomic_store(&holder.ended, true);
    EXPECT_ACCEPTED(first, 1, SUCCESS, 0);
    ck_assert(peer_is_cut(second));
    close(first);
    close(second);
    close(third);
    stop();
}
END_TEST

START_TEST(a_record_larger_than_the_share_is_given_up)
{
    int fd;

    limits.max_record = 131072;
    start(1);
    memory_charge_anyway(&account, MEMORY_RECORDS, SHARE - 4096);
    fd = peer_connect(&tiny);
    send_part(fd, 20000);
    ck_assert(peer_is_cut(fd));
    close(fd);
    AWAIT(records() == SHARE - 4096);
    memory_uncharge(&account, MEMORY_RECORDS, SHARE - 4096);
    stop();
}
END_TEST

START_TEST(another_worker_gives_its_oldest_up)
{
    int held[4], fd;

    limits.net.max_connections = 64;
    start(2);
    /* In turn to both workers; those of one hold all. */
    for (unsigned i = 0; i < 4; i++)
        held[i] = peer_connect(&tiny);
    for (unsigned i = 0; i < 4; i++)
        expect_alive(held[i]);
    send_part(held[0], 20000);
    AWAIT(records() == 32768);
    send_part(held[2], 20000);
    AWAIT(records() == 65536);
    /* This one has no elder beside itself: it goes, and so does the other worker's oldest. */
    send_part(held[1], 1000);
    ck_assert(peer_is_cut(held[1]));
    ck_assert(peer_is_cut(held[0]));
    AWAIT(records() == 32768);
    fd = peer_connect(&tiny);
    send_part(fd, 1000);
    AWAIT(records() == 32768 + 1024);
    close(fd);
    for (unsigned i = 0; i < 4; i++)
        close(held[i]);
    stop();
}
END_TEST

/* ---- requests -------------------------------------------------------------------------------- */

START_TEST(requests_beyond_the_pool_are_charged)
{
    enum { CALLS = RPC_POOLED_REQUESTS + 20 };
    int fd, other;

    limits.net.max_requests = CALLS * 2;
    start(1);
    fd = peer_connect(&tiny);
    other = peer_connect(&tiny);
    for (uint32_t i = 0; i < CALLS; i++)
        ck_assert(peer_call(fd, i, TINY_DEFER, 100));
    AWAIT(atomic_load(&tiny.deferred) == CALLS);
    ck_assert_uint_ge(requests(), 20 * sizeof(struct rpc_request));
    ck_assert_uint_le(requests(), 21 * sizeof(struct rpc_request));
    ck_assert(peer_call(other, 1, TINY_ANSWER, 0));
    EXPECT_ACCEPTED(other, 1, SUCCESS, CALLS);
    for (uint32_t i = 0; i < CALLS; i++)
        expect_body(&tiny, fd, CALLS - 1 - i, 100);
    AWAIT(requests() == 0);
    close(fd);
    close(other);
    stop();
}
END_TEST

/* Calls that were read and not looked at, since as many as may be are in flight. */
static size_t
send_backlog(int fd, unsigned calls)
{
    struct buf stream;
    size_t len;

    buf_init(&stream, 1u << 20);
    for (uint32_t i = 0; i < calls; i++) {
        put_word(&stream, 0x80000000u | 44);
        put_call(&stream, i, TINY_DEFER);
        put_word(&stream, 100);
    }
    len = stream.len / calls;
    ck_assert(peer_write(fd, stream.data, stream.len));
    buf_free(&stream);
    return len;
}

START_TEST(calls_put_aside_are_charged)
{
    int fd, other;
    size_t len;

    start(1);
    fd = peer_connect(&tiny);
    other = peer_connect(&tiny);
    len = send_backlog(fd, 10);
    AWAIT(atomic_load(&tiny.deferred) == 4);
    AWAIT(requests() == 6 * len);
    for (unsigned answered = 0; answered < 10;) {
        unsigned now = 10 - answered < 4 ? 10 - answered : 4;

        AWAIT(atomic_load(&tiny.deferred) == answered + now);
        ck_assert(peer_call(other, 1, TINY_ANSWER, 0));
        EXPECT_ACCEPTED(other, 1, SUCCESS, now);
        for (unsigned i = 0; i < now; i++)
            expect_body(&tiny, fd, answered + now - 1 - i, 100);
        answered += now;
    }
    AWAIT(requests() == 0);
    close(fd);
    close(other);
    stop();
}
END_TEST

START_TEST(calls_for_which_there_is_no_memory_are_not_read)
{
    int fd, other;

    start(1);
    memory_charge_anyway(&account, MEMORY_REQUESTS, SHARE);
    fd = peer_connect(&tiny);
    other = peer_connect(&tiny);
    send_backlog(fd, 10);
    AWAIT(atomic_load(&tiny.deferred) == 4);
    expect_alive(other);
    ck_assert_uint_eq(requests(), SHARE);
    ck_assert(peer_call(other, 1, TINY_ANSWER, 0));
    EXPECT_ACCEPTED(other, 1, SUCCESS, 4);
    /* What was taken up is answered; then it is over. */
    for (uint32_t i = 0; i < 4; i++)
        expect_body(&tiny, fd, 3 - i, 100);
    ck_assert(peer_is_cut(fd));
    memory_uncharge(&account, MEMORY_REQUESTS, SHARE);
    close(fd);
    close(other);
    stop();
}
END_TEST

START_TEST(without_memory_a_slow_reader_is_read_no_more)
{
    enum { CALLS = 1000, SIZE = 100000 };
    struct buf stream;
    int fd;

    limits.net.max_requests = 2 * CALLS;
    limits.net.max_queued_bytes = 1u << 30;
    start(1);
    memory_charge_anyway(&account, MEMORY_REQUESTS, SHARE);
    buf_init(&stream, 1u << 20);
    for (uint32_t i = 0; i < CALLS; i++) {
        put_word(&stream, 0x80000000u | 44);
        put_call(&stream, i, TINY_BODY);
        put_word(&stream, SIZE);
    }
    fd = peer_connect(&tiny);
    ck_assert(peer_write(fd, stream.data, stream.len));
    AWAIT(tiny_stats(&tiny).calls > 0);
    for (int i = 0; i < 20; i++)
        expect_serving(&tiny);
    /* Those of the other connections, what the kernel's buffers take, and one. */
    ck_assert_uint_lt(tiny_stats(&tiny).calls, 20 + CALLS / 4);
    memory_uncharge(&account, MEMORY_REQUESTS, SHARE);
    buf_free(&stream);
    close(fd);
    stop();
}
END_TEST

/* ---- replies --------------------------------------------------------------------------------- */

START_TEST(what_is_copied_into_a_reply_is_charged)
{
    static char bytes[5000];
    struct rpc_reply reply;
    struct rpc_gather gather;

    memory_account_init(&account, 8 * 8192, NULL);
    rpc_reply_init(&reply, &account);
    rpc_gather_begin(&gather, &reply, false);
    ck_assert(XDR_PUTBYTES(&gather.xdr, bytes, 500));
    ck_assert_uint_eq(memory_used(&account, MEMORY_REPLIES), 0);
    ck_assert(XDR_PUTBYTES(&gather.xdr, bytes, sizeof(bytes)));
    ck_assert_uint_ge(memory_used(&account, MEMORY_REPLIES), sizeof(bytes));
    ck_assert(!XDR_PUTBYTES(&gather.xdr, bytes, sizeof(bytes)));
    rpc_reply_free(&reply);
    ck_assert_uint_eq(memory_used(&account, MEMORY_REPLIES), 0);

    /* By reference it is the array of pieces alone. */
    rpc_gather_begin(&gather, &reply, true);
    for (unsigned i = 0; i < 20; i++) {
        long word = 1;

        ck_assert(XDR_PUTLONG(&gather.xdr, &word));
        ck_assert(XDR_PUTBYTES(&gather.xdr, bytes, sizeof(bytes)));
    }
    ck_assert(rpc_gather_end(&gather));
    ck_assert_uint_gt(memory_used(&account, MEMORY_REPLIES), 40 * sizeof(struct iovec) - 1);
    ck_assert_uint_lt(memory_used(&account, MEMORY_REPLIES), 4096);
    rpc_reply_free(&reply);
    ck_assert_uint_eq(memory_used(&account, MEMORY_REPLIES), 0);
}
END_TEST

enum { RUNS = 100, RUN_BYTES = 600 };

/* Encodes a reply of RUNS words, each before a run that is taken by reference. */
static void
encode_runs(struct rpc_reply *reply)
{
    static char bytes[RUN_BYTES];
    struct rpc_gather gather;

    rpc_gather_begin(&gather, reply, true);
    for (unsigned i = 0; i < RUNS; i++) {
        long word = 1;

        ck_assert(XDR_PUTLONG(&gather.xdr, &word));
        ck_assert(XDR_PUTBYTES(&gather.xdr, bytes, sizeof(bytes)));
    }
    ck_assert(rpc_gather_end(&gather));
}

START_TEST(a_larger_array_of_pieces_replaces_the_charge_of_the_smaller)
{
    struct rpc_reply reply;

    memory_account_init(&account, 8 * SHARE, NULL);
    rpc_reply_init(&reply, &account);
    encode_runs(&reply);
    ck_assert_uint_ge(reply.output.count, 2 * RUNS);
    ck_assert_uint_eq(memory_used(&account, MEMORY_REPLIES),
                      reply.capacity * sizeof(*reply.output.pieces));
    rpc_reply_free(&reply);
    ck_assert_uint_eq(memory_used(&account, MEMORY_REPLIES), 0);
}
END_TEST

START_TEST(data_that_exists_is_sent_when_the_share_is_used_up)
{
    static char bytes[RPC_BY_REFERENCE - 1];
    struct rpc_reply reply;
    struct rpc_gather gather;

    memory_account_init(&account, 8 * SHARE, NULL);
    memory_charge_anyway(&account, MEMORY_REQUESTS, SHARE);
    rpc_reply_init(&reply, &account);
    encode_runs(&reply);
    ck_assert_uint_gt(memory_used(&account, MEMORY_REPLIES), 0);
    rpc_reply_free(&reply);

    /* Parts below the length of a reference, which the buffer alone cannot hold. */
    rpc_gather_begin(&gather, &reply, true);
    for (unsigned i = 0; i < 10; i++)
        ck_assert(XDR_PUTBYTES(&gather.xdr, bytes, sizeof(bytes)));
    ck_assert(rpc_gather_end(&gather));
    rpc_reply_free(&reply);
    ck_assert_uint_eq(memory_used(&account, MEMORY_REPLIES), 0);

    /* A result that is copied is refused. */
    rpc_gather_begin(&gather, &reply, false);
    ck_assert(XDR_PUTBYTES(&gather.xdr, bytes, sizeof(bytes)));
    ck_assert(!XDR_PUTBYTES(&gather.xdr, bytes, sizeof(bytes)) ||
              !XDR_PUTBYTES(&gather.xdr, bytes, sizeof(bytes)));
    rpc_reply_free(&reply);
    ck_assert_uint_eq(memory_used(&account, MEMORY_REPLIES), 0);
    memory_uncharge(&account, MEMORY_REQUESTS, SHARE);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("rpc: memory");
    TCase *tests = tcase_create("account");

    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, set_up, NULL);
    tcase_add_test(tests, a_record_in_pieces_is_charged);
    tcase_add_test(tests, the_record_begun_longest_ago_goes);
    tcase_add_test(tests, a_reply_that_waits_for_its_group_is_written);
    tcase_add_test(tests, a_record_larger_than_the_share_is_given_up);
    tcase_add_test(tests, another_worker_gives_its_oldest_up);
    tcase_add_test(tests, requests_beyond_the_pool_are_charged);
    tcase_add_test(tests, calls_put_aside_are_charged);
    tcase_add_test(tests, calls_for_which_there_is_no_memory_are_not_read);
    tcase_add_test(tests, without_memory_a_slow_reader_is_read_no_more);
    tcase_add_test(tests, what_is_copied_into_a_reply_is_charged);
    tcase_add_test(tests, a_larger_array_of_pieces_replaces_the_charge_of_the_smaller);
    tcase_add_test(tests, data_that_exists_is_sent_when_the_share_is_used_up);
    suite_add_tcase(suite, tests);
    return suite;
}
