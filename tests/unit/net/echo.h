/*
 * Protocols of the net that are not RPC, and a server that speaks them.
 *
 * Lines, on TCP and AF_UNIX: a line of at most ECHO_LINE bytes comes back as it is, but for these:
 *   body N    N bytes by reference
 *   later X   comes back when echo_answer() says so; on servers of one worker only
 *   hold X    likewise, and until then no further line is taken
 *   last X    likewise, and no line is taken after it: the connection ends
 *   stream N  N times ECHO_CHUNK bytes, each queued when the one before has been written
 * Greetings, on a port of their own: ECHO_BODY bytes before anything is asked; the first byte from
 * the peer ends the input.
 */
#ifndef SUNPROXY_TESTS_UNIT_NET_ECHO_H
#define SUNPROXY_TESTS_UNIT_NET_ECHO_H

#include <stdatomic.h>
#include <sys/queue.h>

#include "net/server.h"
#include "net/worker.h"
#include "tests/unit/net/stream.h"

enum { ECHO_LINE = 4096, ECHO_CHUNK = 10000, ECHO_BODY = 4 << 20 };

struct echo_reply;

struct echo {
    struct net_server *server;
    char *body; /* ECHO_BODY bytes of pattern */
    int port;
    int greeting_port;
    char path[64];
    TAILQ_HEAD(, echo_reply) waiting; /* the worker's */
    struct net_task answer_task;
    atomic_uint lines;
    atomic_uint replies; /* made, and */
    atomic_uint released;
    atomic_uint deferred;
    atomic_uint held; /* times that input was refused for "hold" */
};

extern struct echo echo;

void echo_start(const struct net_limits *limits, unsigned workers);

/* Every reply must have been released then. Returns the connections cut off. */
unsigned echo_stop(int64_t timeout_us);

struct net_stats echo_stats(void);

/* Answers all that is deferred, on the worker. */
void echo_answer(void);

int echo_connect(void);
int echo_connect_unix(void);

void echo_send(int fd, const char *text);

/* Reads exactly that text. */
void echo_expect(int fd, const char *text);

/* Reads `len` bytes of the body from its beginning. */
void echo_expect_body(int fd, size_t len);

/* A line goes and comes. */
void echo_expect_alive(int fd);

#endif
