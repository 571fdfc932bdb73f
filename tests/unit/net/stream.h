/*
 * Sockets of tests: listening ones, and the peers' blocking reads and writes. Each wait is bounded
 * by PATIENCE_MS, and fails the test then.
 */
#ifndef SUNPROXY_TESTS_UNIT_NET_STREAM_H
#define SUNPROXY_TESTS_UNIT_NET_STREAM_H

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "tests/unit/unit.h"

#define PATIENCE_MS 20000

/*
 * For workers, where Check's assertions are out of place, and for torture, which must not meet the
 * allocations that those make.
 */
#define REQUIRE(condition)                                                          \
    do {                                                                            \
        if (!(condition)) {                                                         \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
            abort();                                                                \
        }                                                                           \
    } while (0)

/* Waits for a condition that another thread brings about. */
#define AWAIT(condition)                                                             \
    do {                                                                             \
        int64_t until_ = clock_monotonic_us() + (int64_t)PATIENCE_MS * 1000;         \
        while (!(condition)) {                                                       \
            ck_assert_msg(clock_monotonic_us() < until_, "in vain: %s", #condition); \
            usleep(1000);                                                            \
        }                                                                            \
    } while (0)

/* On a free port of the loopback, which goes to *port. */
static inline int
listen_tcp(int *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t len = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    ck_assert_int_eq(listen(fd, 1024), 0);
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&address, &len), 0);
    *port = ntohs(address.sin_port);
    return fd;
}

static inline void
fill_unix_address(struct sockaddr_un *address, const char *path)
{
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    ck_assert_uint_lt(strlen(path), sizeof(address->sun_path));
    memcpy(address->sun_path, path, strlen(path));
}

/* Replaces what stands at that path. */
static inline int
listen_unix(const char *path)
{
    struct sockaddr_un address;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    fill_unix_address(&address, path);
    unlink(path);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    ck_assert_int_eq(listen(fd, 16), 0);
    return fd;
}

static inline void
connect_to_port(int fd, int port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
}

static inline void
connect_to_path(int fd, const char *path)
{
    struct sockaddr_un address;

    fill_unix_address(&address, path);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
}

/* Writes all of it; false when the connection is lost. */
static inline bool
peer_write(int fd, const void *bytes, size_t len)
{
    const char *at = bytes;

    while (len) {
        struct pollfd p = {.fd = fd, .events = POLLOUT};
        ssize_t n;

        ck_assert_int_eq(poll(&p, 1, PATIENCE_MS), 1);
        n = send(fd, at, len, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            continue;
        if (n < 0)
            return false;
        at += n;
        len -= (size_t)n;
    }
    return true;
}

/* Reads that many bytes; false at the end of the stream or when it is reset. */
static inline bool
peer_read(int fd, void *bytes, size_t len)
{
    char *at = bytes;

    while (len) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        ssize_t n;

        ck_assert_int_eq(poll(&p, 1, PATIENCE_MS), 1);
        n = recv(fd, at, len, 0);
        if (n <= 0)
            return false;
        at += n;
        len -= (size_t)n;
    }
    return true;
}

/* Waits for bytes and copies what has come, which stays to be read. 0 at the end. */
static inline size_t
peer_peek(int fd, void *bytes, size_t size)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    ssize_t n;

    ck_assert_int_eq(poll(&p, 1, PATIENCE_MS), 1);
    n = recv(fd, bytes, size, MSG_PEEK);
    return n > 0 ? (size_t)n : 0;
}

/* The server has closed: whatever is still to be read, then the end. */
static inline bool
peer_is_cut(int fd)
{
    char c;

    while (peer_read(fd, &c, 1))
        ;
    return true;
}

#endif
