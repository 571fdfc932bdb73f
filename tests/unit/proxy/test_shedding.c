/* Which bodies are given up when memory is short: alone, and with objects and fetches. */
#define UNIT_STARTS_NO_THREAD

#include "proxy/shedding.h"

#include "tests/unit/proxy/scene.h"

enum { BODIES = 4 };

static struct shedding shedding;
static struct shedding_body bodies[BODIES];
static size_t lengths[BODIES];
static struct client *alice, *bob;
static unsigned given_up[BODIES], count;
static int64_t now_us;

static void
give_up(struct shedding_body *body)
{
    given_up[count++] = (unsigned)(body - bodies);
    ck_assert_ptr_null(body->client);
}

static void
set_up(void)
{
    shedding_init(&shedding);
    memset(bodies, 0, sizeof(bodies));
    memset(lengths, 0, sizeof(lengths));
    alice = unit_client(1);
    bob = unit_client(2);
    count = 0;
    now_us = 100 * SECOND;
}

static void
tear_down(void)
{
    for (unsigned i = 0; i < BODIES; i++)
        shedding_remove(&shedding, &bodies[i]);
    ck_assert_uint_eq(shedding.bytes, 0);
    ck_assert(LIST_EMPTY(&shedding.clients));
    ck_assert(TAILQ_EMPTY(&shedding.bodies));
    shedding_free(&shedding);
    ck_assert(unit_clients_are_idle());
}

static void
begin_for(unsigned i, struct client *client)
{
    shedding_charge_for(&shedding, client, NULL);
    bodies[i].give_up = give_up;
    shedding_add(&shedding, &bodies[i], client, 100, now_us);
}

static void
grow(unsigned i, size_t len)
{
    lengths[i] += len;
    shedding_grow(&shedding, &bodies[i], 100 + lengths[i], lengths[i], now_us);
}

static size_t
shed(size_t bytes)
{
    return shedding_shed(&shedding, bytes, now_us);
}

START_TEST(the_largest_stalled_body_goes_first)
{
    for (unsigned i = 0; i < BODIES; i++)
        begin_for(i, alice);
    grow(0, 1000);
    grow(1, 200000);
    grow(2, 100000);
    now_us += SECOND / 2;
    grow(3, 500000);
    now_us += SECOND / 2;
    /* A second is not more than a second. */
    ck_assert_uint_eq(shed(1), 0);
    now_us += 1;
    ck_assert_uint_eq(shed(1), 200100);
    ck_assert_uint_eq(count, 1);
    ck_assert_uint_eq(given_up[0], 1);
    /* Then the others that have stalled, but not the one that has not. */
    ck_assert_uint_eq(shed(SIZE_MAX), 101200);
    ck_assert_uint_eq(count, 3);
    ck_assert_uint_eq(given_up[1], 2);
    ck_assert_uint_eq(given_up[2], 0);
    ck_assert_uint_eq(shed(1), 0);
}
END_TEST

START_TEST(a_body_that_holds_much_has_to_grow_fast)
{
    begin_for(0, alice);
    begin_for(1, alice);
    grow(0, 640000);
    grow(1, 64);
    for (unsigned i = 0; i < 20; i++) {
        now_us += SECOND / 10;
        /* A trickle, and the same, which is much in relation to a small body. */
        grow(0, 4);
        grow(1, 4);
    }
    shed(SIZE_MAX);
    ck_assert_uint_eq(count, 1);
    ck_assert_uint_eq(given_up[0], 0);

    /* A 64th a second is enough. */
    begin_for(2, alice);
    grow(2, 640000);
    for (unsigned i = 0; i < 20; i++) {
        now_us += SECOND / 10;
        grow(2, 1200);
        grow(1, 10);
    }
    ck_assert_uint_eq(shed(SIZE_MAX), 0);
}
END_TEST

START_TEST(the_body_that_grows_is_spared)
{
    begin_for(0, alice);
    grow(0, 130000);
    now_us += 2 * SECOND;
    shedding_charge_for(&shedding, alice, &bodies[0]);
    ck_assert_uint_eq(shed(1), 0);
    /* That ends with its growth, here by nothing. */
    grow(0, 0);
    ck_assert_uint_eq(shed(1), 130100);
}
END_TEST

START_TEST(a_body_that_is_complete_is_left_alone)
{
    begin_for(0, alice);
    grow(0, 1000);
    shedding_remove(&shedding, &bodies[0]);
    shedding_remove(&shedding, &bodies[0]);
    now_us += 10 * SECOND;
    ck_assert_uint_eq(shed(SIZE_MAX), 0);
    ck_assert_uint_eq(count, 0);
}
END_TEST

