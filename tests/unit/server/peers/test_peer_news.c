/* News of a daemon with two peers, whose answers the test scripts; the clock is the system's. */
#include <stdio.h>

#include "base/clock.h"
#include "http/field.h"
#include "server/peers/peer_message.h"
#include "server/peers/peer_news.h"
#include "tests/unit/net/stream.h"
#include "tests/unit/server/front_server.h"

#define A "http://a.test:1"
#define B "http://b.test:2"
#define C "http://c.test:3"
#define PAGE "http://h.test/page"

static const struct peer_item item = {.kind = CONTROL_PURGE_URL,
                                      .name = {.ptr = PAGE, .len = sizeof(PAGE) - 1}};

static struct peer_keys *keys;
static struct peer_auth *ours, *theirs; /* what we send with, and what the peers check by */
static struct peer_news *news;
static struct peer_news_wait wait;
static bool done;

static void
begin(void)
{
    static const struct scene_options options = {.policy = "lru"};
    static char peers[] = A "," B "," C, self[] = A, key_file[] = "key", http[] = "a.test:1";
    static char *listeners[] = {http, NULL};
    struct buf why;

    front_options.peers = peers;
    front_options.peer_self = self;
    front_options.peer_key_file = key_file;
    front_options.freshness = FRESHNESS_ON;
    front_options.http = (struct option_list){.items = listeners, .places = listeners, .count = 1};
    front_server_start(&options, VICTIMS_ALL);
    buf_init(&why, 100);
    keys = &service_config(&front_service)->peers.group.keys;
    ck_assert(peer_keys_read(keys, span_str("0123456789abcdef"), &why));
    buf_free(&why);
    ours = front_service.peer_auth = peer_auth_create(clock_wall_us() - SECOND);
    theirs = peer_auth_create(clock_wall_us() - SECOND);
    service_config(&front_service)->peers.group.auth = ours;
    news = front_service.news = peer_news_create(&front_service);
    ck_assert(ours && theirs && news);
    ck_assert(peer_news_look(news));
    done = false;
}

static void
end(void)
{
    struct scene_fetch *fetch;

    front_service.news = NULL;
    while ((fetch = scene_find(NULL)))
        scene_done(fetch, FETCH_STOPPING, "");
    (void)front_server_halt((int64_t)PATIENCE_MS * 1000);
    peer_news_destroy(news);
    front_server_free();
    peer_auth_destroy(ours);
    peer_auth_destroy(theirs);
}

/* ---- the peers ------------------------------------------------------------------------------- */

static struct scene_fetch *
message_to(const char *peer)
{
    return scene_find(peer);
}

/* The message that is under way to a peer: it is authentic, and has news behind this number, up to
 * that. */
static struct peer_code
expect_message(const char *peer, uint64_t before, uint64_t last)
{
    const struct scene_fetch *fetch = scene_fetch(peer);
    const struct span fields = span_str(fetch->fields);
    const struct peer_words words = {.to = span_str(peer),
                                     .method = span_str("GET"),
                                     .target = span_str("/"),
                                     .says = http_first_value(fields, PEER_NEWS_FIELD)};
    struct span says = words.says;
    struct peer_message_head head;
    struct peer_code code;
    uint64_t incarnation;

    ck_assert_int_eq(peer_auth_check(theirs, keys, http_first_value(fields, PEER_FIELD), &words,
                                     clock_wall_us(), &code, &incarnation),
                     PEER_ACCEPTED);
    ck_assert(peer_message_read(&says, &head));
    ck_assert_uint_eq(head.before, before);
    ck_assert_uint_eq(head.last, last);
    return code;
}

/* It takes the message, and tells this. */
static void
takes(const char *peer, uint64_t before, uint64_t last, const char *told)
{
    const struct peer_code code = expect_message(peer, before, last);
    struct scene_fetch *fetch = scene_fetch(peer);
    char text[PEER_RESPONSE_SIZE], lines[1024];
    const struct span value = peer_response_write(keys, &code, PEER_SERVED, text);

    snprintf(lines, sizeof(lines), PEER_FIELD ": %.*s\r\n%s", (int)value.len, value.ptr, told);
    scene_response_of(fetch, 204, lines);
    scene_done(fetch, FETCH_OK, "");
}

/* Both take what they are told, until there is nothing more; the number of messages. */
static unsigned
take_all(void)
{
    const struct scene_fetch *fetch;
    unsigned count = 0;

    while ((fetch = scene_find(NULL))) {
        struct span says = http_first_value(span_str(fetch->fields), PEER_NEWS_FIELD);
        struct peer_message_head head;

        ck_assert(peer_message_read(&says, &head));
        takes(strcmp(fetch->url, B) == 0 ? B : C, head.before, head.last, "");
        count++;
        ck_assert_uint_lt(count, 100);
    }
    return count;
}

