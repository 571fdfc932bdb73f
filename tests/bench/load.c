#include "tests/bench/load.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/clock.h"

#define BUFFER_SIZE (256u << 10)
#define EVENTS 512
#define CONNECT_BATCH 64u /* below every listener's backlog */
#define HEAD_BYTES 768u   /* holds all of a long reply that is looked at, as a rule */
#define LONG_REPLY 4096u

struct connection {
    int fd; /* -1: closed */
    unsigned outstanding;
    struct reply_reader reader;
    uint32_t *xids; /* waited for; `outstanding` of them; `depth` in the load's array */
    char *unsent;   /* owned: what the socket would not take yet; NULL as a rule */
    size_t unsent_len;
    size_t unsent_at;
    int64_t sent_us; /* when calls were sent last */
};

struct load {
    struct load_config config;
    struct call_template *call; /* not owned */
    int epoll;
    unsigned opened;
    struct connection *connections;
    uint32_t *xids;
    char *buffer;   /* replies */
    char *outgoing; /* calls of one connection */
    unsigned depth; /* of this phase */
    uint32_t next_xid;
    uint32_t next_key;
    uint64_t random;
    uint64_t to_send; /* calls that this phase still has to send */
    uint64_t in_flight;
    uint32_t *times; /* of this phase's replies, in microseconds; NULL: not measured */
    size_t timed;
    struct load_result *result; /* of this phase */
};

struct load *
load_create(const struct load_config *config, struct call_template *call)
{
    struct load *load = calloc(1, sizeof(*load));

    if (!load)
        return NULL;
    load->config = *config;
    load->call = call;
    load->random = 0x9e3779b97f4a7c15u;
    load->connections = calloc(config->connections, sizeof(*load->connections));
    load->xids = calloc((size_t)config->connections * config->depth, sizeof(*load->xids));
    load->buffer = malloc(BUFFER_SIZE);
    load->outgoing = malloc(config->depth * call->bytes.len);
    load->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (!load->connections || !load->xids || !load->buffer || !load->outgoing || load->epoll < 0) {
        load_destroy(load);
        return NULL;
    }
    for (unsigned i = 0; i < config->connections; i++) {
        load->connections[i].fd = -1;
        load->connections[i].xids = load->xids + (size_t)i * config->depth;
    }
    return load;
}

void
load_destroy(struct load *load)
{
    if (!load)
        return;
    for (unsigned i = 0; i < load->opened; i++) {
        if (load->connections[i].fd >= 0)
            close(load->connections[i].fd);
        free(load->connections[i].unsent);
    }
    if (load->epoll >= 0)
        close(load->epoll);
    free(load->connections);
    free(load->xids);
    free(load->buffer);
    free(load->outgoing);
    free(load);
}

static void
note_error(struct load *load, uint64_t count, const char *what, const char *detail)
{
    struct load_result *result = load->result;

    result->errors += count;
    if (!result->first_error[0])
        snprintf(result->first_error, sizeof(result->first_error), "%s: %s", what, detail);
}

/* Each answer that a lost connection still owed counts as an error. */
static void
lose_connection(struct load *load, struct connection *c, const char *what, const char *detail)
{
    note_error(load, c->outstanding ? c->outstanding : 1, what, detail);
    load->in_flight -= c->outstanding;
    c->outstanding = 0;
    close(c->fd);
    c->fd = -1;
}

/* A prime above any number of keys. */
#define STRIDE 2654435761u

static uint32_t
draw_key(struct load *load)
{
    if (load->config.in_order) {
        const uint64_t key = load->next_key;
        const uint64_t drawn = load->config.shuffled ? key * STRIDE % load->config.keys : key;

        load->next_key = (uint32_t)(key + 1) % load->config.keys;
        return load->config.first_key + (uint32_t)drawn;
    }
    load->random ^= load->random << 13;
    load->random ^= load->random >> 7;
    load->random ^= load->random << 17;
    return load->config.first_key +
           (uint32_t)((load->random >> 32) * (uint64_t)load->config.keys >> 32);
}

static void
set_interest(struct load *load, struct connection *c, int operation, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.ptr = c};

    if (epoll_ctl(load->epoll, operation, c->fd, &event) != 0)
        lose_connection(load, c, "epoll_ctl", strerror(errno));
}

static void
keep_unsent(struct load *load, struct connection *c, const char *bytes, size_t len)
{
    c->unsent = malloc(len);
    if (!c->unsent) {
        lose_connection(load, c, "send", strerror(ENOMEM));
        return;
    }
    memcpy(c->unsent, bytes, len);
    c->unsent_len = len;
    c->unsent_at = 0;
    set_interest(load, c, EPOLL_CTL_MOD, EPOLLIN | EPOLLOUT);
}

