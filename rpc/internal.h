/*
 * What the files of the RPC server share. Nothing outside rpc/ and its tests includes this.
 *
 * Who owns what: a server owns its workers, a worker its connections, a connection its requests
 * that are not answered (a list) or answered and not yet written (a queue). All of it is touched by
 * the worker's thread alone, but for what is marked "shared".
 *
 * Nothing is sent and no connection is freed while a procedure runs. Whoever changes a connection
 * marks it (rpc_connection_mark()); every callback of the loop ends with rpc_worker_settle(), which
 * writes what is queued on the marked connections, in one system call each, and frees the dead.
 */
#ifndef SUNPROXY_RPC_INTERNAL_H
#define SUNPROXY_RPC_INTERNAL_H

#include <arpa/inet.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/uio.h>

#include "rpc/server.h"

enum {
    RPC_SCRATCH = 65536,      /* bytes read at once */
    RPC_BY_REFERENCE = 512,   /* a byte run this long is sent from where it stands */
    RPC_REPLY_BUFFER = 1024,  /* bytes of a reply that cost no allocation */
    RPC_REPLY_PIECES = 6,     /* likewise, pieces */
    RPC_SEND_PIECES = 128,    /* given to the kernel at once */
    RPC_POOLED_REQUESTS = 256 /* kept by a worker for reuse */
};

static inline uint32_t
rpc_load_u32(const void *from)
{
    uint32_t value;

    memcpy(&value, from, sizeof(value));
    return ntohl(value);
}

static inline void
rpc_store_u32(void *to, uint32_t value)
{
    value = htonl(value);
    memcpy(to, &value, sizeof(value));
}

/* ---- streams of our own: decode.c, gather.c -------------------------------------------------- */

/* XDR streams both ways: the position is x_private, what is left of bytes or room there x_handy. */
static inline void
rpc_stream_advance(XDR *xdr, u_int len)
{
    xdr->x_private = (char *)xdr->x_private + len;
    xdr->x_handy -= len;
}

/* Passes over `len` bytes that are to be read or written in place; NULL where they cannot be. */
int32_t *rpc_stream_inline(XDR *xdr, u_int len);

/* ---- records: record.c ----------------------------------------------------------------------- */

/* A record that arrives in pieces (RFC 5531, section 11). All zero is the empty state. */
struct rpc_record {
    char *data; /* what has come so far, without the fragment headers; NULL when nothing has */
    uint32_t len;
    uint32_t room;
    uint32_t remaining; /* bytes of the current fragment still to come */
    uint32_t fragments; /* headers seen */
    unsigned char header[4];
    unsigned char header_len;      /* bytes of a header that came in part */
    bool begun;                    /* a byte of this record has come */
    bool last;                     /* the current fragment is the record's last */
    struct memory_account *memory; /* charged for the room */
};

enum rpc_record_status {
    RPC_RECORD_MORE,     /* all input is consumed, the record is not whole */
    RPC_RECORD_COMPLETE, /* *record is whole; input is what follows it */
    RPC_RECORD_BAD,      /* over a bound: the stream cannot be trusted any further */
    RPC_RECORD_NO_ROOM,  /* the account is used up: as RPC_RECORD_MORE, but input is left */
    RPC_RECORD_NO_MEMORY
};

/*
 * Consumes bytes of the stream from *input until a record is whole. A record that stands in the
 * input in one piece is returned in place, otherwise it is collected; memory grows with the bytes
 * that have come, never with those announced. *record is valid as long as the input and until
 * rpc_record_reset(), which must be called before the next record is fed.
 */
enum rpc_record_status rpc_record_feed(struct rpc_record *r, const struct rpc_limits *limits,
                                       struct span *input, struct span *record);

/* Back to the empty state; frees. */
void rpc_record_reset(struct rpc_record *r);

/* ---- calls: call.c --------------------------------------------------------------------------- */

/* AUTH_SYS credentials, cooked (RFC 5531, appendix A), as svc_req's rq_clntcred gives them. */
struct rpc_cooked {
    struct authunix_parms parms;
    char machine[256];
    gid_t gids[16];
};

struct rpc_call {
    uint32_t xid;
    uint32_t program;
    uint32_t version;
    uint32_t procedure;
    struct opaque_auth credential; /* points into the record */
    bool cooked;                   /* AUTH_SYS: the caller's rpc_cooked is filled in */
    struct span arguments;         /* points into the record */
};

