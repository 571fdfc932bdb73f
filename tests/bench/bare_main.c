/*
 * bare: the floor that a server of this kind stands on. One thread, level-triggered epoll, one read
 * and one writev a request; a record comes in (RFC 5531, section 11), a record of a fixed length
 * goes out, and nobody looks into either. Prints its port on a line, then serves until killed.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <netinet/tcp.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/units.h"

#define EVENTS 512
#define INPUT (64u << 10)
#define HEAD 128u /* of an answer: what an RPC server encodes, apart from the page that it has */
#define MAX_RECORD (1u << 20)

struct connection {
    int fd;
    uint32_t record_left; /* of a call, still to come */
    uint32_t mark;        /* of one under way */
    unsigned mark_bytes;
    uint64_t owed; /* bytes of answers that the socket would not take yet */
};

struct server {
    int epoll;
    int listener;
    char *answer;
    size_t answer_len;
    char *input;
};

static void
drop(struct connection *c)
{
    close(c->fd);
    free(c);
}

static void
accept_connections(struct server *s)
{
    int one = 1;
    int fd;

    while ((fd = accept4(s->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
        struct connection *c = calloc(1, sizeof(*c));
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = c};

        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
        if (!c || epoll_ctl(s->epoll, EPOLL_CTL_ADD, fd, &event) != 0) {
            free(c);
            close(fd);
            continue;
        }
        c->fd = fd;
    }
}

/* Writes one answer from `at` on; what did not fit is owed. False if the connection is lost. */
static bool
write_answer(struct server *s, struct connection *c, size_t at)
{
    size_t head = at < HEAD && HEAD < s->answer_len ? HEAD - at : 0;
    struct iovec parts[2] = {{s->answer + at, head},
                             {s->answer + at + head, s->answer_len - at - head}};
    ssize_t n = writev(c->fd, head ? parts : parts + 1, head ? 2 : 1);

    if (n < 0 && errno != EAGAIN && errno != EINTR)
        return false;
    c->owed += s->answer_len - at - (size_t)(n < 0 ? 0 : n);
    return true;
}

static bool
watch(struct server *s, struct connection *c)
{
    struct epoll_event event = {.events = c->owed ? EPOLLOUT : EPOLLIN, .data.ptr = c};

    return epoll_ctl(s->epoll, EPOLL_CTL_MOD, c->fd, &event) == 0;
}

/* How many calls end in these bytes? -1 if they are no records. */
static int
count_calls(struct connection *c, const char *bytes, size_t len)
{
    int calls = 0;

    for (size_t i = 0; i < len;) {
        size_t n;

        if (c->record_left == 0) {
            c->mark = c->mark << 8 | (unsigned char)bytes[i++];
            if (++c->mark_bytes < 4)
                continue;
            c->mark_bytes = 0;
            c->record_left = c->mark & 0x7fffffffu;
            if (!(c->mark & 0x80000000u) || c->record_left == 0 || c->record_left > MAX_RECORD)
                return -1;
        }
        n = len - i < c->record_left ? len - i : c->record_left;
        i += n;
        c->record_left -= (uint32_t)n;
        if (c->record_left == 0)
            calls++;
    }
    return calls;
}

static bool
serve_calls(struct server *s, struct connection *c)
{
    ssize_t n = read(c->fd, s->input, INPUT);
    int calls;

    if (n <= 0)
        return n < 0 && (errno == EAGAIN || errno == EINTR);
    calls = count_calls(c, s->input, (size_t)n);
    if (calls < 0)
        return false;
    for (int i = 0; i < calls; i++) {
        if (c->owed > 0)
            c->owed += s->answer_len;
        else if (!write_answer(s, c, 0))
            return false;
    }
    return c->owed == 0 || watch(s, c);
}

/* An answer that was cut off goes on where it was; the calls behind it wait meanwhile. */
static bool
pay_owed(struct server *s, struct connection *c)
{
    while (c->owed > 0) {
        size_t rest = c->owed % s->answer_len ? c->owed % s->answer_len : s->answer_len;
        uint64_t others = c->owed - rest;

        c->owed = 0;
        if (!write_answer(s, c, s->answer_len - rest))
            return false;
        if (c->owed > 0) {
            c->owed += others;
            return true;
        }
        c->owed = others;
    }
    return watch(s, c);
}

static void
serve(struct server *s)
{
    struct epoll_event events[EVENTS];

    for (;;) {
        int n = epoll_wait(s->epoll, events, EVENTS, -1);

        for (int i = 0; i < n; i++) {
            struct connection *c = events[i].data.ptr;

            if (!c)
                accept_connections(s);
            else if (c->owed > 0 ? !pay_owed(s, c) : !serve_calls(s, c))
                drop(c);
        }
    }
}

static bool
listen_on_loopback(struct server *s, uint16_t *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(address);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};

    s->epoll = epoll_create1(EPOLL_CLOEXEC);
    s->listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (s->epoll < 0 || s->listener < 0 ||
        bind(s->listener, (struct sockaddr *)&address, sizeof(address)) != 0 ||
        listen(s->listener, SOMAXCONN) != 0 ||
        getsockname(s->listener, (struct sockaddr *)&address, &len) != 0 ||
        epoll_ctl(s->epoll, EPOLL_CTL_ADD, s->listener, &event) != 0)
        return false;
    *port = ntohs(address.sin_port);
    return true;
}

/* A record of as many bytes as were asked for, its mark included. */
static bool
make_answer(struct server *s, uint64_t bytes)
{
    uint32_t mark = htonl(0x80000000u | (uint32_t)(bytes - 4));

    s->answer_len = bytes;
    s->answer = malloc(bytes);
    s->input = malloc(INPUT);
    if (!s->answer || !s->input)
        return false;
    memset(s->answer, 'x', bytes);
    memcpy(s->answer, &mark, sizeof(mark));
    return true;
}

int
main(int argc, char **argv)
{
    static const struct option table[] = {{"bytes", required_argument, NULL, 'b'}, {0}};
    struct server server = {0};
    struct rlimit limit;
    uint64_t bytes = 0;
    uint16_t port;
    int c;

    while ((c = getopt_long(argc, argv, "", table, NULL)) != -1) {
        if (c != 'b' || !units_parse_uint(optarg, 8, MAX_RECORD, &bytes)) {
            fputs("usage: bare --bytes N   (8 to 1048576: a whole answer with its mark)\n", stderr);
            return EX_USAGE;
        }
    }
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
    if (bytes == 0 || !make_answer(&server, bytes) || !listen_on_loopback(&server, &port)) {
        perror("bare");
        return EX_OSERR;
    }
    signal(SIGPIPE, SIG_IGN); /* writev has no flag for it */
    printf("%u\n", port);
    fflush(stdout);
    serve(&server);
}
