#include "server/logs/log_command.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "server/logs/log.h"

#define FIRST_PAUSE_MS 1000
#define LONGEST_PAUSE_MS 60000
#define STEADY_US ((int64_t)60 * 1000000) /* a command that ran for this long is started soon */
#define WAIT_MS 2000
#define CANNOT_RUN 127 /* what a shell says of a command that it does not find */

/* What the daemon is sent, which this process and the command are sent, too. */
static const int set_aside[] = {SIGHUP, SIGUSR1, SIGUSR2, SIGINT, SIGTERM, SIGPIPE, SIGXFSZ};

static void
set_signals(void (*action)(int))
{
    sigset_t none;

    for (size_t i = 0; i < sizeof(set_aside) / sizeof(set_aside[0]); i++)
        signal(set_aside[i], action);
    sigemptyset(&none);
    pthread_sigmask(SIG_SETMASK, &none, NULL);
}

/* ---- sunproxyd-log --------------------------------------------------------------------------- */

/* The number of the child, or -1. */
static pid_t
run(const char *command, int from)
{
    pid_t child = fork();

    if (child != 0)
        return child;
    /* Ctrl-C on the daemon's terminal is not for the command: it ends with its input. */
    setsid();
    set_signals(SIG_DFL);
    if (dup2(from, STDIN_FILENO) >= 0 && dup2(STDERR_FILENO, STDOUT_FILENO) >= 0)
        execl("/bin/sh", "sh", "-c", command, (char *)NULL);
    _exit(CANNOT_RUN);
}

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

static void
log_end(const char *command, int status, int pause_ms)
{
    char how[48];

    if (WIFSIGNALED(status))
        snprintf(how, sizeof(how), "was ended by signal %d", WTERMSIG(status));
    else
        snprintf(how, sizeof(how), "has ended with status %d", WEXITSTATUS(status));
    log_warning("access log: the command \"%s\" %s; it is started again in %d s", command, how,
                pause_ms / 1000);
}

static int
wait_for(pid_t child)
{
    int status = CANNOT_RUN << 8;

    if (child > 0)
        while (waitpid(child, &status, 0) < 0 && errno == EINTR)
            ;
    return status;
}

/* Behind the daemon's end the command runs once more if it has left lines. */
static void
keep(const char *command, int from)
{
    int pause_ms = FIRST_PAUSE_MS;
    bool last = false;

    for (;;) {
        const int64_t started_us = clock_monotonic_us();
        const int status = wait_for(run(command, from));

        if (last)
            return;
        last = await_hangup(from, 0);
        if (!last) {
            if (clock_monotonic_us() - started_us >= STEADY_US)
                pause_ms = FIRST_PAUSE_MS;
            log_end(command, status, pause_ms);
            last = await_hangup(from, pause_ms);
            pause_ms = pause_ms > LONGEST_PAUSE_MS / 2 ? LONGEST_PAUSE_MS : 2 * pause_ms;
        }
        if (last && is_empty(from))
            return;
        skip_line(from);
    }
}

/* Closes all descriptors but the standard ones and this one; returns its number from then on. */
static int
keep_alone(int fd)
{
    int first = STDERR_FILENO + 1;

    if (fd != first)
        dup2(fd, first);
    close_range((unsigned)first + 1, ~0u, 0);
    fcntl(first, F_SETFD, FD_CLOEXEC);
    return first;
}

/* ---- the daemon ------------------------------------------------------------------------------ */

int
log_command_start(const char *command, bool (*enter)(const void *context), const void *context,
                  pid_t *keeper)
{
    int ends[2], error;

    if (pipe2(ends, O_CLOEXEC) != 0)
        return -1;
    *keeper = fork();
    if (*keeper == 0) {
        set_signals(SIG_IGN);
        prctl(PR_SET_NAME, "sunproxyd-log");
        if (enter(context))
            keep(command, keep_alone(ends[0]));
        _exit(0);
    }
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

void
log_command_wait(pid_t keeper)
{
    const struct timespec pause = {.tv_nsec = 1000000};

    for (int i = 0; keeper > 0 && i < WAIT_MS && waitpid(keeper, NULL, WNOHANG) == 0; i++)
        nanosleep(&pause, NULL);
}
