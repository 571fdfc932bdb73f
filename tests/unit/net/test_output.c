/* Output by reference: what is queued comes out whole and in order, however little the kernel takes
 * at a time, and is released once, when its last byte has been written. */
#define UNIT_STARTS_NO_THREAD

#include "net/output.h"

#include <stdlib.h>

#include "tests/unit/net/stream.h"

enum { OUTPUTS = 100, PIECES = 7, BYTES = 3001 };

static struct item {
    struct net_output output;
    struct iovec pieces[PIECES];
    unsigned number;
} items[OUTPUTS];

static char bytes[OUTPUTS * PIECES * BYTES];
static unsigned released;
static bool in_order;
static struct net_output_queue queue;
static struct iovec pieces[NET_SEND_PIECES];
static int fds[2];

static void
release(struct net_output *output)
{
    in_order = in_order && ((struct item *)output)->number == released;
    released++;
}

static void
set_up(void)
{
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
    released = 0;
    in_order = true;
    net_output_queue_init(&queue);
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (char)(i * 13 + i / 257);
    for (unsigned i = 0; i < OUTPUTS; i++) {
        struct item *item = &items[i];

        *item = (struct item){.number = i};
        for (unsigned j = 0; j < PIECES; j++)
            item->pieces[j] = (struct iovec){bytes + (size_t)(i * PIECES + j) * BYTES, BYTES};
        item->output.pieces = item->pieces;
        item->output.count = PIECES;
        item->output.len = (size_t)PIECES * BYTES;
        item->output.release = release;
        net_output_queue_add(&queue, &item->output, 1000 + i);
    }
}

static void
tear_down(void)
{
    net_output_queue_drop(&queue);
    ck_assert_uint_eq(released, OUTPUTS);
    ck_assert(in_order);
    ck_assert_uint_eq(queue.bytes, 0);
    ck_assert(net_output_queue_is_empty(&queue));
    ck_assert_int_eq(net_output_queue_since(&queue), INT64_MAX);
    close(fds[0]);
    close(fds[1]);
}

START_TEST(all_comes_out_in_order)
{
    static char got[sizeof(bytes)];
    size_t done = 0, sent = 0;
    enum net_send_status status;

    ck_assert_uint_eq(queue.bytes, sizeof(bytes));
    do {
        size_t written;
        ssize_t n;

        status = net_output_queue_send(&queue, fds[0], NET_TURN_BYTES, pieces, &written);
        ck_assert_int_ne(status, NET_SEND_FAILED);
        sent += written;
        ck_assert_uint_eq(queue.bytes, sizeof(bytes) - sent);
        ck_assert_uint_eq(released, sent / ((size_t)PIECES * BYTES));
        if (released < OUTPUTS)
            ck_assert_int_eq(net_output_queue_since(&queue), 1000 + released);
        /* Little enough to cut pieces anywhere. */
        n = recv(fds[1], got + done, 1777, 0);
        ck_assert_int_gt(n, 0);
        done += (size_t)n;
    } while (status == NET_SENT_PART);
    ck_assert_int_eq(status, NET_SENT);
    while (done < sizeof(bytes)) {
        ssize_t n = recv(fds[1], got + done, sizeof(bytes) - done, 0);

        ck_assert_int_gt(n, 0);
        done += (size_t)n;
    }
    ck_assert(memcmp(got, bytes, sizeof(bytes)) == 0);
}
END_TEST

static void
count_release(struct net_output *output)
{
    (void)output;
    released++;
}

/* Whether they are joined (NET_JOINED_BYTES) or not. */
START_TEST(few_bytes_come_out_in_order)
{
    enum { PARTS = 4 };
    static const size_t sizes[] = {1, 100, 511, 512, 513, 600};

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        struct net_output_queue few;
        struct iovec parts[PARTS];
        struct net_output output = {.pieces = parts, .count = PARTS, .release = count_release};
        char expected[PARTS * 600], got[sizeof(expected) + 1];
        size_t written;

        for (unsigned j = 0; j < PARTS; j++) {
            parts[j] = (struct iovec){bytes + (PARTS - j) * 1000u, sizes[i]};
            memcpy(expected + output.len, bytes + (PARTS - j) * 1000u, sizes[i]);
            output.len += sizes[i];
        }
        net_output_queue_init(&few);
        net_output_queue_add(&few, &output, 0);
        ck_assert_int_eq(net_output_queue_send(&few, fds[0], NET_TURN_BYTES, pieces, &written),
                         NET_SENT);
        ck_assert_uint_eq(written, PARTS * sizes[i]);
        ck_assert_int_eq(recv(fds[1], got, sizeof(got), 0), (int)written);
        ck_assert(memcmp(got, expected, written) == 0);
        ck_assert_uint_eq(released, i + 1);
    }
    released = 0;
}
END_TEST

/* The kernel would take all of it: a connection on the loopback has 2.5 MB at once. */
START_TEST(a_turn_is_bounded)
{
    int port, server = listen_tcp(&port), client = socket(AF_INET, SOCK_STREAM, 0), accepted;
    static char got[NET_TURN_BYTES];
    size_t written;

    connect_to_port(client, port);
    accepted = accept4(server, NULL, NULL, SOCK_NONBLOCK);
    ck_assert_int_ge(accepted, 0);
    for (size_t left = sizeof(bytes); left; left -= written) {
        enum net_send_status status =
            net_output_queue_send(&queue, accepted, NET_TURN_BYTES, pieces, &written);
        size_t expected = left < NET_TURN_BYTES ? left : NET_TURN_BYTES;

        ck_assert_uint_eq(written, expected);
        ck_assert_int_eq(status, expected == left ? NET_SENT : NET_SENT_PART);
        ck_assert(peer_read(client, got, written));
    }
    close(server);
    close(client);
    close(accepted);
}
END_TEST

START_TEST(a_lost_connection_is_a_failure)
{
    size_t written;

    close(fds[1]);
    fds[1] = dup(fds[0]);
    ck_assert_int_eq(net_output_queue_send(&queue, fds[0], NET_TURN_BYTES, pieces, &written),
                     NET_SEND_FAILED);
    ck_assert_uint_eq(written, 0);
    ck_assert_uint_eq(released, 0);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("net: output");
    TCase *tcase = tcase_create("output");

    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, all_comes_out_in_order);
    tcase_add_test(tcase, few_bytes_come_out_in_order);
    tcase_add_test(tcase, a_turn_is_bounded);
    tcase_add_test(tcase, a_lost_connection_is_a_failure);
    suite_add_tcase(suite, tcase);
    return suite;
}
