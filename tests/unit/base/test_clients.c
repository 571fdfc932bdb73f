/* Clients: which peers are one, connections counted, calls in turn, and how long one is remembered.
 */
#include "base/clients.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdlib.h>

#include "tests/unit/unit.h"

#define SECOND ((int64_t)1000000)

/* With the default bits of addresses. */
static struct clients *
create(struct clients_config config)
{
    struct clients *table;

    config.inet_bits = CLIENT_INET_BITS;
    config.inet6_bits = CLIENT_INET6_BITS;
    table = clients_create(&config);
    ck_assert_ptr_nonnull(table);
    return table;
}

static struct client *
find(struct clients *table, uint32_t number, int64_t now)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(number)};

    return clients_find(table, (struct sockaddr *)&address, now);
}

/* A client with a connection. */
static struct client *
come(struct clients *table, uint32_t number, int64_t now)
{
    struct client *client = find(table, number, now);

    ck_assert_ptr_nonnull(client);
    ck_assert(client_connect(client));
    return client;
}

static void
go(struct client *client)
{
    client_disconnect(client);
    client_release(&client);
}

static uint64_t
tracked(struct clients *table)
{
    struct clients_stats stats;

    clients_get_stats(table, &stats);
    return stats.clients;
}

START_TEST(connections_of_a_client_are_bounded)
{
    struct clients_config config = {.max_connections = 3};
    struct clients *table = create(config);
    struct client *connected[3], *other;

    for (int i = 0; i < 3; i++)
        connected[i] = come(table, 1, 0);
    ck_assert(!client_connect(connected[0]));
    other = come(table, 2, 0);
    ck_assert_ptr_ne(other, connected[0]);
    go(connected[0]);
    connected[0] = come(table, 1, 0);
    ck_assert_ptr_eq(connected[0], connected[1]);
    ck_assert_uint_eq(tracked(table), 2);
    /* Without rates there is nothing to be remembered. */
    for (int i = 0; i < 3; i++)
        go(connected[i]);
    ck_assert_uint_eq(tracked(table), 1);
    go(other);
    ck_assert_uint_eq(tracked(table), 0);
    clients_destroy(table);
}
END_TEST

START_TEST(waiting_calls_are_served_in_their_order)
{
    struct clients_config config = {.rates.calls = {.per_second = 10, .burst = 2}};
    struct clients *table = create(config);
    struct client *client = come(table, 1, 0);
    struct client_booking bookings[4] = {{.waiting = false}}, late = {.waiting = false};
    struct clients_stats stats;

    ck_assert_int_eq(client_book_call(client, &late, 0), 0);
    ck_assert_int_eq(client_book_call(client, &late, 0), 0);
    ck_assert(!late.waiting);
    for (int i = 0; i < 4; i++) {
        ck_assert_int_eq(client_book_call(client, &bookings[i], 0), (i + 1) * 100000);
        ck_assert(bookings[i].waiting);
    }
    clients_get_stats(table, &stats);
    ck_assert_uint_eq(stats.calls_delayed, 4);
    client_redeem(client, &bookings[0], 100000);
    ck_assert(!bookings[0].waiting);
    /* Calls keep their order; one that is cancelled gives its turn to the next. */
    ck_assert_int_eq(client_book_call(client, &late, 100000), 400000);
    client_cancel(client, &late, 100000);
    client_cancel(client, &late, 100000);
    ck_assert_int_eq(client_book_call(client, &late, 100000), 400000);
    client_cancel(client, &late, 100000);
    for (int i = 1; i < 4; i++)
        client_redeem(client, &bookings[i], 400000);
    ck_assert_int_eq(client_book_call(client, &late, 500000), 0);
    go(client);
    clients_destroy(table);
}
END_TEST

START_TEST(answers_are_charged_afterwards)
{
    struct clients_config config = {.rates.bytes = {.per_second = 1000, .burst = 5000}};
    struct clients *table = create(config);
    struct client *client = come(table, 1, 0);
    struct client_booking a = {.waiting = false}, b = a;
    int64_t first, second;

    for (int i = 0; i < 20; i++)
        ck_assert_int_eq(client_book_call(client, &a, 0), 0);
    client_charge(client, 5000, 0);
    ck_assert_int_eq(client_book_call(client, &a, 0), 0);
    client_charge(client, 3000, 0);
    first = client_book_call(client, &a, 0);
    ck_assert_int_eq(first, 3 * SECOND);
    /* The second waits for the first one's answer, too, which will be like those before. */
    second = client_book_call(client, &b, 0);
    ck_assert_int_gt(second, first + SECOND);
    ck_assert_int_lt(second, first + 5 * SECOND);
    client_redeem(client, &a, first);
    client_cancel(client, &b, first);
    ck_assert_int_eq(client_book_call(client, &a, first), 0);
    go(client);
    clients_destroy(table);
}
END_TEST

