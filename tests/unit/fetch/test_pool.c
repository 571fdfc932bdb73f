/* Pools of connections: which one a transfer gets, from what is known of idle connections. */
#include "fetch/pool.h"

#include <stdio.h>
#include <unistd.h>

#include "tests/unit/fetch/scripted.h"
#include "tests/unit/unit.h"

#define MANY 1000u
#define HOST "http://a.test:80"
#define OTHER "http://b.test:80"

static struct pools pools;

static void
set_up(void)
{
    pools_init(&pools, MANY, MANY);
}

static void
tear_down(void)
{
    pools_close(&pools);
    ck_assert(RB_EMPTY(&pools.origins));
    pools_free(&pools);
}

static void
choose(struct pool_lease *lease, const char *origin, enum pool_wish wish)
{
    ck_assert(pool_choose(&pools, lease, origin, wish));
    ck_assert_ptr_nonnull(pool_share(lease->pool));
}

/* A transfer that opens a connection and is done with it. */
static void
leave_idle(struct pool_member *member, const char *origin)
{
    struct pool_lease lease;

    choose(&lease, origin, POOL_NEW);
    pool_add_member(member, &lease);
    pool_take_member(member, &lease, false);
    pool_end_lease(&pools, &lease);
    ck_assert_int_eq(member->state, MEMBER_IDLE);
}

/* How many connections of an origin are kept is known before their transfers have ended. */
START_TEST(idle_connections_are_bounded)
{
    struct pool_lease leases[4], other;
    struct pool_member members[4], another;

    pools_init(&pools, MANY, 2);
    for (unsigned i = 0; i < 4; i++) {
        choose(&leases[i], HOST, POOL_IDLE);
        pool_add_member(&members[i], &leases[i]);
        pool_take_member(&members[i], &leases[i], false);
    }
    ck_assert(pool_keep_member(&pools, &leases[0]));
    ck_assert(pool_keep_member(&pools, &leases[0]));
    ck_assert(pool_keep_member(&pools, &leases[1]));
    ck_assert(!pool_keep_member(&pools, &leases[2]));
    /* Other origins have their own. */
    choose(&other, OTHER, POOL_IDLE);
    pool_add_member(&another, &other);
    pool_take_member(&another, &other, false);
    ck_assert(pool_keep_member(&pools, &other));
    pool_end_lease(&pools, &other);
    /* One that is closed all the same, and one that is used again, leave a place. */
    pool_remove_member(&pools, &members[0]);
    pool_end_lease(&pools, &leases[0]);
    ck_assert(pool_keep_member(&pools, &leases[2]));
    pool_end_lease(&pools, &leases[1]);
    ck_assert_int_eq(members[1].state, MEMBER_IDLE);
    ck_assert(!pool_keep_member(&pools, &leases[3]));
    choose(&leases[0], HOST, POOL_IDLE);
    ck_assert_ptr_eq(leases[0].claimed, &members[1]);
    ck_assert(!pool_keep_member(&pools, &leases[3]));
    pool_take_member(&members[1], &leases[0], false);
    ck_assert(pool_keep_member(&pools, &leases[3]));
    ck_assert(!pool_keep_member(&pools, &leases[0]));
    /* One of HTTP/2 serves many, and is kept. */
    pool_take_member(&members[1], &leases[0], true);
    ck_assert(pool_keep_member(&pools, &leases[0]));
    /* Without a connection there is nothing to close. */
    leases[1] = (struct pool_lease){0};
    ck_assert(pool_keep_member(&pools, &leases[1]));
    for (unsigned i = 0; i < 4; i++)
        pool_end_lease(&pools, &leases[i]);
    for (unsigned i = 1; i < 4; i++)
        pool_remove_member(&pools, &members[i]);
    pool_remove_member(&pools, &another);
}
END_TEST

/* As many transfers as there may be: no pool gets more than its share. */
START_TEST(transfers_are_divided)
{
    static struct pool_lease leases[MANY];
    unsigned most = 0;

    for (unsigned i = 0; i < MANY; i++)
        choose(&leases[i], HOST, POOL_IDLE);
    ck_assert_uint_eq(pools.count, (MANY + POOL_CONNECTIONS - 1) / POOL_CONNECTIONS);
    for (unsigned at = 0; at < pools.count; at++) {
        unsigned count = 0;

        for (unsigned i = 0; i < MANY; i++)
            count += leases[i].pool == pools.list[at];
        most = count > most ? count : most;
    }
    ck_assert_uint_le(most, pools.size);
    ck_assert_uint_le(pools.size, POOL_CONNECTIONS);
    for (unsigned i = 0; i < MANY; i++)
        pool_end_lease(&pools, &leases[i]);
}
END_TEST

