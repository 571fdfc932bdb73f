/* The relay: bodies of requests on their way to the origin, interim responses on the way back. */
#define UNIT_STARTS_NO_THREAD

#include <stdlib.h>

#include "proxy/body_relay.h"
#include "tests/unit/proxy/scene.h"

#define URL "http://origin.test/form"

static const struct scene_options defaults;

/* ---- the pipe -------------------------------------------------------------------------------- */

static unsigned wakes;
static const char zeroes[1000];

static void
count_wake(void *context)
{
    ck_assert_ptr_null(context);
    wakes++;
}

static struct relay *
make(bool has_body)
{
    struct relay *relay = relay_create(&(struct relay_config){.origin = &scene.proxy.config.origin,
                                                              .account = &scene.account,
                                                              .has_body = has_body,
                                                              .wake = count_wake});

    ck_assert_ptr_nonnull(relay);
    wakes = 0;
    return relay;
}

/* Pieces of many sizes, so that the ring's end falls into both reads and writes. */
START_TEST(a_body_comes_out_as_it_went_in)
{
    static const size_t sizes[] = {1, 7, 65535, 65536, 4096, 30000, 50001, 3};
    static char in[RELAY_BYTES], out[RELAY_BYTES];
    uint64_t written = 0, read = 0;
    struct relay *relay, *other;
    size_t len;

    scene_begin(&defaults);
    relay = other = make(true);
    for (unsigned i = 0; i < 200; i++) {
        size_t size = sizes[i % 8];

        scene_bytes(in, written, size);
        written += relay_write(relay, in, size);
        ck_assert_uint_le(written - read, RELAY_BYTES);
        size = sizes[(i + 5) % 8];
        if (read == written)
            continue;
        ck_assert_int_eq(relay_supply(relay, 1, out, size, &len), FETCH_SUPPLIED);
        ck_assert_uint_le(len, size);
        ck_assert(scene_has_bytes(out, read, len));
        read += len;
    }
    ck_assert_uint_gt(read, 10 * RELAY_BYTES);
    relay_end(relay);
    while (relay_supply(relay, 1, out, sizeof(out), &len) == FETCH_SUPPLIED)
        read += len;
    ck_assert_uint_eq(read, written);
    ck_assert_int_eq(relay_supply(relay, 1, out, sizeof(out), &len), FETCH_SUPPLY_END);
    relay_leave(&relay);
    relay_close(&other);
    scene_end();
}
END_TEST

START_TEST(a_full_relay_stops_the_client_until_half_of_it_is_free)
{
    static char bytes[RELAY_BYTES];
    struct relay *relay, *other;
    size_t len;

    scene_begin(&defaults);
    relay = other = make(true);
    ck_assert_uint_eq(relay_write(relay, bytes, RELAY_BYTES), RELAY_BYTES);
    /* All was taken, so that no wake is due. */
    relay_supply(relay, 1, bytes, RELAY_BYTES, &len);
    ck_assert_uint_eq(wakes, 0);
    ck_assert_uint_eq(relay_write(relay, bytes, 40000), 40000);
    ck_assert_uint_eq(relay_write(relay, bytes, 40000), RELAY_BYTES - 40000);
    ck_assert_uint_eq(relay_write(relay, bytes, 1), 0);
    ck_assert(!relay_has_space(relay));
    relay_supply(relay, 1, bytes, RELAY_BYTES / 2 - 1, &len);
    ck_assert_uint_eq(wakes, 0);
    relay_supply(relay, 1, bytes, 1, &len);
    ck_assert_uint_eq(wakes, 1);
    ck_assert(relay_has_space(relay));
    ck_assert(!relay_has_space(relay));
    relay_leave(&relay);
    relay_close(&other);
    scene_end();
}
END_TEST

START_TEST(a_body_whose_client_leaves_fails_after_what_there_is)
{
    char bytes[10];
    struct relay *relay, *other;
    size_t len;

    scene_begin(&defaults);
    relay = other = make(true);
    relay_write(relay, "abc", 3);
    relay_leave(&relay);
    ck_assert_ptr_null(relay);
    ck_assert_int_eq(relay_supply(other, 1, bytes, 10, &len), FETCH_SUPPLIED);
    ck_assert_uint_eq(len, 3);
    ck_assert_int_eq(relay_supply(other, 1, bytes, 10, &len), FETCH_SUPPLY_FAILED);
    relay_close(&other);
    ck_assert_ptr_null(other);
    scene_end();
}
END_TEST

