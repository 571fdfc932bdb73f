/*
 * The net without RPC: lines, streams and greetings under the same bounds, rates and time-outs.
 *
 * Waits for most of its time, so tests/run.sh runs it beside others.
 */
#include "net/connection.h"

#include <netinet/tcp.h>
#include <sys/ioctl.h>

#include "net/timeouts.h"
#include "tests/unit/net/echo.h"

static struct memory_account account;

static const struct net_limits small = {
    .max_requests = 3,
    .max_queued_bytes = 1u << 20,
    .max_connections = 16,
};

static void
stop(void)
{
    ck_assert_uint_eq(echo_stop(5000000), 0);
}

START_TEST(lines_come_back)
{
    static const char text[] = "one\n\ntwo words\nthree\n";
    int tcp, local;

    echo_start(&NET_LIMITS_DEFAULT, 2);
    tcp = echo_connect();
    local = echo_connect_unix();
    echo_send(tcp, text);
    echo_expect(tcp, text);
    for (const char *c = text; *c; c++)
        ck_assert(peer_write(local, c, 1));
    echo_expect(local, text);
    ck_assert_uint_eq(echo_stats().bytes_in, 2 * strlen(text));
    /* Counted after the kernel has taken them, so perhaps after they have arrived. */
    for (unsigned i = 0; i < 5000 && echo_stats().bytes_out < 2 * strlen(text); i++)
        usleep(1000);
    ck_assert_uint_eq(echo_stats().bytes_out, 2 * strlen(text));
    close(tcp);
    close(local);
    stop();
}
END_TEST

START_TEST(input_that_ends_is_answered_first)
{
    static char longest[ECHO_LINE + 1];
    int fd;

    echo_start(&NET_LIMITS_DEFAULT, 1);
    fd = echo_connect();
    echo_send(fd, "first\nsecond\n");
    memset(longest, 'x', sizeof(longest) - 1);
    ck_assert(peer_write(fd, longest, sizeof(longest) - 1));
    echo_expect(fd, "first\nsecond\n");
    ck_assert(peer_is_cut(fd));
    close(fd);
    fd = echo_connect();
    echo_send(fd, "last\nbegun");
    ck_assert_int_eq(shutdown(fd, SHUT_WR), 0);
    echo_expect(fd, "last\n");
    ck_assert(peer_is_cut(fd));
    close(fd);
    stop();
}
END_TEST

/* Its end comes with bytes that are not read yet, or soon after them. */
START_TEST(input_of_several_reads_is_read_to_its_end)
{
    static char lines[2 * NET_SCRATCH + 5000], got[sizeof(lines)];

    memset(lines, 'x', sizeof(lines) - 1);
    for (size_t i = 99; i < sizeof(lines) - 1; i += 100)
        lines[i] = '\n';
    lines[sizeof(lines) - 2] = '\n';
    echo_start(&NET_LIMITS_DEFAULT, 1);
    for (unsigned i = 0; i < 20; i++) {
        int fd = i % 2 ? echo_connect() : echo_connect_unix();

        ck_assert(peer_write(fd, lines, sizeof(lines) - 1));
        ck_assert_int_eq(shutdown(fd, SHUT_WR), 0);
        ck_assert(peer_read(fd, got, sizeof(lines) - 1));
        ck_assert_str_eq(got, lines);
        ck_assert(peer_is_cut(fd));
        close(fd);
    }
    stop();
}
END_TEST

/* The kernel has all of the answer, and sends it without the connection. */
START_TEST(a_peer_that_has_ended_its_side_need_not_have_read)
{
    enum { SIZE = 400000 };
    int fd, other, room = 4096;

    echo_start(&NET_LIMITS_DEFAULT, 1);
    other = echo_connect();
    fd = socket(AF_INET, SOCK_STREAM, 0);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room)), 0);
    connect_to_port(fd, echo.port);
    echo_send(fd, "body 400000\n");
    AWAIT(atomic_load(&echo.released) == 1);
    ck_assert_int_eq(shutdown(fd, SHUT_WR), 0);
    for (unsigned i = 0; i < 5; i++)
        echo_expect_alive(other);
    ck_assert_uint_eq(echo_stats().connections, 1);
    echo_expect_body(fd, SIZE);
    ck_assert(peer_is_cut(fd));
    close(fd);
    close(other);
    stop();
}
END_TEST

