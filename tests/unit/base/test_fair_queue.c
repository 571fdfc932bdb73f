/* Turns of the queue, by hand; test_queue_model.c compares it with a model. */
#define UNIT_STARTS_NO_THREAD

#include "base/fair_queue.h"

#include <stdio.h>

#include "tests/unit/unit.h"

static struct queue *
create(unsigned opening, unsigned streaming, unsigned per_origin, unsigned per_client)
{
    const struct queue_limits limits = {.opening = opening,
                                        .streaming = streaming,
                                        .per_origin = per_origin,
                                        .client_opening = per_client,
                                        .client_streaming = per_client};
    struct queue *queue = queue_create(&limits, CLIENT_FETCHES);

    ck_assert_ptr_nonnull(queue);
    return queue;
}

static void
enter(struct queue *queue, struct queue_item *item, unsigned client, const char *origin)
{
    ck_assert(queue_add(queue, item, unit_client(client), origin));
}

/* Starts all that may; how many. */
static unsigned
start_all(struct queue *queue)
{
    unsigned started = 0;

    while (queue_next(queue))
        started++;
    return started;
}

static void
leave_all(struct queue *queue, struct queue_item *items, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        queue_remove(queue, &items[i]);
}

START_TEST(bounds_in_all_and_per_origin)
{
    struct queue *queue = create(3, 0, 2, 0);
    struct queue_item a[3] = {0}, b[2] = {0};

    for (unsigned i = 0; i < 3; i++)
        enter(queue, &a[i], 1, "http://a:80");
    ck_assert_ptr_eq(queue_next(queue), &a[0]);
    ck_assert_ptr_eq(queue_next(queue), &a[1]);
    ck_assert_ptr_null(queue_next(queue));
    ck_assert_int_eq(queue_find_wait(queue, &a[2]), QUEUE_ORIGIN);
    /* The origin at its bound does not hold up another. */
    enter(queue, &b[0], 1, "http://b:80");
    enter(queue, &b[1], 1, "http://b:80");
    ck_assert_ptr_eq(queue_next(queue), &b[0]);
    ck_assert_ptr_null(queue_next(queue));
    ck_assert_uint_eq(queue_active(queue), 3);
    ck_assert_uint_eq(queue_queued(queue), 2);
    /* Total bound: one is removed, one follows. */
    queue_remove(queue, &a[0]);
    ck_assert_ptr_eq(queue_next(queue), &b[1]);
    ck_assert_ptr_null(queue_next(queue));
    queue_remove(queue, &b[0]);
    ck_assert_ptr_eq(queue_next(queue), &a[2]);
    queue_remove(queue, &a[1]);
    queue_remove(queue, &a[2]);
    queue_remove(queue, &b[1]);
    queue_remove(queue, &b[1]);
    ck_assert_uint_eq(queue_active(queue), 0);
    ck_assert_uint_eq(queue_queued(queue), 0);
    queue_destroy(queue);
}
END_TEST

/* Bounds of the origin, of the client and of all: what waits for one starts when it is raised. */
START_TEST(limits_take_the_place_of_others)
{
    struct queue *queue = create(8, 0, 1, 2);
    struct queue_limits limits = {
        .opening = 8, .per_origin = 3, .client_opening = 2, .client_streaming = 2};
    struct queue_item e[6] = {0};

    for (unsigned i = 0; i < 6; i++)
        enter(queue, &e[i], 1, "http://a:80");
    ck_assert_uint_eq(start_all(queue), 1);
    ck_assert_int_eq(queue_find_wait(queue, &e[1]), QUEUE_ORIGIN);
    queue_set_limits(queue, &limits);
    ck_assert_uint_eq(start_all(queue), 1);
    limits.client_opening = limits.client_streaming = 0;
    queue_set_limits(queue, &limits);
    ck_assert_uint_eq(start_all(queue), 1);
    limits.per_origin = 0;
    limits.opening = 5;
    queue_set_limits(queue, &limits);
    ck_assert_uint_eq(start_all(queue), 2);
    ck_assert_int_eq(queue_find_wait(queue, &e[5]), QUEUE_SLOT);
    /* Those over a lower bound stay. */
    limits.opening = 1;
    limits.per_origin = 1;
    queue_set_limits(queue, &limits);
    ck_assert_uint_eq(queue_active(queue), 5);
    leave_all(queue, e, 4);
    ck_assert_uint_eq(start_all(queue), 0);
    queue_remove(queue, &e[4]);
    ck_assert_uint_eq(start_all(queue), 1);
    queue_remove(queue, &e[5]);
    queue_destroy(queue);
}
END_TEST

