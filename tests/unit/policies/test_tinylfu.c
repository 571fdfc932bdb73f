/*
 * TinyLFU and W-TinyLFU: by hand, and beside their rules as the paper has them (with the same
 * sketch, which test_sketch.c tests).
 */
#include "policies/sketch.h"

#include "tests/unit/policies/naive.h"

/* ---- by hand ------------------------------------------------------------------------------ */

/* Each letter is a request of a page of one byte; the page evicted, or "-" for a page not admitted.
 */
static const char *
play(struct driven *d, const char *pages)
{
    static char left[100];
    size_t n = 0;

    for (; *pages; pages++) {
        uint32_t id = (uint32_t)(*pages - 'a');

        driven_request(d, id, (struct policy_page){.bytes = 1});
        for (size_t i = 0; i < d->victim_count; i++)
            left[n++] = (char)('a' + d->victims[i]);
        if (!d->inside[id] && d->victim_count == 0)
            left[n++] = '-';
    }
    left[n] = '\0';
    return left;
}

START_TEST(tinylfu_by_hand)
{
    struct driven d;

    driven_begin_letters(&d, "tinylfu", 3, 0);
    ck_assert_str_eq(play(&d, "abc"), "");    /* the cache is not full */
    ck_assert_str_eq(play(&d, "d"), "-");     /* as often as a, once: not more often */
    ck_assert_str_eq(play(&d, "d"), "a");     /* twice now */
    ck_assert_str_eq(play(&d, "bb"), "");     /* three times; c is the oldest */
    ck_assert_str_eq(play(&d, "aa"), "c");    /* a was here once: twice is more than c's once */
    ck_assert_str_eq(play(&d, "eee"), "--d"); /* d has two, three are needed */
    driven_end(&d);
}
END_TEST

START_TEST(tinylfu_makes_large_pages_beat_all_victims)
{
    struct driven d;

    driven_begin_letters(&d, "tinylfu", 0, 10);
    for (uint32_t id = 0; id < 5; id++)
        driven_request(&d, id, (struct policy_page){.bytes = 2});
    driven_request(&d, 1, (struct policy_page){.bytes = 2}); /* 1 has two */
    /* In order of leaving: 0, 2, 3, 4 with one request each, then 1 with two. */
    ck_assert(!driven_request(&d, 9, (struct policy_page){.bytes = 10}));
    ck_assert(!driven_request(&d, 9, (struct policy_page){.bytes = 10})); /* twice: 1 as often */
    ck_assert(!d.inside[9]);
    ck_assert_uint_eq(d.page_count, 5);
    ck_assert(!driven_request(&d, 9, (struct policy_page){.bytes = 10}));
    ck_assert(d.inside[9]);
    ck_assert_uint_eq(d.page_count, 1);
    driven_end(&d);

    driven_begin_letters(&d, "tinylfu", 0, 10); /* one of 8 has to beat four */
    for (uint32_t id = 0; id < 5; id++)
        driven_request(&d, id, (struct policy_page){.bytes = 2});
    driven_request(&d, 1, (struct policy_page){.bytes = 2});
    driven_request(&d, 9, (struct policy_page){.bytes = 8});
    ck_assert(!d.inside[9]);
    driven_request(&d, 9, (struct policy_page){.bytes = 8});
    ck_assert(d.inside[9] && d.inside[1]);
    driven_end(&d);
}
END_TEST

/* The older page of the same URL is removed in any case, and need not be beaten. */
START_TEST(tinylfu_lets_a_page_replace_itself)
{
    struct driven d;
    struct policy_page page = {.bytes = 1, .key = 0x9e3779b97f4a7c15u};

    driven_begin_letters(&d, "tinylfu", 3, 0);
    play(&d, "abcbcbc");
    ck_assert(!d.spec.ops->admit(d.policy, &page));
    page.old = driven_node(&d, 0);
    ck_assert(d.spec.ops->admit(d.policy, &page));
    driven_end(&d);

    driven_begin_letters(&d, "tinylfu", 0, 6);
    for (uint32_t id = 0; id < 3; id++)
        driven_request(&d, id, (struct policy_page){.bytes = 2});
    for (int i = 0; i < 5; i++)
        driven_request(&d, 1, (struct policy_page){.bytes = 2});
    page.old = driven_node(&d, 0);
    page.bytes = 4; /* 1 or 2 has to leave for what it has grown: 2 is the older and has one */
    ck_assert(d.spec.ops->admit(d.policy, &page));
    page.bytes = 6; /* 1, too, which has six */
    ck_assert(!d.spec.ops->admit(d.policy, &page));
    driven_end(&d);
}
END_TEST

