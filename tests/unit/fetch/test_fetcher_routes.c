/* Where connections go and how many at once: names, proxies, connect_to, turns, the end. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/unit/fetch/fixture.h"

#define HELLO "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello\n"

static const struct line script[] = {
    {.path = "/", .bytes = HELLO},
    {.path = "/slow", .bytes = HELLO, .pause_ms = 50},
    {.path = "/silent", .bytes = "", .then = HANG},
    {.path = "/hang", .bytes = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhel", .then = HANG},
    {.path = "http://name.only.the.proxy.knows/", .bytes = HELLO},
    {.path = NULL},
};

/* ---- names ----------------------------------------------------------------------------------- */

START_TEST(addresses_that_are_refused_are_passed_over)
{
    static const struct name_row names[] = {
        {"mixed.test", "10.0.0.1"},   {"mixed.test", "127.0.0.1"},       {"mixed.test", "fe80::1"},
        {"dotted.test", "127.0.0.1"}, {"under_score.test", "127.0.0.1"}, {NULL, NULL},
    };
    struct origin *origin = origin_start(script);
    struct fetcher *fetcher;
    struct outcome o;

    names_use(&config, names);
    fetcher = start_fetcher(&config);
    expect_end(fetcher, FETCH_OK, "http://mixed.test:%u/", origin->port);
    expect_end(fetcher, FETCH_OK, "http://MIXED.test:%u/", origin->port);
    ck_assert_uint_eq(names_asked, 1);
    expect_end(fetcher, FETCH_OK, "http://dotted.test.:%u/", origin->port);
    expect_end(fetcher, FETCH_OK, "http://under_score.test:%u/", origin->port);
    fetch_one(fetcher, &o, "http://nowhere.test/");
    ck_assert_msg(o.error == FETCH_RESOLVE_FAILED, "%d %s", o.error, o.sentence);
    ck_assert_msg(strstr(o.sentence, "nowhere.test") != NULL, "%s", o.sentence);
    outcome_free(&o);
    fetcher_destroy(fetcher);
    origin_stop(origin);
}
END_TEST

/* The checked address is the one that is connected to, even if the name changes meanwhile. */
START_TEST(a_name_that_changes_its_address)
{
    static const struct name_row good[] = {{"turncoat.test", "127.0.0.1"}, {NULL, NULL}};
    static const struct name_row bad[] = {{"turncoat.test", "10.0.0.1"}, {NULL, NULL}};
    struct origin *origin = origin_start(script);
    struct fetcher *fetcher;

    names_use(&config, good);
    config.dns_ttl_us = 0;
    fetcher = start_fetcher(&config);
    for (unsigned i = 0; i < 3; i++) {
        names_table = good;
        expect_end(fetcher, FETCH_OK, "http://turncoat.test:%u/", origin->port);
        names_table = bad;
        expect_end(fetcher, FETCH_DENIED, "http://turncoat.test:%u/", origin->port);
    }
    fetcher_destroy(fetcher);
    origin_stop(origin);
}
END_TEST

/* A new address is used, though libcurl has pinned the old one for an earlier transfer. */
START_TEST(pins_are_replaced)
{
    static const struct name_row first[] = {{"mover.test", "127.0.0.1"}, {NULL, NULL}};
    static const struct name_row second[] = {{"mover.test", "127.0.0.2"}, {NULL, NULL}};
    struct line closing[] = {{.path = "/", .bytes = HELLO, .then = CLOSE}, {.path = NULL}};
    struct origin *origin = origin_start(closing);
    struct fetcher *fetcher;

    names_use(&config, first);
    config.dns_ttl_us = 0;
    fetcher = start_fetcher(&config);
    expect_end(fetcher, FETCH_OK, "http://mover.test:%u/", origin->port);
    names_table = second;
    /* No server listens at 127.0.0.2. */
    expect_end(fetcher, FETCH_CONNECT_FAILED, "http://mover.test:%u/", origin->port);
    fetcher_destroy(fetcher);
    origin_stop(origin);
}
END_TEST

