/* The table of clients: connections counted, calls in turn, and how long a client is remembered. */
#include "base/client_table.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdlib.h>

#include "tests/unit/unit.h"

#define SECOND ((int64_t)1000000)

static struct client_key
client(uint32_t number)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(number)};

    return client_key_of_prefix((struct sockaddr *)&address, CLIENT_KEY_INET_BITS,
                                CLIENT_KEY_INET6_BITS);
}

static struct client_entry *
come(struct client_table *table, uint32_t number, int64_t now)
{
    struct client_key key = client(number);
    struct client_entry *entry = NULL;

    ck_assert_int_eq(client_table_connect(table, &key, now, &entry), CLIENT_TABLE_OK);
    ck_assert_ptr_nonnull(entry);
    return entry;
}

static uint64_t
tracked(struct client_table *table)
{
    struct client_table_stats stats;

    client_table_get_stats(table, &stats);
    return stats.clients;
}

START_TEST(connections_of_a_client_are_bounded)
{
    struct client_table_config config = {.max_connections = 3};
    struct client_table *table = client_table_create(&config);
    struct client_key key = client(1);
    struct client_entry *entries[3], *none = NULL, *other;

    for (int i = 0; i < 3; i++)
        entries[i] = come(table, 1, 0);
    ck_assert_int_eq(client_table_connect(table, &key, 0, &none), CLIENT_TABLE_FULL);
    ck_assert_ptr_null(none);
    other = come(table, 2, 0);
    ck_assert_ptr_ne(other, entries[0]);
    client_table_disconnect(table, entries[0], 0);
    entries[0] = come(table, 1, 0);
    ck_assert_ptr_eq(entries[0], entries[1]);
    ck_assert_uint_eq(tracked(table), 2);
    /* Without rates there is nothing to be remembered. */
    for (int i = 0; i < 3; i++)
        client_table_disconnect(table, entries[i], 0);
    ck_assert_uint_eq(tracked(table), 1);
    client_table_disconnect(table, other, 0);
    ck_assert_uint_eq(tracked(table), 0);
    client_table_destroy(table);
}
END_TEST

START_TEST(waiting_calls_are_served_in_their_order)
{
    struct client_table_config config = {.rates.calls = {.per_second = 10, .burst = 2}};
    struct client_table *table = client_table_create(&config);
    struct client_entry *entry = come(table, 1, 0);
    struct client_booking bookings[4] = {{.waiting = false}}, late = {.waiting = false};
    struct client_table_stats stats;

    ck_assert_int_eq(client_entry_book_call(entry, &late, 0), 0);
    ck_assert_int_eq(client_entry_book_call(entry, &late, 0), 0);
    ck_assert(!late.waiting);
    for (int i = 0; i < 4; i++) {
        ck_assert_int_eq(client_entry_book_call(entry, &bookings[i], 0), (i + 1) * 100000);
        ck_assert(bookings[i].waiting);
    }
    client_table_get_stats(table, &stats);
    ck_assert_uint_eq(stats.calls_delayed, 4);
    client_entry_redeem(entry, &bookings[0], 100000);
    ck_assert(!bookings[0].waiting);
    /* Calls keep their order; one that is cancelled gives its turn to the next. */
    ck_assert_int_eq(client_entry_book_call(entry, &late, 100000), 400000);
    client_entry_cancel(entry, &late, 100000);
    client_entry_cancel(entry, &late, 100000);
    ck_assert_int_eq(client_entry_book_call(entry, &late, 100000), 400000);
    client_entry_cancel(entry, &late, 100000);
    for (int i = 1; i < 4; i++)
        client_entry_redeem(entry, &bookings[i], 400000);
    ck_assert_int_eq(client_entry_book_call(entry, &late, 500000), 0);
    client_table_disconnect(table, entry, 500000);
    client_table_destroy(table);
}
END_TEST

