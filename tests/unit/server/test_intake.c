/* Which bodies are given up when memory is short: times are the test's own. */
#include "server/intake.h"

#include <errno.h>

#include "tests/unit/unit.h"

#define SECOND ((int64_t)1000000)

enum { BODIES = 4 };

static struct memory_account account;
static struct intake intake;
static struct intake_body bodies[BODIES];
static struct client_key alice, bob;
static unsigned given_up[BODIES], count;
static int64_t now_us;
static const char bytes[1 << 20];

static void
give_up(struct intake_body *body)
{
    given_up[count++] = (unsigned)(body - bodies);
}

static bool
relieve(void *context, enum memory_kind kind, size_t want)
{
    (void)context;
    ck_assert_int_eq(kind, MEMORY_PAGES);
    return intake_shed(&intake, want, now_us) > 0;
}

static void
set_up(void)
{
    const struct memory_hooks hooks = {.relieve = relieve};

    memory_account_init(&account, UINT64_MAX, &hooks);
    intake_init(&intake);
    memset(bodies, 0, sizeof(bodies));
    alice = client_key_of_uid(1);
    bob = client_key_of_uid(2);
    count = 0;
    now_us = 100 * SECOND;
}

static void
tear_down(void)
{
    for (unsigned i = 0; i < BODIES; i++) {
        intake_remove(&intake, &bodies[i]);
        page_abandon(&bodies[i].builder);
    }
    ck_assert_uint_eq(memory_used(&account, MEMORY_PAGES), 0);
    ck_assert_uint_eq(intake.bytes, 0);
    ck_assert(LIST_EMPTY(&intake.clients));
}

static void
begin_for(unsigned i, const struct client_key *client)
{
    intake_ask(&intake, client);
    ck_assert(page_begin(&bodies[i].builder, &account, span_str("u"), span_of(NULL, 0),
                         span_of(NULL, 0), 200, 0, sizeof(bytes)));
    bodies[i].give_up = give_up;
    ck_assert(intake_add(&intake, &bodies[i], client, now_us));
}

static void
begin(unsigned i)
{
    begin_for(i, &alice);
}

static int
append(unsigned i, size_t len)
{
    return intake_append(&intake, &bodies[i], bytes, len, now_us);
}

START_TEST(the_largest_stalled_body_goes_first)
{
    for (unsigned i = 0; i < BODIES; i++)
        begin(i);
    ck_assert_int_eq(append(0, 1000), 0);
    ck_assert_int_eq(append(1, 200000), 0);
    ck_assert_int_eq(append(2, 100000), 0);
    now_us += SECOND / 2;
    ck_assert_int_eq(append(3, 500000), 0);
    now_us += SECOND / 2;
    /* A second is not more than a second. */
    ck_assert_uint_eq(intake_shed(&intake, 1, now_us), 0);
    now_us += 1;
    ck_assert_uint_ge(intake_shed(&intake, 1, now_us), 200000);
    ck_assert_uint_eq(count, 1);
    ck_assert_uint_eq(given_up[0], 1);
    ck_assert_ptr_null(bodies[1].builder.page);
    /* Then the others that have stalled, but not the one that has not. */
    ck_assert_uint_ge(intake_shed(&intake, SIZE_MAX, now_us), 101000);
    ck_assert_uint_eq(count, 3);
    ck_assert_uint_eq(given_up[1], 2);
    ck_assert_uint_eq(given_up[2], 0);
    ck_assert_ptr_nonnull(bodies[3].builder.page);
    ck_assert_uint_eq(intake_shed(&intake, 1, now_us), 0);
}
END_TEST

START_TEST(a_body_that_holds_much_has_to_grow_fast)
{
    begin(0);
    begin(1);
    ck_assert_int_eq(append(0, 640000), 0);
    ck_assert_int_eq(append(1, 64), 0);
    for (unsigned i = 0; i < 20; i++) {
        now_us += SECOND / 10;
        /* A trickle, and the same, which is much for what little there is. */
        ck_assert_int_eq(append(0, 4), 0);
        ck_assert_int_eq(append(1, 4), 0);
    }
    intake_shed(&intake, SIZE_MAX, now_us);
    ck_assert_uint_eq(count, 1);
    ck_assert_uint_eq(given_up[0], 0);

    /* A 64th a second is enough. */
    begin(2);
    ck_assert_int_eq(append(2, 640000), 0);
    for (unsigned i = 0; i < 20; i++) {
        now_us += SECOND / 10;
        ck_assert_int_eq(append(2, 1200), 0);
        ck_assert_int_eq(append(1, 10), 0);
    }
    ck_assert_uint_eq(intake_shed(&intake, SIZE_MAX, now_us), 0);
}
END_TEST

