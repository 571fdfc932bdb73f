/*
 * A policy held against a naive one: the rule as its paper has it, on arrays that are searched from
 * end to end. Both see the same random requests, of skewed popularity and mixed sizes, with purges
 * and changes of the capacity between; hits and victims must be the same, and the policy valid
 * after each step.
 */
#ifndef SUNPROXY_TESTS_POLICIES_NAIVE_H
#define SUNPROXY_TESTS_POLICIES_NAIVE_H

#include "tests/unit/policies/driven.h"

#ifndef NAIVE_IDS
#define NAIVE_IDS 80u
#endif
#ifndef NAIVE_ROUNDS
#define NAIVE_ROUNDS 1500u
#endif

struct naive;

struct naive_rule {
    bool enters_first;
    /* Every one but enter, victim and leave may be NULL. The cached pages are known when they are
     * called.
     */
    void (*begin)(struct naive *n);
    bool (*admit)(struct naive *n, uint32_t id, const struct policy_page *page);
    void (*enter)(struct naive *n, uint32_t id, const struct policy_page *page);
    void (*hit)(struct naive *n, uint32_t id, const struct policy_page *page);
    bool (*has_surplus)(const struct naive *n); /* after a hit or an entry */
    uint32_t (*victim)(struct naive *n);
    void (*leave)(struct naive *n, uint32_t id, bool evicted); /* it is still inside */
    void (*resizing)(struct naive *n);                         /* with the capacity as it was */
    void (*resized)(struct naive *n);
};

struct naive {
    const struct naive_rule *rule;
    const struct policy_spec *spec; /* of the policy */
    const char *text;               /* the policy, as it is typed */
    const double *params;           /* the spec's */
    bool inside[NAIVE_IDS];
    uint64_t bytes[NAIVE_IDS];
    uint64_t page_count, byte_count;
    uint64_t capacity_pages, capacity_bytes; /* 0: not bounded */
    uint32_t victims[2 * NAIVE_IDS];
    size_t victim_count;
    uint64_t now; /* the number of this request, from 1 */
    uint64_t dice;
};

static inline uint32_t
naive_draw(struct naive *n, uint32_t below)
{
    return unit_draw(&n->dice, below);
}

static inline uint64_t
naive_key(uint32_t id)
{
    return (id + 1) * 0x9e3779b97f4a7c15u;
}

static inline bool
naive_fits(const struct naive *n, uint64_t pages, uint64_t bytes)
{
    return (!n->capacity_pages || n->page_count + pages <= n->capacity_pages) &&
           (!n->capacity_bytes || n->byte_count + bytes <= n->capacity_bytes);
}

static inline void
naive_leave(struct naive *n, uint32_t id, bool evicted)
{
    n->rule->leave(n, id, evicted);
    n->inside[id] = false;
    n->page_count--;
    n->byte_count -= n->bytes[id];
}

static inline void
naive_evict(struct naive *n)
{
    uint32_t id = n->rule->victim(n);

    if (!n->inside[id])
        ck_abort_msg("the model is wrong");
    n->victims[n->victim_count++] = id;
    naive_leave(n, id, true);
}

static inline void
naive_enter(struct naive *n, uint32_t id, const struct policy_page *page)
{
    n->inside[id] = true;
    n->bytes[id] = page->bytes;
    n->page_count++;
    n->byte_count += page->bytes;
    n->rule->enter(n, id, page);
}

static inline bool
naive_request(struct naive *n, uint32_t id, const struct policy_page *page)
{
    n->victim_count = 0;
    n->now++;
    if (n->inside[id]) {
        if (n->rule->hit)
            n->rule->hit(n, id, page);
        while (n->rule->has_surplus && n->rule->has_surplus(n))
            naive_evict(n);
        n->victim_count = 0; /* as in driven.h */
        return true;
    }
    if (n->capacity_bytes && page->bytes > n->capacity_bytes)
        return false;
    if (n->rule->admit && !n->rule->admit(n, id, page))
        return false;
    if (n->rule->enters_first)
        naive_enter(n, id, page);
    while (!naive_fits(n, n->rule->enters_first ? 0 : 1, n->rule->enters_first ? 0 : page->bytes))
        naive_evict(n);
    if (!n->rule->enters_first)
        naive_enter(n, id, page);
    while (n->rule->has_surplus && n->rule->has_surplus(n))
        naive_evict(n);
    return false;
}

static inline void
naive_resize(struct naive *n, uint64_t pages, uint64_t bytes)
{
    n->victim_count = 0;
    if (n->rule->resizing)
        n->rule->resizing(n);
    n->capacity_pages = pages;
    n->capacity_bytes = bytes;
    if (n->rule->resized)
        n->rule->resized(n);
    for (uint32_t id = 0; id < NAIVE_IDS; id++) {
        if (n->inside[id] && bytes && n->bytes[id] > bytes)
            naive_leave(n, id, false);
    }
    while (!naive_fits(n, 0, 0))
        naive_evict(n);
}

/* A few are asked for often; which ones changes now and then. */
static inline uint32_t
naive_draw_id(struct naive *n, uint32_t round)
{
    uint32_t id =
        naive_draw(n, 3) ? naive_draw(n, 1 + naive_draw(n, NAIVE_IDS)) : naive_draw(n, NAIVE_IDS);

    return (id + round / 500 * 17) % NAIVE_IDS;
}

