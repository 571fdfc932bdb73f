/*
 * The interface of fronts, proved by one that is not RPC: bodies are streamed while they arrive, to
 * readers that join at different times, one of them slow.
 */
#include <netinet/in.h>
#include <netinet/tcp.h>

#include "proxy/control.h"
#include "tests/unit/net/stream.h"
#include "tests/unit/proxy/scene.h"
#include "tests/unit/proxy/stream_front.h"

#define URL "http://origin.test/page"
#define PIECE ((size_t)100000)
#define WORKERS 2

/* A reader's end of a connection. */
struct reader {
    int fd;
    size_t left; /* of the piece that has begun */
    uint64_t got;
};

static void
set_up(void)
{
    scene_begin(&(struct scene_options){.workers = WORKERS, .max_page = 35 * MIB});
    stream_front_start(&scene.proxy, WORKERS);
}

static void
tear_down(void)
{
    AWAIT(atomic_load(&stream_front.requests) == atomic_load(&stream_front.ended));
    stream_front_stop();
    scene_end();
}

static void
ask(struct reader *reader, const char *url)
{
    reader->left = 0;
    reader->got = 0;
    ck_assert(peer_write(reader->fd, url, strlen(url)));
    ck_assert(peer_write(reader->fd, "\n", 1));
}

/*
 * With a small buffer, so that what is not read is not sent either. A kernel that closes a
 * connection gives up what a reader does not take for long, and then it says nothing: keep-alive
 * probes find that out. A connection that is open answers them.
 */
static struct reader
join(const char *url)
{
    struct reader reader = {.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    int size = 4096, one = 1;

    ck_assert_int_ge(reader.fd, 0);
    ck_assert_int_eq(setsockopt(reader.fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size)), 0);
    ck_assert_int_eq(setsockopt(reader.fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one)), 0);
    ck_assert_int_eq(setsockopt(reader.fd, IPPROTO_TCP, TCP_KEEPIDLE, &one, sizeof(one)), 0);
    ck_assert_int_eq(setsockopt(reader.fd, IPPROTO_TCP, TCP_KEEPINTVL, &one, sizeof(one)), 0);
    connect_to_port(reader.fd, stream_front.port);
    ask(&reader, url);
    return reader;
}

/* False at the end of the connection. */
static bool
read_line(struct reader *reader, char *line, size_t size)
{
    size_t len = 0;

    while (peer_read(reader->fd, &line[len], 1)) {
        if (line[len] == '\n') {
            line[len] = '\0';
            return true;
        }
        ck_assert_uint_lt(++len, size);
    }
    ck_assert_uint_eq(len, 0);
    return false;
}

/* Reads that many bytes of the body, which are those of the pattern. */
static void
expect(struct reader *reader, size_t len)
{
    static char bytes[65536];
    char line[64];

    while (len) {
        size_t n = len < sizeof(bytes) ? len : sizeof(bytes);

        if (reader->left == 0) {
            ck_assert(read_line(reader, line, sizeof(line)));
            reader->left = strtoul(line, NULL, 16);
            ck_assert_msg(reader->left > 0, "%s", line);
        }
        n = n < reader->left ? n : reader->left;
        ck_assert(peer_read(reader->fd, bytes, n));
        ck_assert(scene_has_bytes(bytes, reader->got, n));
        reader->left -= n;
        reader->got += n;
        len -= n;
    }
}

static void
expect_end(struct reader *reader)
{
    char line[64];

    ck_assert_uint_eq(reader->left, 0);
    ck_assert(read_line(reader, line, sizeof(line)));
    ck_assert_str_eq(line, "0");
}

/* The connection is closed in the middle of a body, of which at most `most` bytes are read. */
static void
expect_break(struct reader *reader, size_t most)
{
    static char bytes[65536];
    size_t got = 0;
    ssize_t n;

    while ((n = recv(reader->fd, bytes, sizeof(bytes), 0)) > 0)
        got += (size_t)n;
    ck_assert_uint_le(got, most);
    close(reader->fd);
}

