/* Connections: which pool a transfer gets, from what is known of idle ones, and their sockets. */
#include "fetch/connections.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/unit/fetch/scripted.h"
#include "tests/unit/unit.h"

#define MANY 1000u
#define HOST "http://a.test:80"
#define OTHER "http://b.test:80"

/* Beyond those that a process may have: sockets that are closed already. */
#define FIRST_CLOSED (1 << 20)

static struct connections connections;
static int next_fd;

static void
set_up(void)
{
    next_fd = FIRST_CLOSED;
    connections_init(&connections, MANY, MANY);
}

static void
tear_down(void)
{
    ck_assert(RB_EMPTY(&connections.origins));
    connections_free(&connections);
}

static void
choose(struct pool_lease *lease, const char *origin, enum pool_wish wish)
{
    ck_assert(connections_lease(&connections, lease, origin, wish));
    ck_assert_ptr_nonnull(pool_share(lease->pool));
}

static struct connection *
add(const struct pool_lease *opener)
{
    struct connection *connection = connections_add(&connections, opener, next_fd++);

    ck_assert_ptr_nonnull(connection);
    return connection;
}

/* As libcurl does. */
static void
close_one(const struct connection *connection)
{
    (void)connections_on_close(&connections, connection->fd);
}

/* A transfer that opens a connection and is done with it. */
static struct connection *
leave_idle(const char *origin)
{
    struct connection *connection;
    struct pool_lease lease;

    choose(&lease, origin, POOL_NEW);
    connection = add(&lease);
    connections_use(connection, &lease, false);
    connections_end_lease(&connections, &lease);
    ck_assert_int_eq(connection->state, CONNECTION_IDLE);
    return connection;
}

/* How many connections of an origin are kept is known before their transfers have ended. */
START_TEST(idle_connections_are_bounded)
{
    struct pool_lease leases[4], other;
    struct connection *members[4], *another;

    connections_init(&connections, MANY, 2);
    for (unsigned i = 0; i < 4; i++) {
        choose(&leases[i], HOST, POOL_IDLE);
        members[i] = add(&leases[i]);
        connections_use(members[i], &leases[i], false);
    }
    ck_assert(connections_may_keep(&connections, &leases[0]));
    ck_assert(connections_may_keep(&connections, &leases[0]));
    ck_assert(connections_may_keep(&connections, &leases[1]));
    ck_assert(!connections_may_keep(&connections, &leases[2]));
    /* Other origins have their own. */
    choose(&other, OTHER, POOL_IDLE);
    another = add(&other);
    connections_use(another, &other, false);
    ck_assert(connections_may_keep(&connections, &other));
    connections_end_lease(&connections, &other);
    /* One that is closed all the same, and one that is used again, leave a place. */
    close_one(members[0]);
    connections_end_lease(&connections, &leases[0]);
    ck_assert(connections_may_keep(&connections, &leases[2]));
    connections_end_lease(&connections, &leases[1]);
    ck_assert_int_eq(members[1]->state, CONNECTION_IDLE);
    ck_assert(!connections_may_keep(&connections, &leases[3]));
    choose(&leases[0], HOST, POOL_IDLE);
    ck_assert_ptr_eq(leases[0].claimed, members[1]);
    ck_assert(!connections_may_keep(&connections, &leases[3]));
    connections_use(members[1], &leases[0], false);
    ck_assert(connections_may_keep(&connections, &leases[3]));
    ck_assert(!connections_may_keep(&connections, &leases[0]));
    /* One of HTTP/2 serves many, and is kept. */
    connections_use(members[1], &leases[0], true);
    ck_assert(connections_may_keep(&connections, &leases[0]));
    /* Without a connection there is nothing to close. */
    leases[1] = (struct pool_lease){0};
    ck_assert(connections_may_keep(&connections, &leases[1]));
    for (unsigned i = 0; i < 4; i++)
        connections_end_lease(&connections, &leases[i]);
    for (unsigned i = 1; i < 4; i++)
        close_one(members[i]);
    close_one(another);
}
END_TEST

