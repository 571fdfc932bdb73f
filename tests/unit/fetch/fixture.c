#include "tests/unit/fetch/fixture.h"

struct address_policy *addresses;
struct fetch_config config;

void
fixture_set_up(void)
{
    char why[256];

    addresses = address_policy_create();
    ck_assert_ptr_nonnull(addresses);
    ck_assert(address_policy_allow(addresses, "127.0.0.0/8", why, sizeof(why)));
    fetch_config_default(&config);
    config.addresses = addresses;
    config.resolve_timeout_us = 5000000;
    config.connect_timeout_us = 5000000;
    config.first_byte_timeout_us = 5000000;
    config.stall_timeout_us = 5000000;
    config.total_timeout_us = 20000000;
    config.resolver_threads = 2;
}

void
fixture_tear_down(void)
{
    address_policy_destroy(addresses);
}

Suite *
fixture_suite(const char *name, TCase **tc)
{
    Suite *suite = suite_create(name);

    *tc = tcase_create(name);
    tcase_add_checked_fixture(*tc, fixture_set_up, fixture_tear_down);
    tcase_set_timeout(*tc, 60);
    suite_add_tcase(suite, *tc);
    return suite;
}

struct fetcher *
start_fetcher(const struct fetch_config *with)
{
    char why[512] = "";
    struct fetcher *fetcher = fetcher_create(with, why, sizeof(why));

    ck_assert_msg(fetcher != NULL, "%s", why);
    return fetcher;
}

void
forbid_loopback(void)
{
    address_policy_destroy(addresses);
    addresses = address_policy_create();
    config.addresses = addresses;
}
