/* One flight per URL, also when many threads board at once. */
#include "fetch/flight.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/unit/unit.h"

static bool
found_nothing(void *context)
{
    (void)context;
    return false;
}

static bool
found_it(void *context)
{
    ++*(unsigned *)context;
    return true;
}

START_TEST(the_first_leads_and_the_others_join)
{
    struct flights *flights = flights_create(8);
    struct flight_waiter a, b, c, d;
    struct flight *flight, *other, *none;

    ck_assert_int_eq(flights_board(flights, span_str("u"), &a, found_nothing, NULL, &flight),
                     FLIGHT_LED);
    ck_assert_ptr_nonnull(flight);
    ck_assert_int_eq(flights_board(flights, span_str("u"), &b, found_nothing, NULL, &none),
                     FLIGHT_JOINED);
    ck_assert_ptr_null(none);
    ck_assert_int_eq(flights_board(flights, span_str("v"), &c, found_nothing, NULL, &other),
                     FLIGHT_LED);
    ck_assert_int_eq(flights_board(flights, span_str("u"), &d, found_nothing, NULL, &none),
                     FLIGHT_JOINED);
    ck_assert_uint_eq(flights_count(flights), 2);
    ck_assert(a.leader && c.leader && !b.leader && !d.leader);
    ck_assert_ptr_eq(flights_land(flights, flight, NULL, NULL), &a);
    ck_assert_ptr_eq(a.next, &b);
    ck_assert_ptr_eq(b.next, &d);
    ck_assert_ptr_null(d.next);
    ck_assert_ptr_eq(flights_land(flights, other, NULL, NULL), &c);
    ck_assert_ptr_null(c.next);
    ck_assert_uint_eq(flights_count(flights), 0);
    flights_destroy(flights);
    flights_destroy(NULL);
}
END_TEST

START_TEST(who_finds_the_page_needs_no_flight)
{
    struct flights *flights = flights_create(8);
    struct flight_waiter a, b;
    struct flight *flight;
    unsigned asked = 0;

    ck_assert_int_eq(flights_board(flights, span_str("u"), &a, found_it, &asked, &flight),
                     FLIGHT_FOUND);
    ck_assert_ptr_null(flight);
    ck_assert_uint_eq(asked, 1);
    ck_assert_uint_eq(flights_count(flights), 0);
    ck_assert_int_eq(flights_board(flights, span_str("u"), &a, NULL, NULL, &flight), FLIGHT_LED);
    /* With a flight in the air nobody is asked. */
    ck_assert_int_eq(
        flights_board(flights, span_str("u"), &b, found_it, &asked, &(struct flight *){NULL}),
        FLIGHT_JOINED);
    ck_assert_uint_eq(asked, 1);
    flights_land(flights, flight, NULL, NULL);
    flights_destroy(flights);
}
END_TEST

START_TEST(a_flight_can_be_full)
{
    struct flights *flights = flights_create(2);
    struct flight_waiter a, b, c;
    struct flight *flight, *none;

    ck_assert_int_eq(flights_board(flights, span_str("u"), &a, found_nothing, NULL, &flight),
                     FLIGHT_LED);
    ck_assert_int_eq(flights_board(flights, span_str("u"), &b, found_nothing, NULL, &none),
                     FLIGHT_JOINED);
    ck_assert_int_eq(flights_board(flights, span_str("u"), &c, found_nothing, NULL, &none),
                     FLIGHT_FULL);
    ck_assert_ptr_eq(flights_land(flights, flight, NULL, NULL), &a);
    ck_assert_ptr_null(b.next);
    flights_destroy(flights);
}
END_TEST

/* "Ez" and "FY" collide in every position; zero bytes and lengths count. */
START_TEST(urls_that_collide_are_different)
{
    static const struct span urls[] = {
        {"EzEz", 4}, {"EzFY", 4}, {"FYEz", 4}, {"FYFY", 4},
        {"a\0b", 3}, {"a\0c", 3}, {"a", 1},    {"", 0},
    };
    enum { COUNT = sizeof(urls) / sizeof(urls[0]) };
    struct flights *flights = flights_create(2);
    struct flight_waiter waiters[COUNT];
    struct flight *in_air[COUNT];

    for (size_t i = 0; i < COUNT; i++)
        ck_assert_int_eq(flights_board(flights, urls[i], &waiters[i], NULL, NULL, &in_air[i]),
                         FLIGHT_LED);
    ck_assert_uint_eq(flights_count(flights), COUNT);
    for (size_t i = 0; i < COUNT; i++)
        ck_assert_ptr_eq(flights_land(flights, in_air[i], NULL, NULL), &waiters[i]);
    flights_destroy(flights);
}
END_TEST

static void
count_kept(void *context)
{
    ++*(unsigned *)context;
}