/* As many transfers as there may be: no pool gets more than its share. */
START_TEST(transfers_are_divided)
{
    static struct pool_lease leases[MANY];
    unsigned most = 0;

    for (unsigned i = 0; i < MANY; i++)
        choose(&leases[i], HOST, POOL_IDLE);
    ck_assert_uint_eq(connections.count, (MANY + POOL_CONNECTIONS - 1) / POOL_CONNECTIONS);
    for (unsigned at = 0; at < connections.count; at++) {
        unsigned count = 0;

        for (unsigned i = 0; i < MANY; i++)
            count += leases[i].pool == connections.pools[at];
        most = count > most ? count : most;
    }
    ck_assert_uint_le(most, connections.size);
    ck_assert_uint_le(connections.size, POOL_CONNECTIONS);
    for (unsigned i = 0; i < MANY; i++)
        connections_end_lease(&connections, &leases[i]);
}
END_TEST

START_TEST(sizes_add_up)
{
    for (unsigned n = 1; n < 20000; n += n < 200 ? 1 : 97) {
        connections_init(&connections, n, n);
        ck_assert_uint_le(connections.size, POOL_CONNECTIONS);
        ck_assert_uint_ge(connections.size * connections.most, n);
        ck_assert_uint_le(connections.size * connections.most - n, n / 32);
    }
}
END_TEST

/* All pools are in use, and one has an idle connection: a transfer to its origin gets that pool. */
START_TEST(an_idle_connection_is_found)
{
    static struct pool_lease leases[MANY];
    struct connection *member;
    struct pool_lease again, third;
    struct pool *pool;

    for (unsigned i = 0; i + 1 < MANY; i++)
        choose(&leases[i], OTHER, POOL_IDLE);
    connections_end_lease(&connections, &leases[500]);
    member = leave_idle(HOST);
    pool = member->pool;
    choose(&again, HOST, POOL_IDLE);
    ck_assert_ptr_eq(again.pool, pool);
    ck_assert_ptr_eq(again.claimed, member);
    /* It is expected to be used: another transfer does not count on it. */
    choose(&third, HOST, POOL_IDLE);
    ck_assert_ptr_null(third.claimed);
    connections_use(member, &again, false);
    ck_assert_int_eq(member->state, CONNECTION_USED);
    connections_end_lease(&connections, &again);
    ck_assert_int_eq(member->state, CONNECTION_IDLE);
    connections_end_lease(&connections, &third);
    close_one(member);
    for (unsigned i = 0; i + 1 < MANY; i++)
        connections_end_lease(&connections, &leases[i]);
}
END_TEST

START_TEST(a_new_connection_claims_none)
{
    struct connection *member;
    struct pool_lease lease;

    member = leave_idle(HOST);
    choose(&lease, HOST, POOL_NEW);
    ck_assert_ptr_null(lease.claimed);
    connections_end_lease(&connections, &lease);
    choose(&lease, OTHER, POOL_IDLE);
    ck_assert_ptr_null(lease.claimed);
    connections_end_lease(&connections, &lease);
    close_one(member);
}
END_TEST

/* libcurl chooses among the idle connections of a pool by itself. */
START_TEST(claims_are_exchanged)
{
    struct connection *a, *b;
    struct pool_lease first, second, opener;

    choose(&opener, HOST, POOL_NEW);
    a = add(&opener);
    connections_use(a, &opener, false);
    b = leave_idle(HOST);
    connections_end_lease(&connections, &opener);
    choose(&first, HOST, POOL_IDLE);
    choose(&second, HOST, POOL_IDLE);
    ck_assert_ptr_eq(first.claimed, a);
    ck_assert_ptr_eq(second.claimed, b);
    connections_use(b, &first, false);
    ck_assert_ptr_null(first.claimed);
    ck_assert_ptr_eq(second.claimed, a);
    connections_use(a, &second, false);
    ck_assert_ptr_null(second.claimed);
    connections_end_lease(&connections, &first);
    connections_end_lease(&connections, &second);

    /* The transfer got another than it had claimed, which is idle again. */
    choose(&first, HOST, POOL_IDLE);
    ck_assert_ptr_eq(first.claimed, a);
    connections_use(b, &first, false);
    ck_assert_int_eq(a->state, CONNECTION_IDLE);
    connections_end_lease(&connections, &first);
    close_one(a);
    close_one(b);
}
END_TEST

START_TEST(closing_ends_claim_and_use)
{
    struct connection *a;
    struct pool_lease lease;

    a = leave_idle(HOST);
    choose(&lease, HOST, POOL_IDLE);
    close_one(a);
    ck_assert_ptr_null(lease.claimed);
    /* It opens one instead, which is closed before the end. */
    a = add(&lease);
    connections_use(a, &lease, false);
    close_one(a);
    ck_assert_ptr_null(lease.used);
    connections_end_lease(&connections, &lease);
    connections_end_lease(&connections, &lease);
    choose(&lease, HOST, POOL_IDLE);
    ck_assert_ptr_null(lease.claimed);
    connections_end_lease(&connections, &lease);
}
END_TEST

