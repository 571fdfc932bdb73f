/*
 * Policies with queues, driven by random requests, purges and new capacities, against models as
 * plain as can be: arrays of page numbers, searched and moved from end to end.
 */
#include "tests/unit/policies/driven.h"

#define IDS 40
#define QUEUES 4
#define ROUNDS 6000
#define ARC_MEMORY 16.0 /* capacities that each of B1 and B2 remembers at most */

/* Pages in order, the oldest first. */
struct seq {
    uint32_t ids[IDS];
    uint32_t count;
};

struct model {
    const struct rules *rules;
    uint64_t max_pages, max_bytes; /* 0: no bound */
    bool inside[IDS];
    uint64_t bytes[IDS]; /* of who is inside or remembered */
    unsigned marks[IDS]; /* a bit, or a count */
    uint64_t times[IDS][4];
    struct seq queues[QUEUES], gone[2];
    uint32_t hand; /* IDS: none */
    double target, incoming;
    int memory; /* which of `gone` knew the page that wants in, or -1 */
    bool has_evicted;
    uint64_t now;
    unsigned k;
};

struct rules {
    const char *name;
    bool (*admit)(struct model *m, uint32_t id, uint64_t bytes); /* NULL: always */
    void (*enter)(struct model *m, uint32_t id);
    void (*access)(struct model *m, uint32_t id);
    uint32_t (*victim)(struct model *m);
    void (*leave)(struct model *m, uint32_t id, bool evicted);
    bool (*surplus)(struct model *m); /* after an access; NULL: never */
    void (*resize)(struct model *m);  /* NULL: it is all the same to it */
    unsigned k;
};

/* ---- sequences ------------------------------------------------------------------------------- */

static uint32_t
find(const struct seq *s, uint32_t id)
{
    uint32_t i = 0;

    while (i < s->count && s->ids[i] != id)
        i++;
    return i;
}

static bool
has(const struct seq *s, uint32_t id)
{
    return find(s, id) < s->count;
}

static bool
take(struct seq *s, uint32_t id)
{
    uint32_t i = find(s, id);

    if (i == s->count)
        return false;
    for (s->count--; i < s->count; i++)
        s->ids[i] = s->ids[i + 1];
    return true;
}

static void
append(struct seq *s, uint32_t id)
{
    if (s->count == IDS || has(s, id))
        ck_abort_msg("the model is wrong");
    s->ids[s->count++] = id;
}

static void
to_end(struct seq *s, uint32_t id)
{
    take(s, id);
    append(s, id);
}

static uint64_t
sum(const struct model *m, const struct seq *s)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < s->count; i++)
        bytes += m->bytes[s->ids[i]];
    return bytes;
}

/* ---- shares of the capacity ------------------------------------------------------------------ */

static uint64_t
pages_of(const struct model *m, double fraction)
{
    uint64_t pages = (uint64_t)((double)m->max_pages * fraction);

    return !m->max_pages ? UINT64_MAX : pages ? pages : 1;
}

static uint64_t
bytes_of(const struct model *m, double fraction)
{
    return m->max_bytes ? (uint64_t)((double)m->max_bytes * fraction) : UINT64_MAX;
}

static bool
over(const struct model *m, const struct seq *s, double fraction)
{
    return s->count > pages_of(m, fraction) || sum(m, s) > bytes_of(m, fraction);
}

/* Forgets from the oldest on while there is more than a share. */
static void
forget(struct model *m, struct seq *s, double fraction)
{
    uint64_t bytes = 0;

    for (;;) {
        bytes = 0;
        for (uint32_t i = 0; i < s->count; i++)
            bytes += m->bytes[s->ids[i]] ? m->bytes[s->ids[i]] : 1;
        if (s->count <= pages_of(m, fraction) && bytes <= bytes_of(m, fraction))
            return;
        take(s, s->ids[0]);
    }
}

static void
remember(struct model *m, struct seq *s, uint32_t id, double fraction)
{
    if ((m->bytes[id] ? m->bytes[id] : 1) > bytes_of(m, fraction))
        return;
    append(s, id);
    forget(m, s, fraction);
}

/* ---- one queue ------------------------------------------------------------------------------- */

static void
queue_enter(struct model *m, uint32_t id)
{
    m->marks[id] = 0;
    append(&m->queues[0], id);
}

static void
queue_access(struct model *m, uint32_t id)
{
    m->marks[id] = 1;
}

static void
queue_leave(struct model *m, uint32_t id, bool evicted)
{
    (void)evicted;
    take(&m->queues[0], id);
}

