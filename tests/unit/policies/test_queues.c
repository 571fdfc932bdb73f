/*
 * Policies that are made of queues, beside their rules on queues as plain as can be.
 */
#include "tests/unit/policies/seq.h"

#define QUEUES 16

/* All of a rule's own; each says what it uses it for. */
static struct {
    struct seq queues[QUEUES], gone;
    unsigned marks[NAIVE_IDS]; /* a bit, or a count */
    uint64_t times[NAIVE_IDS][4];
    uint32_t hand;   /* NAIVE_IDS: none */
    bool was_gone;   /* the page that wants in was remembered */
    bool was_pushed; /* the last hit pushed a page into the lowest queue */
    bool has_evicted;
    uint64_t most_pages; /* cached together since the last resize */
} model;

static void
model_begin(struct naive *n)
{
    (void)n;
    memset(&model, 0, sizeof(model));
    model.hand = NAIVE_IDS;
}

/* ---- one queue ------------------------------------------------------------------------------- */

static void
queue_enter(struct naive *n, uint32_t id, const struct policy_page *page)
{
    (void)n, (void)page;
    model.marks[id] = 0;
    seq_append(&model.queues[0], id);
}

static void
queue_leave(struct naive *n, uint32_t id, bool evicted)
{
    (void)n, (void)evicted;
    seq_take(&model.queues[0], id);
}

static void
queue_to_end(struct naive *n, uint32_t id, const struct policy_page *page)
{
    (void)n, (void)page;
    seq_to_end(&model.queues[0], id);
}

static uint32_t
mru_victim(struct naive *n)
{
    (void)n;
    return model.queues[0].ids[model.queues[0].count - 1];
}

static void
clock_hit(struct naive *n, uint32_t id, const struct policy_page *page)
{
    (void)page;
    if (model.marks[id] + 1 < 1u << (unsigned)n->params[0])
        model.marks[id]++;
}

static uint32_t
clock_victim(struct naive *n)
{
    struct seq *ring = &model.queues[0];

    (void)n;
    while (model.marks[ring->ids[0]]) {
        model.marks[ring->ids[0]]--;
        seq_to_end(ring, ring->ids[0]);
    }
    return ring->ids[0];
}

static void
sieve_hit(struct naive *n, uint32_t id, const struct policy_page *page)
{
    (void)n, (void)page;
    model.marks[id] = 1;
}

static uint32_t
sieve_victim(struct naive *n)
{
    struct seq *q = &model.queues[0];
    uint32_t i = model.hand == NAIVE_IDS ? 0 : seq_find(q, model.hand);

    (void)n;
    while (model.marks[q->ids[i]]) {
        model.marks[q->ids[i]] = 0;
        i = (i + 1) % q->count;
    }
    model.hand = q->ids[i];
    return model.hand;
}

static void
sieve_leave(struct naive *n, uint32_t id, bool evicted)
{
    uint32_t i = seq_find(&model.queues[0], id);

    if (model.hand == id)
        model.hand = i + 1 < model.queues[0].count ? model.queues[0].ids[i + 1] : NAIVE_IDS;
    queue_leave(n, id, evicted);
}

/* ---- LRU-K: one queue, and the evicted pages that are remembered ----------------------------- */

static void
lru_k_hit(struct naive *n, uint32_t id, const struct policy_page *page)
{
    unsigned k = (unsigned)n->params[0];

    (void)page;
    if (model.marks[id] == k) {
        for (unsigned i = 1; i < k; i++)
            model.times[id][i - 1] = model.times[id][i];
        model.marks[id]--;
    }
    model.times[id][model.marks[id]++] = n->now;
}

/* With history the requests of evicted pages count, while they are among the last ones. */
static void
lru_k_enter(struct naive *n, uint32_t id, const struct policy_page *page)
{
    unsigned known = model.marks[id];

    queue_enter(n, id, page);
    if (seq_take(&model.gone, id))
        model.marks[id] = known;
    lru_k_hit(n, id, page);
    if (n->page_count > model.most_pages)
        model.most_pages = n->page_count;
}

