/* Allocations that fail and are tried once more, after the owner has freed memory. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory_account.h"
#include "tests/unit/torture.h"
#include "tests/unit/unit.h"

static size_t asked_for;
static unsigned asked;
static bool helps;

static bool
reclaim(void *context, size_t bytes)
{
    ck_assert_ptr_eq(context, &asked);
    asked_for = bytes;
    asked++;
    return helps;
}

static struct memory_account account;

static void
set_up(void)
{
    const struct memory_hooks hooks = {.reclaim = reclaim, .context = &asked};

    memory_account_init(&account, 800, &hooks);
    asked = 0;
}

static void
tear_down(void)
{
    torture_fail_at(0);
}

START_TEST(a_failed_allocation_is_tried_once_more)
{
    char *bytes;

    helps = true;
    torture_fail_at(1);
    bytes = memory_calloc(&account, 100);
    ck_assert_ptr_nonnull(bytes);
    ck_assert(torture_failed());
    ck_assert_uint_eq(asked_for, 100);
    for (unsigned i = 0; i < 100; i++)
        ck_assert_int_eq(bytes[i], 0);
    memset(bytes, 'x', 100);
    torture_fail_at(1);
    bytes = memory_realloc(&account, bytes, 5000);
    ck_assert_ptr_nonnull(bytes);
    ck_assert_uint_eq(asked_for, 5000);
    ck_assert_int_eq(bytes[99], 'x');
    ck_assert_uint_eq(asked, 2);
    /* No failure, no question. */
    bytes = memory_realloc(&account, bytes, 6000);
    ck_assert_ptr_nonnull(bytes);
    ck_assert_uint_eq(asked, 2);
    free(bytes);
}
END_TEST

START_TEST(it_fails_where_nothing_can_be_freed)
{
    helps = false;
    torture_fail_at(1);
    errno = 0;
    ck_assert_ptr_null(memory_realloc(&account, NULL, 100));
    ck_assert_int_eq(errno, ENOMEM);
    torture_fail_at(1);
    ck_assert_ptr_null(memory_calloc(&account, 100));
    ck_assert_uint_eq(asked, 2);
    torture_fail_at(1);
    ck_assert_ptr_null(memory_calloc(NULL, 100));
    ck_assert(!memory_reclaim(NULL, 100));
    ck_assert_uint_eq(asked, 2);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("base/memory_account, torture");
    TCase *tests = tcase_create("reclaim");

    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, a_failed_allocation_is_tried_once_more);
    tcase_add_test(tests, it_fails_where_nothing_can_be_freed);
    suite_add_tcase(suite, tests);
    return suite;
}