START_TEST(sizes_add_up)
{
    for (unsigned n = 1; n < 20000; n += n < 200 ? 1 : 97) {
        pools_init(&pools, n, n);
        ck_assert_uint_le(pools.size, POOL_CONNECTIONS);
        ck_assert_uint_ge(pools.size * pools.most, n);
        ck_assert_uint_le(pools.size * pools.most - n, n / 32);
    }
}
END_TEST

/* All pools are in use, and one has an idle connection: a transfer to its origin gets that pool. */
START_TEST(an_idle_connection_is_found)
{
    static struct pool_lease leases[MANY];
    struct pool_member member;
    struct pool_lease again, third;
    struct pool *pool;

    for (unsigned i = 0; i + 1 < MANY; i++)
        choose(&leases[i], OTHER, POOL_IDLE);
    pool_end_lease(&pools, &leases[500]);
    leave_idle(&member, HOST);
    pool = member.pool;
    choose(&again, HOST, POOL_IDLE);
    ck_assert_ptr_eq(again.pool, pool);
    ck_assert_ptr_eq(again.claimed, &member);
    /* It is expected to be used: another transfer does not count on it. */
    choose(&third, HOST, POOL_IDLE);
    ck_assert_ptr_null(third.claimed);
    pool_take_member(&member, &again, false);
    ck_assert_int_eq(member.state, MEMBER_USED);
    pool_end_lease(&pools, &again);
    ck_assert_int_eq(member.state, MEMBER_IDLE);
    pool_end_lease(&pools, &third);
    pool_remove_member(&pools, &member);
    for (unsigned i = 0; i + 1 < MANY; i++)
        pool_end_lease(&pools, &leases[i]);
}
END_TEST

START_TEST(a_new_connection_claims_none)
{
    struct pool_member member;
    struct pool_lease lease;

    leave_idle(&member, HOST);
    choose(&lease, HOST, POOL_NEW);
    ck_assert_ptr_null(lease.claimed);
    pool_end_lease(&pools, &lease);
    choose(&lease, OTHER, POOL_IDLE);
    ck_assert_ptr_null(lease.claimed);
    pool_end_lease(&pools, &lease);
    pool_remove_member(&pools, &member);
}
END_TEST

/* libcurl chooses among the idle connections of a pool by itself. */
START_TEST(claims_are_exchanged)
{
    struct pool_member a, b;
    struct pool_lease first, second, opener;

    choose(&opener, HOST, POOL_NEW);
    pool_add_member(&a, &opener);
    pool_take_member(&a, &opener, false);
    leave_idle(&b, HOST);
    pool_end_lease(&pools, &opener);
    choose(&first, HOST, POOL_IDLE);
    choose(&second, HOST, POOL_IDLE);
    ck_assert_ptr_eq(first.claimed, &a);
    ck_assert_ptr_eq(second.claimed, &b);
    pool_take_member(&b, &first, false);
    ck_assert_ptr_null(first.claimed);
    ck_assert_ptr_eq(second.claimed, &a);
    pool_take_member(&a, &second, false);
    ck_assert_ptr_null(second.claimed);
    pool_end_lease(&pools, &first);
    pool_end_lease(&pools, &second);

    /* The transfer got another than it had claimed, which is idle again. */
    choose(&first, HOST, POOL_IDLE);
    ck_assert_ptr_eq(first.claimed, &a);
    pool_take_member(&b, &first, false);
    ck_assert_int_eq(a.state, MEMBER_IDLE);
    pool_end_lease(&pools, &first);
    pool_remove_member(&pools, &a);
    pool_remove_member(&pools, &b);
}
END_TEST

START_TEST(closing_ends_claim_and_use)
{
    struct pool_member a;
    struct pool_lease lease;

    leave_idle(&a, HOST);
    choose(&lease, HOST, POOL_IDLE);
    pool_remove_member(&pools, &a);
    ck_assert_ptr_null(lease.claimed);
    /* It opens one instead, which is closed before the end. */
    pool_add_member(&a, &lease);
    pool_take_member(&a, &lease, false);
    pool_remove_member(&pools, &a);
    ck_assert_ptr_null(lease.used);
    pool_end_lease(&pools, &lease);
    pool_end_lease(&pools, &lease);
    choose(&lease, HOST, POOL_IDLE);
    ck_assert_ptr_null(lease.claimed);
    pool_end_lease(&pools, &lease);
}
END_TEST

