/* The rules of a run, one by one, and all policies beside a cache written as plainly as can be. */
#define UNIT_STARTS_NO_THREAD

#include "tests/unit/policies/driven.h"
#include "tests/unit/sim/traces.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static struct sim_result result;

static enum sim_error
run(const struct made *m, const char *policy, uint64_t pages, uint64_t bytes)
{
    struct sim_config config = {
        .spec = made_spec(policy), .capacity_pages = pages, .capacity_bytes = bytes, .seed = 1};

    return sim_run(&m->trace, &config, NULL, &result);
}

START_TEST(hits_and_evictions_are_counted)
{
    static const uint32_t ids[] = {0, 1, 0, 2, 1, 0};
    struct made m = made_of(ids, NULL, COUNT(ids), 3);

    /* 0 and 1 enter, 0 hits, 2 in 1's place, 1 in 0's place, 0 in 2's place. */
    ck_assert_int_eq(run(&m, "lru", 2, 0), SIM_OK);
    ck_assert_uint_eq(result.requests, 6);
    ck_assert_uint_eq(result.hits, 1);
    ck_assert_uint_eq(result.insertions, 5);
    ck_assert_uint_eq(result.evictions, 3);
    ck_assert_uint_eq(result.pages, 2);
    ck_assert_uint_eq(result.bytes, 6);
    ck_assert_uint_eq(result.bytes_hit, 1);
    ck_assert_double_eq_tol(result.hit_ratio, 1.0 / 6, 1e-12);
    made_free(&m);
}
END_TEST

START_TEST(a_page_larger_than_the_cache_is_not_inserted)
{
    static const uint32_t ids[] = {0, 1, 1, 0}, sizes[] = {60, 101, 101, 60};
    struct made m = made_of(ids, sizes, COUNT(ids), 2);

    ck_assert_int_eq(run(&m, "lru", 0, 100), SIM_OK);
    ck_assert_uint_eq(result.hits, 1);
    ck_assert_uint_eq(result.too_large, 2);
    ck_assert_uint_eq(result.evictions, 0);
    ck_assert_uint_eq(result.bytes, 322);
    ck_assert_uint_eq(result.bytes_hit, 60);
    made_free(&m);
}
END_TEST

START_TEST(victims_are_evicted_until_the_page_fits)
{
    static const uint32_t ids[] = {0, 1, 2, 3, 0}, sizes[] = {30, 30, 30, 65, 30};
    struct made m = made_of(ids, sizes, COUNT(ids), 4);

    ck_assert_int_eq(run(&m, "fifo", 0, 100), SIM_OK);
    ck_assert_uint_eq(result.hits, 0);
    ck_assert_uint_eq(result.evictions, 3); /* 0 and 1 for 3, then 2 for 0 */
    ck_assert_uint_eq(result.bytes_inside, 95);
    made_free(&m);
}
END_TEST

START_TEST(a_page_keeps_the_size_that_it_entered_with)
{
    static const uint32_t ids[] = {0, 0, 1, 0}, sizes[] = {10, 90, 90, 90};
    struct made m = made_of(ids, sizes, COUNT(ids), 2);

    /* Asked for as 90, still 10 inside: both fit. */
    ck_assert_int_eq(run(&m, "lru", 0, 100), SIM_OK);
    ck_assert_uint_eq(result.hits, 2);
    ck_assert_uint_eq(result.bytes_hit, 180);
    ck_assert_uint_eq(result.bytes_inside, 100);
    ck_assert_uint_eq(result.evictions, 0);
    made_free(&m);
}
END_TEST

START_TEST(both_bounds_hold)
{
    struct made m = made_trace(5, 5000, 200, true);

    ck_assert_int_eq(run(&m, "lru", 10, 3000), SIM_OK);
    ck_assert_uint_le(result.pages, 10);
    ck_assert_uint_le(result.bytes_inside, 3000);
    made_free(&m);
}
END_TEST

