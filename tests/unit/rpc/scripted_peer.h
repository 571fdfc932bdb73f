/*
 * A server that does byte for byte what a test says: listens on an AF_UNIX socket in a fresh
 * temporary folder, hands calls out as they came, and sends whatever the test gives it. Header
 * only, for the tests of rpc/client.c; everything here runs on the test's own thread, which kernel
 * buffers make possible.
 */
#ifndef SUNPROXY_TESTS_SCRIPTED_PEER_H
#define SUNPROXY_TESTS_SCRIPTED_PEER_H

#include <arpa/inet.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/unit/unit.h"

struct peer {
    char folder[64];
    struct sockaddr_un address;
    int listener;
    int fd; /* the accepted connection */
};

static inline void
peer_listen(struct peer *peer)
{
    *peer = (struct peer){
        .folder = "/tmp/sunproxy-test-XXXXXX", .address = {.sun_family = AF_UNIX}, .fd = -1};
    ck_assert_ptr_nonnull(mkdtemp(peer->folder));
    snprintf(peer->address.sun_path, sizeof(peer->address.sun_path), "%s/s", peer->folder);
    peer->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_ge(peer->listener, 0);
    ck_assert_int_eq(bind(peer->listener, (struct sockaddr *)&peer->address, sizeof(peer->address)),
                     0);
    ck_assert_int_eq(listen(peer->listener, 8), 0);
}

static inline void
peer_accept(struct peer *peer)
{
    struct timeval limit = {.tv_sec = 20}; /* a test that would hang fails */

    peer->fd = accept(peer->listener, NULL, NULL);
    ck_assert_int_ge(peer->fd, 0);
    setsockopt(peer->fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
    setsockopt(peer->fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
}

static inline void
peer_hang_up(struct peer *peer)
{
    if (peer->fd >= 0)
        close(peer->fd);
    peer->fd = -1;
}

static inline void
peer_free(struct peer *peer)
{
    peer_hang_up(peer);
    close(peer->listener);
    unlink(peer->address.sun_path);
    rmdir(peer->folder);
}

static inline void
peer_read(struct peer *peer, void *into, size_t len)
{
    ck_assert_int_eq(recv(peer->fd, into, len, MSG_WAITALL), (ssize_t)len);
}

/* A call as it came: the ten words of its header, and the length of its arguments. */
struct peer_call {
    uint32_t words[10]; /* host order */
    unsigned char args[4096];
    size_t args_len;
};

static inline uint32_t
peer_take_call(struct peer *peer, struct peer_call *call)
{
    uint32_t mark;

    peer_read(peer, &mark, sizeof(mark));
    mark = ntohl(mark);
    ck_assert_uint_ne(mark & 0x80000000, 0);
    mark &= 0x7fffffff;
    ck_assert_uint_ge(mark, sizeof(call->words));
    ck_assert_uint_le(mark, sizeof(call->words) + sizeof(call->args));
    peer_read(peer, call->words, sizeof(call->words));
    for (size_t i = 0; i < 10; i++)
        call->words[i] = ntohl(call->words[i]);
    call->args_len = mark - sizeof(call->words);
    if (call->args_len)
        peer_read(peer, call->args, call->args_len);
    return call->words[0];
}

static inline void
peer_send(struct peer *peer, const void *bytes, size_t len)
{
    ck_assert_int_eq(send(peer->fd, bytes, len, MSG_NOSIGNAL), (ssize_t)len);
}

/* A record in fragments of at most `fragment` bytes, in one piece, as small ones fill a socket. */
static inline void
peer_send_record(struct peer *peer, const void *bytes, size_t len, size_t fragment)
{
    const char *from = bytes;
    char *wire = malloc(len + (len / fragment + 1) * sizeof(uint32_t)), *at = wire;

    ck_assert_ptr_nonnull(wire);
    do {
        size_t piece = len < fragment ? len : fragment;
        uint32_t mark = htonl((uint32_t)piece | (piece == len ? 0x80000000 : 0));

        memcpy(at, &mark, sizeof(mark));
        memcpy(at + sizeof(mark), from, piece);
        at += sizeof(mark) + piece;
        from += piece;
        len -= piece;
    } while (len);
    peer_send(peer, wire, (size_t)(at - wire));
    free(wire);
}

/* A record of words, given in host order. */
static inline void
peer_send_words(struct peer *peer, const uint32_t *words, size_t count, size_t fragment)
{
    uint32_t wire[64];

    ck_assert_uint_le(count, 64);
    for (size_t i = 0; i < count; i++)
        wire[i] = htonl(words[i]);
    peer_send_record(peer, wire, count * sizeof(wire[0]), fragment);
}

#define PEER_SEND_WORDS(peer, ...)                         \
    peer_send_words(peer, (const uint32_t[]){__VA_ARGS__}, \
                    sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t), SIZE_MAX)

#endif
