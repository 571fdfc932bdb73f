#define UNIT_STARTS_NO_THREAD

#include "server/listen/passed_sockets.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/unit/unit.h"

#define FIRST 200 /* above what Check and the sanitizers open */

static char folder[64], path[128], second_path[128];
static struct listening listening;
static struct passed_sockets passed;
static struct buf why;

static void
setup(void)
{
    snprintf(folder, sizeof(folder), "/tmp/sunproxy-test-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/socket", folder);
    snprintf(second_path, sizeof(second_path), "%s/second", folder);
    listening = LISTENING_NONE;
    passed = (struct passed_sockets){.first = FIRST};
    buf_init(&why, 1024);
}

static void
teardown(void)
{
    listen_close(&listening);
    for (unsigned i = 0; i < passed.count; i++)
        close(FIRST + (int)i);
    unlink(path);
    unlink(second_path);
    rmdir(folder);
    buf_free(&why);
    unsetenv("LISTEN_PID");
    unsetenv("LISTEN_FDS");
    unsetenv("LISTEN_FDNAMES");
}

/* Makes `fd` the next passed descriptor. */
static void
pass(int fd)
{
    ck_assert_int_ge(fd, 0);
    ck_assert_int_ge(dup2(fd, FIRST + (int)passed.count++), 0);
    close(fd);
}

/* A TCP socket on loopback; 0 lets the system choose the port. */
static int
tcp_socket(int type, uint16_t port)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};
    int fd = socket(AF_INET, type, 0), on = 1;

    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&to, sizeof(to)), 0);
    return fd;
}

static int
listener(void)
{
    int fd = tcp_socket(SOCK_STREAM, 0);

    ck_assert_int_eq(listen(fd, 8), 0);
    return fd;
}

static int
local_listener(const char *name, size_t len)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);

    memcpy(address.sun_path, name, len);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address,
                          (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len)),
                     0);
    ck_assert_int_eq(listen(fd, 8), 0);
    return fd;
}

static void
adopts(void)
{
    enum listen_error error = passed_sockets_adopt(&passed, &listening, &why);

    ck_assert_msg(error == LISTEN_OK, "%s", buf_str(&why));
}

static void
refuses(const char *sentence)
{
    ck_assert_int_eq(passed_sockets_adopt(&passed, &listening, &why), LISTEN_BAD_ADDRESS);
    ck_assert_msg(strstr(buf_str(&why), sentence), "%s", buf_str(&why));
}

START_TEST(tcp_and_a_local_socket_are_taken)
{
    char text[INET6_ADDRSTRLEN];
    int flags;

    pass(listener());
    pass(local_listener(path, strlen(path)));
    adopts();
    ck_assert_uint_eq(listening.sets[LISTEN_RPC].count, 1);
    ck_assert_int_eq(listening.sets[LISTEN_RPC].sockets[0].fd, FIRST);
    ck_assert_uint_ne(listening.port, 0);
    ck_assert_str_eq(listen_address_text(&listening.ipv4, text), "127.0.0.1");
    ck_assert_int_eq(listening.ipv6.ss_family, AF_UNSPEC);
    ck_assert_int_eq(listening.sets[LISTEN_LOCAL].sockets[0].fd, FIRST + 1);
    ck_assert_str_eq(listening.sets[LISTEN_LOCAL].sockets[0].path, path);
    ck_assert(listening.sets[LISTEN_RPC].passed);
    ck_assert(listening.sets[LISTEN_LOCAL].passed);
    ck_assert(!listening.sets[LISTEN_LOCAL].sockets[0].bound);
    for (int fd = FIRST; fd < FIRST + 2; fd++) {
        flags = fcntl(fd, F_GETFL);
        ck_assert_msg(flags & O_NONBLOCK, "non-blocking");
        ck_assert_msg(fcntl(fd, F_GETFD) & FD_CLOEXEC, "not for children");
    }
    listen_close(&listening);
    ck_assert_msg(access(path, F_OK) == 0, "the name belongs to the manager");
}
END_TEST

START_TEST(a_socket_of_both_families_is_both)
{
    struct sockaddr_in6 any = {.sin6_family = AF_INET6};
    int fd = socket(AF_INET6, SOCK_STREAM, 0), off = 0;
    char text[INET6_ADDRSTRLEN];

    if (fd < 0)
        return; /* no IPv6 on this machine */
    ck_assert_int_eq(setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off)), 0);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&any, sizeof(any)), 0);
    ck_assert_int_eq(listen(fd, 8), 0);
    pass(fd);
    adopts();
    ck_assert_str_eq(listen_address_text(&listening.ipv4, text), "0.0.0.0");
    ck_assert_str_eq(listen_address_text(&listening.ipv6, text), "::");
}
END_TEST