START_TEST(what_lands_is_kept)
{
    struct flights *flights = flights_create(2);
    struct flight_waiter a;
    struct flight *flight;
    unsigned kept = 0;

    flights_board(flights, span_str("u"), &a, NULL, NULL, &flight);
    flights_call_off(flights, span_str("v"));
    flights_call_off(flights, span_str(""));
    flights_call_off_prefix(flights, span_str("uu"));
    ck_assert_ptr_eq(flights_land(flights, flight, count_kept, &kept), &a);
    ck_assert_uint_eq(kept, 1);
    flights_destroy(flights);
}
END_TEST

START_TEST(a_flight_that_is_called_off_lands_and_takes_nobody_more)
{
    struct flights *flights = flights_create(2);
    struct flight_waiter a, b, c, d;
    struct flight *old, *fresh, *none;
    unsigned kept = 0;

    flights_board(flights, span_str("u"), &a, NULL, NULL, &old);
    flights_board(flights, span_str("u"), &b, NULL, NULL, &none);
    flights_call_off(flights, span_str("u"));
    ck_assert_int_eq(flights_board(flights, span_str("u"), &c, found_nothing, NULL, &fresh),
                     FLIGHT_LED);
    ck_assert_int_eq(flights_board(flights, span_str("u"), &d, found_nothing, NULL, &none),
                     FLIGHT_JOINED);
    ck_assert_uint_eq(flights_count(flights), 2);
    ck_assert_ptr_eq(flights_land(flights, old, count_kept, &kept), &a);
    ck_assert_ptr_eq(a.next, &b);
    ck_assert_ptr_null(b.next);
    ck_assert_uint_eq(kept, 0);
    ck_assert_ptr_eq(flights_land(flights, fresh, count_kept, &kept), &c);
    ck_assert_ptr_eq(c.next, &d);
    ck_assert_uint_eq(kept, 1);
    ck_assert_uint_eq(flights_count(flights), 0);
    flights_destroy(flights);
}
END_TEST

START_TEST(flights_are_called_off_by_prefix)
{
    static const char *const urls[] = {"http://a/", "http://a/1", "http://a/2",
                                       "http://b/", "http://b/1", "http://"};
    enum { COUNT = sizeof(urls) / sizeof(urls[0]) };
    static const struct {
        const char *prefix;
        unsigned kept;
    } rows[] = {{"http://a/", 3}, {"http://b/1", 5}, {"http://c", 6}, {"", 0}};
    struct flights *flights = flights_create(1);

    for (size_t row = 0; row < sizeof(rows) / sizeof(rows[0]); row++) {
        struct flight_waiter waiters[COUNT];
        struct flight *in_air[COUNT];
        unsigned kept = 0;

        for (size_t i = 0; i < COUNT; i++)
            ck_assert_int_eq(
                flights_board(flights, span_str(urls[i]), &waiters[i], NULL, NULL, &in_air[i]),
                FLIGHT_LED);
        flights_call_off_prefix(flights, span_str(rows[row].prefix));
        for (size_t i = 0; i < COUNT; i++)
            flights_land(flights, in_air[i], count_kept, &kept);
        ck_assert_uint_eq(kept, rows[row].kept);
    }
    flights_destroy(flights);
}
END_TEST

START_TEST(a_flight_alone_is_joined_by_no_other)
{
    struct flights *flights = flights_create(2);
    struct flight_waiter a, b, c, d;
    struct flight *alone, *other, *shared, *none;
    unsigned kept = 0;

    ck_assert(flights_board_alone(flights, span_str("u"), &a, &alone));
    ck_assert(flights_board_alone(flights, span_str("u"), &b, &other));
    ck_assert(a.leader && b.leader);
    ck_assert_int_eq(flights_board(flights, span_str("u"), &c, found_nothing, NULL, &shared),
                     FLIGHT_LED);
    ck_assert_int_eq(flights_board(flights, span_str("u"), &d, found_nothing, NULL, &none),
                     FLIGHT_JOINED);
    ck_assert_uint_eq(flights_count(flights), 4 - 1);
    ck_assert_ptr_eq(flights_land(flights, alone, count_kept, &kept), &a);
    ck_assert_ptr_null(a.next);
    ck_assert_ptr_eq(flights_land(flights, shared, count_kept, &kept), &c);
    ck_assert_ptr_eq(c.next, &d);
    ck_assert_ptr_eq(flights_land(flights, other, count_kept, &kept), &b);
    ck_assert_ptr_null(b.next);
    ck_assert_uint_eq(kept, 3);
    ck_assert_uint_eq(flights_count(flights), 0);
    flights_destroy(flights);
}
END_TEST

