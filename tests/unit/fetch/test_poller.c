/* libcurl driven by epoll: transfers end, waits end, and nothing is left watched. */
#include "fetch/poller.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/thread.h"
#include "tests/unit/fetch/scripted.h"
#include "tests/unit/unit.h"

#define TRANSFERS 200
#define LONG_MS 60000

static const struct line script[] = {
    {"/kept", "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ngood", 0, KEEP, 0},
    {"/late", "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ngood", 0, CLOSE, 20},
    {"/silent", "", 0, HANG, 0},
    {NULL, NULL, 0, KEEP, 0},
};

static CURLM *multi;
static struct poller poller;
static struct connections connections;
static struct pool_lease lease; /* of all sockets */
static struct origin *origin;

static void
set_up(void)
{
    multi = curl_multi_init();
    ck_assert_ptr_nonnull(multi);
    connections_init(&connections, 2 * TRANSFERS, TRANSFERS);
    ck_assert(connections_lease(&connections, &lease, "http://a.test:80", POOL_NEW));
    ck_assert(poller_init(&poller, multi, &connections));
    origin = origin_start(script);
}

static void
tear_down(void)
{
    ck_assert_int_eq(curl_multi_cleanup(multi), CURLM_OK);
    connections_end_lease(&connections, &lease);
    connections_free(&connections);
    poller_free(&poller);
    poller_free(&poller);
    origin_stop(origin);
}

static size_t
count_bytes(char *bytes, size_t size, size_t count, void *sum)
{
    (void)bytes;
    *(size_t *)sum += size * count;
    return size * count;
}

static void
add(int fd)
{
    struct connection *connection = connections_add(&connections, &lease, fd);

    ck_assert_ptr_nonnull(connection);
    ck_assert(poller_add(&poller, connection));
}

static curl_socket_t
open_socket(void *context, curlsocktype purpose, struct curl_sockaddr *to)
{
    int fd = socket(to->family, to->socktype | SOCK_CLOEXEC, to->protocol);

    (void)context;
    (void)purpose;
    ck_assert_int_ge(fd, 0);
    add(fd);
    return fd;
}

static int
close_socket(void *context, curl_socket_t fd)
{
    (void)context;
    poller_remove(&poller, fd);
    return connections_on_close(&connections, fd);
}

static CURL *
begin(const char *path, size_t *sum)
{
    CURL *easy = curl_easy_init();
    char url[64];

    snprintf(url, sizeof(url), "http://127.0.0.1:%u%s", origin->port, path);
    curl_easy_setopt(easy, CURLOPT_URL, url);
    curl_easy_setopt(easy, CURLOPT_PROXY, "");
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, open_socket);
    curl_easy_setopt(easy, CURLOPT_CLOSESOCKETFUNCTION, close_socket);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, count_bytes);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, sum);
    ck_assert_int_eq(curl_multi_add_handle(multi, easy), CURLM_OK);
    return easy;
}

static void
end(CURL *easy)
{
    ck_assert_int_eq(curl_multi_remove_handle(multi, easy), CURLM_OK);
    curl_easy_cleanup(easy);
}

/* Turns until that many transfers have ended well. */
static void
run_until(unsigned wanted)
{
    CURLMsg *message;
    int left;

    while (wanted > 0) {
        poller_drive(&poller);
        while ((message = curl_multi_info_read(multi, &left))) {
            CURL *easy = message->easy_handle;

            ck_assert_int_eq(message->data.result, CURLE_OK);
            end(easy);
            wanted--;
        }
        if (wanted > 0)
            poller_wait(&poller, LONG_MS);
    }
}

START_TEST(transfers_end_whether_their_connection_stays_or_not)
{
    size_t sum = 0;

    for (int i = 0; i < TRANSFERS; i++)
        begin(i % 2 ? "/kept" : "/late", &sum);
    run_until(TRANSFERS);
    ck_assert_uint_eq(sum, 4 * TRANSFERS);
    /* On kept connections, whose sockets were not watched meanwhile. */
    for (int i = 0; i < 10; i++)
        begin("/kept", &sum);
    run_until(10);
    ck_assert_uint_eq(sum, 4 * (TRANSFERS + 10));
}
END_TEST

START_TEST(a_transfer_that_hangs_holds_up_no_other)
{
    size_t sum = 0, silent = 0;
    CURL *hanging = begin("/silent", &silent);

    for (int i = 0; i < 20; i++) {
        begin("/kept", &sum);
        run_until(1);
    }
    ck_assert_uint_eq(sum, 80);
    end(hanging);
    ck_assert_uint_eq(silent, 0);
}
END_TEST

START_TEST(a_timer_of_libcurl_ends_a_wait)
{
    size_t sum = 0;
    CURL *easy = begin("/silent", &sum);
    CURLMsg *message = NULL;
    int left;

    curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, 50L);
    while (!message) {
        poller_drive(&poller);
        message = curl_multi_info_read(multi, &left);
        if (!message)
            poller_wait(&poller, LONG_MS);
    }
    ck_assert_int_eq(message->data.result, CURLE_OPERATION_TIMEDOUT);
    end(easy);
}
END_TEST

