/* Readiness: of what is watched for alone, of each descriptor in its turn, and of none that is
 * forgotten. */
#define UNIT_STARTS_NO_THREAD

#include "net/poller.h"

#include <event2/event.h>
#include <fcntl.h>

#include "tests/unit/net/stream.h"

enum { WATCHES = NET_POLLER_BATCH + 50 };

static struct event_base *base;
static struct net_poller poller;
static struct net_watch watches[WATCHES];
static int peers[WATCHES];
static unsigned calls[WATCHES];
static uint32_t seen[WATCHES];
static unsigned called;
static unsigned settled, settled_after[NET_POLLER_BATCH]; /* how often, and after how many calls */
static struct net_watch *victim;                          /* is forgotten by the first call */

static void
ready(struct net_watch *watch, uint32_t events)
{
    size_t i = (size_t)(watch - watches);

    ck_assert_uint_lt(i, WATCHES);
    calls[i]++;
    seen[i] = events;
    called++;
    if (victim && victim != watch)
        net_poller_forget(&poller, victim);
}

static void
settle(struct net_poller *of)
{
    ck_assert_ptr_eq(of, &poller);
    ck_assert_uint_lt(settled, sizeof(settled_after) / sizeof(settled_after[0]));
    settled_after[settled++] = called;
}

static void
set_up(void)
{
    memset(&poller, 0, sizeof(poller));
    memset(watches, 0, sizeof(watches));
    memset(calls, 0, sizeof(calls));
    memset(seen, 0, sizeof(seen));
    called = settled = 0;
    victim = NULL;
    base = event_base_new();
    ck_assert_ptr_nonnull(base);
    ck_assert(net_poller_begin(&poller, base, ready, settle));
    for (unsigned i = 0; i < WATCHES; i++)
        peers[i] = -1;
}

static void
tear_down(void)
{
    for (unsigned i = 0; i < WATCHES; i++) {
        if (peers[i] < 0)
            continue;
        net_poller_forget(&poller, &watches[i]);
        close(watches[i].fd);
        close(peers[i]);
    }
    net_poller_end(&poller);
    event_base_free(base);
}

static void
open_watch(unsigned i, uint32_t events)
{
    int fds[2];

    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
    watches[i].fd = fds[0];
    peers[i] = fds[1];
    ck_assert(net_poller_watch(&poller, &watches[i], events));
}

static void
turn(void)
{
    ck_assert_int_ge(event_base_loop(base, EVLOOP_ONCE | EVLOOP_NONBLOCK), 0);
}

static void
send_byte(unsigned i)
{
    ck_assert_int_eq(write(peers[i], "x", 1), 1);
}

START_TEST(what_is_watched_for_is_reported)
{
    open_watch(0, EPOLLIN);
    open_watch(1, EPOLLOUT);
    turn();
    ck_assert_uint_eq(calls[0], 0);
    ck_assert_uint_eq(calls[1], 1);
    ck_assert_uint_eq(seen[1], EPOLLOUT);
    send_byte(0);
    send_byte(1);
    ck_assert(net_poller_watch(&poller, &watches[1], EPOLLIN | EPOLLOUT));
    turn();
    ck_assert_uint_eq(seen[0], EPOLLIN);
    ck_assert_uint_eq(seen[1], EPOLLIN | EPOLLOUT);
    /* It was not read, so that it is reported again. */
    turn();
    ck_assert_uint_eq(calls[0], 2);
}
END_TEST

START_TEST(an_edge_is_reported_once_and_again_on_demand)
{
    open_watch(0, EPOLLIN | EPOLLRDHUP | EPOLLET);
    send_byte(0);
    turn();
    turn();
    ck_assert_uint_eq(calls[0], 1);
    ck_assert_uint_eq(seen[0], EPOLLIN);
    ck_assert(net_poller_again(&poller, &watches[0]));
    turn();
    turn();
    ck_assert_uint_eq(calls[0], 2);
    send_byte(0);
    turn();
    ck_assert_uint_eq(calls[0], 3);
    ck_assert_int_eq(shutdown(peers[0], SHUT_WR), 0);
    turn();
    ck_assert_uint_eq(calls[0], 4);
    ck_assert_uint_eq(seen[0], EPOLLIN | EPOLLRDHUP);
}
END_TEST