START_TEST(fetches_are_refused_with_a_time)
{
    struct clients_config config = {.rates.fetches = {.per_second = 2, .burst = 1}};
    struct clients *table = create(config);
    struct client *client = come(table, 1, 0);
    struct client_booking booking = {.waiting = false};
    struct clients_stats stats;

    ck_assert_int_eq(client_take_fetch(client, 0), 0);
    ck_assert_int_eq(client_take_fetch(client, 0), SECOND / 2);
    ck_assert_int_eq(client_take_fetch(client, SECOND / 4), SECOND / 4);
    ck_assert_int_eq(client_take_fetch(client, SECOND / 2), 0);
    clients_get_stats(table, &stats);
    ck_assert_uint_eq(stats.fetches_refused, 2);
    /* Calls are another matter. */
    ck_assert_int_eq(client_book_call(client, &booking, 0), 0);
    go(client);
    clients_destroy(table);
}
END_TEST

START_TEST(fetches_that_have_been_made_are_charged)
{
    struct clients_config config = {.rates.fetches = {.per_second = 2, .burst = 1}};
    struct clients *table = create(config);
    struct client *client = come(table, 1, 0);

    ck_assert_int_eq(client_take_fetch(client, 0), 0);
    client_charge_fetch(client, 0);
    client_charge_fetch(client, 0);
    ck_assert_int_eq(client_take_fetch(client, 0), 3 * SECOND / 2);
    ck_assert_int_eq(client_take_fetch(client, 3 * SECOND / 2), 0);
    go(client);
    clients_destroy(table);

    table = create((struct clients_config){.max_idle = 1});
    client = come(table, 1, 0);
    client_charge_fetch(client, 0); /* no rate, nothing to charge */
    ck_assert_int_eq(client_take_fetch(client, 0), 0);
    go(client);
    clients_destroy(table);
}
END_TEST

START_TEST(a_client_that_reconnects_has_no_full_bucket)
{
    struct clients_config config = {.max_idle = 10, .rates.calls = {.per_second = 1, .burst = 5}};
    struct clients *table = create(config);
    struct client *client = come(table, 1, 0);
    struct client_booking booking = {.waiting = false};

    for (int i = 0; i < 5; i++)
        ck_assert_int_eq(client_book_call(client, &booking, 0), 0);
    go(client);
    client = come(table, 1, SECOND);
    ck_assert_int_eq(client_book_call(client, &booking, SECOND), 0);
    ck_assert_int_gt(client_book_call(client, &booking, SECOND), 0);
    client_cancel(client, &booking, SECOND);
    go(client);
    ck_assert_uint_eq(tracked(table), 1);
    /* Full again, it is forgotten as soon as anybody comes or goes. */
    go(come(table, 2, 6 * SECOND));
    ck_assert_uint_eq(tracked(table), 0);
    clients_destroy(table);
}
END_TEST

START_TEST(bounds_may_change)
{
    const struct client_rates rates = {.fetches = {.per_second = 1, .burst = 2}}, none = {0};
    struct clients *table = create((struct clients_config){.max_connections = 1, .max_idle = 10});
    struct client *a = come(table, 1, 0), *b = come(table, 2, 0);

    ck_assert(!client_connect(a));
    ck_assert_int_eq(client_take_fetch(a, 0), 0);
    clients_set_bounds(table, 2, &rates, 0);
    ck_assert(client_connect(a));
    client_disconnect(a);
    ck_assert_int_eq(client_take_fetch(a, 0), 0);
    ck_assert_int_eq(client_take_fetch(a, 0), 0);
    ck_assert_int_eq(client_take_fetch(a, 0), SECOND);
    ck_assert_int_eq(client_take_fetch(b, 0), 0);
    /* One that has gone is remembered while there are rates. */
    go(b);
    ck_assert_uint_eq(tracked(table), 2);
    clients_set_bounds(table, 2, &none, 0);
    ck_assert_uint_eq(tracked(table), 1);
    ck_assert_int_eq(client_take_fetch(a, 0), 0);
    go(a);
    clients_destroy(table);
}
END_TEST

