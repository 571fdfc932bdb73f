/*
 * A tiny program with procedures that show what the RPC server does, and a server that runs it.
 */
#ifndef SUNPROXY_TESTS_UNIT_RPC_TINY_H
#define SUNPROXY_TESTS_UNIT_RPC_TINY_H

#include <arpa/inet.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rpc/server.h"
#include "tests/unit/net/stream.h"

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
    TINY_WORKER = 12,  /* out: the number of the worker */
    TINY_PEER = 10,    /* out: family, has_uid, uid, pid, kind of client */
    TINY_AT_ONCE = 11, /* deferred, and answered before it returns, with a body of 600 bytes */
};

enum { TINY_MAX_BODY = 24 << 20 };

/* The data of a deferred request, by which it is found again. */
struct tiny_waiting {
    struct tiny_waiting *next;
    unsigned bytes;
    bool fail;
};

/* The tiny program's state; a server's context. Deferred requests are those of one worker. */
struct tiny {
    struct rpc_server *server;
    char *body; /* TINY_MAX_BODY bytes of pattern; static memory */
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
    return xdr_vector(xdr, (char *)words, 5, sizeof(*words), (xdrproc_t)xdr_u_int);
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
    struct tiny_waiting *waiting = rpc_request_data(request);

    ck_assert_uint_eq((uintptr_t)waiting % _Alignof(max_align_t), 0);
    ck_assert_ptr_eq(rpc_request_of_data(waiting), request);
    *waiting = (struct tiny_waiting){tiny->waiting, bytes, fail};
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
        struct rpc_request *request = rpc_request_of_data(waiting);
        struct span body = span_of(tiny->body, waiting->bytes);

        tiny->waiting = waiting->next;
        if (waiting->fail)
            rpc_request_error(request, RPC_ERROR_SYSTEM_ERR);
        else
            rpc_request_reply(request, (xdrproc_t)tiny_xdr_body, &body);
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
    u_int n = 0;
    struct span body;

    switch (req->rq_proc) {
    case TINY_NULL:
        tiny_send(transport, (xdrproc_t)(void (*)(void))xdr_void, NULL);
        return;
    case TINY_ECHO:
        body = rpc_request_arguments(request);
        if (body.len >= 4) {
            memcpy(&n, body.ptr, 4);
            n = ntohl(n);
        }
        if (body.len < 4 || n > 8192 || n > body.len - 4) {
            svcerr_decode(transport);
            return;
        }
        body = span_of(body.ptr + 4, n);
        tiny_send(transport, (xdrproc_t)tiny_xdr_body, &body);
        return;
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
    case TINY_WORKER:
        n = net_worker_number(rpc_request_worker(request));
        tiny_send(transport, (xdrproc_t)xdr_u_int, &n);
        return;
    case TINY_PEER: {
        const struct net_peer *peer = rpc_request_peer(request);
        u_int words[5] = {peer->address.ss_family, peer->has_uid, peer->uid, (u_int)peer->pid,
                          rpc_request_client(request)->key.kind};

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

/* ---- a server -------------------------------------------------------------------------------- */

static inline void
tiny_fill(struct tiny *tiny)
{
    static char pattern[TINY_MAX_BODY];

    if (pattern[1] == 0) /* it has not been made yet */
        for (size_t i = 0; i < TINY_MAX_BODY; i++)
            pattern[i] = (char)(i * 7 + i / 251);
    tiny->body = pattern;
}

/* A running server of the tiny program's versions 1 and 3, on TCP and AF_UNIX. */
static inline void
tiny_start(struct tiny *tiny, const struct rpc_limits *limits, unsigned workers)
{
    static const struct rpc_program programs[] = {{TINY_PROGRAM, 1, tiny_dispatch},
                                                  {TINY_PROGRAM, 3, tiny_dispatch}};

    struct rpc_limits with_data = *limits;

    with_data.request_data = sizeof(struct tiny_waiting);
    memset(tiny, 0, sizeof(*tiny));
    tiny_fill(tiny);
    tiny->server = rpc_server_create(&with_data, workers, programs, 2, tiny);
    ck_assert_ptr_nonnull(tiny->server);
    ck_assert_int_eq(rpc_server_listen(tiny->server, listen_tcp(&tiny->port)), 0);
    snprintf(tiny->path, sizeof(tiny->path), "/tmp/sunproxy-test-%d", (int)getpid());
    ck_assert_int_eq(rpc_server_listen(tiny->server, listen_unix(tiny->path)), 0);
    ck_assert_int_eq(rpc_server_start(tiny->server), 0);
}

/* Stops; all that was held must have been released, once. Returns the connections cut off. */
static inline unsigned
tiny_stop(struct tiny *tiny, int64_t timeout_us)
{
    unsigned cut_off = rpc_server_stop(tiny->server, timeout_us);

    rpc_server_destroy(tiny->server);
    tiny->server = NULL;
    ck_assert_uint_eq(atomic_load(&tiny->released), atomic_load(&tiny->held));
    unlink(tiny->path);
    return cut_off;
}

static inline struct rpc_stats
tiny_stats(struct tiny *tiny)
{
    struct rpc_stats stats;

    rpc_server_get_stats(tiny->server, &stats);
    return stats;
}

#endif
