/*
 * CLOCK-Pro beside its rule on arrays.
 */
#define NAIVE_IDS 320u

#include <math.h>

#include "tests/unit/policies/seq.h"

/* ---- the rule: the ring begins at the hot hand ----------------------------------------------- */

enum { COLD };
enum state { HOT, PLAIN, TESTED, GHOST }; /* cold pages are the latter three */

static struct {
    struct seq ring;
    enum state state[NAIVE_IDS];
    bool requested[NAIVE_IDS];
    uint32_t cold_hand, test_hand; /* ids; NAIVE_IDS: at the first */
    uint64_t cold_share;
    bool was_ghost, has_evicted;
} pro;

static uint64_t
pro_capacity(const struct naive *n)
{
    return n->capacity_bytes ? n->capacity_bytes : n->capacity_pages;
}

static uint64_t
pro_size(const struct naive *n, uint32_t id)
{
    return n->capacity_bytes ? n->bytes[id] : 1;
}

static uint64_t
pro_least(const struct naive *n)
{
    return (uint64_t)fmax(floor((double)pro_capacity(n) * 0.01), 1);
}

static void
pro_set_cold_share(const struct naive *n, double fraction)
{
    pro.cold_share = (uint64_t)((double)pro_capacity(n) * fraction);
    if (pro.cold_share < pro_least(n))
        pro.cold_share = pro_least(n);
    if (pro.cold_share > pro_capacity(n))
        pro.cold_share = pro_capacity(n);
}

static void
pro_begin(struct naive *n)
{
    memset(&pro, 0, sizeof(pro));
    pro.cold_hand = pro.test_hand = NAIVE_IDS;
    pro_set_cold_share(n, n->params[COLD]);
}

static uint32_t
pro_next(uint32_t id)
{
    return pro.ring.ids[(seq_find(&pro.ring, id) + 1) % pro.ring.count];
}

static void
pro_take(uint32_t id)
{
    uint32_t next = pro.ring.count > 1 ? pro_next(id) : NAIVE_IDS;

    if (pro.cold_hand == id)
        pro.cold_hand = next;
    if (pro.test_hand == id)
        pro.test_hand = next;
    seq_take(&pro.ring, id);
}

static void
pro_adapt(const struct naive *n, uint32_t id, int sign)
{
    double share = (double)pro.cold_share + sign * (double)pro_size(n, id);

    pro.cold_share = (uint64_t)fmin(fmax(share, (double)pro_least(n)), (double)pro_capacity(n));
}

static void
pro_end_test(const struct naive *n, uint32_t id)
{
    if (pro.state[id] == TESTED && !pro.requested[id]) {
        pro.state[id] = PLAIN;
        pro_adapt(n, id, -1);
    } else if (pro.state[id] == GHOST) {
        pro_adapt(n, id, -1);
        pro_take(id);
    }
}

static uint64_t
pro_sum(const struct naive *n, enum state state)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < pro.ring.count; i++) {
        uint32_t id = pro.ring.ids[i];

        if (pro.state[id] == state)
            sum += state == GHOST && pro_size(n, id) == 0 ? 1 : pro_size(n, id);
    }
    return sum;
}

static uint32_t
pro_count(bool hot)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < pro.ring.count; i++) {
        enum state state = pro.state[pro.ring.ids[i]];

        count += hot ? state == HOT : state == PLAIN || state == TESTED;
    }
    return count;
}

static void
pro_hot_hand(const struct naive *n)
{
    for (;;) {
        uint32_t id = pro.ring.ids[0];
        bool found = pro.state[id] == HOT && !pro.requested[id];

        if (pro.state[id] == GHOST) {
            pro_end_test(n, id);
            continue;
        }
        if (pro.state[id] == HOT)
            pro.requested[id] = false;
        else
            pro_end_test(n, id);
        if (found)
            pro.state[id] = PLAIN;
        seq_to_end(&pro.ring, id); /* the hands stay where they are in the circle */
        if (found)
            return;
    }
}

static void
pro_trim_hot(const struct naive *n)
{
    while (pro_count(true) && pro_sum(n, HOT) > pro_capacity(n) - pro.cold_share)
        pro_hot_hand(n);
}

static void
pro_test_hand(const struct naive *n)
{
    while (pro_sum(n, GHOST) > pro_capacity(n)) {
        uint32_t id = pro.test_hand == NAIVE_IDS ? pro.ring.ids[0] : pro.test_hand;

        pro.test_hand = pro_next(id);
        pro_end_test(n, id);
    }
}

