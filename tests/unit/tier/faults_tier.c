/* A tier whose calls of the operating system fail, when it is opened and started. */
#include <errno.h>
#include <string.h>

#include "tests/unit/faults.h"
#include "tests/unit/unit.h"
#include "tier/tier.h"

static const struct peer_keys keys = {1, {{"a key of sixteen bytes", 22}}};

static void
open_and_start(void *context)
{
    static const struct tier_servers servers = {.count = 1, .of = {{.name = "127.0.0.1:1"}}};
    struct tier *tier = tier_open(&(struct tier_config){
        .servers = &servers, .keys = &keys, .poll_us = 1000, .skew_us = 1000, .late_us = 1000});

    (void)context;
    if (!tier)
        ck_assert_ptr_nonnull(faults_failed());
    else if (tier_start(tier) != 0)
        ck_assert_str_eq(faults_failed(), "pthread_create");
    tier_close(tier);
}

START_TEST(opening_and_starting)
{
    ck_assert_uint_ge(faults_walk(open_and_start, NULL, EMFILE), 3);
}
END_TEST

static Suite *
unit_suite(void)
{
    Suite *suite = suite_create("faults of a tier");
    TCase *tc = tcase_create("faults");

    tcase_add_test(tc, opening_and_starting);
    suite_add_tcase(suite, tc);
    return suite;
}