START_TEST(no_capacity_stores_nothing)
{
    struct made m = made_trace(5, 100, 10, true);

    ck_assert_int_eq(run(&m, "lru", 0, 0), SIM_OK);
    ck_assert_uint_eq(result.requests, 100);
    ck_assert_uint_eq(result.hits + result.insertions + result.pages, 0);
    ck_assert_int_eq(run(&m, "none", 10, 0), SIM_OK);
    ck_assert_uint_eq(result.hits + result.insertions + result.pages, 0);
    made_free(&m);
}
END_TEST

START_TEST(the_warm_up_fills_and_does_not_count)
{
    static const uint32_t ids[] = {0, 1, 2, 0, 1, 3};
    struct made m = made_of(ids, NULL, COUNT(ids), 4);
    struct sim_config config = {.spec = made_spec("lru"), .capacity_pages = 3, .warmup = 3};

    ck_assert_int_eq(sim_run(&m.trace, &config, NULL, &result), SIM_OK);
    ck_assert_uint_eq(result.requests, 3);
    ck_assert_uint_eq(result.hits, 2);
    ck_assert_uint_eq(result.insertions, 1);
    ck_assert_uint_eq(result.evictions, 1);
    config.warmup = 100; /* more than there are */
    ck_assert_int_eq(sim_run(&m.trace, &config, NULL, &result), SIM_OK);
    ck_assert_uint_eq(result.requests, 0);
    made_free(&m);
}
END_TEST

START_TEST(what_cannot_be_simulated_is_refused)
{
    struct made m = made_trace(5, 100, 10, false);

    ck_assert_int_eq(run(&m, "lru", 0, 100), SIM_NEEDS_SIZES);
    m.trace.next = NULL;
    ck_assert_int_eq(run(&m, "opt", 5, 0), SIM_NEEDS_NEXT);
    m.trace.request_count = SIM_MAX_REQUESTS;
    ck_assert_int_eq(run(&m, "lru", 5, 0), SIM_TOO_MANY);
    for (int error = SIM_OK; error <= SIM_TOO_MANY; error++)
        ck_assert_uint_gt(strlen(sim_strerror((enum sim_error)error)), 3);
    made_free(&m);
}
END_TEST

START_TEST(an_empty_trace_is_no_trouble)
{
    struct made m = made_trace(5, 0, 1, true);

    ck_assert_int_eq(run(&m, "lru", 5, 0), SIM_OK);
    ck_assert_uint_eq(result.requests, 0);
    ck_assert_double_eq(result.hit_ratio, 0);
    made_free(&m);
}
END_TEST

/* ---- beside the plain cache ------------------------------------------------------------------ */

struct witness {
    struct driven driven;
    const struct sim_trace *trace;
    const char *policy;
    size_t seen;
};

/* The same request in the plain cache: the same outcome, the same victims. */
static bool
compare(void *context, const struct sim_event *event)
{
    struct witness *w = context;
    const struct sim_trace *trace = w->trace;
    uint64_t next = trace->next[event->number];
    struct policy_page page = {.bytes = trace->sizes ? trace->sizes[event->number] : 1,
                               .next = next == UINT32_MAX ? POLICY_NEVER : next};
    struct driven *d = &w->driven;
    bool hit = driven_request(d, event->id, page), stays = d->inside[event->id];
    size_t victims =
        d->victim_count -
        (stays || d->victim_count == 0 ? 0 : d->victims[d->victim_count - 1] == event->id);
    enum sim_outcome expected = hit       ? SIM_HIT
                                : !stays  ? SIM_UNCACHED
                                : victims ? SIM_EVICTED
                                          : SIM_MISS;

    ck_assert_uint_eq(event->number, w->seen++);
    ck_assert_uint_eq(event->id, trace->ids[event->number]);
    ck_assert_uint_eq(event->bytes, page.bytes);
    ck_assert_msg(event->outcome == expected, "%s: request %zu: %d, not %d", w->policy,
                  event->number, (int)event->outcome, (int)expected);
    ck_assert_msg(event->victim_count == victims, "%s: request %zu", w->policy, event->number);
    for (size_t i = 0; i < victims; i++)
        ck_assert_uint_eq(event->victims[i], d->victims[i]);
    return true;
}