enum rpc_call_status {
    RPC_CALL_OK,
    RPC_CALL_NONE,         /* no call, or cut off in its header: nobody to answer */
    RPC_CALL_RPCVERS,      /* answer RPC_MISMATCH */
    RPC_CALL_BAD_CRED,     /* answer AUTH_ERROR: AUTH_BADCRED, */
    RPC_CALL_BAD_VERF,     /* AUTH_BADVERF, */
    RPC_CALL_REJECTED_CRED /* AUTH_REJECTEDCRED */
};

/* Parses the header of a call message. xid is set for every status but RPC_CALL_NONE. */
enum rpc_call_status rpc_call_parse(struct span record, struct rpc_call *call,
                                    struct rpc_cooked *cooked);

/* ---- replies: gather.c ----------------------------------------------------------------------- */

struct rpc_chunk;

/*
 * An encoded reply: pieces that are sent one after the other, small ones copied into the buffer
 * (and into chunks when that is full), long byte runs by reference.
 */
struct rpc_reply {
    struct iovec *pieces; /* inline_pieces, or allocated */
    unsigned count;
    unsigned room;
    unsigned sent;  /* pieces written whole; the first after them may be cut short in place */
    size_t len;     /* bytes of all pieces, the record mark included */
    size_t charged; /* for pieces and chunks that were allocated */
    struct memory_account *memory; /* to this account; or NULL */
    struct rpc_chunk *chunks;
    struct iovec inline_pieces[RPC_REPLY_PIECES];
    char buffer[RPC_REPLY_BUFFER] __attribute__((aligned(8)));
};

/* An XDR stream that encodes into a reply. */
struct rpc_gather {
    XDR xdr; /* first, so that the stream's operations find the rest */
    struct rpc_reply *reply;
    char *segment; /* where the open piece begins; it ends at the stream's position */
    size_t closed; /* bytes of the pieces before it */
    bool by_reference;
};

/* Begins a reply, room for the record mark left; the reply's former content must have been freed.
 */
void rpc_gather_begin(struct rpc_gather *gather, struct rpc_reply *reply, bool by_reference);

/* Ends it and writes the record mark; false if memory has failed or it is too long for a record. */
bool rpc_gather_end(struct rpc_gather *gather);

void rpc_reply_init(struct rpc_reply *reply, struct memory_account *memory);
void rpc_reply_free(struct rpc_reply *reply);

/* ---- decoding: decode.c ---------------------------------------------------------------------- */

/*
 * An XDR stream that decodes bytes where they stand, which must stay. Unlike xdrmem_create()'s it
 * writes nowhere but to where it is told, and so may be used on several threads at once.
 */
void rpc_decode_begin(XDR *xdr, struct span bytes);

/* ---- requests: request.c --------------------------------------------------------------------- */

struct rpc_request {
    SVCXPRT transport; /* first: rpc_request_of() */
    struct rpc_connection *connection;
    union {
        LIST_ENTRY(rpc_request) link;    /* deferred: the connection's */
        STAILQ_ENTRY(rpc_request) queue; /* answered: the connection's */
        SLIST_ENTRY(rpc_request) free;   /* the worker's pool */
    };
    void (*release)(void *held);
    void *held;
    struct span arguments;
    int64_t arrived_us;
    int64_t queued_us; /* when it was answered */
    uint32_t xid;
    unsigned references; /* the dispatcher's, and the answer's */
    bool deferred;
    bool answered;
    bool charged; /* to the account: it is one of many of its worker */
    struct rpc_reply reply;
};

/* Dispatches a record; false when the connection is to be read no further. */
bool rpc_request_take(struct rpc_connection *connection, struct span record);

/* Drops a reference; the last one releases what is held. */
void rpc_request_unref(struct rpc_request *request);

/* ---- connections: connection.c --------------------------------------------------------------- */

