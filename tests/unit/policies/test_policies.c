/*
 * Each policy by itself: which pages it evicts, in which order, and how ties break.
 */
#include "policies/heap_policy.h"
#include "policies/policy.h"

#include <ctype.h>
#include <stdlib.h>

#include "tests/unit/unit.h"

#define PAGES 26

/* Pages 'a' to 'z' in one policy. */
struct bench {
    const struct policy_ops *ops;
    struct policy *policy;
    void *nodes[PAGES];
    bool inside[PAGES];
    uint64_t count, bytes;
    uint64_t sizes[PAGES];
};

static void
begin(struct bench *b, const char *name, uint64_t seed)
{
    struct policy_config config = {.capacity_pages = 8, .seed = seed};
    struct policy_spec spec;
    char why[128];

    ck_assert_msg(policy_parse(name, &spec, why, sizeof(why)), "%s", why);
    *b = (struct bench){.ops = spec.ops};
    ck_assert_ptr_nonnull(b->ops);
    config.params = spec.params;
    b->policy = b->ops->create(b->ops, &config);
    ck_assert_ptr_nonnull(b->policy);
    ck_assert_ptr_null(b->ops->victim(b->policy));
}

static void
end(struct bench *b)
{
    b->ops->destroy(b->policy);
    for (int i = 0; i < PAGES; i++)
        free(b->nodes[i]);
}

static void
enter(struct bench *b, char page, uint64_t bytes)
{
    struct policy_page info = {.bytes = bytes, .key = (uint64_t)page, .next = POLICY_NEVER};
    int i = page - 'a';

    free(b->nodes[i]);
    b->nodes[i] = calloc(1, b->ops->node_size);
    if (b->ops->admit && !b->ops->admit(b->policy, &info))
        return;
    ck_assert_int_eq(b->ops->insert(b->policy, b->nodes[i], &info), 0);
    b->inside[i] = true;
    b->sizes[i] = bytes;
    b->count++;
    b->bytes += bytes;
    ck_assert(b->ops->is_valid(b->policy, b->count, b->bytes));
}

/* Each letter: enters, with one byte, if it is not inside, and is requested if it is. */
static void
play(struct bench *b, const char *requests)
{
    for (; *requests; requests++) {
        if (b->inside[*requests - 'a'])
            b->ops->access(b->policy, b->nodes[*requests - 'a'],
                           &(struct policy_page){.bytes = 1, .next = POLICY_NEVER});
        else
            enter(b, *requests, 1);
        ck_assert(b->ops->is_valid(b->policy, b->count, b->bytes));
    }
}

static void
leave(struct bench *b, char page, bool evicted)
{
    b->ops->remove(b->policy, b->nodes[page - 'a'], evicted);
    b->inside[page - 'a'] = false;
    b->count--;
    b->bytes -= b->sizes[page - 'a'];
    ck_assert(b->ops->is_valid(b->policy, b->count, b->bytes));
}

/* Evicts all; returns the order. */
static const char *
drain(struct bench *b)
{
    static char order[PAGES + 1];
    size_t n = 0;
    void *victim;

    while ((victim = b->ops->victim(b->policy))) {
        int i = 0;

        ck_assert_ptr_eq(victim, b->ops->victim(b->policy));
        while (b->nodes[i] != victim)
            ck_assert_int_lt(++i, PAGES);
        order[n++] = (char)('a' + i);
        leave(b, (char)('a' + i), true);
    }
    order[n] = '\0';
    ck_assert_uint_eq(b->count, 0);
    return order;
}

static void
check_order(const char *policy, const char *requests, const char *leaving)
{
    struct bench b;

    begin(&b, policy, 0);
    play(&b, requests);
    ck_assert_str_eq(drain(&b), leaving);
    end(&b);
}

START_TEST(lru_by_last_request)
{
    check_order("lru", "abcd", "abcd");
    check_order("lru", "abcda", "bcda");
    check_order("lru", "abcdbbac", "dbac");
    check_order("lru", "abcdefghijklmnopqrstuvwxyzmam", "bcdefghijklnopqrstuvwxyzam");
}
END_TEST

START_TEST(fifo_by_entry_whatever_is_requested)
{
    check_order("fifo", "abcd", "abcd");
    check_order("fifo", "abcdaaaabb", "abcd");
}
END_TEST