static void
send_unsent(struct load *load, struct connection *c)
{
    ssize_t n = send(c->fd, c->unsent + c->unsent_at, c->unsent_len - c->unsent_at,
                     MSG_DONTWAIT | MSG_NOSIGNAL);

    if (n < 0) {
        if (errno != EAGAIN && errno != EINTR)
            lose_connection(load, c, "send", strerror(errno));
        return;
    }
    c->unsent_at += (size_t)n;
    if (c->unsent_at < c->unsent_len)
        return;
    free(c->unsent);
    c->unsent = NULL;
    set_interest(load, c, EPOLL_CTL_MOD, EPOLLIN);
}

/* Fills the connection up to its depth, as far as the phase has calls left; one send for all. */
static void
send_calls(struct load *load, struct connection *c)
{
    const struct buf *bytes = &load->call->bytes;
    char *at = load->outgoing;
    size_t len;
    ssize_t n;

    if (c->unsent)
        return; /* what is not sent yet comes first */
    while (c->outstanding < load->depth && load->to_send > 0) {
        uint32_t xid = load->next_xid++;

        call_set(load->call, xid, draw_key(load));
        memcpy(at, bytes->data, bytes->len);
        at += bytes->len;
        c->xids[c->outstanding++] = xid;
        load->in_flight++;
        load->to_send--;
    }
    len = (size_t)(at - load->outgoing);
    if (len == 0)
        return;
    if (load->times)
        c->sent_us = clock_monotonic_us();
    n = send(c->fd, load->outgoing, len, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n < 0 && errno != EAGAIN && errno != EINTR) {
        lose_connection(load, c, "send", strerror(errno));
        return;
    }
    if (n < 0)
        n = 0;
    if ((size_t)n < len)
        keep_unsent(load, c, load->outgoing + n, len - (size_t)n);
}

/* Is this a call that the connection waits for? Then it no longer does. */
static bool
forget_xid(struct connection *c, uint32_t xid)
{
    for (unsigned i = 0; i < c->outstanding; i++) {
        if (c->xids[i] == xid) {
            c->xids[i] = c->xids[--c->outstanding];
            return true;
        }
    }
    return false;
}

static void
take_reply(struct load *load, struct connection *c, const struct reply *reply)
{
    enum reply_flaw flaw = reply->flaw;

    /* Without an xid, or with one that is wrong, the reply stands for any one call. */
    if (load->call->xid_at == SIZE_MAX || load->config.expected.protocol == CALL_BARE) {
        if (c->outstanding > 0)
            c->outstanding--;
        else
            flaw = REPLY_NOT_A_REPLY;
    } else if (!forget_xid(c, reply->xid)) {
        flaw = c->outstanding > 0 ? REPLY_WRONG_NUMBER : REPLY_NOT_A_REPLY;
        if (c->outstanding > 0)
            c->outstanding--;
    }
    if (flaw == REPLY_NOT_A_REPLY) {
        c->outstanding++; /* the call that this was no answer to */
        lose_connection(load, c, "reply", reply_strflaw(flaw));
        return;
    }
    load->in_flight--;
    load->result->answered++;
    if (load->times)
        load->times[load->timed++] = (uint32_t)(clock_monotonic_us() - c->sent_us);
    if (flaw != REPLY_GOOD) {
        note_error(load, 1, "reply", reply_strflaw(flaw));
        return;
    }
    load->result->wire_bytes += reply->wire_len;
    load->result->headers_bytes += reply->headers_len;
}

/* Feeds what was received to the reader. */
static void
take_bytes(struct load *load, struct connection *c, struct span bytes)
{
    struct reply reply;

    while (c->fd >= 0 && reply_read(&c->reader, &load->config.expected, &bytes, &reply))
        take_reply(load, c, &reply);
}

/*
 * One event: the head of a long reply is read, and the rest of it dropped where it lies (tcp(7),
 * MSG_TRUNC). Short or pipelined replies are read as they come.
 */