START_TEST(a_body_is_dropped_when_its_fetch_has_ended)
{
    static char bytes[RELAY_BYTES];
    struct relay *relay, *other;

    scene_begin(&defaults);
    relay = other = make(true);
    ck_assert_uint_eq(relay_write(relay, bytes, RELAY_BYTES), RELAY_BYTES);
    ck_assert_uint_eq(relay_write(relay, bytes, 1), 0);
    relay_close(&other);
    ck_assert_uint_eq(wakes, 1);
    ck_assert(relay_has_space(relay));
    ck_assert_uint_eq(relay_write(relay, bytes, 10), 10);
    relay_leave(&relay);
    relay_leave(&relay);
    scene_end();
}
END_TEST

START_TEST(interim_responses_come_in_order_and_are_bounded)
{
    static char large[RELAY_MAX_INTERIM + 1];
    struct relay *relay, *other;
    struct relay_interim *interim;

    scene_begin(&defaults);
    relay = other = make(false);
    for (unsigned i = 0; i < RELAY_MAX_INTERIMS + 3; i++)
        relay_add_interim(relay, 103 + i, span_str("A: b\r\n"));
    relay_add_interim(relay, 102, span_of(large, sizeof(large)));
    ck_assert_uint_eq(wakes, RELAY_MAX_INTERIMS);
    for (unsigned i = 0; i < RELAY_MAX_INTERIMS - 1; i++) {
        interim = relay_take_interim(relay);
        ck_assert_uint_eq(interim->status, 103 + i);
        ck_assert(span_equal(span_of(interim->lines, interim->len), span_str("A: b\r\n")));
        free(interim);
    }
    relay_leave(&relay);
    relay_add_interim(other, 103, span_of(NULL, 0));
    ck_assert_uint_eq(wakes, RELAY_MAX_INTERIMS);
    relay_close(&other);
    scene_end();
}
END_TEST

START_TEST(interim_responses_are_charged_until_they_are_taken)
{
    struct relay_interim *interim;
    struct relay *relay, *left;
    uint64_t empty, filled = 0;

    scene_begin(&(struct scene_options){.memory = 16384});
    relay = left = make(false);
    empty = memory_used(&scene.account, MEMORY_REQUESTS);
    relay_add_interim(relay, 103, span_of(zeroes, 500));
    relay_add_interim(relay, 103, span_of(zeroes, 1000));
    ck_assert_uint_ge(memory_used(&scene.account, MEMORY_REQUESTS), empty + 1500);
    interim = relay_take_interim(relay);
    ck_assert_uint_eq(interim->len, 500);
    free(interim);
    ck_assert_uint_lt(memory_used(&scene.account, MEMORY_REQUESTS), empty + 1500);
    ck_assert_uint_ge(memory_used(&scene.account, MEMORY_REQUESTS), empty + 1000);
    /* Those for which the account has nothing are dropped. */
    wakes = 0;
    while (memory_charge(&scene.account, MEMORY_REQUESTS, 100))
        filled += 100;
    relay_add_interim(relay, 103, span_of(zeroes, 1000));
    ck_assert_uint_eq(wakes, 0);
    memory_uncharge(&scene.account, MEMORY_REQUESTS, filled);
    /* One that is not taken is freed with the relay; scene_end() sees what stays charged. */
    relay_leave(&left);
    relay_add_interim(relay, 103, span_of(zeroes, 10));
    relay_close(&relay);
    scene_end();
}
END_TEST

START_TEST(a_relay_is_charged_and_refused)
{
    struct relay *relay;

    scene_begin(&(struct scene_options){.memory = 65536 * 8});
    ck_assert_ptr_null(relay_create(&(struct relay_config){
        .origin = &scene.proxy.config.origin, .account = &scene.account, .has_body = true}));
    relay = relay_create(
        &(struct relay_config){.origin = &scene.proxy.config.origin, .account = &scene.account});
    ck_assert_ptr_nonnull(relay);
    ck_assert_uint_gt(memory_used(&scene.account, MEMORY_REQUESTS), 0);
    relay_close(&(struct relay *){relay});
    relay_leave(&relay);
    scene_end();
}
END_TEST

/* ---- exchanges ------------------------------------------------------------------------------- */

static struct visit
post(int64_t length)
{
    return (struct visit){.url = URL,
                          .http = true,
                          .streams = true,
                          .method = "POST",
                          .fields = "Content-Type: text/plain\r\n",
                          .has_body = true,
                          .body_length = length};
}

