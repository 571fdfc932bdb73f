/*
 * The parts that policies with queues share: lists and ghosts.
 */
#include "policies/ghost.h"
#include "policies/list.h"

#include <stdlib.h>
#include <string.h>

#include "tests/unit/unit.h"

/* ---- lists ----------------------------------------------------------------------------------- */

struct item {
    struct list_node links;
    uint64_t bytes;
};

static uint64_t
item_bytes(const void *node)
{
    return ((const struct item *)node)->bytes;
}

START_TEST(a_list_from_both_ends)
{
    struct item a = {.bytes = 1}, b = {.bytes = 20}, c = {.bytes = 300};
    struct list list;

    list_init(&list);
    ck_assert_ptr_null(list_first(&list));
    ck_assert_ptr_null(list_last(&list));
    ck_assert(list_is_valid(&list, item_bytes));
    list_add_last(&list, &b, 20);
    list_add_first(&list, &a, 1);
    list_add_last(&list, &c, 300);
    ck_assert_uint_eq(list.pages, 3);
    ck_assert_uint_eq(list.bytes, 321);
    ck_assert_ptr_eq(list_first(&list), &a);
    ck_assert_ptr_eq(list_next(&list, &a), &b);
    ck_assert_ptr_eq(list_prev(&list, &c), &b);
    ck_assert_ptr_null(list_next(&list, &c));
    ck_assert_ptr_null(list_prev(&list, &a));
    list_move_last(&list, &a);
    list_move_first(&list, &c);
    ck_assert_ptr_eq(list_first(&list), &c);
    ck_assert_ptr_eq(list_last(&list), &a);
    ck_assert(list_is_valid(&list, item_bytes));
    list_remove(&list, &b, 20);
    ck_assert_ptr_eq(list_next(&list, &c), &a);
    ck_assert_uint_eq(list.bytes, 301);
    ck_assert(list_is_valid(&list, item_bytes));
}
END_TEST

START_TEST(list_validity_notices_what_is_wrong)
{
    struct item a = {.bytes = 1}, b = {.bytes = 2};
    struct list list;

    list_init(&list);
    list_add_last(&list, &a, 1);
    list_add_last(&list, &b, 2);
    a.bytes = 2;
    ck_assert(!list_is_valid(&list, item_bytes));
    a.bytes = 1;
    list.pages = 1;
    ck_assert(!list_is_valid(&list, item_bytes));
    list.pages = 3;
    ck_assert(!list_is_valid(&list, item_bytes));
    list.pages = 2;
    ck_assert(list_is_valid(&list, item_bytes));
    a.links.next = &a.links; /* a ring that never comes back */
    ck_assert(!list_is_valid(&list, item_bytes));
}
END_TEST

/* ---- ghosts ---------------------------------------------------------------------------------- */

START_TEST(the_oldest_are_forgotten)
{
    struct ghost ghost;

    ghost_init(&ghost, 3, 100);
    ck_assert(!ghost_has(&ghost, 1));
    ck_assert(!ghost_take(&ghost, 1));
    ghost_drop_oldest(&ghost);
    ghost_add(&ghost, 1, 10);
    ghost_add(&ghost, 2, 10);
    ghost_add(&ghost, 3, 10);
    ghost_add(&ghost, 1, 10); /* stays the oldest */
    ck_assert_uint_eq(ghost.pages, 3);
    ghost_add(&ghost, 4, 10);
    ck_assert(!ghost_has(&ghost, 1) && ghost_has(&ghost, 2));
    ghost_add(&ghost, 5, 85); /* bytes: only one of 10 may stay */
    ck_assert(!ghost_has(&ghost, 3) && ghost_has(&ghost, 4) && ghost_has(&ghost, 5));
    ck_assert_uint_eq(ghost.bytes, 95);
    ghost_add(&ghost, 6, 101); /* never fits, and evicts nothing */
    ck_assert_uint_eq(ghost.pages, 2);
    ck_assert(ghost_take(&ghost, 4));
    ck_assert(!ghost_take(&ghost, 4));
    ck_assert_uint_eq(ghost.bytes, 85);
    ck_assert(ghost_is_valid(&ghost));
    ghost_free(&ghost);
}
END_TEST