static void
lru_k_leave(struct naive *n, uint32_t id, bool evicted)
{
    queue_leave(n, id, evicted);
    if (!evicted || n->params[1] <= 0)
        return;
    seq_append(&model.gone, id);
    while (model.gone.count > (uint64_t)((double)model.most_pages * n->params[1]))
        seq_take(&model.gone, model.gone.ids[0]);
}

static void
lru_k_resized(struct naive *n)
{
    model.most_pages = n->page_count;
}

static uint32_t
lru_k_victim(struct naive *n)
{
    const struct seq *q = &model.queues[0];
    uint32_t best = q->ids[0];

    /* The oldest time, of those with too few requests if there are any. */
    for (uint32_t i = 0; i < q->count; i++) {
        bool complete = model.marks[q->ids[i]] == (unsigned)n->params[0];
        bool best_complete = model.marks[best] == (unsigned)n->params[0];

        if (complete == best_complete ? model.times[q->ids[i]][0] < model.times[best][0]
                                      : best_complete)
            best = q->ids[i];
    }
    return best;
}

/* ---- SLRU: queues from the lowest segment on ------------------------------------------------- */

enum { SEGMENTS, ENTERS_LOWEST };

static double
slru_share(const struct naive *n)
{
    return 1 / n->params[0];
}

static bool
slru_admit(struct naive *n, uint32_t id, const struct policy_page *page)
{
    (void)id;
    return page->bytes <= seq_share_bytes(n, slru_share(n));
}

static void
slru_enter(struct naive *n, uint32_t id, const struct policy_page *page)
{
    (void)page;
    model.was_pushed = false;
    for (unsigned i = 0; i < (unsigned)n->params[SEGMENTS] && n->params[ENTERS_LOWEST] <= 0; i++) {
        seq_append(&model.queues[i], id);
        if (!seq_is_over(n, &model.queues[i], slru_share(n)))
            return;
        seq_take(&model.queues[i], id);
    }
    seq_append(&model.queues[0], id);
}

static void
slru_sink(struct naive *n)
{
    for (unsigned i = (unsigned)n->params[0] - 1; i > 0; i--) {
        while (seq_is_over(n, &model.queues[i], slru_share(n))) {
            uint32_t oldest = model.queues[i].ids[0];

            seq_take(&model.queues[i], oldest);
            seq_append(&model.queues[i - 1], oldest);
            model.was_pushed |= i == 1;
        }
    }
}

static void
slru_resized(struct naive *n)
{
    slru_sink(n);
    model.was_pushed = false;
}

static void
slru_hit(struct naive *n, uint32_t id, const struct policy_page *page)
{
    unsigned i = 0;

    (void)page;
    while (!seq_has(&model.queues[i], id))
        i++;
    seq_take(&model.queues[i], id);
    seq_append(&model.queues[i + 1 < (unsigned)n->params[0] ? i + 1 : i], id);
    model.was_pushed = false;
    slru_sink(n);
}

static bool
slru_has_surplus(const struct naive *n)
{
    return n->params[ENTERS_LOWEST] <= 0 && model.was_pushed &&
           seq_is_over(n, &model.queues[0], slru_share(n));
}

static uint32_t
slru_victim(struct naive *n)
{
    unsigned i = 0;

    (void)n;
    while (!model.queues[i].count)
        i++;
    return model.queues[i].ids[0];
}

static void
slru_leave(struct naive *n, uint32_t id, bool evicted)
{
    (void)evicted;
    for (unsigned i = 0; i < (unsigned)n->params[0]; i++)
        seq_take(&model.queues[i], id);
}

/* ---- 2Q: queue 0 is Ain, 1 is Am; gone is Aout ----------------------------------------------- */

enum { KIN, KOUT };