struct rpc_connection {
    struct rpc_worker *worker;
    TAILQ_ENTRY(rpc_connection) link;    /* the worker's: open ones by activity, or the closed */
    TAILQ_ENTRY(rpc_connection) partial; /* the worker's: with a record begun, or lingering */
    STAILQ_ENTRY(rpc_connection) mark;   /* the worker's, to be looked at before it sleeps */
    int fd;                              /* -1 when closed */
    bool marked;
    bool in_partial;
    bool paused;       /* over a bound: not read */
    bool writing;      /* the kernel takes no more: waiting for write_event */
    bool finished;     /* the peer sends no more, or we read no more: close once all is answered */
    bool lingering;    /* all is answered and shut down: close once the peer has it */
    uint32_t epoch;    /* of the worker's tick when last moved in its list */
    unsigned requests; /* not yet gone */
    unsigned deferred; /* of those, not yet answered */
    size_t queued;     /* bytes of replies not yet written */
    int64_t active_us;
    int64_t read_us;          /* when the latest bytes were read */
    int64_t partial_since_us; /* or lingering */
    STAILQ_HEAD(, rpc_request) out;
    LIST_HEAD(, rpc_request) waiting;
    struct rpc_record record;
    char *backlog; /* read and not yet looked at, because of a bound; charged (MEMORY_REQUESTS) */
    size_t backlog_len;
    struct span backlog_rest;
    struct event read_event;
    struct event write_event;
    struct rpc_task adopt;
    struct rpc_peer peer;
    struct client_entry *client;   /* admission.h; NULL: nothing bounds the client */
    struct rpc_throttle *throttle; /* throttle.h; owned; NULL: none */
};

/* Wraps a connected, non-blocking socket, for a worker to adopt. NULL if there is no memory: the
 * descriptor is the caller's then. [any] */
struct rpc_connection *rpc_connection_create(struct rpc_worker *worker, int fd,
                                             const struct rpc_peer *peer);

/* The worker takes the connection up. */
void rpc_connection_adopt(struct rpc_connection *connection);

/* Queues a request whose reply has been encoded. */
void rpc_connection_queue(struct rpc_connection *connection, struct rpc_request *request);

void rpc_connection_mark(struct rpc_connection *connection);

/* Writes what is queued, reads on where a bound has cleared, frees what is over. */
void rpc_connection_look(struct rpc_connection *connection);

/* Closes at once; the object stays until its last request has gone. */
void rpc_connection_close(struct rpc_connection *connection);

/* Reads no more; closes once all is answered and written, at once if that is so. */
void rpc_connection_finish(struct rpc_connection *connection);

/* At the worker's tick, for a lingering connection. */
void rpc_connection_check_lingering(struct rpc_connection *connection);

/* Frees a closed connection with all of its requests, those that nobody has answered included. */
void rpc_connection_free(struct rpc_connection *connection);

/* ---- moderation of wake-ups: moderation.c ---------------------------------------------------- */

/* What a worker has seen since it last judged how busy it is. */
struct rpc_moderation {
    int64_t since_us;
    uint64_t reads; /* of its life, then */
    uint64_t turns; /* of the loop, since then */
    bool on;
    bool scheduled; /* as SCHED_BATCH, by us */
};

/* The worker's thread runs from now on. */
void rpc_moderation_begin(struct rpc_moderation *moderation, int64_t now_us);

/*
 * The loop has made a turn, and the worker has read from a connection so many times in its life.
 * Should it let others finish before it is woken? Judged every 10 ms or more rarely: on from 10,000
 * reads a second of which three or more come in a turn, off below 5,000 or two.
 */
bool rpc_moderation_turn(struct rpc_moderation *moderation, int64_t now_us, uint64_t reads);

/*
 * Has the kernel schedule the calling thread as `on` says (SCHED_BATCH, or back to SCHED_OTHER). A
 * policy that somebody has given the thread stays, SCHED_BATCH too; a refusal is harmless.
 */
void rpc_moderation_apply(struct rpc_moderation *moderation);

/* ---- workers: worker.c ----------------------------------------------------------------------- */

/* A counter with one writer, read by anybody. */
typedef _Atomic uint64_t rpc_counter;

static inline void
rpc_counter_add(rpc_counter *counter, uint64_t n)
{
    atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + n,
                          memory_order_relaxed);
}

TAILQ_HEAD(rpc_connections, rpc_connection);

