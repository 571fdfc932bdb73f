/*
 * LIRS: the paper's example and others by hand, and beside the rule as the paper has it, with one
 * stack that ghosts stand in like everybody else.
 */
#include "tests/unit/policies/naive.h"

/* ---- by hand ------------------------------------------------------------------------------ */

/* Evicts all: first the HIR pages as Q has them, then the LIR pages from the bottom of S. */
static const char *
drain(struct driven *d)
{
    static char left[30];

    d->victim_count = 0;
    while (d->page_count)
        driven_evict(d);
    for (size_t i = 0; i < d->victim_count; i++)
        left[i] = (char)('a' + d->victims[i]);
    left[d->victim_count] = '\0';
    return left;
}

/*
 * The state of the paper's Table 1: of three pages two are LIR, a and b, and e is HIR; recencies
 * are b 3, d 2, a 1, e 0, and d is gone but in S.
 */
static void
begin_example(struct driven *d)
{
    driven_begin_letters(d, "lirs:hir=0.34", 3, 0);
    ck_assert_str_eq(driven_play(d, "abcbdae"), "+++.+c.+d");
}

START_TEST(the_papers_example)
{
    struct driven d;

    begin_example(&d);
    ck_assert_str_eq(drain(&d), "eba");
    driven_end(&d);

    /* A request for d, whose recency is less than b's: it becomes LIR, and b HIR. */
    begin_example(&d);
    ck_assert_str_eq(driven_play(&d, "d"), "+e");
    ck_assert_str_eq(drain(&d), "bad");
    driven_end(&d);

    /* One for c, last requested before b: no page's status changes. */
    begin_example(&d);
    ck_assert_str_eq(driven_play(&d, "c"), "+e");
    ck_assert_str_eq(drain(&d), "cba");
    driven_end(&d);
}
END_TEST

START_TEST(requests_of_pages_inside)
{
    struct driven d;

    /* Capacity 5, of which 2 are for HIR pages: a, b, c are LIR, d and e are not. */
    driven_begin_letters(&d, "lirs:hir=0.4", 5, 0);
    ck_assert_str_eq(driven_play(&d, "abcde"), "+++++");
    ck_assert_str_eq(driven_play(&d, "b"), "."); /* LIR, not the bottom */
    ck_assert_str_eq(driven_play(&d, "a"), "."); /* the bottom: now c is; S: c d e b a */
    ck_assert_str_eq(driven_play(&d, "d"), "."); /* HIR in S: LIR now, and c, the bottom, is HIR */
    /* S: b a d, for e was below b. Q: e c. */
    ck_assert_str_eq(driven_play(&d, "e"), "."); /* HIR, not in S: stays so, goes to the end of Q */
    ck_assert_str_eq(drain(&d), "cebad");
    driven_end(&d);

    driven_begin_letters(&d, "lirs:hir=0.4", 5, 0);
    driven_play(&d, "abcdebade");
    ck_assert_str_eq(driven_play(&d, "e"), "."); /* it is in S now, and b is at the bottom */
    ck_assert_str_eq(drain(&d), "cbade");
    driven_end(&d);
}
END_TEST

START_TEST(a_loop_that_is_larger_than_the_cache)
{
    struct driven d;
    unsigned hits = 0;

    /* LRU has no hit here. All but the share of HIR pages stay. */
    driven_begin(&d, "lirs", 120, 100, 0);
    for (int round = 0; round < 10; round++) {
        for (uint32_t id = 0; id < 120; id++)
            hits += driven_request(&d, id, (struct policy_page){.bytes = 1});
    }
    ck_assert_uint_eq(hits, 9 * 99);
    driven_end(&d);
}
END_TEST

START_TEST(one_page_is_lru)
{
    struct driven d;

    driven_begin_letters(&d, "lirs", 1, 0);
    ck_assert_str_eq(driven_play(&d, "abbac"), "++a.+b+a");
    driven_end(&d);
}
END_TEST

START_TEST(a_purged_page_has_no_ghost)
{
    struct driven d;

    driven_begin_letters(&d, "lirs:hir=0.34", 3, 0);
    driven_play(&d, "abc");
    driven_remove(&d, 2, false);
    ck_assert_str_eq(driven_play(&d, "c"), "+");
    ck_assert_str_eq(drain(&d), "cab"); /* as a page that was never here */
    driven_end(&d);

    driven_begin_letters(&d, "lirs:hir=0.34", 3, 0);
    driven_play(&d, "abc");
    driven_remove(&d, 0, false); /* LIR: the next newcomer takes its share */
    ck_assert_str_eq(driven_play(&d, "d"), "+");
    ck_assert_str_eq(drain(&d), "cbd");
    driven_end(&d);
}
END_TEST