static void
fails(const char *peer)
{
    scene_done(scene_fetch(peer), FETCH_CONNECT_FAILED, "no connection");
}

/* Both have taken that this daemon is there. */
static void
greet(void)
{
    takes(B, 0, 0, "");
    takes(C, 0, 0, "");
    ck_assert_uint_eq(scene_fetches(), 0);
}

static void
notify(struct peer_news_wait *waiter)
{
    ck_assert_ptr_eq(waiter, &wait);
    done = true;
}

static struct peer_news_stats
stats_now(void)
{
    struct peer_news_stats stats;

    peer_news_get_stats(news, &stats);
    return stats;
}

/* ---- what is told ---------------------------------------------------------------------------- */

START_TEST(news_are_told_twice_and_then_a_waiter_goes_on)
{
    greet();
    wait.done = notify;
    ck_assert(!peer_news_wait(news, &wait));
    peer_news_tell(news, &item);
    ck_assert(peer_news_wait(news, &wait));
    takes(B, 0, 1, "");
    ck_assert_uint_eq(scene_fetches(), 1);
    takes(C, 0, 1, "");
    /* All have it: once more. */
    ck_assert(!done);
    takes(C, 1, 2, "");
    ck_assert(!done);
    takes(B, 1, 2, "");
    ck_assert(done);
    ck_assert_uint_eq(scene_fetches(), 0);
    ck_assert_uint_eq(stats_now().told, 1);
    ck_assert_uint_eq(stats_now().lost, 0);
}
END_TEST

START_TEST(a_peer_that_fails_is_not_waited_for_and_misses_the_news)
{
    greet();
    wait.done = notify;
    peer_news_tell(news, &item);
    ck_assert(peer_news_wait(news, &wait));
    takes(B, 0, 1, "");
    fails(C);
    ck_assert_uint_eq(stats_now().reached, 1);
    ck_assert_uint_ge(stats_now().lost, 1);
    takes(B, 1, 2, "");
    ck_assert(done);
    /* What it is told next has a number before it that it has not taken. */
    ck_assert_ptr_null(message_to(C));
    AWAIT((peer_news_look(news), message_to(C)));
    takes(C, 2, 2, "");
    ck_assert_uint_eq(stats_now().reached, 2);
}
END_TEST

/* Those that come while a message is under way are in the next one. */
START_TEST(news_that_come_together_share_messages)
{
    greet();
    wait.done = notify;
    for (unsigned i = 0; i < 20; i++)
        peer_news_tell(news, &item);
    ck_assert(peer_news_wait(news, &wait));
    takes(B, 0, 1, "");
    ck_assert(!done);
    /* 40 news to each of two. */
    ck_assert_uint_lt(take_all(), 12);
    ck_assert(done);
    ck_assert_uint_eq(stats_now().told, 20);
}
END_TEST

START_TEST(a_waiter_that_is_cancelled_is_not_called)
{
    greet();
    wait.done = notify;
    peer_news_tell(news, &item);
    ck_assert(peer_news_wait(news, &wait));
    ck_assert(peer_news_cancel(news, &wait));
    takes(B, 0, 1, "");
    takes(C, 0, 1, "");
    takes(B, 1, 2, "");
    takes(C, 1, 2, "");
    ck_assert(!done);
}
END_TEST

/* A peer knows tags of what was written: all are told, and the waiter waits for that as well. */
START_TEST(tags_that_a_peer_knows_concern_all)
{
    greet();
    wait.done = notify;
    peer_news_tell(news, &item);
    ck_assert(peer_news_wait(news, &wait));
    takes(B, 0, 1, PEER_NEWS_FIELD ": thred .\r\n");
    ck_assert(!done);
    (void)take_all();
    ck_assert(done);
    ck_assert_uint_eq(stats_now().told, 2);
}
END_TEST

START_TEST(without_a_peer_that_can_be_reached_nothing_is_waited_for)
{
    fails(B);
    fails(C);
    wait.done = notify;
    peer_news_tell(news, &item);
    ck_assert(!peer_news_wait(news, &wait));
    ck_assert_uint_eq(stats_now().reached, 0);
    AWAIT((peer_news_look(news), message_to(B) && message_to(C)));
    takes(B, 1, 1, "");
    takes(C, 1, 1, "");
    ck_assert_uint_eq(stats_now().reached, 2);
}
END_TEST

