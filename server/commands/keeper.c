#include "server/commands/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define WAIT_MS 2000

/* What the daemon is sent, which keepers and commands are sent, too. */
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

/* ---- in the process -------------------------------------------------------------------------- */

pid_t
keeper_run(const char *command, int in, int out)
{
    pid_t child = fork();

    if (child != 0)
        return child;
    /* Ctrl-C on the daemon's terminal is not for the command: it ends with its input. */
    setsid();
    set_signals(SIG_DFL);
    if (dup2(in, STDIN_FILENO) >= 0 && dup2(out < 0 ? STDERR_FILENO : out, STDOUT_FILENO) >= 0)
        execl("/bin/sh", "sh", "-c", command, (char *)NULL);
    _exit(KEEPER_CANNOT_RUN);
}

const char *
keeper_describe_end(int status, char *text)
{
    if (WIFSIGNALED(status))
        snprintf(text, KEEPER_END_TEXT, "was ended by signal %d", WTERMSIG(status));
    else
        snprintf(text, KEEPER_END_TEXT, "has ended with status %d", WEXITSTATUS(status));
    return text;
}

int
keeper_next_pause(int *pause_ms, int first_ms, int64_t ran_us)
{
    if (*pause_ms == 0 || ran_us >= KEEPER_STEADY_US)
        *pause_ms = first_ms;
    else
        *pause_ms =
            *pause_ms > KEEPER_LONGEST_PAUSE_MS / 2 ? KEEPER_LONGEST_PAUSE_MS : 2 * *pause_ms;
    return *pause_ms;
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

pid_t
keeper_start(const struct keeper *keeper, int fd)
{
    pid_t child = fork();

    if (child != 0)
        return child;
    set_signals(SIG_IGN);
    prctl(PR_SET_NAME, keeper->name);
    if (keeper->enter(keeper->context))
        keeper->keep(keeper->what, keep_alone(fd));
    _exit(0);
}

void
keeper_wait(pid_t keeper)
{
    const struct timespec pause = {.tv_nsec = 1000000};

    for (int i = 0; keeper > 0 && i < WAIT_MS && waitpid(keeper, NULL, WNOHANG) == 0; i++)
        nanosleep(&pause, NULL);
}