/* Each sum and each end that disagrees with the entries is noticed. */
START_TEST(ghost_validity_notices_what_is_wrong)
{
    struct ghost ghost, whole;

    ghost_init(&ghost, 8, 100);
    ck_assert_uint_eq(ghost_oldest_bytes(&ghost), 0);
    for (uint64_t key = 1; key <= 5; key++)
        ghost_add(&ghost, key, 10);
    ck_assert(ghost_take(&ghost, 2));
    ck_assert(ghost_is_valid(&ghost));
    whole = ghost;

#define WRONG(member, value)                \
    do {                                    \
        ghost.member = (value);             \
        ck_assert(!ghost_is_valid(&ghost)); \
        ghost = whole;                      \
        ck_assert(ghost_is_valid(&ghost));  \
    } while (0)

    WRONG(pages, 5);
    WRONG(bytes, 41);
    WRONG(newest, ghost.oldest);
    WRONG(oldest, ghost.newest);
    WRONG(unused, 0);
    WRONG(used, ghost.used - 1);
    WRONG(max_pages, 3);
    WRONG(max_bytes, 39);
    WRONG(allocated, 1);
#undef WRONG
    ghost_free(&ghost);
}
END_TEST

START_TEST(what_has_no_bytes_weighs_one)
{
    struct ghost ghost;

    ghost_init(&ghost, UINT64_MAX, 10);
    for (uint64_t key = 0; key < 50; key++)
        ghost_add(&ghost, key, 0);
    ck_assert_uint_eq(ghost.pages, 10);
    ck_assert(ghost_has(&ghost, 40) && !ghost_has(&ghost, 39));
    ghost_limit(&ghost, 4, 10);
    ck_assert(ghost_has(&ghost, 46) && !ghost_has(&ghost, 45));
    ghost_limit(&ghost, 0, 0);
    ghost_add(&ghost, 1, 0);
    ck_assert_uint_eq(ghost.pages, 0);
    ck_assert(ghost_is_valid(&ghost));
    ghost_free(&ghost);
}
END_TEST

#define KEYS 3000

/* Beside an array in order of age. */
START_TEST(many_ghosts_come_and_go)
{
    static uint64_t keys[KEYS];
    struct ghost ghost;
    uint64_t x = 11;
    size_t count = 0;

    ghost_init(&ghost, 700, UINT64_MAX);
    for (int round = 0; round < 20000; round++) {
        uint64_t key = unit_draw(&x, KEYS);
        size_t at = 0;

        while (at < count && keys[at] != key)
            at++;
        if (ghost_has(&ghost, key) != (at < count))
            ck_abort_msg("round %d", round);
        if (at < count && unit_draw(&x, 2)) {
            ck_assert(ghost_take(&ghost, key));
            memmove(keys + at, keys + at + 1, (--count - at) * sizeof(keys[0]));
        } else if (at == count) {
            ghost_add(&ghost, key, key);
            if (count == 700)
                memmove(keys, keys + 1, --count * sizeof(keys[0]));
            keys[count++] = key;
        }
        if (round % 500 == 0)
            ck_assert(ghost_is_valid(&ghost));
    }
    ck_assert_uint_eq(ghost.pages, count);
    ck_assert_uint_le(ghost.allocated, 1024);
    ghost_free(&ghost);
}
END_TEST

/* Words stay with their ghost while entries are reused and arrays grow. */
START_TEST(words_belong_to_a_ghost)
{
    struct ghost ghost;
    uint64_t x = 3;

    ghost_init_with_words(&ghost, 500, UINT64_MAX, 2);
    ck_assert_ptr_null(ghost_words(&ghost, 1));
    for (int round = 0; round < 5000; round++) {
        uint64_t key = unit_draw(&x, KEYS);
        uint64_t *words = ghost_words(&ghost, key);

        ck_assert(ghost_has(&ghost, key) == (words != NULL));
        if (words) {
            ck_assert_uint_eq(words[0], key * 3);
            ck_assert_uint_eq(words[1], ~key);
            ck_assert(!ghost_add(&ghost, key, 1));
            ck_assert(ghost_take(&ghost, key));
            continue;
        }
        ck_assert(ghost_add(&ghost, key, 1));
        words = ghost_words(&ghost, key);
        words[0] = key * 3;
        words[1] = ~key;
    }
    ck_assert_uint_eq(ghost.pages, 500);
    ck_assert(ghost_is_valid(&ghost));
    ghost_limit(&ghost, 0, 0);
    ck_assert(!ghost_add(&ghost, 1, 1));
    ghost_free(&ghost);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("policies/ghost");
    TCase *list = tcase_create("list");
    TCase *tc = tcase_create("ghost");

    tcase_add_test(list, a_list_from_both_ends);
    tcase_add_test(list, list_validity_notices_what_is_wrong);
    suite_add_tcase(suite, list);
    tcase_add_test(tc, the_oldest_are_forgotten);
    tcase_add_test(tc, ghost_validity_notices_what_is_wrong);
    tcase_add_test(tc, what_has_no_bytes_weighs_one);
    tcase_add_test(tc, many_ghosts_come_and_go);
    tcase_add_test(tc, words_belong_to_a_ghost);
    suite_add_tcase(suite, tc);
    return suite;
}