/* One that streams makes a place at its origin, and takes it back only where there is one. */
START_TEST(streaming_ones_leave_their_origin)
{
    struct queue *queue = create(8, 8, 2, 0);
    struct queue_item e[6] = {0}, to = {0};

    queue_stream(queue, &e[0]);
    for (unsigned i = 0; i < 6; i++)
        enter(queue, &e[i], i % 2, "http://a:80");
    queue_stream(queue, &e[5]); /* queued: nothing changes */
    queue_reopen(queue, &e[5]);
    ck_assert_uint_eq(start_all(queue), 2);
    queue_stream(queue, &e[0]);
    queue_stream(queue, &e[0]);
    ck_assert_uint_eq(queue_opening(queue), 1);
    ck_assert_uint_eq(start_all(queue), 1);
    ck_assert_uint_eq(queue_active(queue), 3);
    queue_reopen(queue, &e[0]); /* there is no place: it stays as it is */
    ck_assert_uint_eq(queue_opening(queue), 2);
    queue_remove(queue, &e[1]);
    queue_reopen(queue, &e[0]);
    queue_reopen(queue, &e[0]);
    ck_assert_uint_eq(queue_opening(queue), 2);
    ck_assert_uint_eq(start_all(queue), 0);
    queue_stream(queue, &e[0]);
    ck_assert_uint_eq(start_all(queue), 1);
    queue_hand_over(&e[0], &to);
    queue_remove(queue, &to);
    ck_assert_uint_eq(start_all(queue), 0);
    leave_all(queue, e, 6);
    ck_assert_uint_eq(queue_active(queue) + queue_queued(queue), 0);
    queue_destroy(queue);
}
END_TEST

/* A client has half of the places at an origin that the others leave. */
START_TEST(a_share_of_an_origin)
{
    enum { PLACES = 16, EACH = 20, CLIENTS = 5 };
    static const unsigned shares[CLIENTS] = {8, 4, 2, 1, 1};
    static struct queue_item items[CLIENTS][EACH];
    struct queue *queue = create(1000, 0, PLACES, 200);

    memset(items, 0, sizeof(items));
    for (unsigned c = 0; c < CLIENTS; c++) {
        for (unsigned i = 0; i < EACH; i++)
            enter(queue, &items[c][i], c, "a");
        ck_assert_uint_eq(start_all(queue), shares[c]);
    }
    /* What is given back goes to those with the fewest. */
    for (unsigned i = 0; i < 3; i++)
        queue_remove(queue, &items[0][i]);
    ck_assert_uint_eq(start_all(queue), 2);
    ck_assert_int_eq(items[3][1].state, ITEM_OPENING);
    ck_assert_int_eq(items[4][1].state, ITEM_OPENING);
    for (unsigned c = 0; c < CLIENTS; c++)
        leave_all(queue, items[c], EACH);
    ck_assert_uint_eq(queue_active(queue), 0);
    queue_destroy(queue);
}
END_TEST

