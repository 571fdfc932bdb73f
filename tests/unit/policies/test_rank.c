/*
 * The heap of ranks, against an array that is searched from end to end.
 */
#include "policies/rank.h"

#include "tests/unit/unit.h"

#define NODES 300

static struct rank_node nodes[NODES];
static bool inside[NODES];
static uint64_t now;

static uint32_t
draw(uint32_t below)
{
    static uint64_t state = 42;

    return unit_draw(&state, below);
}

static void
rank(uint32_t i, uint64_t major)
{
    nodes[i].major = major;
    nodes[i].minor = ++now;
}

static struct rank_node *
lowest(void)
{
    struct rank_node *best = NULL;

    for (int i = 0; i < NODES; i++) {
        if (inside[i] && (!best || nodes[i].major < best->major ||
                          (nodes[i].major == best->major && nodes[i].minor < best->minor)))
            best = &nodes[i];
    }
    return best;
}

static bool
count_visit(void *context, const struct rank_node *node)
{
    size_t *left = context;

    ck_assert(inside[node - nodes]);
    inside[node - nodes] = false; /* visited */
    return --*left > 0;
}

/* All that are below a rank and no other, each once; or as many of them as visit() wants. */
START_TEST(a_walk_visits_what_is_below)
{
    struct rank_heap heap;

    rank_init(&heap);
    for (uint32_t i = 0; i < NODES; i++) {
        rank(i, draw(40));
        ck_assert(rank_insert(&heap, &nodes[i]));
    }
    for (int round = 0; round < 300; round++) {
        struct rank_node below = {.major = draw(60), .minor = now - draw(NODES)};
        size_t left = NODES + 1, expected = 0;
        uint32_t raised = draw(NODES);

        rank(raised, nodes[raised].major + draw(9)); /* and not reported */
        for (uint32_t i = 0; i < NODES; i++) {
            inside[i] = nodes[i].major < below.major ||
                        (nodes[i].major == below.major && nodes[i].minor < below.minor);
            expected += inside[i];
        }
        if (expected > 2 && round % 3 == 0) {
            left = expected / 2;
            ck_assert(!rank_walk_below(&heap, &below, count_visit, &left));
            ck_assert_uint_eq(left, 0);
        } else {
            ck_assert(rank_walk_below(&heap, &below, count_visit, &left));
            ck_assert_uint_eq(NODES + 1 - left, expected);
        }
        ck_assert(rank_is_valid(&heap));
    }
    memset(inside, 0, sizeof(inside));
    rank_free(&heap);
}
END_TEST

START_TEST(an_empty_heap_has_no_first)
{
    struct rank_heap heap;

    rank_init(&heap);
    ck_assert_ptr_null(rank_first(&heap));
    ck_assert(rank_is_valid(&heap));
    rank_free(&heap);
}
END_TEST

/* With many ties; raised ranks are not reported, and lowered ones often were raised before. */
START_TEST(the_first_is_the_lowest_whatever_changes)
{
    struct rank_heap heap;
    uint64_t count = 0;

    rank_init(&heap);
    for (int round = 0; round < 60000; round++) {
        uint32_t i = draw(NODES), what = draw(16);

        if (!inside[i]) {
            rank(i, draw(40));
            ck_assert(rank_insert(&heap, &nodes[i]));
            inside[i] = true;
            count++;
        } else if (what == 0) {
            rank_remove(&heap, &nodes[i]);
            inside[i] = false;
            count--;
        } else if (what < 5 && nodes[i].major) {
            rank(i, draw((uint32_t)nodes[i].major));
            rank_lowered(&heap, &nodes[i]);
        } else {
            rank(i, nodes[i].major + draw(20));
        }
        if (what % 4 == 0)
            ck_assert_ptr_eq(rank_first(&heap), lowest());
        if (what == 8 && lowest()) {
            inside[rank_first(&heap) - nodes] = false;
            rank_remove(&heap, rank_first(&heap));
            count--;
        }
        if (round % 16 == 0)
            ck_assert(rank_is_valid(&heap));
        ck_assert_uint_eq(heap.count, count);
    }
    while (lowest()) {
        struct rank_node *first = rank_first(&heap);

        ck_assert_ptr_eq(first, lowest());
        inside[first - nodes] = false;
        rank_remove(&heap, first);
    }
    ck_assert_ptr_null(rank_first(&heap));
    rank_free(&heap);
}
END_TEST

START_TEST(validity_notices_what_is_wrong)
{
    struct rank_heap heap;

    rank_init(&heap);
    for (uint32_t i = 0; i < 9; i++) {
        rank(i, i);
        rank_insert(&heap, &nodes[i]);
    }
    ck_assert(rank_is_valid(&heap));
    nodes[8].major = 7; /* lower, and not reported */
    ck_assert(!rank_is_valid(&heap));
    nodes[8].major = 80;
    ck_assert(rank_is_valid(&heap));
    nodes[3].slot = 4;
    ck_assert(!rank_is_valid(&heap));
    nodes[3].slot = 3;
    heap.slots[0].major = 5; /* above its children, though they do not know it */
    nodes[0].major = 5;
    ck_assert(!rank_is_valid(&heap));
    heap.count = heap.allocated + 1;
    ck_assert(!rank_is_valid(&heap));
    rank_free(&heap);
}
END_TEST

START_TEST(a_heap_that_can_count_no_further_takes_no_more)
{
    struct rank_heap heap;

    rank_init(&heap);
    rank(0, 1);
    heap.count = UINT32_MAX;
    ck_assert(!rank_insert(&heap, &nodes[0]));
    heap.count = 0;
    ck_assert(rank_insert(&heap, &nodes[0]));
    rank_free(&heap);
}
END_TEST

START_TEST(memory_is_given_back_but_not_the_next_nodes)
{
    struct rank_heap heap;
    uint32_t most;

    rank_init(&heap);
    for (uint32_t i = 0; i < NODES; i++) {
        rank(i, i);
        rank_insert(&heap, &nodes[i]);
        ck_assert_uint_le(heap.allocated, i + 1 < 16 ? 16 : (i + 1) * 3 / 2 + 1);
    }
    most = heap.allocated;
    for (uint32_t i = 0; i < NODES; i++) {
        rank_remove(&heap, &nodes[i]);
        ck_assert_uint_lt(heap.count, heap.allocated);
    }
    ck_assert_uint_lt(heap.allocated, most / 8);
    rank_free(&heap);
}
END_TEST

START_TEST(doubles_order_as_their_bits)
{
    static const double numbers[] = {0,   4.9e-324, 1e-300, 0.1,  0.5, 1.0, 1.0000000000000002,
                                     2.0, 1e6,      1e15,   1e300};

    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        ck_assert(rank_to_double(rank_of_double(numbers[i])) == numbers[i]);
        if (i > 0)
            ck_assert_uint_lt(rank_of_double(numbers[i - 1]), rank_of_double(numbers[i]));
    }
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("policies/rank");
    TCase *tc = tcase_create("rank");

    tcase_add_test(tc, an_empty_heap_has_no_first);
    tcase_add_test(tc, a_walk_visits_what_is_below);
    tcase_add_test(tc, the_first_is_the_lowest_whatever_changes);
    tcase_add_test(tc, validity_notices_what_is_wrong);
    tcase_add_test(tc, a_heap_that_can_count_no_further_takes_no_more);
    tcase_add_test(tc, memory_is_given_back_but_not_the_next_nodes);
    tcase_add_test(tc, doubles_order_as_their_bits);
    suite_add_tcase(suite, tc);
    return suite;
}
