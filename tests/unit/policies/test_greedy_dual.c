/*
 * GDSF, GDS, LFUDA and OPT: by hand, and beside their rules as the papers have them.
 */
#include "tests/unit/policies/naive.h"

/* ---- by hand ------------------------------------------------------------------------------ */

/* One request of a page 'a' to 'z'; the pages evicted for it, in order. */
static const char *
request(struct driven *d, char page, uint64_t bytes, uint64_t cost_us, uint64_t next)
{
    static char left[30];
    size_t i;

    driven_request(d, (uint32_t)(page - 'a'),
                   (struct policy_page){.bytes = bytes, .cost_us = cost_us, .next = next});
    for (i = 0; i < d->victim_count; i++)
        left[i] = (char)('a' + d->victims[i]);
    left[i] = '\0';
    return left;
}

START_TEST(gdsf_by_hand)
{
    struct driven d;

    driven_begin_letters(&d, "gdsf", 0, 100);
    request(&d, 'a', 50, 0, 0);                        /* H = 1/50 */
    request(&d, 'b', 20, 0, 0);                        /* 1/20 */
    request(&d, 'c', 25, 0, 0);                        /* 1/25 */
    ck_assert_str_eq(request(&d, 'd', 10, 0, 0), "a"); /* 1/10; L = 1/50 */
    ck_assert_str_eq(request(&d, 'c', 25, 0, 0), "");  /* L + 2/25 = 0.1 */
    /* e is at L + 1/60, b at 1/20, d at 1/10: e comes and goes. L = 0.0367 */
    ck_assert_str_eq(request(&d, 'e', 60, 0, 0), "e");
    /* Now b, d and c have 0.05, 0.1 and 0.1. */
    ck_assert_str_eq(request(&d, 'f', 46, 0, 0), "b"); /* at 0.0584; L = 0.05 */
    ck_assert_str_eq(request(&d, 'g', 20, 0, 0), "f"); /* at 0.1, as d and c */
    driven_end(&d);
}
END_TEST