START_TEST(lfu_by_count_then_by_when_it_was_reached)
{
    check_order("lfu", "abcd", "abcd");
    check_order("lfu", "abcdaab", "cdba");
    /* b and a have two each; b had them first, though a entered first. */
    check_order("lfu", "abcba", "cba");
    check_order("lfu", "abba", "ba");
}
END_TEST

START_TEST(clock_spares_once_a_requested_page)
{
    check_order("clock", "abcd", "abcd");
    check_order("clock", "abcda", "bcda");
    check_order("clock", "abcdacc", "bdac");
    check_order("clock", "abcdabcd", "abcd"); /* all are spared: once round */
}
END_TEST

START_TEST(sieve_keeps_its_hand_where_it_was)
{
    struct bench b;

    check_order("sieve", "abcd", "abcd");
    check_order("sieve", "abcda", "bcda");
    begin(&b, "sieve", 0);
    play(&b, "abcdac");
    ck_assert_ptr_eq(b.ops->victim(b.policy), b.nodes[1]);
    leave(&b, 'b', true);
    play(&b, "e"); /* the hand is at c, which loses its bit */
    ck_assert_ptr_eq(b.ops->victim(b.policy), b.nodes[3]);
    leave(&b, 'd', true);
    ck_assert_str_eq(drain(&b), "eac"); /* the hand was at e, the youngest, and goes round */
    end(&b);

    begin(&b, "sieve", 0);
    play(&b, "abcdabcd");
    ck_assert_ptr_eq(b.ops->victim(b.policy), b.nodes[0]);
    leave(&b, 'a', false); /* purged under the hand */
    ck_assert_str_eq(drain(&b), "bcd");
    end(&b);
}
END_TEST

/* Four segments of two. */
START_TEST(slru_by_segments)
{
    check_order("slru", "abcd", "abcd");     /* ab lowest, cd above */
    check_order("slru", "abcdaa", "bcda");   /* a goes up twice, past c and d */
    check_order("slru", "abcdabe", "cdabe"); /* c and d sink for a and b; e enters above */
}
END_TEST

/* Two of eight in the queue. */
START_TEST(two_q_keeps_pages_requested_again)
{
    struct bench b;

    check_order("2q", "abcdaab", "abcd"); /* hits in the queue say nothing */
    begin(&b, "2q", 0);
    play(&b, "abcd");
    leave(&b, 'a', true);
    leave(&b, 'b', true);
    leave(&b, 'c', false); /* purged: not remembered */
    play(&b, "abc");
    ck_assert_ptr_eq(b.ops->victim(b.policy), b.nodes[0]); /* d and c are within the share */
    play(&b, "ea");
    ck_assert_str_eq(drain(&b), "dbace");
    end(&b);
}
END_TEST

START_TEST(lru_k_by_the_kth_last_request)
{
    check_order("lru-k", "abcd", "abcd");
    check_order("lru-k", "abcdcaab", "dbca"); /* d once; second last at 2, 3 and 6 */
    check_order("lru-k:k=1", "abcdbbac", "dbac");
    check_order("lru-k:k=3", "abcaabbcc", "abc");
    check_order("lru-k:k=3", "abcaab", "bca");
}
END_TEST

START_TEST(lfu_forgets_a_count_when_its_page_is_evicted)
{
    struct bench b;

    begin(&b, "lfu", 0);
    play(&b, "aaaabb");
    leave(&b, 'a', true);
    play(&b, "a");
    ck_assert_str_eq(drain(&b), "ab");
    end(&b);
}
END_TEST

START_TEST(maxs_by_size_then_by_entry)
{
    static const struct {
        char page;
        uint64_t bytes;
    } pages[] = {{'a', 10}, {'b', 30}, {'c', 20}, {'d', 30}, {'e', UINT64_MAX}, {'f', 10}};
    struct bench b;

    begin(&b, "maxs", 0);
    for (size_t i = 0; i < sizeof(pages) / sizeof(pages[0]); i++)
        enter(&b, pages[i].page, pages[i].bytes);
    play(&b, "bbbdda"); /* changes nothing */
    ck_assert_str_eq(drain(&b), "ebdcaf");
    end(&b);
}
END_TEST