START_TEST(w_tinylfu_by_hand)
{
    struct driven d;

    /* Capacity 5: a window of one, a main part of four of which three may be protected. */
    driven_begin_letters(&d, "w-tinylfu", 5, 0);
    ck_assert_str_eq(play(&d, "abcde"), ""); /* e in the window, a to d on probation */
    ck_assert_str_eq(play(&d, "f"), "e");    /* e contends with a: one each, e is evicted */
    ck_assert_str_eq(play(&d, "f"), "");     /* two, still in the window */
    ck_assert_str_eq(play(&d, "g"), "a");    /* f contends with a, and wins */
    ck_assert_str_eq(play(&d, "bcd"), "");   /* protected; f is alone on probation */
    ck_assert_str_eq(play(&d, "g"), "");
    ck_assert_str_eq(play(&d, "h"), "g");  /* two each */
    ck_assert_str_eq(play(&d, "f"), "");   /* protected; b goes back to probation */
    ck_assert_str_eq(play(&d, "hhh"), ""); /* four, in the window */
    ck_assert_str_eq(play(&d, "i"), "b");  /* h contends with b */
    ck_assert_str_eq(play(&d, "j"), "i");  /* i with h: it does not get far */
    ck_assert_str_eq(play(&d, "k"), "j");
    driven_end(&d);
}
END_TEST

START_TEST(w_tinylfu_evicts_no_page_of_the_window_for_a_large_page)
{
    struct driven d;

    driven_begin_letters(&d, "w-tinylfu:window=0.2", 0,
                         100); /* 20, of which a small page has ten */
    for (uint32_t id = 0; id < 9; id++)
        driven_request(&d, id, (struct policy_page){.bytes = 10});
    driven_request(&d, 9, (struct policy_page){.bytes = 10}); /* 8 and 9 are in the window */
    driven_request(&d, 20, (struct policy_page){.bytes = 30});
    ck_assert_uint_eq(d.victim_count, 1); /* itself: 0 was asked for as often */
    ck_assert_uint_eq(d.victims[0], 20);
    driven_request(&d, 20, (struct policy_page){.bytes = 30});
    ck_assert_uint_eq(d.victim_count, 3); /* twice, and three that were requested once */
    ck_assert(d.inside[20] && d.inside[8] && d.inside[9]);
    ck_assert(!d.inside[0] && !d.inside[1] && !d.inside[2]);
    driven_end(&d);
}
END_TEST

START_TEST(a_scan_does_not_empty_what_is_asked_for_often)
{
    static const char *const names[] = {"tinylfu", "w-tinylfu"};

    for (size_t i = 0; i < 2; i++) {
        struct driven d;

        driven_begin(&d, names[i], 5000, 100, 0);
        for (int round = 0; round < 5; round++) {
            for (uint32_t id = 0; id < 90; id++)
                driven_request(&d, id, (struct policy_page){.bytes = 1});
        }
        for (uint32_t id = 100; id < 500; id++)
            driven_request(&d, id, (struct policy_page){.bytes = 1});
        for (uint32_t id = 0; id < 90; id++)
            ck_assert_msg(d.inside[id], "%s let %u go", names[i], id);
        driven_end(&d);
    }
}
END_TEST

/* ---- beside the rules --------------------------------------------------------------------- */

enum { WINDOW, PROBATION, PROTECTED, PARTS };