static bool
two_q_admit(struct naive *n, uint32_t id, const struct policy_page *page)
{
    model.was_gone = seq_take(&model.gone, id) && seq_rest_pages(n, n->params[KIN]) > 0 &&
                     page->bytes <= seq_rest_bytes(n, n->params[KIN]);
    return page->bytes <= seq_share_bytes(n, n->params[KIN]);
}

/* Am is capped at the capacity less Ain's share. */
static bool
two_q_has_surplus(const struct naive *n)
{
    return seq_is_over_rest(n, &model.queues[1], n->params[KIN]);
}

static void
two_q_enter(struct naive *n, uint32_t id, const struct policy_page *page)
{
    (void)n, (void)page;
    seq_append(&model.queues[model.was_gone], id);
}

static void
two_q_hit(struct naive *n, uint32_t id, const struct policy_page *page)
{
    (void)n, (void)page;
    if (seq_has(&model.queues[1], id))
        seq_to_end(&model.queues[1], id);
}

static uint32_t
two_q_victim(struct naive *n)
{
    bool from_main = model.queues[1].count &&
                     (two_q_has_surplus(n) || !seq_is_over(n, &model.queues[0], n->params[KIN]));

    return model.queues[from_main].ids[0];
}

static void
two_q_leave(struct naive *n, uint32_t id, bool evicted)
{
    if (seq_take(&model.queues[0], id) && evicted)
        seq_remember(n, &model.gone, id, n->params[KOUT]);
    seq_take(&model.queues[1], id);
}

static void
two_q_resized(struct naive *n)
{
    seq_forget(n, &model.gone, n->params[KOUT]);
}

/* ---- S3-FIFO: queue 0 is small, 1 is main ---------------------------------------------------- */

enum { SMALL, GHOST, THRESHOLD, FILLS_SMALL };

static bool
s3_fifo_admit(struct naive *n, uint32_t id, const struct policy_page *page)
{
    model.was_gone = seq_take(&model.gone, id);
    return page->bytes <= seq_share_bytes(n, n->params[SMALL]);
}

static void
s3_fifo_enter(struct naive *n, uint32_t id, const struct policy_page *page)
{
    const struct seq *small = &model.queues[0];
    bool full = small->count >= seq_share_pages(n, n->params[SMALL]) ||
                seq_bytes(n, small) >= seq_share_bytes(n, n->params[SMALL]);
    bool fills_main = full && !model.has_evicted && n->params[FILLS_SMALL] <= 0;

    (void)page;
    model.marks[id] = 0;
    seq_append(&model.queues[model.was_gone || fills_main], id);
}

static void
s3_fifo_hit(struct naive *n, uint32_t id, const struct policy_page *page)
{
    (void)n, (void)page;
    model.marks[id] += model.marks[id] < 3;
}

static uint32_t
s3_fifo_victim(struct naive *n)
{
    struct seq *small = &model.queues[0], *main = &model.queues[1];

    /* Again if main was over its share with nothing in it, as where small has all. */
    for (bool skip = seq_is_over_rest(n, main, n->params[SMALL]);; skip = false) {
        while (!skip && small->count) {
            uint32_t id = small->ids[0];

            if (model.marks[id] < (unsigned)n->params[THRESHOLD])
                return id;
            model.marks[id] = 0;
            seq_take(small, id);
            seq_append(main, id);
        }
        if (main->count)
            break;
    }
    while (model.marks[main->ids[0]]) {
        model.marks[main->ids[0]]--;
        seq_to_end(main, main->ids[0]);
    }
    return main->ids[0];
}

static void
s3_fifo_leave(struct naive *n, uint32_t id, bool evicted)
{
    if (seq_take(&model.queues[0], id) && evicted)
        seq_remember(n, &model.gone, id, n->params[GHOST]);
    seq_take(&model.queues[1], id);
    model.has_evicted |= evicted;
}

static void
s3_fifo_resized(struct naive *n)
{
    seq_forget(n, &model.gone, n->params[GHOST]);
}

/* ---- beside each other ----------------------------------------------------------------------- */

