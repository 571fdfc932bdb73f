/*
 * Policies that draw candidates at random, beside their rules on arrays. The models draw from the
 * same generator; what they compare is computed anew for each eviction.
 */
#include <float.h>

#include "base/hash.h"
#define NAIVE_ROUNDS 6000u /* LHD derives its densities every 512 requests at most */
#include "tests/unit/policies/naive.h"

#define SEED 1 /* of driven.h */

static struct {
    uint32_t pool[NAIVE_IDS], count; /* the last takes the place of a removed one */
    uint64_t random;
    uint64_t now; /* of hits and insertions */
    uint64_t inserted[NAIVE_IDS], requests[NAIVE_IDS];
} model;

static void
pool_begin(struct naive *n)
{
    (void)n;
    memset(&model, 0, sizeof(model));
    model.random = SEED;
}

static uint32_t
pool_place(uint32_t below)
{
    return (uint32_t)((splitmix64_next(&model.random) >> 32) * below >> 32);
}

static void
pool_leave(struct naive *n, uint32_t id, bool evicted)
{
    uint32_t i = 0;

    (void)n, (void)evicted;
    while (model.pool[i] != id)
        i++;
    model.pool[i] = model.pool[--model.count];
}

/* The i-th candidate of an eviction that looks at `sample` pages, or at all if there are fewer. */
static uint32_t
candidate(uint32_t i, double sample)
{
    return model.pool[model.count <= sample ? i : pool_place(model.count)];
}

static uint32_t
candidate_count(double sample)
{
    return model.count <= sample ? model.count : (uint32_t)sample;
}

/* ---- Hyperbolic ------------------------------------------------------------------------------ */

enum { SAMPLE, SIZE };

static void
hyperbolic_enter(struct naive *n, uint32_t id, const struct policy_page *page)
{
    (void)n, (void)page;
    model.pool[model.count++] = id;
    model.inserted[id] = ++model.now;
    model.requests[id] = 1;
}

static void
hyperbolic_hit(struct naive *n, uint32_t id, const struct policy_page *page)
{
    (void)n, (void)page;
    model.now++;
    model.requests[id]++;
}

/* Fewer requests by time (and byte)? As products of whole numbers, without rounding. */
static bool
hyperbolic_is_less(const struct naive *n, uint32_t a, uint32_t b)
{
    uint64_t age_a = model.now + 1 - model.inserted[a], age_b = model.now + 1 - model.inserted[b];

    if (n->params[SIZE] > 0) {
        age_a *= n->bytes[a] ? n->bytes[a] : 1;
        age_b *= n->bytes[b] ? n->bytes[b] : 1;
    }
    return model.requests[a] * age_b < model.requests[b] * age_a;
}

static uint32_t
hyperbolic_victim(struct naive *n)
{
    uint32_t count = candidate_count(n->params[SAMPLE]);
    uint32_t best = candidate(0, n->params[SAMPLE]);

    for (uint32_t i = 1; i < count; i++) {
        uint32_t id = candidate(i, n->params[SAMPLE]);

        if (hyperbolic_is_less(n, id, best))
            best = id;
    }
    return best;
}

static const struct naive_rule hyperbolic_rule = {.begin = pool_begin,
                                                  .enter = hyperbolic_enter,
                                                  .hit = hyperbolic_hit,
                                                  .victim = hyperbolic_victim,
                                                  .leave = pool_leave};

/* ---- LHD ------------------------------------------------------------------------------------- */

enum { AGES = 1024, CLASSES = 12, SPAN = 32, ADMISSIONS = 8, PERIOD = 1 };

static struct {
    uint64_t requested[NAIVE_IDS], last_age[NAIVE_IDS], age_before[NAIVE_IDS];
    bool was_hit[NAIVE_IDS], explores[NAIVE_IDS];
    float hits[CLASSES][AGES], evictions[CLASSES][AGES], density[CLASSES][AGES];
    uint64_t step, due; /* requests in a step of ages; the time of the next densities */
    uint32_t admissions[ADMISSIONS], next;
    double victim_rank;
} lhd;

