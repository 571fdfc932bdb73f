/* Clients without memory: none is found, and those that are there stay. */
#include "base/clients.h"
#include "tests/unit/torture.h"
#include "tests/unit/unit.h"

static void
tear_down(void)
{
    torture_fail_at(0);
}

START_TEST(no_table_without_memory)
{
    torture_fail_at(1);
    ck_assert_ptr_null(clients_create(&(struct clients_config){0}));
    ck_assert(torture_failed());
}
END_TEST

START_TEST(a_client_that_cannot_be_counted_is_not_found)
{
    struct clients *table = clients_create(&(struct clients_config){0});
    struct client *client = clients_find_uid(table, 1, 0), *again;

    torture_fail_at(1);
    ck_assert_ptr_null(clients_find_uid(table, 2, 0));
    ck_assert(torture_failed());
    torture_fail_at(1);
    again = clients_find_uid(table, 1, 0);
    ck_assert_ptr_eq(again, client);
    torture_fail_at(0);
    client_release(&client);
    client_release(&again);
    clients_destroy(table);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("base/clients without memory");
    TCase *tests = tcase_create("clients");

    tcase_add_checked_fixture(tests, NULL, tear_down);
    tcase_add_test(tests, no_table_without_memory);
    tcase_add_test(tests, a_client_that_cannot_be_counted_is_not_found);
    suite_add_tcase(suite, tests);
    return suite;
}
