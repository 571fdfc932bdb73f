/* A tally without memory: nothing is counted, and the caller learns why. */
#include <errno.h>

#include "base/client_tally.h"
#include "tests/unit/torture.h"
#include "tests/unit/unit.h"

static struct memory_account account;

static void
set_up(void)
{
    memory_account_init(&account, 8000, NULL);
}

static void
tear_down(void)
{
    torture_fail_at(0);
}

START_TEST(no_tally_without_memory)
{
    torture_fail_at(1);
    ck_assert_ptr_null(client_tally_create(&account, MEMORY_REQUESTS));
    ck_assert(torture_failed());
}
END_TEST

START_TEST(a_client_that_cannot_be_counted_is_refused)
{
    struct client_tally *tally = client_tally_create(&account, MEMORY_REQUESTS);
    struct client_key client = client_key_of_uid(1);

    torture_fail_at(1);
    ck_assert(!client_tally_take(tally, &client, 1));
    ck_assert_int_eq(errno, ENOMEM);
    ck_assert_uint_eq(client_tally_clients(tally), 0);
    ck_assert(client_tally_take(tally, &client, 1));
    client_tally_give_back(tally, &client, 1);
    client_tally_destroy(tally);
    client_tally_destroy(NULL);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("base/client_tally without memory");
    TCase *tests = tcase_create("client_tally");

    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, no_tally_without_memory);
    tcase_add_test(tests, a_client_that_cannot_be_counted_is_refused);
    suite_add_tcase(suite, tests);
    return suite;
}