/* Its answer does not fit in its buffer, so that the connection lingers when the line that is too
 * long has ended it. */
static int
connect_and_linger(bool unix_socket)
{
    static char longest[ECHO_LINE + 1];
    const uint64_t bytes_in = echo_stats().bytes_in;
    int fd, room = 4096;

    memset(longest, 'x', sizeof(longest) - 1);
    if (unix_socket) {
        fd = echo_connect_unix();
    } else {
        fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        ck_assert_int_ge(fd, 0);
        ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room)), 0);
        connect_to_port(fd, echo.port);
    }
    echo_send(fd, "body 60000\n");
    ck_assert(peer_write(fd, longest, sizeof(longest) - 1));
    AWAIT(echo_stats().bytes_in == bytes_in + 11 + ECHO_LINE);
    return fd;
}

static void
expect_no_refusal(void)
{
    const struct net_stats stats = echo_stats();

    for (unsigned why = 0; why < NET_REFUSALS; why++)
        ck_assert_uint_eq(stats.connections_refused[why], 0);
}

START_TEST(a_client_that_closes_each_connection_keeps_its_share)
{
    struct net_limits limits = small;

    limits.max_connections = 8;
    limits.max_connections_per_client = 4;
    echo_start(&limits, 2);
    for (unsigned i = 0; i < 20 * limits.max_connections; i++) {
        int fd = connect_and_linger(i % 4 == 3);

        echo_expect_body(fd, 60000);
        ck_assert(peer_is_cut(fd));
        close(fd);
    }
    expect_no_refusal();
    stop();
}
END_TEST

/* Until as many linger, from when on each of them counts. */
START_TEST(connections_that_linger_are_beside_the_share)
{
    struct net_limits limits = small;
    int fds[5];

    limits.max_connections = 1000;
    limits.max_connections_per_client = 2;
    echo_start(&limits, 1);
    for (unsigned i = 0; i < 4; i++)
        fds[i] = connect_and_linger(false);
    fds[4] = echo_connect();
    ck_assert_msg(peer_is_cut(fds[4]), "two linger beside the share, and two in it");
    ck_assert_uint_eq(echo_stats().connections_refused[NET_REFUSED_CLIENT], 1);
    close(fds[4]);
    for (unsigned i = 0; i < 4; i++) {
        echo_expect_body(fds[i], 60000);
        close(fds[i]);
    }
    AWAIT(echo_stats().connections == 0);
    for (unsigned i = 0; i < 2; i++) {
        fds[i] = echo_connect();
        echo_expect_alive(fds[i]);
    }
    fds[2] = echo_connect();
    ck_assert(peer_is_cut(fds[2]));
    for (unsigned i = 0; i < 3; i++)
        close(fds[i]);
    stop();
}
END_TEST

/* The kernel still sends what they have to get. */
START_TEST(connections_that_linger_make_room)
{
    struct net_limits limits = small;
    int fds[48];

    echo_start(&limits, 1);
    for (unsigned i = 0; i < 48; i++) {
        fds[i] = connect_and_linger(false);
        ck_assert_uint_le(echo_stats().connections, limits.max_connections);
    }
    expect_no_refusal();
    for (unsigned i = 0; i < 48; i++) {
        echo_expect_body(fds[i], 60000);
        ck_assert(peer_is_cut(fds[i]));
        close(fds[i]);
    }
    stop();
}
END_TEST

/* They keep their answers when a client asks for more than its share. */
START_TEST(a_client_over_its_share_makes_no_room)
{
    enum { SHARE = 8, REFUSED = 20 };
    struct net_limits limits = small;
    int fds[2 * SHARE];

    limits.max_connections = 2 * SHARE + 3;
    limits.max_connections_per_client = SHARE;
    echo_start(&limits, 1);
    for (unsigned i = 0; i < 2 * SHARE; i++)
        fds[i] = i < SHARE ? connect_and_linger(false) : echo_connect();
    AWAIT(echo_stats().connections == 2 * SHARE);
    for (unsigned i = 0; i < REFUSED; i++) {
        int fd = echo_connect();

        ck_assert(peer_is_cut(fd));
        close(fd);
    }
    net_server_await_turn(echo.server);
    ck_assert_uint_eq(echo_stats().connections_refused[NET_REFUSED_CLIENT], REFUSED);
    ck_assert_uint_eq(echo_stats().connections, 2 * SHARE);
    for (unsigned i = 0; i < 2 * SHARE; i++)
        close(fds[i]);
    stop();
}
END_TEST

