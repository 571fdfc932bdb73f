#include "rpc/client.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "rpc/client_reply.h"
#include "rpc/client_stream.h"

#define CALL_HEADER 40u /* bytes of a call's header with AUTH_NONE twice (RFC 5531 section 9) */
#define FIRST_SLOTS 16u
#define MAX_READS 4096 /* in a row, of a peer that always has more */

struct call {
    struct call *next; /* in a list of spares or of calls about to be done */
    uint32_t xid;
    xdrproc_t decode;
    void *result;
    int64_t deadline_us;
    rpc_client_done *done;
    void *context;
};

struct rpc_client {
    struct client_stream stream;
    bool lost;
    uint32_t next_xid;
    unsigned pending;
    uint64_t done_count;

    /* A call stands at its xid modulo the number of slots (a power of two): new xids are chosen so
     * that their slot is free. */
    struct call **slots;
    uint32_t slot_count;
    struct call *spares;
    int64_t first_deadline_us; /* no call's deadline is earlier; may be earlier than all of them */
};

const char *
rpc_client_strstatus(enum rpc_client_status status)
{
    switch (status) {
    case RPC_CLIENT_OK:
        return "success";
    case RPC_CLIENT_NO_MEMORY:
        return "out of memory";
    case RPC_CLIENT_UNREACHABLE:
        return "cannot connect to the server";
    case RPC_CLIENT_LOST:
        return "the connection broke before the answer came";
    case RPC_CLIENT_TIMED_OUT:
        return "no answer came in time";
    case RPC_CLIENT_PROG_UNAVAIL:
        return "the server does not serve this program";
    case RPC_CLIENT_PROG_MISMATCH:
        return "the server does not serve this version of the program";
    case RPC_CLIENT_PROC_UNAVAIL:
        return "the server does not serve this procedure";
    case RPC_CLIENT_GARBAGE_ARGS:
        return "the server cannot decode the arguments";
    case RPC_CLIENT_SYSTEM_ERR:
        return "the server failed";
    case RPC_CLIENT_DENIED:
        return "the server refused the call: this client may not use it (--client-net), or its RPC "
               "version or credentials are wrong";
    case RPC_CLIENT_BAD_REPLY:
        return "the answer is malformed or too long";
    }
    return "unknown status";
}

/* ---- connecting ------------------------------------------------------------------------------ */

/* now + duration, without overflow. */
static int64_t
deadline_after(int64_t duration_us)
{
    int64_t now = clock_monotonic_us();

    return duration_us > INT64_MAX - now ? INT64_MAX : now + duration_us;
}

/* Milliseconds for poll() until a deadline: rounded up, so that it has passed afterwards. */
static int
poll_ms(int64_t deadline_us)
{
    int64_t left = deadline_us - clock_monotonic_us();

    if (left <= 0)
        return 0;
    return left > (int64_t)3600 * 1000000 ? 3600 * 1000 : (int)((left + 999) / 1000);
}

/* For ppoll(): callers that send on a schedule need more than milliseconds. */
static struct timespec
left_until(int64_t deadline_us)
{
    int64_t left = deadline_us - clock_monotonic_us();

    left = left < 0 ? 0 : left > (int64_t)3600 * 1000000 ? (int64_t)3600 * 1000000 : left;
    return clock_timespec(left);
}

static int
connect_until(int fd, const struct sockaddr *address, socklen_t len, int64_t deadline_us)
{
    struct pollfd wait = {.fd = fd, .events = POLLOUT};
    int error;
    socklen_t size = sizeof(error);

    /* A full backlog of an AF_UNIX listener is EAGAIN, and no event follows when it has space
     * again. */
    while (connect(fd, address, len) != 0 && errno != EINPROGRESS && errno != EISCONN) {
        if (errno == EINTR)
            break; /* goes on by itself, as EINPROGRESS does */
        if (errno != EAGAIN)
            return errno;
        if (clock_monotonic_us() >= deadline_us)
            return ETIMEDOUT;
        poll(NULL, 0, 5);
    }
    while (poll(&wait, 1, poll_ms(deadline_us)) <= 0)
        if (clock_monotonic_us() >= deadline_us)
            return ETIMEDOUT;
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0)
        return errno;
    return error;
}

struct rpc_client *
rpc_client_connect(const struct sockaddr *address, socklen_t len, int64_t timeout_us,
                   uint32_t max_reply)
{
    int64_t deadline_us = deadline_after(timeout_us);
    struct rpc_client *client = calloc(1, sizeof(*client));
    int fd, error, yes = 1;

    if (!client)
        return NULL;
    fd = socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    error = fd < 0 ? errno : connect_until(fd, address, len, deadline_us);
    if (error) {
        if (fd >= 0)
            close(fd);
        free(client);
        errno = error;
        return NULL;
    }
    /* What is queued goes out in one piece; there is nothing to wait for. */
    if (address->sa_family != AF_UNIX)
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
    client_stream_init(&client->stream, fd, max_reply);
    /* Not a secret; only so that a restarted client does not repeat its predecessor's numbers. */
    client->next_xid = (uint32_t)clock_wall_us() ^ (uint32_t)getpid() << 16;
    client->first_deadline_us = INT64_MAX;
    return client;
}