static void
beside(const struct made *m, const char *policy, uint64_t pages, uint64_t bytes)
{
    struct witness w = {.trace = &m->trace, .policy = policy};
    struct sim_config config = {.spec = made_spec(policy),
                                .capacity_pages = pages,
                                .capacity_bytes = bytes,
                                .seed = 1,
                                .tell = compare,
                                .context = &w};
    struct sim_result quiet;

    driven_begin(&w.driven, policy, (uint32_t)m->trace.page_count, pages, bytes);
    ck_assert_int_eq(sim_run(&m->trace, &config, NULL, &result), SIM_OK);
    ck_assert_uint_eq(w.seen, m->trace.request_count);
    ck_assert_uint_eq(result.pages, w.driven.page_count);
    ck_assert_uint_eq(result.bytes_inside, w.driven.byte_count);
    ck_assert_uint_eq(result.hits + result.insertions + result.not_admitted + result.too_large,
                      result.requests);
    driven_end(&w.driven);
    /* A run without tell() has the same result. */
    config.tell = NULL;
    ck_assert_int_eq(sim_run(&m->trace, &config, NULL, &quiet), SIM_OK);
    quiet.cpu_us = result.cpu_us;
    ck_assert_mem_eq(&quiet, &result, sizeof(result));
}

START_TEST(every_policy_as_in_a_plain_cache)
{
    const char *policy = policies[_i]->name;
    struct made sized = made_trace(7, 6000, 300, true);
    struct made plain = made_trace(8, 6000, 300, false);

    beside(&plain, policy, 1, 0);
    beside(&plain, policy, 40, 0);
    beside(&plain, policy, 300, 0);
    beside(&sized, policy, 40, 0);
    beside(&sized, policy, 0, 900);
    beside(&sized, policy, 0, 20000);
    beside(&sized, policy, 30, 20000);
    made_free(&sized);
    made_free(&plain);
}
END_TEST

/* Keys are what policies know pages by beyond their stay: other keys, nothing else, may matter to
 * ghosts and sketches, but the same keys are the same run. */
START_TEST(a_run_can_be_repeated)
{
    struct made m = made_trace(9, 6000, 300, true);
    struct sim_result first;

    ck_assert_int_eq(run(&m, policies[_i]->name, 0, 20000), SIM_OK);
    first = result;
    ck_assert_int_eq(run(&m, policies[_i]->name, 0, 20000), SIM_OK);
    first.cpu_us = result.cpu_us;
    ck_assert_mem_eq(&first, &result, sizeof(result));
    made_free(&m);
}
END_TEST

/* ---- stopping -------------------------------------------------------------------------------- */

static bool
tire(void *context, const struct sim_event *event)
{
    (void)event;
    return --*(unsigned *)context != 0;
}

struct seen {
    uint64_t hash;
    size_t count;
};

static bool
hash_event(void *context, const struct sim_event *event)
{
    struct seen *seen = context;
    uint64_t parts[] = {event->number, event->id, event->bytes, event->outcome,
                        event->victim_count};

    for (size_t i = 0; i < COUNT(parts); i++) {
        uint64_t state = seen->hash ^ parts[i];

        seen->hash = splitmix64_next(&state);
    }
    return ++seen->count != 0;
}

/*
 * Where it is known that everything fits, and the policy admits all pages, no policy runs; the
 * outcome is the same as where that is not known.
 */