static struct scene_fetch *
await_fetch(void)
{
    struct scene_fetch *fetch = NULL;

    AWAIT((fetch = scene_find(NULL)));
    return fetch;
}

static struct scene_fetch *
await_head(void)
{
    struct scene_fetch *fetch = await_fetch();

    fetch->sink->begin(fetch->context);
    scene_response(fetch, "", false);
    ck_assert_int_eq(scene_head(fetch, 200, "", -1), FETCH_CONTINUE);
    return fetch;
}

START_TEST(readers_that_join_at_different_times_read_as_it_arrives)
{
    struct reader first = join(URL), second, third, last;
    struct scene_fetch *fetch = await_head();

    ck_assert_int_eq(scene_body(fetch, PIECE), FETCH_CONTINUE);
    /* Nothing more comes until it has been read. */
    expect(&first, PIECE);
    second = join(URL);
    expect(&second, PIECE);
    ck_assert_int_eq(scene_body(fetch, PIECE), FETCH_CONTINUE);
    third = join(URL);
    expect(&third, 2 * PIECE);
    expect(&second, PIECE);
    expect(&first, PIECE);
    ck_assert_int_eq(scene_body(fetch, 1), FETCH_CONTINUE);
    scene_done(fetch, FETCH_OK, "");
    expect(&first, 1);
    expect(&second, 1);
    expect(&third, 1);
    expect_end(&first);
    expect_end(&second);
    expect_end(&third);
    last = join(URL);
    expect(&last, 2 * PIECE + 1);
    expect_end(&last);
    ck_assert_uint_eq(scene.submitted, 1);
    /* The connections are still good. */
    ask(&first, URL);
    expect(&first, 2 * PIECE + 1);
    expect_end(&first);
    close(first.fd);
    close(second.fd);
    close(third.fd);
    close(last.fd);
    AWAIT(atomic_load(&stream_front.ended) == 5);
    ck_assert_uint_eq(scene_metric("requests{outcome=\"miss\"}"), 1);
    ck_assert_uint_eq(scene_metric("requests{outcome=\"coalesced\"}"), 2);
    ck_assert_uint_eq(scene_metric("requests{outcome=\"hit\"}"), 2);
}
END_TEST

START_TEST(a_slow_reader_delays_no_other_and_gets_all)
{
    struct reader slow = join(URL), quick = join(URL), late;
    struct scene_fetch *fetch = await_head();

    AWAIT(atomic_load(&stream_front.requests) == 2);
    for (unsigned i = 0; i < 200; i++) {
        ck_assert_int_eq(scene_body(fetch, PIECE), FETCH_CONTINUE);
        expect(&quick, PIECE);
    }
    scene_done(fetch, FETCH_OK, "");
    expect_end(&quick);
    late = join(URL);
    expect(&late, 200 * PIECE);
    expect_end(&late);
    /* It keeps what it reads from, though the cache does not. */
    AWAIT(atomic_load(&stream_front.ended) == 2);
    ck_assert_uint_eq(control_purge(&scene.proxy, CONTROL_PURGE_ALL, span_of(NULL, 0)), 1);
    ck_assert_uint_ge(memory_used(&scene.account, MEMORY_PAGES), 200 * PIECE);
    expect(&slow, 200 * PIECE);
    expect_end(&slow);
    close(slow.fd);
    close(quick.fd);
    close(late.fd);
}
END_TEST

