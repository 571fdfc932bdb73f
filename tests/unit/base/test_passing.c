#define UNIT_STARTS_NO_THREAD

#include "base/passing.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/unit/unit.h"

static int ends[2];

static void
set_up(void)
{
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
}

static void
tear_down(void)
{
    close(ends[0]);
    close(ends[1]);
}

START_TEST(descriptors_arrive_with_their_bytes)
{
    int pipe_ends[2], passed[PASSING_MAX];
    char text[5], byte;
    unsigned count;

    ck_assert_int_eq(pipe(pipe_ends), 0);
    ck_assert(passing_send(ends[0], "first", 5, pipe_ends, 2));
    ck_assert(passing_send(ends[0], "other", 5, NULL, 0));
    ck_assert_int_eq(passing_receive(ends[1], text, 5, passed, &count), 5);
    ck_assert_mem_eq(text, "first", 5);
    ck_assert_uint_eq(count, 2);
    ck_assert(fcntl(passed[0], F_GETFD) & FD_CLOEXEC);
    ck_assert_int_eq(write(pipe_ends[1], "x", 1), 1);
    ck_assert_int_eq(read(passed[0], &byte, 1), 1);
    ck_assert_int_eq(passing_receive(ends[1], text, 5, passed, &count), 5);
    ck_assert_mem_eq(text, "other", 5);
    ck_assert_uint_eq(count, 0);
    close(pipe_ends[0]);
    close(pipe_ends[1]);
    close(passed[0]);
    close(passed[1]);
}
END_TEST

/* A message that is not whole leaves no descriptor behind. */
START_TEST(an_end_within_a_message_is_an_end)
{
    int passed[PASSING_MAX], before = dup(0);
    char text[5];
    unsigned count;

    ck_assert(passing_send(ends[0], "fir", 3, ends, 2));
    shutdown(ends[0], SHUT_WR);
    ck_assert_int_eq(passing_receive(ends[1], text, 5, passed, &count), 0);
    ck_assert_uint_eq(count, 0);
    close(before);
    ck_assert_int_eq(dup(0), before);
    close(before);
    ck_assert_int_eq(passing_receive(ends[1], text, 5, passed, &count), 0);
    ck_assert_int_eq(passing_receive(-1, text, 5, passed, &count), -1);
    ck_assert_int_eq(errno, EBADF);
}
END_TEST

START_TEST(nothing_is_sent_to_a_peer_that_has_ended)
{
    close(ends[1]);
    ck_assert(!passing_send(ends[0], "x", 1, ends, 1));
    ck_assert_int_eq(errno, EPIPE);
    ends[1] = dup(ends[0]);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("passing");
    TCase *tcase = tcase_create("passing");

    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, descriptors_arrive_with_their_bytes);
    tcase_add_test(tcase, an_end_within_a_message_is_an_end);
    tcase_add_test(tcase, nothing_is_sent_to_a_peer_that_has_ended);
    suite_add_tcase(suite, tcase);
    return suite;
}
