/* How connections and fetches share the descriptors that there are. */
#define UNIT_STARTS_NO_THREAD

#include "server/limits/descriptor_plan.h"

#include <sys/resource.h>

#include "tests/unit/unit.h"

START_TEST(all_stays_where_the_limit_is_enough)
{
    struct descriptor_plan plan = descriptor_plan_make(16384, 4096, 256, 0, 4, UINT64_MAX);

    ck_assert(!descriptor_plan_is_short(&plan));
    ck_assert_uint_eq(plan.connections, 16384);
    ck_assert_uint_eq(plan.connections_per_client, 4096);
    ck_assert_uint_eq(plan.fetches, 256);
    ck_assert_uint_ge(plan.need, 16384 + 3 * 256 / 2 + DESCRIPTOR_PLAN_RESERVE + 2 * 4);
    plan = descriptor_plan_make(16384, 4096, 256, 0, 4, plan.need);
    ck_assert(!descriptor_plan_is_short(&plan));
    ck_assert_uint_eq(plan.connections, 16384);
    plan = descriptor_plan_make(16384, 4096, 256, 0, 4, plan.need - 1);
    ck_assert(descriptor_plan_is_short(&plan));
    ck_assert_uint_eq(plan.connections, 16383);
    ck_assert_uint_eq(plan.fetches, 256);
}
END_TEST

START_TEST(a_store_leaves_connections)
{
    const struct descriptor_plan many = {.connections = 64}, few = {.connections = 31};

    ck_assert_uint_eq(descriptor_plan_least(&many, 16384), 64);
    ck_assert_uint_eq(descriptor_plan_least(&many, 10), 10);
    ck_assert_uint_eq(descriptor_plan_least(&few, 16384), 16);
    ck_assert_uint_eq(descriptor_plan_least(&few, 31), 31);
}
END_TEST

START_TEST(fetches_keep_theirs_up_to_half)
{
    struct descriptor_plan plan = descriptor_plan_make(16384, 4096, 256, 0, 4, 4096);

    ck_assert_uint_eq(plan.fetches, 256);
    ck_assert_uint_lt(plan.connections, 4096 - 3 * 256 / 2);
    ck_assert_uint_gt(plan.connections, 3500);
    plan = descriptor_plan_make(16384, 4096, 512, 0, 4, 1024);
    ck_assert_uint_lt(plan.fetches, 512);
    ck_assert_uint_gt(plan.fetches, 250);
    ck_assert_uint_gt(plan.connections, 400);
    /* Few connections are wanted, and get what they want. */
    plan = descriptor_plan_make(10, 0, 4096, 0, 4, 1024);
    ck_assert_uint_eq(plan.connections, 10);
    ck_assert_uint_eq(plan.connections_per_client, 0);
}
END_TEST

START_TEST(fetches_get_what_connections_and_tunnels_leave)
{
    struct descriptor_plan plan = descriptor_plan_make(64, 0, 10000, 16, 2, 20000);

    ck_assert(!descriptor_plan_is_short(&plan));
    plan = descriptor_plan_make(64, 0, 20000, 16, 2, 20000);
    ck_assert(descriptor_plan_is_short(&plan));
    ck_assert_uint_eq(plan.connections, 64);
    ck_assert_uint_eq(plan.tunnels, 16);
    ck_assert_uint_gt(plan.fetches, 19000);
    ck_assert_uint_lt(plan.fetches, 20000 - 64 - 16 - 512);
    plan = descriptor_plan_make(64, 0, plan.fetches, 16, 2, 20000);
    ck_assert(!descriptor_plan_is_short(&plan));
}
END_TEST

/* Of few fetches every second one has a spare descriptor, of many as many as may need one. */
START_TEST(spare_descriptors_are_bounded)
{
    uint64_t none = descriptor_plan_make(64, 0, 1, 0, 2, UINT64_MAX).need - 2;

    ck_assert_uint_eq(descriptor_plan_make(64, 0, 1000, 0, 2, UINT64_MAX).need, none + 1500);
    ck_assert_uint_eq(descriptor_plan_make(64, 0, 1024, 0, 2, UINT64_MAX).need, none + 1536);
    ck_assert_uint_eq(descriptor_plan_make(64, 0, 10000, 0, 2, UINT64_MAX).need, none + 10512);
    for (uint64_t limit = 500; limit < 6000; limit++) {
        struct descriptor_plan plan = descriptor_plan_make(64, 0, 20000, 0, 2, limit);

        ck_assert_uint_le(descriptor_plan_make(64, 0, plan.fetches, 0, 2, limit).need, limit);
        ck_assert_uint_ge(descriptor_plan_make(64, 0, plan.fetches + 2, 0, 2, limit).need, limit);
    }
}
END_TEST

/* A client's connection for each fetch. */
START_TEST(half_for_clients_half_for_fetches)
{
    struct descriptor_plan plan = descriptor_plan_make(10016, 0, 10000, 0, 2, 20000);

    ck_assert_uint_gt(plan.fetches, 9400);
    ck_assert_uint_gt(plan.connections, plan.fetches);
}
END_TEST

