/*
 * LeCaR and CLOCK-Pro beside their rules on arrays.
 */
#include <math.h>

#include "base/hash.h"
#include "tests/unit/policies/seq.h"

/* ---- LeCaR ----------------------------------------------------------------------------------- */

enum { LRU, LFU, RATE = 0, HISTORY = 1 };

static struct {
    struct seq pages, histories[2]; /* the least recently requested, or evicted, first */
    uint64_t now, count[NAIVE_IDS], reached[NAIVE_IDS], evicted[NAIVE_IDS];
    double weights[2];
    uint64_t random;
    int expert; /* of the last victim; -1: both */
} lecar;

static void
lecar_begin(struct naive *n)
{
    (void)n;
    memset(&lecar, 0, sizeof(lecar));
    lecar.weights[LRU] = lecar.weights[LFU] = 0.5;
    lecar.random = 1; /* the seed of driven.h */
}

static bool
lecar_admit(struct naive *n, uint32_t id, const struct policy_page *page)
{
    (void)page;
    lecar.now++;
    for (int i = 0; i < 2; i++) {
        double age = (double)(lecar.now - lecar.evicted[id]);
        double pages = n->page_count ? (double)n->page_count : 1, sum;

        if (!seq_take(&lecar.histories[i], id))
            continue;
        lecar.weights[i] *= exp(-n->params[RATE] * pow(0.005, age / pages));
        lecar.weights[LRU] += 1e-10;
        lecar.weights[LFU] += 1e-10;
        sum = lecar.weights[LRU] + lecar.weights[LFU];
        lecar.weights[LRU] /= sum;
        lecar.weights[LFU] /= sum;
    }
    return true;
}

static void
lecar_enter(struct naive *n, uint32_t id, const struct policy_page *page)
{
    (void)n, (void)page;
    seq_append(&lecar.pages, id);
    lecar.count[id] = 1;
    lecar.reached[id] = lecar.now;
}

static void
lecar_hit(struct naive *n, uint32_t id, const struct policy_page *page)
{
    (void)n, (void)page;
    seq_to_end(&lecar.pages, id);
    lecar.count[id]++;
    lecar.reached[id] = ++lecar.now;
}

static uint32_t
lecar_victim(struct naive *n)
{
    uint32_t lru = lecar.pages.ids[0], lfu = lru;

    (void)n;
    for (uint32_t i = 1; i < lecar.pages.count; i++) {
        uint32_t id = lecar.pages.ids[i];

        if (lecar.count[id] < lecar.count[lfu] ||
            (lecar.count[id] == lecar.count[lfu] && lecar.reached[id] < lecar.reached[lfu]))
            lfu = id;
    }
    lecar.expert = -1;
    if (lru == lfu)
        return lru;
    lecar.expert =
        ldexp((double)(splitmix64_next(&lecar.random) >> 11), -53) < lecar.weights[LRU] ? LRU : LFU;
    return lecar.expert == LRU ? lru : lfu;
}

static void
lecar_leave(struct naive *n, uint32_t id, bool evicted)
{
    seq_take(&lecar.pages, id);
    if (!evicted || lecar.expert < 0)
        return;
    lecar.evicted[id] = lecar.now;
    seq_remember(n, &lecar.histories[lecar.expert], id, n->params[HISTORY]);
}

static void
lecar_resized(struct naive *n)
{
    seq_forget(n, &lecar.histories[LRU], n->params[HISTORY]);
    seq_forget(n, &lecar.histories[LFU], n->params[HISTORY]);
}

static const struct naive_rule lecar_rule = {.begin = lecar_begin,
                                             .admit = lecar_admit,
                                             .enter = lecar_enter,
                                             .hit = lecar_hit,
                                             .victim = lecar_victim,
                                             .leave = lecar_leave,
                                             .resized = lecar_resized};

/* ---- CLOCK-Pro: the ring begins at the hot hand ---------------------------------------------- */

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

static void
pro_set_cold_share(const struct naive *n, double fraction)
{
    pro.cold_share = (uint64_t)((double)pro_capacity(n) * fraction);
    if (pro.cold_share < 1)
        pro.cold_share = 1;
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
    double least = n->capacity_bytes ? floor((double)n->capacity_bytes * 0.01) : 1;
    double share = (double)pro.cold_share + sign * (double)pro_size(n, id);

    pro.cold_share = (uint64_t)fmin(fmax(share, least), (double)pro_capacity(n));
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

static const struct {
    const char *text;
    const struct naive_rule *rule;
} rows[] = {
    {"lecar", &lecar_rule},
    {"lecar:rate=5", &lecar_rule},
    {"lecar:rate=0,history=0", &lecar_rule},
    {"lecar:history=3", &lecar_rule},
    {"clock-pro", &pro_rule},
    {"clock-pro:cold=0.05", &pro_rule},
    {"clock-pro:cold=1", &pro_rule},
};

START_TEST(each_is_its_rule)
{
    naive_compare_all(rows[_i].text, rows[_i].rule, NULL);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("policies/adaptive");
    TCase *tc = tcase_create("adaptive");

    tcase_set_timeout(tc, 120);
    tcase_add_loop_test(tc, each_is_its_rule, 0, (int)(sizeof(rows) / sizeof(rows[0])));
    suite_add_tcase(suite, tc);
    return suite;
}
