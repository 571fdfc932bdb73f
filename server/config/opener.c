#include "server/config/opener.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <unistd.h>

#include "server/logs/log.h"

#define MOST_TEXT ((size_t)64 << 20)

/* What precedes the text of an answer. */
struct answer {
    uint32_t failed; /* 0: the text is the configuration; 1: it says what is wrong */
    uint64_t len;
};

/* False at the end of what is sent, or after an error. */
static bool
receive(int fd, void *bytes, size_t len)
{
    for (char *at = bytes; len;) {
        ssize_t n = read(fd, at, len);

        if (n == 0 || (n < 0 && errno != EINTR))
            return false;
        at += n > 0 ? n : 0;
        len -= n > 0 ? (size_t)n : 0;
    }
    return true;
}

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
    else if (options_parse(&options, given->argc, given->argv, text) == EX_OK && check(&options) == EX_OK)
        ok = true;
    if (ok) {
        buf_reset(text);
        ok = print(&options, text);
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

static void
serve(int fd, const struct options *given, int (*check)(const struct options *options))
{
    char wish;

    while (receive(fd, &wish, 1)) {
        struct answer answer;
        struct buf text;

        buf_init(&text, MOST_TEXT);
        answer.failed = !read_again(given, check, &text);
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
    child = fork();
    if (child == 0) {
        prctl(PR_SET_NAME, "sunproxyd-conf");
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

bool
opener_read(struct opener *opener, struct buf *text, struct buf *why)
{
    struct answer answer;
    bool received = opener->fd >= 0 && send_all(opener->fd, "r", 1) && receive(opener->fd, &answer, sizeof(answer)) &&
                    answer.len <= MOST_TEXT;
    struct buf *into = received && answer.failed ? why : text;

    if (received && !buf_reserve(into, answer.len + 1)) {
        buf_append_str(why, strerror(ENOMEM));
        opener_stop(opener);
        return false;
    }
    if (!received || !receive(opener->fd, into->data + into->len, answer.len)) {
        buf_append_str(why, "the process that reads the configuration has ended; a restart of "
                            "the daemon starts it again");
        opener_stop(opener);
        return false;
    }
    into->len += answer.len;
    into->data[into->len] = '\0';
    return !answer.failed;
}

void
opener_stop(struct opener *opener)
{
    if (opener->fd < 0)
        return;
    close(opener->fd);
    while (waitpid(opener->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    opener->fd = -1;
}
