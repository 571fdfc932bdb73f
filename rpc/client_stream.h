/*
 * The byte stream under a client: records (RFC 5531 section 11) queued to be written, and records
 * put together from the fragments that arrive. Knows nothing of calls and replies.
 *
 * Used by one thread; part of rpc/client.c.
 */
#ifndef SUNPROXY_RPC_CLIENT_STREAM_H
#define SUNPROXY_RPC_CLIENT_STREAM_H

#include <stdint.h>

#include "base/span.h"

#define CLIENT_STREAM_MAX_QUEUED (64u << 20) /* bytes of records not yet written */

struct client_stream {
    int fd; /* owned; non-blocking */
    uint32_t max_record;

    char *out; /* owned; [out_sent, out_len) is to be written */
    size_t out_sent;
    size_t out_len;
    size_t out_capacity;
    bool out_dead; /* the peer takes nothing more; what it has sent can still be read */

    char *in; /* owned; the record so far at [in_start, in_start + in_record) */
    size_t in_start;
    size_t in_record;
    size_t in_raw; /* bytes not yet looked at: [in_raw, in_end) */
    size_t in_end;
    size_t in_capacity;
    uint32_t fragment_left;
    bool fragment_open; /* its header was read */
    bool fragment_last;
    bool delivered; /* the record was handed out and goes with the next look */
};

enum client_stream_status {
    CLIENT_STREAM_OK = 0,
    CLIENT_STREAM_AGAIN,    /* nothing more for now */
    CLIENT_STREAM_LOST,     /* closed or broken */
    CLIENT_STREAM_TOO_LONG, /* a record over max_record */
    CLIENT_STREAM_NO_MEMORY,
};

/* Takes over a connected, non-blocking socket. Allocates nothing. */
void client_stream_init(struct client_stream *stream, int fd, uint32_t max_record);

/* Closes the socket and frees. */
void client_stream_free(struct client_stream *stream);

/*
 * Space for a record of `len` bytes behind what is queued, its mark in front already written. It
 * counts only after client_stream_commit() with the same length. NULL without memory, or when more
 * than CLIENT_STREAM_MAX_QUEUED bytes would be queued.
 */
char *client_stream_reserve(struct client_stream *stream, size_t len);
void client_stream_commit(struct client_stream *stream, size_t len);

/* Is something to be written? */
bool client_stream_wants_write(const struct client_stream *stream);

/* Writes what the socket takes: OK when all is written, AGAIN, or LOST (out_dead from then on). */
enum client_stream_status client_stream_flush(struct client_stream *stream);

/* Reads once: OK, AGAIN, LOST or NO_MEMORY. Call client_stream_next() until AGAIN first. */
enum client_stream_status client_stream_receive(struct client_stream *stream);

/*
 * The next whole record: OK with *record valid until the next call of _next or _receive, AGAIN when
 * bytes are missing, TOO_LONG.
 */
enum client_stream_status client_stream_next(struct client_stream *stream, struct span *record);

#endif