static void
lhd_begin(struct naive *n)
{
    pool_begin(n);
    memset(&lhd, 0, sizeof(lhd));
    lhd.step = 1;
    lhd.due = 512;
    for (unsigned i = 0; i < ADMISSIONS; i++)
        lhd.admissions[i] = NAIVE_IDS;
    for (unsigned c = 0; c < CLASSES; c++)
        for (unsigned a = 0; a < AGES; a++)
            lhd.density[c][a] = (float)(c + 1) / (float)(a + 1);
}

static unsigned
lhd_age(uint32_t id)
{
    uint64_t age = (model.now - lhd.requested[id]) / lhd.step;

    return age < AGES ? (unsigned)age : AGES - 1;
}

/* The number of halves: 512 to 1023 is class 1, 256 to 511 class 2, ..., 1 class 10, 0 class 11. */
static unsigned
lhd_class(uint32_t id)
{
    uint64_t age = (lhd.last_age[id] + lhd.age_before[id]) / lhd.step;
    unsigned class = 1;

    if (!lhd.was_hit[id] || age >= AGES)
        return 0;
    for (uint64_t least = AGES / 2; age < least; least /= 2)
        class ++;
    return class;
}

static double
lhd_bytes(const struct naive *n, uint32_t id)
{
    return n->bytes[id] ? (double)n->bytes[id] : 1;
}

static double
lhd_rank(const struct naive *n, uint32_t id)
{
    unsigned age = lhd_age(id);

    if (age == AGES - 1)
        return -1;
    return lhd.explores[id] ? DBL_MAX : (double)lhd.density[lhd_class(id)][age] / lhd_bytes(n, id);
}

/* Counts of steps of `from` requests as counts of steps of `to`, which is half or twice that. */
static void
lhd_change_step(float *counts, uint64_t from, uint64_t to)
{
    float changed[AGES] = {0};
    float beyond = 0;

    for (unsigned a = 0; a < AGES; a++) {
        if (to > from) {
            changed[a / 2] += counts[a];
        } else if (2 * a < AGES) {
            changed[2 * a] = changed[2 * a + 1] = counts[a] / 2;
        } else {
            beyond += counts[a];
        }
    }
    changed[AGES - 1] += beyond;
    memcpy(counts, changed, sizeof(changed));
}

static void
lhd_derive(const struct naive *n)
{
    uint64_t step = 1;
    double period = n->params[PERIOD] * model.count;

    lhd.due = model.now + (uint64_t)(period > 512 ? period : 512);
    while (step * AGES < (uint64_t)SPAN * model.count)
        step *= 2;
    for (unsigned c = 0; c < CLASSES; c++) {
        for (unsigned a = 0; a < AGES; a++) {
            lhd.hits[c][a] *= 0.9F;
            lhd.evictions[c][a] *= 0.9F;
        }
        for (uint64_t from = lhd.step; from != step;) {
            uint64_t to = from < step ? from * 2 : from / 2;

            lhd_change_step(lhd.hits[c], from, to);
            lhd_change_step(lhd.evictions[c], from, to);
            from = to;
        }
    }
    lhd.step = step;
    for (unsigned c = 0; c < CLASSES; c++) {
        float ends[AGES + 1] = {0}, hits = 0, stays = 0; /* ends[a]: at a or later */

        for (unsigned a = AGES; a-- > 0;)
            ends[a] = ends[a + 1] + (lhd.hits[c][a] + lhd.evictions[c][a]);
        for (unsigned a = AGES; a-- > 0;) {
            hits += lhd.hits[c][a];
            stays += ends[a];
            lhd.density[c][a] = ends[a] > 1e-5F ? hits / stays : 0;
        }
    }
}

