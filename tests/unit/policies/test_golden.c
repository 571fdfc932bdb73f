/*
 * Every policy that libCacheSim has, too, miss for miss beside what that counts, and OPT on the
 * paper's dataset1.
 */
#include "tests/unit/policies/golden.h"

static const struct {
    const char *theirs, *ours;
    unsigned rows;
} names[] = {
    {"lru", "lru", 4},     {"fifo", "fifo", 4},      {"lfu", "lfu", 4},   {"sieve", "sieve", 4},
    {"clock", "clock", 4}, {"slru", "slru", 4},      {"2q", "2q", 4},     {"lru-k", "lru-k", 4},
    {"arc", "arc", 4},     {"s3fifo", "s3-fifo", 4}, {"gdsf", "gdsf", 4}, {"belady", "opt", 2},
};

START_TEST(misses_what_libcachesim_misses)
{
    if (policy_is_wanted(names[_i].ours))
        ck_assert_uint_eq(golden_check_policy(names[_i].theirs, names[_i].ours), names[_i].rows);
}
END_TEST

#define MAX_REQUESTS 2000

/* The paper's first data set: one URL a line. */
START_TEST(opt_on_the_papers_first_data_set)
{
    static const uint64_t known[][2] = {{7, 898},  {14, 924}, {21, 929},
                                        {28, 929}, {35, 929}, {56, 929}};
    static char urls[MAX_REQUESTS][512];
    static uint32_t ids[MAX_REQUESTS];
    static uint64_t next[MAX_REQUESTS];
    FILE *file = fopen(unit_dataset("sunrpc-paper/dataset1-urls.txt"), "r");
    char line[512];
    uint32_t distinct = 0, count = 0;

    ck_assert_ptr_nonnull(file);
    for (; fgets(line, sizeof(line), file); count++) {
        uint32_t id = 0;

        ck_assert_uint_lt(count, MAX_REQUESTS);
        while (id < distinct && strcmp(urls[id], line) != 0)
            id++;
        if (id == distinct)
            strcpy(urls[distinct++], line);
        ids[count] = id;
        next[count] = POLICY_NEVER;
        for (uint32_t before = count; before-- > 0;) {
            if (ids[before] == id) {
                next[before] = count;
                break;
            }
        }
    }
    fclose(file);
    ck_assert_uint_eq(count, 997);
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        struct driven d;
        uint64_t hits = 0;

        driven_begin(&d, "opt", distinct, known[i][0], 0);
        d.checks = true;
        for (uint32_t r = 0; r < count; r++)
            hits += driven_request(&d, ids[r], (struct policy_page){.bytes = 1, .next = next[r]});
        ck_assert_uint_eq(hits, known[i][1]);
        driven_end(&d);
    }
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("policies/golden");
    TCase *tc = tcase_create("golden");

    tcase_set_timeout(tc, 120);
    tcase_add_loop_test(tc, misses_what_libcachesim_misses, 0,
                        (int)(sizeof(names) / sizeof(names[0])));
    tcase_add_test(tc, opt_on_the_papers_first_data_set);
    suite_add_tcase(suite, tc);
    return suite;
}
