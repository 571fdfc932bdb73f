/* Every allocation of the fetching code failing in turn: answered, and nothing lost. */
#include "tests/unit/torture.h"

#include <stdio.h>

#include "fetch/transfer.h"
#include "tests/unit/fetch/names.h"
#include "tests/unit/fetch/outcome.h"
#include "tests/unit/unit.h"

static void
walk_addresses(void *context)
{
    struct address_policy *policy = address_policy_create();
    char why[128], block[32];
    unsigned allowed = 0;

    (void)context;
    if (!policy) {
        ck_assert(torture_failed());
        return;
    }
    for (unsigned i = 0; i < 20; i++) {
        snprintf(block, sizeof(block), "10.%u.0.0/16", i);
        allowed += address_policy_allow(policy, block, why, sizeof(why));
    }
    ck_assert_uint_eq(allowed, torture_failed() ? 19 : 20);
    address_policy_destroy(policy);
}

static void
walk_own_addresses(void *context)
{
    struct address_policy *policy = address_policy_create();
    char why[128] = "";
    bool ok = policy && address_policy_refuse_own(policy, why, sizeof(why));

    (void)context;
    ck_assert(ok != torture_failed());
    ck_assert(ok || !policy || why[0]);
    address_policy_destroy(policy);
}

static void
walk_urls(void *context)
{
    struct span url = span_str("http://u:w@h.test/a");
    enum fetch_error error;
    bool same_origin;
    struct buf next;
    char why[128];

    (void)context;
    buf_init(&next, URL_MAX);
    error = fetch_follow(url, span_str("/b"), &next, &same_origin, why, sizeof(why));
    ck_assert_int_eq(error, torture_failed() ? FETCH_INTERNAL : FETCH_OK);
    ck_assert_str_eq(buf_str(&next), error ? "" : "http://u:w@h.test/b");
    buf_free(&next);
}

/* A fetcher with everything configured, and a request to it. */
static void
walk_fetcher(void *context)
{
    static const char *const rules[] = {"a.test:80:b.test:81", "[::1]:80:127.0.0.1:81", NULL};
    static const char url[] = "file:///refused/on/the/other/thread";
    const struct address_policy *addresses = context;
    struct fetch_config config;
    struct fetcher *fetcher;
    struct outcome o;
    char why[256];

    fetch_config_default(&config);
    config.addresses = addresses;
    config.connect_to = rules;
    config.resolver_threads = 1;
    fetcher = fetcher_create(&config, why, sizeof(why));
    if (!fetcher) {
        ck_assert(torture_failed());
        ck_assert_str_ne(why, "");
        return;
    }
    outcome_init(&o);
    if (submit_request(fetcher, &GET(OUTCOME_CLIENT, url, ""), &outcome_sink, &o, NULL))
        outcome_wait(&o);
    else
        ck_assert(torture_failed());
    ck_assert_uint_eq(o.dones, torture_failed() ? 0 : 1);
    outcome_free(&o);
    fetcher_destroy(fetcher);
}

static void
ignore(void *context)
{
    (void)context;
}

static void
walk_resolver(void *context)
{
    struct resolver_config config = {
        .threads = 1,
        .max_names = 4,
        .ttl_us = 1000000,
        .getaddrinfo = names_getaddrinfo,
        .freeaddrinfo = freeaddrinfo,
        .notify = ignore,
    };
    struct resolver *resolver = resolver_create(&config);
    struct resolver_query query = {0};
    enum resolver_answer answer;

    (void)context;
    if (!resolver) {
        ck_assert(torture_failed());
        return;
    }
    answer = resolver_lookup(resolver, &query, OUTCOME_CLIENT, "nowhere.test");
    ck_assert_int_eq(answer, torture_failed() ? RESOLVER_NO_MEMORY : RESOLVER_PENDING);
    resolver_cancel(resolver, &query);
    resolver_destroy(resolver);
}

static void
walk_proxy(void *context)
{
    const struct address_policy *addresses = context;
    struct fetch_config config;
    struct settings settings;
    char why[256];

    fetch_config_default(&config);
    config.addresses = addresses;
    config.upstream_proxy = "http://proxy.test:3128";
    ck_assert(settings_init(&settings, &config, why, sizeof(why)) != torture_failed());
    settings_free(&settings);
}

static void
never_change(struct consumer *consumer, enum transfer_change change)
{
    (void)consumer;
    (void)change;
}

static enum fetch_flow
never_body(void *context, const void *bytes, size_t len)
{
    (void)context;
    (void)bytes;
    (void)len;
    return FETCH_ABORT;
}

static enum fetch_flow
never_head(void *context, const struct fetch_head *head)
{
    (void)context;
    (void)head;
    return FETCH_ABORT;
}

/* What a transfer is made of. */
struct parts {
    struct transfer_place place;
    struct target target;
    struct route route;
    struct resolved *resolved;
};

static void
walk_transfer(void *context)
{
    struct parts *parts = context;
    struct transfer_place *place = &parts->place;
    const struct request asked = {0};
    struct consumer consumer = {.request = &asked,
                                .sink = {.head = never_head, .body = never_body}};
    const struct transfer_order order = {.settings = place->settings,
                                         .target = &parts->target,
                                         .route = &parts->route,
                                         .addresses = parts->resolved,
                                         .headers.fields = span_str("A: b\r\n")};
    struct transfer transfer = {0};

    connections_init(&place->connections, 1, 1);
    ck_assert(transfer_start(&transfer, place, &consumer, &order) != torture_failed());
    ck_assert((transfer.easy == NULL) == torture_failed());
    transfer_clear(&transfer);
    connections_free(&place->connections);
    ck_assert_uint_eq(atomic_load(&parts->resolved->references), 1);
}

START_TEST(torture)
{
    struct address_policy *addresses = address_policy_create();
    struct fetch_config config;
    struct parts parts = {
        .place = {.multi = curl_multi_init(),
                  .poller = {.epoll = -1, .wakeup = -1},
                  .changed = never_change},
        .resolved = resolved_create(1),
    };
    char why[256];

    ck_assert_uint_ge(torture_walk(walk_addresses, NULL), 3);
    ck_assert_uint_ge(torture_walk(walk_own_addresses, NULL), 2);
    ck_assert_uint_ge(torture_walk(walk_urls, NULL), 5);
    ck_assert_uint_ge(torture_walk(walk_resolver, NULL), 3);
    ck_assert_uint_ge(torture_walk(walk_fetcher, addresses), 10);
    ck_assert_uint_ge(torture_walk(walk_proxy, addresses), 3);

    fetch_config_default(&config);
    config.addresses = addresses;
    parts.place.settings = fetch_settings_create(&config, why, sizeof(why));
    ck_assert_ptr_nonnull(parts.place.settings);
    ck_assert_int_eq(target_parse(&parts.target, span_str("http://h.test/"), why, sizeof(why)), 0);
    ck_assert(address_parse("192.0.2.1", 80, &parts.resolved->list[0]));
    parts.route = (struct route){.host = "other.test", .port = 80, .redirected = true};
    ck_assert_uint_ge(torture_walk(walk_transfer, &parts), 5);
    resolved_release(&parts.resolved);
    target_free(&parts.target);
    fetch_settings_release(&parts.place.settings);
    curl_multi_cleanup(parts.place.multi);
    poller_free(&parts.place.poller);
    address_policy_destroy(addresses);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("fetch/torture");
    TCase *tc = tcase_create("torture");

    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, torture);
    suite_add_tcase(suite, tc);
    return suite;
}
