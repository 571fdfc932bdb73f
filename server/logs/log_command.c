#include "server/logs/log_command.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "server/commands/keeper.h"
#include "server/logs/log.h"

#define FIRST_PAUSE_MS 1000
#define PIECE ((size_t)64 << 10)       /* bytes that are read at a time */
#define LONGEST_LINE ((size_t)1 << 20) /* of which the beginning is kept */
#define MOST_KEPT (4 * LONGEST_LINE)   /* with what a pipe holds, which is up to 1 MiB */

/* ---- sunproxyd-log --------------------------------------------------------------------------- */

/* What the daemon has written. */
struct stream {
    int from;        /* the daemon's pipe */
    int ends;        /* readable when a process has ended */
    bool ended;      /* the daemon has, and all was read */
    struct buf kept; /* from the beginning of the line that the command is to read next */
    size_t written;  /* bytes of it that are in the pipe of the command, or were read by it */
};

/* A run of the command. */
struct run {
    pid_t process;
    int in; /* of the command */
    int to; /* the other end of that pipe, non-blocking; -1: closed */
};

static void
close_end(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* Waits for the daemon's end; false if it has not ended within this time. */
static bool
await_hangup(int from, int ms)
{
    struct pollfd end = {.fd = from};

    return poll(&end, 1, ms) == 1 && (end.revents & POLLHUP);
}

static bool
is_empty(const struct stream *stream)
{
    int bytes = 0;

    return stream->kept.len == 0 && ioctl(stream->from, FIONREAD, &bytes) == 0 && bytes == 0;
}

/* Drops the lines of which the command has read all. */
static void
forget_read(struct stream *stream, const struct run *run)
{
    struct buf *kept = &stream->kept;
    int unread = 0;
    size_t done = stream->written;
    const char *end;

    if (done == 0 || ioctl(run->in, FIONREAD, &unread) != 0 || (size_t)unread > done)
        return;
    done -= (size_t)unread;
    end = done ? memrchr(kept->data, '\n', done) : NULL;
    if (end || done < LONGEST_LINE)
        done = end ? (size_t)(end - kept->data) + 1 : 0;
    memmove(kept->data, kept->data + done, kept->len - done);
    buf_truncate(kept, kept->len - done);
    stream->written -= done;
}

/* Reads what the daemon has written, of which there is some, or the end. */
static void
take(struct stream *stream, const struct run *run)
{
    struct buf *kept = &stream->kept;
    ssize_t n;

    forget_read(stream, run);
    n = read(stream->from, kept->data + kept->len, PIECE);
    stream->ended = n == 0;
    kept->len += n > 0 ? (size_t)n : 0;
}

static void
give(struct stream *stream, const struct run *run)
{
    struct buf *kept = &stream->kept;
    ssize_t n = write(run->to, kept->data + stream->written, kept->len - stream->written);

    stream->written += n > 0 ? (size_t)n : 0;
}

/* Passes lines on until the command ends; returns how it did. */
static int
pass(struct stream *stream, struct run *run)
{
    int status = 0;

    while (waitpid(run->process, &status, WNOHANG) == 0) {
        const bool waits = stream->written < stream->kept.len;
        struct pollfd fds[] = {
            {.fd = stream->ends, .events = POLLIN},
            {.fd = waits ? run->to : -1, .events = POLLOUT},
            {.fd = waits || stream->ended ? -1 : stream->from, .events = POLLIN}};
        struct signalfd_siginfo one;

        if (stream->ended && !waits)
            close_end(&run->to);
        if (poll(fds, sizeof(fds) / sizeof(fds[0]), -1) <= 0)
            continue;
        if (fds[0].revents)
            (void)!read(stream->ends, &one, sizeof(one));
        if (fds[1].revents)
            give(stream, run);
        if (fds[2].revents)
            take(stream, run);
    }
    return status;
}

/* Runs the command once; returns how it ended. */
static int
run_command(const char *command, struct stream *stream)
{
    int ends[2], status = KEEPER_CANNOT_RUN << 8;
    struct run run;

    if (pipe2(ends, O_CLOEXEC) != 0)
        return status;
    run = (struct run){.in = ends[0], .to = ends[1]};
    if (fcntl(run.to, F_SETFL, O_NONBLOCK) == 0)
        run.process = keeper_run(command, run.in, -1);
    stream->written = 0;
    if (run.process > 0)
        status = pass(stream, &run);
    forget_read(stream, &run);
    close(run.in);
    close_end(&run.to);
    return status;
}

/* Waits before the next run. True: the daemon has ended. */
static bool
pause_after(const char *command, int status, int pause_ms, int from)
{
    char how[KEEPER_END_TEXT];

    log_warning("access log: the command \"%s\" %s; it is started again in %d s", command,
                keeper_describe_end(status, how), pause_ms / 1000);
    return await_hangup(from, pause_ms);
}

/* Behind the daemon's end the command runs once more if it has left lines. */
static void
run_commands(const char *command, struct stream *stream)
{
    int pause_ms = 0;
    bool last = false;

    for (;;) {
        const int64_t started_us = clock_monotonic_us();
        const int status = run_command(command, stream);

        if (last)
            return;
        last = await_hangup(stream->from, 0) ||
               pause_after(
                   command, status,
                   keeper_next_pause(&pause_ms, FIRST_PAUSE_MS, clock_monotonic_us() - started_us),
                   stream->from);
        if (last && is_empty(stream))
            return;
    }
}

static void
keep(const void *what, int from)
{
    struct stream stream = {.from = from};
    sigset_t children;

    sigemptyset(&children);
    sigaddset(&children, SIGCHLD);
    sigprocmask(SIG_BLOCK, &children, NULL);
    stream.ends = signalfd(-1, &children, SFD_CLOEXEC);
    buf_init(&stream.kept, MOST_KEPT);
    if (stream.ends >= 0 && buf_reserve(&stream.kept, MOST_KEPT))
        run_commands(what, &stream);
    else
        log_error("access log: sunproxyd-log cannot run a command: %s", strerror(errno));
    buf_free(&stream.kept);
}

/* ---- the daemon ------------------------------------------------------------------------------ */

int
log_command_start(const char *command, bool (*enter)(const void *context), const void *context,
                  pid_t *keeper)
{
    const struct keeper keeping = {"sunproxyd-log", enter, context, keep, command};
    int ends[2], error;

    if (pipe2(ends, O_CLOEXEC) != 0)
        return -1;
    *keeper = keeper_start(&keeping, ends[0]);
    error = errno;
    close(ends[0]);
    if (*keeper > 0 && fcntl(ends[1], F_SETFL, O_NONBLOCK) == 0)
        return ends[1];
    error = *keeper > 0 ? errno : error;
    close(ends[1]);
    *keeper = 0;
    errno = error;
    return -1;
}