START_TEST(what_a_queued_one_waits_for)
{
    struct queue *queue = create(8, 0, 4, 4);
    struct queue_item a[6] = {0}, b[4] = {0}, c[2] = {0};

    for (unsigned i = 0; i < 3; i++)
        enter(queue, &a[i], 1, "a");
    ck_assert_int_eq(queue_find_wait(queue, &a[0]), QUEUE_TURN);
    ck_assert_uint_eq(start_all(queue), 2);
    ck_assert_int_eq(queue_find_wait(queue, &a[2]), QUEUE_CLIENT_AT_ORIGIN);
    for (unsigned i = 3; i < 6; i++)
        enter(queue, &a[i], 1, "b");
    ck_assert_uint_eq(start_all(queue), 2);
    ck_assert_int_eq(queue_find_wait(queue, &a[5]), QUEUE_CLIENT_AT_ORIGIN);
    enter(queue, &b[0], 1, "c");
    ck_assert_uint_eq(start_all(queue), 0);
    ck_assert_int_eq(queue_find_wait(queue, &b[0]), QUEUE_CLIENT);
    for (unsigned i = 1; i < 4; i++)
        enter(queue, &b[i], 1 + i, i == 3 ? "c" : "d");
    enter(queue, &c[0], 5, "e");
    ck_assert_uint_eq(start_all(queue), 4);
    enter(queue, &c[1], 6, "f");
    ck_assert_uint_eq(start_all(queue), 0);
    ck_assert_int_eq(queue_find_wait(queue, &c[1]), QUEUE_SLOT);
    leave_all(queue, a, 6);
    leave_all(queue, b, 4);
    leave_all(queue, c, 2);
    queue_destroy(queue);
}
END_TEST

START_TEST(an_origin_has_a_limit_of_its_own)
{
    struct queue *queue = create(10, 10, 8, 0);
    struct queue_item a[4] = {0}, b = {0};

    for (unsigned i = 0; i < 4; i++) {
        enter(queue, &a[i], i, "http://a:80");
        queue_limit_origin(queue, &a[i], 2);
    }
    enter(queue, &b, 1, "http://b:80");
    ck_assert_uint_eq(start_all(queue), 3);
    ck_assert_int_eq(queue_find_wait(queue, &a[2]), QUEUE_LIMIT);
    /* One that streams still counts. */
    queue_stream(queue, &a[0]);
    ck_assert_uint_eq(start_all(queue), 0);
    queue_remove(queue, &a[0]);
    ck_assert_ptr_eq(queue_next(queue), &a[2]);
    ck_assert_uint_eq(start_all(queue), 0);
    queue_limit_origin(queue, &a[3], 3);
    ck_assert_ptr_eq(queue_next(queue), &a[3]);
    queue_stream(queue, &a[1]);
    queue_remove(queue, &a[1]);
    enter(queue, &a[0], 0, "http://a:80");
    queue_limit_origin(queue, &a[0], 1);
    ck_assert_uint_eq(start_all(queue), 0);
    queue_limit_origin(queue, &a[0], 0);
    ck_assert_ptr_eq(queue_next(queue), &a[0]);
    leave_all(queue, a, 4);
    queue_remove(queue, &b);
    queue_destroy(queue);
}
END_TEST

START_TEST(origins_take_turns)
{
    struct queue *queue = create(1, 0, 1, 0);
    struct queue_item a[4] = {0}, b = {0}, *next;

    for (unsigned i = 0; i < 4; i++)
        enter(queue, &a[i], 1, "a");
    enter(queue, &b, 1, "b");
    next = queue_next(queue);
    ck_assert_ptr_eq(next, &a[0]);
    queue_remove(queue, next);
    next = queue_next(queue);
    ck_assert_ptr_eq(next, &b);
    queue_remove(queue, next);
    /* An item that has left is passed over. */
    queue_remove(queue, &a[1]);
    next = queue_next(queue);
    ck_assert_ptr_eq(next, &a[2]);
    queue_remove(queue, &a[3]);
    queue_remove(queue, next);
    ck_assert_ptr_null(queue_next(queue));
    queue_destroy(queue);
    queue_destroy(NULL);
}
END_TEST

