/*
 * Cursors: with one a client of version 2 goes on reading after PROXY_GET was answered with the
 * first piece of a body (proxy.x). A cursor is the exchange of that request, which is kept on its
 * connection (rpc_request_keep()) with a name, and the calls of PROXY_READ that wait for bytes.
 *
 * A cursor ends with its release, its connection, a time without calls, the failure of its fetch, a
 * newer cursor of a connection that has CURSORS_PER_CONNECTION of them, or where its memory is
 * needed and it is not read. Pieces are sent from where they stand (content.h): while one is being
 * written, what it refers to stays, and what follows counts as not taken, so that an object that is
 * not stored has its window (cache/fill.h) behind its client.
 *
 * Everything here is for the connection's worker, but for what is marked [any].
 */
#ifndef SUNPROXY_SERVER_RPC_CURSOR_H
#define SUNPROXY_SERVER_RPC_CURSOR_H

#include "base/client_share.h"
#include "net/timer.h"
#include "proxy.h"
#include "server/rpc/front.h"

/* Cursors of one connection: beyond it the one that was used longest ago ends. */
enum { CURSORS_PER_CONNECTION = 64 };

/* Where the memory of a body is needed, a client that does not read its answer for as long is
 * disconnected. */
#define CURSOR_UNREAD_US ((int64_t)1000000)

/*
 * While memory is needed, the cursor of a complete object ends if less than a 64th of the object
 * was sent for CURSOR_UNREAD_US. It is looked at when it has been used, and this often otherwise.
 */
#define CURSOR_LOOK_US ((int64_t)1000000)
#define CURSOR_LEAST_SENT 64u

/* A call waits as long for a first byte. */
#define CURSOR_WAIT_US ((int64_t)10 * 1000000)

/*
 * And as long for more bytes: what a slow origin sends reaches the client a second later at most,
 * and takes at most one round trip a second. PROXY_GET waits for its first piece as long once there
 * is a head, or CURSOR_WAIT_US if there is no place for the cursor.
 */
#define CURSOR_GATHER_US ((int64_t)1000000)

/* PROXY_READ waits for this many bytes, if it asks for as many. Less than the window, so that they
 * come. */
#define CURSOR_WORTHWHILE ((uint64_t)256 << 10)

/* What has ended a cursor. */
enum cursor_end {
    CURSOR_RELEASED,     /* PROXY_RELEASE */
    CURSOR_DISCONNECTED, /* the connection */
    CURSOR_EXPIRED,      /* no call for --hold-timeout */
    CURSOR_DISPLACED,    /* a newer cursor of its connection, or what needs its memory */
    CURSOR_FAILED,       /* the fetch, which the client has got as an answer */
    CURSOR_ENDS
};

/* The cursors of a service. [any] */
struct cursors {
    struct client_share places;
    uint64_t begun_us; /* wall clock: with `opened` it makes names that no earlier daemon gave */
    _Atomic int64_t timeout_us;
    int64_t wait_us;          /* CURSOR_WAIT_US, but in tests */
    _Atomic int64_t short_us; /* monotonic: memory was short last; 0: never */
    _Atomic uint64_t opened, refused;
    _Atomic uint64_t ended[CURSOR_ENDS];
};

/* At most `most` at a time, of which a client has at most a quarter of what others leave. */
void cursors_init(struct cursors *cursors, uint64_t most, int64_t timeout_us);

/* Other bounds: cursors in excess of them stay. */
void cursors_set_bounds(struct cursors *cursors, uint64_t most, int64_t timeout_us);

/* There is no memory for a fetch: for a while cursors that are not read end. */
void cursors_note_shortage(struct cursors *cursors);

/* The row of a table of metrics. */
struct cursor_stats {
    uint64_t open, opened, refused;
    uint64_t ended[CURSOR_ENDS];
};
void cursors_get_stats(struct cursors *cursors, struct cursor_stats *stats);

/* A call of PROXY_READ that waits. In the call's own memory: rpc_request_data(). */
struct cursor_read {
    TAILQ_ENTRY(cursor_read) link; /* the cursor's */
    struct cursor *cursor;
    struct content_piece piece; /* of its answer */
    uint64_t offset;
    uint32_t count;
    int64_t due_us; /* monotonic: it is answered, also without a byte */
    bool gathered;  /* CURSOR_GATHER_US are over: it is answered with any byte */
};