START_TEST(answers_are_charged_afterwards)
{
    struct client_table_config config = {.rates.bytes = {.per_second = 1000, .burst = 5000}};
    struct client_table *table = client_table_create(&config);
    struct client_entry *entry = come(table, 1, 0);
    struct client_booking a = {.waiting = false}, b = a;
    int64_t first, second;

    for (int i = 0; i < 20; i++)
        ck_assert_int_eq(client_entry_book_call(entry, &a, 0), 0);
    client_entry_charge(entry, 5000, 0);
    ck_assert_int_eq(client_entry_book_call(entry, &a, 0), 0);
    client_entry_charge(entry, 3000, 0);
    first = client_entry_book_call(entry, &a, 0);
    ck_assert_int_eq(first, 3 * SECOND);
    /* The second waits for the first one's answer, too, which will be like those before. */
    second = client_entry_book_call(entry, &b, 0);
    ck_assert_int_gt(second, first + SECOND);
    ck_assert_int_lt(second, first + 5 * SECOND);
    client_entry_redeem(entry, &a, first);
    client_entry_cancel(entry, &b, first);
    ck_assert_int_eq(client_entry_book_call(entry, &a, first), 0);
    client_table_disconnect(table, entry, first);
    client_table_destroy(table);
}
END_TEST

START_TEST(fetches_are_refused_with_a_time)
{
    struct client_table_config config = {.rates.fetches = {.per_second = 2, .burst = 1}};
    struct client_table *table = client_table_create(&config);
    struct client_entry *entry = come(table, 1, 0);
    struct client_booking booking = {.waiting = false};
    struct client_table_stats stats;

    ck_assert_int_eq(client_entry_take_fetch(entry, 0), 0);
    ck_assert_int_eq(client_entry_take_fetch(entry, 0), SECOND / 2);
    ck_assert_int_eq(client_entry_take_fetch(entry, SECOND / 4), SECOND / 4);
    ck_assert_int_eq(client_entry_take_fetch(entry, SECOND / 2), 0);
    client_table_get_stats(table, &stats);
    ck_assert_uint_eq(stats.fetches_refused, 2);
    /* Calls are another matter. */
    ck_assert_int_eq(client_entry_book_call(entry, &booking, 0), 0);
    client_table_disconnect(table, entry, SECOND);
    client_table_destroy(table);
}
END_TEST

START_TEST(fetches_that_have_been_made_are_charged)
{
    struct client_table_config config = {.rates.fetches = {.per_second = 2, .burst = 1}};
    struct client_table *table = client_table_create(&config);
    struct client_entry *entry = come(table, 1, 0);

    ck_assert_int_eq(client_entry_take_fetch(entry, 0), 0);
    client_entry_charge_fetch(entry, 0);
    client_entry_charge_fetch(entry, 0);
    ck_assert_int_eq(client_entry_take_fetch(entry, 0), 3 * SECOND / 2);
    ck_assert_int_eq(client_entry_take_fetch(entry, 3 * SECOND / 2), 0);
    client_table_disconnect(table, entry, 2 * SECOND);
    client_table_destroy(table);

    table = client_table_create(&(struct client_table_config){.max_idle = 1});
    entry = come(table, 1, 0);
    client_entry_charge_fetch(entry, 0); /* no rate, nothing to charge */
    ck_assert_int_eq(client_entry_take_fetch(entry, 0), 0);
    client_table_disconnect(table, entry, 0);
    client_table_destroy(table);
}
END_TEST

START_TEST(a_client_that_reconnects_has_no_full_bucket)
{
    struct client_table_config config = {.max_idle = 10,
                                         .rates.calls = {.per_second = 1, .burst = 5}};
    struct client_table *table = client_table_create(&config);
    struct client_entry *entry = come(table, 1, 0);
    struct client_booking booking = {.waiting = false};

    for (int i = 0; i < 5; i++)
        ck_assert_int_eq(client_entry_book_call(entry, &booking, 0), 0);
    client_table_disconnect(table, entry, 0);
    entry = come(table, 1, SECOND);
    ck_assert_int_eq(client_entry_book_call(entry, &booking, SECOND), 0);
    ck_assert_int_gt(client_entry_book_call(entry, &booking, SECOND), 0);
    client_entry_cancel(entry, &booking, SECOND);
    client_table_disconnect(table, entry, SECOND);
    ck_assert_uint_eq(tracked(table), 1);
    /* Full again, it is forgotten as soon as anybody comes or goes. */
    client_table_disconnect(table, come(table, 2, 6 * SECOND), 6 * SECOND);
    ck_assert_uint_eq(tracked(table), 0);
    client_table_destroy(table);
}
END_TEST