START_TEST(history_bounds_the_stack)
{
    struct driven d;

    /* a, b LIR; c, d, e pass through; with none remembered, none comes back as LIR. */
    driven_begin_letters(&d, "lirs:hir=0.34,history=0", 3, 0);
    driven_play(&d, "abcdec");
    ck_assert_str_eq(drain(&d), "cab");
    driven_end(&d);

    driven_begin_letters(&d, "lirs:hir=0.34,history=1", 3,
                         0); /* d, e, f are remembered, c is not */
    driven_play(&d, "abcdefg");
    ck_assert_str_eq(driven_play(&d, "c"), "+g"); /* it stays HIR; for g's sake d is forgotten, */
    ck_assert_str_eq(driven_play(&d, "f"), "+c"); /* for c's e, but not f, which becomes LIR, */
    ck_assert_str_eq(drain(&d), "abf");           /* and a HIR */
    driven_end(&d);
}
END_TEST

START_TEST(sizes)
{
    struct driven d;

    /* 99 of 100 bytes are for LIR pages, so that one of 100 cannot be. */
    driven_begin(&d, "lirs", 26, 0, 100);
    d.checks = true;
    driven_request(&d, 0, (struct policy_page){.bytes = 60});
    driven_request(&d, 1, (struct policy_page){.bytes = 30});
    driven_request(&d, 2, (struct policy_page){.bytes = 10}); /* 100: HIR */
    driven_request(&d, 3, (struct policy_page){.bytes = 20});
    ck_assert_uint_eq(d.victim_count, 2); /* 2, then the bottom of S */
    ck_assert_uint_eq(d.victims[0], 2);
    ck_assert_uint_eq(d.victims[1], 0);
    driven_request(&d, 4, (struct policy_page){.bytes = 100});
    ck_assert_uint_eq(d.victim_count, 2);
    driven_request(&d, 4, (struct policy_page){.bytes = 100});
    ck_assert_uint_eq(d.page_count, 1);
    driven_request(&d, 5, (struct policy_page){.bytes = 1});
    ck_assert_uint_eq(d.victim_count, 1);
    driven_end(&d);
}
END_TEST

/* ---- beside the rule ---------------------------------------------------------------------- */

enum status { NOWHERE, LIR, HIR, GHOST };

/* S, the bottom first, and Q, the next victim first. */
static struct {
    uint32_t stack[NAIVE_IDS], stacked;
    uint32_t queue[NAIVE_IDS], queued;
    enum status status[NAIVE_IDS];
    double hir_fraction, history;
} model;

static void
take_out(uint32_t *ids, uint32_t *count, uint32_t id)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < *count; i++) {
        if (ids[i] != id)
            ids[n++] = ids[i];
    }
    *count = n;
}

static bool
is_stacked(uint32_t id)
{
    for (uint32_t i = 0; i < model.stacked; i++) {
        if (model.stack[i] == id)
            return true;
    }
    return false;
}

static void
put_on_top(uint32_t id)
{
    take_out(model.stack, &model.stacked, id);
    model.stack[model.stacked++] = id;
}

static void
put_last(uint32_t id)
{
    take_out(model.queue, &model.queued, id);
    model.queue[model.queued++] = id;
}

static void
prune(void)
{
    while (model.stacked && model.status[model.stack[0]] != LIR) {
        if (model.status[model.stack[0]] == GHOST)
            model.status[model.stack[0]] = NOWHERE;
        take_out(model.stack, &model.stacked, model.stack[0]);
    }
}

/* Would these LIR pages and bytes be within their share, with one more page? */
static bool
are_within(const struct naive *n, uint64_t pages, uint64_t bytes)
{
    uint64_t hir_pages = (uint64_t)((double)n->capacity_pages * model.hir_fraction);
    uint64_t hir_bytes = (uint64_t)((double)n->capacity_bytes * model.hir_fraction);

    if (hir_pages == 0)
        hir_pages = 1;
    return (!n->capacity_pages || pages <= n->capacity_pages - hir_pages) &&
           (!n->capacity_bytes || bytes <= n->capacity_bytes - hir_bytes);
}

