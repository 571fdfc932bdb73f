/* What one client may hold of a share of memory: a quarter of what the others leave. */
#include "base/client_share.h"

#include <errno.h>
#include <pthread.h>

#include "tests/unit/unit.h"

#define SHARE 1600 /* the eighth of the account that requests have */

static struct memory_account account;
static struct client_share waiting;
static struct client *alice, *bob;

static void
set_up(void)
{
    memory_account_init(&account, 8 * SHARE, NULL);
    client_share_init_memory(&waiting, CLIENT_WAITING, &account, MEMORY_REQUESTS);
    alice = unit_client(1);
    bob = unit_client(2);
}

static void
tear_down(void)
{
    for (unsigned uid = 0; uid < UNIT_CLIENTS; uid++)
        if (unit_client(uid)->has[CLIENT_WAITING])
            client_share_give_back(&waiting, unit_client(uid),
                                   unit_client(uid)->has[CLIENT_WAITING]);
    ck_assert_uint_eq(client_share_total(&waiting), 0);
    ck_assert(unit_clients_are_idle());
}

/* As a request does: counted for the client, and charged. */
static bool
take(struct client *client, size_t bytes)
{
    if (!client_share_take(&waiting, client, bytes))
        return false;
    ck_assert(memory_charge(&account, MEMORY_REQUESTS, bytes));
    return true;
}

static void
give_back(struct client *client, size_t bytes)
{
    client_share_give_back(&waiting, client, bytes);
    memory_uncharge(&account, MEMORY_REQUESTS, bytes);
}

static size_t
take_all(struct client *client, size_t bytes)
{
    size_t taken = 0;

    while (take(client, bytes))
        taken += bytes;
    ck_assert_int_eq(errno, EDQUOT);
    return taken;
}

START_TEST(one_client_gets_a_quarter_of_what_the_others_do_not_use)
{
    ck_assert_uint_eq(take_all(alice, 10), 400);
    ck_assert_uint_eq(take_all(bob, 10), 300);
    ck_assert_uint_eq(alice->has[CLIENT_WAITING], 400);
    ck_assert_uint_eq(client_share_total(&waiting), 700);
    /* The one that has more than its part by now gets nothing more until the other gives back. */
    give_back(alice, 100);
    ck_assert(!take(alice, 100));
    give_back(bob, 300);
    ck_assert_uint_eq(bob->has[CLIENT_WAITING], 0);
    ck_assert(take(alice, 100));
    ck_assert(!take(alice, 1));
}
END_TEST

START_TEST(several_greedy_clients_do_not_use_up_everything)
{
    for (unsigned uid = 10; uid < 26; uid++)
        take_all(unit_client(uid), 1);
    ck_assert_uint_ge(memory_left(&account, MEMORY_REQUESTS), SHARE / 100);
    ck_assert(take(alice, 1));
}
END_TEST

START_TEST(more_than_the_share_is_refused)
{
    ck_assert(!take(alice, SIZE_MAX));
    ck_assert_int_eq(errno, EDQUOT);
    ck_assert(!take(alice, SHARE / 4 + 1));
    ck_assert_uint_eq(client_share_total(&waiting), 0);
    /* Others use more than the share: a client gets nothing. */
    memory_charge_anyway(&account, MEMORY_REPLIES, 2 * SHARE);
    ck_assert(!take(alice, 1));
    ck_assert_uint_eq(memory_left(&account, MEMORY_REQUESTS), 0);
    ck_assert_uint_eq(memory_left(&account, MEMORY_RECORDS), SHARE);
    ck_assert_uint_eq(memory_left(NULL, MEMORY_RECORDS), UINT64_MAX);
}
END_TEST

static void *
take_and_give_back(void *context)
{
    struct client *client = context;

    for (unsigned i = 0; i < 20000; i++) {
        if (client_share_take(&waiting, client, 1 + i % 7))
            client_share_give_back(&waiting, client, 1 + i % 7);
    }
    return NULL;
}

static struct client_share cursors;
static _Atomic unsigned most;

/* Not one slot too many is taken at any time. */
static void *
take_slots(void *context)
{
    for (unsigned i = 0; i < 20000; i++) {
        if (!client_share_take(&cursors, context, 1))
            continue;
        if (client_share_total(&cursors) > most)
            most = (unsigned)client_share_total(&cursors);
        client_share_give_back(&cursors, context, 1);
    }
    return NULL;
}

START_TEST(threads_take_slots)
{
    pthread_t threads[4];

    client_share_init_slots(&cursors, CLIENT_CURSORS, 2, false);
    most = 0;
    for (unsigned i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, take_slots, unit_client(i)), 0);
    for (unsigned i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    ck_assert_uint_le(most, 2);
    ck_assert_uint_eq(client_share_total(&cursors), 0);
}
END_TEST

START_TEST(threads_count_together)
{
    pthread_t threads[4];

    for (unsigned i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, take_and_give_back, i % 2 ? alice : bob),
                         0);
    for (unsigned i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    ck_assert_uint_eq(client_share_total(&waiting), 0);
}
END_TEST

START_TEST(slots_may_change)
{
    struct client_share share;

    client_share_init_slots(&share, CLIENT_TUNNELS, 8, false);
    ck_assert(client_share_take(&share, alice, 8));
    ck_assert(!client_share_take(&share, bob, 1));
    client_share_set_slots(&share, 4, true);
    ck_assert(!client_share_take(&share, bob, 1));
    client_share_give_back(&share, alice, 6);
    ck_assert(client_share_take(&share, bob, 1));
    ck_assert(!client_share_take(&share, alice, 1));
    client_share_give_back(&share, bob, 1);
    client_share_give_back(&share, alice, 2);
    ck_assert_uint_eq(client_share_total(&share), 0);
}
END_TEST

/* Slots: a quarter of what the others leave, rounded up; all of them without shares. */
START_TEST(slots)
{
    static const size_t shares[] = {4, 3, 3, 2};
    struct client_share tunnels;

    client_share_init_slots(&tunnels, CLIENT_TUNNELS, 16, true);
    for (unsigned c = 0; c < 4; c++) {
        while (client_share_take(&tunnels, unit_client(c), 1))
            continue;
        ck_assert_int_eq(errno, EDQUOT);
        ck_assert_uint_eq(unit_client(c)->has[CLIENT_TUNNELS], shares[c]);
    }
    ck_assert_uint_eq(client_share_total(&tunnels), 12);
    for (unsigned c = 0; c < 4; c++)
        client_share_give_back(&tunnels, unit_client(c), shares[c]);
    ck_assert_uint_eq(client_share_total(&tunnels), 0);
    client_share_init_slots(&tunnels, CLIENT_TUNNELS, 3, false);
    while (client_share_take(&tunnels, alice, 1))
        continue;
    ck_assert_int_eq(errno, ENOBUFS);
    ck_assert_uint_eq(alice->has[CLIENT_TUNNELS], 3);
    client_share_give_back(&tunnels, alice, 3);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("base/client_share");
    TCase *tests = tcase_create("client_share");

    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, one_client_gets_a_quarter_of_what_the_others_do_not_use);
    tcase_add_test(tests, several_greedy_clients_do_not_use_up_everything);
    tcase_add_test(tests, more_than_the_share_is_refused);
    tcase_add_test(tests, slots);
    tcase_add_test(tests, slots_may_change);
    tcase_add_test(tests, threads_count_together);
    tcase_add_test(tests, threads_take_slots);
    suite_add_tcase(suite, tests);
    return suite;
}