START_TEST(tunnels_get_an_eighth)
{
    struct descriptor_plan plan = descriptor_plan_make(16384, 4096, 256, 1024, 4, UINT64_MAX);
    uint64_t need = plan.need;

    ck_assert_uint_eq(plan.tunnels, 1024);
    plan = descriptor_plan_make(16384, 4096, 256, 0, 4, UINT64_MAX);
    ck_assert_uint_eq(need, plan.need + 1024);
    plan = descriptor_plan_make(16384, 4096, 256, 1024, 4, need - 1);
    ck_assert_uint_eq(plan.tunnels, 1024);
    ck_assert_uint_eq(plan.connections, 16383);
    plan = descriptor_plan_make(16384, 4096, 256, 1024, 4, 2048);
    ck_assert_uint_gt(plan.tunnels, 200);
    ck_assert_uint_le(plan.tunnels, 2048 / 8);
    ck_assert_uint_ge(plan.connections, 1200);
    ck_assert_uint_eq(plan.fetches, 256);
    /* Or what the others do not want. */
    plan = descriptor_plan_make(1500, 0, 10, 1500, 4, 2048);
    ck_assert_uint_eq(plan.connections, 1500);
    ck_assert_uint_eq(plan.fetches, 10);
    ck_assert_uint_gt(plan.tunnels, 400);
}
END_TEST

/* The default limits, for which few files are enough only where they are lowered. */
START_TEST(defaults_leave_connections_at_least_half)
{
    static const struct {
        uint64_t limit;
        uint32_t connections, fetches, tunnels;
    } rows[] = {
        {1024, 450, 225, 112},
        {4096, 1986, 993, 496},
        {20000, 12784, 4096, 2484},
        {65536, 16384, 4096, 4096},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct descriptor_plan plan =
            descriptor_plan_make(16384, 4096, 4096, 4096, 4, rows[i].limit);

        ck_assert_uint_eq(plan.connections, rows[i].connections);
        ck_assert_uint_eq(plan.fetches, rows[i].fetches);
        ck_assert_uint_eq(plan.tunnels, rows[i].tunnels);
        ck_assert_uint_eq(plan.connections_per_client, rows[i].connections / 4);
        ck_assert_uint_ge(plan.connections, plan.fetches + plan.tunnels);
    }
}
END_TEST

START_TEST(a_small_bound_of_one_client_stays)
{
    ck_assert_uint_eq(descriptor_plan_make(16384, 5, 4096, 4096, 4, 20000).connections_per_client,
                      5);
    ck_assert_uint_eq(descriptor_plan_make(16384, 5, 4096, 4096, 4, 1024).connections_per_client,
                      5);
    /* A larger part than a quarter remains one. */
    ck_assert_uint_eq(
        descriptor_plan_make(16384, 8192, 4096, 4096, 4, 20000).connections_per_client, 6392);
    ck_assert_uint_eq(descriptor_plan_make(16384, 0, 4096, 4096, 4, 1024).connections_per_client,
                      0);
}
END_TEST

/* Whatever the limit: what is served never needs more than there is, but for the very least. */
START_TEST(the_plan_fits_the_limit)
{
    for (uint64_t limit = 0; limit < 20000; limit += limit < 300 ? 1 : 37) {
        struct descriptor_plan plan = descriptor_plan_make(16384, 4096, 256, 1024, 8, limit);
        struct descriptor_plan again = descriptor_plan_make(
            plan.connections, plan.connections_per_client, plan.fetches, plan.tunnels, 8, limit);

        ck_assert_uint_ge(plan.connections, 1);
        ck_assert_uint_ge(plan.fetches, 1);
        ck_assert_uint_ge(plan.connections_per_client, 1);
        ck_assert_uint_le(plan.connections_per_client, plan.connections / 4 + 1);
        if (limit >= 152) {
            ck_assert(!descriptor_plan_is_short(&again));
        }
    }
}
END_TEST

START_TEST(the_soft_limit_is_raised_to_the_hard_one)
{
    struct rlimit limit;

    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_max = 300;
    limit.rlim_cur = 100;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    ck_assert_uint_eq(descriptor_plan_raise_limit(), 300);
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    ck_assert_uint_eq(limit.rlim_cur, 300);
    ck_assert_uint_eq(descriptor_plan_raise_limit(), 300);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("server/descriptor plan");
    TCase *tcase = tcase_create("plan");

    tcase_add_test(tcase, all_stays_where_the_limit_is_enough);
    tcase_add_test(tcase, a_store_leaves_connections);
    tcase_add_test(tcase, fetches_keep_theirs_up_to_half);
    tcase_add_test(tcase, fetches_get_what_connections_and_tunnels_leave);
    tcase_add_test(tcase, spare_descriptors_are_bounded);
    tcase_add_test(tcase, half_for_clients_half_for_fetches);
    tcase_add_test(tcase, tunnels_get_an_eighth);
    tcase_add_test(tcase, defaults_leave_connections_at_least_half);
    tcase_add_test(tcase, a_small_bound_of_one_client_stays);
    tcase_add_test(tcase, the_plan_fits_the_limit);
    tcase_add_test(tcase, the_soft_limit_is_raised_to_the_hard_one);
    suite_add_tcase(suite, tcase);
    return suite;
}
