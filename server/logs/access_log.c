#include "server/logs/access_log.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/thread.h"
#include "server/logs/access_pattern.h"
#include "server/logs/log_target.h"
#include "server/logs/sink.h"

#define MOST_WAITING ((size_t)8 << 20) /* bytes in memory; beyond, lines are lost */
#define WAKE_AT ((size_t)64 << 10)     /* bytes at which the writer does not wait for its time */
#define LONGEST_LINE ((size_t)1 << 20)
#define WRITE_EVERY_MS 200
#define COMPLAIN_EVERY_US (10 * (int64_t)1000000)
#define LOOK_EVERY_MS 50                     /* for a stop or a reopening, while a pipe is full */
#define REOPEN_SECONDS 2                     /* at most, that a caller waits for it */
#define LAST_LINES_US ((int64_t)2 * 1000000) /* for a pipe to take the last lines */

struct access_log {
    char *path; /* as --access-log has it */
    struct log_target target;
    bool reopens;               /* it is a file by name, of which there may be another one */
    struct log_pattern *fields; /* of a record of the journal; or NULL */
    pthread_t thread;
    _Atomic uint64_t unwritten; /* lines lost because of the file, */
    _Atomic uint64_t unheld;    /* because too many wait, */
    _Atomic uint64_t unmade;    /* and those that were too long, or for which there was no memory */

    pthread_mutex_t lock; /* protects what follows */
    pthread_cond_t wake;
    pthread_cond_t reopened;
    struct buf waiting;
    unsigned reopens_wanted, reopens_done;
    bool stop;
    int64_t stop_us; /* when that was set */

    /* owned by the thread */
    int fd;
    bool is_file;    /* by name */
    bool may_return; /* its reader: that of a FIFO by name, a command, a service */
    struct buf rest; /* of a line of which a pipe has the beginning: the next bytes for it */
    int64_t complained_us;
    uint64_t unheld_told, unmade_told, lost_told;
    struct buf writing;
};

int
access_log_open_file(const char *path)
{
    return strcmp(path, "-") == 0 ? fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0) : sink_open(path);
}

const char *
access_log_explain(int error)
{
    if (error == ENOENT && access("/proc/self", F_OK) != 0)
        return "No such file or directory; /proc is not mounted";
    return strerror(error);
}

static const char no_reader[] = "no process reads it";

static uint64_t
count_lines(struct span text)
{
    uint64_t lines = 0;

    for (size_t i = 0; i < text.len; i++)
        lines += text.ptr[i] == '\n';
    return lines;
}

/* Not without end: false if that was too soon after the last time. */
static bool
complain(struct access_log *log, const char *why)
{
    int64_t now = clock_monotonic_us();

    if (log->complained_us && now - log->complained_us < COMPLAIN_EVERY_US)
        return false;
    log->complained_us = now;
    log->lost_told = access_log_lost(log);
    log_warning("access log %s: %s; %" PRIu64 " lines lost so far", log->path, why, log->lost_told);
    return true;
}

static void
lose(struct access_log *log, uint64_t lines, int error)
{
    atomic_fetch_add(&log->unwritten, lines);
    if (error == EAGAIN)
        complain(log, "its reader does not read");
    else
        complain(log, error == EPIPE ? no_reader : strerror(error));
}

/* Logs the number of lines that were not put into the buffer and were only counted. */
static void
log_dropped(struct access_log *log)
{
    uint64_t unheld = atomic_load(&log->unheld), unmade = atomic_load(&log->unmade);

    if (unmade != log->unmade_told &&
        complain(log, "a line is longer than 1 MiB, or there is no memory for it"))
        log->unmade_told = unmade;
    if (unheld != log->unheld_told && complain(log, "lines came faster than they could be written"))
        log->unheld_told = unheld;
}

static void
note_file(struct access_log *log, int fd)
{
    struct stat st;

    log->fd = fd;
    if (fstat(fd, &st) != 0)
        st.st_mode = 0;
    log->is_file = log->reopens && S_ISREG(st.st_mode);
    log->may_return = log->target.kind != LOG_TARGET_FILE || (log->reopens && S_ISFIFO(st.st_mode));
}

/*
 * Waits a moment for a pipe to take more. False if waiting is over: another file is to be opened,
 * or the daemon stops and the time for the last lines is up.
 */
