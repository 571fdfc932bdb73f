/*
 * Connections: bytes in, messages to a protocol (protocol.h); output (output.h), as far as the
 * kernel takes it; and the bounds that hold the one back while the other is stuck.
 *
 * A connection belongs to one worker for life and is touched by that worker's thread alone, so that
 * nothing of it is locked. Nothing is sent and no connection is freed while a protocol runs. A
 * change of a connection marks it (net_connection_mark()), and each callback of the loop ends with
 * net_connections_settle(), which writes what is queued on the marked connections, in one system
 * call each, and frees those that are over. The poller calls it for each group of connections that
 * are ready.
 */
#ifndef SUNPROXY_NET_CONNECTION_H
#define SUNPROXY_NET_CONNECTION_H

#include <stdatomic.h>
#include <sys/queue.h>

#include "base/span.h"
#include "net/admission.h"
#include "net/backlog.h"
#include "net/counter.h"
#include "net/limits.h"
#include "net/output.h"
#include "net/poller.h"
#include "net/throttle.h"
#include "net/worker.h"

struct net_protocol;

enum { NET_SCRATCH = 65536 /* bytes read at once */ };

struct net_connection {
    struct net_watch watch; /* first */
    struct net_connections *set;
    const struct net_protocol *protocol;
    void *context;                       /* the protocol's, of the listener */
    TAILQ_ENTRY(net_connection) link;    /* the set's: open ones by activity, or the closed */
    TAILQ_ENTRY(net_connection) partial; /* the set's: with a message begun, or lingering */
    STAILQ_ENTRY(net_connection) mark;   /* the set's, for net_connections_settle() */
    int fd;                              /* -1 when closed */
    bool marked;
    bool in_partial;
    bool paused;       /* over a bound, or held: not read */
    bool held;         /* the protocol takes no input (NET_INPUT_HOLD) */
    bool reading;      /* input is watched for */
    bool writing;      /* the kernel takes no more: its space is watched for */
    bool ended;        /* the peer has shut down its side, or has gone */
    bool finished;     /* nothing more is read: close once all is answered */
    bool lingering;    /* all is answered and shut down: close once the peer has it */
    bool unread;       /* a part of a message is not read: linger until the peer ends its side */
    bool resets;       /* its close resets the connection */
    bool bounded;      /* open, and counted for the client, whose rates hold for it */
    bool beside;       /* lingering, and counted for the client beside its bound */
    unsigned requests; /* in work or in the queue */
    unsigned deferred; /* of those, answered later */
    unsigned kept;     /* answered requests that stay; the object stays as long */
    int64_t active_us;
    int64_t listed_us; /* when it was put at the end of its set's list: little before active_us */
    int64_t read_us;   /* when the latest bytes were read, or taken out of the backlog */
    int64_t partial_since_us; /* or lingering */
    uint64_t discarded;       /* bytes, while lingering */
    struct net_output_queue out;
    struct net_backlog backlog;
    struct net_task adopt;
    struct net_peer peer;
    struct client *client;         /* a reference */
    struct net_throttle *throttle; /* owned; NULL: none */
};

TAILQ_HEAD(net_connection_list, net_connection);

/* What connections ask of the owner of their set; all called on the worker. */
struct net_connections_hooks {
    /* Frees memory for messages by closing another connection than `but`; false if it cannot. */
    bool (*free_memory)(void *owner, const struct net_connection *but);
    /* The last connection has been closed. */
    void (*emptied)(void *owner);
    /* Connections are scarce: has net_connections_close_lingering() called. [worker 0] */
    void (*close_lingering)(void *owner);
};

/* The connections of one worker. */
struct net_connections {
    struct net_worker *worker;
    const struct net_limits *limits;
    struct net_admission *admission;
    const struct net_connections_hooks *hooks;
    void *owner;
    struct net_connection_list open;      /* least recently active first, by listed_us */
    struct net_connection_list closed;    /* with requests still to be answered */
    struct net_connection_list partial;   /* message begun longest ago first */
    struct net_connection_list lingering; /* likewise by shutdown */
    STAILQ_HEAD(, net_connection) marked;
    struct net_poller poller;
    int64_t short_us; /* when a short output was queued last */
    int64_t list_us;  /* how much later than listed_us active_us may be */
    bool draining;    /* new connections are closed at once */
    bool leaving;     /* messages are still taken: each may be the last one */
    struct iovec pieces[NET_SEND_PIECES];

    /* Written by the worker alone, read on any thread. */
    net_counter timed_out;
    net_counter bytes_in;
    net_counter bytes_out;

    char scratch[NET_SCRATCH] __attribute__((aligned(8)));

    atomic_uint count; /* assigned by the acceptor, and not yet closed; shared */
};

/* ---- for protocols --------------------------------------------------------------------------- */

/* Queues output; the connection must be open. The client's rate is charged for it. */
void net_connection_send(struct net_connection *connection, struct net_output *output);

/* The client with this address: a reference, or NULL without memory. */
struct client *net_connection_find_client(struct net_connection *connection,
                                          const struct sockaddr *address);