/* ---- the table of calls ---------------------------------------------------------------------- */

static bool
grow_slots(struct rpc_client *client)
{
    uint32_t count = client->slot_count ? client->slot_count * 2 : FIRST_SLOTS;
    struct call **slots = calloc(count, sizeof(struct call *));

    if (!slots)
        return false;
    /* Two calls that differ modulo n differ modulo 2n. */
    for (uint32_t i = 0; i < client->slot_count; i++)
        if (client->slots[i])
            slots[client->slots[i]->xid & (count - 1)] = client->slots[i];
    free(client->slots);
    client->slots = slots;
    client->slot_count = count;
    return true;
}

/* A call with an xid and a slot of its own, not yet pending. NULL without memory. */
static struct call *
new_call(struct rpc_client *client)
{
    struct call *call;

    if (client->pending >= client->slot_count / 2 && !grow_slots(client))
        return NULL;
    if ((call = client->spares))
        client->spares = call->next;
    else if (!(call = malloc(sizeof(*call))))
        return NULL;
    while (client->slots[client->next_xid & (client->slot_count - 1)])
        client->next_xid++;
    *call = (struct call){.xid = client->next_xid++};
    return call;
}

static void
put_spare(struct rpc_client *client, struct call *call)
{
    call->next = client->spares;
    client->spares = call;
}

static void
unlink_call(struct rpc_client *client, struct call *call)
{
    client->slots[call->xid & (client->slot_count - 1)] = NULL;
    client->pending--;
}

/* Ends a call that is unlinked. Its memory is free for reuse before the callee makes the next. */
static void
finish(struct rpc_client *client, struct call *call, enum rpc_client_status status)
{
    rpc_client_done *done = call->done;
    void *context = call->context, *result = call->result;

    put_spare(client, call);
    client->done_count++;
    done(context, status, result);
}

/* Ends every call whose deadline is not after `now_us`. */
static void
finish_until(struct rpc_client *client, int64_t now_us, enum rpc_client_status status)
{
    struct call *ended = NULL, **tail = &ended;
    int64_t first_us = INT64_MAX;

    for (uint32_t i = 0; i < client->slot_count; i++) {
        struct call *call = client->slots[i];

        if (!call)
            continue;
        if (call->deadline_us <= now_us) {
            unlink_call(client, call);
            call->next = NULL;
            *tail = call;
            tail = &call->next;
        } else if (call->deadline_us < first_us) {
            first_us = call->deadline_us;
        }
    }
    client->first_deadline_us = first_us;
    while (ended) {
        struct call *call = ended;

        ended = call->next;
        finish(client, call, status);
    }
}

static void
lose(struct rpc_client *client, enum rpc_client_status status)
{
    client->lost = true;
    finish_until(client, INT64_MAX, status);
}

void
rpc_client_close(struct rpc_client *client)
{
    if (!client)
        return;
    lose(client, RPC_CLIENT_LOST);
    while (client->spares) {
        struct call *call = client->spares;

        client->spares = call->next;
        free(call);
    }
    client_stream_free(&client->stream);
    free(client->slots);
    free(client);
}

/* ---- calls ----------------------------------------------------------------------------------- */

static char *
put_u32(char *at, uint32_t value)
{
    value = htonl(value);
    memcpy(at, &value, sizeof(value));
    return at + sizeof(value);
}

enum rpc_client_status
rpc_client_call(struct rpc_client *client, uint32_t program, uint32_t version, uint32_t procedure,
                xdrproc_t encode_args, void *args, xdrproc_t decode_result, void *result,
                int64_t timeout_us, rpc_client_done *done, void *context)
{
    const uint32_t header[] = {CALL, RPC_MSG_VERSION, program, version, procedure, AUTH_NONE,
                               0,    AUTH_NONE,       0};
    unsigned long size;
    struct call *call;
    char *record, *at;
    XDR xdrs;
    bool encoded = true;

    if (client->lost || client->stream.out_dead)
        return RPC_CLIENT_LOST;
    size = encode_args ? xdr_sizeof(encode_args, args) : 0;
    if (!(call = new_call(client)))
        return RPC_CLIENT_NO_MEMORY;
    if (size > CLIENT_STREAM_MAX_QUEUED ||
        !(record = client_stream_reserve(&client->stream, CALL_HEADER + size))) {
        put_spare(client, call);
        return RPC_CLIENT_NO_MEMORY;
    }
    at = put_u32(record, call->xid);
    for (size_t i = 0; i < sizeof(header) / sizeof(header[0]); i++)
        at = put_u32(at, header[i]);
    if (encode_args) {
        /* A failed xdr_sizeof() is 0: the encoding fails then as well. */
        xdrmem_create(&xdrs, at, (u_int)size, XDR_ENCODE);
        encoded = encode_args(&xdrs, args);
        xdr_destroy(&xdrs);
    }
    if (!encoded) {
        put_spare(client, call);
        return RPC_CLIENT_GARBAGE_ARGS;
    }
    client_stream_commit(&client->stream, CALL_HEADER + size);

    call->decode = decode_result;
    call->result = result;
    call->deadline_us = deadline_after(timeout_us);
    call->done = done;
    call->context = context;
    client->slots[call->xid & (client->slot_count - 1)] = call;
    client->pending++;
    if (call->deadline_us < client->first_deadline_us)
        client->first_deadline_us = call->deadline_us;
    return RPC_CLIENT_OK;
}