struct rpc_worker {
    struct rpc_server *server;
    unsigned number;
    struct event_base *base;
    struct event *wake_event;
    struct event *tick_event;
    struct rpc_connections open;      /* least recently active first */
    struct rpc_connections closed;    /* with requests still to be answered */
    struct rpc_connections partial;   /* record begun longest ago first */
    struct rpc_connections lingering; /* likewise by shutdown */
    STAILQ_HEAD(, rpc_connection) marked;
    SLIST_HEAD(, rpc_request) pool;
    unsigned pooled;
    unsigned uncharged; /* requests there are, pooled or not, that the account does not count */
    uint32_t epoch;     /* counts ticks */
    bool draining;
    unsigned cut_off;
    int64_t now_us;      /* when the current callback began to read */
    int64_t relieved_us; /* when the relieve task last looked; 0: never */
    uint64_t reads;      /* that brought bytes */
    struct rpc_moderation moderation;
    struct rpc_cooked cooked;
    struct iovec pieces[RPC_SEND_PIECES];
    pthread_t thread;
    bool running; /* the thread is there to be joined */
    struct rpc_task drain_task;
    struct rpc_task halt_task;
    struct rpc_task relieve_task;
    struct rpc_task shed_task;

    /* Written by the worker alone, read by anybody. */
    rpc_counter timed_out;
    rpc_counter calls;
    rpc_counter calls_bad;
    rpc_counter bytes_in;
    rpc_counter bytes_out;

    char scratch[RPC_SCRATCH] __attribute__((aligned(8)));

    /* Shared. */
    _Atomic(struct rpc_task *) tasks; /* latest first */
    atomic_uint connections;          /* assigned by the listener, and not yet closed */
    atomic_bool drained;              /* the drain task has run */
    atomic_bool relieving;            /* the relieve task is posted */
    atomic_bool shedding;             /* the shed task is posted */
    int wake_fd;
};

struct rpc_worker *rpc_worker_create(struct rpc_server *server, unsigned number);

/* NULL is harmless; the thread must not run. Frees the connections, abandoned requests and all. */
void rpc_worker_destroy(struct rpc_worker *worker);

/* 0 or an errno. */
int rpc_worker_start(struct rpc_worker *worker);

/* Asks the worker to finish its connections: each closes as soon as nothing is in flight on it. */
void rpc_worker_drain(struct rpc_worker *worker);

/* Asks the worker to close the connection whose reply has waited longest. [any] */
void rpc_worker_relieve(struct rpc_worker *worker);

/* Asks the worker to close what is left and to end, and waits; returns the connections cut off. */
unsigned rpc_worker_join(struct rpc_worker *worker);

/* Looks at every marked connection; the end of every callback of the loop. */
void rpc_worker_settle(struct rpc_worker *worker);

/* Runs the tasks posted so far; false if there were none. */
bool rpc_worker_run_tasks(struct rpc_worker *worker);

/*
 * When memory for records is used up: closes the connection whose record was begun longest ago,
 * other than `but`; false if there is none.
 */
bool rpc_worker_shed_partial(struct rpc_worker *worker, const struct rpc_connection *but);

/* Asks the worker to do so. [any] */
void rpc_worker_ask_to_shed(struct rpc_worker *worker);

/* Closes connections whose time is up. */
void rpc_worker_tick(struct rpc_worker *worker, int64_t now_us);

/* One connection less; wakes rpc_server_stop() where it waits for that. */
void rpc_worker_lost_connection(struct rpc_worker *worker);

/* ---- listeners: listener.c ------------------------------------------------------------------- */

struct rpc_listener {
    SLIST_ENTRY(rpc_listener) link;
    struct rpc_server *server;
    int fd;
    sa_family_t family;
    struct event *event;
    struct event *retry; /* a timer: accept again after a pause */
};

/* Takes over the descriptor, unless it fails: 0 or an errno. Accepts on worker 0. */
int rpc_listener_open(struct rpc_server *server, int fd);
void rpc_listener_close(struct rpc_listener *listener);

/* ---- servers: server.c ----------------------------------------------------------------------- */

struct rpc_server {
    struct rpc_limits limits;
    void *context;
    struct rpc_program *programs;
    size_t program_count;
    struct rpc_worker **workers;
    unsigned worker_count;
    bool started;
    bool stopping;

    /* Worker 0's, once started. */
    SLIST_HEAD(, rpc_listener) listeners;
    int spare_fd;  /* given up to accept, and refuse, when there is no other; -1: lost */
    unsigned next; /* worker, where numbers of connections are equal */
    rpc_counter accepted;
    struct rpc_admission *admission; /* admission.h */

    /* For rpc_server_stop() to wait until all is drained. */
    pthread_mutex_t lock;
    pthread_cond_t change;
};

#endif
