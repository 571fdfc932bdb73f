/*
 * bare: the floor that a server of this kind stands on. One thread, level-triggered epoll, one read
 * and one writev for what it brought; a record comes in (RFC 5531, section 11), a record of a fixed
 * length goes out, and nobody looks into either. The answers can be made to stand in as many places
 * as a cache has pages, so that fetching them from memory costs both the same. Prints its port on a
 * line, then serves until killed.
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
#define PIECES 256
#define MAX_RECORD (1u << 20)
#define MAX_ANSWERS 1000000u

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
    char **answers;
    uint32_t answer_count;
    size_t answer_len;
    uint64_t random;
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

static char *
draw_answer(struct server *s)
{
    s->random ^= s->random << 13;
    s->random ^= s->random >> 7;
    s->random ^= s->random << 17;
    return s->answers[(s->random >> 32) * s->answer_count >> 32];
}

/* The next bytes that are owed, as pieces: of each answer its head, then the rest of it. */
static int
gather(struct server *s, uint64_t owed, struct iovec *pieces)
{
    int count = 0;

    while (owed > 0 && count + 2 <= PIECES) {
        size_t rest = owed % s->answer_len ? owed % s->answer_len : s->answer_len;
        char *at = draw_answer(s) + (s->answer_len - rest);

        owed -= rest;
        if (rest == s->answer_len && rest > HEAD) {
            pieces[count++] = (struct iovec){at, HEAD};
            at += HEAD;
            rest -= HEAD;
        }
        pieces[count++] = (struct iovec){at, rest};
    }
    return count;
}

/* Writes what is owed, as far as the socket takes it. False if the connection is lost. */
static bool
pay(struct server *s, struct connection *c)
{
    struct iovec pieces[PIECES];

    while (c->owed > 0) {
        ssize_t n = writev(c->fd, pieces, gather(s, c->owed, pieces));

        if (n < 0 && errno != EINTR)
            return errno == EAGAIN;
        c->owed -= (uint64_t)(n < 0 ? 0 : n);
    }
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
    c->owed = (uint64_t)calls * s->answer_len;
    return pay(s, c) && (c->owed == 0 || watch(s, c));
}

/* Until all is paid the connection is not read. */
static bool
go_on(struct server *s, struct connection *c)
{
    return pay(s, c) && (c->owed > 0 || watch(s, c));
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
            else if (c->owed > 0 ? !go_on(s, c) : !serve_calls(s, c))
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

/* Records of as many bytes as were asked for, the mark included. */
static bool
make_answers(struct server *s, uint64_t bytes, uint64_t count)
{
    uint32_t mark = htonl(0x80000000u | (uint32_t)(bytes - 4));

    s->random = 0x9e3779b97f4a7c15u;
    s->answer_len = bytes;
    s->answer_count = (uint32_t)count;
    s->answers = calloc(count, sizeof(*s->answers));
    s->input = malloc(INPUT);
    if (!s->answers || !s->input)
        return false;
    for (uint64_t i = 0; i < count; i++) {
        s->answers[i] = malloc(bytes);
        if (!s->answers[i])
            return false;
        memset(s->answers[i], 'x', bytes);
        memcpy(s->answers[i], &mark, sizeof(mark));
    }
    return true;
}

static const char help[] = "usage: bare --bytes N [--answers N]\n"
                           "\n"
                           "  --bytes N    of a whole answer with its record mark, 8 to 1048576\n"
                           "  --answers N  equal answers in as many places, drawn at random (1)\n";

int
main(int argc, char **argv)
{
    static const struct option table[] = {{"bytes", required_argument, NULL, 'b'},
                                          {"answers", required_argument, NULL, 'a'},
                                          {"help", no_argument, NULL, 'h'},
                                          {0}};
    struct server server = {0};
    struct rlimit limit;
    uint64_t bytes = 0, answers = 1;
    uint16_t port;
    bool right = true;
    int c;

    while (right && (c = getopt_long(argc, argv, "", table, NULL)) != -1) {
        if (c == 'h') {
            fputs(help, stdout);
            return EXIT_SUCCESS;
        }
        right = (c == 'b' && units_parse_uint(optarg, 8, MAX_RECORD, &bytes)) ||
                (c == 'a' && units_parse_uint(optarg, 1, MAX_ANSWERS, &answers));
    }
    if (!right || bytes == 0 || optind < argc) {
        fputs(help, stderr);
        return EX_USAGE;
    }
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
    if (!make_answers(&server, bytes, answers) || !listen_on_loopback(&server, &port)) {
        perror("bare");
        return EX_OSERR;
    }
    signal(SIGPIPE, SIG_IGN); /* writev has no flag for it */
    printf("%u\n", port);
    fflush(stdout);
    serve(&server);
}