/* Lists are arrays, the least recently requested first. TinyLFU has one, the first. */
static struct {
    uint32_t ids[PARTS][NAIVE_IDS];
    uint32_t counts[PARTS];
    double window_fraction, protected_fraction;
    struct sketch sketch;
} model;

static void
take_out(int part, uint32_t id)
{
    uint32_t *ids = model.ids[part], n = 0;

    for (uint32_t i = 0; i < model.counts[part]; i++) {
        if (ids[i] != id)
            ids[n++] = ids[i];
    }
    ck_assert_uint_eq(n + 1, model.counts[part]);
    model.counts[part] = n;
}

static void
put_last(int part, uint32_t id)
{
    model.ids[part][model.counts[part]++] = id;
}

static int
part_of(uint32_t id)
{
    for (int part = 0; part < PARTS; part++) {
        for (uint32_t i = 0; i < model.counts[part]; i++) {
            if (model.ids[part][i] == id)
                return part;
        }
    }
    ck_abort_msg("%u is nowhere", id);
}

static uint64_t
bytes_of(const struct naive *n, int part)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < model.counts[part]; i++)
        sum += n->bytes[model.ids[part][i]];
    return sum;
}

static void
lfu_begin(struct naive *n)
{
    (void)n;
    memset(model.counts, 0, sizeof(model.counts));
    sketch_free(&model.sketch);
    ck_assert(sketch_init(&model.sketch, 4, 10));
}

static unsigned
frequency(uint32_t id)
{
    return sketch_estimate(&model.sketch, naive_key(id));
}

static bool
lru_admit(struct naive *n, uint32_t id, const struct policy_page *page)
{
    uint64_t pages = n->page_count + 1, bytes = n->byte_count + page->bytes;

    sketch_fit(&model.sketch, n->page_count + 1);
    sketch_count(&model.sketch, naive_key(id));
    for (uint32_t i = 0; i < model.counts[0]; i++) {
        uint32_t victim = model.ids[0][i];

        if ((!n->capacity_pages || pages <= n->capacity_pages) &&
            (!n->capacity_bytes || bytes <= n->capacity_bytes))
            break;
        if (frequency(victim) >= frequency(id))
            return false;
        pages--;
        bytes -= n->bytes[victim];
    }
    return true;
}

static void
lru_enter(struct naive *n, uint32_t id, const struct policy_page *page)
{
    (void)n;
    (void)page;
    put_last(0, id);
}

static void
lru_hit(struct naive *n, uint32_t id, const struct policy_page *page)
{
    (void)n;
    (void)page;
    sketch_count(&model.sketch, naive_key(id));
    take_out(0, id);
    put_last(0, id);
}

static uint32_t
lru_victim(struct naive *n)
{
    (void)n;
    return model.ids[0][0];
}

static void
lru_leave(struct naive *n, uint32_t id, bool evicted)
{
    (void)n;
    (void)evicted;
    take_out(0, id);
}

START_TEST(tinylfu_is_its_rule)
{
    static const struct naive_rule rule = {
        .begin = lfu_begin,
        .admit = lru_admit,
        .enter = lru_enter,
        .hit = lru_hit,
        .victim = lru_victim,
        .leave = lru_leave,
    };

    naive_compare_all("tinylfu", &rule, NULL);
    sketch_free(&model.sketch);
}
END_TEST

/* The window's share in pages and bytes, 0 where there is no bound. */
static void
window_share(const struct naive *n, uint64_t *pages, uint64_t *bytes)
{
    *pages = (uint64_t)((double)n->capacity_pages * model.window_fraction);
    if (n->capacity_pages && *pages == 0)
        *pages = 1;
    *bytes = (uint64_t)((double)n->capacity_bytes * model.window_fraction);
}

static bool
window_is_exceeded(const struct naive *n)
{
    uint64_t pages, bytes;

    window_share(n, &pages, &bytes);
    return (n->capacity_pages && model.counts[WINDOW] > pages) ||
           (n->capacity_bytes && bytes_of(n, WINDOW) > bytes);
}