START_TEST(growing_sheds_others_and_never_itself)
{
    const struct memory_hooks hooks = {.relieve = relieve};

    /* Pages may take 300 KB. */
    memory_account_init(&account, 400000, &hooks);
    begin(0);
    ck_assert_int_eq(append(0, 130000), 0);
    now_us += 2 * SECOND;
    /* It has stalled, and grows now: nothing else is there to be shed. */
    ck_assert_int_eq(append(0, 200000), ENOBUFS);
    ck_assert_uint_eq(count, 0);
    ck_assert_uint_eq(bodies[0].builder.page->body_len, 130000);
    begin(1);
    ck_assert_int_eq(append(1, 130000), 0);
    ck_assert_int_eq(append(1, 130000), 0);
    ck_assert_uint_eq(count, 1);
    ck_assert_uint_eq(given_up[0], 0);
    ck_assert_uint_eq(bodies[1].builder.page->body_len, 260000);
}
END_TEST

START_TEST(a_body_that_is_complete_is_left_alone)
{
    struct page *page;

    begin(0);
    ck_assert_int_eq(append(0, 1000), 0);
    intake_remove(&intake, &bodies[0]);
    intake_remove(&intake, &bodies[0]);
    page = page_finish(&bodies[0].builder, 0, 0);
    now_us += 10 * SECOND;
    ck_assert_uint_eq(intake_shed(&intake, SIZE_MAX, now_us), 0);
    ck_assert_uint_eq(count, 0);
    page_release(&page);
}
END_TEST

START_TEST(a_client_with_bodies_that_grow_holds_no_more_than_another_asks_for)
{
    const struct memory_hooks hooks = {.relieve = relieve};

    /* Pages may take 300 KB. */
    memory_account_init(&account, 400000, &hooks);
    begin(0);
    begin(1);
    ck_assert_int_eq(append(0, 130000), 0);
    ck_assert_int_eq(append(1, 60000), 0);
    /* Neither has stalled. What asks for the same client is refused, and ends nothing. */
    intake_ask(&intake, &alice);
    ck_assert(!memory_charge(&account, MEMORY_PAGES, 110000));
    ck_assert_uint_eq(count, 0);
    /* The other client's first body has the largest one ended, */
    begin_for(2, &bob);
    ck_assert_int_eq(append(2, 100000), 0);
    ck_assert_uint_eq(count, 1);
    ck_assert_uint_eq(given_up[0], 0);
    ck_assert_ptr_null(bodies[0].builder.page);
    /* and by now it has more itself, so its next one is refused. */
    intake_ask(&intake, &bob);
    ck_assert(!memory_charge(&account, MEMORY_PAGES, 120000));
    ck_assert_uint_eq(count, 1);
    ck_assert_ptr_nonnull(bodies[1].builder.page);
    /* Nor does one ask for so much that it would then hold more than the other does now. */
    intake_remove(&intake, &bodies[2]);
    page_abandon(&bodies[2].builder);
    ck_assert_uint_eq(intake_shed(&intake, 131072, now_us), 0);
    ck_assert_uint_ge(intake_shed(&intake, 1000, now_us), 60000);
    ck_assert_uint_eq(given_up[1], 1);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("server/intake");
    TCase *tests = tcase_create("intake");

    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, the_largest_stalled_body_goes_first);
    tcase_add_test(tests, a_body_that_holds_much_has_to_grow_fast);
    tcase_add_test(tests, growing_sheds_others_and_never_itself);
    tcase_add_test(tests, a_body_that_is_complete_is_left_alone);
    tcase_add_test(tests, a_client_with_bodies_that_grow_holds_no_more_than_another_asks_for);
    suite_add_tcase(suite, tests);
    return suite;
}