static atomic_uint closing;

/* The peer sends in the meantime, and the worker does not see it. */
static void
close_lingering_soon(struct net_task *task)
{
    (void)task;
    atomic_store(&closing, 1);
    while (atomic_load(&closing) == 1)
        usleep(1000);
    net_connections_close_lingering(net_server_connections(echo.server, 0));
}

/* Has the other side all that was written? */
static bool
has_arrived(int fd)
{
    int left = -1;

    return ioctl(fd, TIOCOUTQ, &left) == 0 && left == 0;
}

START_TEST(input_that_is_not_read_does_not_cut_the_answer_off)
{
    static char more[10000];
    struct net_task task = {.run = close_lingering_soon};
    int fd;

    atomic_store(&closing, 0);
    echo_start(&small, 1);
    fd = connect_and_linger(false);
    net_worker_post(net_server_connections(echo.server, 0)->worker, &task);
    AWAIT(atomic_load(&closing) == 1);
    ck_assert(peer_write(fd, more, sizeof(more)));
    AWAIT(has_arrived(fd));
    atomic_store(&closing, 2);
    AWAIT(echo_stats().connections == 0);
    echo_expect_body(fd, 60000);
    ck_assert(peer_is_cut(fd));
    close(fd);
    stop();
}
END_TEST

/* It may send on until its time is up, and keeps no other one waiting. */
START_TEST(what_comes_while_a_connection_lingers_is_discarded)
{
    static char more[1 << 16];
    const uint64_t read_before = 11 + ECHO_LINE;
    int fd, other;

    echo_start(&small, 1);
    fd = connect_and_linger(false);
    other = echo_connect();
    for (unsigned i = 0; i < 64; i++)
        ck_assert(peer_write(fd, more, sizeof(more)));
    echo_expect_alive(other);
    ck_assert_msg(echo_stats().bytes_in <= read_before + 6, "it is no input");
    echo_expect_body(fd, 60000);
    close(fd);
    AWAIT(echo_stats().connections == 1);
    close(other);
    stop();
}
END_TEST

START_TEST(limits_take_the_place_of_others)
{
    struct net_limits limits = NET_LIMITS_DEFAULT;
    int idle, fd, late;

    echo_start(&limits, 2);
    idle = echo_connect();
    echo_expect_alive(idle);
    limits.max_connections = 1;
    net_server_set_limits(echo.server, &limits);
    echo_expect_alive(idle);
    fd = echo_connect();
    ck_assert_msg(peer_is_cut(fd), "it is one too many");
    close(fd);
    limits.max_connections = 10;
    limits.idle_timeout_us = 50000;
    limits.rates.calls = (struct token_rate){.per_second = 1000, .burst = 1};
    net_server_set_limits(echo.server, &limits);
    ck_assert_msg(peer_is_cut(idle), "its time is up");
    limits.idle_timeout_us = 0;
    net_server_set_limits(echo.server, &limits);
    late = echo_connect();
    for (unsigned i = 0; i < 5; i++)
        echo_expect_alive(late);
    ck_assert_uint_gt(echo_stats().clients.calls_delayed, 0);
    close(idle);
    close(late);
    stop();
}
END_TEST