static uint32_t
clock_victim(struct model *m)
{
    struct seq *ring = &m->queues[0];

    while (m->marks[ring->ids[0]]) {
        m->marks[ring->ids[0]] = 0;
        to_end(ring, ring->ids[0]);
    }
    return ring->ids[0];
}

static uint32_t
sieve_victim(struct model *m)
{
    struct seq *q = &m->queues[0];
    uint32_t i = m->hand == IDS ? 0 : find(q, m->hand);

    while (m->marks[q->ids[i]]) {
        m->marks[q->ids[i]] = 0;
        i = (i + 1) % q->count;
    }
    m->hand = q->ids[i];
    return m->hand;
}

static void
sieve_leave(struct model *m, uint32_t id, bool evicted)
{
    uint32_t i = find(&m->queues[0], id);

    if (m->hand == id)
        m->hand = i + 1 < m->queues[0].count ? m->queues[0].ids[i + 1] : IDS;
    queue_leave(m, id, evicted);
}

static void
lru_k_access(struct model *m, uint32_t id)
{
    if (m->marks[id] == m->k) {
        for (unsigned i = 1; i < m->k; i++)
            m->times[id][i - 1] = m->times[id][i];
        m->marks[id]--;
    }
    m->times[id][m->marks[id]++] = ++m->now;
}

static void
lru_k_enter(struct model *m, uint32_t id)
{
    queue_enter(m, id);
    lru_k_access(m, id);
}

static uint32_t
lru_k_victim(struct model *m)
{
    const struct seq *q = &m->queues[0];
    uint32_t best = q->ids[0];

    /* In order of entry: the first of those with too few requests, or else the oldest time. */
    for (uint32_t i = 0; i < q->count; i++) {
        if (m->marks[q->ids[i]] < m->k)
            return q->ids[i];
        if (m->times[q->ids[i]][0] < m->times[best][0])
            best = q->ids[i];
    }
    return best;
}

/* ---- SLRU ------------------------------------------------------------------------------------ */

static bool
slru_admit(struct model *m, uint32_t id, uint64_t bytes)
{
    (void)id;
    return bytes <= bytes_of(m, 0.25);
}

static void
slru_enter(struct model *m, uint32_t id)
{
    for (unsigned i = 0; i < QUEUES; i++) {
        append(&m->queues[i], id);
        if (!over(m, &m->queues[i], 0.25))
            return;
        take(&m->queues[i], id);
    }
    append(&m->queues[0], id);
}

static void
slru_sink(struct model *m)
{
    for (unsigned i = QUEUES - 1; i > 0; i--) {
        while (over(m, &m->queues[i], 0.25)) {
            uint32_t oldest = m->queues[i].ids[0];

            take(&m->queues[i], oldest);
            append(&m->queues[i - 1], oldest);
            m->memory = i == 1 ? 1 : m->memory; /* somebody sank to the ground */
        }
    }
}

static void
slru_access(struct model *m, uint32_t id)
{
    unsigned i = 0;

    while (!has(&m->queues[i], id))
        i++;
    take(&m->queues[i], id);
    append(&m->queues[i + 1 < QUEUES ? i + 1 : i], id);
    m->memory = -1;
    slru_sink(m);
}

static bool
slru_surplus(struct model *m)
{
    return m->memory == 1 && over(m, &m->queues[0], 0.25);
}

static uint32_t
slru_victim(struct model *m)
{
    unsigned i = 0;

    while (!m->queues[i].count)
        i++;
    return m->queues[i].ids[0];
}

static void
slru_leave(struct model *m, uint32_t id, bool evicted)
{
    (void)evicted;
    for (unsigned i = 0; i < QUEUES; i++)
        take(&m->queues[i], id);
}

/* ---- 2Q: queues 0 is Ain, 1 is Am; gone 0 is Aout ----------------------------------------------
 */

static bool
two_q_admit(struct model *m, uint32_t id, uint64_t bytes)
{
    m->memory = take(&m->gone[0], id) ? 0 : -1;
    return bytes <= bytes_of(m, 0.25);
}

static void
two_q_enter(struct model *m, uint32_t id)
{
    append(&m->queues[m->memory == 0], id);
}

static void
two_q_access(struct model *m, uint32_t id)
{
    if (has(&m->queues[1], id))
        to_end(&m->queues[1], id);
}

static uint32_t
two_q_victim(struct model *m)
{
    return m->queues[m->queues[1].count && !over(m, &m->queues[0], 0.25)].ids[0];
}