START_TEST(rand_repeats_with_its_seed_and_differs_with_another)
{
    static const char all[] = "abcdefghijklmnopqrstuvwxyz";
    char first[PAGES + 1];
    struct bench b;

    begin(&b, "rand", 1);
    play(&b, all);
    strcpy(first, drain(&b));
    end(&b);
    ck_assert_str_ne(first, all);

    begin(&b, "rand", 1);
    play(&b, all);
    play(&b, all); /* requests change nothing */
    ck_assert_str_eq(drain(&b), first);
    end(&b);

    begin(&b, "rand", 2);
    play(&b, all);
    ck_assert_str_ne(drain(&b), first);
    end(&b);
}
END_TEST

START_TEST(rand_favours_no_page)
{
    static const char *const ways[] = {"rand", "rand:draw=each"};
    unsigned left_first[4] = {0};

    for (uint64_t seed = 0; seed < 4000; seed++) {
        struct bench b;

        begin(&b, ways[_i], seed);
        play(&b, "abcd");
        left_first[drain(&b)[0] - 'a']++;
        end(&b);
    }
    /* 1,000 expected of each, with a deviation of 27: five of them off is one in a million. */
    for (int i = 0; i < 4; i++) {
        ck_assert_uint_gt(left_first[i], 863);
        ck_assert_uint_lt(left_first[i], 1137);
    }
}
END_TEST

/* Whoever stays through many draws is drawn in the end: no key makes a page safe. */
START_TEST(rand_draws_anew_each_time)
{
    unsigned rounds = 0;
    struct bench b;

    begin(&b, "rand:draw=each", 9);
    play(&b, "ab");
    for (;;) {
        void *victim = b.ops->victim(b.policy);

        ck_assert_ptr_eq(victim, b.ops->victim(b.policy));
        if (victim == b.nodes[0])
            break;
        leave(&b, 'b', true);
        play(&b, "b");
        ck_assert_uint_lt(++rounds, 100);
    }
    end(&b);
}
END_TEST

START_TEST(registry_finds_by_name_in_any_case)
{
    static const char *const names[] = {"lru", "lfu", "fifo", "rand", "maxs"};

    for (size_t i = 0; i < 5; i++) {
        char upper[8] = {0};

        for (size_t c = 0; names[i][c]; c++)
            upper[c] = (char)toupper(names[i][c]);
        ck_assert_ptr_nonnull(policy_find(names[i]));
        ck_assert_str_eq(policy_find(names[i])->name, names[i]);
        ck_assert_ptr_eq(policy_find(upper), policy_find(names[i]));
    }
    ck_assert_ptr_nonnull(policy_find("lru-k"));
    ck_assert_ptr_eq(policy_find("LRUK"), policy_find("lru-k"));
    ck_assert_ptr_eq(policy_find("S3FIFO"), policy_find("s3-fifo"));
    ck_assert_ptr_eq(policy_find("Belady"), policy_find("opt"));
    ck_assert_ptr_eq(policy_find("min"), policy_find("opt"));
    ck_assert_ptr_eq(policy_find("random"), policy_find("rand"));
    ck_assert_ptr_eq(policy_find("SIZE"), policy_find("maxs"));
    ck_assert_ptr_eq(policy_find("lrc"), policy_find("fifo"));
    ck_assert_ptr_eq(policy_find("SecondChance"), policy_find("clock"));
    ck_assert_ptr_eq(policy_find("GD-Size"), policy_find("gds"));
    ck_assert_ptr_null(policy_find("lr"));
    ck_assert_ptr_null(policy_find("lruu"));
    ck_assert_ptr_null(policy_find(""));
}
END_TEST

START_TEST(registry_rows_are_complete)
{
    size_t count = 0;

    for (; policies[count]; count++) {
        const struct policy_ops *ops = policies[count];

        ck_assert_msg(ops->name && ops->summary && ops->source && ops->node_size, "row %zu", count);
        ck_assert_msg(ops->sizes && ops->cost, "%s", ops->name);
        ck_assert(ops->create && ops->destroy && ops->insert && ops->access && ops->victim &&
                  ops->remove && ops->is_valid);
        for (const char *c = ops->name; *c; c++)
            ck_assert_msg(!isupper((unsigned char)*c), "%s", ops->name);
        /* No name is anybody else's, nor any alias: the first that has it would be found. */
        ck_assert_ptr_eq(policy_find(ops->name), ops);
        for (size_t i = 0; ops->aliases && ops->aliases[i]; i++) {
            ck_assert_ptr_eq(policy_find(ops->aliases[i]), ops);
            ck_assert_str_ne(ops->aliases[i], "none");
            ck_assert_str_ne(ops->aliases[i], "all");
        }
    }
    ck_assert_uint_ge(count, 5);
}
END_TEST