/* What waits to be accepted is another process's, which has the same socket; here there is none. */
START_TEST(a_server_that_leaves_serves_its_connections_on)
{
    struct net_limits limits = NET_LIMITS_DEFAULT;
    int fd, other;

    limits.quiet_us = 50000;
    echo_start(&limits, 1);
    fd = echo_connect();
    echo_expect_alive(fd);
    other = echo_connect();
    AWAIT(echo_stats().connections == 2);
    echo_send(fd, "later x\n");
    AWAIT(atomic_load(&echo.deferred) == 1);
    net_server_leave(echo.server);
    echo_expect_alive(other);
    ck_assert_msg(peer_is_cut(other), "it was quiet");
    AWAIT(echo_stats().connections == 1);
    echo_answer();
    echo_expect(fd, "later x\n");
    ck_assert(peer_is_cut(fd));
    close(fd);
    close(other);
    stop();
}
END_TEST

/* Output without a request, on a protocol of its own: none of it is lost when the input ends. */
START_TEST(protocols_share_the_workers)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0), line;

    echo_start(&small, 2);
    line = echo_connect();
    ck_assert_int_ge(fd, 0);
    connect_to_port(fd, echo.greeting_port);
    ck_assert(peer_write(fd, "x", 1));
    echo_expect_alive(line);
    echo_expect_body(fd, ECHO_BODY);
    ck_assert(peer_is_cut(fd));
    AWAIT(atomic_load(&echo.released) == 2);
    close(fd);
    close(line);
    stop();
}
END_TEST

START_TEST(a_slow_reader_is_not_read)
{
    enum { LINES = 400, SIZE = 100000 };
    static const char line[] = "body 100000\n";
    static char all[LINES * (sizeof(line) - 1)];
    int slow, other;

    for (size_t i = 0; i < LINES; i++)
        memcpy(all + i * (sizeof(line) - 1), line, sizeof(line) - 1);
    echo_start(&small, 1);
    slow = echo_connect_unix();
    other = echo_connect();
    ck_assert(peer_write(slow, all, sizeof(all)));
    AWAIT(atomic_load(&echo.lines) >= 3);
    for (int i = 0; i < 20; i++)
        echo_expect_alive(other);
    /* What may be queued, what the kernel's buffers take, and the other connection's. */
    ck_assert_uint_lt(atomic_load(&echo.lines), 20 + LINES / 4);
    for (int i = 0; i < LINES; i++)
        echo_expect_body(slow, SIZE);
    echo_expect_alive(slow);
    ck_assert_uint_eq(atomic_load(&echo.lines), LINES + 21);
    close(slow);
    close(other);
    stop();
}
END_TEST

START_TEST(no_more_is_in_work_than_may_be)
{
    int fd;

    echo_start(&small, 1);
    fd = echo_connect();
    echo_send(fd, "later 1\nlater 2\nlater 3\nlater 4\nnow\n");
    AWAIT(atomic_load(&echo.deferred) == 3);
    ck_assert_uint_eq(atomic_load(&echo.lines), 3);
    echo_answer();
    echo_expect(fd, "later 1\nlater 2\nlater 3\nnow\n");
    ck_assert_uint_eq(atomic_load(&echo.deferred), 4);
    echo_answer();
    echo_expect(fd, "later 4\n");
    close(fd);
    stop();
}
END_TEST

/* Whatever came behind the line waits, and with it what comes later. */
START_TEST(held_input_waits)
{
    int fd;

    echo_start(&small, 1);
    fd = echo_connect();
    echo_send(fd, "one\nhold 1\ntwo\nhold 2\nthree\nfo");
    echo_expect(fd, "one\n");
    AWAIT(atomic_load(&echo.held) == 1);
    echo_send(fd, "ur\n");
    ck_assert_uint_eq(atomic_load(&echo.lines), 2);
    echo_answer();
    echo_expect(fd, "hold 1\ntwo\n");
    AWAIT(atomic_load(&echo.held) == 2);
    ck_assert_uint_eq(atomic_load(&echo.lines), 4);
    echo_answer();
    echo_expect(fd, "hold 2\nthree\nfour\n");
    /* A peer that closes meanwhile does no harm. */
    echo_send(fd, "hold 3\nfive\n");
    AWAIT(atomic_load(&echo.held) == 3);
    close(fd);
    echo_answer();
    AWAIT(atomic_load(&echo.released) >= 7);
    stop();
}
END_TEST

static atomic_uint events;

static void
note_events(struct net_task *task)
{
    struct net_worker *worker = net_server_connections(echo.server, 0)->worker;

    (void)task;
    atomic_store(&events, (unsigned)worker->events + 1);
}