static void
two_q_leave(struct model *m, uint32_t id, bool evicted)
{
    if (take(&m->queues[0], id) && evicted)
        remember(m, &m->gone[0], id, 0.5);
    take(&m->queues[1], id);
}

static void
two_q_resize(struct model *m)
{
    forget(m, &m->gone[0], 0.5);
}

/* ---- S3-FIFO: queues 0 is small, 1 is main -----------------------------------------------------
 */

static bool
s3_fifo_admit(struct model *m, uint32_t id, uint64_t bytes)
{
    m->memory = take(&m->gone[0], id) ? 0 : -1;
    return bytes <= bytes_of(m, 0.1);
}

static void
s3_fifo_enter(struct model *m, uint32_t id)
{
    bool full = m->queues[0].count >= pages_of(m, 0.1) || sum(m, &m->queues[0]) >= bytes_of(m, 0.1);

    m->marks[id] = 0;
    append(&m->queues[m->memory == 0 || (full && !m->has_evicted)], id);
}

static void
s3_fifo_access(struct model *m, uint32_t id)
{
    m->marks[id] += m->marks[id] < 3;
}

static bool
s3_fifo_main_is_over(const struct model *m)
{
    const struct seq *main = &m->queues[1];

    return (m->max_pages && main->count > m->max_pages - pages_of(m, 0.1)) ||
           (m->max_bytes && sum(m, main) > m->max_bytes - bytes_of(m, 0.1));
}

static uint32_t
s3_fifo_victim(struct model *m)
{
    struct seq *small = &m->queues[0], *main = &m->queues[1];

    if (!s3_fifo_main_is_over(m)) {
        while (small->count) {
            uint32_t id = small->ids[0];

            if (m->marks[id] < 2)
                return id;
            m->marks[id] = 0;
            take(small, id);
            append(main, id);
        }
    }
    while (m->marks[main->ids[0]]) {
        m->marks[main->ids[0]]--;
        to_end(main, main->ids[0]);
    }
    return main->ids[0];
}

static void
s3_fifo_leave(struct model *m, uint32_t id, bool evicted)
{
    if (take(&m->queues[0], id) && evicted)
        remember(m, &m->gone[0], id, 0.9);
    take(&m->queues[1], id);
    m->has_evicted = m->has_evicted || evicted;
}

static void
s3_fifo_resize(struct model *m)
{
    forget(m, &m->gone[0], 0.9);
}

/* ---- ARC: queues 0 and 1 are T1 and T2, gone 0 and 1 are B1 and B2
 * ------------------------------- */

static double
weigh(const struct model *m, const struct seq *s, bool gone)
{
    uint64_t bytes = 0;

    if (!m->max_bytes)
        return s->count;
    for (uint32_t i = 0; i < s->count; i++)
        bytes += gone && !m->bytes[s->ids[i]] ? 1 : m->bytes[s->ids[i]];
    return (double)bytes;
}

static double
arc_capacity(const struct model *m)
{
    return (double)(m->max_bytes ? m->max_bytes : m->max_pages);
}

static bool
arc_admit(struct model *m, uint32_t id, uint64_t bytes)
{
    double gone[2] = {weigh(m, &m->gone[0], true), weigh(m, &m->gone[1], true)};

    m->incoming = m->max_bytes ? (double)bytes : 1;
    m->memory = -1;
    if (take(&m->gone[0], id)) {
        m->memory = 0;
        m->target += gone[1] > gone[0] ? gone[1] / gone[0] : 1;
    } else if (take(&m->gone[1], id)) {
        m->memory = 1;
        m->target -= gone[0] > gone[1] ? gone[0] / gone[1] : 1;
    }
    if (m->target < 0)
        m->target = 0;
    if (m->target > arc_capacity(m))
        m->target = arc_capacity(m);
    return true;
}

static void
arc_enter(struct model *m, uint32_t id)
{
    append(&m->queues[m->memory >= 0], id);
    m->memory = -1;
    m->incoming = 0;
}

static void
arc_access(struct model *m, uint32_t id)
{
    take(&m->queues[0], id);
    take(&m->queues[1], id);
    append(&m->queues[1], id);
}

static uint32_t
arc_victim(struct model *m)
{
    const struct seq *t1 = &m->queues[0], *t2 = &m->queues[1];
    double once = weigh(m, t1, false);

    if (m->memory < 0 && t1->count && !m->gone[0].count && once + m->incoming > arc_capacity(m))
        return t1->ids[0];
    if (t1->count && (!t2->count || once > m->target || (m->memory == 1 && once >= m->target)))
        return t1->ids[0];
    return t2->ids[0];
}