static bool
pro_admit(struct naive *n, uint32_t id, const struct policy_page *page)
{
    (void)page;
    pro.was_ghost = seq_has(&pro.ring, id);
    if (pro.was_ghost) {
        pro_adapt(n, id, +1);
        pro_take(id);
        pro_trim_hot(n);
    }
    return true;
}

static void
pro_enter(struct naive *n, uint32_t id, const struct policy_page *page)
{
    uint64_t share = pro_capacity(n) - pro.cold_share, size = n->capacity_bytes ? page->bytes : 1;

    pro.state[id] =
        pro.was_ghost || (!pro.has_evicted && pro_sum(n, HOT) + size <= share) ? HOT : TESTED;
    pro.requested[id] = false;
    seq_append(&pro.ring, id);
    pro_trim_hot(n);
    pro.was_ghost = false;
}

static void
pro_hit(struct naive *n, uint32_t id, const struct policy_page *page)
{
    (void)n, (void)page;
    pro.requested[id] = true;
}

static uint32_t
pro_victim(struct naive *n)
{
    uint32_t id;

    if (!pro_count(false))
        pro_hot_hand(n);
    for (;;) {
        id = pro.cold_hand == NAIVE_IDS ? pro.ring.ids[0] : pro.cold_hand;
        pro.cold_hand = id;
        if (pro.state[id] == HOT || pro.state[id] == GHOST) {
            pro.cold_hand = pro_next(id);
            continue;
        }
        if (!pro.requested[id])
            return id;
        pro.requested[id] = false;
        pro_take(id);
        seq_append(&pro.ring, id);
        if (pro.state[id] == PLAIN) {
            pro.state[id] = TESTED;
            continue;
        }
        pro_adapt(n, id, +1);
        pro.state[id] = HOT;
        pro_trim_hot(n);
        if (!pro_count(false))
            pro_hot_hand(n);
    }
}

static void
pro_leave(struct naive *n, uint32_t id, bool evicted)
{
    pro.has_evicted |= evicted;
    if (evicted && pro.state[id] == TESTED) {
        /* The ghost takes the place; hands that were at the page move past it. */
        if (pro.cold_hand == id)
            pro.cold_hand = pro.ring.count > 1 ? pro_next(id) : id;
        if (pro.test_hand == id)
            pro.test_hand = pro.ring.count > 1 ? pro_next(id) : id;
        pro.state[id] = GHOST;
    } else {
        pro_take(id);
    }
    pro_test_hand(n);
}

static double pro_fraction;

static void
pro_resizing(struct naive *n)
{
    pro_fraction = (double)pro.cold_share / (double)pro_capacity(n);
}

static void
pro_resized(struct naive *n)
{
    pro_set_cold_share(n, pro_fraction);
    pro_trim_hot(n);
    pro_test_hand(n);
}

static const struct naive_rule pro_rule = {.begin = pro_begin,
                                           .admit = pro_admit,
                                           .enter = pro_enter,
                                           .hit = pro_hit,
                                           .victim = pro_victim,
                                           .leave = pro_leave,
                                           .resizing = pro_resizing,
                                           .resized = pro_resized};

/* ---- beside each other ----------------------------------------------------------------------- */

static const char *const texts[] = {"clock-pro", "clock-pro:cold=0.05", "clock-pro:cold=1"};

START_TEST(it_is_its_rule)
{
    naive_compare_all(texts[_i], &pro_rule, NULL);
}
END_TEST

/* A capacity at which the least cold share, a hundredth, is more than one page. */
START_TEST(it_is_its_rule_in_hundreds_of_pages)
{
    struct policy_spec spec = naive_parse(texts[_i]);
    static struct naive n;

    if (!policy_is_wanted(texts[_i]))
        return;
    n = (struct naive){.rule = &pro_rule, .spec = &spec, .text = texts[_i], .capacity_pages = 250};
    ck_assert_uint_gt(naive_compare(&n, 1, false), 0);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("policies/clock_pro");
    TCase *tc = tcase_create("clock_pro");

    tcase_set_timeout(tc, 120);
    tcase_add_loop_test(tc, it_is_its_rule, 0, (int)(sizeof(texts) / sizeof(texts[0])));
    tcase_add_loop_test(tc, it_is_its_rule_in_hundreds_of_pages, 0,
                        (int)(sizeof(texts) / sizeof(texts[0])));
    suite_add_tcase(suite, tc);
    return suite;
}