static bool
protected_is_exceeded(const struct naive *n)
{
    uint64_t pages, bytes;

    window_share(n, &pages, &bytes);
    pages = (uint64_t)((double)(n->capacity_pages - pages) * model.protected_fraction);
    bytes = (uint64_t)((double)(n->capacity_bytes - bytes) * model.protected_fraction);
    return (n->capacity_pages && model.counts[PROTECTED] > pages) ||
           (n->capacity_bytes && bytes_of(n, PROTECTED) > bytes);
}

/* The pages beyond the window have been admitted to main by now. */
static void
let_in(struct naive *n)
{
    while (window_is_exceeded(n)) {
        uint32_t id = model.ids[WINDOW][0];

        take_out(WINDOW, id);
        put_last(PROBATION, id);
    }
}

static void
demote(struct naive *n)
{
    while (protected_is_exceeded(n)) {
        uint32_t id = model.ids[PROTECTED][0];

        take_out(PROTECTED, id);
        put_last(PROBATION, id);
    }
}

static void
w_enter(struct naive *n, uint32_t id, const struct policy_page *page)
{
    uint64_t pages, bytes;

    let_in(n);
    sketch_fit(&model.sketch, n->page_count);
    sketch_count(&model.sketch, naive_key(id));
    put_last(WINDOW, id);
    window_share(n, &pages, &bytes);
    if (n->capacity_bytes && page->bytes > bytes) {
        /* The first of all. */
        memmove(model.ids[WINDOW] + 1, model.ids[WINDOW],
                (model.counts[WINDOW] - 1) * sizeof(uint32_t));
        model.ids[WINDOW][0] = id;
    }
}

static void
w_hit(struct naive *n, uint32_t id, const struct policy_page *page)
{
    int part;

    (void)page;
    let_in(n);
    sketch_count(&model.sketch, naive_key(id));
    part = part_of(id);
    take_out(part, id);
    put_last(part == PROBATION ? PROTECTED : part, id);
    demote(n);
}

static uint32_t
w_victim(struct naive *n)
{
    uint32_t in_main;

    if (model.counts[PROBATION])
        in_main = model.ids[PROBATION][0];
    else if (model.counts[PROTECTED])
        in_main = model.ids[PROTECTED][0];
    else
        return model.ids[WINDOW][0];
    if (!window_is_exceeded(n) || frequency(model.ids[WINDOW][0]) > frequency(in_main))
        return in_main;
    return model.ids[WINDOW][0];
}

static void
w_leave(struct naive *n, uint32_t id, bool evicted)
{
    if (!evicted)
        let_in(n);
    take_out(part_of(id), id);
}

static const struct naive_rule w_rule = {
    .enters_first = true,
    .begin = lfu_begin,
    .enter = w_enter,
    .hit = w_hit,
    .victim = w_victim,
    .leave = w_leave,
    .resizing = let_in,
    .resized = demote,
};

START_TEST(w_tinylfu_is_its_rule)
{
    model.window_fraction = 0.01;
    model.protected_fraction = 0.8;
    naive_compare_all("w-tinylfu", &w_rule, NULL);
    model.window_fraction = 0.25;
    model.protected_fraction = 0.5;
    naive_compare_all("w-tinylfu:window=0.25,protected=0.5", &w_rule, NULL);
    sketch_free(&model.sketch);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("policies/tinylfu");
    TCase *hand = tcase_create("hand");
    TCase *rules = tcase_create("rules");

    tcase_add_test(hand, tinylfu_by_hand);
    tcase_add_test(hand, tinylfu_makes_large_pages_beat_all_victims);
    tcase_add_test(hand, tinylfu_lets_a_page_replace_itself);
    tcase_add_test(hand, w_tinylfu_by_hand);
    tcase_add_test(hand, w_tinylfu_evicts_no_page_of_the_window_for_a_large_page);
    tcase_add_test(hand, a_scan_does_not_empty_what_is_asked_for_often);
    suite_add_tcase(suite, hand);
    tcase_set_timeout(rules, 120);
    tcase_add_test(rules, tinylfu_is_its_rule);
    tcase_add_test(rules, w_tinylfu_is_its_rule);
    suite_add_tcase(suite, rules);
    return suite;
}