START_TEST(a_name_that_hangs)
{
    static const struct name_row names[] = {{"fast.test", "127.0.0.1"}, {NULL, NULL}};
    struct origin *origin = origin_start(script);
    struct fetcher *fetcher;
    struct outcome stuck;

    names_use(&config, names);
    config.resolve_timeout_us = 500000;
    fetcher = start_fetcher(&config);
    outcome_init(&stuck);
    ck_assert(submit_request(fetcher, &GET(OUTCOME_CLIENT, "http://hang.test/", ""), &outcome_sink,
                             &stuck, NULL));
    expect_end(fetcher, FETCH_OK, "http://fast.test:%u/", origin->port);
    outcome_wait(&stuck);
    ck_assert_msg(stuck.error == FETCH_CONNECT_TIMED_OUT, "%d %s", stuck.error, stuck.sentence);
    ck_assert_msg(strstr(stuck.sentence, "resolving") != NULL, "%s", stuck.sentence);
    outcome_free(&stuck);
    /* The thread that is still stuck is given up. */
    fetcher_destroy(fetcher);
    origin_stop(origin);
    names_release();
}
END_TEST

/* ---- permissions ----------------------------------------------------------------------------- */

/* However the address is spelt. */
START_TEST(addresses_that_are_refused)
{
    static const struct name_row names[] = {{"private.test", "10.0.0.1"}, {NULL, NULL}};
    static const char *const urls[] = {
        "http://10.0.0.1/",
        "http://167772161/",
        "http://012.0.0.1/",
        "http://0x0a000001/",
        "http://10.1/",
        "http://%31%30.0.0.1/",
        "http://[::1]/",
        "http://[::ffff:10.0.0.1]/",
        "http://[::ffff:a00:1]/",
        "http://[64:ff9b::10.0.0.1]/",
        "http://169.254.169.254/latest/",
        "http://private.test/",
    };
    struct fetcher *fetcher;
    struct outcome o;

    names_use(&config, names);
    fetcher = start_fetcher(&config);
    for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++) {
        fetch_one(fetcher, &o, "%s", urls[i]);
        ck_assert_msg(o.error == FETCH_DENIED, "%s: %d %s", urls[i], o.error, o.sentence);
        ck_assert_msg(strstr(o.sentence, "refused: ") != NULL, "%s: %s", urls[i], o.sentence);
        outcome_free(&o);
    }
    fetch_one(fetcher, &o, "http://127.0.0.1:25/");
    ck_assert_int_eq(o.error, FETCH_DENIED);
    ck_assert_msg(strstr(o.sentence, "allow it with --allow-port 25") != NULL, "%s", o.sentence);
    outcome_free(&o);
    fetcher_destroy(fetcher);
}
END_TEST

/* What the operator has configured, as a member of a row or as a URL, needs no permission. */
START_TEST(configured_urls)
{
    struct origin *origin = origin_start(script);
    struct request request = {.client = OUTCOME_CLIENT};
    struct origin_route route;
    struct fetcher *fetcher;
    char url[64], field[64];

    forbid_loopback();
    fetcher = start_fetcher(&config);
    snprintf(url, sizeof(url), "http://127.0.0.1:%u", origin->port);
    route = route_to(url, "site.test:81");
    snprintf(field, sizeof(field), "Host: 127.0.0.1:%u\r\n", origin->port);
    for (unsigned i = 0; i < 3; i++) {
        struct outcome o;

        request.url = span_str(i == 1 ? "http://client.test/" : url);
        request.route = i == 1 ? &route : NULL;
        request.flags = i == 2 ? REQUEST_CONFIGURED : 0;
        outcome_init(&o);
        ck_assert(submit_request(fetcher, &request, &outcome_sink, &o, NULL));
        outcome_wait(&o);
        ck_assert_msg(o.error == (i ? FETCH_OK : FETCH_DENIED), "%u: %d %s", i, o.error,
                      o.sentence);
        if (i)
            ck_assert_ptr_nonnull(
                strstr(origin->last_request, i == 1 ? "Host: site.test:81\r\n" : field));
        outcome_free(&o);
    }
    ck_assert_uint_eq(origin_requests(origin), 2);
    fetcher_destroy(fetcher);
    origin_stop(origin);
}
END_TEST