START_TEST(a_cache_of_everything_runs_no_policy)
{
    struct made m = made_trace(21, 4000, 300, true);
    const struct policy_ops *ops = policies[_i];
    struct trace_totals facts;
    struct sim_result with, without;
    struct seen seen_with = {0}, seen_without = {0};
    struct sim_config config = {
        .spec = policy_spec_of(ops), .seed = 1, .warmup = 100, .tell = hash_event};

    facts = made_totals(&m, 0);
    config.capacity_bytes = facts.distinct_bytes;
    config.context = &seen_with;
    ck_assert_int_eq(sim_run(&m.trace, &config, NULL, &with), SIM_OK);
    m.trace.distinct_bytes = facts.distinct_bytes;
    config.context = &seen_without;
    ck_assert_int_eq(sim_run(&m.trace, &config, NULL, &without), SIM_OK);
    if ((!ops->admit || ops->admits_what_fits) && !ops->hit_has_surplus &&
        !ops->insertion_has_surplus)
        ck_assert_uint_eq(without.memory, 4 * m.trace.page_count);
    else
        ck_assert_uint_gt(without.memory, 4 * m.trace.page_count);
    ck_assert_uint_eq(seen_without.count, 4000);
    ck_assert_uint_eq(seen_with.hash, seen_without.hash);
    without.memory = with.memory;
    without.cpu_us = with.cpu_us;
    ck_assert_mem_eq(&with, &without, sizeof(with));
    /* A byte less is not enough. */
    config.capacity_bytes--;
    ck_assert_int_eq(sim_run(&m.trace, &config, NULL, &without), SIM_OK);
    ck_assert_uint_gt(without.memory, 4 * m.trace.page_count);
    made_free(&m);
}
END_TEST

START_TEST(tell_can_end_the_run)
{
    struct made m = made_trace(5, 1000, 100, false);
    unsigned patience = 10;
    struct sim_config config = {
        .spec = made_spec("lru"), .capacity_pages = 5, .tell = tire, .context = &patience};

    ck_assert_int_eq(sim_run(&m.trace, &config, NULL, &result), SIM_STOPPED);
    ck_assert_uint_eq(result.requests, 10);
    made_free(&m);
}
END_TEST

START_TEST(a_watch_sees_progress_and_stops)
{
    struct made m = made_trace(5, 100000, 100, false);
    struct sim_config config = {.spec = made_spec("lru"), .capacity_pages = 5};
    struct sim_watch watch = {0};

    ck_assert_int_eq(sim_run(&m.trace, &config, &watch, &result), SIM_OK);
    ck_assert_uint_eq(watch.done, 100000);
    watch.stop = true;
    ck_assert_int_eq(sim_run(&m.trace, &config, &watch, &result), SIM_STOPPED);
    ck_assert_uint_eq(result.requests, 0);
    made_free(&m);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("simulator");
    TCase *rules = tcase_create("rules"), *all = tcase_create("policies"),
          *stopping = tcase_create("stopping");
    int count = 0;

    while (policies[count])
        count++;
    tcase_add_test(rules, hits_and_evictions_are_counted);
    tcase_add_test(rules, a_page_larger_than_the_cache_is_not_inserted);
    tcase_add_test(rules, victims_are_evicted_until_the_page_fits);
    tcase_add_test(rules, a_page_keeps_the_size_that_it_entered_with);
    tcase_add_test(rules, both_bounds_hold);
    tcase_add_test(rules, no_capacity_stores_nothing);
    tcase_add_test(rules, the_warm_up_fills_and_does_not_count);
    tcase_add_test(rules, what_cannot_be_simulated_is_refused);
    tcase_add_test(rules, an_empty_trace_is_no_trouble);
    suite_add_tcase(suite, rules);
    tcase_set_timeout(all, 120);
    tcase_add_loop_test(all, every_policy_as_in_a_plain_cache, 0, count);
    tcase_add_loop_test(all, a_run_can_be_repeated, 0, count);
    tcase_add_loop_test(all, a_cache_of_everything_runs_no_policy, 0, count);
    suite_add_tcase(suite, all);
    tcase_add_test(stopping, tell_can_end_the_run);
    tcase_add_test(stopping, a_watch_sees_progress_and_stops);
    suite_add_tcase(suite, stopping);
    return suite;
}