/* Otherwise the loop would not sleep while a connection with a lost peer waits for its answer. */
START_TEST(a_lost_peer_is_reported_to_watchers_alone)
{
    open_watch(0, EPOLLIN);
    open_watch(1, EPOLLOUT);
    open_watch(2, EPOLLIN);
    ck_assert(net_poller_watch(&poller, &watches[2], 0));
    for (unsigned i = 0; i < 3; i++) {
        close(peers[i]);
        peers[i] = dup(0);
    }
    turn();
    ck_assert_uint_eq(seen[0], EPOLLIN | EPOLLHUP);
    ck_assert_uint_eq(seen[1] & (EPOLLOUT | EPOLLHUP), EPOLLOUT | EPOLLHUP);
    ck_assert_uint_eq(calls[2], 0);
}
END_TEST

START_TEST(what_is_forgotten_in_a_batch_is_not_called)
{
    open_watch(0, EPOLLOUT);
    open_watch(1, EPOLLOUT);
    open_watch(2, EPOLLOUT);
    victim = &watches[1];
    turn();
    ck_assert_uint_eq(calls[0], 1);
    ck_assert_uint_eq(calls[1], 0);
    ck_assert_uint_eq(calls[2], 1);
    ck_assert_uint_eq(watches[1].events, 0);
}
END_TEST

START_TEST(all_have_their_turn)
{
    for (unsigned i = 0; i < WATCHES; i++)
        open_watch(i, EPOLLOUT);
    turn();
    ck_assert_uint_eq(called, NET_POLLER_BATCH);
    settled = 0;
    turn();
    for (unsigned i = 0; i < WATCHES; i++)
        ck_assert_uint_ge(calls[i], 1);
}
END_TEST

START_TEST(each_group_is_settled)
{
    const unsigned watched = 2 * NET_POLLER_GROUP + 1;

    for (unsigned i = 0; i < watched; i++)
        open_watch(i, EPOLLOUT);
    turn();
    ck_assert_uint_eq(settled, 3);
    ck_assert_uint_eq(settled_after[0], NET_POLLER_GROUP);
    ck_assert_uint_eq(settled_after[1], 2 * NET_POLLER_GROUP);
    ck_assert_uint_eq(settled_after[2], watched);
    for (unsigned i = NET_POLLER_GROUP; i < watched; i++)
        ck_assert(net_poller_watch(&poller, &watches[i], 0));
    turn();
    ck_assert_uint_eq(settled, 4);
}
END_TEST

/* Calls for watches that are forgotten are left out, the end of the batch is not. */
START_TEST(a_group_whose_last_is_forgotten_is_settled)
{
    open_watch(0, EPOLLOUT);
    open_watch(1, EPOLLOUT);
    victim = &watches[1];
    turn();
    ck_assert_uint_eq(called, 1);
    ck_assert_uint_eq(settled, 1);
    ck_assert_uint_eq(settled_after[0], 1);
}
END_TEST

START_TEST(what_cannot_be_watched_is_an_error)
{
    int file = open("/dev/null", O_WRONLY);
    struct net_watch watch = {.fd = file};

    ck_assert_int_ge(file, 0);
    ck_assert(!net_poller_watch(&poller, &watch, EPOLLIN));
    ck_assert_int_eq(errno, EPERM);
    ck_assert_uint_eq(watch.events, 0);
    close(file);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("net: poller");
    TCase *tcase = tcase_create("poller");

    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, what_is_watched_for_is_reported);
    tcase_add_test(tcase, an_edge_is_reported_once_and_again_on_demand);
    tcase_add_test(tcase, a_lost_peer_is_reported_to_watchers_alone);
    tcase_add_test(tcase, what_is_forgotten_in_a_batch_is_not_called);
    tcase_add_test(tcase, all_have_their_turn);
    tcase_add_test(tcase, each_group_is_settled);
    tcase_add_test(tcase, a_group_whose_last_is_forgotten_is_settled);
    tcase_add_test(tcase, what_cannot_be_watched_is_an_error);
    suite_add_tcase(suite, tcase);
    return suite;
}
