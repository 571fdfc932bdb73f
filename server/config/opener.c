#include "server/config/opener.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "server/logs/log.h"

#define MOST_TEXT ((size_t)64 << 20)
#define MOST_ERRORS ((size_t)60000) /* bytes */
#define READ_MS 30000               /* for a configuration to be read and checked */
#define STOP_MS 1000                /* for the process to end */

/* What precedes the text of an answer. */
struct answer {
    uint32_t number; /* of the wish */
    uint32_t failed; /* 0: the text is the configuration; 1: it says what is wrong */
    uint64_t len;
};

static bool
send_all(int fd, const void *bytes, size_t len)
{
    for (const char *at = bytes; len;) {
        ssize_t n = send(fd, at, len, MSG_NOSIGNAL);

        if (n < 0 && errno != EINTR)
            return false;
        at += n > 0 ? n : 0;
        len -= n > 0 ? (size_t)n : 0;
    }
    return true;
}

/* ---- the process ----------------------------------------------------------------------------- */

/* Appends the text of the options. */
static bool
print(const struct options *options, struct buf *text)
{
    char *printed = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&printed, &len);
    bool ok = out != NULL;

    if (out) {
        options_print_config(options, out);
        ok = fclose(out) == 0 && buf_append(text, printed, len);
    }
    free(printed);
    return ok;
}

/* Leaves whole lines of a long text. */
static void
shorten(struct buf *errors)
{
    const char *end;

    if (errors->len <= MOST_ERRORS)
        return;
    end = memrchr(errors->data, '\n', MOST_ERRORS);
    buf_truncate(errors, end ? (size_t)(end - errors->data) : MOST_ERRORS);
    buf_append_str(errors, "\nand further errors");
}

/* Appends the configuration, or what is wrong with it, and then returns false. */
static bool
read_again(const struct options *given, int (*check)(const struct options *options),
           struct buf *text)
{
    struct options options;
    bool ok = false;

    log_capture(text);
    if (!options_init(&options))
        buf_append_str(text, strerror(ENOMEM));
    else
        ok = options_parse(&options, given->argc, given->argv, text) == EX_OK &&
             check(&options) == EX_OK;
    if (ok) {
        buf_reset(text);
        ok = print(&options, text);
    } else {
        shorten(text);
    }
    options_free(&options);
    return ok;
}

/* Closes all descriptors but the standard ones and this one, such as sockets that were passed to
 * the daemon. Returns its number from then on. */
static int
keep_alone(int fd)
{
    int first = STDERR_FILENO + 1;

    if (fd != first)
        dup2(fd, first);
    close_range((unsigned)first + 1, ~0u, 0);
    return first;
}

/* What is sent to all processes of the daemon is for that: SIGTERM ends this one at once. */
static void
set_signals(void)
{
    sigset_t none;

    signal(SIGHUP, SIG_IGN);
    signal(SIGUSR1, SIG_IGN);
    signal(SIGUSR2, SIG_IGN);
    sigemptyset(&none);
    pthread_sigmask(SIG_SETMASK, &none, NULL);
    prctl(PR_SET_NAME, "sunproxyd-conf");
}

/* ---- the daemon's end ------------------------------------------------------------------------ */

static pid_t daemon_pid;

static void
end_without_daemon(int signal)
{
    (void)signal;
    if (getppid() != daemon_pid)
        _exit(0);
}

/* While a file is read, which may hang, looks every second whether the daemon is there. */
static void
watch_daemon(bool on)
{
    const struct sigaction action = {.sa_handler = end_without_daemon, .sa_flags = SA_RESTART};
    const struct timeval time = {.tv_sec = on};

    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &(struct itimerval){time, time}, NULL);
}

static void
serve(int fd, const struct options *given, int (*check)(const struct options *options))
{
    struct answer answer;

    while (recv(fd, &answer.number, sizeof(answer.number), MSG_WAITALL) ==
           (ssize_t)sizeof(answer.number)) {
        struct buf text;

        buf_init(&text, MOST_TEXT);
        watch_daemon(true);
        answer.failed = !read_again(given, check, &text);
        watch_daemon(false);
        answer.len = text.len;
        if (!send_all(fd, &answer, sizeof(answer)) || !send_all(fd, text.data, text.len))
            break;
        buf_free(&text);
    }
}

