/*
 * Every policy there is, whatever happens: random requests of all sizes, purges and changes of the
 * capacity. Its structures agree after each step, the bounds hold, and a run can be repeated.
 */
#include "tests/unit/policies/driven.h"

#define IDS 150u
#define ROUNDS 2500u

/* Policies off their defaults, where that is another path. */
static const char *const variants[] = {
    "clock:bits=3",
    "slru:segments=1",
    "slru:segments=16",
    "slru:enter=lowest",
    "2q:kin=1,kout=16",
    "2q:kin=0.05,kout=0",
    "s3-fifo:small=1,ghost=16,threshold=3",
    "s3-fifo:small=0.05,ghost=0,threshold=1",
    "s3-fifo:fill=small",
    "lru-k:k=4",
    "lru-k:k=3,history=4",
    "rand:draw=each",
    "gdsf:cost=packets",
    "gds:cost=time",
    "gds:cost=bytes",
    "gds:newcomer=enters",
    "gdsf:newcomer=compared",
    "opt:bypass=yes",
    "tinylfu:width=0.5,sample=1",
    "w-tinylfu:window=0.5,protected=0",
    "w-tinylfu:window=1",
    "hyperbolic:sample=1",
    "hyperbolic:sample=1024,size=divide",
    "lhd:sample=1,period=0",
    "lecar:rate=10,history=16",
    "lecar:history=0",
    "lecar:rule=authors",
    "clock-pro:cold=1",
    "clock-pro:cold=0.01",
    "lirs:hir=1",
    "lirs:hir=0.5,history=0",
};

/* policies/templates/, which are no policies of the registry. */
extern const struct policy_ops policy_ordering, policy_queues, policy_sampling;

static uint64_t dice;

static uint32_t
draw(uint32_t below)
{
    return unit_draw(&dice, below);
}

static uint64_t
draw_bytes(void)
{
    switch (draw(20)) {
    case 0:
        return 0;
    case 1:
        return 1 + draw(3000);
    case 2:
        return UINT64_MAX - draw(2); /* never fits where bytes are bounded */
    default:
        return 1 + draw(60);
    }
}

static void
check_bounds(const struct driven *d)
{
    ck_assert_msg(driven_fits(d, 0, 0), "%s is beyond its bounds", d->spec.ops->name);
}

/* A number that depends on each hit and each victim. */
static uint64_t
run(const struct policy_spec *spec, uint64_t pages, uint64_t bytes, uint64_t seed)
{
    static uint32_t ids[ROUNDS];
    static uint64_t next[ROUNDS], last[IDS];
    struct driven d;
    uint64_t story = seed;

    dice = seed;
    for (uint32_t i = 0; i < ROUNDS; i++)
        ids[i] = draw(2) ? draw(1 + draw(IDS)) : draw(IDS);
    memset(last, 0xff, sizeof(last)); /* POLICY_NEVER */
    for (uint32_t i = ROUNDS; i-- > 0;) {
        next[i] = last[ids[i]];
        last[ids[i]] = i;
    }
    driven_begin_spec(&d, spec, IDS, pages, bytes);
    d.checks = true;
    for (uint32_t i = 0; i < ROUNDS; i++) {
        uint64_t size = draw_bytes();
        struct policy_page page = {
            .bytes = !bytes && size > 10000 ? 1 : size, .cost_us = draw(1000), .next = next[i]};

        switch (draw(100)) {
        case 0:
        case 1:
            for (uint32_t n = draw(IDS / 2); n > 0; n--) {
                uint32_t id = draw(IDS);

                if (d.inside[id])
                    driven_remove(&d, id, false);
            }
            break;
        case 2:
            if (pages && !bytes)
                driven_resize(&d, 1 + draw(60), 0);
            else
                driven_resize(&d, draw(3) ? 0 : 1 + draw(60), 1 + draw(2000));
            check_bounds(&d);
            break;
        default:
            break;
        }
        story = story * 31 + driven_request(&d, ids[i], page);
        for (size_t v = 0; v < d.victim_count; v++)
            story = story * 1000003 + d.victims[v];
        check_bounds(&d);
    }
    ck_assert_msg(d.evictions > 0, "%s", spec->ops->name);
    d.victim_count = 0;
    while (d.page_count)
        driven_evict(&d);
    ck_assert_uint_eq(d.byte_count, 0);
    ck_assert_ptr_null(d.spec.ops->victim(d.policy));
    driven_end(&d);
    return story;
}

static void
check_spec(const struct policy_spec *spec)
{
    static const uint64_t bounds[][2] = {{1, 0}, {3, 0}, {40, 0}, {0, 100}, {0, 1500}, {20, 900}};

    for (size_t b = 0; b < sizeof(bounds) / sizeof(bounds[0]); b++) {
        uint64_t story = run(spec, bounds[b][0], bounds[b][1], b);

        if (b >= 2 && b != 3)
            ck_assert_msg(run(spec, bounds[b][0], bounds[b][1], b) == story,
                          "%s does not repeat itself", spec->ops->name);
    }
}

