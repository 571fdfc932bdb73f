/* The account of memory beside a model of it, and under threads. */
#include "base/memory_account.h"

#include <pthread.h>

#include "tests/unit/unit.h"

static struct memory_account account;

static uint64_t
used_in_all(void)
{
    uint64_t sum = 0;

    for (unsigned kind = 0; kind < MEMORY_KINDS; kind++)
        sum += memory_used(&account, (enum memory_kind)kind);
    return sum;
}

START_TEST(the_shares_add_up_to_the_limit)
{
    static const uint64_t limits[] = {0, 1, 7, 8, 33554432, 1073741825, UINT64_MAX};

    for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
        int64_t sum = 0;

        memory_account_init(&account, limits[i], NULL);
        for (unsigned group = 0; group < MEMORY_GROUPS; group++)
            sum += account.groups[group].share;
        ck_assert_uint_eq((uint64_t)sum, limits[i] > INT64_MAX ? INT64_MAX : limits[i]);
    }
}
END_TEST

START_TEST(a_group_takes_nothing_from_another)
{
    memory_account_init(&account, 800, NULL);
    ck_assert(memory_charge(&account, MEMORY_RECORDS, 100));
    ck_assert(memory_is_full(&account, MEMORY_RECORDS));
    ck_assert(!memory_charge(&account, MEMORY_RECORDS, 1));
    ck_assert(memory_charge(&account, MEMORY_RECORDS, 0));
    ck_assert(memory_charge(&account, MEMORY_REQUESTS, 60));
    /* The same group. */
    ck_assert(!memory_charge(&account, MEMORY_REPLIES, 41));
    ck_assert(memory_charge(&account, MEMORY_REPLIES, 40));
    ck_assert(memory_charge(&account, MEMORY_FETCHES, 1));
    ck_assert(!memory_charge(&account, MEMORY_PAGES, 500));
    ck_assert(memory_charge(&account, MEMORY_PAGES, 499));
    ck_assert(memory_charge(&account, MEMORY_FAILED, 100));
    ck_assert_uint_eq(used_in_all(), 800);
    ck_assert_uint_eq(memory_refusals(&account), 3);
    ck_assert(!memory_charge(&account, MEMORY_PAGES, SIZE_MAX));
    memory_uncharge(&account, MEMORY_RECORDS, 1);
    ck_assert(!memory_is_full(&account, MEMORY_RECORDS));
    ck_assert(memory_charge(&account, MEMORY_RECORDS, 1));
}
END_TEST

START_TEST(what_exists_already_is_charged_in_any_case)
{
    memory_account_init(&account, 800, NULL);
    memory_charge_anyway(&account, MEMORY_PAGES, 1000);
    ck_assert_uint_eq(memory_used(&account, MEMORY_PAGES), 1000);
    ck_assert(!memory_charge(&account, MEMORY_PAGES, 0));
    memory_uncharge(&account, MEMORY_PAGES, 500);
    ck_assert(memory_charge(&account, MEMORY_PAGES, 0));
    /* Below zero, where a page has been uncharged before it is charged again. */
    memory_uncharge(&account, MEMORY_PAGES, 600);
    ck_assert_uint_eq(memory_used(&account, MEMORY_PAGES), 0);
    memory_charge_anyway(&account, MEMORY_PAGES, 150);
    ck_assert_uint_eq(memory_used(&account, MEMORY_PAGES), 50);
}
END_TEST

START_TEST(the_limit_may_change)
{
    struct memory_account changed;

    memory_account_init(&changed, 800, NULL);
    ck_assert(memory_charge(&changed, MEMORY_RECORDS, 100));
    ck_assert(!memory_charge(&changed, MEMORY_RECORDS, 1));
    memory_account_set_limit(&changed, 1600);
    ck_assert(memory_charge(&changed, MEMORY_RECORDS, 100));
    ck_assert_uint_eq(memory_left(&changed, MEMORY_PAGES), 1000);
    memory_account_set_limit(&changed, 80);
    ck_assert(memory_is_full(&changed, MEMORY_RECORDS));
    ck_assert_uint_eq(memory_left(&changed, MEMORY_RECORDS), 0);
    memory_uncharge(&changed, MEMORY_RECORDS, 191);
    ck_assert(memory_charge(&changed, MEMORY_RECORDS, 1));
    ck_assert(!memory_charge(&changed, MEMORY_RECORDS, 1));
}
END_TEST

START_TEST(no_account_counts_nothing)
{
    ck_assert(memory_charge(NULL, MEMORY_PAGES, SIZE_MAX));
    memory_charge_anyway(NULL, MEMORY_PAGES, 1);
    memory_uncharge(NULL, MEMORY_PAGES, 1);
    ck_assert(!memory_is_full(NULL, MEMORY_PAGES));
    ck_assert_uint_eq(memory_used(NULL, MEMORY_PAGES), 0);
    ck_assert_uint_eq(memory_refusals(NULL), 0);
    ck_assert(!memory_reclaim(NULL, 1));
}
END_TEST