static bool
wait_for_reader(struct access_log *log, bool has_reader)
{
    const struct timespec moment = {.tv_nsec = LOOK_EVERY_MS * 1000000L};
    struct pollfd ready = {.fd = log->fd, .events = POLLOUT};
    bool go_on;

    /* Without a reader there is an error to poll for at once. */
    if (!has_reader || (poll(&ready, 1, LOOK_EVERY_MS) == 1 && (ready.revents & POLLERR)))
        nanosleep(&moment, NULL);
    pthread_mutex_lock(&log->lock);
    go_on = log->reopens_wanted == log->reopens_done &&
            (!log->stop || clock_monotonic_us() - log->stop_us < LAST_LINES_US);
    pthread_mutex_unlock(&log->lock);
    return go_on;
}

/* May bytes that could not be written be written later? */
static bool
is_worth_waiting(struct access_log *log, int error)
{
    if (error == EPIPE && log->may_return)
        complain(log, no_reader);
    else if (error != EAGAIN)
        return error == EINTR;
    log_dropped(log);
    return wait_for_reader(log, error != EPIPE);
}

/* Drops the first line, which no datagram takes. */
static void
drop_line(struct access_log *log, struct span *text)
{
    const char *end = memchr(text->ptr, '\n', text->len);
    const size_t len = end ? (size_t)(end - text->ptr) + 1 : text->len;

    lose(log, 1, EMSGSIZE);
    *text = span_of(text->ptr + len, text->len - len);
}

/* Takes from *text what has been written; 0, or the errno of what has not. */
static int
write_some(struct access_log *log, struct span *text)
{
    while (text->len) {
        ssize_t n = log_target_write(&log->target, log->fd, *text);
        int error = n < 0 ? errno : ENOSPC;

        if (n > 0)
            *text = span_of(text->ptr + n, text->len - (size_t)n);
        else if (error == EMSGSIZE)
            drop_line(log, text);
        else if (!is_worth_waiting(log, error))
            return error;
    }
    return 0;
}

/* The file has the beginning of the line before `text`. That is removed, or else the rest of the
 * line is kept. */
static void
mend_line(struct access_log *log, const char *begin, struct span *text)
{
    const char *line = memrchr(begin, '\n', (size_t)(text->ptr - begin));
    const char *end = memchr(text->ptr, '\n', text->len);
    size_t len = end ? (size_t)(end - text->ptr) + 1 : text->len;

    if (log->is_file && sink_cut(log->fd, (size_t)(text->ptr - (line ? line + 1 : begin))))
        return;
    buf_append(&log->rest, text->ptr, len);
    *text = span_of(text->ptr + len, text->len - len);
}

/* Writes all of `text`; what cannot be written is counted as lost, but for the rest of a line. */
static void
write_out(struct access_log *log, struct span text)
{
    struct span rest = buf_span(&log->rest);
    const char *begin = text.ptr;
    int error = write_some(log, &rest);

    if (error) {
        memmove(log->rest.data, rest.ptr, rest.len);
        log->rest.len = rest.len;
    } else {
        buf_reset(&log->rest);
        error = write_some(log, &text);
        if (error && text.ptr > begin && text.ptr[-1] != '\n')
            mend_line(log, begin, &text);
    }
    if (error)
        lose(log, count_lines(text), error);
}

/* The file gets no more: a line of which it has the beginning is lost. */
static void
drop_rest(struct access_log *log)
{
    if (log->rest.len)
        atomic_fetch_add(&log->unwritten, 1);
    buf_reset(&log->rest);
}

static void
open_again(struct access_log *log)
{
    int fd = access_log_open_file(log->path);

    if (fd < 0) {
        log_error("access log %s cannot be opened again: %s; the old file stays in use", log->path,
                  strerror(errno));
        return;
    }
    close(log->fd);
    drop_rest(log);
    note_file(log, fd);
    log_info("access log %s opened again", log->path);
}

static void
note_reopened(struct access_log *log, unsigned reopens)
{
    pthread_mutex_lock(&log->lock);
    log->reopens_done = reopens;
    pthread_cond_broadcast(&log->reopened);
    pthread_mutex_unlock(&log->lock);
}

static void *
run(void *argument)
{
    struct access_log *log = argument;
    bool stop = false;

    while (!stop) {
        const struct timespec until = clock_timespec(clock_monotonic_us() + WRITE_EVERY_MS * 1000);
        struct buf swap;
        unsigned reopens;

        pthread_mutex_lock(&log->lock);
        while (!log->stop && log->reopens_wanted == log->reopens_done && log->waiting.len < WAKE_AT)
            if (pthread_cond_timedwait(&log->wake, &log->lock, &until) == ETIMEDOUT)
                break;
        swap = log->writing;
        log->writing = log->waiting;
        log->waiting = swap;
        stop = log->stop;
        reopens = log->reopens_wanted;
        pthread_mutex_unlock(&log->lock);

        /* A pipe that is full is not waited for while another file is to be opened. */
        write_out(log, buf_span(&log->writing));
        buf_reset(&log->writing);
        log_dropped(log);
        if (reopens == log->reopens_done)
            continue;
        open_again(log);
        note_reopened(log, reopens);
    }
    drop_rest(log);
    /* What was lost since the last complaint, which was perhaps that lines wait. */
    if (access_log_lost(log) != log->lost_told)
        log_warning("access log %s: %" PRIu64 " lines lost in all", log->path,
                    access_log_lost(log));
    return NULL;
}

