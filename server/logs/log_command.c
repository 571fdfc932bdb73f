#include "server/logs/log_command.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "server/commands/keeper.h"
#include "server/logs/log.h"

#define FIRST_PAUSE_MS 1000

/* ---- sunproxyd-log --------------------------------------------------------------------------- */

/* Waits for the daemon's end; false if it has not ended within this time. */
static bool
await_hangup(int from, int ms)
{
    struct pollfd end = {.fd = from};

    return poll(&end, 1, ms) == 1 && (end.revents & POLLHUP);
}

static bool
is_empty(int from)
{
    int bytes = 0;

    return ioctl(from, FIONREAD, &bytes) == 0 && bytes == 0;
}

/* What is in the pipe may begin within a line, which is dropped. */
static void
skip_line(int from)
{
    char c = '\0';

    if (is_empty(from))
        return;
    while (c != '\n' && read(from, &c, 1) == 1)
        ;
}

static int
wait_for(pid_t child)
{
    int status = KEEPER_CANNOT_RUN << 8;

    if (child > 0)
        while (waitpid(child, &status, 0) < 0 && errno == EINTR)
            ;
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
keep(const void *what, int from)
{
    const char *command = what;
    int pause_ms = 0;
    bool last = false;

    for (;;) {
        const int64_t started_us = clock_monotonic_us();
        const int status = wait_for(keeper_run(command, from, -1));

        if (last)
            return;
        last = await_hangup(from, 0) ||
               pause_after(
                   command, status,
                   keeper_next_pause(&pause_ms, FIRST_PAUSE_MS, clock_monotonic_us() - started_us),
                   from);
        if (last && is_empty(from))
            return;
        skip_line(from);
    }
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