START_TEST(flights_alone_are_called_off_like_any)
{
    static const char *const urls[] = {"http://a/", "http://a/", "http://a/1", "http://b/"};
    static const struct {
        const char *url;
        bool prefix;
        unsigned kept;
    } rows[] = {{"http://a/", false, 2}, {"http://a/", true, 1}, {"http://a/1", false, 3},
                {"http://c/", false, 4}, {"http://c/", true, 4}, {"", true, 0}};
    enum { COUNT = sizeof(urls) / sizeof(urls[0]) };
    struct flights *flights = flights_create(1);

    for (size_t row = 0; row < sizeof(rows) / sizeof(rows[0]); row++) {
        struct flight_waiter waiters[COUNT];
        struct flight *in_air[COUNT];
        unsigned kept = 0;

        for (size_t i = 0; i < COUNT; i++)
            ck_assert(flights_board_alone(flights, span_str(urls[i]), &waiters[i], &in_air[i]));
        if (rows[row].prefix)
            flights_call_off_prefix(flights, span_str(rows[row].url));
        else
            flights_call_off(flights, span_str(rows[row].url));
        for (size_t i = 0; i < COUNT; i++)
            ck_assert_ptr_eq(flights_land(flights, in_air[i], count_kept, &kept), &waiters[i]);
        ck_assert_msg(kept == rows[row].kept, "row %zu: %u", row, kept);
    }
    flights_destroy(flights);
}
END_TEST

/*
 * Threads board few URLs over and over; the leader "fetches", stores and lands. A page once stored
 * is always found, so each URL is fetched once, and every waiter is answered once.
 */
enum { THREADS = 8, ROUNDS = 400, URLS = 40 };

struct race {
    struct flights *flights;
    pthread_barrier_t start;
    _Atomic bool stored[URLS];
    _Atomic unsigned led[URLS];
    _Atomic unsigned answered;
    _Atomic unsigned found;
};

struct seat {
    struct flight_waiter waiter;
};

struct wanted {
    struct race *race;
    unsigned url;
};

static bool
is_stored(void *context)
{
    struct wanted *wanted = context;

    return atomic_load(&wanted->race->stored[wanted->url]);
}

static void
keep_it(void *context)
{
    struct wanted *wanted = context;

    atomic_store(&wanted->race->stored[wanted->url], true);
}

static void *
board_and_land(void *argument)
{
    struct race *race = argument;

    pthread_barrier_wait(&race->start);
    for (unsigned i = 0; i < ROUNDS; i++) {
        struct wanted wanted = {race, i % URLS};
        struct seat *seat = malloc(sizeof(*seat));
        struct flight *flight;
        struct flight_waiter *waiter;
        char url[32];

        snprintf(url, sizeof(url), "http://h/%u", wanted.url);
        switch (flights_board(race->flights, span_str(url), &seat->waiter, is_stored, &wanted,
                              &flight)) {
        case FLIGHT_LED:
            atomic_fetch_add(&race->led[wanted.url], 1);
            waiter = flights_land(race->flights, flight, keep_it, &wanted);
            while (waiter) {
                struct flight_waiter *next = waiter->next;

                atomic_fetch_add(&race->answered, 1);
                free(waiter);
                waiter = next;
            }
            break;
        case FLIGHT_JOINED:
            break;
        case FLIGHT_FOUND:
            atomic_fetch_add(&race->found, 1);
            free(seat);
            break;
        case FLIGHT_FULL:
        case FLIGHT_NO_MEMORY:
            abort();
        }
    }
    return NULL;
}

START_TEST(many_threads_one_leader)
{
    struct race race = {.flights = flights_create(THREADS * ROUNDS)};
    pthread_t threads[THREADS];

    pthread_barrier_init(&race.start, NULL, THREADS);
    for (unsigned i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, board_and_land, &race);
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (unsigned i = 0; i < URLS; i++)
        ck_assert_uint_eq(atomic_load(&race.led[i]), 1);
    ck_assert_uint_eq(atomic_load(&race.answered) + atomic_load(&race.found), THREADS * ROUNDS);
    ck_assert_uint_eq(flights_count(race.flights), 0);
    pthread_barrier_destroy(&race.start);
    flights_destroy(race.flights);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("fetch/flight");
    TCase *tc = tcase_create("flight");

    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, the_first_leads_and_the_others_join);
    tcase_add_test(tc, who_finds_the_page_needs_no_flight);
    tcase_add_test(tc, a_flight_can_be_full);
    tcase_add_test(tc, urls_that_collide_are_different);
    tcase_add_test(tc, what_lands_is_kept);
    tcase_add_test(tc, a_flight_that_is_called_off_lands_and_takes_nobody_more);
    tcase_add_test(tc, flights_are_called_off_by_prefix);
    tcase_add_test(tc, a_flight_alone_is_joined_by_no_other);
    tcase_add_test(tc, flights_alone_are_called_off_like_any);
    tcase_add_test(tc, many_threads_one_leader);
    suite_add_tcase(suite, tc);
    return suite;
}
