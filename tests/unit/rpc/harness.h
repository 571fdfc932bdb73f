/*
 * What the tests of the RPC server share: a tiny program with procedures that show what the
 * transport does, a server that runs it, and a peer that writes and reads the bytes of the wire by
 * hand.
 *
 * Everything waits PATIENCE_MS at most, and fails the test then.
 */
#ifndef SUNPROXY_TESTS_UNIT_RPC_HARNESS_H
#define SUNPROXY_TESTS_UNIT_RPC_HARNESS_H

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "rpc/server.h"
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

#define TINY_PROGRAM 0x20000777u

enum tiny_procedure {
    TINY_NULL = 0,
    TINY_ECHO = 1,     /* opaque<8192> in and out; nothing held, so it is copied */
    TINY_BODY = 2,     /* unsigned n in; out: opaque<> of n bytes, held */
    TINY_DEFER = 3,    /* unsigned n in; answered by TINY_ANSWER with a body of n bytes */
    TINY_ANSWER = 4,   /* answers all that is deferred, the latest first; out: how many that were */
    TINY_SILENT = 5,   /* returns without an answer */
    TINY_FAIL = 6,     /* SYSTEM_ERR */
    TINY_UID = 7,      /* out: what AUTH_SYS says */
    TINY_BROKEN = 8,   /* a result that cannot be encoded */
    TINY_LATER = 9,    /* deferred, and answered with SYSTEM_ERR by TINY_ANSWER */
    TINY_PEER = 10,    /* out: family, has_uid, uid, pid */
    TINY_AT_ONCE = 11, /* deferred, and answered before it returns, with a body of 600 bytes */
};

enum { TINY_MAX_BODY = 24 << 20 };

struct tiny_waiting {
    struct tiny_waiting *next;
    struct rpc_request *request;
    unsigned bytes;
    bool fail;
};

/* The tiny program's state; a server's context. Deferred requests are those of one worker. */
struct tiny {
    struct rpc_server *server;
    char *body; /* TINY_MAX_BODY bytes of pattern */
    struct tiny_waiting *waiting;
    atomic_uint held;
    atomic_uint released;
    atomic_uint deferred;
    int port;
    char path[64]; /* of the AF_UNIX socket */
};

static inline void
tiny_release(void *held)
{
    struct tiny *tiny = held;

    atomic_fetch_add(&tiny->released, 1);
}

static inline bool_t
tiny_xdr_body(XDR *xdr, struct span *body)
{
    char *bytes = (char *)(uintptr_t)body->ptr;
    u_int len = (u_int)body->len;

    return xdr_bytes(xdr, &bytes, &len, TINY_MAX_BODY);
}

static inline bool_t
tiny_xdr_words(XDR *xdr, u_int *words)
{
    return xdr_vector(xdr, (char *)words, 4, sizeof(*words), (xdrproc_t)xdr_u_int);
}

static inline bool_t
tiny_xdr_broken(XDR *xdr, struct span *body)
{
    return tiny_xdr_body(xdr, body) && FALSE;
}

static inline void
tiny_hold(struct tiny *tiny, struct rpc_request *request)
{
    atomic_fetch_add(&tiny->held, 1);
    rpc_request_hold(request, tiny_release, tiny);
}

static inline void
tiny_defer(struct tiny *tiny, struct rpc_request *request, unsigned bytes, bool fail)
{
    struct tiny_waiting *waiting = malloc(sizeof(*waiting));

    if (!waiting) {
        rpc_request_error(request, RPC_ERROR_SYSTEM_ERR);
        return;
    }
    *waiting = (struct tiny_waiting){tiny->waiting, request, bytes, fail};
    tiny->waiting = waiting;
    tiny_hold(tiny, request);
    rpc_request_defer(request);
    atomic_fetch_add(&tiny->deferred, 1);
}

static inline unsigned
tiny_answer(struct tiny *tiny)
{
    unsigned answered = 0;

    while (tiny->waiting) {
        struct tiny_waiting *waiting = tiny->waiting;
        struct span body = span_of(tiny->body, waiting->bytes);

        tiny->waiting = waiting->next;
        if (waiting->fail)
            rpc_request_error(waiting->request, RPC_ERROR_SYSTEM_ERR);
        else
            rpc_request_reply(waiting->request, (xdrproc_t)tiny_xdr_body, &body);
        free(waiting);
        answered++;
    }
    return answered;
}