static inline uint64_t
naive_draw_bytes(struct naive *n)
{
    switch (naive_draw(n, 12)) {
    case 0:
        return 0;
    case 1:
        return 1 + naive_draw(n, 400);
    default:
        return 1 + naive_draw(n, 40);
    }
}

static inline void
naive_check_victims(const struct naive *n, const struct driven *d, uint32_t round)
{
    if (n->victim_count != d->victim_count)
        ck_abort_msg("%s, round %u: %zu victims, not %zu", n->text, round, d->victim_count,
                     n->victim_count);
    for (size_t i = 0; i < n->victim_count; i++)
        if (n->victims[i] != d->victims[i])
            ck_abort_msg("%s, round %u: %u left, not %u", n->text, round, d->victims[i],
                         n->victims[i]);
    if (n->page_count != d->page_count || n->byte_count != d->byte_count)
        ck_abort_msg("%s, round %u: others are inside", n->text, round);
}

/* `n` with the rule, the policy and the capacity set. Returns the number of victims. */
static inline uint64_t
naive_compare(struct naive *n, uint64_t seed, bool resizes)
{
    static uint32_t ids[NAIVE_ROUNDS];
    static uint64_t next[NAIVE_ROUNDS], last[NAIVE_IDS];
    struct driven d;
    uint64_t hits = 0, evictions;

    n->dice = seed;
    for (uint32_t i = 0; i < NAIVE_ROUNDS; i++)
        ids[i] = naive_draw_id(n, i);
    for (uint32_t id = 0; id < NAIVE_IDS; id++)
        last[id] = POLICY_NEVER;
    for (uint32_t i = NAIVE_ROUNDS; i-- > 0;) {
        next[i] = last[ids[i]];
        last[ids[i]] = i;
    }
    driven_begin_spec(&d, n->spec, NAIVE_IDS, n->capacity_pages, n->capacity_bytes);
    d.checks = true;
    n->params = n->spec->params;
    if (n->rule->begin)
        n->rule->begin(n);
    for (uint32_t round = 0; round < NAIVE_ROUNDS; round++) {
        uint32_t id = ids[round], what = naive_draw(n, 150);
        struct policy_page page = {
            .bytes = n->inside[id] ? n->bytes[id] : naive_draw_bytes(n),
            .key = naive_key(id),
            .cost_us = naive_draw(n, 4) ? naive_draw(n, 100000) : 0,
            .next = next[round],
        };
        bool hit;

        if (what < 2 && n->inside[id]) {
            naive_leave(n, id, false);
            driven_remove(&d, id, false);
        } else if (what == 2 && resizes) {
            uint64_t pages = naive_draw(n, 3) ? 1 + naive_draw(n, 40) : 0;
            uint64_t bytes = !pages || naive_draw(n, 2) ? 20 + naive_draw(n, 1000) : 0;

            naive_resize(n, pages, bytes);
            driven_resize(&d, pages, bytes);
            naive_check_victims(n, &d, round);
        }
        hit = naive_request(n, id, &page);
        if (driven_request(&d, id, page) != hit)
            ck_abort_msg("%s, round %u: %s", n->text, round,
                         hit ? "a miss, not a hit" : "a hit, not a miss");
        naive_check_victims(n, &d, round);
        hits += hit;
    }
    ck_assert_uint_gt(hits, 0);
    evictions = d.evictions;
    driven_end(&d);
    return evictions;
}

/*
 * At bounds in pages, in bytes and in both, with and without changes of them. `text` is for
 * messages. Tests of one policy (wanted.h) are told that it has a model.
 */
static inline void
naive_compare_spec(const struct policy_spec *spec, const char *text, const struct naive_rule *rule,
                   void (*prepare)(struct naive *n))
{
    static const uint64_t bounds[][2] = {{1, 0},  {2, 0},   {3, 0},    {10, 0},  {40, 0},
                                         {0, 60}, {0, 300}, {0, 1500}, {20, 500}};
    static struct naive n;

    if (!policy_is_wanted(text))
        return;
    policy_has_model(text);
    for (size_t b = 0; b < sizeof(bounds) / sizeof(bounds[0]); b++) {
        for (uint64_t seed = 0; seed < 2; seed++) {
            n = (struct naive){.rule = rule,
                               .spec = spec,
                               .text = text,
                               .capacity_pages = bounds[b][0],
                               .capacity_bytes = bounds[b][1]};
            if (prepare)
                prepare(&n);
            ck_assert_uint_gt(naive_compare(&n, 1000 * b + seed, seed % 2), 0);
        }
    }
}

/* `text` is a policy of the registry, as on a command line. */
static inline struct policy_spec
naive_parse(const char *text)
{
    struct policy_spec spec;
    char why[200] = "";

    ck_assert_msg(policy_parse(text, &spec, why, sizeof(why)), "%s: %s", text, why);
    ck_assert_ptr_nonnull(spec.ops);
    return spec;
}

static inline void
naive_compare_all(const char *text, const struct naive_rule *rule, void (*prepare)(struct naive *n))
{
    struct policy_spec spec = naive_parse(text);

    naive_compare_spec(&spec, text, rule, prepare);
}

#endif