START_TEST(two_ports_are_refused)
{
    passed.names = "web:also";
    pass(listener());
    pass(listener());
    refuses("passed descriptor 201 (\"also\") has TCP port ");
}
END_TEST

START_TEST(two_local_sockets_are_refused)
{
    pass(local_listener(path, strlen(path)));
    pass(local_listener(second_path, strlen(second_path)));
    refuses("passed descriptor 201 is a second AF_UNIX socket");
}
END_TEST

START_TEST(an_abstract_name_is_refused)
{
    char name[64] = "";

    snprintf(name + 1, sizeof(name) - 1, "sunproxy-test-%ld", (long)getpid());
    pass(local_listener(name, 1 + strlen(name + 1)));
    refuses("is an AF_UNIX socket without an absolute path");
}
END_TEST

START_TEST(a_datagram_socket_is_refused)
{
    passed.names = "udp";
    pass(tcp_socket(SOCK_DGRAM, 0));
    refuses("passed descriptor 200 (\"udp\") is not a stream socket");
}
END_TEST

START_TEST(a_socket_that_does_not_listen_is_refused)
{
    pass(tcp_socket(SOCK_STREAM, 0));
    refuses("does not listen; a socket unit has to have Accept=no");
}
END_TEST

START_TEST(a_file_is_refused)
{
    pass(open("/dev/null", O_RDONLY));
    refuses("is not a socket");
}
END_TEST

START_TEST(a_descriptor_that_is_not_there_is_refused)
{
    passed.count = 1;
    refuses("passed descriptor 200 is not open");
}
END_TEST

START_TEST(more_than_can_be_served_are_refused)
{
    int fd = listener();

    for (int i = 0; i <= LISTEN_MOST_TCP; i++)
        pass(dup(fd));
    close(fd);
    refuses("is one more than the 16 TCP sockets that can be served");
}
END_TEST

static void
set_environment(const char *pid, const char *count)
{
    char own[32];

    snprintf(own, sizeof(own), "%ld", (long)getpid());
    setenv("LISTEN_PID", pid ? pid : own, 1);
    setenv("LISTEN_FDS", count, 1);
    setenv("LISTEN_FDNAMES", "a:b", 1);
}

START_TEST(the_environment_is_read)
{
    struct passed_sockets read;

    unsetenv("LISTEN_PID");
    ck_assert(passed_sockets_read(&read, &why));
    ck_assert_uint_eq(read.count, 0);

    set_environment(NULL, "2");
    ck_assert(passed_sockets_read(&read, &why));
    ck_assert_int_eq(read.first, 3);
    ck_assert_uint_eq(read.count, 2);
    ck_assert_str_eq(read.names, "a:b");

    /* Variables that an ancestor forgot to remove. */
    set_environment("1", "2");
    ck_assert(passed_sockets_read(&read, &why));
    ck_assert_uint_eq(read.count, 0);
}
END_TEST

START_TEST(a_malformed_environment_is_refused)
{
    static const char *const counts[] = {"", "-1", "two", "2 ", "99999999999"};
    struct passed_sockets read;

    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        set_environment(NULL, counts[i]);
        buf_reset(&why);
        ck_assert_msg(!passed_sockets_read(&read, &why), "\"%s\"", counts[i]);
        ck_assert_ptr_nonnull(strstr(buf_str(&why), "LISTEN_FDS"));
    }
    set_environment("me", "1");
    buf_reset(&why);
    ck_assert(!passed_sockets_read(&read, &why));
    ck_assert_ptr_nonnull(strstr(buf_str(&why), "LISTEN_PID"));
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("server/passed_sockets");
    TCase *tc = tcase_create("passed sockets");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, tcp_and_a_local_socket_are_taken);
    tcase_add_test(tc, a_socket_of_both_families_is_both);
    tcase_add_test(tc, two_ports_are_refused);
    tcase_add_test(tc, two_local_sockets_are_refused);
    tcase_add_test(tc, an_abstract_name_is_refused);
    tcase_add_test(tc, a_datagram_socket_is_refused);
    tcase_add_test(tc, a_socket_that_does_not_listen_is_refused);
    tcase_add_test(tc, a_file_is_refused);
    tcase_add_test(tc, a_descriptor_that_is_not_there_is_refused);
    tcase_add_test(tc, more_than_can_be_served_are_refused);
    tcase_add_test(tc, the_environment_is_read);
    tcase_add_test(tc, a_malformed_environment_is_refused);
    suite_add_tcase(suite, tc);
    return suite;
}