START_TEST(connections_that_linger_have_a_bound_of_their_own)
{
    struct clients *table = create((struct clients_config){.max_connections = 1, .max_idle = 10});
    struct client *a = come(table, 1, 0);

    ck_assert(client_linger(a));
    ck_assert(client_connect(a));
    ck_assert_msg(!client_linger(a), "one does already");
    ck_assert(!client_connect(a));
    client_end_lingering(a);
    ck_assert(client_linger(a));
    client_end_lingering(a);
    ck_assert(client_connect(a));
    go(a);
    clients_destroy(table);
}
END_TEST

START_TEST(of_too_many_those_nearest_to_full_are_forgotten)
{
    enum { CLIENTS = 300, IDLE = 50 };
    struct clients_config config = {.max_idle = IDLE,
                                    .rates.calls = {.per_second = 1, .burst = CLIENTS}};
    struct clients *table = create(config);
    struct client_booking booking = {.waiting = false};

    /* Client n is n seconds from full; they come in a mixed order. */
    for (uint32_t i = 0; i < CLIENTS; i++) {
        uint32_t n = 1 + i * 7 % CLIENTS;
        struct client *client = come(table, n, 0);

        for (uint32_t call = 0; call < n; call++)
            ck_assert_int_eq(client_book_call(client, &booking, 0), 0);
        go(client);
        ck_assert_uint_le(tracked(table), IDLE);
    }
    ck_assert_uint_eq(tracked(table), IDLE);
    for (uint32_t n = CLIENTS; n > CLIENTS - IDLE; n--) {
        struct client *client = come(table, n, 0);

        for (uint32_t call = n; call < CLIENTS; call++)
            ck_assert_int_eq(client_book_call(client, &booking, 0), 0);
        ck_assert_int_gt(client_book_call(client, &booking, 0), 0);
        client_cancel(client, &booking, 0);
        go(client);
    }
    clients_destroy(table);
}
END_TEST

/* ---- on threads ------------------------------------------------------------------------------ */

enum { THREADS = 4, ROUNDS = 2000, CALLS = 8 };

static void *
come_and_go(void *context)
{
    struct clients *table = context;
    uintptr_t taken = 0;

    for (uint32_t i = 0; i < ROUNDS; i++) {
        struct client_booking booking = {.waiting = false};
        struct client *client = find(table, 1 + i % 3, 0);

        if (!client || !client_connect(client))
            abort();
        for (int call = 0; call < CALLS; call++) {
            if (client_book_call(client, &booking, 0) == 0)
                taken++;
            else
                client_cancel(client, &booking, 0);
            client_charge(client, 1, 0);
        }
        go(client);
    }
    return (void *)taken;
}

START_TEST(threads_share_a_clients_tokens)
{
    struct clients_config config = {.max_idle = 3, .rates.calls = {.per_second = 1, .burst = 1000}};
    struct clients *table = create(config);
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
    clients_destroy(table);
}
END_TEST

/* Some of what a client is retained for goes on when its connection has ended. */
static void *
retain_and_release(void *context)
{
    struct clients *table = context;

    for (uint32_t i = 0; i < ROUNDS; i++) {
        struct client *client = find(table, i % 2, 0), *other;

        if (!client || !client_connect(client))
            abort();
        other = client_retain(client);
        go(client);
        client_release(&other);
    }
    return NULL;
}

START_TEST(threads_find_and_release_a_client)
{
    struct clients *table = create((struct clients_config){.max_idle = 0});
    struct client *last = find(table, 1, 0);
    pthread_t threads[THREADS];

    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, retain_and_release, table), 0);
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
    ck_assert_uint_eq(tracked(table), 0);
    ck_assert_uint_eq(last->references, 1);
    ck_assert_uint_eq(last->connections, 0);
    /* What goes on after the end of the table. */
    clients_destroy(table);
    client_release(&last);
    client_release(&last);
    clients_destroy(NULL);
}
END_TEST

/* ---- which peers are one client -------------------------------------------------------------- */

static struct client *
of(struct clients *table, int family, const char *text)
{
    struct sockaddr_in inet = {.sin_family = AF_INET, .sin_port = 1234};
    struct sockaddr_in6 inet6 = {.sin6_family = AF_INET6, .sin6_port = 1234};
    bool is_inet = family == AF_INET;

    ck_assert_int_eq(
        inet_pton(family, text, is_inet ? (void *)&inet.sin_addr : (void *)&inet6.sin6_addr), 1);
    return clients_find(table, is_inet ? (struct sockaddr *)&inet : (struct sockaddr *)&inet6, 0);
}