START_TEST(clients_take_turns)
{
    static const unsigned order[] = {1, 2, 3, 1, 2, 1, 1};
    struct queue *queue = create(1, 0, 1, 0);
    struct queue_item items[7] = {0}, *next;
    const unsigned clients[7] = {1, 1, 1, 1, 2, 2, 3};

    /* One origin for all: its bound changes nothing about the order. */
    for (unsigned i = 0; i < 7; i++)
        enter(queue, &items[i], clients[i], "a");
    for (unsigned i = 0; i < 7; i++) {
        next = queue_next(queue);
        ck_assert_ptr_nonnull(next);
        ck_assert_uint_eq(clients[next - items], order[i]);
        queue_remove(queue, next);
    }
    queue_destroy(queue);
}
END_TEST

/* A client that comes and goes does not starve one that stays. */
START_TEST(a_client_that_returns_waits_again)
{
    struct queue *queue = create(1, 0, 1, 0);
    struct queue_item stays[2] = {0}, returns = {0};

    enter(queue, &stays[0], 1, "a");
    enter(queue, &stays[1], 1, "a");
    enter(queue, &returns, 2, "b");
    ck_assert_ptr_eq(queue_next(queue), &stays[0]);
    queue_remove(queue, &stays[0]);
    ck_assert_ptr_eq(queue_next(queue), &returns);
    queue_remove(queue, &returns);
    enter(queue, &returns, 2, "b");
    ck_assert_ptr_eq(queue_next(queue), &stays[1]);
    queue_remove(queue, &stays[1]);
    queue_remove(queue, &returns);
    queue_destroy(queue);
}
END_TEST

START_TEST(fewest_opening_first)
{
    struct queue *queue = create(4, 4, 4, 0);
    struct queue_item a[5] = {0}, b[2] = {0};

    for (unsigned i = 0; i < 5; i++)
        enter(queue, &a[i], 1, "a");
    ck_assert_uint_eq(start_all(queue), 4);
    enter(queue, &b[0], 2, "a");
    enter(queue, &b[1], 2, "a");
    queue_remove(queue, &a[0]);
    ck_assert_ptr_eq(queue_next(queue), &b[0]);
    queue_remove(queue, &a[1]);
    ck_assert_ptr_eq(queue_next(queue), &b[1]);
    queue_remove(queue, &a[2]);
    ck_assert_ptr_eq(queue_next(queue), &a[4]);
    leave_all(queue, a, 5);
    leave_all(queue, b, 2);
    queue_destroy(queue);
}
END_TEST

/* With a share of an eighth, forty clients that take all they can leave a slot for another. */
START_TEST(a_share_of_what_others_do_not_use)
{
    enum { SLOTS = 1024, CLIENTS = 40, EACH = 200 };
    static struct queue_item items[CLIENTS][EACH];
    struct queue_item late = {0};
    struct queue *queue = create(SLOTS, 0, 0, SLOTS / 8);
    unsigned left = SLOTS;

    memset(items, 0, sizeof(items));
    for (unsigned c = 0; c < CLIENTS; c++) {
        unsigned started;

        for (unsigned i = 0; i < EACH; i++)
            enter(queue, &items[c][i], c, "a");
        started = start_all(queue);
        ck_assert_uint_eq(started, (left + 7) / 8);
        left -= started;
    }
    enter(queue, &late, CLIENTS, "a");
    ck_assert_ptr_eq(queue_next(queue), &late);
    /* Slots that are given back go to those with the fewest. */
    leave_all(queue, items[0], EACH);
    ck_assert_uint_gt(start_all(queue), 0);
    queue_remove(queue, &late);
    for (unsigned c = 1; c < CLIENTS; c++)
        leave_all(queue, items[c], EACH);
    ck_assert_uint_eq(queue_active(queue), 0);
    queue_destroy(queue);
}
END_TEST

