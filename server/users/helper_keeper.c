#include "server/users/helper_keeper.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/passing.h"
#include "server/commands/keeper.h"
#include "server/logs/log.h"

#define LAST_MS 1000 /* for helpers to end with their input */
#define END_MS 20    /* for one that ends, and for one that is killed */

/* ---- sunproxyd-auth -------------------------------------------------------------------------- */

struct keeping {
    const char *command;
    int fd;                  /* to the daemon */
    pid_t pids[HELPERS_MAX]; /* 0: it does not run, or was ended */
};

static void
log_end(const struct keeping *keeping, int status)
{
    char how[KEEPER_END_TEXT];

    log_warning("auth-helper: the command \"%s\" %s", keeping->command,
                keeper_describe_end(status, how));
}

/* Takes those that have ended. */
static void
reap(struct keeping *keeping, bool logs)
{
    int status;
    pid_t pid;

    while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
        for (unsigned i = 0; i < HELPERS_MAX; i++) {
            if (keeping->pids[i] != pid)
                continue;
            keeping->pids[i] = 0;
            if (logs)
                log_end(keeping, status);
        }
}

/* Waits for a child, but a while only. False: it has not ended yet. */
static bool
await(pid_t pid, unsigned ms, int *status)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    pid_t ended = 0;

    for (unsigned i = 0; i < ms && (ended = waitpid(pid, status, WNOHANG)) == 0; i++)
        nanosleep(&pause, NULL);
    return ended != 0;
}

/* Ends a process, which has its number until it is reaped. One that is about to end by itself may
 * do so: a signal would take the place of its status. One that cannot end now is reaped later. */
static void
end(struct keeping *keeping, unsigned number)
{
    const pid_t pid = keeping->pids[number];
    int status = 0;

    keeping->pids[number] = 0;
    if (pid <= 0)
        return;
    if (await(pid, END_MS, &status)) {
        log_end(keeping, status);
        return;
    }
    kill(-pid, SIGKILL);
    kill(pid, SIGKILL);
    await(pid, END_MS, &status);
}

/* 0 or an errno. *socket is the daemon's end. */
static int
begin(struct keeping *keeping, unsigned number, int *socket)
{
    int ends[2];
    pid_t pid;

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        return errno;
    pid = keeper_run(keeping->command, ends[1], ends[1]);
    close(ends[1]);
    if (pid < 0) {
        close(ends[0]);
        return errno;
    }
    keeping->pids[number] = pid;
    *socket = ends[0];
    return 0;
}

/* False: the daemon has ended. */
static bool
obey(struct keeping *keeping)
{
    struct helper_wish wish;
    struct helper_begun begun;
    int socket = -1;
    bool sent;

    if (recv(keeping->fd, &wish, sizeof(wish), MSG_WAITALL) != (ssize_t)sizeof(wish) ||
        wish.number >= HELPERS_MAX)
        return false;
    end(keeping, wish.number);
    if (!wish.starts)
        return true;
    begun = (struct helper_begun){wish.number, begin(keeping, wish.number, &socket)};
    sent = passing_send(keeping->fd, &begun, sizeof(begun), &socket, socket >= 0);
    if (socket >= 0)
        close(socket);
    return sent;
}

static unsigned
count_running(const struct keeping *keeping)
{
    unsigned count = 0;

    for (unsigned i = 0; i < HELPERS_MAX; i++)
        count += keeping->pids[i] != 0;
    return count;
}

/* The helpers have lost their input. */
static void
end_all(struct keeping *keeping)
{
    const struct timespec pause = {.tv_nsec = 1000000};

    for (unsigned i = 0; i < LAST_MS && count_running(keeping); i++) {
        nanosleep(&pause, NULL);
        reap(keeping, false);
    }
    for (unsigned i = 0; i < HELPERS_MAX; i++)
        end(keeping, i);
}

static void
keep(const void *what, int fd)
{
    struct keeping keeping = {.command = what, .fd = fd};
    struct signalfd_siginfo info;
    struct pollfd fds[2] = {{.fd = fd, .events = POLLIN}, {.events = POLLIN}};
    sigset_t ended;

    sigemptyset(&ended);
    sigaddset(&ended, SIGCHLD);
    pthread_sigmask(SIG_BLOCK, &ended, NULL);
    fds[1].fd = signalfd(-1, &ended, SFD_CLOEXEC | SFD_NONBLOCK);
    while (poll(fds, 2, -1) > 0 || errno == EINTR) {
        if (fds[0].revents && !obey(&keeping))
            break;
        if (fds[1].revents && read(fds[1].fd, &info, sizeof(info)) > 0)
            reap(&keeping, true);
    }
    end_all(&keeping);
}

/* ---- the daemon ------------------------------------------------------------------------------ */

int
helper_keeper_start(const char *command, bool (*enter)(const void *context), const void *context,
                    pid_t *keeper)
{
    const struct keeper keeping = {"sunproxyd-auth", enter, context, keep, command};
    int ends[2], error;

    *keeper = 0;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        return -1;
    *keeper = keeper_start(&keeping, ends[1]);
    error = errno;
    close(ends[1]);
    if (*keeper > 0)
        return ends[0];
    *keeper = 0;
    close(ends[0]);
    errno = error;
    return -1;
}
