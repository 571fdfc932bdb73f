/*
 * ARC beside the paper's rule on four queues as plain as can be.
 */
#include "tests/unit/policies/seq.h"

static struct {
    struct seq inside[2], gone[2]; /* T1 and T2, B1 and B2 */
    double target, incoming;
    int memory; /* which of `gone` knew the page that wants in, or -1 */
} model;

static void
arc_begin(struct naive *n)
{
    (void)n;
    memset(&model, 0, sizeof(model));
    model.memory = -1;
}

static double
arc_capacity(const struct naive *n)
{
    return (double)(n->capacity_bytes ? n->capacity_bytes : n->capacity_pages);
}

static double
weigh_inside(const struct naive *n, unsigned i)
{
    return n->capacity_bytes ? (double)seq_bytes(n, &model.inside[i]) : model.inside[i].count;
}

static double
weigh_gone(const struct naive *n, unsigned i)
{
    uint64_t bytes = 0;

    for (uint32_t g = 0; g < model.gone[i].count; g++)
        bytes += n->capacity_bytes ? seq_ghost_bytes(n, model.gone[i].ids[g]) : 1;
    return (double)bytes;
}

static void
bound_target(const struct naive *n)
{
    if (model.target < 0)
        model.target = 0;
    if (model.target > arc_capacity(n))
        model.target = arc_capacity(n);
}

static bool
arc_admit(struct naive *n, uint32_t id, const struct policy_page *page)
{
    double once = weigh_gone(n, 0), often = weigh_gone(n, 1);

    model.incoming = n->capacity_bytes ? (double)page->bytes : 1;
    model.memory = -1;
    if (seq_take(&model.gone[0], id)) {
        model.memory = 0;
        model.target += often > once ? often / once : 1;
    } else if (seq_take(&model.gone[1], id)) {
        model.memory = 1;
        model.target -= once > often ? once / often : 1;
    }
    bound_target(n);
    return true;
}

static void
arc_enter(struct naive *n, uint32_t id, const struct policy_page *page)
{
    (void)n, (void)page;
    seq_append(&model.inside[model.memory >= 0], id);
    model.memory = -1;
    model.incoming = 0;
}

static void
arc_hit(struct naive *n, uint32_t id, const struct policy_page *page)
{
    (void)n, (void)page;
    seq_take(&model.inside[0], id);
    seq_take(&model.inside[1], id);
    seq_append(&model.inside[1], id);
}

static uint32_t
arc_victim(struct naive *n)
{
    const struct seq *t1 = &model.inside[0], *t2 = &model.inside[1];
    double once = weigh_inside(n, 0);

    if (model.memory < 0 && t1->count && !model.gone[0].count &&
        once + model.incoming > arc_capacity(n))
        return t1->ids[0];
    if (t1->count &&
        (!t2->count || once > model.target || (model.memory == 1 && once >= model.target)))
        return t1->ids[0];
    return t2->ids[0];
}

static void
arc_leave(struct naive *n, uint32_t id, bool evicted)
{
    double capacity = arc_capacity(n);
    double one = weigh_inside(n, 0) + weigh_gone(n, 0);
    double two = weigh_inside(n, 1) + weigh_gone(n, 1);
    unsigned from = seq_has(&model.inside[1], id);
    bool keep = evicted;

    seq_take(&model.inside[from], id);
    if (evicted && model.memory < 0) {
        if (one + model.incoming > capacity) {
            if (model.gone[0].count)
                seq_take(&model.gone[0], model.gone[0].ids[0]);
            else if (!from)
                keep = false;
        } else if (one + two >= 2 * capacity && model.gone[1].count) {
            seq_take(&model.gone[1], model.gone[1].ids[0]);
        }
    }
    if (keep)
        seq_append(&model.gone[from], id);
}

static void
arc_resized(struct naive *n)
{
    bound_target(n);
}

static const struct naive_rule rule = {
    .begin = arc_begin,
    .admit = arc_admit,
    .enter = arc_enter,
    .hit = arc_hit,
    .victim = arc_victim,
    .leave = arc_leave,
    .resized = arc_resized,
};

START_TEST(arc_is_its_rule)
{
    naive_compare_all("arc", &rule, NULL);
}
END_TEST

/*
 * One page of the size of the cache evicts 70,000 that were requested twice, which all become
 * ghosts of B2. Of those the list holds 65,536: a page whose ghost was dropped enters T1, where it
 * is evicted before pages of T2; one whose ghost is there enters T2.
 */
START_TEST(the_number_of_ghosts_is_bounded)
{
    enum { PAGES = 70000, GHOSTS = 65536, LARGE = PAGES };
    struct driven d;

    driven_begin(&d, "arc", PAGES + 1, 0, PAGES);
    for (uint32_t id = 0; id < PAGES; id++) {
        driven_request(&d, id, (struct policy_page){.bytes = 1});
        driven_request(&d, id, (struct policy_page){.bytes = 1});
    }
    driven_request(&d, LARGE, (struct policy_page){.bytes = PAGES});
    ck_assert_uint_eq(d.victim_count, PAGES);
    driven_remove(&d, LARGE, false);
    driven_request(&d, PAGES - GHOSTS, (struct policy_page){.bytes = 1});     /* a ghost */
    driven_request(&d, PAGES - GHOSTS - 1, (struct policy_page){.bytes = 1}); /* dropped */
    driven_request(&d, LARGE, (struct policy_page){.bytes = PAGES});
    ck_assert_uint_eq(d.victim_count, 2);
    ck_assert_uint_eq(d.victims[0], PAGES - GHOSTS - 1);
    ck_assert(d.spec.ops->is_valid(d.policy, d.page_count, d.byte_count));
    driven_end(&d);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("policies/arc");
    TCase *tc = tcase_create("arc");

    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, arc_is_its_rule);
    tcase_add_test(tc, the_number_of_ghosts_is_bounded);
    suite_add_tcase(suite, tc);
    return suite;
}