/*
 * The client for which the peer has connected (net_protocol.for_others), whose reference is the
 * connection's from now on; if `bounded`, its bounds and rates hold. False if it is NULL, has as
 * many connections as it may, or without memory: the protocol ends the connection.
 */
bool net_connection_set_client(struct net_connection *connection, struct client *client,
                               bool bounded);

/* Has the connection looked at before the worker sleeps. */
void net_connection_mark(struct net_connection *connection);

/* Input that the protocol held (NET_INPUT_HOLD) can be taken: received() is called before the
 * worker sleeps. Harmless without a hold. */
void net_connection_release_input(struct net_connection *connection);

static inline bool
net_connection_is_open(const struct net_connection *connection)
{
    return connection->fd >= 0;
}

/* A message is in work from here to net_connection_end_request(), which stands in the release of
 * its output. Meanwhile the connection's object stays. */
static inline void
net_connection_begin_request(struct net_connection *connection)
{
    connection->requests++;
}

static inline void
net_connection_end_request(struct net_connection *connection)
{
    connection->requests--;
}

/* A request will be answered later: the connection is not idle until then. */
static inline void
net_connection_defer_request(struct net_connection *connection)
{
    connection->deferred++;
}

/* Its answer is there. */
static inline void
net_connection_resume_request(struct net_connection *connection)
{
    connection->deferred--;
    net_connection_mark(connection);
}

/* A request stays after its answer, whether or not it is still counted as in work. */
static inline void
net_connection_keep_request(struct net_connection *connection)
{
    connection->kept++;
}

/* It does not any more. */
static inline void
net_connection_unkeep_request(struct net_connection *connection)
{
    connection->kept--;
    net_connection_mark(connection);
}

/* ---- a connection's life --------------------------------------------------------------------- */

/* Wraps a connected, non-blocking socket, for a worker to adopt. NULL if there is no memory: the
 * descriptor is the caller's then. [any] */
struct net_connection *net_connection_create(struct net_connections *set, int fd,
                                             const struct net_peer *peer,
                                             const struct net_protocol *protocol, void *context);

/* The worker takes the connection up; also by the task `adopt`. */
void net_connection_adopt(struct net_connection *connection);

/* Closes at once; the object stays until its last request has gone. */
void net_connection_close(struct net_connection *connection);

/*
 * Its close resets the connection from now on, so that the peer does not take the end for that of a
 * whole message.
 */
void net_connection_set_reset(struct net_connection *connection);

/*
 * A part of a message is not read, which its peer may still send. Closing resets the connection
 * then, and a peer that is sending may give up before it reads the answer. So the connection
 * lingers until the peer has ended its side (RFC 9112 section 9.6).
 */
static inline void
net_connection_set_unread(struct net_connection *connection)
{
    connection->unread = true;
}

/* Closes, and counts it as timed out. */
void net_connection_time_out(struct net_connection *connection);

/*
 * Reads no more; closes once all is answered and written, at once if that is so. A protocol may
 * call it while a request of the connection is in work.
 */
void net_connection_finish(struct net_connection *connection);

/*
 * Closes a lingering connection once its peer has all that was sent, and has ended its side if a
 * part of a message is not read; or after five seconds. Called for the end of the peer's side when
 * that comes, and at times. What the peer still sends is discarded; after 16 MiB of it, only at
 * those times.
 */
void net_connection_check_lingering(struct net_connection *connection);

/*
 * A message is begun: its time runs from the first call on, and ends with the message. A protocol
 * calls it in opened() if the time of the first message begins before its first byte.
 */
void net_connection_begin_partial(struct net_connection *connection);

/* The time of a message that is begun runs anew, if there is one: the net did not read it, or the
 * protocol has got as much of it as it demands in that time. */
void net_connection_excuse(struct net_connection *connection);

/*
 * Is the rest of its message not read because of the net alone: its client's rate, or requests in
 * work, and no output that the peer has yet to read?
 */
bool net_connection_waits_for_us(const struct net_connection *connection);

/* Puts it at the end of its set's list, as active at active_us, the latest of all. */
void net_connection_list(struct net_connection *connection);

/* ---- the set --------------------------------------------------------------------------------- */

/* All parameters must stay. False with errno. */
bool net_connections_init(struct net_connections *set, struct net_worker *worker,
                          const struct net_limits *limits, struct net_admission *admission,
                          const struct net_connections_hooks *hooks, void *owner);

/* Other limits, which must stay; memory and prefixes are the same. */
void net_connections_set_limits(struct net_connections *set, const struct net_limits *limits);

/* Looks at every marked connection; the end of every callback of the loop. */
void net_connections_settle(struct net_connections *set);

/* Closes the half of the lingering connections, rounded up, that have lingered longest. Their input
 * is discarded, up to 1 MiB of each, and the kernel still sends what it has of their output; but
 * input that comes later resets them. */
void net_connections_close_lingering(struct net_connections *set);

/* Closes and frees all, requests that have no answer included. The worker's thread must not run. */
void net_connections_free(struct net_connections *set);

#endif