/* As rpcgen's dispatchers do it. */
static inline void
tiny_send(SVCXPRT *transport, xdrproc_t encode, void *result)
{
    if (!svc_sendreply(transport, encode, result))
        svcerr_systemerr(transport);
}

static inline void
tiny_dispatch(struct svc_req *req, SVCXPRT *transport)
{
    struct rpc_request *request = rpc_request_of(transport);
    struct tiny *tiny = rpc_request_context(request);
    char echo[8192], *bytes = echo;
    u_int n = 0;
    struct span body;

    switch (req->rq_proc) {
    case TINY_NULL:
        tiny_send(transport, (xdrproc_t)(void (*)(void))xdr_void, NULL);
        return;
    case TINY_ECHO: {
        XDR xdr;
        struct span arguments = rpc_request_arguments(request);

        xdrmem_create(&xdr, (char *)(uintptr_t)arguments.ptr, (u_int)arguments.len, XDR_DECODE);
        if (!xdr_bytes(&xdr, &bytes, &n, sizeof(echo))) {
            svcerr_decode(transport);
            return;
        }
        body = span_of(bytes, n);
        tiny_send(transport, (xdrproc_t)tiny_xdr_body, &body);
        return;
    }
    case TINY_BODY:
    case TINY_DEFER:
        if (!svc_getargs(transport, (xdrproc_t)xdr_u_int, &n) || n > TINY_MAX_BODY) {
            svcerr_decode(transport);
            return;
        }
        if (req->rq_proc == TINY_DEFER) {
            tiny_defer(tiny, request, n, false);
            return;
        }
        body = span_of(tiny->body, n);
        tiny_hold(tiny, request);
        tiny_send(transport, (xdrproc_t)tiny_xdr_body, &body);
        return;
    case TINY_LATER:
        tiny_defer(tiny, request, 0, true);
        return;
    case TINY_ANSWER:
        n = tiny_answer(tiny);
        tiny_send(transport, (xdrproc_t)xdr_u_int, &n);
        return;
    case TINY_SILENT:
        tiny_hold(tiny, request);
        return;
    case TINY_FAIL:
        rpc_request_error(request, RPC_ERROR_SYSTEM_ERR);
        return;
    case TINY_UID:
        n = req->rq_clntcred ? (u_int)((struct authunix_parms *)req->rq_clntcred)->aup_uid : 0;
        tiny_send(transport, (xdrproc_t)xdr_u_int, &n);
        return;
    case TINY_PEER: {
        const struct rpc_peer *peer = rpc_request_peer(request);
        u_int words[4] = {peer->address.ss_family, peer->has_uid, peer->uid, (u_int)peer->pid};

        REQUIRE(svc_getrpccaller(transport)->buf == &peer->address);
        tiny_send(transport, (xdrproc_t)tiny_xdr_words, words);
        return;
    }
    case TINY_AT_ONCE:
        tiny_hold(tiny, request);
        rpc_request_defer(request);
        body = span_of(tiny->body, 600);
        rpc_request_reply(request, (xdrproc_t)tiny_xdr_body, &body);
        return;
    case TINY_BROKEN:
        body = span_of(tiny->body, 4096);
        tiny_hold(tiny, request);
        tiny_send(transport, (xdrproc_t)tiny_xdr_broken, &body);
        return;
    default:
        svcerr_noproc(transport);
        return;
    }
}

/* ---- a server ----------------------------------------------------------------------------------
 */

static inline int
tiny_listen_tcp(int *port)
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
tiny_fill(struct tiny *tiny)
{
    tiny->body = malloc(TINY_MAX_BODY);
    ck_assert_ptr_nonnull(tiny->body);
    for (size_t i = 0; i < TINY_MAX_BODY; i++)
        tiny->body[i] = (char)(i * 7 + i / 251);
}

/* A running server of the tiny program's versions 1 and 3, on TCP and AF_UNIX. */
static inline void
tiny_start(struct tiny *tiny, const struct rpc_limits *limits, unsigned workers)
{
    static const struct rpc_program programs[] = {{TINY_PROGRAM, 1, tiny_dispatch},
                                                  {TINY_PROGRAM, 3, tiny_dispatch}};
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd;

    memset(tiny, 0, sizeof(*tiny));
    tiny_fill(tiny);
    tiny->server = rpc_server_create(limits, workers, programs, 2, tiny);
    ck_assert_ptr_nonnull(tiny->server);
    ck_assert_int_eq(rpc_server_listen(tiny->server, tiny_listen_tcp(&tiny->port)), 0);
    snprintf(tiny->path, sizeof(tiny->path), "/tmp/sunproxy-test-%d", (int)getpid());
    memcpy(address.sun_path, tiny->path, sizeof(tiny->path));
    unlink(tiny->path);
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    ck_assert_int_eq(listen(fd, 16), 0);
    ck_assert_int_eq(rpc_server_listen(tiny->server, fd), 0);
    ck_assert_int_eq(rpc_server_start(tiny->server), 0);
}