static bool
is_same(struct client *a, struct client *b)
{
    bool same = a == b;

    ck_assert_ptr_nonnull(a);
    ck_assert_ptr_nonnull(b);
    client_release(&a);
    client_release(&b);
    return same;
}

#define INET(text) of(table, AF_INET, text)
#define INET6(text) of(table, AF_INET6, text)
#define USER(name) clients_find_named(table, CLIENT_USER, span_str(name), 0)

START_TEST(a_user_is_a_client)
{
    struct clients *table = create((struct clients_config){.max_idle = 0});

    ck_assert(is_same(USER("alice"), USER("alice")));
    ck_assert(!is_same(USER("alice"), USER("Alice")));
    ck_assert(!is_same(USER("alice"), USER("alice2")));
    ck_assert(is_same(USER("a.very.long.name@example"), USER("a.very.long.name@example")));
    ck_assert(!is_same(USER("a.very.long.name@example"), USER("a.very.long.name@example.")));
    ck_assert(!is_same(USER("a.very.l"), USER("a.very.long.name@example")));
    clients_destroy(table);
}
END_TEST

#define UID(uid) clients_find_uid(table, uid, 0)

START_TEST(an_address_or_a_uid_is_a_client)
{
    struct clients *table = create((struct clients_config){.max_idle = 0});
    struct sockaddr other = {.sa_family = AF_UNIX};

    ck_assert(is_same(INET("192.0.2.7"), INET("192.0.2.7")));
    ck_assert(!is_same(INET("192.0.2.7"), INET("192.0.2.8")));
    ck_assert(is_same(INET("192.0.2.7"), INET6("::ffff:192.0.2.7")));
    /* One host has a whole /64, and a neighbour the next one. */
    ck_assert(is_same(INET6("2001:db8:1:2::1"), INET6("2001:db8:1:2:ffff::")));
    ck_assert(!is_same(INET6("2001:db8:1:2::1"), INET6("2001:db8:1:3::1")));
    ck_assert(!is_same(INET6("::"), INET("0.0.0.0")));
    ck_assert(is_same(UID(0), UID(0)));
    ck_assert(!is_same(UID(0), UID(1000)));
    ck_assert(!is_same(UID(0x01020304), INET("1.2.3.4")));
    ck_assert(is_same(clients_find(table, &other, 0), clients_find(table, &other, 0)));
    ck_assert(!is_same(UID(0), clients_find(table, &other, 0)));
    ck_assert_uint_eq(tracked(table), 0);
    clients_destroy(table);
}
END_TEST

START_TEST(prefixes_are_cut_to_the_bit)
{
    for (unsigned bits = 0; bits <= 32; bits++) {
        struct clients *table =
            clients_create(&(struct clients_config){.inet_bits = (uint8_t)bits});
        struct client *client = INET("255.255.255.255");
        uint32_t kept = bits ? 0xffffffffU << (32 - bits) : 0, cut;

        memcpy(&cut, client->key.bytes, sizeof(cut));
        ck_assert_uint_eq(ntohl(cut), kept);
        client_release(&client);
        clients_destroy(table);
    }
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("base/clients");
    TCase *tcase = tcase_create("clients");

    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, connections_of_a_client_are_bounded);
    tcase_add_test(tcase, waiting_calls_are_served_in_their_order);
    tcase_add_test(tcase, answers_are_charged_afterwards);
    tcase_add_test(tcase, fetches_are_refused_with_a_time);
    tcase_add_test(tcase, fetches_that_have_been_made_are_charged);
    tcase_add_test(tcase, a_client_that_reconnects_has_no_full_bucket);
    tcase_add_test(tcase, bounds_may_change);
    tcase_add_test(tcase, connections_that_linger_have_a_bound_of_their_own);
    tcase_add_test(tcase, of_too_many_those_nearest_to_full_are_forgotten);
    tcase_add_test(tcase, threads_share_a_clients_tokens);
    tcase_add_test(tcase, threads_find_and_release_a_client);
    tcase_add_test(tcase, an_address_or_a_uid_is_a_client);
    tcase_add_test(tcase, a_user_is_a_client);
    tcase_add_test(tcase, prefixes_are_cut_to_the_bit);
    suite_add_tcase(suite, tcase);
    return suite;
}