unsigned
rpc_client_pending(const struct rpc_client *client)
{
    return client->pending;
}

/* ---- replies --------------------------------------------------------------------------------- */

/* False for a record that is no message at all: the stream cannot be trusted any further. */
static bool
take_record(struct rpc_client *client, struct span record)
{
    struct call *call;
    uint32_t xid;

    if (record.len < sizeof(xid))
        return false;
    memcpy(&xid, record.ptr, sizeof(xid));
    xid = ntohl(xid);
    call = client->slot_count ? client->slots[xid & (client->slot_count - 1)] : NULL;
    /* The call of an answer without a waiter has timed out. */
    if (call && call->xid == xid) {
        unlink_call(client, call);
        finish(client, call, client_reply_read(record, call->decode, call->result));
    }
    return true;
}

/* Reads once and takes what is whole. True if more may be there already. */
static bool
receive(struct rpc_client *client)
{
    enum client_stream_status status = client_stream_receive(&client->stream);
    struct span record;

    if (status == CLIENT_STREAM_AGAIN)
        return false;
    if (status != CLIENT_STREAM_OK) {
        lose(client, status == CLIENT_STREAM_LOST ? RPC_CLIENT_LOST : RPC_CLIENT_NO_MEMORY);
        return false;
    }
    while ((status = client_stream_next(&client->stream, &record)) == CLIENT_STREAM_OK)
        if (!take_record(client, record)) {
            lose(client, RPC_CLIENT_BAD_REPLY);
            return false;
        }
    if (status == CLIENT_STREAM_TOO_LONG)
        lose(client, RPC_CLIENT_BAD_REPLY);
    return !client->lost;
}

/*
 * Ends the calls that are out of time. Not before what has come is taken: a caller that was busy
 * for longer than a call's time, writing to a slow reader, say, still gets the answer that was
 * there.
 */
static void
end_overdue(struct rpc_client *client)
{
    for (int i = 0; i < MAX_READS && receive(client); i++)
        ;
    finish_until(client, clock_monotonic_us(), RPC_CLIENT_TIMED_OUT);
}

bool
rpc_client_run(struct rpc_client *client, int64_t timeout_us)
{
    int64_t until_us = deadline_after(timeout_us);
    uint64_t done_before = client->done_count;

    for (bool first = true; client->pending != 0 && !client->lost; first = false) {
        struct pollfd wait = {.fd = client->stream.fd, .events = POLLIN};
        int64_t now_us = clock_monotonic_us(), first_us;
        struct timespec left;
        int ready;

        if (client->first_deadline_us <= now_us)
            end_overdue(client);
        if (client->lost || client->done_count != done_before || (!first && now_us >= until_us))
            break;
        client_stream_flush(&client->stream);
        if (client_stream_wants_write(&client->stream))
            wait.events |= POLLOUT;
        first_us = client->first_deadline_us < until_us ? client->first_deadline_us : until_us;
        left = left_until(first_us);
        ready = ppoll(&wait, 1, &left, NULL);
        if (ready < 0 && errno == EINTR)
            break;
        if (ready > 0 && (wait.revents & ~POLLOUT))
            receive(client);
    }
    return !client->lost;
}

/* ---- one call at a time ---------------------------------------------------------------------- */

struct waiting {
    enum rpc_client_status status;
    bool done;
};

static void
wake(void *context, enum rpc_client_status status, void *result)
{
    struct waiting *waiting = context;

    (void)result;
    waiting->status = status;
    waiting->done = true;
}

enum rpc_client_status
rpc_client_call_wait(struct rpc_client *client, uint32_t program, uint32_t version,
                     uint32_t procedure, xdrproc_t encode_args, void *args, xdrproc_t decode,
                     void *result, int64_t timeout_us)
{
    struct waiting waiting = {.done = false};
    enum rpc_client_status status =
        rpc_client_call(client, program, version, procedure, encode_args, args, decode, result,
                        timeout_us, wake, &waiting);

    if (status != RPC_CLIENT_OK)
        return status;
    while (!waiting.done)
        rpc_client_run(client, INT64_MAX);
    return waiting.status;
}
