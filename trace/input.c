#include "trace/input.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "trace/decompressor.h"
#include "trace/formats/formats.h"

#define BUFFER_BYTES (256u * 1024u)
/*
 * The first UNPACKED_FREE decompressed bytes are taken whatever they come from; beyond that, at
 * most UNPACKED_PER_BYTE for a compressed one. Traces compress 10 to 100 times; zstd and xz can
 * pack a thousand gigabytes of requests into some megabytes.
 */
#define UNPACKED_FREE (UINT64_C(64) << 20U)
#define UNPACKED_PER_BYTE 200u

struct input {
    const char *path; /* not owned */
    int fd;
    int stop_fd; /* 0: none */
    bool is_stdin;
    struct stat opened;                                             /* how the file stood */
    uint64_t read;                                                  /* bytes from it */
    void (*progress)(void *context, uint64_t done, uint64_t total); /* NULL: it is not reported */
    void *progress_context;

    char *bytes; /* the buffer: [at, end) lies ahead */
    size_t at;
    size_t end;
    size_t capacity;
    bool ended; /* nothing comes behind the buffer, for whatever reason */

    const char *compression; /* NULL: none */
    struct decompressor *decompressor;
    char *packed; /* the compressed bytes: [packed_at, packed_end) lie ahead */
    size_t packed_at;
    size_t packed_end;
    bool packed_ended;
    uint64_t unpacked; /* bytes that came out */

    char start[sizeof(((struct trace_bad_line *)0)->text)]; /* of a line that is too long */

    enum trace_error error;
    int errno_read;  /* of TRACE_CANNOT_OPEN; 0: the file changed */
    bool breaks_off; /* of TRACE_NOT_A_TRACE: the packed bytes lack their end, */
    bool expands;    /* or stand for too much, */
    bool too_large;  /* or need too much memory; else they are damaged */
};

/* ---- bytes --------------------------------------------------------------------------------- */

static void
stop(struct input *in, enum trace_error error)
{
    in->ended = true;
    in->error = error;
}

/* Waits until there is something to read, or the end. False: it is to stop. */
static bool
wait_for_bytes(const struct input *in)
{
    struct pollfd wait[2] = {{.fd = in->fd, .events = POLLIN},
                             {.fd = in->stop_fd, .events = POLLIN}};

    while (poll(wait, in->stop_fd ? 2 : 1, -1) < 0 && errno == EINTR)
        continue;
    return wait[1].revents == 0;
}

/* Reads once; 0 at the end and after an error. */
static size_t
read_some(struct input *in, char *bytes, size_t capacity)
{
    ssize_t n;

    do {
        if (in->stop_fd && !wait_for_bytes(in)) {
            stop(in, TRACE_STOPPED);
            return 0;
        }
        n = read(in->fd, bytes, capacity);
        /* Another process may have made standard input non-blocking. */
        if (n < 0 && errno == EAGAIN && !in->stop_fd)
            wait_for_bytes(in);
    } while (n < 0 && (errno == EINTR || errno == EAGAIN));
    if (n < 0) {
        in->errno_read = errno;
        stop(in, TRACE_CANNOT_OPEN);
        return 0;
    }
    in->read += (size_t)n;
    if (in->progress)
        in->progress(in->progress_context, in->read,
                     S_ISREG(in->opened.st_mode) ? (uint64_t)in->opened.st_size : 0);
    return (size_t)n;
}

/* Decompresses at least a byte into the buffer, or ends. */
static void
decode_some(struct input *in)
{
    size_t before = in->end;

    while (in->end == before && !in->ended) {
        struct span packed;
        char *out = in->bytes + in->end;
        size_t capacity = in->capacity - in->end;
        enum decompressor_result result;

        if (in->packed_at == in->packed_end && !in->packed_ended) {
            in->packed_at = 0;
            in->packed_end = read_some(in, in->packed, BUFFER_BYTES);
            in->packed_ended = in->packed_end == 0;
            if (in->ended)
                return;
        }
        packed = span_of(in->packed + in->packed_at, in->packed_end - in->packed_at);
        result = decompressor_run(in->decompressor, &packed, &out, &capacity);
        in->packed_at = in->packed_end - packed.len;
        in->end = in->capacity - capacity;
        in->unpacked += in->end - before;
        if (in->unpacked > UNPACKED_FREE && in->unpacked / UNPACKED_PER_BYTE > in->read) {
            in->expands = true;
            stop(in, TRACE_NOT_A_TRACE);
            return;
        }
        in->too_large = result == DECOMPRESSOR_TOO_LARGE;
        if (result != DECOMPRESSOR_OK)
            stop(in, result == DECOMPRESSOR_ENDED       ? TRACE_OK
                     : result == DECOMPRESSOR_NO_MEMORY ? TRACE_NO_MEMORY
                                                        : TRACE_NOT_A_TRACE);
        else if (in->packed_ended && in->end == before) {
            in->breaks_off = true;
            stop(in, decompressor_is_whole(in->decompressor) ? TRACE_OK : TRACE_NOT_A_TRACE);
        }
    }
}