START_TEST(a_failure_is_sent_before_the_head_and_breaks_off_after_it)
{
    struct reader early = join(URL), slow;
    struct scene_fetch *fetch = await_fetch();
    char line[128];

    scene_done(fetch, FETCH_OVERLOADED, "not allowed");
    ck_assert(read_line(&early, line, sizeof(line)));
    ck_assert_str_eq(line, "!not allowed");
    ask(&early, URL);
    fetch = await_head();
    ck_assert_int_eq(scene_body(fetch, PIECE), FETCH_CONTINUE);
    expect(&early, PIECE);
    /* Of 30 MB most wait to be sent when it breaks off. */
    slow = join(URL);
    for (unsigned i = 0; i < 300; i++)
        ck_assert_int_eq(scene_body(fetch, PIECE), FETCH_CONTINUE);
    expect(&early, 300 * PIECE);
    expect(&slow, PIECE);
    scene_done(fetch, FETCH_ORIGIN_BROKE, "broken");
    expect_break(&early, 0);
    AWAIT(atomic_load(&stream_front.ended) == 3);
    expect_break(&slow, 299 * PIECE);
    ck_assert_uint_eq(scene_stats().pages, 0);
}
END_TEST

START_TEST(a_reader_that_disconnects_is_cancelled_and_the_fetch_goes_on)
{
    struct reader gone = join(URL), stays = join(URL);
    struct scene_fetch *fetch = await_head();
    unsigned pieces = 0;

    ck_assert_int_eq(scene_body(fetch, PIECE), FETCH_CONTINUE);
    expect(&gone, PIECE);
    expect(&stays, PIECE);
    close(gone.fd);
    while (atomic_load(&stream_front.ended) == 0) {
        ck_assert_uint_lt(++pieces, 500);
        ck_assert_int_eq(scene_body(fetch, PIECE), FETCH_CONTINUE);
        expect(&stays, PIECE);
    }
    ck_assert_uint_eq(atomic_load(&stream_front.cancelled), 1);
    scene_done(fetch, FETCH_OK, "");
    expect_end(&stays);
    close(stays.fd);
    AWAIT(atomic_load(&stream_front.ended) == 2);
    ck_assert_uint_eq(scene_stats().pages, 1);
}
END_TEST

START_TEST(a_purge_meanwhile_gives_new_readers_a_new_body)
{
    struct reader before = join(URL), after;
    struct scene_fetch *first = await_head(), *second = NULL;

    ck_assert_int_eq(scene_body(first, PIECE), FETCH_CONTINUE);
    expect(&before, PIECE);
    control_purge(&scene.proxy, CONTROL_PURGE_URL, span_str(URL));
    after = join(URL);
    AWAIT(scene_fetches() == 2);
    second = TAILQ_NEXT(first, link);
    scene_response(second, "", false);
    ck_assert_int_eq(scene_head(second, 200, "", (int64_t)PIECE / 2), FETCH_CONTINUE);
    ck_assert_int_eq(scene_body(second, PIECE / 2), FETCH_CONTINUE);
    scene_done(second, FETCH_OK, "");
    expect(&after, PIECE / 2);
    expect_end(&after);
    ck_assert_int_eq(scene_body(first, PIECE), FETCH_CONTINUE);
    scene_done(first, FETCH_OK, "");
    expect(&before, PIECE);
    expect_end(&before);
    ask(&before, URL);
    expect(&before, PIECE / 2);
    expect_end(&before);
    close(before.fd);
    close(after.fd);
}
END_TEST

/*
 * A body that is not stored is sent as fast as its only reader reads, in little memory. After a
 * pause the reader reads until the fetch goes on; what is behind the window stands in sockets.
 */
