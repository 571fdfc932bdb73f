/* What the fetcher knows of its sockets. */
#include "fetch/connections.h"

#include <fcntl.h>
#include <unistd.h>

#include "tests/unit/unit.h"

#define SOCKETS 300

static int
open_descriptor(void)
{
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

    ck_assert_int_ge(fd, 0);
    return fd;
}

/* Lists that are not empty: nearly as many as openers, if these are few beside the lists. */
static unsigned
count_fresh(const struct connections *connections)
{
    unsigned count = 0;

    for (unsigned i = 0; i < CONNECTION_BUCKETS; i++)
        count += !LIST_EMPTY(&connections->fresh[i]);
    return count;
}

START_TEST(closing_forgets)
{
    struct connections connections;
    int fds[SOCKETS];

    connections_init(&connections);
    for (int i = 0; i < SOCKETS; i++) {
        fds[i] = open_descriptor();
        ck_assert(connections_add(&connections, &fds[i], fds[i]));
    }
    ck_assert_uint_gt(count_fresh(&connections), SOCKETS / 2);
    for (int i = 0; i < SOCKETS; i++)
        ck_assert_int_eq(connections_on_close(&connections, fds[i]), 0);
    ck_assert_uint_eq(count_fresh(&connections), 0);
    ck_assert_int_eq(fcntl(fds[0], F_GETFD), -1);
    /* One that is not known, too, as the sockets of a duplicated handle are. */
    fds[0] = open_descriptor();
    ck_assert_int_eq(connections_on_close(&connections, fds[0]), 0);
    connections_free(&connections);
}
END_TEST

/* libcurl 7.88 closes a socket that could not be connected by itself: it must not be kept for ever.
 */
START_TEST(a_descriptor_that_is_used_again_is_one_socket)
{
    struct connections connections;
    int openers[SOCKETS], fd = open_descriptor();

    connections_init(&connections);
    for (int i = 0; i < SOCKETS; i++)
        ck_assert(connections_add(&connections, &openers[i], fd));
    ck_assert_uint_eq(count_fresh(&connections), 1);
    ck_assert_int_eq(connections_on_close(&connections, fd), 0);
    ck_assert_uint_eq(count_fresh(&connections), 0);
    connections_free(&connections);
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