/* Its end is reported until it is read. */
START_TEST(a_peer_that_closes_after_the_last_answer_wakes_the_worker_once)
{
    struct net_task task = {.run = note_events};
    int fd;

    atomic_store(&events, 0);
    echo_start(&small, 1);
    fd = echo_connect();
    echo_send(fd, "last 1\ntwo\n");
    AWAIT(atomic_load(&echo.held) == 1);
    echo_answer();
    echo_expect(fd, "last 1\n");
    ck_assert(peer_is_cut(fd));
    ck_assert_uint_eq(echo_stats().connections, 1);
    close(fd);
    AWAIT(echo_stats().connections == 0);
    net_worker_post(net_server_connections(echo.server, 0)->worker, &task);
    AWAIT(atomic_load(&events));
    ck_assert_uint_le(atomic_load(&events) - 1, 10);
    stop();
}
END_TEST

/* What the worker has done by now for the one connection that lingers. */
static struct {
    struct net_task task;
    int64_t age_us; /* its times are checked as if it had lingered that long; 0: they are not */
    uint64_t discarded;
    uint64_t events;
    atomic_bool done;
} look;

static void
look_at_lingering(struct net_task *task)
{
    struct net_connections *set = net_server_connections(echo.server, 0);
    const struct net_connection *c = TAILQ_FIRST(&set->lingering);

    (void)task;
    if (c) {
        look.discarded = c->discarded;
        look.events = set->worker->events;
        if (look.age_us)
            net_timeouts_check(set, c->partial_since_us + look.age_us);
    }
    atomic_store(&look.done, true);
}

static void
look_after(int64_t age_us)
{
    look.task.run = look_at_lingering;
    look.age_us = age_us;
    atomic_store(&look.done, false);
    net_worker_post(net_server_connections(echo.server, 0)->worker, &look.task);
    AWAIT(atomic_load(&look.done));
}

/* Over 16 MiB it wakes the worker no more, and after five seconds it is left. */
START_TEST(a_peer_that_sends_without_end_is_left)
{
    static char more[1 << 16];
    const uint64_t most = (uint64_t)16 << 20;
    uint64_t before;
    int fd, on = 1;

    echo_start(&small, 1);
    fd = echo_connect();
    ck_assert_int_eq(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)), 0);
    echo_send(fd, "last 1\n");
    AWAIT(atomic_load(&echo.deferred) == 1);
    echo_answer();
    echo_expect(fd, "last 1\n");
    ck_assert(peer_is_cut(fd));
    for (uint64_t sent = 0; sent < most; sent += sizeof(more))
        ck_assert(peer_write(fd, more, sizeof(more)));
    AWAIT((look_after(0), look.discarded >= most));
    before = look.events;
    for (unsigned i = 0; i < 20; i++) {
        ck_assert_int_gt(send(fd, more, 1000, MSG_NOSIGNAL), 0);
        look_after(0);
    }
    ck_assert_uint_le(look.events - before, 5);
    look_after(4900000);
    ck_assert_uint_eq(echo_stats().connections, 1);
    look_after(5000000);
    ck_assert_uint_eq(echo_stats().connections, 0);
    close(fd);
    stop();
}
END_TEST

START_TEST(output_follows_output)
{
    enum { CHUNKS = 1000 };
    int fd, gone;

    echo_start(&small, 1);
    fd = echo_connect();
    gone = echo_connect_unix();
    echo_send(gone, "stream 100000\n");
    echo_send(fd, "stream 1000\nbehind\n");
    echo_expect_body(gone, ECHO_CHUNK);
    close(gone);
    /* The line behind the stream is answered between two of its chunks. */
    echo_expect_body(fd, ECHO_CHUNK);
    echo_expect(fd, "behind\n");
    for (int i = 1; i < CHUNKS; i++)
        echo_expect_body(fd, ECHO_CHUNK);
    AWAIT(atomic_load(&echo.released) == 3);
    close(fd);
    stop();
}
END_TEST

