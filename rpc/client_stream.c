#include "rpc/client_stream.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define MARK 4u                  /* bytes of a record mark */
#define LAST_FRAGMENT 0x80000000 /* its highest bit */
#define READ_AT_LEAST 16384u
#define FIRST_CAPACITY 65536u

void
client_stream_init(struct client_stream *stream, int fd, uint32_t max_record)
{
    *stream = (struct client_stream){.fd = fd, .max_record = max_record};
}

void
client_stream_free(struct client_stream *stream)
{
    if (stream->fd >= 0)
        close(stream->fd);
    free(stream->out);
    free(stream->in);
    *stream = (struct client_stream){.fd = -1};
}

/* ---- writing ------------------------------------------------------------------------------- */

char *
client_stream_reserve(struct client_stream *stream, size_t len)
{
    uint32_t mark;

    if (len > CLIENT_STREAM_MAX_QUEUED)
        return NULL;
    /* Moved to the front only when that at least halves it: each byte moves a bounded number of
     * times. */
    if (stream->out_sent > stream->out_len / 2) {
        memmove(stream->out, stream->out + stream->out_sent, stream->out_len - stream->out_sent);
        stream->out_len -= stream->out_sent;
        stream->out_sent = 0;
    }
    if (stream->out_capacity - stream->out_len < MARK + len) {
        size_t need = stream->out_len + MARK + len;
        size_t capacity = stream->out_capacity ? stream->out_capacity : 4096;
        char *grown;

        while (capacity < need)
            capacity *= 2;
        if (need > CLIENT_STREAM_MAX_QUEUED || !(grown = realloc(stream->out, capacity)))
            return NULL;
        stream->out = grown;
        stream->out_capacity = capacity;
    }
    mark = htonl(LAST_FRAGMENT | (uint32_t)len);
    memcpy(stream->out + stream->out_len, &mark, MARK);
    return stream->out + stream->out_len + MARK;
}

void
client_stream_commit(struct client_stream *stream, size_t len)
{
    stream->out_len += MARK + len;
}

bool
client_stream_wants_write(const struct client_stream *stream)
{
    return !stream->out_dead && stream->out_sent != stream->out_len;
}

enum client_stream_status
client_stream_flush(struct client_stream *stream)
{
    while (client_stream_wants_write(stream)) {
        ssize_t n = send(stream->fd, stream->out + stream->out_sent,
                         stream->out_len - stream->out_sent, MSG_NOSIGNAL);

        if (n >= 0) {
            stream->out_sent += (size_t)n;
            continue;
        }
        if (errno == EINTR)
            continue;
        if (errno == EAGAIN || errno == EWOULDBLOCK)
            return CLIENT_STREAM_AGAIN;
        stream->out_dead = true;
    }
    if (stream->out_dead)
        return CLIENT_STREAM_LOST;
    stream->out_sent = stream->out_len = 0;
    return CLIENT_STREAM_OK;
}

/* ---- reading ------------------------------------------------------------------------------- */

/* Makes the buffer hold more behind in_end. It grows with what has come, not with what a mark
 * promises. */
static bool
extend_input(struct client_stream *stream)
{
    size_t raw = stream->in_end - stream->in_raw;
    size_t ceiling = (size_t)stream->max_record + FIRST_CAPACITY;
    size_t capacity = stream->in_capacity ? stream->in_capacity * 2 : FIRST_CAPACITY;
    char *grown;

    if (stream->in_capacity - stream->in_end >= READ_AT_LEAST)
        return true;
    if (stream->in_start != 0 || stream->in_raw != stream->in_record) {
        memmove(stream->in, stream->in + stream->in_start, stream->in_record);
        memmove(stream->in + stream->in_record, stream->in + stream->in_raw, raw);
        stream->in_start = 0;
        stream->in_raw = stream->in_record;
        stream->in_end = stream->in_raw + raw;
        if (stream->in_capacity - stream->in_end >= READ_AT_LEAST)
            return true;
    }
    if (capacity > ceiling)
        capacity = ceiling;
    if (capacity == stream->in_capacity)
        return true; /* the ceiling holds a mark beyond the longest record */
    if (!(grown = realloc(stream->in, capacity)))
        return false;
    stream->in = grown;
    stream->in_capacity = capacity;
    return true;
}

/* Forgets the record that was handed out. */
static void
drop_delivered(struct client_stream *stream)
{
    if (!stream->delivered)
        return;
    stream->delivered = false;
    stream->in_record = 0;
    if (stream->in_raw == stream->in_end)
        stream->in_raw = stream->in_end = 0;
    stream->in_start = stream->in_raw;
}

enum client_stream_status
client_stream_receive(struct client_stream *stream)
{
    ssize_t n;

    drop_delivered(stream);
    if (!extend_input(stream))
        return CLIENT_STREAM_NO_MEMORY;
    do
        n = recv(stream->fd, stream->in + stream->in_end, stream->in_capacity - stream->in_end, 0);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return errno == EAGAIN || errno == EWOULDBLOCK ? CLIENT_STREAM_AGAIN : CLIENT_STREAM_LOST;
    if (n == 0)
        return CLIENT_STREAM_LOST;
    stream->in_end += (size_t)n;
    return CLIENT_STREAM_OK;
}

enum client_stream_status
client_stream_next(struct client_stream *stream, struct span *record)
{
    drop_delivered(stream);
    for (;;) {
        size_t take, end;

        if (!stream->fragment_open) {
            uint32_t mark;

            if (stream->in_end - stream->in_raw < MARK)
                return CLIENT_STREAM_AGAIN;
            memcpy(&mark, stream->in + stream->in_raw, MARK);
            mark = ntohl(mark);
            stream->in_raw += MARK;
            stream->fragment_open = true;
            stream->fragment_last = (mark & LAST_FRAGMENT) != 0;
            stream->fragment_left = mark & ~LAST_FRAGMENT;
            if (stream->fragment_left > stream->max_record - stream->in_record)
                return CLIENT_STREAM_TOO_LONG;
            if (stream->in_record == 0)
                stream->in_start = stream->in_raw;
        }
        take = stream->in_end - stream->in_raw;
        if (take > stream->fragment_left)
            take = stream->fragment_left;
        end = stream->in_start + stream->in_record;
        /* The marks between fragments are closed up; a record of one fragment stays where it is. */
        if (take != 0 && end != stream->in_raw)
            memmove(stream->in + end, stream->in + stream->in_raw, take);
        stream->in_record += take;
        stream->in_raw += take;
        stream->fragment_left -= (uint32_t)take;
        if (stream->fragment_left != 0)
            return CLIENT_STREAM_AGAIN;
        stream->fragment_open = false;
        if (stream->fragment_last) {
            *record = span_of(stream->in + stream->in_start, stream->in_record);
            stream->delivered = true;
            return CLIENT_STREAM_OK;
        }
    }
}
