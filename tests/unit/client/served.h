/*
 * A server on a thread of its own that answers every call of the protocol, and from a given call on
 * fails in a given way: for commands that are run inside a test. It listens on an AF_UNIX socket.
 */
#ifndef SUNPROXY_TESTS_UNIT_CLIENT_SERVED_H
#define SUNPROXY_TESTS_UNIT_CLIENT_SERVED_H

#include "proxy.h"
#include "tests/unit/client/local_server.h"

/* How it fails. */
enum served_fault {
    SERVED_WELL,
    SERVED_REFUSED,      /* version 2's results with PROXY_DENIED */
    SERVED_PROG_UNAVAIL, /* RPC errors, RFC 5531 section 9 */
    SERVED_PROG_MISMATCH,
    SERVED_PROC_UNAVAIL,
    SERVED_GARBAGE_ARGS,
    SERVED_SYSTEM_ERR,
    SERVED_AUTH_ERROR,
    SERVED_CUT_SHORT, /* a reply without results */
    SERVED_SILENT,    /* no answer, the connection stays open */
    SERVED_HANGS_UP,  /* no answer, the connection is closed */
    SERVED_GOES,      /* as SERVED_CUT_SHORT, and the socket is gone before */
};

struct served {
    /* Given before served_start(). */
    const char *folder; /* has the socket as "s" */
    enum served_fault fault;
    unsigned from;  /* the first call that fails, from 0; calls are counted over all connections */
    unsigned count; /* how many do; 0: all from there on */

    struct local_server server;
    unsigned calls; /* the thread's own */
};

/*
 * A page of the URL http://h/PATH has PATH as its body; its source, and what was evicted for it,
 * follow from the path: /hit, /coalesced, /bypass, /stale, /victim. /404 has that status, /moved
 * came from another URL, /fail is PROXY_RESOLVE_FAILED.
 */
void served_start(struct served *served);
void served_stop(struct served *served);

#endif