START_TEST(lines_begun_and_idle_connections_time_out)
{
    struct net_limits limits = small;
    int slow, idle, waiting;

    limits.message_timeout_us = 100000;
    limits.idle_timeout_us = 400000;
    echo_start(&limits, 1);
    slow = echo_connect();
    idle = echo_connect();
    waiting = echo_connect();
    echo_send(slow, "beg");
    echo_send(waiting, "now\nlater yes\n");
    echo_expect(waiting, "now\n");
    ck_assert(peer_is_cut(slow));
    ck_assert(peer_is_cut(idle));
    ck_assert_uint_eq(echo_stats().connections_timed_out, 2);
    /* A connection that waits for an answer is not idle. */
    echo_answer();
    echo_expect(waiting, "later yes\n");
    ck_assert(peer_is_cut(waiting));
    close(waiting);
    /* But it is if its peer does not read what it has got. */
    waiting = echo_connect_unix();
    echo_send(waiting, "body 4000000\nlater no\n");
    AWAIT(echo_stats().connections_timed_out == 4);
    echo_answer();
    close(slow);
    close(idle);
    close(waiting);
    stop();
}
END_TEST

static atomic_bool is_checked;

/* The first connection of the worker was active 50 s after it was put in the list; 100 s and more
 * after that it looks for idle ones. */
static void
check_later(struct net_task *task)
{
    struct net_connections *set = net_server_connections(echo.server, 0);
    struct net_connection *first = TAILQ_FIRST(&set->open);

    (void)task;
    first->active_us = first->listed_us + 50 * (int64_t)1000000;
    net_timeouts_check(set, TAILQ_NEXT(first, link)->listed_us + 101 * (int64_t)1000000);
    atomic_store(&is_checked, true);
}

START_TEST(the_last_byte_counts_wherever_a_connection_is_listed)
{
    struct net_task task = {.run = check_later};
    struct net_limits limits = small;
    int active, idle;

    atomic_store(&is_checked, false);
    limits.idle_timeout_us = 100 * (int64_t)1000000;
    echo_start(&limits, 1);
    active = echo_connect();
    echo_expect_alive(active);
    idle = echo_connect();
    echo_expect_alive(idle);
    net_worker_post(net_server_connections(echo.server, 0)->worker, &task);
    AWAIT(atomic_load(&is_checked));
    ck_assert(peer_is_cut(idle));
    ck_assert_uint_eq(echo_stats().connections_timed_out, 1);
    echo_expect_alive(active);
    close(active);
    close(idle);
    stop();
}
END_TEST

static atomic_uint slow_tasks;

static void
run_slowly(struct net_task *task)
{
    (void)task;
    nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    atomic_fetch_add(&slow_tasks, 1);
}

START_TEST(a_turn_ends_with_what_each_worker_is_doing)
{
    struct net_task tasks[3] = {{.run = run_slowly}, {.run = run_slowly}, {.run = run_slowly}};

    atomic_store(&slow_tasks, 0);
    echo_start(&NET_LIMITS_DEFAULT, 3);
    for (unsigned turn = 1; turn <= 3; turn++) {
        for (unsigned i = 0; i < 3; i++)
            net_worker_post(net_server_connections(echo.server, i)->worker, &tasks[i]);
        net_server_await_turn(echo.server);
        ck_assert_uint_eq(atomic_load(&slow_tasks), 3 * turn);
    }
    stop();
}
END_TEST

START_TEST(a_slow_reader_is_given_up_for_memory)
{
    int slow, other;

    echo_start(&small, 1);
    slow = echo_connect_unix();
    other = echo_connect_unix();
    echo_send(slow, "body 4000000\n");
    AWAIT(atomic_load(&echo.lines) == 1);
    net_server_relieve(echo.server);
    echo_expect_alive(other);
    ck_assert_uint_eq(echo_stats().connections_timed_out, 0);
    AWAIT((net_server_relieve(echo.server), echo_stats().connections_timed_out == 1));
    ck_assert(peer_is_cut(slow));
    echo_expect_alive(other);
    close(slow);
    close(other);
    stop();
}
END_TEST