/* What the calls that wait need when their cursor changes: cursor_read.c. */
struct cursor_calls {
    void (*serve_reads)(struct cursor *cursor, bool overdue);
    void (*dismiss_reads)(struct cursor *cursor);
};

/*
 * FOLLOWS -exchange_cancel()-> CANCELS, or LEFT
 * FOLLOWS or CANCELS -the exchange fails-> LEFT
 */
enum cursor_stage {
    CURSOR_FOLLOWS, /* its exchange, to the end */
    CURSOR_CANCELS, /* the last call of the exchange is to come */
    CURSOR_LEFT,    /* the exchange calls no more */
};

/* In the memory of the request of PROXY_GET. */
struct cursor {
    struct front_exchange front; /* first. front.begun: what follows is set */
    struct cursors *cursors;
    const struct cursor_calls *calls;
    struct net_timer timer; /* of the first call that waits, or of the cursor if none does */
    bool timed;             /* PROXY_GET waits for its first piece, until the timer */
    bool crowded;           /* and there was no place for the cursor after CURSOR_GATHER_US */
    bool open;              /* it has been counted, and can be found */
    bool ending;            /* it cannot be found any more */
    bool stopped;           /* the connection brings no further call */
    enum cursor_stage stage;
    bool logged;
    bool again;             /* `why` does not concern a fetch of the client's own */
    enum failure why;       /* of the fetch, the content or PROXY_GET; 0: none */
    struct object *failure; /* a reference to what has the sentence; or NULL: */
    struct span sentence;   /* static text, or the content's */
    unsigned used;          /* answers with bytes of it that are not written, functions, tasks */
    uint64_t sent;          /* bytes that were sent */
    int64_t used_us;        /* of the last call for it */
    int64_t idle_us;        /* nothing uses it from then on */
    int64_t moved_us;       /* CURSOR_LEAST_SENT of the object has been sent since, */
    uint64_t moved_at;      /* when this much had been */
    unsigned char name[PROXY_OBJECT_BYTES];
    TAILQ_HEAD(, cursor_read) reads;
};

/* Bytes of RPC's own memory that a front needs for each request: rpc_limits.request_data. */
#define FRONT_REQUEST_DATA sizeof(struct cursor)

_Static_assert(sizeof(struct cursor_read) <= FRONT_REQUEST_DATA, "it fits");

static inline struct cursor *
cursor_of(struct exchange *exchange)
{
    return (struct cursor *)exchange;
}

/* ---- cursor.c -------------------------------------------------------------------------------- */

/*
 * A body has begun that PROXY_GET may not answer whole. expired() is called when its timer, or the
 * time of the first call that waits, is over.
 */
void cursor_begin(struct cursor *cursor, const struct cursor_calls *calls,
                  void (*expired)(struct net_timer *timer));

/*
 * Gives it a name and a place among the cursors of its connection, of which another one ends if
 * `displaces`. Otherwise false: there are too many.
 */
bool cursor_open(struct cursor *cursor, bool displaces);

/* The open cursor of this name on the connection of `request`; NULL: there is none. */
struct cursor *cursor_find(const struct rpc_request *request, const proxy_object name);

/* rpc_keeper of the request of an open cursor. */
extern const struct rpc_keeper cursor_keeper;

/* It is not used any more by what has counted itself in cursor->used, as an answer when it has been
 * written: it may be gone afterwards. */
void cursor_unuse(struct cursor *cursor);

/* Nothing has used it since the timer was set: it ends, or the timer is set again. */
void cursor_look(struct cursor *cursor);

/* No call can find it any more; those that wait are answered. It goes when nothing refers to it. */
void cursor_end(struct cursor *cursor, enum cursor_end end);

/* The last call of its exchange: calls that wait are answered, or later ones. The cursor may be
 * gone afterwards. */
void cursor_fail(struct cursor *cursor, enum failure why, struct span sentence);

/* Its content is CONTENT_BROKEN: it has that failure, which the caller answers. */
void cursor_break(struct cursor *cursor);

/* ---- cursor_read.c --------------------------------------------------------------------------- */

/* Answers calls that wait, the first one also if nothing has come and `overdue`. The cursor may be
 * gone afterwards. */
void cursor_serve(struct cursor *cursor, bool overdue);

/* cursor_serve(), and the answer to all calls that wait that there is no such object. */
extern const struct cursor_calls cursor_reads;

#endif