/* Over HTTP/2 a connection that others use serves as well; it is idle when the last one ends. */
START_TEST(shared_connections)
{
    static struct pool_lease users[POOL_CONNECTIONS], beyond, single;
    struct pool_member member;

    choose(&users[0], HOST, POOL_SHARED);
    pool_add_member(&member, &users[0]);
    pool_take_member(&member, &users[0], true);
    for (unsigned i = 1; i < pools.size; i++) {
        choose(&users[i], HOST, POOL_SHARED);
        ck_assert_ptr_eq(users[i].pool, member.pool);
        ck_assert_ptr_null(users[i].claimed);
        pool_take_member(&member, &users[i], true);
    }
    choose(&beyond, HOST, POOL_SHARED);
    ck_assert_ptr_ne(beyond.pool, member.pool);
    for (unsigned i = 0; i < pools.size; i++) {
        ck_assert_int_eq(member.state, MEMBER_USED);
        pool_end_lease(&pools, &users[i]);
    }
    ck_assert_int_eq(member.state, MEMBER_IDLE);
    choose(&single, HOST, POOL_SHARED);
    ck_assert_ptr_eq(single.pool, member.pool);
    pool_remove_member(&pools, &member);
    pool_end_lease(&pools, &single);
    pool_end_lease(&pools, &beyond);
}
END_TEST

/* A transfer that may not use HTTP/2 leaves an idle connection of it to one that may. */
START_TEST(idle_connections_of_either_version)
{
    struct pool_lease lease, shared;
    struct pool_member two, one;

    choose(&lease, HOST, POOL_SHARED);
    pool_add_member(&two, &lease);
    pool_take_member(&two, &lease, true);
    pool_end_lease(&pools, &lease);
    choose(&lease, HOST, POOL_IDLE);
    ck_assert_ptr_null(lease.claimed);
    choose(&shared, HOST, POOL_SHARED);
    ck_assert_ptr_eq(shared.pool, two.pool);
    pool_end_lease(&pools, &shared);
    pool_end_lease(&pools, &lease);
    leave_idle(&one, HOST);
    choose(&lease, HOST, POOL_IDLE);
    ck_assert_ptr_eq(lease.claimed, &one);
    pool_end_lease(&pools, &lease);
    pool_remove_member(&pools, &two);
    choose(&lease, HOST, POOL_SHARED);
    ck_assert_ptr_eq(lease.claimed, &one);
    pool_end_lease(&pools, &lease);
    pool_remove_member(&pools, &one);
}
END_TEST

/* Where all pools are full of idle connections to other origins, new ones take turns at them. */
START_TEST(idle_connections_give_way)
{
    static struct pool_member members[MANY];
    struct pool_lease lease, first, second, places[MANY / 32];
    unsigned count = pools.size * pools.most - MANY;

    ck_assert_uint_le(count, MANY / 32);
    for (unsigned i = 0; i < MANY; i++)
        leave_idle(&members[i], OTHER);
    for (unsigned i = 0; i < count; i++)
        choose(&places[i], HOST, POOL_IDLE);
    choose(&first, HOST, POOL_IDLE);
    choose(&second, HOST, POOL_IDLE);
    ck_assert_ptr_ne(first.pool, second.pool);
    /* What is idle is found all the same. */
    choose(&lease, OTHER, POOL_IDLE);
    ck_assert_ptr_nonnull(lease.claimed);
    pool_end_lease(&pools, &lease);
    pool_end_lease(&pools, &first);
    pool_end_lease(&pools, &second);
    for (unsigned i = 0; i < count; i++)
        pool_end_lease(&pools, &places[i]);
    for (unsigned i = 0; i < MANY; i++)
        pool_remove_member(&pools, &members[i]);
}
END_TEST

static int
count_closed(void *count, curl_socket_t fd)
{
    ++*(unsigned *)count;
    return close(fd);
}

static size_t
ignore_body(char *bytes, size_t size, size_t count, void *context)
{
    (void)bytes;
    (void)context;
    return size * count;
}

/* A transfer of libcurl's with the pool of this lease, which keeps the connection. */
static void
transfer(const struct pool_lease *lease, unsigned port, unsigned *closed)
{
    CURL *easy = curl_easy_init();
    char url[64];

    ck_assert_ptr_nonnull(easy);
    snprintf(url, sizeof(url), "http://127.0.0.1:%u/", port);
    curl_easy_setopt(easy, CURLOPT_URL, url);
    curl_easy_setopt(easy, CURLOPT_PROXY, "");
    curl_easy_setopt(easy, CURLOPT_SHARE, pool_share(lease->pool));
    curl_easy_setopt(easy, CURLOPT_CLOSESOCKETFUNCTION, count_closed);
    curl_easy_setopt(easy, CURLOPT_CLOSESOCKETDATA, closed);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, ignore_body);
    ck_assert_int_eq(curl_easy_perform(easy), CURLE_OK);
    curl_easy_cleanup(easy);
}