/* Clients that have used up their shares wait for an origin in front of one that has not. */
START_TEST(an_origins_place_goes_to_a_flow_that_may_use_it)
{
    enum { GREEDY = 100 };
    static struct queue_item opening[GREEDY], parked[GREEDY];
    struct queue_item busy = {0}, modest = {0};
    struct queue *queue = create(1000, 0, 1, 1);
    char origin[16];

    memset(opening, 0, sizeof(opening));
    memset(parked, 0, sizeof(parked));
    enter(queue, &busy, GREEDY + 1, "contested");
    ck_assert_ptr_eq(queue_next(queue), &busy);
    for (unsigned c = 0; c < GREEDY; c++) {
        snprintf(origin, sizeof(origin), "of-%u", c);
        enter(queue, &opening[c], c, origin);
        ck_assert_ptr_eq(queue_next(queue), &opening[c]);
        enter(queue, &parked[c], c, "contested");
    }
    enter(queue, &modest, GREEDY, "contested");
    ck_assert_ptr_null(queue_next(queue));
    queue_remove(queue, &busy);
    ck_assert_ptr_eq(queue_next(queue), &modest);
    ck_assert_ptr_null(queue_next(queue));
    /* Then it is the turn of any client that has a share again. */
    queue_remove(queue, &opening[GREEDY - 1]);
    queue_remove(queue, &modest);
    ck_assert_ptr_eq(queue_next(queue), &parked[GREEDY - 1]);
    leave_all(queue, opening, GREEDY);
    queue_remove(queue, &parked[GREEDY - 1]);
    for (unsigned c = 0; c < GREEDY - 1; c++) {
        struct queue_item *next = queue_next(queue);

        ck_assert_ptr_nonnull(next);
        ck_assert_ptr_null(queue_next(queue));
        queue_remove(queue, next);
    }
    ck_assert_uint_eq(queue_queued(queue), 0);
    queue_destroy(queue);
}
END_TEST

START_TEST(streaming_ones_free_their_slots)
{
    struct queue *queue = create(4, 4, 4, 0);
    struct queue_item a[10] = {0};

    for (unsigned i = 0; i < 10; i++)
        enter(queue, &a[i], 1, "a");
    ck_assert_uint_eq(start_all(queue), 4);
    queue_stream(queue, &a[0]);
    queue_stream(queue, &a[9]);
    ck_assert_uint_eq(queue_opening(queue), 3);
    ck_assert_uint_eq(start_all(queue), 1);
    for (unsigned i = 1; i < 4; i++)
        queue_stream(queue, &a[i]);
    ck_assert_uint_eq(start_all(queue), 3);
    ck_assert_uint_eq(queue_active(queue), 8);
    /* No slot is left: it keeps the one it has, but no place at its origin. */
    queue_stream(queue, &a[4]);
    ck_assert_int_eq(a[4].state, ITEM_OVERFLOWING);
    ck_assert_uint_eq(queue_opening(queue), 4);
    ck_assert_uint_eq(start_all(queue), 0);
    ck_assert_int_eq(queue_find_wait(queue, &a[8]), QUEUE_SLOT);
    queue_reopen(queue, &a[4]);
    ck_assert_int_eq(a[4].state, ITEM_OPENING);
    leave_all(queue, a, 10);
    ck_assert_uint_eq(queue_active(queue), 0);
    queue_destroy(queue);
}
END_TEST

/* A client's streams take slots of their own; beyond their share they take those of opening ones.
 */
