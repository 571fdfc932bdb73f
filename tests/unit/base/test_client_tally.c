/* What one client may hold of a share of memory: a quarter of what the others leave. */
#include "base/client_tally.h"

#include <errno.h>
#include <pthread.h>

#include "tests/unit/unit.h"

#define SHARE 1600 /* the eighth of the account that requests have */

static struct memory_account account;
static struct client_tally *tally;
static struct client_key alice, bob;

static void
set_up(void)
{
    memory_account_init(&account, 8 * SHARE, NULL);
    tally = client_tally_create(&account, MEMORY_REQUESTS);
    ck_assert_ptr_nonnull(tally);
    alice = client_key_of_uid(1);
    bob = client_key_of_uid(2);
}

static void
tear_down(void)
{
    client_tally_destroy(tally);
}

/* As a request does: counted for the client, and charged. */
static bool
take(const struct client_key *client, size_t bytes)
{
    if (!client_tally_take(tally, client, bytes))
        return false;
    ck_assert(memory_charge(&account, MEMORY_REQUESTS, bytes));
    return true;
}

static void
give_back(const struct client_key *client, size_t bytes)
{
    client_tally_give_back(tally, client, bytes);
    memory_uncharge(&account, MEMORY_REQUESTS, bytes);
}

static size_t
take_all(const struct client_key *client, size_t bytes)
{
    size_t taken = 0;

    while (take(client, bytes))
        taken += bytes;
    ck_assert_int_eq(errno, EDQUOT);
    return taken;
}

START_TEST(one_client_gets_a_quarter_of_what_the_others_do_not_use)
{
    ck_assert_uint_eq(take_all(&alice, 10), 400);
    ck_assert_uint_eq(take_all(&bob, 10), 300);
    ck_assert_uint_eq(client_tally_held(tally, &alice), 400);
    ck_assert_uint_eq(client_tally_clients(tally), 2);
    /* The one that has more than its part by now gets nothing more until the other gives back. */
    give_back(&alice, 100);
    ck_assert(!take(&alice, 100));
    give_back(&bob, 300);
    ck_assert_uint_eq(client_tally_clients(tally), 1);
    ck_assert(take(&alice, 100));
    ck_assert(!take(&alice, 1));
}
END_TEST

START_TEST(several_greedy_clients_do_not_use_up_everything)
{
    for (unsigned uid = 10; uid < 26; uid++) {
        struct client_key greedy = client_key_of_uid(uid);

        take_all(&greedy, 1);
    }
    ck_assert_uint_ge(memory_left(&account, MEMORY_REQUESTS), SHARE / 100);
    ck_assert(take(&alice, 1));
}
END_TEST

START_TEST(more_than_the_share_is_refused)
{
    ck_assert(!take(&alice, SIZE_MAX));
    ck_assert_int_eq(errno, EDQUOT);
    ck_assert(!take(&alice, SHARE / 4 + 1));
    ck_assert_uint_eq(client_tally_clients(tally), 0);
    /* Others use more than the share: a client gets nothing. */
    memory_charge_anyway(&account, MEMORY_REPLIES, 2 * SHARE);
    ck_assert(!take(&alice, 1));
    ck_assert_uint_eq(memory_left(&account, MEMORY_REQUESTS), 0);
    ck_assert_uint_eq(memory_left(&account, MEMORY_RECORDS), SHARE);
    ck_assert_uint_eq(memory_left(NULL, MEMORY_RECORDS), UINT64_MAX);
}
END_TEST

static void *
take_and_give_back(void *context)
{
    const struct client_key *client = context;

    for (unsigned i = 0; i < 20000; i++) {
        if (client_tally_take(tally, client, 1 + i % 7))
            client_tally_give_back(tally, client, 1 + i % 7);
    }
    return NULL;
}

START_TEST(threads_count_together)
{
    pthread_t threads[4];

    for (unsigned i = 0; i < 4; i++)
        ck_assert_int_eq(
            pthread_create(&threads[i], NULL, take_and_give_back, i % 2 ? &alice : &bob), 0);
    for (unsigned i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    ck_assert_uint_eq(client_tally_clients(tally), 0);
}
END_TEST

/* Slots: a quarter of what the others leave, rounded up; all of them without shares. */
START_TEST(slots)
{
    static const size_t shares[] = {4, 3, 3, 2};
    struct client_tally *of = client_tally_create_slots(16, true);
    struct client_key key;

    ck_assert_ptr_nonnull(of);
    for (unsigned c = 0; c < 4; c++) {
        key = client_key_of_uid(c);
        while (client_tally_take(of, &key, 1))
            continue;
        ck_assert_int_eq(errno, EDQUOT);
        ck_assert_uint_eq(client_tally_held(of, &key), shares[c]);
    }
    ck_assert_uint_eq(client_tally_total(of), 12);
    client_tally_give_back(of, &key, 2);
    ck_assert_uint_eq(client_tally_total(of), 10);
    client_tally_destroy(of);
    of = client_tally_create_slots(3, false);
    ck_assert_ptr_nonnull(of);
    while (client_tally_take(of, &key, 1))
        continue;
    ck_assert_int_eq(errno, ENOBUFS);
    ck_assert_uint_eq(client_tally_held(of, &key), 3);
    client_tally_destroy(of);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("base/client_tally");
    TCase *tests = tcase_create("client_tally");

    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, one_client_gets_a_quarter_of_what_the_others_do_not_use);
    tcase_add_test(tests, several_greedy_clients_do_not_use_up_everything);
    tcase_add_test(tests, more_than_the_share_is_refused);
    tcase_add_test(tests, slots);
    tcase_add_test(tests, threads_count_together);
    suite_add_tcase(suite, tests);
    return suite;
}