/* ---- the daemon ------------------------------------------------------------------------------ */

bool
opener_start(struct opener *opener, const struct options *options,
             int (*check)(const struct options *options))
{
    int ends[2];
    pid_t child;

    opener->fd = -1;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        return false;
    daemon_pid = getpid();
    child = fork();
    if (child == 0) {
        close(ends[0]);
        set_signals();
        serve(keep_alone(ends[1]), options, check);
        _exit(0);
    }
    close(ends[1]);
    if (child < 0) {
        close(ends[0]);
        return false;
    }
    *opener = (struct opener){.fd = ends[0], .pid = child};
    return true;
}

/* Is the daemon to end? */
static bool
is_stopping(void)
{
    sigset_t pending;

    return sigpending(&pending) == 0 &&
           (sigismember(&pending, SIGTERM) == 1 || sigismember(&pending, SIGINT) == 1);
}

enum receipt { RECEIVED, RECEIVED_LATE, RECEIVED_NOTHING };

/* Receives bytes; `bytes` may be NULL: they are dropped. */
static enum receipt
receive(int fd, char *bytes, size_t len, int64_t until_us)
{
    char dropped[4096];

    while (len) {
        struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
        size_t most = bytes || len < sizeof(dropped) ? len : sizeof(dropped);
        ssize_t n = 0;

        if (clock_monotonic_us() >= until_us || is_stopping())
            return RECEIVED_LATE;
        if (poll(&poll_fd, 1, 100) <= 0)
            continue;
        n = recv(fd, bytes ? bytes : dropped, most, 0);
        if (n == 0 || (n < 0 && errno != EINTR))
            return RECEIVED_NOTHING;
        bytes += bytes && n > 0 ? n : 0;
        len -= n > 0 ? (size_t)n : 0;
    }
    return RECEIVED;
}

/* The beginning of the answer to this wish; those to earlier ones, which came late, are dropped. */
static enum receipt
receive_answer(struct opener *opener, struct answer *answer, int64_t until_us)
{
    for (;;) {
        enum receipt receipt =
            receive(opener->fd, (char *)answer, sizeof(*answer), until_us);

        if (receipt != RECEIVED || answer->number == opener->number)
            return receipt;
        receipt = receive(opener->fd, NULL, answer->len, INT64_MAX);
        if (receipt != RECEIVED)
            return receipt;
    }
}

bool
opener_read(struct opener *opener, struct buf *text, struct buf *why)
{
    const int64_t until_us = clock_monotonic_us() + (int64_t)READ_MS * 1000;
    enum receipt receipt = RECEIVED_NOTHING;
    struct answer answer = {0};
    struct buf *into;

    opener->number++;
    if (opener->fd >= 0 && send_all(opener->fd, &opener->number, sizeof(opener->number)))
        receipt = receive_answer(opener, &answer, until_us);
    into = answer.failed ? why : text;
    if (receipt == RECEIVED && buf_reserve(into, answer.len + 1)) {
        receipt = receive(opener->fd, into->data + into->len, answer.len, INT64_MAX);
        into->len += receipt == RECEIVED ? answer.len : 0;
        into->data[into->len] = '\0';
    } else if (receipt == RECEIVED) {
        (void)receive(opener->fd, NULL, answer.len, INT64_MAX);
        buf_append_str(why, strerror(ENOMEM));
        return false;
    }
    if (receipt == RECEIVED_LATE)
        buf_printf(why, "the configuration could not be read within %d s", READ_MS / 1000);
    if (receipt == RECEIVED_NOTHING) {
        buf_append_str(why, "the process that reads the configuration has ended; a restart of "
                            "the daemon starts it again");
        opener_stop(opener);
    }
    return receipt == RECEIVED && !answer.failed;
}

/* One that hangs ends by itself when the daemon has ended. */
void
opener_stop(struct opener *opener)
{
    const struct timespec pause = {.tv_nsec = 1000000};

    if (opener->fd < 0)
        return;
    close(opener->fd);
    for (int i = 0; i < STOP_MS && waitpid(opener->pid, NULL, WNOHANG) == 0; i++)
        nanosleep(&pause, NULL);
    opener->fd = -1;
}