START_TEST(the_bound_of_a_client)
{
    struct queue *queue = queue_create(
        &(struct queue_limits){
            .opening = 8, .streaming = 8, .client_opening = 2, .client_streaming = 4},
        CLIENT_FETCHES);
    struct queue_item a[9] = {0};

    for (unsigned i = 0; i < 9; i++)
        enter(queue, &a[i], 1, "a");
    ck_assert_uint_eq(start_all(queue), 2);
    for (unsigned i = 0; i < 4; i++) {
        ck_assert_int_eq(queue_find_wait(queue, &a[i + 2]), QUEUE_CLIENT);
        queue_stream(queue, &a[i]);
        ck_assert_uint_eq(start_all(queue), 1);
    }
    queue_stream(queue, &a[4]);
    ck_assert_uint_eq(start_all(queue), 0);
    /* A slot of its own does not come back while it streams. */
    queue_remove(queue, &a[0]);
    ck_assert_uint_eq(start_all(queue), 0);
    queue_stream(queue, &a[5]);
    ck_assert_uint_eq(start_all(queue), 1);
    leave_all(queue, a, 9);
    queue_destroy(queue);
}
END_TEST

START_TEST(the_longest_queue_gives_way)
{
    struct queue *queue = create(1, 0, 1, 0);
    struct queue_item a[3] = {0}, b[3] = {0};

    ck_assert_ptr_null(queue_last_of_longest(queue));
    enter(queue, &a[0], 1, "a");
    enter(queue, &a[1], 1, "b");
    enter(queue, &b[0], 2, "a");
    ck_assert_ptr_eq(queue_last_of_longest(queue), &a[1]);
    /* Equally many: the client that came last. */
    enter(queue, &b[1], 2, "a");
    ck_assert_ptr_eq(queue_last_of_longest(queue), &b[1]);
    enter(queue, &a[2], 1, "a");
    ck_assert_ptr_eq(queue_last_of_longest(queue), &a[2]);
    enter(queue, &b[2], 2, "a");
    ck_assert_ptr_eq(queue_last_of_longest(queue), &b[2]);
    queue_remove(queue, &b[2]);
    /* Active ones do not count. */
    ck_assert_ptr_eq(queue_next(queue), &a[0]);
    queue_remove(queue, &a[2]);
    ck_assert_ptr_eq(queue_last_of_longest(queue), &b[1]);
    leave_all(queue, a, 3);
    leave_all(queue, b, 3);
    ck_assert_ptr_null(queue_last_of_longest(queue));
    queue_destroy(queue);
}
END_TEST

START_TEST(a_turn_is_handed_over)
{
    struct queue *queue = create(1, 0, 1, 0);
    struct queue_item a = {0}, b = {0}, heir = {0};

    enter(queue, &a, 1, "a");
    enter(queue, &b, 1, "a");
    ck_assert_ptr_eq(queue_next(queue), &a);
    queue_hand_over(&a, &heir);
    queue_remove(queue, &a);
    ck_assert_ptr_null(queue_next(queue));
    queue_remove(queue, &heir);
    ck_assert_ptr_eq(queue_next(queue), &b);
    queue_remove(queue, &b);
    queue_destroy(queue);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("base/fair_queue");
    TCase *tc = tcase_create("queue");

    tcase_add_test(tc, bounds_in_all_and_per_origin);
    tcase_add_test(tc, limits_take_the_place_of_others);
    tcase_add_test(tc, streaming_ones_leave_their_origin);
    tcase_add_test(tc, a_share_of_an_origin);
    tcase_add_test(tc, what_a_queued_one_waits_for);
    tcase_add_test(tc, an_origin_has_a_limit_of_its_own);
    tcase_add_test(tc, origins_take_turns);
    tcase_add_test(tc, clients_take_turns);
    tcase_add_test(tc, a_client_that_returns_waits_again);
    tcase_add_test(tc, fewest_opening_first);
    tcase_add_test(tc, a_share_of_what_others_do_not_use);
    tcase_add_test(tc, an_origins_place_goes_to_a_flow_that_may_use_it);
    tcase_add_test(tc, streaming_ones_free_their_slots);
    tcase_add_test(tc, the_bound_of_a_client);
    tcase_add_test(tc, the_longest_queue_gives_way);
    tcase_add_test(tc, a_turn_is_handed_over);
    tcase_set_timeout(tc, 120);
    suite_add_tcase(suite, tc);
    return suite;
}