START_TEST(a_slow_reader_slows_down_a_body_that_is_not_stored)
{
    const size_t pieces = 1049; /* 100 MiB */
    struct reader slow = join(URL);
    struct scene_fetch *fetch = await_fetch();
    unsigned pauses = 0;
    size_t most = 0;

    fetch->sink->begin(fetch->context);
    scene_response(fetch, "Cache-Control: no-store\r\n", false);
    ck_assert_int_eq(scene_head(fetch, 200, "", -1), FETCH_CONTINUE);
    for (size_t i = 0; i < pieces; i++) {
        unsigned before = scene_resumes(fetch);
        enum fetch_flow flow = scene_body(fetch, PIECE);
        size_t used = memory_used(&scene.account, MEMORY_PAGES);

        ck_assert_int_ne(flow, FETCH_ABORT);
        most = used > most ? used : most;
        if (flow == FETCH_CONTINUE)
            continue;
        pauses++;
        /* Not more than was sent so far: nothing else comes before the fetch goes on. */
        while (scene_resumes(fetch) == before && slow.got < (i + 1) * PIECE) {
            size_t left = (i + 1) * PIECE - (size_t)slow.got;

            expect(&slow, left < PIECE / 4 ? left : PIECE / 4);
        }
        AWAIT(scene_resumes(fetch) > before);
    }
    scene_done(fetch, FETCH_OK, "");
    ck_assert_uint_ge(pauses, 20);
    ck_assert_uint_le(most, 3 * MIB);
    expect(&slow, pieces * PIECE - slow.got);
    expect_end(&slow);
    close(slow.fd);
    AWAIT(atomic_load(&stream_front.ended) == 1);
    ck_assert_uint_eq(scene_stats().pages, 0);
}
END_TEST

/* The quick one reads all that comes; the slow one is disconnected when it is far behind. */
START_TEST(of_two_readers_of_a_body_that_is_not_stored_the_quick_one_sets_the_pace)
{
    struct reader quick = join(URL), slow = join(URL);
    struct scene_fetch *fetch = await_fetch();
    const size_t pieces = 400; /* more than is stored */
    size_t most = 0;

    AWAIT(atomic_load(&stream_front.requests) == 2);
    fetch->sink->begin(fetch->context);
    scene_response(fetch, "", false);
    ck_assert_int_eq(scene_head(fetch, 200, "", (int64_t)(pieces * PIECE)), FETCH_CONTINUE);
    for (size_t i = 0; i < pieces; i++) {
        unsigned before = scene_resumes(fetch);
        enum fetch_flow flow = scene_body(fetch, PIECE);
        size_t used = memory_used(&scene.account, MEMORY_PAGES);

        most = used > most ? used : most;
        expect(&quick, PIECE);
        if (flow == FETCH_PAUSE)
            AWAIT(scene_resumes(fetch) > before);
    }
    ck_assert_uint_le(most, 8 * MIB);
    scene_done(fetch, FETCH_OK, "");
    expect_end(&quick);
    expect_break(&slow, pieces * PIECE - 1);
    close(quick.fd);
}
END_TEST

START_TEST(a_body_that_is_not_stored_ends_with_its_last_reader)
{
    struct reader reader = join(URL);
    struct scene_fetch *fetch = await_fetch();

    fetch->sink->begin(fetch->context);
    scene_response(fetch, "Cache-Control: no-store\r\n", false);
    ck_assert_int_eq(scene_head(fetch, 200, "", 100 * MIB), FETCH_CONTINUE);
    while (scene_body(fetch, PIECE) == FETCH_CONTINUE)
        continue;
    close(reader.fd);
    AWAIT(scene_is_cancelled(fetch));
    AWAIT(atomic_load(&stream_front.ended) == 1);
    scene_done(fetch, FETCH_CANCELLED, "cancelled");
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("proxy: a front that streams");
    TCase *tests = tcase_create("streams");

    tcase_set_timeout(tests, 300);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, readers_that_join_at_different_times_read_as_it_arrives);
    tcase_add_test(tests, a_slow_reader_delays_no_other_and_gets_all);
    tcase_add_test(tests, a_failure_is_sent_before_the_head_and_breaks_off_after_it);
    tcase_add_test(tests, a_reader_that_disconnects_is_cancelled_and_the_fetch_goes_on);
    tcase_add_test(tests, a_purge_meanwhile_gives_new_readers_a_new_body);
    tcase_add_test(tests, a_slow_reader_slows_down_a_body_that_is_not_stored);
    tcase_add_test(tests, of_two_readers_of_a_body_that_is_not_stored_the_quick_one_sets_the_pace);
    tcase_add_test(tests, a_body_that_is_not_stored_ends_with_its_last_reader);
    suite_add_tcase(suite, tests);
    return suite;
}