START_TEST(a_body_is_passed_to_the_origin_as_it_comes)
{
    static char bytes[100000];
    struct visit v = post(100000);
    struct scene_fetch *fetch;
    size_t len, sent;

    scene_begin(&defaults);
    ck_assert(!visit(&v));
    fetch = scene_fetch(URL);
    ck_assert_str_eq(fetch->method, "POST");
    ck_assert_int_eq(fetch->body.length, 100000);
    /* The origin's side is ready first: it is resumed once. */
    ck_assert_int_eq(scene_supply(fetch, bytes, 10, &len), FETCH_SUPPLY_LATER);
    ck_assert_uint_eq(fetch->resumes, 0);
    sent = exchange_send(&v.exchange, bytes, 100000);
    ck_assert_uint_eq(sent, RELAY_BYTES);
    ck_assert_uint_eq(fetch->resumes, 1);
    ck_assert_int_eq(scene_supply(fetch, bytes, sizeof(bytes), &len), FETCH_SUPPLIED);
    ck_assert_uint_eq(len, RELAY_BYTES);
    scene_run();
    ck_assert_uint_eq(v.spaces, 1);
    sent += exchange_send(&v.exchange, bytes, 100000 - sent);
    ck_assert_uint_eq(sent, 100000);
    exchange_send_end(&v.exchange);
    ck_assert_int_eq(scene_supply(fetch, bytes, sizeof(bytes), &len), FETCH_SUPPLIED);
    scene_respond(URL, "", 20);
    expect_body(&v, OUTCOME_BYPASS, 20);
    ck_assert(!scene_has(URL));
    scene_end();
}
END_TEST

START_TEST(a_client_that_leaves_fails_the_body_of_its_request)
{
    struct visit v = post(-1);
    struct scene_fetch *fetch;
    char bytes[10];
    size_t len;

    scene_begin(&defaults);
    ck_assert(!visit(&v));
    fetch = scene_fetch(URL);
    ck_assert_int_eq(scene_supply(fetch, bytes, 10, &len), FETCH_SUPPLY_LATER);
    ck_assert(visit_cancel(&v));
    ck_assert_uint_eq(fetch->resumes, 1);
    ck_assert_int_eq(scene_supply(fetch, bytes, 10, &len), FETCH_SUPPLY_FAILED);
    scene_done(fetch, FETCH_BODY_FAILED, "its source failed");
    scene_run();
    ck_assert_uint_eq(v.heads + v.fails, 0);
    scene_end();
}
END_TEST

/*
 * The fetch ends while the client's side waits for memory: both the cache and the relay wake the
 * exchange, in one run or in two, and it ends after the last wake.
 */
START_TEST(a_response_before_the_end_of_the_body_ends_the_exchange_once)
{
    static char bytes[RELAY_BYTES + 1];
    struct visit v = post(-1);
    struct scene_fetch *fetch;

    scene_begin(&defaults);
    ck_assert(!visit(&v));
    fetch = scene_fetch(URL);
    exchange_send(&v.exchange, bytes, sizeof(bytes));
    scene_response(fetch, "", false);
    scene_head(fetch, 413, "", 0);
    if (_i)
        scene_run();
    scene_done(fetch, FETCH_OK, "");
    scene_run();
    expect_body(&v, OUTCOME_BYPASS, 0);
    ck_assert_uint_eq(v.status, 413);
    scene_end();
}
END_TEST

START_TEST(a_body_without_memory_is_refused)
{
    struct visit v = post(-1);

    scene_begin(&(struct scene_options){.memory = 65536 * 8});
    ck_assert(visit(&v));
    expect_failure(&v, FAILURE_OVERLOADED, "too many requests wait already");
    scene_end();
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("proxy: relays");
    TCase *cases = tcase_create("all");

    tcase_add_test(cases, a_body_comes_out_as_it_went_in);
    tcase_add_test(cases, a_full_relay_stops_the_client_until_half_of_it_is_free);
    tcase_add_test(cases, a_body_whose_client_leaves_fails_after_what_there_is);
    tcase_add_test(cases, a_body_is_dropped_when_its_fetch_has_ended);
    tcase_add_test(cases, interim_responses_come_in_order_and_are_bounded);
    tcase_add_test(cases, interim_responses_are_charged_until_they_are_taken);
    tcase_add_test(cases, a_relay_is_charged_and_refused);
    tcase_add_test(cases, a_body_is_passed_to_the_origin_as_it_comes);
    tcase_add_test(cases, a_client_that_leaves_fails_the_body_of_its_request);
    tcase_add_loop_test(cases, a_response_before_the_end_of_the_body_ends_the_exchange_once, 0, 2);
    tcase_add_test(cases, a_body_without_memory_is_refused);
    suite_add_tcase(suite, cases);
    return suite;
}
