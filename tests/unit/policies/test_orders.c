/*
 * Policies that are an order of the cached pages, beside their rules on arrays: LRU, FIFO, LFU,
 * MAXS and RAND (table 2 of the Sun RPC paper).
 */
#include "base/hash.h"
#include "tests/unit/policies/naive.h"

static struct {
    uint64_t entered[NAIVE_IDS], requested[NAIVE_IDS], count[NAIVE_IDS], key[NAIVE_IDS];
    uint64_t random;
    uint32_t pool[NAIVE_IDS], cached; /* rand:draw=each; the last takes a removed one's place */
} model;

static void
order_begin(struct naive *n)
{
    (void)n;
    memset(&model, 0, sizeof(model));
    model.random = 1; /* the seed of driven.h */
}

static void
order_hit(struct naive *n, uint32_t id, const struct policy_page *page)
{
    (void)page;
    model.requested[id] = n->now;
    model.count[id]++;
}

static void
order_enter(struct naive *n, uint32_t id, const struct policy_page *page)
{
    model.entered[id] = n->now;
    model.count[id] = 0;
    order_hit(n, id, page);
}

static void
order_leave(struct naive *n, uint32_t id, bool evicted)
{
    (void)n, (void)id, (void)evicted;
}

/* The cached page of the lowest number; of equal ones that of the lower second number. */
static uint32_t
lowest(const struct naive *n, const uint64_t *numbers, const uint64_t *then)
{
    uint32_t victim = NAIVE_IDS;

    for (uint32_t id = 0; id < NAIVE_IDS; id++) {
        if (!n->inside[id])
            continue;
        if (victim == NAIVE_IDS || numbers[id] < numbers[victim] ||
            (numbers[id] == numbers[victim] && then[id] < then[victim]))
            victim = id;
    }
    return victim;
}

static uint32_t
lru_victim(struct naive *n)
{
    return lowest(n, model.requested, model.requested);
}

static uint32_t
fifo_victim(struct naive *n)
{
    return lowest(n, model.entered, model.entered);
}

static uint32_t
lfu_victim(struct naive *n)
{
    return lowest(n, model.count, model.requested);
}

static uint32_t
maxs_victim(struct naive *n)
{
    uint64_t smallness[NAIVE_IDS];

    for (uint32_t id = 0; id < NAIVE_IDS; id++)
        smallness[id] = UINT64_MAX - n->bytes[id];
    return lowest(n, smallness, model.entered);
}

static void
rand_enter(struct naive *n, uint32_t id, const struct policy_page *page)
{
    order_enter(n, id, page);
    model.key[id] = splitmix64_next(&model.random) >> 32;
}

static uint32_t
rand_victim(struct naive *n)
{
    return lowest(n, model.key, model.entered);
}

static void
rand_each_enter(struct naive *n, uint32_t id, const struct policy_page *page)
{
    order_enter(n, id, page);
    model.pool[model.cached++] = id;
}

static uint32_t
rand_each_victim(struct naive *n)
{
    (void)n;
    return model.pool[(splitmix64_next(&model.random) >> 32) * model.cached >> 32];
}

static void
rand_each_leave(struct naive *n, uint32_t id, bool evicted)
{
    uint32_t i = 0;

    (void)n, (void)evicted;
    while (model.pool[i] != id)
        i++;
    model.pool[i] = model.pool[--model.cached];
}

#define RULE(name)                                                         \
    static const struct naive_rule name##_rule = {.begin = order_begin,    \
                                                  .enter = order_enter,    \
                                                  .hit = order_hit,        \
                                                  .victim = name##_victim, \
                                                  .leave = order_leave}

RULE(lru);
RULE(fifo);
RULE(lfu);
RULE(maxs);

static const struct naive_rule rand_rule = {.begin = order_begin,
                                            .enter = rand_enter,
                                            .hit = order_hit,
                                            .victim = rand_victim,
                                            .leave = order_leave};
static const struct naive_rule rand_each_rule = {.begin = order_begin,
                                                 .enter = rand_each_enter,
                                                 .hit = order_hit,
                                                 .victim = rand_each_victim,
                                                 .leave = rand_each_leave};

static const struct {
    const char *text;
    const struct naive_rule *rule;
} rows[] = {
    {"lru", &lru_rule},   {"fifo", &fifo_rule}, {"lfu", &lfu_rule},
    {"maxs", &maxs_rule}, {"rand", &rand_rule}, {"rand:draw=each", &rand_each_rule},
};

START_TEST(each_is_its_rule)
{
    naive_compare_all(rows[_i].text, rows[_i].rule, NULL);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("policies/orders");
    TCase *tc = tcase_create("orders");

    tcase_set_timeout(tc, 120);
    tcase_add_loop_test(tc, each_is_its_rule, 0, (int)(sizeof(rows) / sizeof(rows[0])));
    suite_add_tcase(suite, tc);
    return suite;
}