/* A request is kept under its URL, and another URL is fetched for it. */
START_TEST(a_target_is_fetched_instead)
{
    static const struct name_row names[] = {{"target.test", "127.0.0.1"}, {NULL, NULL}};
    struct origin *origin = origin_start(script);
    struct request request = {.client = OUTCOME_CLIENT, .url = span_str("http://refused.test/a")};
    struct origin_route route;
    struct fetcher *fetcher;
    char url[64], target[64], why[256];

    names_use(&config, names);
    fetcher = start_fetcher(&config);
    snprintf(url, sizeof(url), "http://127.0.0.1:%u", origin->port);
    snprintf(target, sizeof(target), "http://target.test:%u/slow", origin->port);
    route = route_to(url, "");
    route.host = ORIGIN_HOST_CLIENT;
    request.target = span_str(target);
    for (unsigned i = 0; i < 2; i++) {
        char field[64];
        struct outcome o;

        request.route = i ? &route : NULL;
        ck_assert_int_eq(fetch_check_request(&request, request.fields, why, sizeof(why)), FETCH_OK);
        outcome_init(&o);
        ck_assert(submit_request(fetcher, &request, &outcome_sink, &o, NULL));
        outcome_wait(&o);
        ck_assert_msg(o.error == FETCH_OK, "%u: %d %s", i, o.error, o.sentence);
        ck_assert(strncmp(origin->last_request, "GET /slow HTTP/1.1\r\n", 20) == 0);
        snprintf(field, sizeof(field), "Host: target.test:%u\r\n", origin->port);
        ck_assert_ptr_nonnull(strstr(origin->last_request, field));
        outcome_free(&o);
    }
    request.route = NULL;
    request.target = span_str("file:///a");
    ck_assert_int_eq(fetch_check_request(&request, request.fields, why, sizeof(why)),
                     FETCH_BAD_URL);
    fetcher_destroy(fetcher);
    origin_stop(origin);
}
END_TEST

/* ---- proxies and connect_to ------------------------------------------------------------------ */

START_TEST(the_environments_proxies_are_ignored)
{
    static const char *const names[] = {"http_proxy", "https_proxy", "all_proxy", "HTTPS_PROXY",
                                        "ALL_PROXY"};
    struct origin *origin = origin_start(script);
    struct origin *proxy = origin_start(script);
    struct fetcher *fetcher;
    char url[64];

    snprintf(url, sizeof(url), "http://127.0.0.1:%u", proxy->port);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        setenv(names[i], url, 1);
    fetcher = start_fetcher(&config);
    expect_end(fetcher, FETCH_OK, "http://127.0.0.1:%u/", origin->port);
    fetcher_destroy(fetcher);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        unsetenv(names[i]);
    ck_assert_uint_eq(proxy->connections, 0);
    ck_assert_uint_eq(origin->connections, 1);
    origin_stop(proxy);
    origin_stop(origin);
}
END_TEST

START_TEST(an_upstream_proxy)
{
    static const struct name_row names[] = {{"proxy.test", "127.0.0.1"}, {NULL, NULL}};
    struct origin *proxy = origin_start(script);
    struct fetcher *fetcher;
    char url[64];

    forbid_loopback();
    snprintf(url, sizeof(url), "http://proxy.test:%u", proxy->port);
    config.upstream_proxy = url;
    names_use(&config, names);
    /* The environment has no say in what goes past it either. */
    setenv("no_proxy", "*", 1);
    fetcher = start_fetcher(&config);
    expect_page(fetcher, "hello\n", "http://name.only.the.proxy.knows/");
    ck_assert_uint_eq(names_asked, 1);
    expect_end(fetcher, FETCH_DENIED, "http://127.0.0.1:%u/", proxy->port);
    expect_end(fetcher, FETCH_DENIED, "https://[::ffff:10.0.0.1]/");
    /* A tunnel that the proxy refuses to dig. */
    expect_end(fetcher, FETCH_CONNECT_FAILED, "https://name.only.the.proxy.knows/");
    ck_assert_uint_eq(proxy->requests, 2);
    unsetenv("no_proxy");
    fetcher_destroy(fetcher);
    origin_stop(proxy);
}
END_TEST