static void
receive(struct load *load, struct connection *c)
{
    bool lengthy = load->config.expected.body_len > LONG_REPLY && load->config.depth == 1;
    bool tcp = load->config.address.ss_family != AF_UNIX;
    size_t skip = reply_skippable(&c->reader);
    ssize_t n;

    if (skip == 0 || !tcp) {
        n = recv(c->fd, load->buffer, lengthy && tcp ? HEAD_BYTES : BUFFER_SIZE, MSG_DONTWAIT);
        if (n > 0)
            take_bytes(load, c, span_of(load->buffer, (size_t)n));
        if (n > 0 && c->fd >= 0)
            skip = reply_skippable(&c->reader);
        if (n <= 0 || c->fd < 0 || skip == 0 || !tcp)
            goto done;
    }
    n = recv(c->fd, NULL, skip, MSG_DONTWAIT | MSG_TRUNC);
    if (n > 0) {
        reply_skip(&c->reader, (size_t)n);
        take_bytes(load, c, span_of("", 0));
    }
done:
    if (n == 0)
        lose_connection(load, c, "connection", "closed by the server");
    else if (n < 0 && errno != EAGAIN && errno != EINTR)
        lose_connection(load, c, "recv", strerror(errno));
}

static void
handle_event(struct load *load, const struct epoll_event *event)
{
    struct connection *c = event->data.ptr;

    if (c->fd >= 0 && (event->events & (EPOLLIN | EPOLLHUP | EPOLLERR)))
        receive(load, c);
    if (c->fd >= 0 && c->unsent && (event->events & EPOLLOUT))
        send_unsent(load, c);
    if (c->fd >= 0)
        send_calls(load, c);
}

/* Runs the loop until nothing is in flight any more; connections from `first` on begin. */
static void
run_phase(struct load *load, unsigned first, uint64_t requests, struct load_result *result)
{
    struct epoll_event events[EVENTS];
    int64_t started = clock_monotonic_us();
    int64_t deadline = started + load->config.timeout_us;

    load->result = result;
    load->to_send = requests;
    for (unsigned i = first; i < load->opened; i++) {
        if (load->connections[i].fd >= 0)
            send_calls(load, &load->connections[i]);
    }
    while (load->in_flight > 0) {
        int n = epoll_wait(load->epoll, events, EVENTS, 1000);

        for (int i = 0; i < n; i++)
            handle_event(load, &events[i]);
        if (clock_monotonic_us() > deadline || (n < 0 && errno != EINTR)) {
            for (unsigned i = 0; i < load->opened; i++) {
                if (load->connections[i].outstanding > 0)
                    lose_connection(load, &load->connections[i], "reply", "none in time");
            }
        }
    }
    if (load->to_send > 0)
        note_error(load, load->to_send, "connection", "none left to send on");
    result->elapsed_us = clock_monotonic_us() - started;
}

/* Blocking until the kernel has it connected, but not for longer than a phase may take. */
static bool
open_connection(struct load *load, struct connection *c)
{
    const struct load_config *config = &load->config;
    struct timeval timeout = {.tv_sec = config->timeout_us / 1000000 + 1};
    int one = 1;

    c->fd = socket(config->address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (c->fd < 0)
        return false;
    setsockopt(c->fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
    if (config->address.ss_family != AF_UNIX)
        setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    return connect(c->fd, (const struct sockaddr *)&config->address, config->address_len) == 0;
}

bool
load_connect(struct load *load, struct load_result *result)
{
    *result = (struct load_result){0};
    load->result = result;
    load->depth = 1;
    while (load->opened < load->config.connections) {
        unsigned first = load->opened;
        unsigned end = first + CONNECT_BATCH;

        if (end > load->config.connections)
            end = load->config.connections;
        while (load->opened < end) {
            struct connection *c = &load->connections[load->opened++];

            if (!open_connection(load, c)) {
                note_error(load, 1, "connect", strerror(errno));
                return false;
            }
            set_interest(load, c, EPOLL_CTL_ADD, EPOLLIN);
        }
        if (!load->config.in_order)
            run_phase(load, first, end - first, result);
    }
    return result->errors == 0;
}

static int
compare_times(const void *a, const void *b)
{
    const uint32_t first = *(const uint32_t *)a, second = *(const uint32_t *)b;

    return (first > second) - (first < second);
}

void
load_run(struct load *load, uint64_t requests, struct load_result *result)
{
    *result = (struct load_result){0};
    load->depth = load->config.depth;
    load->timed = 0;
    load->times = load->depth == 1 ? calloc(requests, sizeof(*load->times)) : NULL;
    run_phase(load, 0, requests, result);
    if (load->timed > 0) {
        qsort(load->times, load->timed, sizeof(*load->times), compare_times);
        result->median_us = load->times[load->timed / 2];
        result->slow_us = load->times[load->timed - 1 - load->timed / 100];
    }
    free(load->times);
    load->times = NULL;
}
