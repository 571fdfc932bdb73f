/*
 * Parameters off their defaults, by hand: the outcome is another one, as the rule says.
 */
#include "tests/unit/policies/driven.h"

static void
check_play(const char *text, uint64_t pages, const char *requests, const char *events)
{
    struct driven d;

    driven_begin_letters(&d, text, pages, 0);
    ck_assert_str_eq(driven_play(&d, requests), events);
    driven_end(&d);
}

/* With one bit a is spared once, with two twice. */
START_TEST(clock_bits)
{
    check_play("clock", 3, "abcaadef", "+++..+b+c+a");
    check_play("clock:bits=2", 3, "abcaadef", "+++..+b+c+d");
    check_play("clock:bits=2", 3, "abcaaaaadefghij", "+++.....+b+c+d+e+f+g+a");
}
END_TEST

/* Segments of one page, of two, and of four: LRU. */
START_TEST(slru_segments)
{
    check_play("slru", 4, "aabcdef", "+.++++b+e");
    check_play("slru:segments=2", 4, "aabcdef", "+.++++b+c");
    check_play("slru:segments=1", 4, "aabcdef", "+.++++a+b");
}
END_TEST

/* While the cache is filled, c and d are inserted into the upper segment, or are not. */
START_TEST(slru_enter)
{
    check_play("slru:segments=2", 4, "abcdefg", "+++++a+b+e");
    check_play("slru:segments=2,enter=lowest", 4, "abcdefg", "+++++a+b+c");
    check_play("slru:enter=lowest", 4, "aabcdef", "+.++++b+c");
}
END_TEST

/* a comes back when two have left after it: too late to be remembered among two, not among four. */
START_TEST(two_q_kout)
{
    check_play("2q", 4, "abcdefgahijka", "+++++a+b+c+d+e+f+g+a+h");
    check_play("2q:kout=1", 4, "abcdefgahijka", "+++++a+b+c+d+e+f+g+h.");
    check_play("2q:kout=0", 4, "abcdea", "+++++a+b");
    check_play("2q:kout=0", 4, "abcdeafghi", "+++++a+b+c+d+e+a");
}
END_TEST

/* Where new pages may have three places, a, requested again, is evicted before them. */
START_TEST(two_q_kin)
{
    check_play("2q:kout=1", 4, "abcdefgah", "+++++a+b+c+d+e");
    check_play("2q:kin=0.75,kout=1", 4, "abcdefgah", "+++++a+b+c+d+a");
}
END_TEST

START_TEST(s3_fifo_small)
{
    check_play("s3-fifo", 4, "abcdef", "+++++a+e");
    check_play("s3-fifo:small=0.5", 4, "abcdef", "+++++a+b");
}
END_TEST

/* a was requested once since it entered. */
START_TEST(s3_fifo_threshold)
{
    check_play("s3-fifo:small=0.5", 4, "abcdae", "++++.+a");
    check_play("s3-fifo:small=0.5,threshold=1", 4, "abcdae", "++++.+b");
    check_play("s3-fifo:small=0.5,threshold=3", 4, "abcdaae", "++++..+a");
}
END_TEST

/* By the paper the first page is evicted; by libCacheSim the only page of the small queue. */
START_TEST(s3_fifo_fill)
{
    check_play("s3-fifo", 4, "abcde", "+++++a");
    check_play("s3-fifo", 4, "abcdef", "+++++a+e");
    check_play("s3-fifo:fill=small", 4, "abcdef", "+++++a+b");
}
END_TEST

/* Remembered, a comes back into the main queue, which then has more than its share. */
START_TEST(s3_fifo_ghost)
{
    check_play("s3-fifo:small=0.5", 4, "abcdefag", "+++++a+b+e+c");
    check_play("s3-fifo:small=0.5,ghost=0", 4, "abcdefag", "+++++a+b+e+f");
}
END_TEST

static void
check_enters(const char *text, uint64_t bytes, bool enters)
{
    struct driven d;

    driven_begin_letters(&d, text, 0, 100);
    driven_request(&d, 0, (struct policy_page){.bytes = bytes});
    ck_assert_msg(d.inside[0] == enters, "%s, %d bytes of 100", text, (int)bytes);
    driven_end(&d);
}

START_TEST(how_large_a_page_may_be)
{
    static const struct {
        const char *text;
        uint64_t most;
    } rows[] = {
        {"slru", 25},    {"slru:segments=2", 50},  {"slru:segments=1", 100},
        {"2q", 25},      {"2q:kin=0.5", 50},       {"2q:kin=1", 100},
        {"s3-fifo", 10}, {"s3-fifo:small=1", 100},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        check_enters(rows[i].text, rows[i].most, true);
        check_enters(rows[i].text, rows[i].most + 1, false);
    }
}
END_TEST