/* Moves the unread bytes to the front of the buffer, which grows to `need` bytes. */
static bool
grow_buffer(struct input *in, size_t need)
{
    size_t capacity = in->capacity;
    char *bytes;

    if (in->at != 0) {
        memmove(in->bytes, in->bytes + in->at, in->end - in->at);
        in->end -= in->at;
        in->at = 0;
    }
    while (capacity < need && capacity <= SIZE_MAX / 2)
        capacity *= 2;
    if (capacity < need)
        return false;
    if (capacity == in->capacity)
        return true;
    bytes = realloc(in->bytes, capacity);
    if (!bytes)
        return false;
    in->bytes = bytes;
    in->capacity = capacity;
    return true;
}

struct span
input_peek(struct input *in, size_t need)
{
    if (in->end - in->at < need && !in->ended && !grow_buffer(in, need))
        stop(in, TRACE_NO_MEMORY);
    while (in->end - in->at < need && !in->ended) {
        if (in->decompressor) {
            decode_some(in);
        } else {
            size_t n = read_some(in, in->bytes + in->end, in->capacity - in->end);

            in->end += n;
            in->ended = in->ended || n == 0;
        }
    }
    return span_of(in->bytes + in->at, in->end - in->at);
}

void
input_take(struct input *in, size_t len)
{
    in->at += len;
}

/* ---- lines --------------------------------------------------------------------------------- */

/* Takes everything up to the next line end. */
static void
skip_line(struct input *in)
{
    for (;;) {
        struct span ahead = input_peek(in, 1);
        const char *end = ahead.len ? memchr(ahead.ptr, '\n', ahead.len) : NULL;

        input_take(in, end ? (size_t)(end - ahead.ptr) + 1 : ahead.len);
        if (end || ahead.len == 0)
            return;
    }
}

bool
input_line(struct input *in, size_t longest, struct span *line, bool *too_long)
{
    struct span ahead = span_of(in->bytes + in->at, in->end - in->at);
    size_t seen = 0;
    const char *end;

    *too_long = false;
    while (!(end = seen < ahead.len ? memchr(ahead.ptr + seen, '\n', ahead.len - seen) : NULL)) {
        seen = ahead.len;
        if (seen > longest) {
            memcpy(in->start, ahead.ptr, sizeof(in->start));
            skip_line(in);
            *line = span_of(in->start, sizeof(in->start));
            *too_long = true;
            return true;
        }
        ahead = input_peek(in, seen + 1);
        if (ahead.len == seen)
            break;
    }
    if (!end && (ahead.len == 0 || in->error != TRACE_OK))
        return false;
    *line = span_of(ahead.ptr, end ? (size_t)(end - ahead.ptr) : ahead.len);
    input_take(in, line->len + (end ? 1 : 0));
    if (line->len != 0 && line->ptr[line->len - 1] == '\r')
        line->len--;
    return true;
}

/* ---- opening and closing ------------------------------------------------------------------- */

/* Of a folder: the browser's history in it, such as in a profile of Chrome, if there is one. */
static void
explain_folder(const struct input *in, char *why, size_t why_size)
{
    static const char *const histories[] = {"History", "Default/History", "places.sqlite",
                                            "History.db"};

    for (size_t i = 0; i < sizeof(histories) / sizeof(histories[0]); i++) {
        struct stat found;

        if (fstatat(in->fd, histories[i], &found, 0) == 0 && S_ISREG(found.st_mode)) {
            snprintf(why, why_size, "%s: a folder, not a trace; the browser's history in it is %s",
                     in->path, histories[i]);
            return;
        }
    }
    snprintf(why, why_size, "%s: a folder, not a trace", in->path);
}