/* Adds a socket to the poller. */
static void
open_pair(int pair[2])
{
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    add(pair[0]);
}

/* The same, and waits until it is reported. */
static void
open_ready(int pair[2])
{
    open_pair(pair);
    poller_wait(&poller, LONG_MS);
    ck_assert_int_eq(poller.ready, 1);
}

/*
 * Closes both without a word to the poller, and opens others, the first with the number of the
 * first in the same step: a number that is free may be taken by a thread of the origin.
 */
static void
replace(int pair[2])
{
    int successor[2];

    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, successor), 0);
    ck_assert_int_eq(dup3(successor[0], pair[0], O_CLOEXEC), pair[0]);
    close(successor[0]);
    close(pair[1]);
    pair[1] = successor[1];
}

static void
close_both(const int pair[2])
{
    close(pair[0]);
    close(pair[1]);
}

START_TEST(a_socket_with_the_number_of_a_closed_one_is_watched)
{
    int pair[2];

    open_ready(pair);
    replace(pair);
    poller_wait(&poller, 0);
    ck_assert_int_eq(poller.ready, 0);
    add(pair[0]);
    poller_wait(&poller, LONG_MS);
    ck_assert_int_eq(poller.ready, 1);
    ck_assert_int_eq(poller.events[0].data.fd, pair[0]);
    poller.ready = 0;
    close_both(pair);
}
END_TEST

START_TEST(events_of_a_closed_socket_are_not_those_of_its_successor)
{
    int pair[2];

    open_ready(pair);
    replace(pair);
    add(pair[0]);
    ck_assert_int_eq(poller.events[0].data.fd, -1);
    poller_deliver(&poller);
    ck_assert_int_eq(poller.ready, 0);
    close_both(pair);
}
END_TEST

START_TEST(a_duplicate_of_a_socket_that_was_removed_has_no_events)
{
    int pair[2], own;

    open_pair(pair);
    poller_remove(&poller, pair[0]);
    own = dup(pair[0]);
    ck_assert_int_ge(own, 0);
    close(pair[0]);
    poller_wait(&poller, 20);
    ck_assert_int_eq(poller.ready, 0);
    close(own);
    close(pair[1]);
}
END_TEST

static void *
wake(void *context)
{
    poller_wake(context);
    return NULL;
}

START_TEST(a_wake_up_ends_one_wait)
{
    int64_t began;
    pthread_t thread;

    /* Before it, several are one; during it, from another thread. Each would else take a minute. */
    poller_wake(&poller);
    poller_wake(&poller);
    poller_wait(&poller, LONG_MS);
    ck_assert_int_eq(poller.ready, 0);
    began = clock_monotonic_us();
    poller_wait(&poller, 20);
    ck_assert_int_ge(clock_monotonic_us() - began, 19000);
    ck_assert_int_eq(thread_start(&thread, wake, &poller), 0);
    poller_wait(&poller, LONG_MS);
    ck_assert_int_eq(poller.ready, 0);
    pthread_join(thread, NULL);
}
END_TEST

/* libcurl tells late that it has closed a socket, whose descriptor may be another one by then. */
START_TEST(a_late_removal_is_not_of_the_next_socket)
{
    struct epoll_event event = {.events = EPOLLIN};
    int fd = socket(AF_INET, SOCK_STREAM, 0), next;

    add(fd);
    ck_assert_int_eq(close_socket(NULL, fd), 0);
    next = socket(AF_INET, SOCK_STREAM, 0);
    ck_assert_int_eq(next, fd);
    ck_assert_int_eq(epoll_ctl(poller.epoll, EPOLL_CTL_ADD, next, &event), 0);
    poller_remove(&poller, fd);
    ck_assert_int_eq(epoll_ctl(poller.epoll, EPOLL_CTL_DEL, next, NULL), 0);
    close(next);
}
END_TEST

START_TEST(a_socket_that_cannot_be_watched)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct connection *connection = connections_add(&connections, &lease, fd);

    ck_assert_ptr_nonnull(connection);
    close(fd);
    ck_assert(!poller_add(&poller, connection));
    ck_assert_int_eq(errno, EBADF);
    poller_remove(&poller, fd);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("fetch/poller");
    TCase *tcase = tcase_create("poller");

    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, transfers_end_whether_their_connection_stays_or_not);
    tcase_add_test(tcase, a_transfer_that_hangs_holds_up_no_other);
    tcase_add_test(tcase, a_timer_of_libcurl_ends_a_wait);
    tcase_add_test(tcase, a_socket_with_the_number_of_a_closed_one_is_watched);
    tcase_add_test(tcase, events_of_a_closed_socket_are_not_those_of_its_successor);
    tcase_add_test(tcase, a_duplicate_of_a_socket_that_was_removed_has_no_events);
    tcase_add_test(tcase, a_wake_up_ends_one_wait);
    tcase_add_test(tcase, a_late_removal_is_not_of_the_next_socket);
    tcase_add_test(tcase, a_socket_that_cannot_be_watched);
    tcase_set_timeout(tcase, 50);
    suite_add_tcase(suite, tcase);
    return suite;
}
