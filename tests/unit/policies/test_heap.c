#include "policies/heap.h"

#include "tests/unit/unit.h"

#define NODES 500

struct number {
    struct heap_node node;
    uint32_t key;
};

static uint64_t compared;

static int
compare(const struct heap_node *a, const struct heap_node *b)
{
    const struct number *x = (const struct number *)a, *y = (const struct number *)b;

    compared++;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return x < y ? -1 : x > y;
}

/* A generator of the test's own; any will do. */
static uint32_t
draw(uint32_t below)
{
    static uint64_t state = 42;

    return unit_draw(&state, below);
}

START_TEST(an_empty_heap_has_no_first)
{
    struct heap heap;

    heap_init(&heap, compare);
    ck_assert_ptr_null(heap_first(&heap));
    ck_assert(heap_is_valid(&heap));
    heap_free(&heap);
}
END_TEST

START_TEST(nodes_come_out_in_order)
{
    static struct number numbers[NODES];
    struct heap heap;
    uint32_t before = 0;

    heap_init(&heap, compare);
    for (int i = 0; i < NODES; i++) {
        numbers[i].key = draw(100); /* with many ties */
        ck_assert(heap_insert(&heap, &numbers[i].node));
        ck_assert(heap_is_valid(&heap));
    }
    for (int i = 0; i < NODES; i++) {
        struct number *first = (struct number *)heap_first(&heap);

        ck_assert_uint_ge(first->key, before);
        before = first->key;
        heap_remove(&heap, &first->node);
        ck_assert(heap_is_valid(&heap));
    }
    ck_assert_ptr_null(heap_first(&heap));
    heap_free(&heap);
}
END_TEST

START_TEST(any_change_keeps_the_order)
{
    static struct number numbers[NODES];
    bool inside[NODES] = {false};
    struct heap heap;

    heap_init(&heap, compare);
    for (int round = 0; round < 20000; round++) {
        uint32_t i = draw(NODES);

        if (!inside[i]) {
            numbers[i].key = draw(1000);
            ck_assert(heap_insert(&heap, &numbers[i].node));
            inside[i] = true;
        } else if (draw(3) == 0) {
            heap_remove(&heap, &numbers[i].node);
            inside[i] = false;
        } else {
            numbers[i].key += draw(1000);
            heap_sink(&heap, &numbers[i].node);
        }
        if (round % 16 == 0)
            ck_assert(heap_is_valid(&heap));
    }
    heap_free(&heap);
}
END_TEST

START_TEST(validity_notices_what_is_wrong)
{
    struct number a = {.key = 1}, b = {.key = 2}, c = {.key = 3};
    struct heap heap;

    heap_init(&heap, compare);
    heap_insert(&heap, &a.node);
    heap_insert(&heap, &b.node);
    heap_insert(&heap, &c.node);
    ck_assert(heap_is_valid(&heap));
    c.key = 0;
    ck_assert(!heap_is_valid(&heap));
    c.key = 3;
    b.node.slot = 2;
    ck_assert(!heap_is_valid(&heap));
    b.node.slot = 1;
    ck_assert(heap_is_valid(&heap));
    heap.count = heap.allocated + 1;
    ck_assert(!heap_is_valid(&heap));
    heap_free(&heap);
}
END_TEST

START_TEST(a_heap_that_can_count_no_further_takes_no_more)
{
    struct number a = {.key = 1};
    struct heap heap;

    heap_init(&heap, compare);
    heap.count = UINT32_MAX;
    ck_assert(!heap_insert(&heap, &a.node));
    heap.count = 0;
    ck_assert(heap_insert(&heap, &a.node));
    heap_free(&heap);
}
END_TEST

START_TEST(memory_is_given_back_but_not_the_next_nodes)
{
    static struct number numbers[NODES];
    struct heap heap;
    uint32_t most;

    heap_init(&heap, compare);
    for (uint32_t i = 0; i < NODES; i++) {
        numbers[i].key = i;
        heap_insert(&heap, &numbers[i].node);
        ck_assert_uint_le(heap.allocated, i + 1 < 16 ? 16 : (i + 1) * 3 / 2 + 1);
    }
    most = heap.allocated;
    for (uint32_t i = 0; i < NODES; i++) {
        heap_remove(&heap, &numbers[i].node);
        ck_assert_uint_lt(heap.count, heap.allocated);
    }
    ck_assert_uint_lt(heap.allocated, most / 8);
    heap_free(&heap);
}
END_TEST

START_TEST(work_grows_with_the_logarithm)
{
    static struct number numbers[1 << 14];
    struct heap heap;

    heap_init(&heap, compare);
    for (uint32_t i = 0; i < 1 << 14; i++) {
        numbers[i].key = (1 << 14) - i; /* each goes all the way up */
        compared = 0;
        heap_insert(&heap, &numbers[i].node);
        ck_assert_uint_le(compared, 14);
    }
    for (uint32_t i = 0; i < 1 << 14; i++) {
        compared = 0;
        heap_remove(&heap, heap_first(&heap));
        ck_assert_uint_le(compared, 2 * 14 + 1);
    }
    heap_free(&heap);
}
END_TEST

START_TEST(sinking_a_leaf_compares_nothing)
{
    static struct number numbers[NODES];
    struct heap heap;

    heap_init(&heap, compare);
    for (uint32_t i = 0; i < NODES; i++) {
        numbers[i].key = i;
        heap_insert(&heap, &numbers[i].node);
    }
    compared = 0;
    for (uint32_t i = NODES / 2; i < NODES; i++) {
        numbers[i].key += NODES;
        heap_sink(&heap, &numbers[i].node);
    }
    ck_assert_uint_eq(compared, 0);
    ck_assert(heap_is_valid(&heap));
    heap_free(&heap);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("policies/heap");
    TCase *tc = tcase_create("heap");

    tcase_add_test(tc, an_empty_heap_has_no_first);
    tcase_add_test(tc, nodes_come_out_in_order);
    tcase_add_test(tc, any_change_keeps_the_order);
    tcase_add_test(tc, validity_notices_what_is_wrong);
    tcase_add_test(tc, a_heap_that_can_count_no_further_takes_no_more);
    tcase_add_test(tc, memory_is_given_back_but_not_the_next_nodes);
    tcase_add_test(tc, work_grows_with_the_logarithm);
    tcase_add_test(tc, sinking_a_leaf_compares_nothing);
    suite_add_tcase(suite, tc);
    return suite;
}