static void
lhd_request(struct naive *n, uint32_t id)
{
    double capacity = (double)(n->capacity_bytes ? n->capacity_bytes : n->capacity_pages);
    double size = n->capacity_bytes ? lhd_bytes(n, id) : 1, exploring = size;

    lhd.requested[id] = model.now;
    lhd.explores[id] = false;
    for (uint32_t i = 0; i < model.count; i++)
        if (lhd.explores[model.pool[i]])
            exploring += n->capacity_bytes ? lhd_bytes(n, model.pool[i]) : 1;
    lhd.explores[id] = pool_place(32) == 0 && exploring <= 0.01 * capacity;
    if (model.now >= lhd.due)
        lhd_derive(n);
}

static void
lhd_enter(struct naive *n, uint32_t id, const struct policy_page *page)
{
    (void)page;
    model.pool[model.count++] = id;
    model.now++;
    lhd.last_age[id] = lhd.age_before[id] = 0;
    lhd.was_hit[id] = false;
    lhd_request(n, id);
    if (lhd_rank(n, id) < lhd.victim_rank)
        lhd.admissions[lhd.next++ % ADMISSIONS] = id;
}

static void
lhd_hit(struct naive *n, uint32_t id, const struct policy_page *page)
{
    (void)page;
    model.now++;
    lhd.hits[lhd_class(id)][lhd_age(id)] += 1;
    lhd.age_before[id] = lhd.last_age[id];
    lhd.last_age[id] = model.now - lhd.requested[id];
    lhd.was_hit[id] = true;
    lhd_request(n, id);
}

static uint32_t
lhd_victim(struct naive *n)
{
    bool all = model.count <= n->params[SAMPLE];
    uint32_t candidates[NAIVE_IDS * 2], count = 0, best = 0;
    double lowest;

    for (uint32_t i = 0; i < candidate_count(n->params[SAMPLE]); i++)
        candidates[count++] = candidate(i, n->params[SAMPLE]);
    for (unsigned i = 0; i < ADMISSIONS && !all; i++)
        if (lhd.admissions[i] != NAIVE_IDS)
            candidates[count++] = lhd.admissions[i];
    for (uint32_t i = 1; i < count; i++)
        if (lhd_rank(n, candidates[i]) < lhd_rank(n, candidates[best]))
            best = i;
    lowest = lhd_rank(n, candidates[best]);
    if (lowest >= 0 && lowest < DBL_MAX)
        lhd.victim_rank = 0.9 * lhd.victim_rank + (1 - 0.9) * lowest;
    return candidates[best];
}

static void
lhd_leave(struct naive *n, uint32_t id, bool evicted)
{
    if (evicted)
        lhd.evictions[lhd_class(id)][lhd_age(id)] += 1;
    for (unsigned i = 0; i < ADMISSIONS; i++)
        if (lhd.admissions[i] == id)
            lhd.admissions[i] = NAIVE_IDS;
    pool_leave(n, id, evicted);
}

static const struct naive_rule lhd_rule = {.begin = lhd_begin,
                                           .enter = lhd_enter,
                                           .hit = lhd_hit,
                                           .victim = lhd_victim,
                                           .leave = lhd_leave};

/* ---- beside each other ----------------------------------------------------------------------- */

static const struct {
    const char *text;
    const struct naive_rule *rule;
} rows[] = {
    {"hyperbolic", &hyperbolic_rule},
    {"hyperbolic:sample=1", &hyperbolic_rule},
    {"hyperbolic:sample=5,size=divide", &hyperbolic_rule},
    {"lhd", &lhd_rule},
    {"lhd:sample=3", &lhd_rule},
    {"lhd:sample=8,period=30", &lhd_rule},
};

START_TEST(each_is_its_rule)
{
    naive_compare_all(rows[_i].text, rows[_i].rule, NULL);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("policies/sampling");
    TCase *tc = tcase_create("sampling");

    tcase_set_timeout(tc, 120);
    tcase_add_loop_test(tc, each_is_its_rule, 0, (int)(sizeof(rows) / sizeof(rows[0])));
    suite_add_tcase(suite, tc);
    return suite;
}
