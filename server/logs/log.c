#include "server/logs/log.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/printable.h"
#include "server/logs/sink.h"
#include "base/timestamp.h"

#define LONGEST ((size_t)1 << 17) /* bytes of a line */

static _Atomic enum log_level max_level = LOG_LEVEL_INFO;
static _Atomic enum log_format line_format = LOG_FORMAT_PLAIN;

static const char *const level_names[] = {"error", "warning", "info", "debug"};

enum log_format
log_format_of(const char *text)
{
    return strcmp(text, "json") == 0 ? LOG_FORMAT_JSON : LOG_FORMAT_PLAIN;
}

void
log_setup(enum log_level most, enum log_format format)
{
    max_level = most;
    line_format = format;
}

static pthread_mutex_t writing = PTHREAD_MUTEX_INITIALIZER; /* protects the next three */
static struct buf *captured; /* log_capture(); NULL: none */
static uint64_t lines_lost;                                 /* since the last written line */
static struct buf rest; /* of the last written line, before the next one */

/* Appends a line of either format. */
static void
format_line(struct buf *line, enum log_level level, struct buf *text)
{
    char when[TIMESTAMP_SIZE];

    timestamp_format(clock_wall_us(), when);
    if (line_format == LOG_FORMAT_JSON) {
        struct json json;

        json_init(&json, line);
        json_open_object(&json, NULL);
        json_cstring(&json, "time", when);
        json_cstring(&json, "level", level_names[level]);
        json_string(&json, "message", buf_span(text));
        json_close_object(&json);
        buf_append_char(line, '\n');
    } else {
        printable_make(text->data, text->len);
        buf_printf(line, "%s sunproxyd: %s%s%s\n", when,
                   level == LOG_LEVEL_INFO ? "" : level_names[level],
                   level == LOG_LEVEL_INFO ? "" : ": ", buf_str(text));
    }
}

/* Writes as many bytes as standard error accepts now; returns their number. */
static size_t
write_now(struct span bytes)
{
    size_t done = 0;

    while (done < bytes.len) {
        ssize_t n = sink_write(STDERR_FILENO, bytes.ptr + done, bytes.len - done);

        if (n > 0)
            done += (size_t)n;
        else if (n == 0 || errno != EINTR)
            break;
    }
    return done;
}

/* Does standard output, to which the access log may go, have the same file? */
static bool
is_shared(void)
{
    struct stat out, err;

    return fstat(STDOUT_FILENO, &out) == 0 && fstat(STDERR_FILENO, &err) == 0 &&
           out.st_dev == err.st_dev && out.st_ino == err.st_ino;
}

/* The bytes of these that were written, less those of a line in part, which are removed from a file
 * on a disk that is full. */
static size_t
mend_line(struct span bytes, size_t done)
{
    const char *end = done ? memrchr(bytes.ptr, '\n', done) : NULL;
    const size_t part = done - (end ? (size_t)(end - bytes.ptr) + 1 : 0);

    return done < bytes.len && part && !is_shared() && sink_cut(STDERR_FILENO, part) ? done - part
                                                                                     : done;
}

/* Keeps what was not written of the line in `all` of which a part was. */
static void
keep_rest(const struct buf *all, size_t done)
{
    const char *end = memchr(all->data + done, '\n', all->len - done);
    size_t len = end ? (size_t)(end - all->data) + 1 - done : all->len - done;

    buf_free(&rest);
    buf_init(&rest, LONGEST);
    if (done && all->data[done - 1] != '\n')
        buf_append(&rest, all->data + done, len);
}

/* Writes a line; before it, a line with the number of lost lines, if there are any. */
static void
write_line(struct span line)
{
    struct buf all;
    size_t rest_len, before, done;

    buf_init(&all, 2 * LONGEST);
    pthread_mutex_lock(&writing);
    rest_len = rest.len;
    buf_append(&all, rest.data, rest.len);
    if (lines_lost) {
        struct buf text;

        buf_init(&text, 256);
        buf_printf(&text, "%" PRIu64 " lines of this log are lost: they could not be written",
                   lines_lost);
        format_line(&all, LOG_LEVEL_WARNING, &text);
        buf_free(&text);
    }
    before = all.len;
    buf_append(&all, line.ptr, line.len);
    done = mend_line(buf_span(&all), write_now(buf_span(&all)));
    /* The number of lost lines has its place in the log as soon as a byte of its line has. */
    if (before > rest_len && done > rest_len)
        lines_lost = 0;
    if (done <= before)
        lines_lost++;
    if (done)
        keep_rest(&all, done);
    pthread_mutex_unlock(&writing);
    buf_free(&all);
}

void
log_capture(struct buf *text)
{
    captured = text;
}

/* False: messages are written. */
static bool
capture(enum log_level level, const char *format, va_list args)
{
    if (!captured)
        return false;
    if (level <= LOG_LEVEL_ERROR) {
        pthread_mutex_lock(&writing);
        buf_end_line(captured);
        buf_vprintf(captured, format, args);
        pthread_mutex_unlock(&writing);
    }
    return true;
}

static void
log_at(enum log_level level, const char *format, va_list args)
{
    struct buf line, text;

    if (capture(level, format, args) || level > max_level)
        return;
    buf_init(&text, 8192);
    buf_init(&line, 65536);
    buf_vprintf(&text, format, args);
    format_line(&line, level, &text);
    if (line.len)
        write_line(buf_span(&line));
    buf_free(&line);
    buf_free(&text);
}

#define LOG_AT(level)                \
    do {                             \
        va_list args;                \
        va_start(args, format);      \
        log_at(level, format, args); \
        va_end(args);                \
    } while (0)

void
log_error(const char *format, ...)
{
    LOG_AT(LOG_LEVEL_ERROR);
}

void
log_warning(const char *format, ...)
{
    LOG_AT(LOG_LEVEL_WARNING);
}

void
log_info(const char *format, ...)
{
    LOG_AT(LOG_LEVEL_INFO);
}

void
log_debug(const char *format, ...)
{
    LOG_AT(LOG_LEVEL_DEBUG);
}

void
log_errors(const char *lines)
{
    while (*lines) {
        size_t len = strcspn(lines, "\n");

        log_error("%.*s", (int)len, lines);
        lines += len + (lines[len] == '\n');
    }
}
