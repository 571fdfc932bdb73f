/*
 * LeCaR beside its rule on arrays.
 */
#include <math.h>

#include "base/hash.h"
#include "tests/unit/policies/seq.h"

/* ---- LeCaR ----------------------------------------------------------------------------------- */

enum { LRU, LFU, RATE = 0, HISTORY = 1, BY_AUTHORS = 2 };

static struct {
    struct seq pages, histories[2]; /* the least recently requested, or evicted, first */
    uint64_t now, count[NAIVE_IDS], reached[NAIVE_IDS], evicted[NAIVE_IDS];
    double weights[2];
    uint64_t random;
    int expert;          /* of the last victim; -1: both */
    uint64_t remembered; /* the count of the page that is to be inserted; 0: none */
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
    lecar.remembered = 0;
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
        if (n->params[BY_AUTHORS] > 0) {
            lecar.weights[LRU] = fmin(fmax(lecar.weights[LRU], 0.01), 0.99);
            lecar.weights[LFU] = fmin(fmax(lecar.weights[LFU], 0.01), 0.99);
            lecar.remembered = lecar.count[id];
        }
    }
    return true;
}

static void
lecar_enter(struct naive *n, uint32_t id, const struct policy_page *page)
{
    (void)n, (void)page;
    seq_append(&lecar.pages, id);
    lecar.count[id] = lecar.remembered + 1;
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

/* Of pages with equal counts. */
static bool
lecar_is_before(const struct naive *n, uint32_t id, uint32_t other)
{
    if (n->params[BY_AUTHORS] > 0)
        return naive_key(id) < naive_key(other);
    return lecar.reached[id] < lecar.reached[other];
}

static uint32_t
lecar_victim(struct naive *n)
{
    uint32_t lru = lecar.pages.ids[0], lfu = lru;

    for (uint32_t i = 1; i < lecar.pages.count; i++) {
        uint32_t id = lecar.pages.ids[i];

        if (lecar.count[id] < lecar.count[lfu] ||
            (lecar.count[id] == lecar.count[lfu] && lecar_is_before(n, id, lfu)))
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

/* ---- beside each other ----------------------------------------------------------------------- */

static const char *const texts[] = {
    "lecar",           "lecar:rate=5",       "lecar:rate=0,history=0",
    "lecar:history=3", "lecar:rule=authors", "lecar:rule=authors,rate=5,history=3"};

START_TEST(it_is_its_rule)
{
    naive_compare_all(texts[_i], &lecar_rule, NULL);
}
END_TEST

static uint32_t
hits_on_a_cycle(const char *text)
{
    struct driven d;
    uint32_t hits = 0;

    driven_begin(&d, text, 100, 50, 0);
    for (uint32_t i = 0; i < 2000; i++)
        hits += driven_request(&d, i % 100, (struct policy_page){.bytes = 1});
    driven_end(&d);
    return hits;
}

/* All counts are equal there, so that the order of ties decides alone. */
START_TEST(ties_decide_on_a_cycle)
{
    ck_assert_uint_eq(hits_on_a_cycle("lecar"), 0);
    ck_assert_uint_gt(hits_on_a_cycle("lecar:rule=authors"), 400);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("policies/lecar");
    TCase *tc = tcase_create("lecar");

    tcase_set_timeout(tc, 120);
    tcase_add_loop_test(tc, it_is_its_rule, 0, (int)(sizeof(texts) / sizeof(texts[0])));
    tcase_add_test(tc, ties_decide_on_a_cycle);
    suite_add_tcase(suite, tc);
    return suite;
}