/* d would be evicted after b and before c: it comes and goes, changes nothing, or replaces both. */
START_TEST(gdsf_and_a_large_newcomer)
{
    static const struct {
        const char *text, *for_d, *for_e;
    } rows[] = {
        {"gdsf", "bd", ""},
        {"gdsf:newcomer=compared", "", "b"},
        {"gdsf:newcomer=enters", "bc", "d"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct driven d;

        driven_begin_letters(&d, rows[i].text, 0, 100);
        request(&d, 'a', 50, 0, 0);                        /* H = 1/50 */
        request(&d, 'b', 50, 0, 0);                        /* 1/50 */
        ck_assert_str_eq(request(&d, 'c', 25, 0, 0), "a"); /* L = 0.02; c has at least 0.04 */
        ck_assert_str_eq(request(&d, 'd', 80, 0, 0), rows[i].for_d); /* 0.0325 */
        ck_assert_str_eq(request(&d, 'e', 50, 0, 0), rows[i].for_e);
        driven_end(&d);
    }
}
END_TEST

START_TEST(opt_that_bypasses)
{
    struct driven d;

    driven_begin_letters(&d, "opt:bypass=yes", 2, 0);
    request(&d, 'a', 1, 0, 9);
    request(&d, 'b', 1, 0, 5);
    ck_assert_str_eq(request(&d, 'c', 1, 0, 10), "");
    ck_assert(!d.inside[2]);
    ck_assert_str_eq(request(&d, 'd', 1, 0, 8), "a");
    ck_assert_str_eq(request(&d, 'e', 1, 0, POLICY_NEVER), "");
    driven_end(&d);
}
END_TEST

START_TEST(gdsf_breaks_ties_by_the_last_request)
{
    struct driven d;

    driven_begin_letters(&d, "gdsf", 3, 0);
    request(&d, 'a', 1, 0, 0);
    request(&d, 'b', 1, 0, 0);
    request(&d, 'c', 1, 0, 0);
    ck_assert_str_eq(request(&d, 'd', 1, 0, 0), "a"); /* all have 1; L = 1 */
    request(&d, 'c', 1, 0, 0);                        /* 3 */
    request(&d, 'b', 1, 0, 0);                        /* 3, later */
    ck_assert_str_eq(request(&d, 'e', 1, 0, 0), "d"); /* e has 2 */
    request(&d, 'e', 1, 0, 0);                        /* 3 */
    ck_assert_str_eq(request(&d, 'f', 1, 0, 0), "f"); /* 2 is the lowest; L = 2 */
    ck_assert_str_eq(request(&d, 'g', 1, 0, 0), "c"); /* all have 3; L = 3 */
    ck_assert_str_eq(request(&d, 'h', 1, 0, 0), "b");
    driven_end(&d);
}
END_TEST

START_TEST(gds_by_cost)
{
    struct driven d;

    driven_begin_letters(&d, "gds", 0,
                         100); /* cost 1: the largest, and requests count no more than one */
    request(&d, 'a', 10, 900, 0);
    request(&d, 'b', 70, 900000, 0);
    request(&d, 'b', 70, 900000, 0);
    request(&d, 'c', 20, 1, 0);
    ck_assert_str_eq(request(&d, 'd', 15, 1, 0), "b");
    driven_end(&d);

    driven_begin_letters(&d, "gds:cost=time", 0, 100); /* microseconds a byte: 90, 12857, 0.05 */
    request(&d, 'a', 10, 900, 0);
    request(&d, 'b', 70, 900000, 0);
    request(&d, 'c', 20, 1, 0);
    ck_assert_str_eq(request(&d, 'd', 15, 100, 0), "c");
    ck_assert_str_eq(request(&d, 'e', 50, 5000000, 0), "dab");
    driven_end(&d);

    driven_begin_letters(&d, "gds:cost=bytes", 0, 100); /* LRU */
    request(&d, 'a', 10, 900, 0);
    request(&d, 'b', 70, 900000, 0);
    request(&d, 'c', 20, 1, 0);
    request(&d, 'a', 10, 1, 0);
    ck_assert_str_eq(request(&d, 'd', 15, 1, 0), "b");
    ck_assert_str_eq(request(&d, 'e', 90, 1, 0), "cad");
    driven_end(&d);
}
END_TEST

/* A small page costs hardly fewer packets than one ten times as large, and so is worth more. */
START_TEST(gds_and_gdsf_by_packets)
{
    static const char *const both[] = {"gds:cost=packets", "gdsf:cost=packets"};

    for (size_t i = 0; i < 2; i++) {
        struct driven d;

        driven_begin_letters(&d, both[i], 0, 20000);
        request(&d, 'a', 536, 0, 0);                          /* 3 packets for 536 bytes: 1/179 */
        request(&d, 'b', 5360, 0, 0);                         /* 12 for 5360: 1/447 */
        request(&d, 'c', 10720, 0, 0);                        /* 22 for 10720: 1/487 */
        ck_assert_str_eq(request(&d, 'd', 5360, 0, 0), "c");  /* L is c's; 1/233 */
        ck_assert_str_eq(request(&d, 'e', 10720, 0, 0), "b"); /* L is b's; 1/233, later */
        ck_assert_str_eq(request(&d, 'f', 5360, 0, 0), "d");
        ck_assert(d.inside[0]);
        driven_end(&d);
    }
}
END_TEST

/* Requested twice, and slow to fetch: either counts as much as the other. */
START_TEST(gdsf_by_time)
{
    struct driven d;

    driven_begin_letters(&d, "gdsf:cost=time", 3, 0);
    request(&d, 'a', 1, 10, 0);
    request(&d, 'b', 1, 19, 0);
    request(&d, 'c', 1, 30, 0);
    request(&d, 'a', 1, 10, 0);                         /* 20 */
    ck_assert_str_eq(request(&d, 'd', 1, 100, 0), "b"); /* 19 */
    ck_assert_str_eq(request(&d, 'e', 1, 100, 0), "a"); /* 20 */
    ck_assert_str_eq(request(&d, 'f', 1, 100, 0), "c"); /* 30 */
    driven_end(&d);
}
END_TEST

START_TEST(lfuda_ages)
{
    struct driven d;

    driven_begin_letters(&d, "lfuda", 2, 0);
    for (int i = 0; i < 4; i++)
        request(&d, 'a', 1, 0, 0); /* 4 */
    request(&d, 'b', 1, 0, 0);     /* 1 */
    /* A newcomer has L + 1, and L follows the evicted pages: a is overtaken by pages seen once. */
    ck_assert_str_eq(request(&d, 'c', 1, 0, 0), "b"); /* 1, with L = 0; L = 1 */
    ck_assert_str_eq(request(&d, 'd', 1, 0, 0), "c"); /* 2 */
    ck_assert_str_eq(request(&d, 'e', 1, 0, 0), "d"); /* 2; L = 2 */
    ck_assert_str_eq(request(&d, 'f', 1, 0, 0), "e"); /* 3 */
    ck_assert_str_eq(request(&d, 'g', 1, 0, 0), "f"); /* 3; L = 3 */
    ck_assert_str_eq(request(&d, 'h', 1, 0, 0), "g"); /* 4 */
    ck_assert_str_eq(request(&d, 'i', 1, 0, 0), "a"); /* 4, as a and h */
    driven_end(&d);
}
END_TEST

START_TEST(a_page_that_is_purged_ages_no_other)
{
    struct driven d;

    driven_begin_letters(&d, "lfuda", 2, 0);
    for (int i = 0; i < 4; i++)
        request(&d, 'a', 1, 0, 0);
    driven_remove(&d, 0, false);
    request(&d, 'b', 1, 0, 0);
    request(&d, 'b', 1, 0, 0);
    request(&d, 'c', 1, 0, 0);
    ck_assert_str_eq(request(&d, 'd', 1, 0, 0), "c"); /* with L = 4 no page would be below b */
    driven_end(&d);
}
END_TEST

START_TEST(opt_by_hand)
{
    struct driven d;

    driven_begin_letters(&d, "opt", 3, 0);
    request(&d, 'a', 1, 0, 9);
    request(&d, 'b', 1, 0, 5);
    request(&d, 'c', 1, 0, POLICY_NEVER);
    ck_assert_str_eq(request(&d, 'd', 1, 0, POLICY_NEVER), "c");
    ck_assert_str_eq(request(&d, 'e', 1, 0, 7), "d");
    request(&d, 'b', 1, 0, 20);
    ck_assert_str_eq(request(&d, 'f', 1, 0, 8), "b");
    ck_assert_str_eq(request(&d, 'g', 1, 0, 10), "a");
    /* Of the pages that are not requested again, the one requested first. */
    request(&d, 'g', 1, 0, POLICY_NEVER);
    request(&d, 'e', 1, 0, POLICY_NEVER);
    ck_assert_str_eq(request(&d, 'h', 1, 0, 30), "g");
    ck_assert_str_eq(request(&d, 'i', 1, 0, 31), "e");
    driven_end(&d);
}
END_TEST

/* ---- beside the rules --------------------------------------------------------------------- */

static struct {
    double level;
    double value[NAIVE_IDS];
    uint64_t count[NAIVE_IDS];
    uint64_t requested[NAIVE_IDS];
    uint64_t next[NAIVE_IDS];
    uint64_t cost[NAIVE_IDS];
    double (*worth)(const struct naive *n, uint32_t id);
} model;

static double
size_of(const struct naive *n, uint32_t id)
{
    return n->bytes[id] ? (double)n->bytes[id] : 1;
}

static double
cost_of(const struct naive *n, uint32_t id)
{
    switch ((int)n->params[0]) {
    case 1:
        return (double)(model.cost[id] ? model.cost[id] : 1);
    case 2:
        return size_of(n, id);
    case 3:
        return 2 + size_of(n, id) / 536;
    default:
        return 1;
    }
}

/* Rounded as the policy rounds: ties are to break alike. */
static double
gdsf_worth(const struct naive *n, uint32_t id)
{
    return (double)model.count[id] * 1e6 / (size_of(n, id) / cost_of(n, id));
}

static double
gds_worth(const struct naive *n, uint32_t id)
{
    return cost_of(n, id) * 1e6 / size_of(n, id);
}

static double
lfuda_worth(const struct naive *n, uint32_t id)
{
    (void)n;
    return (double)model.count[id];
}

static void
dual_begin(struct naive *n)
{
    (void)n;
    model.level = 0;
}

static void
dual_hit(struct naive *n, uint32_t id, const struct policy_page *page)
{
    (void)page;
    model.count[id]++;
    model.requested[id] = n->now;
    model.value[id] = model.level + model.worth(n, id);
}

static void
dual_enter(struct naive *n, uint32_t id, const struct policy_page *page)
{
    model.count[id] = 0;
    model.cost[id] = page->cost_us;
    dual_hit(n, id, page);
}

static uint32_t
dual_victim(struct naive *n)
{
    uint32_t victim = NAIVE_IDS;

    for (uint32_t id = 0; id < NAIVE_IDS; id++) {
        if (n->inside[id] && (victim == NAIVE_IDS || model.value[id] < model.value[victim] ||
                              (model.value[id] <= model.value[victim] &&
                               model.requested[id] < model.requested[victim])))
            victim = id;
    }
    return victim;
}

static void
dual_leave(struct naive *n, uint32_t id, bool evicted)
{
    (void)n;
    if (evicted)
        model.level = model.value[id];
}

/* Takes victims from the lowest on until the page fits; false if it is below one of them. */
static bool
dual_admit(struct naive *n, uint32_t id, const struct policy_page *page)
{
    uint64_t pages = n->page_count + 1, bytes = n->byte_count + page->bytes;
    bool taken[NAIVE_IDS] = {false};
    double value;

    n->bytes[id] = page->bytes;
    model.count[id] = 1;
    model.cost[id] = page->cost_us;
    value = model.level + model.worth(n, id);
    while ((n->capacity_pages && pages > n->capacity_pages) ||
           (n->capacity_bytes && bytes > n->capacity_bytes)) {
        uint32_t victim = NAIVE_IDS;

        for (uint32_t i = 0; i < NAIVE_IDS; i++)
            if (n->inside[i] && !taken[i] &&
                (victim == NAIVE_IDS || model.value[i] < model.value[victim]))
                victim = i;
        if (victim == NAIVE_IDS || value < model.value[victim])
            return false;
        taken[victim] = true;
        pages--;
        bytes -= n->bytes[victim];
    }
    return true;
}

static const struct naive_rule dual_compared_rule = {
    .enters_first = true,
    .begin = dual_begin,
    .admit = dual_admit,
    .enter = dual_enter,
    .hit = dual_hit,
    .victim = dual_victim,
    .leave = dual_leave,
};

/* The victims first, and then the page with the level that they left. */
static const struct naive_rule dual_enters_rule = {
    .begin = dual_begin,
    .enter = dual_enter,
    .hit = dual_hit,
    .victim = dual_victim,
    .leave = dual_leave,
};

static const struct naive_rule dual_rule = {
    .enters_first = true,
    .begin = dual_begin,
    .enter = dual_enter,
    .hit = dual_hit,
    .victim = dual_victim,
    .leave = dual_leave,
};

START_TEST(greedy_dual_policies_are_their_rules)
{
    static const struct {
        const char *text;
        const struct naive_rule *rule;
        double (*worth)(const struct naive *n, uint32_t id);
    } rows[] = {
        {"gdsf", &dual_rule, gdsf_worth},
        {"gdsf:cost=time", &dual_rule, gdsf_worth},
        {"gdsf:cost=bytes", &dual_rule, gdsf_worth},
        {"gdsf:cost=packets", &dual_rule, gdsf_worth},
        {"gdsf:newcomer=compared", &dual_compared_rule, gdsf_worth},
        {"gdsf:newcomer=compared,cost=time", &dual_compared_rule, gdsf_worth},
        {"gdsf:newcomer=enters", &dual_enters_rule, gdsf_worth},
        {"gds", &dual_rule, gds_worth},
        {"gds:cost=time", &dual_rule, gds_worth},
        {"gds:cost=bytes", &dual_rule, gds_worth},
        {"gds:cost=packets", &dual_rule, gds_worth},
        {"gds:newcomer=compared", &dual_compared_rule, gds_worth},
        {"gds:newcomer=enters", &dual_enters_rule, gds_worth},
        {"gds:newcomer=enters,cost=packets", &dual_enters_rule, gds_worth},
        {"lfuda", &dual_rule, lfuda_worth},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        model.worth = rows[i].worth;
        naive_compare_all(rows[i].text, rows[i].rule, NULL);
    }
}
END_TEST

static void
opt_note(struct naive *n, uint32_t id, const struct policy_page *page)
{
    model.next[id] = page->next;
    model.requested[id] = n->now;
}

static uint32_t
opt_victim(struct naive *n)
{
    uint32_t victim = NAIVE_IDS;

    for (uint32_t id = 0; id < NAIVE_IDS; id++) {
        if (n->inside[id] && (victim == NAIVE_IDS || model.next[id] > model.next[victim] ||
                              (model.next[id] == model.next[victim] &&
                               model.requested[id] < model.requested[victim])))
            victim = id;
    }
    return victim;
}

static void
opt_leave(struct naive *n, uint32_t id, bool evicted)
{
    (void)n;
    (void)id;
    (void)evicted;
}

/* Takes the farthest until the page fits; false if it is farther than one of them. */
static bool
opt_admit(struct naive *n, uint32_t id, const struct policy_page *page)
{
    uint64_t pages = n->page_count + 1, bytes = n->byte_count + page->bytes;
    bool taken[NAIVE_IDS] = {false};

    (void)id;
    while ((n->capacity_pages && pages > n->capacity_pages) ||
           (n->capacity_bytes && bytes > n->capacity_bytes)) {
        uint32_t victim = NAIVE_IDS;

        for (uint32_t i = 0; i < NAIVE_IDS; i++)
            if (n->inside[i] && !taken[i] &&
                (victim == NAIVE_IDS || model.next[i] > model.next[victim]))
                victim = i;
        if (victim == NAIVE_IDS || page->next > model.next[victim])
            return false;
        taken[victim] = true;
        pages--;
        bytes -= n->bytes[victim];
    }
    return true;
}

START_TEST(opt_is_its_rule)
{
    static const struct naive_rule bypassing = {.admit = opt_admit,
                                                .enter = opt_note,
                                                .hit = opt_note,
                                                .victim = opt_victim,
                                                .leave = opt_leave};
    static const struct naive_rule rule = {
        .enter = opt_note, .hit = opt_note, .victim = opt_victim, .leave = opt_leave};

    naive_compare_all("opt", &rule, NULL);
    naive_compare_all("opt:bypass=yes", &bypassing, NULL);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("policies/greedy_dual");
    TCase *hand = tcase_create("hand");
    TCase *rules = tcase_create("rules");

    tcase_add_test(hand, gdsf_by_hand);
    tcase_add_test(hand, gdsf_breaks_ties_by_the_last_request);
    tcase_add_test(hand, gdsf_and_a_large_newcomer);
    tcase_add_test(hand, opt_that_bypasses);
    tcase_add_test(hand, gds_by_cost);
    tcase_add_test(hand, gds_and_gdsf_by_packets);
    tcase_add_test(hand, gdsf_by_time);
    tcase_add_test(hand, lfuda_ages);
    tcase_add_test(hand, a_page_that_is_purged_ages_no_other);
    tcase_add_test(hand, opt_by_hand);
    suite_add_tcase(suite, hand);
    tcase_set_timeout(rules, 120);
    tcase_add_test(rules, greedy_dual_policies_are_their_rules);
    tcase_add_test(rules, opt_is_its_rule);
    suite_add_tcase(suite, rules);
    return suite;
}