START_TEST(connect_to)
{
    static const struct name_row names[] = {{"target.test", "127.0.0.1"}, {NULL, NULL}};
    struct origin *origin = origin_start(script);
    struct fetcher *fetcher;
    struct outcome o;
    char by_name[64], by_address[64], port_only[64];
    const char *rules[] = {by_name, by_address, port_only, NULL};

    forbid_loopback();
    snprintf(by_name, sizeof(by_name), "a.example:80:target.test:%u", origin->port);
    snprintf(by_address, sizeof(by_address), "b.example::127.0.0.1:%u", origin->port);
    snprintf(port_only, sizeof(port_only), "127.0.0.1:80::%u", origin->port);
    config.connect_to = rules;
    names_use(&config, names);
    fetcher = start_fetcher(&config);
    fetch_fine(fetcher, &o, "http://a.example/");
    ck_assert_ptr_nonnull(strstr(origin->last_request, "Host: a.example\r\n"));
    outcome_free(&o);
    expect_end(fetcher, FETCH_OK, "http://b.example:1234/");
    /* The operator has named the port that is connected to. */
    expect_end(fetcher, FETCH_OK, "http://b.example:25/");
    fetch_one(fetcher, &o, "http://c.example:25/");
    ck_assert_int_eq(o.error, FETCH_DENIED);
    ck_assert_msg(strstr(o.sentence, "allow it with --allow-port 25") != NULL, "%s", o.sentence);
    outcome_free(&o);
    /* The permission is for what the rule redirects, not for URLs of its target. */
    expect_end(fetcher, FETCH_DENIED, "http://127.0.0.1:%u/", origin->port);
    expect_end(fetcher, FETCH_DENIED, "http://target.test:%u/", origin->port);
    expect_end(fetcher, FETCH_DENIED, "http://127.0.0.1/");
    fetcher_destroy(fetcher);
    origin_stop(origin);
}
END_TEST

/* ---- IPv6 -------------------------------------------------------------------------------- */

START_TEST(over_ipv6)
{
    static const struct name_row names[] = {{"six.test", "::1"}, {NULL, NULL}};
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    socklen_t len = sizeof(in6);
    int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    char rule[64], why[128];
    const char *rules[] = {rule, NULL};
    struct origin *origin;
    struct fetcher *fetcher;

    if (fd < 0 || bind(fd, (struct sockaddr *)&in6, sizeof(in6)) != 0) {
        printf("SKIP: IPv6 is not here\n");
        if (fd >= 0)
            close(fd);
        return;
    }
    ck_assert_int_eq(listen(fd, 8), 0);
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&in6, &len), 0);
    origin = origin_start_on(script, fd, ntohs(in6.sin6_port));
    names_use(&config, names);
    snprintf(rule, sizeof(rule), "rule.test:80:[::1]:%u", origin->port);
    config.connect_to = rules;
    fetcher = start_fetcher(&config);
    expect_end(fetcher, FETCH_OK, "http://rule.test/");
    expect_end(fetcher, FETCH_DENIED, "http://[::1]:%u/", origin->port);
    fetcher_destroy(fetcher);
    ck_assert(address_policy_allow(addresses, "::1", why, sizeof(why)));
    fetcher = start_fetcher(&config);
    expect_end(fetcher, FETCH_OK, "http://[::1]:%u/", origin->port);
    expect_end(fetcher, FETCH_OK, "http://six.test:%u/", origin->port);
    fetcher_destroy(fetcher);
    origin_stop(origin);
}
END_TEST

/* ---- how many at once ------------------------------------------------------------------------ */

enum { MANY = 100 };

static void
fetch_many(struct fetcher *fetcher, const struct origin *origin, const char *path,
           struct outcome *outcomes, unsigned count)
{
    char url[64];

    snprintf(url, sizeof(url), "http://127.0.0.1:%u%s", origin->port, path);
    for (unsigned i = 0; i < count; i++) {
        outcome_init(&outcomes[i]);
        ck_assert(submit_request(fetcher, &GET(OUTCOME_CLIENT, url, ""), &outcome_sink,
                                 &outcomes[i], NULL));
    }
}

static unsigned
count_of(struct outcome *outcomes, unsigned count, enum fetch_error error)
{
    unsigned found = 0;

    for (unsigned i = 0; i < count; i++) {
        outcome_wait(&outcomes[i]);
        ck_assert_uint_eq(outcomes[i].dones, 1);
        found += outcomes[i].error == error;
    }
    return found;
}

static void
free_all(struct outcome *outcomes, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        outcome_free(&outcomes[i]);
}

START_TEST(a_hundred_at_once)
{
    static struct outcome outcomes[MANY];
    struct origin *origin = origin_start(script);
    struct fetcher *fetcher;
    struct fetch_stats stats;

    config.max_active_per_origin = MANY;
    fetcher = start_fetcher(&config);
    fetch_many(fetcher, origin, "/slow", outcomes, MANY);
    ck_assert_uint_eq(count_of(outcomes, MANY, FETCH_OK), MANY);
    fetcher_get_stats(fetcher, &stats);
    ck_assert_uint_eq(stats.started, MANY);
    ck_assert_uint_eq(stats.bytes, MANY * 6);
    ck_assert_uint_gt(origin->most_under_way, 1);
    free_all(outcomes, MANY);
    fetcher_destroy(fetcher);
    origin_stop(origin);
}
END_TEST