static void
free_log(struct access_log *log)
{
    log_pattern_free(log->fields);
    free(log->path);
    free(log);
}

/* What the path says, which the option has checked: only memory can lack. */
static bool
set_target(struct access_log *log, const char *path)
{
    struct buf why;
    bool ok;

    buf_init(&why, 1024);
    log->path = strdup(path);
    ok = log->path && log_target_parse(&log->target, log->path, &why);
    log->reopens = ok && log->target.kind == LOG_TARGET_FILE && strcmp(path, "-") != 0;
    if (ok && log->target.kind == LOG_TARGET_JOURNAL) {
        log->fields = log_pattern_compile(log_target_fields, &why);
        ok = log->fields != NULL;
    }
    buf_free(&why);
    return ok;
}

static int
start_thread(struct access_log *log)
{
    int error;

    pthread_mutex_init(&log->lock, NULL);
    thread_cond_init(&log->wake);
    thread_cond_init(&log->reopened);
    error = thread_start(&log->thread, run, log);
    if (error) {
        pthread_cond_destroy(&log->wake);
        pthread_cond_destroy(&log->reopened);
        pthread_mutex_destroy(&log->lock);
    }
    return error;
}

struct access_log *
access_log_start(int fd, const char *path)
{
    struct access_log *log = calloc(1, sizeof(*log));
    int error = ENOMEM;

    if (log && set_target(log, path)) {
        note_file(log, fd);
        buf_init(&log->waiting, MOST_WAITING);
        buf_init(&log->writing, MOST_WAITING);
        buf_init(&log->rest, LONGEST_LINE);
        error = start_thread(log);
    }
    if (error == 0)
        return log;
    if (log)
        free_log(log);
    close(fd);
    errno = error;
    return NULL;
}

void
access_log_close(struct access_log *log)
{
    if (!log)
        return;
    pthread_mutex_lock(&log->lock);
    log->stop = true;
    log->stop_us = clock_monotonic_us();
    pthread_cond_signal(&log->wake);
    pthread_mutex_unlock(&log->lock);
    pthread_join(log->thread, NULL);
    close(log->fd);
    pthread_cond_destroy(&log->wake);
    pthread_cond_destroy(&log->reopened);
    pthread_mutex_destroy(&log->lock);
    buf_free(&log->waiting);
    buf_free(&log->writing);
    buf_free(&log->rest);
    free_log(log);
}

void
access_log_add(struct access_log *log, const struct access_entry *entry,
               const struct access_format *format)
{
    const int64_t now_us = clock_wall_us();
    struct buf line;
    bool full, made;

    buf_init(&line, LONGEST_LINE);
    if (log->fields) {
        access_pattern_append(&line, entry, log->fields, now_us);
        buf_truncate(&line, line.len - (line.len > 0)); /* the line follows */
    }
    access_line_append(&line, entry, format, now_us);
    made = !buf_failed(&line);
    pthread_mutex_lock(&log->lock);
    full = made && !buf_append(&log->waiting, line.data, line.len);
    if (log->waiting.len >= WAKE_AT)
        pthread_cond_signal(&log->wake);
    pthread_mutex_unlock(&log->lock);
    if (full)
        atomic_fetch_add(&log->unheld, 1);
    if (!made)
        atomic_fetch_add(&log->unmade, 1);
    buf_free(&line);
}

void
access_log_reopen(struct access_log *log)
{
    struct timespec until;
    unsigned wanted;

    if (!log->reopens)
        return;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += REOPEN_SECONDS;
    pthread_mutex_lock(&log->lock);
    wanted = ++log->reopens_wanted;
    pthread_cond_signal(&log->wake);
    while ((int)(wanted - log->reopens_done) > 0)
        if (pthread_cond_timedwait(&log->reopened, &log->lock, &until) == ETIMEDOUT)
            break;
    pthread_mutex_unlock(&log->lock);
}

uint64_t
access_log_lost(struct access_log *log)
{
    return atomic_load(&log->unwritten) + atomic_load(&log->unheld) + atomic_load(&log->unmade);
}