/* libCacheSim refuses such a page, and with it every page of a cache of 10. */
START_TEST(s3_fifo_admits_a_page_as_large_as_its_small_queue)
{
    struct driven d;

    check_play("s3-fifo", 10, "aabb", "+.+.");
    driven_begin_letters(&d, "s3-fifo", 0, 100);
    ck_assert(!driven_request(&d, 0, (struct policy_page){.bytes = 10}));
    ck_assert(driven_request(&d, 0, (struct policy_page){.bytes = 10}));
    ck_assert(!driven_request(&d, 1, (struct policy_page){.bytes = 11}));
    ck_assert(!driven_request(&d, 1, (struct policy_page){.bytes = 11}));
    driven_end(&d);
}
END_TEST

/* No share of it is beyond what a number can be. */
START_TEST(the_largest_capacity_there_is)
{
    static const char *const others[] = {
        "slru:segments=1",    "2q:kin=1,kout=16", "s3-fifo:small=1,ghost=16",
        "w-tinylfu:window=1", "lirs:hir=1",       NULL,
    };
    struct driven d;

    for (size_t p = 0; policies[p]; p++) {
        driven_begin_letters(&d, policies[p]->name, UINT64_MAX, UINT64_MAX);
        ck_assert_str_eq(driven_play(&d, "abcabc"), "+++...");
        driven_end(&d);
    }
    for (size_t p = 0; others[p]; p++) {
        driven_begin_letters(&d, others[p], UINT64_MAX, UINT64_MAX);
        ck_assert_str_eq(driven_play(&d, "abcabc"), "+++...");
        driven_resize(&d, 2, UINT64_MAX);
        ck_assert_uint_eq(d.page_count, 2);
        driven_end(&d);
    }
}
END_TEST

/* Those that rules have and papers give names to. */
START_TEST(which_policy_has_which)
{
    static const char *const names[] = {
        "clock:bits=1",
        "slru:segments=4",
        "2q:kin=0.25,kout=0.5",
        "s3-fifo:small=0.1,ghost=0.9,threshold=2",
        "lirs:hir=0.01,history=2",
        "lru-k:k=2",
        "tinylfu:width=4,sample=10",
        "gds:cost=1",
        "gdsf:cost=1",
        "w-tinylfu:window=0.01,protected=0.8,width=4,sample=10",
    };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct policy_spec spec, defaults;
        char why[200] = "";

        ck_assert_msg(policy_parse(names[i], &spec, why, sizeof(why)), "%s: %s", names[i], why);
        defaults = policy_spec_of(spec.ops);
        ck_assert_msg(policy_spec_equal(&spec, &defaults), "%s", names[i]);
    }
}
END_TEST

START_TEST(bad_values_are_refused)
{
    static const char *const bad[] = {
        "clock:bits=0",
        "clock:bits=9",
        "clock:bits=1.5",
        "slru:segments=0",
        "slru:segments=17",
        "slru:segments=-1",
        "2q:kin=0",
        "2q:kin=1.1",
        "2q:kout=-0.5",
        "2q:kout=17",
        "s3-fifo:small=0",
        "s3-fifo:small=2",
        "s3-fifo:ghost=-1",
        "s3-fifo:ghost=17",
        "s3-fifo:threshold=0",
        "s3-fifo:threshold=4",
        "s3-fifo:small=1/2",
        "2q:kin=25%",
        "s3-fifo:threshold=1.5",
    };

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct policy_spec spec;
        char why[200] = "";

        ck_assert_msg(!policy_parse(bad[i], &spec, why, sizeof(why)), "%s", bad[i]);
        ck_assert_msg(strstr(why, "must be a") && strstr(why, " from "), "%s: %s", bad[i], why);
    }
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("policies/params");
    TCase *tc = tcase_create("params");

    tcase_add_test(tc, clock_bits);
    tcase_add_test(tc, slru_segments);
    tcase_add_test(tc, slru_enter);
    tcase_add_test(tc, two_q_kout);
    tcase_add_test(tc, two_q_kin);
    tcase_add_test(tc, s3_fifo_small);
    tcase_add_test(tc, s3_fifo_threshold);
    tcase_add_test(tc, s3_fifo_fill);
    tcase_add_test(tc, s3_fifo_ghost);
    tcase_add_test(tc, how_large_a_page_may_be);
    tcase_add_test(tc, s3_fifo_admits_a_page_as_large_as_its_small_queue);
    tcase_add_test(tc, the_largest_capacity_there_is);
    tcase_add_test(tc, which_policy_has_which);
    tcase_add_test(tc, bad_values_are_refused);
    suite_add_tcase(suite, tc);
    return suite;
}