static void
arc_leave(struct model *m, uint32_t id, bool evicted)
{
    double c = arc_capacity(m);
    double one = weigh(m, &m->queues[0], false) + weigh(m, &m->gone[0], true);
    double two = weigh(m, &m->queues[1], false) + weigh(m, &m->gone[1], true);
    unsigned from = has(&m->queues[1], id);

    bool keep = evicted;

    take(&m->queues[from], id);
    if (evicted && m->memory < 0) {
        if (one + m->incoming > c) {
            if (m->gone[0].count)
                take(&m->gone[0], m->gone[0].ids[0]);
            else if (!from)
                keep = false;
        } else if (one + two >= 2 * c && m->gone[1].count) {
            take(&m->gone[1], m->gone[1].ids[0]);
        }
    }
    if (keep && (double)(m->max_bytes ? m->bytes[id] : 1) <= ARC_MEMORY * c) {
        append(&m->gone[from], id);
        while (weigh(m, &m->gone[from], true) > ARC_MEMORY * c)
            take(&m->gone[from], m->gone[from].ids[0]);
    }
}

static void
arc_resize(struct model *m)
{
    for (unsigned i = 0; i < 2; i++) {
        while (weigh(m, &m->gone[i], true) > ARC_MEMORY * arc_capacity(m))
            take(&m->gone[i], m->gone[i].ids[0]);
    }
    if (m->target > arc_capacity(m))
        m->target = arc_capacity(m);
}

/* ---- the model as a cache -------------------------------------------------------------------- */

static const struct rules all_rules[] = {
    {"clock", NULL, queue_enter, queue_access, clock_victim, queue_leave, NULL, NULL, 0},
    {"sieve", NULL, queue_enter, queue_access, sieve_victim, sieve_leave, NULL, NULL, 0},
    {"lru-k", NULL, lru_k_enter, lru_k_access, lru_k_victim, queue_leave, NULL, NULL, 2},
    {"lru-k:k=3", NULL, lru_k_enter, lru_k_access, lru_k_victim, queue_leave, NULL, NULL, 3},
    {"slru", slru_admit, slru_enter, slru_access, slru_victim, slru_leave, slru_surplus, slru_sink,
     0},
    {"2q", two_q_admit, two_q_enter, two_q_access, two_q_victim, two_q_leave, NULL, two_q_resize,
     0},
    {"s3-fifo", s3_fifo_admit, s3_fifo_enter, s3_fifo_access, s3_fifo_victim, s3_fifo_leave, NULL,
     s3_fifo_resize, 0},
    {"arc", arc_admit, arc_enter, arc_access, arc_victim, arc_leave, NULL, arc_resize, 0},
};

static void
model_remove(struct model *m, uint32_t id, bool evicted)
{
    m->rules->leave(m, id, evicted);
    m->inside[id] = false;
}

static bool
model_fits(const struct model *m, uint64_t more_pages, uint64_t more_bytes)
{
    uint64_t pages = 0, bytes = 0;

    for (uint32_t i = 0; i < IDS; i++) {
        pages += m->inside[i];
        bytes += m->inside[i] ? m->bytes[i] : 0;
    }
    return (!m->max_pages || pages + more_pages <= m->max_pages) &&
           (!m->max_bytes || bytes + more_bytes <= m->max_bytes);
}

static void
model_evict(struct model *m)
{
    model_remove(m, m->rules->victim(m), true);
}

static void
model_request(struct model *m, uint32_t id, uint64_t bytes)
{
    if (m->inside[id]) {
        m->rules->access(m, id);
        while (m->rules->surplus && m->rules->surplus(m))
            model_evict(m);
        return;
    }
    if (m->max_bytes && bytes > m->max_bytes)
        return;
    if (m->rules->admit && !m->rules->admit(m, id, bytes))
        return;
    while (!model_fits(m, 1, bytes))
        model_evict(m);
    m->bytes[id] = bytes;
    m->rules->enter(m, id);
    m->inside[id] = true;
}

static void
model_resize(struct model *m, uint64_t pages, uint64_t bytes)
{
    m->max_pages = pages;
    m->max_bytes = bytes;
    if (m->rules->resize)
        m->rules->resize(m);
    m->memory = m->rules->surplus ? -1 : m->memory;
    for (uint32_t i = 0; i < IDS; i++) {
        if (m->inside[i] && bytes && m->bytes[i] > bytes)
            model_remove(m, i, false);
    }
    while (!model_fits(m, 0, 0))
        model_evict(m);
}

