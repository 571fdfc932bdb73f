/*
 * A peer of the tiny program's server that writes and reads the bytes of the wire by hand.
 */
#ifndef SUNPROXY_TESTS_UNIT_RPC_PEER_H
#define SUNPROXY_TESTS_UNIT_RPC_PEER_H

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/unit/rpc/messages.h"
#include "tests/unit/rpc/tiny.h"

static inline int
peer_connect(const struct tiny *tiny)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    ck_assert_int_ge(fd, 0);
    connect_to_port(fd, tiny->port);
    return fd;
}

static inline int
peer_connect_unix(const struct tiny *tiny)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    ck_assert_int_ge(fd, 0);
    connect_to_path(fd, tiny->path);
    return fd;
}

static inline void
put_call(struct buf *b, uint32_t xid, uint32_t procedure)
{
    put_call_to(b, xid, TINY_PROGRAM, 1, procedure);
}

/* A call with one word of arguments. */
static inline bool
peer_call(int fd, uint32_t xid, uint32_t procedure, uint32_t argument)
{
    struct buf b;

    buf_init(&b, 1u << 20);
    put_call(&b, xid, procedure);
    put_word(&b, argument);
    return peer_send(fd, &b);
}

/* The reply is exactly these words. */
#define EXPECT_WORDS(fd, ...)                                     \
    do {                                                          \
        const uint32_t words_[] = {__VA_ARGS__};                  \
        struct buf reply_;                                        \
        ck_assert(peer_receive(fd, &reply_));                     \
        for (size_t i_ = 0; i_ < sizeof(words_) / 4; i_++)        \
            ck_assert_uint_eq(get_word(&reply_, i_), words_[i_]); \
        ck_assert_uint_eq(reply_.len, sizeof(words_));            \
        buf_free(&reply_);                                        \
    } while (0)

/* Six words: xid, REPLY, MSG_ACCEPTED, verifier AUTH_NONE, accept_stat. */
#define EXPECT_ACCEPTED(fd, xid, ...) EXPECT_WORDS(fd, xid, REPLY, MSG_ACCEPTED, 0, 0, __VA_ARGS__)

/* The reply is a body of n bytes of the pattern. */
static inline void
expect_body(const struct tiny *tiny, int fd, uint32_t xid, uint32_t n)
{
    struct buf reply;

    ck_assert(peer_receive(fd, &reply));
    ck_assert_uint_eq(get_word(&reply, 0), xid);
    ck_assert_uint_eq(get_word(&reply, 5), SUCCESS);
    ck_assert_uint_eq(get_word(&reply, 6), n);
    ck_assert_uint_eq(reply.len, 28 + (((size_t)n + 3) & ~(size_t)3));
    ck_assert(memcmp(reply.data + 28, tiny->body, n) == 0);
    buf_free(&reply);
}

/* A null call, to see that the connection, or the server, lives. */
static inline void
expect_alive(int fd)
{
    struct buf b;

    buf_init(&b, 1024);
    put_call(&b, 4711, TINY_NULL);
    ck_assert(peer_send(fd, &b));
    EXPECT_ACCEPTED(fd, 4711, SUCCESS);
}

static inline void
expect_serving(const struct tiny *tiny)
{
    int fd = peer_connect(tiny);

    expect_alive(fd);
    close(fd);
}

#endif