/* Over HTTP/2 a connection that others use serves as well; it is idle when the last one ends. */
START_TEST(shared_connections)
{
    static struct pool_lease users[POOL_CONNECTIONS], beyond, single;
    struct connection *member;

    choose(&users[0], HOST, POOL_SHARED);
    member = add(&users[0]);
    connections_use(member, &users[0], true);
    for (unsigned i = 1; i < connections.size; i++) {
        choose(&users[i], HOST, POOL_SHARED);
        ck_assert_ptr_eq(users[i].pool, member->pool);
        ck_assert_ptr_null(users[i].claimed);
        connections_use(member, &users[i], true);
    }
    choose(&beyond, HOST, POOL_SHARED);
    ck_assert_ptr_ne(beyond.pool, member->pool);
    for (unsigned i = 0; i < connections.size; i++) {
        ck_assert_int_eq(member->state, CONNECTION_USED);
        connections_end_lease(&connections, &users[i]);
    }
    ck_assert_int_eq(member->state, CONNECTION_IDLE);
    choose(&single, HOST, POOL_SHARED);
    ck_assert_ptr_eq(single.pool, member->pool);
    close_one(member);
    connections_end_lease(&connections, &single);
    connections_end_lease(&connections, &beyond);
}
END_TEST

/* A transfer that may not use HTTP/2 leaves an idle connection of it to one that may. */
START_TEST(idle_connections_of_either_version)
{
    struct pool_lease lease, shared;
    struct connection *two, *one;

    choose(&lease, HOST, POOL_SHARED);
    two = add(&lease);
    connections_use(two, &lease, true);
    connections_end_lease(&connections, &lease);
    choose(&lease, HOST, POOL_IDLE);
    ck_assert_ptr_null(lease.claimed);
    choose(&shared, HOST, POOL_SHARED);
    ck_assert_ptr_eq(shared.pool, two->pool);
    connections_end_lease(&connections, &shared);
    connections_end_lease(&connections, &lease);
    one = leave_idle(HOST);
    choose(&lease, HOST, POOL_IDLE);
    ck_assert_ptr_eq(lease.claimed, one);
    connections_end_lease(&connections, &lease);
    close_one(two);
    choose(&lease, HOST, POOL_SHARED);
    ck_assert_ptr_eq(lease.claimed, one);
    connections_end_lease(&connections, &lease);
    close_one(one);
}
END_TEST