static const struct naive_rule mru_rule = {.begin = model_begin,
                                           .enter = queue_enter,
                                           .hit = queue_to_end,
                                           .victim = mru_victim,
                                           .leave = queue_leave};
static const struct naive_rule clock_rule = {.begin = model_begin,
                                             .enter = queue_enter,
                                             .hit = clock_hit,
                                             .victim = clock_victim,
                                             .leave = queue_leave};
static const struct naive_rule sieve_rule = {.begin = model_begin,
                                             .enter = queue_enter,
                                             .hit = sieve_hit,
                                             .victim = sieve_victim,
                                             .leave = sieve_leave};
static const struct naive_rule lru_k_rule = {.begin = model_begin,
                                             .enter = lru_k_enter,
                                             .hit = lru_k_hit,
                                             .victim = lru_k_victim,
                                             .leave = lru_k_leave,
                                             .resized = lru_k_resized};
static const struct naive_rule slru_rule = {.begin = model_begin,
                                            .admit = slru_admit,
                                            .enter = slru_enter,
                                            .hit = slru_hit,
                                            .has_surplus = slru_has_surplus,
                                            .victim = slru_victim,
                                            .leave = slru_leave,
                                            .resized = slru_resized};
static const struct naive_rule two_q_rule = {.begin = model_begin,
                                             .admit = two_q_admit,
                                             .enter = two_q_enter,
                                             .hit = two_q_hit,
                                             .has_surplus = two_q_has_surplus,
                                             .victim = two_q_victim,
                                             .leave = two_q_leave,
                                             .resized = two_q_resized};
static const struct naive_rule s3_fifo_rule = {.begin = model_begin,
                                               .admit = s3_fifo_admit,
                                               .enter = s3_fifo_enter,
                                               .hit = s3_fifo_hit,
                                               .victim = s3_fifo_victim,
                                               .leave = s3_fifo_leave,
                                               .resized = s3_fifo_resized};

static const struct {
    const char *text;
    const struct naive_rule *rule;
} rows[] = {
    {"mru", &mru_rule},
    {"clock", &clock_rule},
    {"clock:bits=2", &clock_rule},
    {"sieve", &sieve_rule},
    {"lru-k", &lru_k_rule},
    {"lru-k:k=3", &lru_k_rule},
    {"lru-k:history=1", &lru_k_rule},
    {"lru-k:history=0.5,k=4", &lru_k_rule},
    {"lru-k:history=100,k=1", &lru_k_rule},
    {"lru-k:history=8,k=3", &lru_k_rule},
    {"slru", &slru_rule},
    {"slru:segments=1", &slru_rule},
    {"slru:segments=2", &slru_rule},
    {"slru:segments=7", &slru_rule},
    {"slru:enter=lowest", &slru_rule},
    {"slru:enter=lowest,segments=2", &slru_rule},
    {"2q", &two_q_rule},
    {"2q:kin=0.5,kout=2", &two_q_rule},
    {"2q:kin=0.8,kout=4", &two_q_rule},
    {"2q:kin=1,kout=0", &two_q_rule},
    {"s3-fifo", &s3_fifo_rule},
    {"s3-fifo:small=0.5,ghost=3,threshold=1", &s3_fifo_rule},
    {"s3-fifo:small=1,ghost=0,threshold=3", &s3_fifo_rule},
    {"s3-fifo:fill=small", &s3_fifo_rule},
    {"s3-fifo:fill=small,small=0.3,threshold=1", &s3_fifo_rule},
};

START_TEST(each_is_its_rule)
{
    naive_compare_all(rows[_i].text, rows[_i].rule, NULL);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("policies/queues");
    TCase *tc = tcase_create("queues");

    tcase_set_timeout(tc, 120);
    tcase_add_loop_test(tc, each_is_its_rule, 0, (int)(sizeof(rows) / sizeof(rows[0])));
    suite_add_tcase(suite, tc);
    return suite;
}
