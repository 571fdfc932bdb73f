#include "server/config/opener.h"

#include <errno.h>
#include <fcntl.h>
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
#include "base/passing.h"
#include "fetch/fetch.h"
#include "server/config/config_files.h"
#include "server/listen/take_over.h"
#include "server/logs/log.h"

#define MOST_TEXT ((size_t)64 << 20)
#define MOST_ERRORS ((size_t)60000) /* bytes */
#define ANSWER_MS 30000             /* for an answer to begin */
#define REST_SECONDS 10             /* for each part of what follows its beginning */
#define LOOK_MS 100                 /* from one look at signals and other work to the next */
#define STOP_MS 1000                /* for the process to end */

enum kind { KIND_READ, KIND_OPEN, KIND_LAUNCH };

struct wish {
    uint32_t number;
    uint32_t kind;
};

/* What precedes the text of an answer. A launch has a connection and no text, or says why not. */
struct answer {
    uint32_t number;  /* of the wish */
    uint16_t failed;  /* 0: the text is the configuration; 1: it says what is wrong */
    uint16_t sockets; /* 1: they follow, to the end of their list (listen/take_over.h) */
    uint64_t len;
    uint64_t files; /* bytes behind the text */
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

/* Ignored by the process. */
static const int set_aside[] = {SIGHUP, SIGUSR1, SIGUSR2, SIGCHLD};

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

/* What the process works with. */
struct reader {
    int fd; /* to the daemon */
    const struct options *given;
    opener_check *check;
    opener_open *open;
    struct options read; /* by the last wish to read, if that succeeded */
    bool has_read;
};

static void
forget_read(struct reader *reader)
{
    if (reader->has_read)
        options_free(&reader->read);
    reader->has_read = false;
}

/* Appends the configuration, or what is wrong with it, and then returns false. */
static bool
read_again(struct reader *reader, struct buf *text, struct buf *files)
{
    const struct options *given = reader->given;
    struct options options;
    bool ok = false;

    forget_read(reader);
    log_capture(text);
    if (!options_init(&options))
        buf_append_str(text, strerror(ENOMEM));
    else
        ok = options_parse(&options, given->argc, given->argv, text) == EX_OK &&
             reader->check(&options) == EX_OK && config_files_read(&options, files, text);
    if (ok) {
        buf_reset(text);
        ok = print(&options, text);
    } else {
        shorten(text);
    }
    log_capture(NULL);
    reader->has_read = ok;
    if (ok)
        reader->read = options;
    else
        options_free(&options);
    return ok;
}

/* Replaces this process by the daemon's program, with a connection to the daemon that runs. */
static void
run_program(const struct options *given, int connection)
{
    char *argv[given->argc + 2], number[16];

    argv[0] = given->argv[0];
    argv[1] = (char[]){"--take-over"};
    for (int i = 1; i < given->argc; i++)
        argv[i + 1] = given->argv[i];
    argv[given->argc + 1] = NULL;
    snprintf(number, sizeof(number), "%d", connection);
    setenv(TAKE_OVER_VARIABLE, number, 1);
    for (size_t i = 0; i < sizeof(set_aside) / sizeof(set_aside[0]); i++)
        signal(set_aside[i], SIG_DFL);
    execvp(argv[0], argv);
    log_error("cannot start %s: %s", argv[0], strerror(errno));
    _exit(EX_UNAVAILABLE);
}

/* The connection to the process that was started; -1 with errno. */
static int
launch(const struct options *given, int daemon)
{
    int ends[2];
    pid_t child;

    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0)
        return -1;
    child = fork();
    if (child == 0) {
        close(daemon);
        close(ends[0]);
        run_program(given, ends[1]);
    }
    close(ends[1]);
    if (child < 0) {
        close(ends[0]);
        return -1;
    }
    return ends[0];
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

/* What is sent to all processes of the daemon is for that: SIGTERM ends this one at once. A process
 * that was started and has failed is not waited for. */
static void
set_signals(void)
{
    sigset_t none;

    for (size_t i = 0; i < sizeof(set_aside) / sizeof(set_aside[0]); i++)
        signal(set_aside[i], SIG_IGN);
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

/* Sends an answer with this text. False: the daemon has ended. */
static bool
send_answer(struct reader *reader, struct answer *answer, const struct buf *text)
{
    answer->len = text->len;
    return send_all(reader->fd, answer, sizeof(*answer)) &&
           send_all(reader->fd, text->data, text->len);
}

static bool
answer_read(struct reader *reader, struct answer *answer)
{
    struct buf text, files;
    bool sent;

    buf_init(&text, MOST_TEXT);
    buf_init(&files, CONFIG_FILES_MAX);
    watch_daemon(true);
    answer->failed = !read_again(reader, &text, &files);
    watch_daemon(false);
    answer->files = answer->failed ? 0 : files.len;
    sent = send_answer(reader, answer, &text) && send_all(reader->fd, files.data, answer->files);
    buf_free(&text);
    buf_free(&files);
    return sent;
}

/* Sends all sockets behind an answer; those that were opened are the daemon's then. */
static bool
send_sockets(struct reader *reader, struct answer *answer, struct listening *listening)
{
    const struct buf none = {0};
    struct taken_sockets offer;
    bool sent;

    listen_offer(listening, &offer);
    answer->sockets = 1;
    sent = send_answer(reader, answer, &none) && take_over_offer(reader->fd, &offer);
    for (unsigned i = 0; sent && i < offer.count; i++)
        offer.items[i].used = true;
    if (sent)
        listen_give(listening, &offer);
    listen_close(listening);
    return sent;
}

static bool
answer_open(struct reader *reader, struct answer *answer)
{
    struct taken_sockets taken = {.count = 0};
    struct listening listening = LISTENING_NONE;
    struct buf why;
    bool goes_on;

    buf_init(&why, MOST_TEXT);
    goes_on = take_over_receive(reader->fd, &taken, &why);
    answer->failed =
        !reader->has_read || !goes_on || !reader->open(&reader->read, &taken, &listening, &why);
    if (goes_on && answer->failed)
        goes_on = send_answer(reader, answer, &why);
    else if (goes_on)
        goes_on = send_sockets(reader, answer, &listening);
    taken_sockets_close(&taken);
    buf_free(&why);
    return goes_on;
}

static bool
answer_launch(struct reader *reader, struct answer *answer)
{
    int connection = launch(reader->given, reader->fd);
    const char *text = strerror(errno);
    bool sent;

    answer->failed = connection < 0;
    answer->len = connection < 0 ? strlen(text) : 0;
    sent = passing_send(reader->fd, answer, sizeof(*answer), &connection, connection >= 0) &&
           send_all(reader->fd, text, answer->len);
    if (connection >= 0)
        close(connection);
    return sent;
}

static void
serve(struct reader *reader)
{
    static bool (*const answers[])(struct reader * reader, struct answer * answer) = {
        [KIND_READ] = answer_read, [KIND_OPEN] = answer_open, [KIND_LAUNCH] = answer_launch};
    struct wish wish;
    bool goes_on = true;

    while (goes_on && recv(reader->fd, &wish, sizeof(wish), MSG_WAITALL) == (ssize_t)sizeof(wish)) {
        struct answer answer = {.number = wish.number};

        goes_on = wish.kind <= KIND_LAUNCH && answers[wish.kind](reader, &answer);
    }
    forget_read(reader);
}

/* ---- the daemon ------------------------------------------------------------------------------ */

bool
opener_start(struct opener *opener, const struct options *options, opener_check *check,
             opener_open *open)
{
    struct reader reader = {.given = options, .check = check, .open = open};
    const struct timeval limit = {.tv_sec = REST_SECONDS};
    int ends[2];
    pid_t child;

    opener->fd = -1;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        return false;
    /* Where await() does not: within a message, or while the process reads none. */
    setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    setsockopt(ends[0], SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
    daemon_pid = getpid();
    child = fork();
    if (child == 0) {
        close(ends[0]);
        set_signals();
        reader.fd = keep_alone(ends[1]);
        serve(&reader);
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

enum receipt {
    RECEIVED,
    RECEIVED_LATE,    /* not yet: it is still to come */
    RECEIVED_NOTHING, /* the process has ended, or it is not known what it sends */
};

/* Waits until there is something to receive, and lets the daemon work meanwhile. */
static enum receipt
await(const struct opener *opener, int64_t until_us)
{
    struct pollfd poll_fd = {.fd = opener->fd, .events = POLLIN};

    for (;;) {
        if (clock_monotonic_us() >= until_us || is_stopping())
            return RECEIVED_LATE;
        if (poll(&poll_fd, 1, LOOK_MS) > 0)
            return RECEIVED;
        if (opener->work)
            opener->work(opener->context);
    }
}

/* The beginning of the answer to the last wish, with the descriptor that comes with it (-1: none). */
static enum receipt
receive_beginning(const struct opener *opener, struct answer *answer, int *connection,
                  int64_t until_us)
{
    enum receipt receipt = await(opener, until_us);
    int passed[PASSING_MAX];
    unsigned count;

    *connection = -1;
    if (receipt != RECEIVED)
        return receipt;
    if (passing_receive(opener->fd, answer, sizeof(*answer), passed, &count) <= 0)
        return RECEIVED_NOTHING;
    if (count)
        *connection = passed[0];
    return answer->number == opener->number && answer->len <= MOST_TEXT &&
                   answer->files <= CONFIG_FILES_MAX
               ? RECEIVED
               : RECEIVED_NOTHING;
}

/* Receives bytes of an answer that has begun; `bytes` may be NULL: they are dropped. */
static bool
receive(const struct opener *opener, char *bytes, size_t len)
{
    char dropped[4096];

    while (len) {
        size_t most = bytes || len < sizeof(dropped) ? len : sizeof(dropped);
        ssize_t n;

        if (await(opener, clock_monotonic_us() + (int64_t)REST_SECONDS * 1000000) != RECEIVED)
            return false;
        n = recv(opener->fd, bytes ? bytes : dropped, most, 0);
        if (n == 0 || (n < 0 && errno != EINTR))
            return false;
        bytes += bytes && n > 0 ? n : 0;
        len -= n > 0 ? (size_t)n : 0;
    }
    return true;
}

/* Appends that many bytes; without memory they are dropped, and *why says so. */
static bool
receive_text(const struct opener *opener, struct buf *into, uint64_t len, struct buf *why)
{
    bool received;

    if (!buf_reserve(into, len + 1)) {
        buf_append_str(why, strerror(ENOMEM));
        return receive(opener, NULL, len);
    }
    received = receive(opener, into->data + into->len, len);
    into->len += received ? len : 0;
    into->data[into->len] = '\0';
    return received;
}

static bool
receive_sockets(const struct opener *opener, struct taken_sockets *sockets)
{
    struct buf ignored;
    bool received;

    buf_init(&ignored, 1024);
    received = take_over_receive(opener->fd, sockets, &ignored);
    buf_free(&ignored);
    return received;
}

/* Where an answer goes; *why gets what is wrong. */
struct answer_parts {
    const struct taken_sockets *offer; /* sent with the wish; NULL: none */
    struct buf *text, *files;
    struct taken_sockets *opened;
    int connection; /* -1: none */
};

/* What follows the beginning of an answer. */
static enum receipt
receive_rest(const struct opener *opener, const struct answer *answer, struct answer_parts *parts,
             struct buf *why)
{
    bool received =
        receive_text(opener, answer->failed ? why : parts->text, answer->len, why) &&
        receive_text(opener, parts->files, answer->files, why) &&
        (!answer->sockets || (parts->opened && receive_sockets(opener, parts->opened)));

    return received ? RECEIVED : RECEIVED_NOTHING;
}

/* Receives the answer to a wish that was given up, and drops it. */
static enum receipt
drop_answer(struct opener *opener, int64_t until_us)
{
    struct taken_sockets sockets = {.count = 0};
    struct answer answer;
    int connection = -1;
    enum receipt receipt = receive_beginning(opener, &answer, &connection, until_us);

    if (receipt != RECEIVED)
        return receipt;
    if (connection >= 0)
        close(connection);
    opener->waits = false;
    if (!receive(opener, NULL, answer.len + answer.files) ||
        (answer.sockets && !receive_sockets(opener, &sockets)))
        receipt = RECEIVED_NOTHING;
    taken_sockets_close(&sockets);
    return receipt;
}

static bool
send_wish(struct opener *opener, enum kind kind, const struct taken_sockets *offer)
{
    const struct wish wish = {.number = ++opener->number, .kind = kind};

    opener->waits = true;
    return send_all(opener->fd, &wish, sizeof(wish)) &&
           (!offer || take_over_offer(opener->fd, offer));
}

/* There is one wish at a time: what is sent is read soon, and what is received is the answer. */
static enum receipt
ask_now(struct opener *opener, enum kind kind, struct answer_parts *parts, bool *failed,
        struct buf *why)
{
    const int64_t until_us = clock_monotonic_us() + (int64_t)ANSWER_MS * 1000;
    struct answer answer = {0};
    enum receipt receipt = opener->fd < 0 ? RECEIVED_NOTHING : RECEIVED;

    if (receipt == RECEIVED && opener->waits)
        receipt = drop_answer(opener, until_us);
    if (receipt == RECEIVED && !send_wish(opener, kind, parts->offer))
        receipt = RECEIVED_NOTHING;
    if (receipt == RECEIVED)
        receipt = receive_beginning(opener, &answer, &parts->connection, until_us);
    if (receipt != RECEIVED)
        return receipt;
    opener->waits = false;
    *failed = answer.failed != 0;
    return receive_rest(opener, &answer, parts, why);
}

static bool
ask(struct opener *opener, enum kind kind, struct answer_parts *parts, struct buf *why)
{
    static const char *const late[] = {
        [KIND_READ] = "the configuration could not be read",
        [KIND_OPEN] = "the sockets could not be opened",
        [KIND_LAUNCH] = "the process that starts others has not answered",
    };
    const size_t before = why->len;
    bool failed = false;
    enum receipt receipt;

    parts->connection = -1;
    receipt = ask_now(opener, kind, parts, &failed, why);
    if (receipt == RECEIVED_LATE)
        buf_printf(why, "%s within %d s", late[kind], ANSWER_MS / 1000);
    if (receipt == RECEIVED_NOTHING) {
        buf_append_str(why, "the process that reads the configuration has ended; a restart of "
                            "the daemon starts it again");
        opener_stop(opener);
    }
    if (receipt != RECEIVED && parts->connection >= 0)
        close(parts->connection);
    return receipt == RECEIVED && !failed && why->len == before;
}

bool
opener_read(struct opener *opener, struct buf *text, struct buf *files, struct buf *why)
{
    struct answer_parts parts = {.text = text, .files = files};

    return ask(opener, KIND_READ, &parts, why);
}

bool
opener_open_sockets(struct opener *opener, const struct taken_sockets *offer,
                    struct taken_sockets *opened, struct buf *why)
{
    struct buf none;
    struct answer_parts parts = {.offer = offer, .text = &none, .files = &none, .opened = opened};
    bool done;

    opened->count = 0;
    buf_init(&none, 1024);
    done = ask(opener, KIND_OPEN, &parts, why);
    buf_free(&none);
    return done;
}

int
opener_launch(struct opener *opener, struct buf *why)
{
    struct buf none;
    struct answer_parts parts = {.text = &none, .files = &none};
    bool done;

    buf_init(&none, 1024);
    done = ask(opener, KIND_LAUNCH, &parts, why);
    buf_free(&none);
    if (done && parts.connection >= 0)
        fcntl(parts.connection, F_SETFL, O_NONBLOCK);
    return done ? parts.connection : -1;
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
