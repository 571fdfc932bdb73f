/* Requests that are refused: over the client's rate, or without memory for what waits. */
#define UNIT_STARTS_NO_THREAD

#include <errno.h>
#include <stdio.h>

#include "tests/unit/proxy/scene.h"

#define URL "http://origin.test/page"

static const struct scene_options defaults;

/* A client with a fetch a second. It may outlive its table. */
static struct client *
limited(void)
{
    struct clients *table =
        clients_create(&(struct clients_config){.rates.fetches = {.per_second = 1, .burst = 1}});
    struct client *client;

    ck_assert_ptr_nonnull(table);
    client = clients_find_uid(table, 1, scene.now_us);
    ck_assert_ptr_nonnull(client);
    clients_destroy(table);
    return client;
}

START_TEST(the_rate_bounds_fetches_and_nothing_else)
{
    struct visit v = {.url = URL}, waiting = {0};
    struct client *client;

    scene_begin(&defaults);
    client = limited();
    visit_url(&waiting, URL, 2);
    v.client = client;
    v.bounded = true;
    /* It joins, which costs no fetch. */
    ck_assert(!visit(&v));
    scene_respond(URL, "", 5);
    expect_body(&v, OUTCOME_COALESCED, 5);
    /* A hit costs none. */
    v = (struct visit){.url = URL, .client = client, .bounded = true};
    ck_assert(visit(&v));
    /* One fetch is free, the next is refused; so is a bypass. */
    for (unsigned i = 0; i < 3; i++) {
        v = (struct visit){.url = i < 2 ? "http://origin.test/other" : URL,
                           .client = client,
                           .bounded = true,
                           .no_store = i == 2};
        /* What is refused is refused at once. */
        ck_assert_int_eq(visit(&v), i > 0);
        if (i == 0)
            scene_done(scene_fetch(v.url), FETCH_DENIED, "denied");
        ck_assert_uint_eq(scene_fetches(), 0);
        scene_run();
        if (i == 0)
            expect_failure(&v, FAILURE_DENIED, "");
        else
            expect_failure(&v, FAILURE_OVERLOADED, "the rate of fetches for this client");
    }
    ck_assert_ptr_nonnull(strstr(v.sentence, "try again in 1.00 s"));
    /* A URL that cannot be fetched is said to be one, and costs no token. */
    for (unsigned i = 0; i < 2; i++) {
        v = (struct visit){.url = "ftp://origin.test/", .client = client, .bounded = true};
        ck_assert(visit(&v));
        expect_failure(&v, FAILURE_BAD_URL, "");
        scene.now_us += i == 0 ? SECOND : 0;
    }
    scene.now_us -= SECOND;
    scene.now_us += SECOND;
    v = (struct visit){.url = "http://origin.test/other", .client = client, .bounded = true};
    ck_assert(!visit(&v));
    ck_assert_uint_eq(scene_fetches(), 1);
    scene_respond(v.url, "", 5);
    scene_end();
    client_release(&client);
}
END_TEST

START_TEST(a_fetch_after_a_wait_is_charged_to_the_rate_and_not_refused)
{
    struct visit first = {0}, second = {.url = URL};
    struct client *client;
    struct scene_fetch *fetch;

    scene_begin(&defaults);
    client = limited();
    visit_url(&first, URL, 2);
    second.client = client;
    second.bounded = true;
    ck_assert_int_eq(client_take_fetch(client, scene.now_us), 0);
    ck_assert(!visit(&second));
    fetch = scene_fetch(URL);
    scene_response(fetch, "Set-Cookie: a=b\r\n", false);
    scene_run();
    ck_assert_uint_eq(scene_fetches(), 2);
    /* The token that the client had taken, and one of debt. */
    ck_assert_int_eq(client_take_fetch(client, scene.now_us), 2 * SECOND);
    while (scene_fetches())
        scene_respond(URL, "Set-Cookie: a=b\r\n", 5);
    expect_body(&first, OUTCOME_MISS, 5);
    expect_body(&second, OUTCOME_MISS, 5);
    scene_end();
    client_release(&client);
}
END_TEST

/* A request that is redirected is one to its client: `_i`, only a redirect that was a hit has cost
 * nothing. */
START_TEST(a_fetch_behind_a_redirect_is_charged_to_the_rate_and_not_refused)
{
    struct visit v = {.url = URL, .bounded = true, .before = _i ? OUTCOME_HIT : OUTCOME_MISS};
    struct client *client;

    scene_begin(&defaults);
    client = limited();
    v.client = client;
    ck_assert_int_eq(client_take_fetch(client, scene.now_us), 0);
    ck_assert_int_eq(visit(&v), _i);
    if (_i) {
        expect_failure(&v, FAILURE_OVERLOADED, "the rate of fetches for this client");
    } else {
        scene_respond(URL, "", 5);
        expect_body(&v, OUTCOME_MISS, 5);
        ck_assert_int_eq(client_take_fetch(client, scene.now_us), 2 * SECOND);
    }
    scene_end();
    client_release(&client);
}
END_TEST