static void
check_policy(const char *text)
{
    struct policy_spec spec;
    char why[200] = "";

    if (!policy_is_wanted(text))
        return;
    ck_assert_msg(policy_parse(text, &spec, why, sizeof(why)), "%s: %s", text, why);
    check_spec(&spec);
}

START_TEST(every_policy_keeps_its_promises)
{
    for (size_t p = 0; policies[p]; p++)
        check_policy(policies[p]->name);
}
END_TEST

START_TEST(so_do_those_off_their_defaults)
{
    for (size_t i = 0; i < sizeof(variants) / sizeof(variants[0]); i++)
        check_policy(variants[i]);
}
END_TEST

static const struct policy_ops *const templates[] = {&policy_ordering, &policy_queues,
                                                     &policy_sampling};

START_TEST(so_do_the_templates)
{
    static const char *const events[] = {"++.++b+c+d.+b.", "++.++b+c+a+d+e.", "++.++b+a+c+d+b."};
    struct policy_spec spec = policy_spec_of(templates[_i]);
    struct driven d;

    check_spec(&spec);
    driven_begin_spec(&d, &spec, 26, 3, 0);
    d.checks = true;
    ck_assert_str_eq(driven_play(&d, "abacdbeafa"), events[_i]);
    driven_end(&d);
}
END_TEST

START_TEST(what_fits_is_admitted_where_that_is_promised)
{
    size_t found = 0;

    for (size_t p = 0; policies[p]; p++) {
        struct driven d;
        uint64_t sum = 0;

        if (!policies[p]->admits_what_fits || !policy_is_wanted(policies[p]->name))
            continue;
        ck_assert(policies[p]->admit != NULL);
        dice = p;
        driven_begin(&d, policies[p]->name, IDS, IDS, IDS * 60);
        for (uint32_t i = 0; i < 2000; i++) {
            uint32_t id = draw(IDS);
            bool was_inside = d.inside[id];
            uint64_t bytes = draw(60);

            sum += was_inside ? 0 : bytes;
            driven_request(&d, id, (struct policy_page){.bytes = bytes, .next = i + draw(900)});
            ck_assert_msg(d.inside[id], "%s", policies[p]->name);
        }
        ck_assert_uint_eq(d.evictions, 0);
        ck_assert_uint_eq(d.byte_count, sum);
        driven_end(&d);
        found++;
    }
    ck_assert_msg(found > 0 || getenv(WANTED_VARIABLE), "none");
}
END_TEST

/* The check that the tests rely on compares with what the caller has counted. */
START_TEST(validity_compares_with_the_callers_sums)
{
    static const char *const with_bytes[] = {"arc",     "2q",   "s3-fifo", "slru", "lirs",
                                             "tinylfu", "gdsf", "gds",     "opt",  NULL};

    for (size_t p = 0; policies[p]; p++) {
        const struct policy_ops *ops = policies[p];
        struct driven d;

        if (!policy_is_wanted(ops->name))
            continue;
        driven_begin(&d, ops->name, IDS, 0, 1000);
        for (uint32_t i = 0; i < 400; i++)
            driven_request(&d, i * i % IDS, (struct policy_page){.bytes = 7 + i % 50, .next = i});
        ck_assert_uint_gt(d.page_count, 3);
        ck_assert_msg(ops->is_valid(d.policy, d.page_count, d.byte_count), "%s", ops->name);
        ck_assert_msg(!ops->is_valid(d.policy, d.page_count + 1, d.byte_count), "%s", ops->name);
        ck_assert_msg(!ops->is_valid(d.policy, d.page_count - 1, d.byte_count), "%s", ops->name);
        ck_assert_msg(!ops->is_valid(d.policy, 0, 0), "%s", ops->name);
        for (size_t i = 0; with_bytes[i]; i++)
            if (strcmp(ops->name, with_bytes[i]) == 0)
                ck_assert_msg(!ops->is_valid(d.policy, d.page_count, d.byte_count + 1), "%s",
                              ops->name);
        driven_end(&d);
    }
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("policies/every_policy");
    TCase *tc = tcase_create("every_policy");

    tcase_set_timeout(tc, 240);
    tcase_add_test(tc, every_policy_keeps_its_promises);
    tcase_add_test(tc, validity_compares_with_the_callers_sums);
    tcase_add_test(tc, what_fits_is_admitted_where_that_is_promised);
    tcase_add_test(tc, so_do_those_off_their_defaults);
    tcase_add_loop_test(tc, so_do_the_templates, 0, sizeof(templates) / sizeof(templates[0]));
    suite_add_tcase(suite, tc);
    return suite;
}
