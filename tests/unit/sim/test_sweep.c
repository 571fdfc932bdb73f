/* Sweeps: many jobs on many threads give what each gives alone. */
#include "sim/sweep.h"
#include "tests/unit/sim/traces.h"

enum { SIZES = 5, MAX_JOBS = 400 };

static struct sim_job jobs[MAX_JOBS];

static size_t
fill(const struct made *m)
{
    size_t count = 0;

    for (size_t p = 0; policies[p]; p++)
        for (uint64_t size = 1; size <= SIZES; size++) {
            ck_assert_uint_lt(count, MAX_JOBS);
            jobs[count++] = (struct sim_job){.trace = &m->trace,
                                             .config = {.spec = policy_spec_of(policies[p]),
                                                        .capacity_pages = size * 20,
                                                        .seed = 3}};
        }
    return count;
}

START_TEST(each_job_as_if_it_were_alone)
{
    struct made m = made_trace(2, 10000, 200, true);
    size_t count = fill(&m);
    struct sim_sweep *sweep = sim_sweep_start(jobs, count, (unsigned)_i);
    uint64_t total;

    ck_assert_ptr_nonnull(sweep);
    while (!sim_sweep_wait(sweep, 50))
        ck_assert_uint_le(sim_sweep_progress(sweep, &total), total);
    ck_assert_uint_eq(sim_sweep_progress(sweep, &total), count * 10000);
    ck_assert_uint_eq(total, count * 10000);
    sim_sweep_finish(sweep);
    for (size_t i = 0; i < count; i++) {
        static struct sim_result alone[MAX_JOBS]; /* the same for any number of threads */
        static size_t made;

        if (made == i) {
            ck_assert_int_eq(sim_run(&m.trace, &jobs[i].config, NULL, &alone[i]), SIM_OK);
            made++;
        }
        ck_assert_int_eq(jobs[i].error, SIM_OK);
        alone[i].cpu_us = jobs[i].result.cpu_us;
        ck_assert_mem_eq(&alone[i], &jobs[i].result, sizeof(alone[i]));
    }
    made_free(&m);
}
END_TEST

START_TEST(a_sweep_that_is_stopped_says_which_are_done)
{
    struct made m = made_trace(2, 200000, 20000, false);
    size_t count = fill(&m), done = 0;
    struct sim_sweep *sweep;

    for (size_t i = 0; i < count; i++)
        jobs[i].config.capacity_pages *= 100;
    sweep = sim_sweep_start(jobs, count, 2);
    ck_assert_ptr_nonnull(sweep);
    sim_sweep_stop(sweep);
    sim_sweep_finish(sweep);
    for (size_t i = 0; i < count; i++) {
        ck_assert(jobs[i].error == SIM_OK || jobs[i].error == SIM_STOPPED);
        if (jobs[i].error == SIM_OK)
            ck_assert_uint_eq(jobs[i].result.requests, 200000);
        done += jobs[i].error == SIM_OK;
    }
    ck_assert_uint_lt(done, count);
    made_free(&m);
}
END_TEST

START_TEST(a_job_that_fails_does_not_end_the_others)
{
    struct made m = made_trace(2, 1000, 20, false);
    struct sim_sweep *sweep;

    for (size_t i = 0; i < 3; i++)
        jobs[i] = (struct sim_job){.trace = &m.trace,
                                   .config = {.spec = made_spec("lru"), .capacity_pages = 5}};
    jobs[1].config.capacity_bytes = 100; /* and no sizes */
    sweep = sim_sweep_start(jobs, 3, 2);
    ck_assert_ptr_nonnull(sweep);
    sim_sweep_finish(sweep);
    ck_assert_int_eq(jobs[0].error, SIM_OK);
    ck_assert_int_eq(jobs[1].error, SIM_NEEDS_SIZES);
    ck_assert_int_eq(jobs[2].error, SIM_OK);
    made_free(&m);
}
END_TEST

START_TEST(no_jobs_are_done_at_once)
{
    struct sim_sweep *sweep = sim_sweep_start(jobs, 0, 4);

    ck_assert_ptr_nonnull(sweep);
    while (!sim_sweep_wait(sweep, 50))
        ;
    sim_sweep_finish(sweep);
    sim_sweep_finish(NULL);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("sweep");
    TCase *tcase = tcase_create("sweep");

    tcase_set_timeout(tcase, 120);
    tcase_add_loop_test(tcase, each_job_as_if_it_were_alone, 1, 5);
    tcase_add_test(tcase, a_sweep_that_is_stopped_says_which_are_done);
    tcase_add_test(tcase, a_job_that_fails_does_not_end_the_others);
    tcase_add_test(tcase, no_jobs_are_done_at_once);
    suite_add_tcase(suite, tcase);
    return suite;
}