START_TEST(of_too_many_those_nearest_to_full_are_forgotten)
{
    enum { CLIENTS = 300, IDLE = 50 };
    struct client_table_config config = {.max_idle = IDLE,
                                         .rates.calls = {.per_second = 1, .burst = CLIENTS}};
    struct client_table *table = client_table_create(&config);
    struct client_booking booking = {.waiting = false};

    /* Client n is n seconds from full; they come in a mixed order. */
    for (uint32_t i = 0; i < CLIENTS; i++) {
        uint32_t n = 1 + i * 7 % CLIENTS;
        struct client_entry *entry = come(table, n, 0);

        for (uint32_t call = 0; call < n; call++)
            ck_assert_int_eq(client_entry_book_call(entry, &booking, 0), 0);
        client_table_disconnect(table, entry, 0);
        ck_assert_uint_le(tracked(table), IDLE);
    }
    ck_assert_uint_eq(tracked(table), IDLE);
    for (uint32_t n = CLIENTS; n > CLIENTS - IDLE; n--) {
        struct client_entry *entry = come(table, n, 0);

        for (uint32_t call = n; call < CLIENTS; call++)
            ck_assert_int_eq(client_entry_book_call(entry, &booking, 0), 0);
        ck_assert_int_gt(client_entry_book_call(entry, &booking, 0), 0);
        client_entry_cancel(entry, &booking, 0);
        client_table_disconnect(table, entry, 0);
    }
    client_table_destroy(table);
}
END_TEST

/* ---- on threads ------------------------------------------------------------------------------ */

enum { THREADS = 4, ROUNDS = 2000, CALLS = 8 };

static void *
come_and_go(void *context)
{
    struct client_table *table = context;
    uintptr_t taken = 0;

    for (uint32_t i = 0; i < ROUNDS; i++) {
        struct client_key key = client(1 + i % 3);
        struct client_booking booking = {.waiting = false};
        struct client_entry *entry;

        if (client_table_connect(table, &key, 0, &entry) != CLIENT_TABLE_OK)
            abort();
        for (int call = 0; call < CALLS; call++) {
            if (client_entry_book_call(entry, &booking, 0) == 0)
                taken++;
            else
                client_entry_cancel(entry, &booking, 0);
            client_entry_charge(entry, 1, 0);
        }
        client_table_disconnect(table, entry, 0);
    }
    return (void *)taken;
}

START_TEST(threads_share_a_clients_tokens)
{
    struct client_table_config config = {.max_idle = 3,
                                         .rates.calls = {.per_second = 1, .burst = 1000}};
    struct client_table *table = client_table_create(&config);
    pthread_t threads[THREADS];
    uintptr_t taken = 0;

    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, come_and_go, table), 0);
    for (int i = 0; i < THREADS; i++) {
        void *result;

        ck_assert_int_eq(pthread_join(threads[i], &result), 0);
        taken += (uintptr_t)result;
    }
    ck_assert_uint_eq(taken, 3 * config.rates.calls.burst);
    ck_assert_uint_eq(tracked(table), 3);
    client_table_destroy(table);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("base/client table");
    TCase *tcase = tcase_create("table");

    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, connections_of_a_client_are_bounded);
    tcase_add_test(tcase, waiting_calls_are_served_in_their_order);
    tcase_add_test(tcase, answers_are_charged_afterwards);
    tcase_add_test(tcase, fetches_are_refused_with_a_time);
    tcase_add_test(tcase, fetches_that_have_been_made_are_charged);
    tcase_add_test(tcase, a_client_that_reconnects_has_no_full_bucket);
    tcase_add_test(tcase, of_too_many_those_nearest_to_full_are_forgotten);
    tcase_add_test(tcase, threads_share_a_clients_tokens);
    suite_add_tcase(suite, tcase);
    return suite;
}