/* A response that no peer has sent is no answer. */
START_TEST(a_forged_answer_is_a_failure)
{
    struct scene_fetch *fetch = scene_fetch(B);

    scene_response_of(fetch, 204, PEER_FIELD ": s 00\r\n");
    scene_done(fetch, FETCH_OK, "");
    takes(C, 0, 0, "");
    ck_assert_uint_eq(stats_now().reached, 1);
}
END_TEST

/* ---- the answer to a purge ------------------------------------------------------------------- */

static _Atomic uint64_t awaited; /* the mark that an answer has waited for */

static struct source_marked
mark(struct source *source, const struct source_purge *purge, const struct source_marked *before)
{
    (void)source;
    (void)purge;
    return (struct source_marked){.marked = true, .number = before ? 1 : 0};
}

static bool
is_synced(struct source *source, struct source_waiter *waiter)
{
    (void)source;
    atomic_store(&awaited, waiter->number);
    return true;
}

static void
send_purge(int fd, bool rpc)
{
    static char url[] = PAGE;
    proxy_purge_args args = {.kind = PROXY_PURGE_URL, .url = {sizeof(PAGE) - 1, url}};

    if (rpc)
        send_call(fd, 1, PROXY_PURGE, (xdrproc_t)xdr_proxy_purge_args, &args);
    else
        ck_assert(http_send(fd, "PURGE " PAGE " HTTP/1.1\r\nHost: h.test\r\n\r\n"));
}

static void
receive_purge(int fd, bool rpc)
{
    static struct http_answer answer;
    proxy_purge_result result = {0};

    if (rpc) {
        receive_result(fd, 1, (xdrproc_t)xdr_proxy_purge_result, &result);
        xdr_free((xdrproc_t)xdr_proxy_purge_result, (char *)&result);
    } else {
        ck_assert(http_receive(fd, &answer, false));
    }
}

/* Those of the second time here, and of tags that a peer tells, are later ones. */
START_TEST(the_answer_to_a_purge_waits_for_the_marks_of_all_its_purges)
{
    static const struct source_ops ops = {.mark = mark, .is_synced = is_synced};
    static struct source source = {&ops};
    const bool rpc = _i == 1;
    int fd;

    greet();
    front_service.proxy.config.sources[0] = &source;
    atomic_store(&awaited, 0);
    fd = rpc ? front_connect() : http_connect_local();
    send_purge(fd, rpc);
    AWAIT(message_to(B) && message_to(C));
    ck_assert_uint_eq(take_all(), 4);
    receive_purge(fd, rpc);
    ck_assert_uint_eq(atomic_load(&awaited), SOURCE_ALL_MARKS);
    close(fd);
    front_service.proxy.config.sources[0] = NULL;
}
END_TEST

/* ---- what has come --------------------------------------------------------------------------- */

static uint64_t
missed_after(uint64_t incarnation, const char *message)
{
    struct buf told;

    buf_init(&told, 1000);
    ck_assert(peer_news_take(news, span_str(B), incarnation, span_str(message), &told));
    buf_free(&told);
    return stats_now().missed;
}

START_TEST(what_was_missed_expires_all)
{
    struct buf told;

    greet();
    scene_store(PAGE, MAX_AGE, 10);
    ck_assert_uint_eq(missed_after(1, "0000000000000000 0000000000000000 ."), 1);
    ck_assert_uint_eq(missed_after(1, "0000000000000000 0000000000000001 uhhttp://h/x ."), 1);
    ck_assert_uint_eq(missed_after(1, "0000000000000003 0000000000000003 ."), 2);
    ck_assert_uint_eq(stats_now().taken, 1);
    buf_init(&told, 1000);
    ck_assert(!peer_news_take(news, span_str(B), 1, span_str("none"), &told));
    buf_free(&told);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("peer_news");
    TCase *tests = tcase_create("news");

    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, begin, end);
    tcase_add_test(tests, news_are_told_twice_and_then_a_waiter_goes_on);
    tcase_add_test(tests, a_peer_that_fails_is_not_waited_for_and_misses_the_news);
    tcase_add_test(tests, news_that_come_together_share_messages);
    tcase_add_test(tests, a_waiter_that_is_cancelled_is_not_called);
    tcase_add_test(tests, tags_that_a_peer_knows_concern_all);
    tcase_add_test(tests, without_a_peer_that_can_be_reached_nothing_is_waited_for);
    tcase_add_test(tests, a_forged_answer_is_a_failure);
    tcase_add_loop_test(tests, the_answer_to_a_purge_waits_for_the_marks_of_all_its_purges, 0, 2);
    tcase_add_test(tests, what_was_missed_expires_all);
    suite_add_tcase(suite, tests);
    return suite;
}
