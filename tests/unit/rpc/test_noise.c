/*
 * Streams with bytes changed, left out and doubled at random, from seeds that can be repeated.
 * Nothing is said about the answers but that they are replies; the sanitizers watch the rest. The
 * worker's loop runs on the test's own thread, so that a run is the same every time.
 */
#define UNIT_STARTS_NO_THREAD

#include "tests/unit/rpc/here.h"
#include "tests/unit/rpc/peer.h"

enum { STREAMS = 3000 };

static struct tiny tiny;

static const struct rpc_limits small = {
    .max_record = 2000,
    .max_empty_fragments = 8,
    .request_data = sizeof(struct tiny_waiting),
    .net.max_requests = 4,
    .net.max_queued_bytes = 100000,
    .net.max_connections = 16,
};

static uint32_t
draw(uint32_t *state, uint32_t below)
{
    *state = *state * 1664525u + 1013904223u;
    return (*state >> 8) % below;
}

/* A few calls of each kind, in one fragment or in several. */
static void
write_stream(struct buf *stream, uint32_t *state)
{
    for (unsigned calls = 1 + draw(state, 8); calls; calls--) {
        uint32_t procedure = draw(state, 14);
        size_t at = 0, extra = draw(state, 4) ? 0 : 4 * draw(state, 100);
        struct buf b;

        buf_init(&b, 1u << 16);
        put_word(&b, draw(state, 1000));
        put_word(&b, CALL);
        put_word(&b, 2);
        put_word(&b, TINY_PROGRAM);
        put_word(&b, 1);
        put_word(&b, procedure);
        if (draw(state, 2)) {
            const uint32_t words[] = {AUTH_SYS, 28, 1, 4, 0x61626364, 5, 6, 1, 7};

            for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
                put_word(&b, words[i]);
        } else {
            put_word(&b, AUTH_NONE);
            put_word(&b, 0);
        }
        put_word(&b, AUTH_NONE);
        put_word(&b, 0);
        put_word(&b, extra ? (uint32_t)extra : draw(state, 5000));
        while (extra--)
            ck_assert(buf_append_char(&b, 'n'));
        while (at < b.len) {
            size_t len = draw(state, 3) ? b.len - at : 1 + draw(state, (uint32_t)(b.len - at));

            put_word(stream, (at + len == b.len ? 0x80000000u : 0) | (uint32_t)len);
            ck_assert(buf_append(stream, b.data + at, len));
            at += len;
        }
        buf_free(&b);
    }
}

static void
spoil(struct buf *stream, uint32_t *state)
{
    for (unsigned times = draw(state, 4); times && stream->len > 8; times--) {
        uint32_t at = draw(state, (uint32_t)stream->len);

        switch (draw(state, 4)) {
        case 0:
            stream->data[at] = (char)draw(state, 256);
            break;
        case 1:
            stream->data[at] = (char)(stream->data[at] ^ (1 << draw(state, 8)));
            break;
        case 2:
            /* A word of a length, most likely: a little more, a little less, or a lot. */
            at &= ~3u;
            stream->data[at + 3 < stream->len ? at + 3 : at] = (char)(draw(state, 9) * 31);
            break;
        default:
            stream->len = at + 1;
            break;
        }
    }
}

/* Takes what has come as whole replies; false when the server has closed. */
static bool
take_replies(int fd, struct buf *in)
{
    static char chunk[65536];
    ssize_t n;

    while ((n = recv(fd, chunk, sizeof(chunk), MSG_DONTWAIT)) > 0)
        ck_assert(buf_append(in, chunk, (size_t)n));
    while (in->len >= 4) {
        size_t len = 4 + (get_word(in, 0) & 0x7fffffffu);

        if (in->len < len)
            break;
        ck_assert_uint_ge(len, 24);
        ck_assert_uint_eq(get_word(in, 2), REPLY);
        ck_assert_uint_le(get_word(in, 3), MSG_DENIED);
        drop_front(in, len);
    }
    return n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
}

static void
send_stream(struct rpc_server *server, const struct buf *stream, uint32_t *state)
{
    struct net_connections *set = here_connections(server);
    struct buf in;
    size_t sent = 0;
    int fds[2];

    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
    ck_assert_ptr_nonnull(here_adopt(server, fds[0]));
    buf_init(&in, 8u << 20);
    while (sent < stream->len) {
        size_t most = stream->len - sent, step = 1 + draw(state, draw(state, 2) ? 20 : 2000);
        ssize_t n = send(fds[1], stream->data + sent, step < most ? step : most, MSG_NOSIGNAL);

        if (n < 0 && errno == EPIPE)
            break;
        sent += n > 0 ? (size_t)n : 0;
        here_turn(server);
        if (!take_replies(fds[1], &in))
            break;
        if (draw(state, 4) == 0) {
            (void)tiny_answer(&tiny);
            net_connections_settle(set);
        }
    }
    if (draw(state, 2)) {
        (void)tiny_answer(&tiny);
        net_connections_settle(set);
        (void)take_replies(fds[1], &in);
    }
    close(fds[1]);
    here_turn(server);
    (void)tiny_answer(&tiny);
    net_connections_settle(set);
    here_turn(server);
    ck_assert_uint_eq(atomic_load(&set->count), 0);
    ck_assert(TAILQ_EMPTY(&set->closed) && TAILQ_EMPTY(&set->partial));
    ck_assert_uint_eq(atomic_load(&tiny.released), atomic_load(&tiny.held));
    buf_free(&in);
}

START_TEST(spoilt_streams)
{
    static const struct rpc_program program = {TINY_PROGRAM, 1, tiny_dispatch};
    struct rpc_server *server = rpc_server_create(&small, 1, &program, 1, &tiny);
    struct rpc_stats stats;

    ck_assert_ptr_nonnull(server);
    memset(&tiny, 0, sizeof(tiny));
    tiny_fill(&tiny);
    for (uint32_t seed = 0; seed < STREAMS; seed++) {
        uint32_t state = seed * 2654435761u;
        struct buf stream;

        buf_init(&stream, 1u << 20);
        write_stream(&stream, &state);
        spoil(&stream, &state);
        send_stream(server, &stream, &state);
        buf_free(&stream);
    }
    rpc_server_get_stats(server, &stats);
    /* Enough of both kinds have come through for the test to mean something. */
    ck_assert_uint_gt(stats.calls, STREAMS);
    ck_assert_uint_gt(stats.calls_bad, STREAMS / 4);
    ck_assert_uint_lt(stats.calls_bad, stats.calls);
    rpc_server_destroy(server);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("rpc noise");
    TCase *tcase = tcase_create("noise");

    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, spoilt_streams);
    suite_add_tcase(suite, tcase);
    return suite;
}