START_TEST(a_client_with_bodies_that_grow_holds_no_more_than_another_asks_for)
{
    begin_for(0, alice);
    begin_for(1, alice);
    grow(0, 130000);
    grow(1, 60000);
    /* Neither has stalled. What is charged for the same client ends nothing. */
    ck_assert_uint_eq(shed(110000), 0);
    /* The other client's first body has the largest one ended, */
    begin_for(2, bob);
    ck_assert_uint_eq(shed(100000), 130100);
    ck_assert_uint_eq(given_up[0], 0);
    grow(2, 100000);
    /* and by now it has more itself. */
    ck_assert_uint_eq(shed(120000), 0);
    /* Nor does it get as much as the other has now. */
    shedding_remove(&shedding, &bodies[2]);
    ck_assert_uint_eq(shed(131072), 0);
    ck_assert_uint_eq(shed(1000), 60100);
    ck_assert_uint_eq(given_up[1], 1);
}
END_TEST

/* ---- with objects and fetches ---------------------------------------------------------------- */

/* Five eighths, 6 MiB, are for objects. */
#define LIMIT (48 * MIB / 5)

static struct scene_fetch *
begin_body(struct visit *v, const char *url, unsigned client, size_t len)
{
    struct scene_fetch *fetch;

    visit_url(v, url, client);
    fetch = scene_fetch(url);
    fetch->sink->begin(fetch->context);
    scene_response(fetch, "", false);
    ck_assert_int_eq(scene_head(fetch, 200, "", -1), FETCH_CONTINUE);
    for (; len; len -= MIB / 16)
        ck_assert_int_eq(scene_body(fetch, MIB / 16), FETCH_CONTINUE);
    return fetch;
}

START_TEST(a_stalled_body_fails_at_once_for_a_fetch_that_needs_its_memory)
{
    struct visit stalled[2] = {{0}}, v = {0};
    struct scene_fetch *first, *second;

    scene_begin(&(struct scene_options){.memory = LIMIT, .max_body = LIMIT});
    first = begin_body(&stalled[0], "http://a.test/", 1, 4 * MIB);
    visit_url(&stalled[1], "http://a.test/", 2);
    scene.now_us += 2 * SECOND;
    /* Of the same client, whose share alone would spare it. */
    second = begin_body(&v, "http://b.test/", 1, 4 * MIB);
    ck_assert(first->cancelled);
    ck_assert(!second->cancelled);
    /* The waiters need not wait for the fetch's end, and a new request fetches. */
    scene_run();
    expect_failure(&stalled[0], FAILURE_OVERLOADED, "too many bytes are being fetched");
    expect_failure(&stalled[1], FAILURE_OVERLOADED, "too many bytes are being fetched");
    scene_done(second, FETCH_OK, "");
    scene_run();
    expect_body(&v, OUTCOME_MISS, 4 * MIB);
    visit_url(&v, "http://a.test/", 3);
    ck_assert_uint_eq(scene_fetches(), 2);
    scene_done(first, FETCH_CANCELLED, "cancelled");
    ck_assert_int_eq(scene.fetched.failure, FAILURE_OVERLOADED);
    ck_assert_ptr_nonnull(strstr(scene.fetched_sentence, "too many bytes"));
    scene_respond("http://a.test/", "", 5);
    expect_body(&v, OUTCOME_MISS, 5);
    scene_end();
}
END_TEST

START_TEST(a_body_that_gets_no_memory_fails_at_once)
{
    struct visit v = {0};
    struct scene_fetch *fetch;
    enum fetch_flow flow = FETCH_CONTINUE;

    scene_begin(&(struct scene_options){.memory = LIMIT, .max_body = LIMIT});
    fetch = begin_body(&v, "http://a.test/", 1, 4 * MIB);
    scene.now_us += 2 * SECOND;
    /* It is stalled, but it is the one that grows. */
    for (unsigned i = 0; i < 40 && flow == FETCH_CONTINUE; i++)
        flow = scene_body(fetch, MIB / 16);
    ck_assert_int_eq(flow, FETCH_ABORT);
    ck_assert(!fetch->cancelled);
    scene_run();
    expect_failure(&v, FAILURE_OVERLOADED, "too many bytes are being fetched");
    ck_assert_uint_eq(memory_used(&scene.account, MEMORY_PAGES), 0);
    scene_done(fetch, FETCH_INTERNAL, "aborted");
    scene_end();
}
END_TEST

