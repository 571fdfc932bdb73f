/*
 * bare: the floor that a server of this kind stands on. Level-triggered epoll, one read and one
 * writev for what it brought; a record comes in (RFC 5531, section 11), a record of a fixed
 * length goes out, and neither is examined. The answers can be made to stand in as many places
 * as a cache has pages, so that fetching them from memory costs both the same, and as many threads
 * can share the connections as a server has workers. Prints its port on a line, then serves until
 * killed.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <pthread.h>
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
#include "tests/bench/loopback.h"

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

/* What all threads read and none writes. */
struct answers {
    char **places;
    uint32_t count;
    size_t len; /* of each */
};

/* A thread, with its share of the connections. */
struct worker {
    const struct answers *answers;
    int epoll;
    uint64_t random;
    char input[INPUT];
    pthread_t thread;
};

static void
drop(struct connection *c)
{
    close(c->fd);
    free(c);
}

static char *
draw_answer(struct worker *w)
{
    w->random ^= w->random << 13;
    w->random ^= w->random >> 7;
    w->random ^= w->random << 17;
    return w->answers->places[(w->random >> 32) * w->answers->count >> 32];
}

/* The next bytes that are owed, as pieces: of each answer its head, then the rest of it. */
static int
gather(struct worker *w, uint64_t owed, struct iovec *pieces)
{
    size_t len = w->answers->len;
    int count = 0;

    while (owed > 0 && count + 2 <= PIECES) {
        size_t rest = owed % len ? owed % len : len;
        char *at = draw_answer(w) + (len - rest);

        owed -= rest;
        if (rest == len && rest > HEAD) {
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
pay(struct worker *w, struct connection *c)
{
    struct iovec pieces[PIECES];

    while (c->owed > 0) {
        ssize_t n = writev(c->fd, pieces, gather(w, c->owed, pieces));

        if (n < 0 && errno != EINTR)
            return errno == EAGAIN;
        c->owed -= (uint64_t)(n < 0 ? 0 : n);
    }
    return true;
}

static bool
watch(struct worker *w, struct connection *c)
{
    struct epoll_event event = {.events = c->owed ? EPOLLOUT : EPOLLIN, .data.ptr = c};

    return epoll_ctl(w->epoll, EPOLL_CTL_MOD, c->fd, &event) == 0;
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
serve_calls(struct worker *w, struct connection *c)
{
    ssize_t n = read(c->fd, w->input, INPUT);
    int calls;

    if (n <= 0)
        return n < 0 && (errno == EAGAIN || errno == EINTR);
    calls = count_calls(c, w->input, (size_t)n);
    if (calls < 0)
        return false;
    c->owed = (uint64_t)calls * w->answers->len;
    return pay(w, c) && (c->owed == 0 || watch(w, c));
}

/* Until all is paid the connection is not read. */
static bool
go_on(struct worker *w, struct connection *c)
{
    return pay(w, c) && (c->owed > 0 || watch(w, c));
}

static void *
serve(void *context)
{
    struct worker *w = context;
    struct epoll_event events[EVENTS];

    for (;;) {
        int n = epoll_wait(w->epoll, events, EVENTS, -1);

        for (int i = 0; i < n; i++) {
            struct connection *c = events[i].data.ptr;

            if (c->owed > 0 ? !go_on(w, c) : !serve_calls(w, c))
                drop(c);
        }
    }
    return NULL;
}

/* Accepts for ever, and deals the connections out. A connection that cannot be had is closed. */
static void
deal_connections(int listener, struct worker *workers, uint64_t count)
{
    uint64_t next = 0;
    int one = 1;
    int fd;

    while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0 ||
           errno == EINTR || errno == ECONNABORTED) {
        struct connection *c = fd < 0 ? NULL : calloc(1, sizeof(*c));
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = c};

        if (fd < 0)
            continue;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
        if (c)
            c->fd = fd;
        if (!c || epoll_ctl(workers[next++ % count].epoll, EPOLL_CTL_ADD, fd, &event) != 0) {
            free(c);
            close(fd);
        }
    }
}

/* Records of as many bytes as were asked for, the mark included. */
static bool
make_answers(struct answers *a, uint64_t bytes, uint64_t count)
{
    uint32_t mark = htonl(0x80000000u | (uint32_t)(bytes - 4));

    *a = (struct answers){.count = (uint32_t)count, .len = bytes};
    a->places = calloc(count, sizeof(*a->places));
    if (!a->places)
        return false;
    for (uint64_t i = 0; i < count; i++) {
        a->places[i] = malloc(bytes);
        if (!a->places[i])
            return false;
        memset(a->places[i], 'x', bytes);
        memcpy(a->places[i], &mark, sizeof(mark));
    }
    return true;
}

static bool
start_workers(struct worker *workers, uint64_t count, const struct answers *answers)
{
    for (uint64_t i = 0; i < count; i++) {
        struct worker *w = &workers[i];

        w->answers = answers;
        w->random = 0x9e3779b97f4a7c15u + i;
        w->epoll = epoll_create1(EPOLL_CLOEXEC);
        if (w->epoll < 0 || (errno = pthread_create(&w->thread, NULL, serve, w)) != 0)
            return false;
    }
    return true;
}

static const char help[] = "usage: bare --bytes N [--answers N] [--threads N]\n"
                           "\n"
                           "  --bytes N    of a whole answer with its record mark, 8 to 1048576\n"
                           "  --answers N  equal answers in as many places, drawn at random (1)\n"
                           "  --threads N  that share the connections, 1 to 64 (1)\n";

int
main(int argc, char **argv)
{
    static const struct option table[] = {{"bytes", required_argument, NULL, 'b'},
                                          {"answers", required_argument, NULL, 'a'},
                                          {"threads", required_argument, NULL, 't'},
                                          {"help", no_argument, NULL, 'h'},
                                          {0}};
    struct answers answers;
    struct worker *workers;
    struct rlimit limit;
    uint64_t bytes = 0, answer_count = 1, threads = 1;
    uint16_t port;
    bool right = true;
    int listener;
    int c;

    while (right && (c = getopt_long(argc, argv, "", table, NULL)) != -1) {
        if (c == 'h') {
            fputs(help, stdout);
            return EXIT_SUCCESS;
        }
        right = (c == 'b' && units_parse_uint(optarg, 8, MAX_RECORD, &bytes)) ||
                (c == 'a' && units_parse_uint(optarg, 1, MAX_ANSWERS, &answer_count)) ||
                (c == 't' && units_parse_uint(optarg, 1, 64, &threads));
    }
    if (!right || bytes == 0 || optind < argc) {
        fputs(help, stderr);
        return EX_USAGE;
    }
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
    signal(SIGPIPE, SIG_IGN); /* writev has no flag for it */
    listener = loopback_listen(&port);
    workers = calloc(threads, sizeof(*workers));
    if (listener < 0 || !workers || !make_answers(&answers, bytes, answer_count) ||
        !start_workers(workers, threads, &answers)) {
        perror("bare");
        return EX_OSERR;
    }
    printf("%u\n", port);
    fflush(stdout);
    deal_connections(listener, workers, threads);
    perror("bare: accept");
    return EX_OSERR; /* the threads end with the process */
}
