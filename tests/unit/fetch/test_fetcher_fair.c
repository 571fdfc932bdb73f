/* Clients that ask for more than there is, beside one that asks for a page. */
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/unit/fetch/fixture.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))
#define GREEDY 16 /* clients, each with */
#define EACH 24   /* fetches that hang */

static const struct line script[] = {
    {"/", "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ngood", 0, KEEP, 0},
    {"/silent", "", 0, HANG, 0},
    {"/head", "HTTP/1.1 200 OK\r\nContent-Le", 0, HANG, 0},
    {"/body", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc", 0, HANG, 0},
    {NULL, NULL, 0, KEEP, 0},
};

static struct outcome outcomes[GREEDY * EACH];

static void
submit_for(struct fetcher *fetcher, unsigned number, struct outcome *o, const char *url)
{
    outcome_init(o);
    ck_assert(submit_request(fetcher, &GET(unit_client(number), url, ""), &outcome_sink, o, NULL));
}

/* `count` fetches for a client; "%u" in the format of the URL is their number. */
static void
submit_many(struct fetcher *fetcher, unsigned client, struct outcome *o, unsigned count,
            const char *prefix, const char *suffix)
{
    char url[128];

    for (unsigned i = 0; i < count; i++) {
        snprintf(url, sizeof(url), "%s%u%s", prefix, i, suffix);
        submit_for(fetcher, client, &o[i], url);
    }
}

static unsigned
count_over(struct outcome *o, unsigned count)
{
    unsigned over = 0;

    for (unsigned i = 0; i < count; i++)
        over += outcome_is_over(&o[i]);
    return over;
}

static void
wait_for_stats(struct fetcher *fetcher, uint64_t active, uint64_t waiting, uint64_t queued)
{
    struct fetch_stats stats;

    do {
        usleep(1000);
        fetcher_get_stats(fetcher, &stats);
    } while (stats.active != active || stats.waiting != waiting || stats.queued != queued);
}

/* Until nothing more begins: all hang where they are to hang. */
static void
wait_until_settled(struct fetcher *fetcher)
{
    struct fetch_stats now, before;

    fetcher_get_stats(fetcher, &now);
    do {
        before = now;
        usleep(50000);
        fetcher_get_stats(fetcher, &now);
    } while (now.started == 0 || now.started != before.started || now.waiting != before.waiting);
}

static void
free_outcomes(struct outcome *o, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        outcome_free(&o[i]);
}

/*
 * GREEDY clients have begun to fetch what hangs: a page of another client's comes all the same, and
 * before any of theirs has ended.
 */
static void
check_another_is_served(struct fetcher *fetcher, const char *url)
{
    struct outcome good;

    wait_until_settled(fetcher);
    submit_for(fetcher, GREEDY, &good, url);
    outcome_wait(&good);
    ck_assert_msg(good.error == FETCH_OK, "%s", good.sentence);
    ck_assert_uint_eq(count_over(outcomes, GREEDY * EACH), 0);
    outcome_free(&good);
    fetcher_destroy(fetcher);
    ck_assert_uint_eq(count_over(outcomes, GREEDY * EACH), GREEDY * EACH);
    free_outcomes(outcomes, GREEDY * EACH);
}

static struct fetcher *
start_small(void)
{
    config.max_active = 64;
    config.max_waiting = 48;
    config.max_active_per_client = 6;
    config.max_active_per_origin = 64;
    config.resolver_threads = 64;
    config.resolve_timeout_us = config.connect_timeout_us = 60000000;
    config.first_byte_timeout_us = config.stall_timeout_us = config.total_timeout_us = 60000000;
    return start_fetcher(&config);
}

START_TEST(greedy_clients_with_names_that_hang)
{
    static const struct name_row table[] = {{"good.test", "127.0.0.1"}, {NULL, NULL}};
    struct origin *origin = origin_start(script);
    struct fetcher *fetcher;
    char prefix[32], url[64];

    names_use(&config, table);
    fetcher = start_small();
    for (unsigned c = 0; c < GREEDY; c++) {
        snprintf(prefix, sizeof(prefix), "http://hang%u-", c);
        submit_many(fetcher, c, &outcomes[c * EACH], EACH, prefix, ".test/");
    }
    snprintf(url, sizeof(url), "http://good.test:%u/", origin->port);
    check_another_is_served(fetcher, url);
    origin_stop(origin);
    names_release();
}
END_TEST

/* In connect, before the head, in it, and in the body. */
START_TEST(greedy_clients_with_origins_that_hang)
{
    static const char *const paths[] = {"/", "/silent", "/head", "/body"};
    struct origin *origin = origin_start(script), *good = origin_start(script);
    uint16_t deaf_port;
    int deaf = scripted_listen(&deaf_port, 0), fillers[4];
    struct fetcher *fetcher;
    char url[64];

    /* A listener whose queue is full drops the packets of others. */
    for (unsigned i = 0; i < LENGTH(fillers); i++) {
        struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(deaf_port)};

        to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        fillers[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
        (void)!connect(fillers[i], (struct sockaddr *)&to, sizeof(to));
    }
    fetcher = start_small();
    for (unsigned i = 0; i < GREEDY * EACH; i++) {
        snprintf(url, sizeof(url), "http://127.0.0.1:%u%s", _i ? origin->port : deaf_port,
                 paths[_i]);
        submit_for(fetcher, i / EACH, &outcomes[i], url);
    }
    snprintf(url, sizeof(url), "http://127.0.0.1:%u/", good->port);
    check_another_is_served(fetcher, url);
    for (unsigned i = 0; i < LENGTH(fillers); i++)
        close(fillers[i]);
    close(deaf);
    origin_stop(origin);
    origin_stop(good);
}
END_TEST

START_TEST(the_bound_of_a_client_holds)
{
    struct origin *origin = origin_start(script);
    struct fetcher *fetcher = start_small();
    char url[64];

    snprintf(url, sizeof(url), "http://127.0.0.1:%u/silent", origin->port);
    for (unsigned i = 0; i < EACH; i++)
        submit_for(fetcher, 0, &outcomes[i], url);
    wait_for_stats(fetcher, 6, 6, EACH - 6);
    fetcher_destroy(fetcher);
    free_outcomes(outcomes, EACH);
    origin_stop(origin);
}
END_TEST

START_TEST(waiting_keeps_slots_for_answers)
{
    struct origin *origin = origin_start(script);
    struct fetcher *fetcher;
    char silent[64], body[64];

    config.max_active = 5;
    config.max_waiting = 3;
    config.max_active_per_client = 0;
    fetcher = start_fetcher(&config);
    snprintf(silent, sizeof(silent), "http://127.0.0.1:%u/silent", origin->port);
    snprintf(body, sizeof(body), "http://127.0.0.1:%u/body", origin->port);
    /* Answered ones make way, until there are as many as slots for them. */
    submit_for(fetcher, 0, &outcomes[0], body);
    wait_for_stats(fetcher, 1, 0, 0);
    submit_for(fetcher, 0, &outcomes[1], body);
    wait_for_stats(fetcher, 2, 0, 0);
    submit_for(fetcher, 0, &outcomes[2], body);
    submit_for(fetcher, 0, &outcomes[3], silent);
    wait_for_stats(fetcher, 4, 2, 0);
    submit_for(fetcher, 0, &outcomes[4], silent);
    wait_for_stats(fetcher, 5, 3, 0);
    submit_for(fetcher, 0, &outcomes[5], silent);
    wait_for_stats(fetcher, 5, 3, 1);
    fetcher_destroy(fetcher);
    free_outcomes(outcomes, 6);
    origin_stop(origin);
}
END_TEST

static void
configure(struct fetcher *fetcher, const struct fetch_config *with)
{
    char why[256];
    struct settings *settings = fetch_settings_create(with, why, sizeof(why));

    ck_assert_msg(settings != NULL, "%s", why);
    fetcher_configure(fetcher, settings);
    fetch_settings_release(&settings);
}

/* Bounds of the queue also for fetches that are under way, time limits for new ones. */
START_TEST(a_configuration_takes_the_place_of_another)
{
    struct origin *origin = origin_start(script);
    struct fetcher *fetcher;
    char url[64], why[256];

    config.max_active = 2;
    config.max_waiting = 2;
    config.max_active_per_client = 0;
    config.first_byte_timeout_us = config.total_timeout_us = 600000000;
    fetcher = start_fetcher(&config);
    snprintf(url, sizeof(url), "http://127.0.0.1:%u/silent", origin->port);
    for (unsigned i = 0; i < 6; i++)
        submit_for(fetcher, 0, &outcomes[i], url);
    wait_for_stats(fetcher, 2, 2, 4);
    config.max_active = config.max_waiting = 5;
    configure(fetcher, &config);
    wait_for_stats(fetcher, 5, 5, 1);
    config.max_active = 0;
    ck_assert_ptr_null(fetch_settings_create(&config, why, sizeof(why)));
    config.max_active = config.max_waiting = 6;
    config.first_byte_timeout_us = 50000;
    configure(fetcher, &config);
    wait_for_stats(fetcher, 6, 6, 0);
    config.max_active = config.max_waiting = 7;
    configure(fetcher, &config);
    submit_for(fetcher, 0, &outcomes[6], url);
    outcome_wait(&outcomes[6]);
    ck_assert_int_eq(outcomes[6].error, FETCH_TIMED_OUT);
    ck_assert_uint_eq(count_over(outcomes, 6), 0);
    outcome_free(&outcomes[6]);
    config.max_active = config.max_waiting = 1;
    configure(fetcher, &config);
    submit_for(fetcher, 0, &outcomes[6], url);
    wait_for_stats(fetcher, 6, 6, 1);
    fetcher_destroy(fetcher);
    free_outcomes(outcomes, 7);
    origin_stop(origin);
}
END_TEST

/* An attempt keeps the addresses with which it has begun; they are the fetcher's. */
START_TEST(addresses_take_the_place_of_others)
{
    struct origin *origin = origin_start(script);
    struct fetcher *fetcher = start_fetcher(&config);
    struct fetch_config other = config;
    char url[64], why[256];

    for (unsigned i = 0; i < 20; i++) {
        other.addresses = address_policy_create();
        other.owns_addresses = true;
        if (i % 2)
            ck_assert(address_policy_allow((struct address_policy *)(uintptr_t)other.addresses,
                                           "127.0.0.1", why, sizeof(why)));
        configure(fetcher, &other);
        snprintf(url, sizeof(url), "http://127.0.0.1:%u%s", origin->port,
                 i % 4 == 3 ? "/body" : "/");
        submit_for(fetcher, 0, &outcomes[i], url);
        if (i % 4 != 3) {
            outcome_wait(&outcomes[i]);
            ck_assert_int_eq(outcomes[i].error, i % 2 ? FETCH_OK : FETCH_DENIED);
        }
    }
    fetcher_destroy(fetcher);
    free_outcomes(outcomes, 20);
    origin_stop(origin);
}
END_TEST

START_TEST(a_full_queue_displaces_the_greedy)
{
    static struct outcome modest[2];
    struct origin *origin = origin_start(script);
    struct fetcher *fetcher;
    struct fetch_stats stats;
    char url[64];

    config.max_active_per_origin = 2;
    config.max_active_per_client = 0;
    config.max_queued = 3;
    fetcher = start_fetcher(&config);
    snprintf(url, sizeof(url), "http://127.0.0.1:%u/silent", origin->port);
    for (unsigned i = 0; i < 6; i++)
        submit_for(fetcher, 0, &outcomes[i], url);
    outcome_wait(&outcomes[5]);
    ck_assert_int_eq(outcomes[5].error, FETCH_DISPLACED);
    ck_assert_uint_eq(count_over(outcomes, 5), 0);
    /* Another client's fetch takes the place of the last. */
    submit_for(fetcher, 1, &modest[0], url);
    outcome_wait(&outcomes[4]);
    ck_assert_int_eq(outcomes[4].error, FETCH_DISPLACED);
    ck_assert_ptr_nonnull(strstr(outcomes[4].sentence, "no client has more of them"));
    /* But not one more than the other client has then. */
    submit_for(fetcher, 1, &modest[1], url);
    outcome_wait(&modest[1]);
    ck_assert_int_eq(modest[1].error, FETCH_DISPLACED);
    ck_assert(!outcome_is_over(&modest[0]));
    ck_assert_uint_eq(count_over(outcomes, 4), 0);
    fetcher_get_stats(fetcher, &stats);
    ck_assert_uint_eq(stats.displaced, 3);
    fetcher_destroy(fetcher);
    free_outcomes(outcomes, 6);
    free_outcomes(modest, 2);
    origin_stop(origin);
}
END_TEST

Suite *
unit_suite(void)
{
    TCase *tc;
    Suite *suite = fixture_suite("fetch/fair", &tc);

    tcase_add_test(tc, greedy_clients_with_names_that_hang);
    tcase_add_loop_test(tc, greedy_clients_with_origins_that_hang, 0, 4);
    tcase_add_test(tc, the_bound_of_a_client_holds);
    tcase_add_test(tc, waiting_keeps_slots_for_answers);
    tcase_add_test(tc, a_full_queue_displaces_the_greedy);
    tcase_add_test(tc, a_configuration_takes_the_place_of_another);
    tcase_add_test(tc, addresses_take_the_place_of_others);
    return suite;
}