/* Stops; all that was held must have been released, once. Returns the connections cut off. */
static inline unsigned
tiny_stop(struct tiny *tiny, int64_t timeout_us)
{
    unsigned cut_off = rpc_server_stop(tiny->server, timeout_us);

    rpc_server_destroy(tiny->server);
    tiny->server = NULL;
    while (tiny->waiting) {
        struct tiny_waiting *next = tiny->waiting->next;

        free(tiny->waiting);
        tiny->waiting = next;
    }
    ck_assert_uint_eq(atomic_load(&tiny->released), atomic_load(&tiny->held));
    unlink(tiny->path);
    free(tiny->body);
    return cut_off;
}

static inline struct rpc_stats
tiny_stats(struct tiny *tiny)
{
    struct rpc_stats stats;

    rpc_server_get_stats(tiny->server, &stats);
    return stats;
}

/* Waits for a condition that another thread brings about. */
#define AWAIT(condition)                                                             \
    do {                                                                             \
        int64_t until_ = clock_monotonic_us() + (int64_t)PATIENCE_MS * 1000;         \
        while (!(condition)) {                                                       \
            ck_assert_msg(clock_monotonic_us() < until_, "in vain: %s", #condition); \
            usleep(1000);                                                            \
        }                                                                            \
    } while (0)

/* ---- a peer ------------------------------------------------------------------------------------
 */

static inline int
peer_connect(const struct tiny *tiny)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)tiny->port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    return fd;
}

static inline int
peer_connect_unix(const struct tiny *tiny)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    memcpy(address.sun_path, tiny->path, sizeof(tiny->path));
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    return fd;
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

/* The server has closed: whatever is still to be read, then the end. */
static inline bool
peer_is_cut(int fd)
{
    char c;

    while (peer_read(fd, &c, 1))
        ;
    return true;
}

static inline void
put_word(struct buf *b, uint32_t value)
{
    value = htonl(value);
    ck_assert(buf_append(b, &value, sizeof(value)));
}

/* A call message with AUTH_NONE, without a record mark; arguments are to be appended. */
static inline void
put_call_to(struct buf *b, uint32_t xid, uint32_t program, uint32_t version, uint32_t procedure)
{
    const uint32_t words[] = {xid, CALL, 2, program, version, procedure, 0, 0, 0, 0};

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        put_word(b, words[i]);
}

static inline void
put_call(struct buf *b, uint32_t xid, uint32_t procedure)
{
    put_call_to(b, xid, TINY_PROGRAM, 1, procedure);
}

/* Sends it as a record of one fragment, and empties it. */
static inline bool
peer_send(int fd, struct buf *message)
{
    struct buf record;
    bool sent;

    buf_init(&record, 1u << 30);
    put_word(&record, 0x80000000u | (uint32_t)message->len);
    ck_assert(buf_append(&record, message->data, message->len));
    sent = peer_write(fd, record.data, record.len);
    buf_free(&record);
    buf_free(message);
    return sent;
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

/* Reads a record, which must be one fragment; false when there is none. To be freed by buf_free().
 */
static inline bool
peer_receive(int fd, struct buf *record)
{
    uint32_t mark;

    buf_init(record, 1u << 30);
    if (!peer_read(fd, &mark, sizeof(mark)))
        return false;
    mark = ntohl(mark);
    ck_assert_uint_ne(mark & 0x80000000u, 0);
    mark &= 0x7fffffffu;
    record->data = malloc(mark + 1);
    ck_assert_ptr_nonnull(record->data);
    record->room = mark + 1;
    record->len = mark;
    record->data[mark] = 0;
    return peer_read(fd, record->data, mark);
}

static inline uint32_t
get_word(const struct buf *b, size_t index)
{
    uint32_t value;

    REQUIRE(b->len >= (index + 1) * sizeof(value));
    memcpy(&value, b->data + index * sizeof(value), sizeof(value));
    return ntohl(value);
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