/* Charges drawn by chance, beside the same rules on plain numbers. */
START_TEST(it_agrees_with_a_model)
{
    static const unsigned group_of[MEMORY_KINDS] = {0, 0, 1, 2, 2, 3};
    static const int64_t share_of[MEMORY_GROUPS] = {5000, 1000, 1000, 1000};
    int64_t kinds[MEMORY_KINDS] = {0}, groups[MEMORY_GROUPS] = {0};
    uint64_t state = 1, refusals = 0;

    memory_account_init(&account, 8000, NULL);
    for (unsigned step = 0; step < 200000; step++) {
        unsigned kind = unit_draw(&state, MEMORY_KINDS), group = group_of[kind];
        int64_t bytes = unit_draw(&state, 700);

        if (unit_draw(&state, 2) == 0) {
            bool fits = groups[group] + bytes <= share_of[group];

            ck_assert_int_eq(memory_charge(&account, (enum memory_kind)kind, (size_t)bytes), fits);
            refusals += !fits;
            if (!fits)
                bytes = 0;
        } else if (unit_draw(&state, 20) == 0) {
            memory_charge_anyway(&account, (enum memory_kind)kind, (size_t)bytes);
        } else {
            bytes = bytes > kinds[kind] ? kinds[kind] : bytes;
            memory_uncharge(&account, (enum memory_kind)kind, (size_t)bytes);
            bytes = -bytes;
        }
        kinds[kind] += bytes;
        groups[group] += bytes;
        ck_assert_uint_eq(memory_used(&account, (enum memory_kind)kind), (uint64_t)kinds[kind]);
        ck_assert_int_eq(memory_is_full(&account, (enum memory_kind)kind),
                         groups[group] >= share_of[group]);
    }
    ck_assert_uint_eq(memory_refusals(&account), refusals);
    ck_assert_uint_gt(refusals, 1000);
}
END_TEST

/* ---- hooks ----------------------------------------------------------------------------------- */

static unsigned asked;
static bool helps;

static bool
relieve(void *context, enum memory_kind kind, size_t bytes)
{
    ck_assert_ptr_eq(context, &asked);
    ck_assert_int_eq(kind, MEMORY_PAGES);
    ck_assert_uint_eq(bytes, 50);
    asked++;
    if (helps)
        memory_uncharge(&account, kind, bytes);
    return helps;
}

START_TEST(the_owner_may_free_what_a_charge_needs)
{
    const struct memory_hooks hooks = {.relieve = relieve, .context = &asked};

    memory_account_init(&account, 96, &hooks);
    asked = 0;
    helps = false;
    ck_assert(memory_charge(&account, MEMORY_PAGES, 60));
    ck_assert_uint_eq(asked, 0);
    ck_assert(!memory_charge(&account, MEMORY_PAGES, 50));
    ck_assert_uint_eq(asked, 1);
    helps = true;
    ck_assert(memory_charge(&account, MEMORY_PAGES, 50));
    ck_assert_uint_eq(asked, 2);
    ck_assert_uint_eq(memory_used(&account, MEMORY_PAGES), 60);
    ck_assert_uint_eq(memory_refusals(&account), 1);
}
END_TEST

/* ---- threads --------------------------------------------------------------------------------- */

enum { THREADS = 4, ROUNDS = 20000, LIMIT = 8000 };

static atomic_bool exceeded;

static void *
charge_and_uncharge(void *argument)
{
    uint64_t state = (uint64_t)(uintptr_t)argument;

    for (unsigned round = 0; round < ROUNDS; round++) {
        enum memory_kind kind = (enum memory_kind)unit_draw(&state, MEMORY_KINDS);
        size_t bytes = unit_draw(&state, 900);

        if (!memory_charge(&account, kind, bytes))
            continue;
        for (unsigned group = 0; group < MEMORY_GROUPS; group++)
            if (atomic_load(&account.groups[group].used) > account.groups[group].share)
                atomic_store(&exceeded, true);
        memory_uncharge(&account, kind, bytes);
    }
    return NULL;
}

START_TEST(threads_never_exceed_the_limit_together)
{
    pthread_t threads[THREADS];

    memory_account_init(&account, LIMIT, NULL);
    atomic_store(&exceeded, false);
    for (uintptr_t i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, charge_and_uncharge, (void *)(i + 1)),
                         0);
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (unsigned group = 0; group < MEMORY_GROUPS; group++)
        ck_assert_int_eq(atomic_load(&account.groups[group].used), 0);
    ck_assert_uint_eq(used_in_all(), 0);
    ck_assert(!atomic_load(&exceeded));
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("base/memory_account");
    TCase *tests = tcase_create("account");

    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, the_shares_add_up_to_the_limit);
    tcase_add_test(tests, a_group_takes_nothing_from_another);
    tcase_add_test(tests, what_exists_already_is_charged_in_any_case);
    tcase_add_test(tests, the_limit_may_change);
    tcase_add_test(tests, no_account_counts_nothing);
    tcase_add_test(tests, it_agrees_with_a_model);
    tcase_add_test(tests, the_owner_may_free_what_a_charge_needs);
    tcase_add_test(tests, threads_never_exceed_the_limit_together);
    suite_add_tcase(suite, tests);
    return suite;
}