static void
end_leases(struct pool_lease *leases, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        pool_end_lease(&pools, &leases[i]);
}

static struct pool_member *opened; /* the one connection that is_open() finds open */

static bool
is_open(struct pool_member *member)
{
    return member == opened;
}

/* Of two pools one is in use again and again; what the other one has kept is closed. */
START_TEST(unused_pools_are_closed)
{
    static const struct line lines[] = {
        {.path = "/", .bytes = "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na"}, {.path = NULL}};
    static struct pool_lease leases[POOL_CONNECTIONS];
    struct origin *origin = origin_start(lines);
    struct pool_lease first, second;
    static unsigned closed[2]; /* until the pools are closed */
    int64_t now_us = 1000000;

    for (unsigned i = 0; i < pools.size; i++)
        choose(&leases[i], HOST, POOL_NEW);
    choose(&second, HOST, POOL_NEW);
    ck_assert_ptr_ne(second.pool, leases[0].pool);
    transfer(&leases[0], origin->port, &closed[0]);
    transfer(&second, origin->port, &closed[1]);
    pool_end_lease(&pools, &second);
    for (unsigned i = 0; i < 2; i++, now_us += POOL_UNUSED_US - 1)
        pools_close_unused(&pools, now_us, is_open);
    ck_assert_uint_eq(closed[1], 0);
    end_leases(leases, pools.size);
    pools_close_unused(&pools, now_us + POOL_LOOK_US, is_open);
    ck_assert_uint_eq(closed[1], 1);
    ck_assert_uint_eq(closed[0], 0);
    /* A lease in between begins the time anew. */
    choose(&first, HOST, POOL_NEW);
    pool_end_lease(&pools, &first);
    pools_close_unused(&pools, now_us + POOL_UNUSED_US, is_open);
    ck_assert_uint_eq(closed[0], 0);
    pools_close_unused(&pools, now_us + 2 * POOL_UNUSED_US, is_open);
    ck_assert_uint_eq(closed[0], 1);
    /* They serve again. */
    for (unsigned i = 0; i < pools.size; i++)
        choose(&leases[i], HOST, POOL_NEW);
    choose(&second, HOST, POOL_NEW);
    transfer(&leases[0], origin->port, &closed[0]);
    transfer(&second, origin->port, &closed[1]);
    pool_end_lease(&pools, &second);
    end_leases(leases, pools.size);
    origin_stop(origin);
}
END_TEST

/* A pool of which one connection is open is kept; when that has ended as well, it is closed. */
START_TEST(pools_without_an_open_connection_are_closed)
{
    struct pool_member members[3];
    int64_t now_us = 1000000;

    for (unsigned i = 0; i < 3; i++)
        leave_idle(&members[i], i ? HOST : OTHER);
    ck_assert_uint_eq(pools.open, 1);
    opened = &members[1];
    for (unsigned i = 0; i < 3; i++, now_us += POOL_LOOK_US)
        pools_close_unused(&pools, now_us, is_open);
    ck_assert_uint_eq(pools.open, 1);
    opened = NULL;
    pools_close_unused(&pools, now_us - 1, is_open);
    ck_assert_uint_eq(pools.open, 1);
    pools_close_unused(&pools, now_us, is_open);
    ck_assert_uint_eq(pools.open, 0);
    for (unsigned i = 0; i < 3; i++)
        pool_remove_member(&pools, &members[i]);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("fetch/pool");
    TCase *tcase = tcase_create("pool");

    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, transfers_are_divided);
    tcase_add_test(tcase, sizes_add_up);
    tcase_add_test(tcase, an_idle_connection_is_found);
    tcase_add_test(tcase, idle_connections_are_bounded);
    tcase_add_test(tcase, a_new_connection_claims_none);
    tcase_add_test(tcase, claims_are_exchanged);
    tcase_add_test(tcase, closing_ends_claim_and_use);
    tcase_add_test(tcase, shared_connections);
    tcase_add_test(tcase, idle_connections_of_either_version);
    tcase_add_test(tcase, idle_connections_give_way);
    tcase_add_test(tcase, unused_pools_are_closed);
    tcase_add_test(tcase, pools_without_an_open_connection_are_closed);
    suite_add_tcase(suite, tcase);
    return suite;
}