START_TEST(the_line_begun_longest_ago_goes)
{
    struct net_limits limits = small;
    int fds[3];

    /* A share of two lines. */
    memory_account_init(&account, (uint64_t)8 * 2 * ECHO_LINE, NULL);
    limits.memory = &account;
    echo_start(&limits, 1);
    for (int i = 0; i < 3; i++) {
        fds[i] = echo_connect();
        echo_send(fds[i], "begun");
        AWAIT(i == 2 || memory_used(&account, MEMORY_RECORDS) == (uint64_t)(i + 1) * ECHO_LINE);
    }
    ck_assert(peer_is_cut(fds[0]));
    for (int i = 1; i < 3; i++) {
        echo_send(fds[i], "\n");
        echo_expect(fds[i], "begun\n");
    }
    ck_assert_uint_eq(echo_stats().connections_timed_out, 1);
    ck_assert_uint_eq(memory_used(&account, MEMORY_RECORDS), 0);
    for (int i = 0; i < 3; i++)
        close(fds[i]);
    stop();
}
END_TEST

START_TEST(lines_over_the_rate_wait)
{
    struct net_limits limits = NET_LIMITS_DEFAULT;
    int64_t begin_us;
    int fd;

    limits.rates.calls = (struct token_rate){.per_second = 50, .burst = 5};
    echo_start(&limits, 1);
    fd = echo_connect();
    begin_us = clock_monotonic_us();
    for (int i = 0; i < 15; i++)
        echo_send(fd, "x\n");
    for (int i = 0; i < 15; i++)
        echo_expect(fd, "x\n");
    /* Timers go by the loop's clock, which may be 20 ms behind. */
    ck_assert_int_ge(clock_monotonic_us() - begin_us, 200000 - 20000);
    ck_assert_uint_ge(echo_stats().clients.calls_delayed, 1);
    close(fd);
    stop();
}
END_TEST

START_TEST(what_is_abandoned_is_released)
{
    int fd;

    echo_start(&small, 1);
    fd = echo_connect();
    echo_send(fd, "later 1\nlater 2\n");
    AWAIT(atomic_load(&echo.deferred) == 2);
    ck_assert_uint_eq(echo_stop(0), 1);
    close(fd);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("net: echo");
    TCase *tcase = tcase_create("echo");

    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, lines_come_back);
    tcase_add_test(tcase, input_that_ends_is_answered_first);
    tcase_add_test(tcase, input_of_several_reads_is_read_to_its_end);
    tcase_add_test(tcase, a_peer_that_has_ended_its_side_need_not_have_read);
    tcase_add_test(tcase, a_client_that_closes_each_connection_keeps_its_share);
    tcase_add_test(tcase, connections_that_linger_are_beside_the_share);
    tcase_add_test(tcase, connections_that_linger_make_room);
    tcase_add_test(tcase, a_client_over_its_share_makes_no_room);
    tcase_add_test(tcase, input_that_is_not_read_does_not_cut_the_answer_off);
    tcase_add_test(tcase, what_comes_while_a_connection_lingers_is_discarded);
    tcase_add_test(tcase, limits_take_the_place_of_others);
    tcase_add_test(tcase, a_server_that_leaves_serves_its_connections_on);
    tcase_add_test(tcase, protocols_share_the_workers);
    tcase_add_test(tcase, a_slow_reader_is_not_read);
    tcase_add_test(tcase, no_more_is_in_work_than_may_be);
    tcase_add_test(tcase, held_input_waits);
    tcase_add_test(tcase, a_peer_that_closes_after_the_last_answer_wakes_the_worker_once);
    tcase_add_test(tcase, a_peer_that_sends_without_end_is_left);
    tcase_add_test(tcase, output_follows_output);
    tcase_add_test(tcase, lines_begun_and_idle_connections_time_out);
    tcase_add_test(tcase, the_last_byte_counts_wherever_a_connection_is_listed);
    tcase_add_test(tcase, a_turn_ends_with_what_each_worker_is_doing);
    tcase_add_test(tcase, a_slow_reader_is_given_up_for_memory);
    tcase_add_test(tcase, the_line_begun_longest_ago_goes);
    tcase_add_test(tcase, lines_over_the_rate_wait);
    tcase_add_test(tcase, what_is_abandoned_is_released);
    suite_add_tcase(suite, tcase);
    return suite;
}