/* Where all pools are full of idle connections to other origins, new ones take turns at them. */
START_TEST(idle_connections_give_way)
{
    static struct connection *members[MANY];
    struct pool_lease lease, first, second, places[MANY / 32];
    unsigned count = connections.size * connections.most - MANY;

    ck_assert_uint_le(count, MANY / 32);
    for (unsigned i = 0; i < MANY; i++)
        members[i] = leave_idle(OTHER);
    for (unsigned i = 0; i < count; i++)
        choose(&places[i], HOST, POOL_IDLE);
    choose(&first, HOST, POOL_IDLE);
    choose(&second, HOST, POOL_IDLE);
    ck_assert_ptr_ne(first.pool, second.pool);
    /* What is idle is found all the same. */
    choose(&lease, OTHER, POOL_IDLE);
    ck_assert_ptr_nonnull(lease.claimed);
    connections_end_lease(&connections, &lease);
    connections_end_lease(&connections, &first);
    connections_end_lease(&connections, &second);
    for (unsigned i = 0; i < count; i++)
        connections_end_lease(&connections, &places[i]);
    for (unsigned i = 0; i < MANY; i++)
        close_one(members[i]);
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
begin_leases(struct pool_lease *leases, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        choose(&leases[i], HOST, POOL_IDLE);
}

static void
end_leases(struct pool_lease *leases, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        connections_end_lease(&connections, &leases[i]);
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

    for (unsigned i = 0; i < connections.size; i++)
        choose(&leases[i], HOST, POOL_NEW);
    choose(&second, HOST, POOL_NEW);
    ck_assert_ptr_ne(second.pool, leases[0].pool);
    transfer(&leases[0], origin->port, &closed[0]);
    transfer(&second, origin->port, &closed[1]);
    connections_end_lease(&connections, &second);
    for (unsigned i = 0; i < 2; i++, now_us += POOL_UNUSED_US - 1)
        connections_close_unused(&connections, now_us);
    ck_assert_uint_eq(closed[1], 0);
    end_leases(leases, connections.size);
    connections_close_unused(&connections, now_us + POOL_LOOK_US);
    ck_assert_uint_eq(closed[1], 1);
    ck_assert_uint_eq(closed[0], 0);
    /* A lease in between begins the time anew. */
    choose(&first, HOST, POOL_NEW);
    connections_end_lease(&connections, &first);
    connections_close_unused(&connections, now_us + POOL_UNUSED_US);
    ck_assert_uint_eq(closed[0], 0);
    connections_close_unused(&connections, now_us + 2 * POOL_UNUSED_US);
    ck_assert_uint_eq(closed[0], 1);
    /* They serve again. */
    for (unsigned i = 0; i < connections.size; i++)
        choose(&leases[i], HOST, POOL_NEW);
    choose(&second, HOST, POOL_NEW);
    transfer(&leases[0], origin->port, &closed[0]);
    transfer(&second, origin->port, &closed[1]);
    connections_end_lease(&connections, &second);
    end_leases(leases, connections.size);
    origin_stop(origin);
}
END_TEST

/* A pool of which one connection is open is kept; when that has ended as well, it is closed. */
START_TEST(pools_without_an_open_connection_are_closed)
{
    struct connection *members[3];
    int64_t now_us = 1000000;
    int ends[2];

    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    for (int i = 0; i < 3; i++) {
        next_fd = i == 1 ? ends[0] : FIRST_CLOSED + i;
        members[i] = leave_idle(i ? HOST : OTHER);
    }
    ck_assert_uint_eq(connections.open, 1);
    for (unsigned i = 0; i < 3; i++, now_us += POOL_LOOK_US)
        connections_close_unused(&connections, now_us);
    ck_assert_uint_eq(connections.open, 1);
    close(ends[1]);
    connections_close_unused(&connections, now_us - 1);
    ck_assert_uint_eq(connections.open, 1);
    connections_close_unused(&connections, now_us);
    ck_assert_uint_eq(connections.open, 0);
    for (unsigned i = 0; i < 3; i++)
        close_one(members[i]);
}
END_TEST

/* ---- descriptors --------------------------------------------------------------------- */

#define SOCKETS 300

static int
open_descriptor(void)
{
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

    ck_assert_int_ge(fd, 0);
    return fd;
}

static unsigned
count_known(void)
{
    unsigned count = 0;

    for (size_t i = 0; i < connections.fd_count; i++)
        count += connections.by_fd[i] != NULL;
    return count;
}

START_TEST(closing_forgets)
{
    static struct pool_lease leases[SOCKETS];
    int fds[SOCKETS];

    begin_leases(leases, SOCKETS);
    for (int i = 0; i < SOCKETS; i++) {
        fds[i] = open_descriptor();
        ck_assert_ptr_nonnull(connections_add(&connections, &leases[i], fds[i]));
    }
    ck_assert_uint_eq(count_known(), SOCKETS);
    for (int i = 0; i < SOCKETS; i++)
        ck_assert_int_eq(connections_on_close(&connections, fds[i]), 0);
    ck_assert_uint_eq(count_known(), 0);
    ck_assert_int_eq(fcntl(fds[0], F_GETFD), -1);
    /* One that is not known, too, as the sockets of a duplicated handle are. */
    fds[0] = open_descriptor();
    ck_assert_int_eq(connections_on_close(&connections, fds[0]), 0);
    end_leases(leases, SOCKETS);
}
END_TEST

/* libcurl 7.88 closes a socket that could not be connected by itself: it must not be kept for ever.
 */
START_TEST(a_descriptor_that_is_used_again_is_one_socket)
{
    static struct pool_lease leases[SOCKETS];
    int fd = open_descriptor();

    begin_leases(leases, SOCKETS);
    for (int i = 0; i < SOCKETS; i++)
        ck_assert_ptr_nonnull(connections_add(&connections, &leases[i], fd));
    ck_assert_uint_eq(count_known(), 1);
    ck_assert_int_eq(connections_on_close(&connections, fd), 0);
    ck_assert_uint_eq(count_known(), 0);
    end_leases(leases, SOCKETS);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("fetch/connections");
    TCase *tcase = tcase_create("connections");

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
    tcase_add_test(tcase, closing_forgets);
    tcase_add_test(tcase, a_descriptor_that_is_used_again_is_one_socket);
    suite_add_tcase(suite, tcase);
    return suite;
}