START_TEST(bounds_on_transfers)
{
    static struct outcome outcomes[20];
    struct origin *origin = origin_start(script);
    struct fetcher *fetcher;

    config.max_active_per_origin = 3;
    fetcher = start_fetcher(&config);
    fetch_many(fetcher, origin, "/slow", outcomes, 20);
    ck_assert_uint_eq(count_of(outcomes, 20, FETCH_OK), 20);
    ck_assert_uint_le(origin->most_under_way, 3);
    free_all(outcomes, 20);
    fetcher_destroy(fetcher);
    config.max_active_per_origin = 20;
    config.max_active = 2;
    origin->most_under_way = 0;
    fetcher = start_fetcher(&config);
    fetch_many(fetcher, origin, "/slow", outcomes, 20);
    ck_assert_uint_eq(count_of(outcomes, 20, FETCH_OK), 20);
    ck_assert_uint_le(origin->most_under_way, 2);
    free_all(outcomes, 20);
    fetcher_destroy(fetcher);
    origin_stop(origin);
}
END_TEST

START_TEST(a_full_origin_holds_up_no_other)
{
    static struct outcome outcomes[5];
    struct origin *slow = origin_start(script), *quick = origin_start(script);
    struct fetcher *fetcher;

    config.max_active_per_origin = 1;
    fetcher = start_fetcher(&config);
    fetch_many(fetcher, slow, "/hang", outcomes, 5);
    for (unsigned i = 0; i < 3; i++)
        expect_end(fetcher, FETCH_OK, "http://127.0.0.1:%u/", quick->port);
    for (unsigned i = 0; i < 5; i++)
        ck_assert(!outcome_is_over(&outcomes[i]));
    fetcher_destroy(fetcher);
    ck_assert_uint_eq(count_of(outcomes, 5, FETCH_STOPPING), 5);
    ck_assert_str_ne(outcomes[0].sentence, "");
    free_all(outcomes, 5);
    origin_stop(slow);
    origin_stop(quick);
}
END_TEST

START_TEST(the_queue_is_bounded)
{
    static struct outcome outcomes[10];
    struct origin *origin = origin_start(script);
    struct fetcher *fetcher;
    struct fetch_stats stats;

    config.max_active_per_origin = 2;
    config.max_active_per_client = 0;
    config.max_queued = 3;
    fetcher = start_fetcher(&config);
    fetch_many(fetcher, origin, "/silent", outcomes, 10);
    ck_assert_uint_eq(count_of(outcomes + 5, 5, FETCH_DISPLACED), 5);
    for (unsigned i = 0; i < 5; i++)
        ck_assert(!outcome_is_over(&outcomes[i]));
    fetcher_get_stats(fetcher, &stats);
    ck_assert_uint_le(stats.queued, 3);
    fetcher_destroy(fetcher);
    ck_assert_uint_eq(count_of(outcomes, 5, FETCH_STOPPING), 5);
    free_all(outcomes, 10);
    /* None is queued: a fetch that can start is not displaced. */
    config.max_queued = 0;
    fetcher = start_fetcher(&config);
    fetch_many(fetcher, origin, "/silent", outcomes, 3);
    outcome_wait(&outcomes[2]);
    ck_assert_int_eq(outcomes[2].error, FETCH_DISPLACED);
    fetcher_destroy(fetcher);
    ck_assert_uint_eq(count_of(outcomes, 2, FETCH_STOPPING), 2);
    free_all(outcomes, 3);
    origin_stop(origin);
}
END_TEST

START_TEST(waiting_counts_against_the_whole)
{
    static struct outcome outcomes[2];
    struct origin *origin = origin_start(script);
    struct fetcher *fetcher;

    config.max_active = 1;
    config.total_timeout_us = 500000;
    fetcher = start_fetcher(&config);
    fetch_many(fetcher, origin, "/hang", outcomes, 2);
    outcome_wait(&outcomes[0]);
    ck_assert_int_eq(outcomes[0].error, FETCH_TIMED_OUT);
    /* It may begin in the last moment, which is too short for a connection. */
    outcome_wait(&outcomes[1]);
    ck_assert(outcomes[1].error == FETCH_TIMED_OUT ||
              outcomes[1].error == FETCH_CONNECT_TIMED_OUT);
    ck_assert_int_ge(outcomes[1].total_us, 500000);
    free_all(outcomes, 2);
    fetcher_destroy(fetcher);
    origin_stop(origin);
}
END_TEST

