/* Which peer a request is sent to. */
#define UNIT_STARTS_NO_THREAD

#include "origins/origin_peers.h"

#include <stdio.h>
#include <string.h>

#include "tests/unit/unit.h"

#define SECOND ((int64_t)1000000)
#define PEERS 4u
#define URLS 4000u

static struct origin_route route;
static struct origin_server servers[PEERS];
static char urls[PEERS][32];
static struct origin_peers peers;
static int64_t now_us;

static void
begin(void)
{
    memset(&route, 0, sizeof(route));
    memset(servers, 0, sizeof(servers));
    now_us = 1000 * SECOND;
    route.balance = ORIGIN_BALANCE_HASH;
    route.budget.percent = 100;
    route.count = PEERS;
    for (unsigned i = 0; i < PEERS; i++) {
        snprintf(urls[i], sizeof(urls[i]), "http://peer%u:3128", i);
        route.members[i].url = span_str(urls[i]);
        route.members[i].server = &servers[i];
    }
    peers = (struct origin_peers){.route = &route, .self = 0};
}

static struct span
url_of(unsigned number)
{
    static char url[48];

    snprintf(url, sizeof(url), "http://host.test/%u", number);
    return span_str(url);
}

/* The peer that a request is sent to first; PEERS: none. */
static unsigned
first(struct span url, struct origin_choice *choice)
{
    *choice = (struct origin_choice){0};
    origin_route_set_key(&route, choice, url);
    return origin_peers_next(&peers, choice, now_us) ? choice->member : PEERS;
}

START_TEST(all_peers_agree_about_the_owner)
{
    unsigned counts[PEERS] = {0};

    for (unsigned i = 0; i < URLS; i++) {
        struct origin_choice choice;
        unsigned owner = origin_peers_owner(&peers, url_of(i), now_us);

        counts[owner]++;
        for (unsigned self = 0; self < PEERS; self++) {
            peers.self = self;
            ck_assert_uint_eq(origin_peers_owner(&peers, url_of(i), now_us), owner);
            ck_assert_uint_eq(first(url_of(i), &choice), owner == self ? PEERS : owner);
        }
        peers.self = 0;
    }
    for (unsigned i = 0; i < PEERS; i++)
        ck_assert(counts[i] > URLS / PEERS * 9 / 10 && counts[i] < URLS / PEERS * 11 / 10);
}
END_TEST

START_TEST(the_next_one_follows_a_failure_and_the_origin_follows_two)
{
    unsigned to_origin[4] = {0};

    for (unsigned i = 0; i < URLS; i++) {
        struct origin_choice choice;
        unsigned asked = 0, tried = 0;

        if (first(url_of(i), &choice) < PEERS) {
            do {
                ck_assert(!(tried >> choice.member & 1));
                tried |= 1u << choice.member;
                asked++;
            } while (origin_peers_next(&peers, &choice, now_us));
        }
        ck_assert(!(tried & 1));
        to_origin[asked]++;
    }
    /* A quarter has this daemon for its owner, a third of the rest has it as the next one. */
    ck_assert(to_origin[0] > URLS / 5 && to_origin[0] < URLS * 3 / 10);
    ck_assert(to_origin[1] > URLS / 5 && to_origin[1] < URLS * 3 / 10);
    ck_assert_uint_eq(to_origin[0] + to_origin[1] + to_origin[2], URLS);
}
END_TEST

/* Those of a peer that fails go to the next ones, and come back. */
START_TEST(a_failure_moves_the_share_of_one)
{
    unsigned before[URLS];
    struct origin_choice choice;

    for (unsigned i = 0; i < URLS; i++)
        before[i] = first(url_of(i), &choice);
    origin_route_failed(&route, &(struct origin_choice){.member = 2}, now_us, "refused");
    for (unsigned i = 0; i < URLS; i++) {
        unsigned now = first(url_of(i), &choice);

        ck_assert_uint_ne(now, 2);
        if (before[i] != 2)
            ck_assert_uint_eq(now, before[i]);
    }
    ck_assert_uint_ne(origin_peers_owner(&peers, url_of(0), now_us), 2);
    now_us += ORIGIN_ROUTE_LEFT_US + 1;
    /* One request tries it, whoever owns its URL. */
    ck_assert_uint_eq(first(url_of(0), &choice), 2);
    ck_assert(choice.trial);
    ck_assert_uint_ne(first(url_of(0), &choice), 2);
    origin_route_succeeded(&route, &(struct origin_choice){.member = 2, .trial = true}, now_us);
    now_us += ORIGIN_ROUTE_WARM_US;
    for (unsigned i = 0; i < URLS; i++)
        ck_assert_uint_eq(first(url_of(i), &choice), before[i]);
}
END_TEST

START_TEST(without_others_the_origin_is_asked)
{
    struct origin_choice choice;

    for (unsigned i = 1; i < PEERS; i++)
        origin_route_failed(&route, &(struct origin_choice){.member = i}, now_us, "refused");
    for (unsigned i = 0; i < URLS; i++)
        ck_assert_uint_eq(first(url_of(i), &choice), PEERS);
    route.count = 1;
    ck_assert_uint_eq(first(url_of(0), &choice), PEERS);
}
END_TEST

START_TEST(load_is_bounded)
{
    struct origin_choice choice;
    unsigned i = 0, next;

    while (first(url_of(i), &choice) != 1)
        i++;
    atomic_store(&servers[1].in_flight, ORIGIN_PEERS_EXCESS - 1);
    ck_assert_uint_eq(first(url_of(i), &choice), 1);
    /* A mean of 50, and 150 percent of that beside the excess. */
    atomic_store(&servers[1].in_flight, 150);
    next = first(url_of(i), &choice);
    ck_assert_uint_ne(next, 1);
    if (next < PEERS)
        ck_assert_uint_eq(choice.tried, 1u << next);
    /* It is used up by no retry. */
    route.budget.percent = 0;
    for (unsigned n = 0; n < 200; n++)
        ck_assert_uint_eq(first(url_of(i), &choice), next);
    for (unsigned n = 1; n < PEERS; n++)
        atomic_store(&servers[n].in_flight, 150);
    ck_assert_uint_eq(first(url_of(i), &choice), 1);
}
END_TEST

START_TEST(peers_are_found_by_their_urls)
{
    ck_assert_uint_eq(origin_peers_find(&peers, span_str("http://peer2:3128")), 2);
    ck_assert_uint_eq(origin_peers_find(&peers, span_str("http://peer2:312")), PEERS);
    ck_assert_uint_eq(origin_peers_find(&peers, span_str("")), PEERS);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("origin_peers");
    TCase *tests = tcase_create("choice");

    tcase_add_checked_fixture(tests, begin, NULL);
    tcase_add_test(tests, all_peers_agree_about_the_owner);
    tcase_add_test(tests, the_next_one_follows_a_failure_and_the_origin_follows_two);
    tcase_add_test(tests, a_failure_moves_the_share_of_one);
    tcase_add_test(tests, without_others_the_origin_is_asked);
    tcase_add_test(tests, load_is_bounded);
    tcase_add_test(tests, peers_are_found_by_their_urls);
    suite_add_tcase(suite, tests);
    return suite;
}