static void
count_lirs(const struct naive *n, uint64_t *pages, uint64_t *bytes)
{
    *pages = *bytes = 0;
    for (uint32_t id = 0; id < NAIVE_IDS; id++) {
        if (model.status[id] == LIR) {
            ++*pages;
            *bytes += n->bytes[id];
        }
    }
}

static void
trim(struct naive *n)
{
    uint64_t pages, bytes;

    for (;;) {
        uint32_t bottom = model.stack[0];

        count_lirs(n, &pages, &bytes);
        if (are_within(n, pages, bytes))
            return;
        model.status[bottom] = HIR;
        take_out(model.stack, &model.stacked, bottom);
        put_last(bottom);
        prune();
    }
}

static void
lirs_begin(struct naive *n)
{
    (void)n;
    model.stacked = model.queued = 0;
    memset(model.status, 0, sizeof(model.status));
}

static void
lirs_enter(struct naive *n, uint32_t id, const struct policy_page *page)
{
    bool was_ghost = model.status[id] == GHOST;
    uint64_t pages, bytes;

    model.status[id] = HIR;
    count_lirs(n, &pages, &bytes);
    put_on_top(id);
    if (are_within(n, pages + 1, bytes + page->bytes) ||
        (was_ghost && are_within(n, 1, page->bytes))) {
        model.status[id] = LIR;
        trim(n);
    } else {
        put_last(id);
    }
    prune();
}

static void
lirs_hit(struct naive *n, uint32_t id, const struct policy_page *page)
{
    bool was_stacked = is_stacked(id);

    (void)page;
    put_on_top(id);
    if (model.status[id] == HIR) {
        if (was_stacked && are_within(n, 1, n->bytes[id])) {
            model.status[id] = LIR;
            take_out(model.queue, &model.queued, id);
            trim(n);
        } else {
            put_last(id);
        }
    }
    prune();
}

static uint32_t
lirs_victim(struct naive *n)
{
    (void)n;
    return model.queued ? model.queue[0] : model.stack[0];
}

static void
lirs_leave(struct naive *n, uint32_t id, bool evicted)
{
    uint64_t most = (uint64_t)((double)n->page_count * model.history), ghosts = 0;

    take_out(model.queue, &model.queued, id);
    if (evicted && model.status[id] == HIR && is_stacked(id) && most > 0) {
        model.status[id] = GHOST;
    } else {
        model.status[id] = NOWHERE;
        take_out(model.stack, &model.stacked, id);
    }
    prune();
    /* The oldest beyond the bound are forgotten. */
    for (uint32_t i = model.stacked; i-- > 0;) {
        uint32_t other = model.stack[i];

        if (model.status[other] == GHOST && ++ghosts > most) {
            model.status[other] = NOWHERE;
            take_out(model.stack, &model.stacked, other);
        }
    }
}

static const struct naive_rule rule = {
    .begin = lirs_begin,
    .enter = lirs_enter,
    .hit = lirs_hit,
    .victim = lirs_victim,
    .leave = lirs_leave,
    .resized = trim,
};

START_TEST(lirs_is_its_rule)
{
    model.hir_fraction = 0.01;
    model.history = 2;
    naive_compare_all("lirs", &rule, NULL);
    model.hir_fraction = 0.3;
    model.history = 0.5;
    naive_compare_all("lirs:hir=0.3,history=0.5", &rule, NULL);
    model.hir_fraction = 0.1;
    model.history = 100;
    naive_compare_all("lirs:hir=0.1,history=100", &rule, NULL);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("policies/lirs");
    TCase *hand = tcase_create("hand");
    TCase *rules = tcase_create("rules");

    tcase_add_test(hand, the_papers_example);
    tcase_add_test(hand, requests_of_pages_inside);
    tcase_add_test(hand, a_loop_that_is_larger_than_the_cache);
    tcase_add_test(hand, one_page_is_lru);
    tcase_add_test(hand, a_purged_page_has_no_ghost);
    tcase_add_test(hand, history_bounds_the_stack);
    tcase_add_test(hand, sizes);
    suite_add_tcase(suite, hand);
    tcase_set_timeout(rules, 120);
    tcase_add_test(rules, lirs_is_its_rule);
    suite_add_tcase(suite, rules);
    return suite;
}