/* ---- both at once ---------------------------------------------------------------------------- */

static uint64_t dice_state;

static uint32_t
dice(uint32_t sides)
{
    dice_state = dice_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(dice_state >> 33) % sides;
}

static uint64_t
draw_bytes(void)
{
    switch (dice(8)) {
    case 0:
        return 0;
    case 1:
        return dice(300);
    default:
        return 1 + dice(20);
    }
}

static void
check_against_model(const struct rules *rules, uint64_t pages, uint64_t bytes, bool resizes)
{
    struct model m = {.rules = rules,
                      .max_pages = pages,
                      .max_bytes = bytes,
                      .hand = IDS,
                      .memory = -1,
                      .k = rules->k};
    struct driven d;

    driven_begin(&d, rules->name, IDS, pages, bytes);
    d.checks = true;
    for (int round = 0; round < ROUNDS; round++) {
        uint32_t id = dice(3) ? dice(IDS / 3) : dice(IDS), what = dice(300);

        if (what == 0 && resizes) {
            uint64_t new_pages = dice(3) ? 1 + dice(IDS) : 0;
            uint64_t new_bytes = dice(2) || !new_pages ? 20 + dice(500) : 0;

            driven_resize(&d, new_pages, new_bytes);
            model_resize(&m, new_pages, new_bytes);
        } else if (what <= 3) {
            if (d.inside[id])
                driven_remove(&d, id, false);
            if (m.inside[id])
                model_remove(&m, id, false);
        } else {
            uint64_t size = draw_bytes();

            driven_request(&d, id, (struct policy_page){.bytes = size, .next = POLICY_NEVER});
            model_request(&m, id, size);
        }
        if (memcmp(d.inside, m.inside, sizeof(m.inside)) != 0)
            ck_abort_msg(
                "%s with room for %d pages and %d bytes: other pages inside after round %d",
                rules->name, (int)pages, (int)bytes, round);
    }
    ck_assert_uint_gt(d.evictions, 20);
    driven_end(&d);
}

START_TEST(each_is_its_model)
{
    static const uint64_t bounds[][2] = {{1, 0},   {2, 0},   {7, 0},    {20, 0},   {0, 40},
                                         {0, 150}, {0, 400}, {10, 150}, {30, 100}, {12, 200}};

    for (size_t b = 0; b < sizeof(bounds) / sizeof(bounds[0]); b++) {
        dice_state = 100 * (uint64_t)_i + b;
        check_against_model(&all_rules[_i], bounds[b][0], bounds[b][1], b % 2);
    }
}
END_TEST

/* Those whose rule is not repeated here, too: bounds hold, and all structures agree. */
START_TEST(all_keep_their_bounds)
{
    static const uint64_t bounds[][2] = {{1, 0}, {15, 0}, {0, 60}, {0, 300}, {10, 150}};

    for (size_t p = 0; policies[p]; p++) {
        for (size_t b = 0; b < sizeof(bounds) / sizeof(bounds[0]); b++) {
            struct driven d;

            dice_state = 10 * p + b;
            driven_begin(&d, policies[p]->name, IDS, bounds[b][0], bounds[b][1]);
            d.checks = true;
            for (uint64_t round = 0; round < 3000; round++) {
                uint32_t id = dice(3) ? dice(IDS / 3) : dice(IDS), what = dice(200);

                if (what == 0)
                    driven_resize(&d, dice(2) ? 1 + dice(IDS) : 0, 20 + dice(500));
                else if (what <= 3 && d.inside[id])
                    driven_remove(&d, id, false);
                else
                    driven_request(&d, id,
                                   (struct policy_page){.bytes = draw_bytes(),
                                                        .cost_us = dice(1000),
                                                        .next = round + 1 + dice(100)});
                if (!driven_fits(&d, 0, 0))
                    ck_abort_msg("%s exceeds its bounds", policies[p]->name);
            }
            ck_assert_uint_gt(d.evictions, 0);
            driven_end(&d);
        }
    }
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("policies/models");
    TCase *tc = tcase_create("models");

    tcase_set_timeout(tc, 120);
    tcase_add_loop_test(tc, each_is_its_model, 0, (int)(sizeof(all_rules) / sizeof(all_rules[0])));
    tcase_add_test(tc, all_keep_their_bounds);
    suite_add_tcase(suite, tc);
    return suite;
}
