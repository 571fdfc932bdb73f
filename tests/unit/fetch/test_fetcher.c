/* The fetcher against origins that play a script: plain answers. */
#include <stdio.h>

#include "fetch/connections.h"
#include "tests/unit/fetch/fixture.h"

#define MANY 150u /* more than a pool of connections has */

static const struct line plain[] = {
    {.path = "/", .bytes = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\nX-A: b\r\n\r\nhello\n"},
    {.path = "/chunked",
     .bytes = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-T\r\n\r\n"
              "3\r\nabc\r\n4;x=y\r\ndefg\r\n0\r\nX-T: z\r\n\r\n"},
    {.path = "/endless", .bytes = "HTTP/1.0 200 OK\r\n\r\nto the end", .then = CLOSE},
    {.path = "/closing",
     .bytes = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello\n",
     .then = CLOSE},
    {.path = "/slow",
     .bytes = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello\n",
     .pause_ms = 50},
    {.path = "/zero", .bytes = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\na\0b", .len = 41},
    {.path = NULL},
};

START_TEST(a_plain_answer)
{
    struct origin *origin = origin_start(plain);
    struct fetcher *fetcher = start_fetcher(&config);
    struct fetch_stats stats;
    struct outcome o;
    char url[64];

    snprintf(url, sizeof(url), "http://127.0.0.1:%u", origin->port);
    fetch_fine(fetcher, &o, "%s", url);
    ck_assert_uint_eq(o.status, 200);
    ck_assert_int_eq(o.content_length, 6);
    ck_assert_str_eq(o.body, "hello\n");
    ck_assert_str_eq(o.headers, "Content-Length: 6\r\nX-A: b\r\n");
    outcome_free(&o);
    fetcher_get_stats(fetcher, &stats);
    ck_assert_uint_eq(stats.started, 1);
    ck_assert_uint_eq(stats.bytes, 6);
    fetcher_destroy(fetcher);
    origin_stop(origin);
}
END_TEST

static unsigned begun_turns, ended_turns; /* of the fetcher's thread */

static void
turn_begins(void)
{
    ck_assert_uint_eq(begun_turns, ended_turns);
    begun_turns++;
}

static void
turn_ends(void)
{
    ended_turns++;
    ck_assert_uint_eq(begun_turns, ended_turns);
}

START_TEST(turns_begin_and_end)
{
    struct origin *origin = origin_start(plain);
    struct fetcher *fetcher;

    begun_turns = ended_turns = 0;
    config.turn_begins = turn_begins;
    config.turn_ends = turn_ends;
    fetcher = start_fetcher(&config);
    expect_page(fetcher, "hello\n", "http://127.0.0.1:%u/", origin->port);
    fetcher_destroy(fetcher);
    ck_assert_uint_ge(begun_turns, 2);
    ck_assert_uint_eq(begun_turns, ended_turns);
    origin_stop(origin);
}
END_TEST

START_TEST(bodies_of_every_framing)
{
    struct origin *origin = origin_start(plain);
    struct fetcher *fetcher = start_fetcher(&config);
    struct outcome o;

    fetch_fine(fetcher, &o, "http://127.0.0.1:%u/chunked", origin->port);
    ck_assert_str_eq(o.body, "abcdefg");
    ck_assert_int_eq(o.content_length, -1);
    ck_assert_str_eq(o.headers, "");
    outcome_free(&o);
    expect_page(fetcher, "to the end", "http://127.0.0.1:%u/endless", origin->port);
    fetch_fine(fetcher, &o, "http://127.0.0.1:%u/zero", origin->port);
    ck_assert_uint_eq(o.body_len, 3);
    ck_assert_mem_eq(o.body, "a\0b", 3);
    outcome_free(&o);
    fetch_fine(fetcher, &o, "http://127.0.0.1:%u/nowhere", origin->port);
    ck_assert_uint_eq(o.status, 404);
    ck_assert_str_eq(o.body, "none\n");
    outcome_free(&o);
    fetcher_destroy(fetcher);
    origin_stop(origin);
}
END_TEST

START_TEST(a_name_is_resolved)
{
    struct origin *origin = origin_start(plain);
    struct fetcher *fetcher = start_fetcher(&config);

    expect_page(fetcher, "hello\n", "http://localhost:%u/", origin->port);
    fetcher_destroy(fetcher);
    origin_stop(origin);
}
END_TEST

START_TEST(a_connection_serves_again)
{
    struct origin *origin = origin_start(plain);
    struct fetcher *fetcher = start_fetcher(&config);

    for (unsigned i = 0; i < 5; i++)
        expect_end(fetcher, FETCH_OK, "http://127.0.0.1:%u/", origin->port);
    ck_assert_uint_eq(origin->connections, 1);
    fetcher_destroy(fetcher);
    origin_stop(origin);
}
END_TEST

/*
 * Fetches that begin together, several times: a connection is opened only for one that finds no
 * idle connection, in whatever pool.
 */
START_TEST(connections_of_all_pools_serve_again)
{
    static struct outcome outcomes[MANY];
    struct origin *origin = origin_start(plain);
    struct fetcher *fetcher;
    char url[64];

    ck_assert_uint_gt(MANY, 2 * POOL_CONNECTIONS);
    config.max_active = config.max_waiting = config.max_active_per_origin = MANY;
    config.max_idle_per_origin = MANY;
    config.max_active_per_client = 0;
    fetcher = start_fetcher(&config);
    snprintf(url, sizeof(url), "http://127.0.0.1:%u/slow", origin->port);
    for (unsigned round = 0; round < 4; round++) {
        for (unsigned i = 0; i < MANY; i++) {
            outcome_init(&outcomes[i]);
            ck_assert(submit_request(fetcher, &GET(OUTCOME_CLIENT, url, ""), &outcome_sink,
                                     &outcomes[i], NULL));
        }
        for (unsigned i = 0; i < MANY; i++) {
            outcome_wait(&outcomes[i]);
            ck_assert_msg(outcomes[i].error == FETCH_OK, "%s", outcomes[i].sentence);
            outcome_free(&outcomes[i]);
        }
        ck_assert_uint_le(origin->connections, MANY);
    }
    fetcher_destroy(fetcher);
    origin_stop(origin);
}
END_TEST

/* A request that authenticates its connection gets one of its own: no other request is on it. */
START_TEST(an_authenticated_connection_serves_one_request)
{
    struct origin *origin = origin_start(plain);
    struct fetcher *fetcher = start_fetcher(&config);
    char url[64];

    snprintf(url, sizeof(url), "http://127.0.0.1:%u/", origin->port);
    expect_page(fetcher, "hello\n", "%s", url);
    for (unsigned i = 0; i < 3; i++) {
        struct outcome o;

        fetch_with(fetcher, url, "Authorization: NTLM TlRMTVNTUAAB\r\n", &o);
        ck_assert_int_eq(o.error, FETCH_OK);
        outcome_free(&o);
        ck_assert_uint_eq(origin->connections, 2 + i);
        expect_page(fetcher, "hello\n", "%s", url);
    }
    ck_assert_uint_eq(origin->connections, 4);
    ck_assert_uint_eq(origin_wait_open(origin, 1), 1);
    fetcher_destroy(fetcher);
    origin_stop(origin);
}
END_TEST

/* Of the connections of fetches that begin together the bound is kept, and the others are closed.
 */
START_TEST(idle_connections_are_bounded)
{
    static const unsigned bounds[] = {0, 1, 5};
    struct outcome outcomes[20];
    struct origin *origin = origin_start(plain);
    struct fetcher *fetcher;
    unsigned open;
    char url[64];

    config.max_active_per_origin = 20;
    config.max_idle_per_origin = bounds[_i];
    fetcher = start_fetcher(&config);
    snprintf(url, sizeof(url), "http://127.0.0.1:%u/slow", origin->port);
    for (unsigned round = 0; round < 2; round++) {
        for (unsigned i = 0; i < 20; i++) {
            outcome_init(&outcomes[i]);
            ck_assert(submit_request(fetcher, &GET(OUTCOME_CLIENT, url, ""), &outcome_sink,
                                     &outcomes[i], NULL));
        }
        for (unsigned i = 0; i < 20; i++) {
            outcome_wait(&outcomes[i]);
            ck_assert_int_eq(outcomes[i].error, FETCH_OK);
            outcome_free(&outcomes[i]);
        }
        open = origin_wait_open(origin, bounds[_i]);
        ck_assert_uint_le(open, bounds[_i]);
        ck_assert_int_eq(open > 0, bounds[_i] > 0);
    }
    ck_assert_uint_le(origin->connections, 40 - bounds[_i]);
    fetcher_destroy(fetcher);
    origin_stop(origin);
}
END_TEST

/* The origin closes a connection that it had not announced to close. */
START_TEST(a_dead_connection_is_replaced)
{
    struct origin *origin = origin_start(plain);
    struct fetcher *fetcher = start_fetcher(&config);

    for (unsigned i = 0; i < 20; i++)
        expect_page(fetcher, "hello\n", "http://127.0.0.1:%u/closing", origin->port);
    fetcher_destroy(fetcher);
    origin_stop(origin);
}
END_TEST

Suite *
unit_suite(void)
{
    TCase *tc;
    Suite *suite = fixture_suite("fetch/fetcher", &tc);

    tcase_add_test(tc, a_plain_answer);
    tcase_add_test(tc, turns_begin_and_end);
    tcase_add_test(tc, bodies_of_every_framing);
    tcase_add_test(tc, a_name_is_resolved);
    tcase_add_test(tc, a_connection_serves_again);
    tcase_add_test(tc, connections_of_all_pools_serve_again);
    tcase_add_test(tc, an_authenticated_connection_serves_one_request);
    tcase_add_loop_test(tc, idle_connections_are_bounded, 0, 3);
    tcase_add_test(tc, a_dead_connection_is_replaced);
    return suite;
}