START_TEST(a_head_that_gets_no_memory_fails_at_once)
{
    struct visit v = {0};
    struct scene_fetch *fetch;
    size_t left;

    scene_begin(&(struct scene_options){.memory = LIMIT, .max_body = LIMIT});
    visit_url(&v, "http://a.test/", 1);
    fetch = scene_fetch(NULL);
    left = (size_t)memory_left(&scene.account, MEMORY_PAGES) - 10;
    memory_charge_anyway(&scene.account, MEMORY_PAGES, left);
    ck_assert_int_eq(scene_head(fetch, 200, "", 1000), FETCH_ABORT);
    memory_uncharge(&scene.account, MEMORY_PAGES, left);
    scene_done(fetch, FETCH_INTERNAL, "aborted");
    scene_run();
    expect_failure(&v, FAILURE_OVERLOADED, "too many bytes are being fetched");
    scene_end();
}
END_TEST

START_TEST(a_body_of_the_client_with_most_is_given_up_for_another)
{
    struct visit v[3] = {{0}};
    struct scene_fetch *first, *second, *third;

    scene_begin(&(struct scene_options){.memory = LIMIT, .max_body = LIMIT});
    first = begin_body(&v[0], "http://a.test/", 1, 2 * MIB);
    second = begin_body(&v[1], "http://b.test/", 1, 3 * MIB);
    third = begin_body(&v[2], "http://c.test/", 2, 2 * MIB);
    ck_assert(!first->cancelled && second->cancelled && !third->cancelled);
    scene_done(second, FETCH_CANCELLED, "");
    scene_done(first, FETCH_OK, "");
    scene_done(third, FETCH_OK, "");
    scene_run();
    expect_body(&v[0], OUTCOME_MISS, 2 * MIB);
    expect_failure(&v[1], FAILURE_OVERLOADED, "too many bytes");
    expect_body(&v[2], OUTCOME_MISS, 2 * MIB);
    scene_end();
}
END_TEST

/* The copy of a complete body in one piece is optional. */
START_TEST(no_body_is_given_up_for_a_copy_at_a_fetchs_end)
{
    struct visit stalled = {0}, v = {0};
    struct scene_fetch *first, *second;
    size_t left;

    scene_begin(&(struct scene_options){.memory = LIMIT, .max_body = LIMIT});
    first = begin_body(&stalled, "http://a.test/", 1, 3 * MIB);
    second = begin_body(&v, "http://b.test/", 2, 3 * MIB / 16);
    scene.now_us += 2 * SECOND;
    left = (size_t)memory_left(&scene.account, MEMORY_PAGES) - 1000;
    memory_charge_anyway(&scene.account, MEMORY_PAGES, left);
    scene_done(second, FETCH_OK, "");
    ck_assert(!first->cancelled);
    memory_uncharge(&scene.account, MEMORY_PAGES, left);
    scene_run();
    expect_body(&v, OUTCOME_MISS, 3 * MIB / 16);
    ck_assert(v.stored);
    scene_done(first, FETCH_OK, "");
    scene_run();
    expect_body(&stalled, OUTCOME_MISS, 3 * MIB);
    scene_end();
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("proxy: shedding");
    TCase *alone = tcase_create("alone"), *whole = tcase_create("with objects");

    tcase_add_checked_fixture(alone, set_up, tear_down);
    tcase_add_test(alone, the_largest_stalled_body_goes_first);
    tcase_add_test(alone, a_body_that_holds_much_has_to_grow_fast);
    tcase_add_test(alone, the_body_that_grows_is_spared);
    tcase_add_test(alone, a_body_that_is_complete_is_left_alone);
    tcase_add_test(alone, a_client_with_bodies_that_grow_holds_no_more_than_another_asks_for);
    suite_add_tcase(suite, alone);
    tcase_add_test(whole, a_stalled_body_fails_at_once_for_a_fetch_that_needs_its_memory);
    tcase_add_test(whole, a_body_that_gets_no_memory_fails_at_once);
    tcase_add_test(whole, a_head_that_gets_no_memory_fails_at_once);
    tcase_add_test(whole, a_body_of_the_client_with_most_is_given_up_for_another);
    tcase_add_test(whole, no_body_is_given_up_for_a_copy_at_a_fetchs_end);
    suite_add_tcase(suite, whole);
    return suite;
}
