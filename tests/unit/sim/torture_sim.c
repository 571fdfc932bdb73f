/* Every allocation failing in its turn: each is answered, and nothing is lost. */
#include "sim/curve.h"
#include "sim/sample.h"
#include "sim/sweep.h"
#include "tests/unit/sim/traces.h"
#include "tests/unit/torture.h"

static struct made m;
static bool many_victims;

static bool
take_note(void *context, const struct sim_event *event)
{
    *(size_t *)context += event->victim_count;
    return true;
}

static void
run_all(void *context)
{
    size_t victims = 0;
    struct sim_result result;
    struct sim_sampling sampling = {.rate = 0.5, .requests = 1, .bytes = 1};
    struct sim_config config = {.spec = *(struct policy_spec *)context,
                                .capacity_bytes = 30000,
                                .seed = 1,
                                .sampling = &sampling,
                                .tell = take_note,
                                .context = &victims};
    enum sim_error error = sim_run(&m.trace, &config, NULL, &result);

    /* A policy does without a ghost that it has no memory for. */
    ck_assert(error == SIM_OK || (error == SIM_NO_MEMORY && torture_failed()));
    many_victims = many_victims || victims > 100;
}

START_TEST(a_run)
{
    struct policy_spec spec = policy_spec_of(policies[_i]);

    m = made_trace(1, 3000, 300, true);
    ck_assert_uint_ge(torture_walk(run_all, &spec), 5);
    ck_assert(many_victims);
    made_free(&m);
}
END_TEST

static void
make_curve(void *context)
{
    struct sim_curve curve;
    enum sim_error error = sim_curve_make(&m.trace, 0, NULL, &curve);

    (void)context;
    ck_assert_int_eq(error, torture_failed() ? SIM_NO_MEMORY : SIM_OK);
    sim_curve_free(&curve);
}

static void
make_sample(void *context)
{
    struct sim_sample sample;
    bool made = sim_sample_make(&m.trace, 0.5, 1, 0, &sample);

    (void)context;
    ck_assert(made == !torture_failed());
    sim_sample_free(&sample);
}

static void
make_facts(void *context)
{
    const struct trace_requests requests = {.count = m.trace.request_count,
                                            .ids = m.trace.ids,
                                            .sizes = m.trace.sizes,
                                            .url_count = m.trace.page_count,
                                            .max_page = 1000,
                                            .min_uses = 2};
    struct trace_totals totals;
    uint32_t *next;
    bool found = trace_totals_make(&requests, &totals);

    (void)context;
    next = sim_next(&m.trace);
    ck_assert((found && next) == !torture_failed());
    free(next);
}

static void
make_sweep(void *context)
{
    struct sim_job job = {.trace = &m.trace, .config = {.spec = made_spec("lru")}};
    struct sim_sweep *sweep = sim_sweep_start(&job, 1, 1);

    (void)context;
    ck_assert((sweep != NULL) == !torture_failed());
    sim_sweep_finish(sweep);
}

START_TEST(all_else)
{
    m = made_trace(1, 3000, 300, true);
    ck_assert_uint_ge(torture_walk(make_curve, NULL), 5);
    ck_assert_uint_ge(torture_walk(make_sample, NULL), 4);
    ck_assert_uint_ge(torture_walk(make_facts, NULL), 3);
    ck_assert_uint_ge(torture_walk(make_sweep, NULL), 2);
    made_free(&m);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("simulator under torture");
    TCase *tcase = tcase_create("torture");
    int count = 0;

    while (policies[count])
        count++;
    tcase_set_timeout(tcase, 120);
    tcase_add_loop_test(tcase, a_run, 0, count);
    tcase_add_test(tcase, all_else);
    suite_add_tcase(suite, tcase);
    return suite;
}