START_TEST(nodes_are_small)
{
    ck_assert_uint_le(policy_find("lru")->node_size, 16);
    ck_assert_uint_le(policy_find("lfu")->node_size, 16);
    ck_assert_uint_le(policy_find("fifo")->node_size, 16);
    ck_assert_uint_le(policy_find("rand")->node_size, 16);
    ck_assert_uint_le(policy_find("maxs")->node_size, 24);
    for (size_t i = 0; policies[i]; i++)
        ck_assert_msg(policies[i]->node_size <= 56, "%s", policies[i]->name);
}
END_TEST

/* What checks all others is no use if it never says no. */
START_TEST(validity_is_of_pages_and_of_bytes_where_they_are_summed)
{
    static const char *const summing[] = {"slru",    "2q",        "s3-fifo", "arc",
                                          "tinylfu", "w-tinylfu", "lirs"};
    struct bench b;

    for (size_t p = 0; policies[p]; p++) {
        begin(&b, policies[p]->name, 0);
        play(&b, "abcda");
        ck_assert(!b.ops->is_valid(b.policy, b.count + 1, b.bytes));
        ck_assert(!b.ops->is_valid(b.policy, b.count - 1, b.bytes));
        end(&b);
    }
    for (size_t i = 0; i < sizeof(summing) / sizeof(summing[0]); i++) {
        begin(&b, summing[i], 0);
        play(&b, "abcda");
        ck_assert_msg(!b.ops->is_valid(b.policy, b.count, b.bytes + 1), "%s", summing[i]);
        ck_assert_msg(!b.ops->is_valid(b.policy, b.count, b.bytes - 1), "%s", summing[i]);
        end(&b);
    }
}
END_TEST

START_TEST(every_policy_survives_any_order_of_calls)
{
    for (size_t p = 0; policies[p]; p++) {
        struct bench b;
        uint32_t x = 7;

        begin(&b, policies[p]->name, 3);
        for (int round = 0; round < 5000; round++) {
            char page;

            x = x * 1664525u + 1013904223u;
            page = (char)('a' + (x >> 16) % PAGES);
            if (!b.inside[page - 'a'])
                enter(&b, page, (x >> 8) % 5);
            else if ((x >> 28) < 5)
                leave(&b, page, false);
            else
                play(&b, (char[]){page, '\0'});
        }
        drain(&b);
        end(&b);
    }
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("policies");
    TCase *order = tcase_create("order");
    TCase *registry = tcase_create("registry");

    tcase_add_test(order, lru_by_last_request);
    tcase_add_test(order, fifo_by_entry_whatever_is_requested);
    tcase_add_test(order, lfu_by_count_then_by_when_it_was_reached);
    tcase_add_test(order, clock_spares_once_a_requested_page);
    tcase_add_test(order, sieve_keeps_its_hand_where_it_was);
    tcase_add_test(order, slru_by_segments);
    tcase_add_test(order, two_q_keeps_pages_requested_again);
    tcase_add_test(order, lru_k_by_the_kth_last_request);
    tcase_add_test(order, lfu_forgets_a_count_when_its_page_is_evicted);
    tcase_add_test(order, maxs_by_size_then_by_entry);
    tcase_add_test(order, rand_repeats_with_its_seed_and_differs_with_another);
    tcase_add_loop_test(order, rand_favours_no_page, 0, 2);
    tcase_add_test(order, rand_draws_anew_each_time);
    tcase_add_test(order, validity_is_of_pages_and_of_bytes_where_they_are_summed);
    tcase_add_test(order, every_policy_survives_any_order_of_calls);
    suite_add_tcase(suite, order);
    tcase_add_test(registry, registry_finds_by_name_in_any_case);
    tcase_add_test(registry, registry_rows_are_complete);
    tcase_add_test(registry, nodes_are_small);
    suite_add_tcase(suite, registry);
    return suite;
}
