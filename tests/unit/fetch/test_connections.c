/* What the fetcher knows of its sockets. */
#define UNIT_STARTS_NO_THREAD

#include "fetch/connections.h"

#include <fcntl.h>
#include <unistd.h>

#include "tests/unit/unit.h"

#define SOCKETS 300

static struct connections connections;

static void
begin_leases(struct pool_lease *leases)
{
    connections_init(&connections, SOCKETS, SOCKETS);
    for (int i = 0; i < SOCKETS; i++)
        ck_assert(pool_choose(&connections.pools, &leases[i], "http://a:80", POOL_IDLE));
}

static void
end_leases(struct pool_lease *leases)
{
    for (int i = 0; i < SOCKETS; i++)
        pool_end_lease(&connections.pools, &leases[i]);
    connections_free(&connections);
}

static int
open_descriptor(void)
{
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

    ck_assert_int_ge(fd, 0);
    return fd;
}

/* Lists that are not empty: nearly as many as openers, if these are few beside the lists. */
static unsigned
count_fresh(void)
{
    unsigned count = 0;

    for (unsigned i = 0; i < CONNECTION_BUCKETS; i++)
        count += !LIST_EMPTY(&connections.fresh[i]);
    return count;
}

START_TEST(closing_forgets)
{
    static struct pool_lease leases[SOCKETS];
    int fds[SOCKETS];

    begin_leases(leases);
    for (int i = 0; i < SOCKETS; i++) {
        fds[i] = open_descriptor();
        ck_assert(connections_add(&connections, &leases[i], fds[i]));
    }
    ck_assert_uint_gt(count_fresh(), SOCKETS / 2);
    for (int i = 0; i < SOCKETS; i++)
        ck_assert_int_eq(connections_on_close(&connections, fds[i]), 0);
    ck_assert_uint_eq(count_fresh(), 0);
    ck_assert_int_eq(fcntl(fds[0], F_GETFD), -1);
    /* One that is not known, too, as the sockets of a duplicated handle are. */
    fds[0] = open_descriptor();
    ck_assert_int_eq(connections_on_close(&connections, fds[0]), 0);
    end_leases(leases);
}
END_TEST

/* libcurl 7.88 closes a socket that could not be connected by itself: it must not be kept for ever.
 */
START_TEST(a_descriptor_that_is_used_again_is_one_socket)
{
    static struct pool_lease leases[SOCKETS];
    int fd = open_descriptor();

    begin_leases(leases);
    for (int i = 0; i < SOCKETS; i++)
        ck_assert(connections_add(&connections, &leases[i], fd));
    ck_assert_uint_eq(count_fresh(), 1);
    ck_assert_int_eq(connections_on_close(&connections, fd), 0);
    ck_assert_uint_eq(count_fresh(), 0);
    end_leases(leases);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("fetch/connections");
    TCase *tcase = tcase_create("connections");

    tcase_add_test(tcase, closing_forgets);
    tcase_add_test(tcase, a_descriptor_that_is_used_again_is_one_socket);
    suite_add_tcase(suite, tcase);
    return suite;
}