static enum trace_error
open_file(struct input *in, char *why, size_t why_size)
{
    in->is_stdin = strcmp(in->path, "-") == 0;
    /* O_NONBLOCK: a device, which is refused, could hold us up. It changes nothing for a file. */
    in->fd = in->is_stdin ? STDIN_FILENO : open(in->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (in->fd < 0 || fstat(in->fd, &in->opened) != 0) {
        snprintf(why, why_size, "%s: cannot open the trace: %s", input_name(in), strerror(errno));
        return TRACE_CANNOT_OPEN;
    }
    if (!in->is_stdin && S_ISDIR(in->opened.st_mode)) {
        explain_folder(in, why, why_size);
        return TRACE_CANNOT_OPEN;
    }
    if (!in->is_stdin && S_ISFIFO(in->opened.st_mode)) {
        /* Before a process opens it for writing, read() reports its end. */
        if (!wait_for_bytes(in))
            return TRACE_STOPPED;
    } else if (!in->is_stdin && !S_ISREG(in->opened.st_mode)) {
        snprintf(why, why_size, "%s: cannot read the trace: neither a regular file nor a FIFO",
                 in->path);
        return TRACE_CANNOT_OPEN;
    }
    posix_fadvise(in->fd, 0, 0, POSIX_FADV_SEQUENTIAL);
    return TRACE_OK;
}

/* Puts a decompressor in between when the first bytes ask for one. */
static bool
look_for_compression(struct input *in)
{
    struct span head = input_peek(in, BUFFER_BYTES);

    in->compression = decompressor_sniff(head);
    if (!in->compression)
        return true;
    in->decompressor = decompressor_create(in->compression);
    in->packed = in->bytes;
    in->packed_at = in->at;
    in->packed_end = in->end;
    in->packed_ended = in->ended;
    in->bytes = malloc(BUFFER_BYTES);
    in->capacity = BUFFER_BYTES;
    in->at = 0;
    in->end = 0;
    in->ended = in->error != TRACE_OK;
    return in->decompressor && in->bytes;
}

enum trace_error
input_open(const char *path, int stop_fd, struct input **input, char *why, size_t why_size)
{
    struct input *in = calloc(1, sizeof(*in));
    enum trace_error error;

    *input = NULL;
    if (!in)
        return TRACE_NO_MEMORY;
    in->path = path;
    in->stop_fd = stop_fd;
    error = open_file(in, why, why_size);
    in->bytes = malloc(BUFFER_BYTES);
    in->capacity = BUFFER_BYTES;
    if (error == TRACE_OK && (!in->bytes || !look_for_compression(in)))
        error = TRACE_NO_MEMORY;
    if (error != TRACE_OK) {
        input_close(in);
        return error;
    }
    *input = in;
    return TRACE_OK;
}

void
input_report(struct input *in, void (*progress)(void *context, uint64_t done, uint64_t total),
             void *context)
{
    in->progress = progress;
    in->progress_context = context;
}

void
input_close(struct input *in)
{
    if (!in)
        return;
    if (!in->is_stdin && in->fd >= 0)
        close(in->fd);
    decompressor_destroy(in->decompressor);
    free(in->bytes);
    free(in->packed);
    free(in);
}

const char *
input_name(const struct input *in)
{
    return in->is_stdin ? "standard input" : in->path;
}

bool
input_was_stopped(const struct input *in)
{
    return in->error == TRACE_STOPPED;
}

bool
input_should_stop(struct input *in)
{
    struct pollfd wait = {.fd = in->stop_fd, .events = POLLIN};

    if (in->stop_fd && poll(&wait, 1, 0) == 1)
        stop(in, TRACE_STOPPED);
    return in->error == TRACE_STOPPED;
}

bool
input_is_plain_file(const struct input *in)
{
    return !in->is_stdin && !in->compression && S_ISREG(in->opened.st_mode);
}

/* Only what was read to its end can be compared with what stood there. */
static bool
has_changed(const struct input *in)
{
    struct stat now;

    if (!S_ISREG(in->opened.st_mode) || in->is_stdin || fstat(in->fd, &now) != 0)
        return false;
    return in->read != (uint64_t)in->opened.st_size || now.st_size != in->opened.st_size;
}

enum trace_error
input_finish(struct input *in, bool whole, char *why, size_t why_size)
{
    /* Packed bytes that were ignored at the end are none that were missed. */
    bool to_its_end = in->ended && (!in->decompressor || in->packed_ended);

    if (in->error == TRACE_CANNOT_OPEN)
        snprintf(why, why_size, "%s: cannot read the trace: %s", input_name(in),
                 strerror(in->errno_read));
    else if ((whole || in->error == TRACE_NOT_A_TRACE) && to_its_end && has_changed(in)) {
        snprintf(why, why_size,
                 "%s: changed while it was read (it had %lld bytes at first); read a copy of it",
                 input_name(in), (long long)in->opened.st_size);
        return TRACE_CANNOT_OPEN;
    } else if (in->error == TRACE_NOT_A_TRACE && in->expands)
        snprintf(why, why_size,
                 "%s: the %s data become more than %u times as large; if that is meant, decompress "
                 "them first, or pipe them in",
                 input_name(in), in->compression, UNPACKED_PER_BYTE);
    else if (in->error == TRACE_NOT_A_TRACE && in->too_large)
        snprintf(why, why_size,
                 "%s: the %s data need more than %u MiB of memory to decompress; decompress them "
                 "first, or pipe them in",
                 input_name(in), in->compression, (unsigned)(DECOMPRESSOR_MOST_MEMORY >> 20U));
    else if (in->error == TRACE_NOT_A_TRACE)
        snprintf(why, why_size, "%s: the %s data %s", input_name(in), in->compression,
                 in->breaks_off ? "break off before their end" : "are damaged");
    return in->error;
}