/* Requests of client 1, for URLs of their own, until one is refused; they are all ended. */
static struct visit *
fill_up(struct visit *refused, const char *format, size_t *count)
{
    static struct visit visits[1000];
    static char urls[1000][40];

    for (*count = 0; *count < 1000; ++*count) {
        struct visit *v = &visits[*count];

        snprintf(urls[*count], sizeof(urls[*count]), format, (unsigned)*count);
        *v = (struct visit){.url = urls[*count], .client = unit_client(1)};
        v->waiting_bytes = 100;
        visit(v);
        scene_run();
        if (v->ended) {
            *refused = *v;
            return visits;
        }
    }
    ck_abort_msg("no request was refused");
    return NULL;
}

START_TEST(requests_that_wait_are_bounded_for_each_client)
{
    struct visit refused, other = {0}, joins = {0};
    size_t count;
    uint64_t held;

    scene_begin(&(struct scene_options){.memory = 8 * MIB});
    fill_up(&refused, "http://origin.test/%u", &count);
    ck_assert_uint_gt(count, 50);
    expect_failure(&refused, FAILURE_OVERLOADED, "too many requests of this client wait");
    held = refused.client->has[CLIENT_WAITING];
    /* A quarter of an eighth; what it holds is what is counted for fills and requests. */
    ck_assert_uint_le(held, 8 * MIB / 8 / 4 + count * 100);
    ck_assert_uint_eq(held, memory_used(&scene.account, MEMORY_REQUESTS) + count * 100);
    /* A request that would join is refused likewise, and the fetch goes on. */
    joins = (struct visit){
        .url = "http://origin.test/0", .client = refused.client, .waiting_bytes = 100000};
    ck_assert(visit(&joins));
    expect_failure(&joins, FAILURE_OVERLOADED, "too many requests of this client wait");
    /* Another client is served. */
    visit_url(&other, "http://origin.test/0", 2);
    scene_respond("http://origin.test/0", "", 5);
    expect_body(&other, OUTCOME_COALESCED, 5);
    while (scene_fetches())
        scene_respond(NULL, "", 5);
    ck_assert_uint_eq(scene_metric("requests{outcome=\"miss\"}"), count);
    scene_end();
}
END_TEST

START_TEST(a_stream_that_may_not_wait_is_refused_though_the_head_is_there)
{
    struct visit first = {0};
    struct visit joins = {.url = URL, .streams = true, .waiting_bytes = MIB};
    struct scene_fetch *fetch;

    scene_begin(&(struct scene_options){.memory = 8 * MIB});
    visit_url(&first, URL, 1);
    fetch = scene_fetch(URL);
    scene_response(fetch, "", false);
    scene_head(fetch, 200, "", 5);
    scene_body(fetch, 5);
    visit(&joins);
    scene_run();
    expect_failure(&joins, FAILURE_OVERLOADED, "too many requests of this client wait");
    ck_assert_uint_eq(joins.heads, 0);
    scene_done(fetch, FETCH_OK, "");
    scene_run();
    expect_body(&first, OUTCOME_MISS, 5);
    scene_end();
}
END_TEST

START_TEST(without_memory_for_waiting_nothing_is_fetched)
{
    struct visit v = {.url = URL};
    enum failure why;
    size_t fill;

    scene_begin(&(struct scene_options){.memory = 8 * MIB});
    fill = (size_t)memory_left(&scene.account, MEMORY_REQUESTS);
    memory_charge_anyway(&scene.account, MEMORY_REQUESTS, fill);
    ck_assert(visit(&v));
    expect_failure(&v, FAILURE_OVERLOADED, "too many requests of this client wait");
    ck_assert_uint_eq(scene.submitted, 0);
    memory_uncharge(&scene.account, MEMORY_REQUESTS, fill);
    scene_end();
    ck_assert_str_eq(origin_fill_refusal(ENOBUFS, &why),
                     "too many requests wait already; try again");
    ck_assert_int_eq(why, FAILURE_OVERLOADED);
    ck_assert_str_eq(origin_fill_refusal(ENOMEM, &why), strerror(ENOMEM));
    ck_assert_int_eq(why, FAILURE_INTERNAL);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("proxy: limits");
    TCase *cases = tcase_create("all");

    tcase_add_test(cases, the_rate_bounds_fetches_and_nothing_else);
    tcase_add_test(cases, a_fetch_after_a_wait_is_charged_to_the_rate_and_not_refused);
    tcase_add_loop_test(cases, a_fetch_behind_a_redirect_is_charged_to_the_rate_and_not_refused, 0,
                        2);
    tcase_add_test(cases, requests_that_wait_are_bounded_for_each_client);
    tcase_add_test(cases, a_stream_that_may_not_wait_is_refused_though_the_head_is_there);
    tcase_add_test(cases, without_memory_for_waiting_nothing_is_fetched);
    suite_add_tcase(suite, cases);
    return suite;
}