/* Stopping in every stage: under way, waiting, resolving, not even begun. */
START_TEST(an_end_under_load)
{
    static struct outcome outcomes[MANY];
    struct origin *origin = origin_start(script);
    struct fetcher *fetcher;
    struct outcome names[3];
    unsigned ended;

    names_use(&config, NULL);
    fetcher = start_fetcher(&config);
    for (unsigned i = 0; i < 3; i++) {
        outcome_init(&names[i]);
        ck_assert(submit_request(fetcher, &GET(OUTCOME_CLIENT, "http://hang.test/", ""),
                                 &outcome_sink, &names[i], NULL));
    }
    fetch_many(fetcher, origin, "/slow", outcomes, MANY);
    fetcher_destroy(fetcher);
    ended = count_of(outcomes, MANY, FETCH_OK) + count_of(outcomes, MANY, FETCH_STOPPING);
    ck_assert_uint_eq(ended, MANY);
    ck_assert_uint_eq(count_of(names, 3, FETCH_STOPPING), 3);
    free_all(outcomes, MANY);
    free_all(names, 3);
    origin_stop(origin);
    names_release();
}
END_TEST

/* A call-back may ask for more. */
struct chain {
    struct outcome outcome;
    struct fetcher *fetcher;
    char url[64];
    unsigned left;
};

static void
chain_done(void *context, enum fetch_error error, const char *sentence, int64_t total_us)
{
    static const struct fetch_sink again = {
        .head = outcome_head, .body = outcome_body, .done = chain_done};
    struct chain *chain = context;

    if (chain->left-- > 0)
        submit_request(chain->fetcher, &GET(OUTCOME_CLIENT, chain->url, ""), &again, chain, NULL);
    else
        outcome_done(&chain->outcome, error, sentence, total_us);
}

START_TEST(a_call_back_that_submits)
{
    static const struct fetch_sink sink = {
        .head = outcome_head, .body = outcome_body, .done = chain_done};
    struct origin *origin = origin_start(script);
    struct chain chain = {.fetcher = start_fetcher(&config), .left = 5};

    snprintf(chain.url, sizeof(chain.url), "http://127.0.0.1:%u/", origin->port);
    outcome_init(&chain.outcome);
    ck_assert(
        submit_request(chain.fetcher, &GET(OUTCOME_CLIENT, chain.url, ""), &sink, &chain, NULL));
    outcome_wait(&chain.outcome);
    ck_assert_msg(chain.outcome.error == FETCH_OK, "%s", chain.outcome.sentence);
    ck_assert_uint_eq(chain.outcome.heads, 6);
    fetcher_destroy(chain.fetcher);
    outcome_free(&chain.outcome);
    origin_stop(origin);
}
END_TEST

Suite *
unit_suite(void)
{
    TCase *tc;
    Suite *suite = fixture_suite("fetch/routes", &tc);

    tcase_add_test(tc, addresses_that_are_refused_are_passed_over);
    tcase_add_test(tc, a_name_that_changes_its_address);
    tcase_add_test(tc, pins_are_replaced);
    tcase_add_test(tc, a_name_that_hangs);
    tcase_add_test(tc, addresses_that_are_refused);
    tcase_add_test(tc, configured_urls);
    tcase_add_test(tc, a_target_is_fetched_instead);
    tcase_add_test(tc, the_environments_proxies_are_ignored);
    tcase_add_test(tc, an_upstream_proxy);
    tcase_add_test(tc, connect_to);
    tcase_add_test(tc, over_ipv6);
    tcase_add_test(tc, a_hundred_at_once);
    tcase_add_test(tc, bounds_on_transfers);
    tcase_add_test(tc, a_full_origin_holds_up_no_other);
    tcase_add_test(tc, the_queue_is_bounded);
    tcase_add_test(tc, waiting_counts_against_the_whole);
    tcase_add_test(tc, an_end_under_load);
    tcase_add_test(tc, a_call_back_that_submits);
    return suite;
}
