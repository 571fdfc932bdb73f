/* Fetches by number. */
#define UNIT_STARTS_NO_THREAD

#include "fetch/registry.h"

#include "tests/unit/unit.h"

START_TEST(numbers_are_found_until_removed)
{
    static int fetches[1000];
    static uint64_t ids[1000];
    struct registry registry = {0};

    ck_assert_ptr_null(registry_find(&registry, 0));
    for (unsigned i = 0; i < 1000; i++) {
        ck_assert(registry_add(&registry, &fetches[i], &ids[i]));
        ck_assert_uint_gt(ids[i], 0);
    }
    for (unsigned i = 0; i < 1000; i += 2)
        registry_remove(&registry, ids[i]);
    for (unsigned i = 0; i < 1000; i++)
        ck_assert_ptr_eq(registry_find(&registry, ids[i]), i % 2 ? &fetches[i] : NULL);
    ck_assert_ptr_null(registry_find(&registry, UINT64_MAX));
    registry_free(&registry);
}
END_TEST

/* The memory of a fetch that has ended serves another one, but its number does not. */
START_TEST(numbers_are_not_used_again)
{
    struct registry registry = {0};
    uint64_t first, id;
    int a, b;

    ck_assert(registry_add(&registry, &a, &first));
    id = first;
    for (unsigned i = 0; i < 1000; i++) {
        uint64_t before = id;

        registry_remove(&registry, id);
        registry_remove(&registry, id);
        ck_assert(registry_add(&registry, &b, &id));
        ck_assert_uint_ne(id, before);
        ck_assert_uint_ne(id, first);
        ck_assert_ptr_null(registry_find(&registry, first));
        registry_remove(&registry, first);
        ck_assert_ptr_eq(registry_find(&registry, id), &b);
    }
    ck_assert_uint_eq(registry.size, 64);
    registry_free(&registry);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("fetch/registry");
    TCase *tc = tcase_create("registry");

    tcase_add_test(tc, numbers_are_found_until_removed);
    tcase_add_test(tc, numbers_are_not_used_again);
    suite_add_tcase(suite, tc);
    return suite;
}
