/* A tier whose calls of the operating system fail, when it is opened and started. */
#include <errno.h>
#include <string.h>

#include "tests/unit/faults.h"
#include "tests/unit/unit.h"
#include "tier/tier.h"

static const struct peer_keys keys = {1, {{"a key of sixteen bytes", 22}}};

static int
find_nothing(const char *host, const char *service, const struct addrinfo *hints,
             struct addrinfo **result)
{
    (void)host;
    (void)service;
    (void)hints;
    (void)result;
    return EAI_NONAME;
}

static void
open_and_start(void *context)
{
    static const struct tier_servers servers = {
        .count = 1,
        .of = {{.name = "cache.test:1", .host = "cache.test", .port = 1, .is_name = true}}};
    struct tier *tier = tier_open(&(struct tier_config){.servers = &servers,
                                                        .keys = &keys,
                                                        .poll_us = 1000,
                                                        .skew_us = 1000,
                                                        .late_us = 1000,
                                                        .getaddrinfo = find_nothing});

    (void)context;
    if (!tier)
        ck_assert_ptr_nonnull(faults_failed());
    else if (tier_start(tier) != 0)
        ck_assert_ptr_nonnull(strstr(faults_failed(), "pthread_"));
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
