/* What messages of peers consist of, and which of them are missed. */
#define UNIT_STARTS_NO_THREAD

#include "server/peers/peer_message.h"

#include <stdio.h>
#include <string.h>

#include "server/peers/peer_log.h"
#include "tests/unit/unit.h"

static struct peer_message message;
static struct buf news;

static void
begin(void)
{
    memset(&message, 0, sizeof(message));
    buf_init(&message.text, PEER_MESSAGE_WAITING);
    buf_init(&news, PEER_MESSAGE_WAITING);
}

static void
end(void)
{
    buf_free(&message.text);
    buf_free(&news);
}

START_TEST(a_message_without_news)
{
    struct span text;
    struct peer_message_head head;
    size_t len = 1;

    ck_assert_uint_eq(peer_message_fill(&message, 7, buf_span(&news), &len), 0);
    ck_assert_uint_eq(len, 0);
    text = buf_span(&message.text);
    ck_assert(peer_message_read(&text, &head));
    ck_assert_uint_eq(head.before, 7);
    ck_assert_uint_eq(head.last, 7);
    ck_assert_uint_eq(text.len, 0);
}
END_TEST

/* News go whole, in their order, at least one at a time. */
START_TEST(many_news_are_divided)
{
    char item[10000];
    uint64_t before = 0, messages = 0;
    size_t at = 0;

    memset(item, 'x', sizeof(item));
    for (unsigned i = 0; i < 40; i++) {
        buf_append(&news, item, 1 + i * 243 % sizeof(item));
        buf_append_char(&news, ' ');
    }
    buf_append(&news, item, sizeof(item) - 1);
    buf_append(&news, item, sizeof(item) - 1);
    buf_append(&news, item, sizeof(item) - 1);
    buf_append_char(&news, ' ');
    while (at < news.len) {
        struct peer_message_head head;
        struct span text, part;
        size_t len;
        uint64_t count;

        buf_reset(&message.text);
        count = peer_message_fill(&message, before, span_of(news.data + at, news.len - at), &len);
        ck_assert_uint_ge(count, 1);
        ck_assert(len <= PEER_MESSAGE_BYTES || count == 1);
        text = buf_span(&message.text);
        ck_assert(peer_message_read(&text, &head));
        ck_assert_uint_eq(head.before, before);
        ck_assert_uint_eq(head.last, before + count);
        part = span_of(news.data + at, len);
        ck_assert(span_equal(text, part));
        ck_assert_int_eq(part.ptr[len - 1], ' ');
        before += count;
        at += len;
        messages++;
    }
    ck_assert_uint_eq(before, 41);
    ck_assert_uint_gt(messages, 5);
}
END_TEST

START_TEST(malformed_messages_are_refused)
{
    static const char *const texts[] = {
        "",
        ".",
        "0000000000000001 0000000000000001 ",
        "0000000000000002 0000000000000001 .",
        "000000000000001 0000000000000001 .",
        "000000000000000x 0000000000000001 .",
        "0000000000000001 0000000000000001.",
    };

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct span text = span_str(texts[i]);
        struct peer_message_head head;

        ck_assert_msg(!peer_message_read(&text, &head), "\"%s\"", texts[i]);
    }
}
END_TEST

START_TEST(a_gap_is_missed)
{
    const struct span a = span_str("http://a:1"), b = span_str("http://b:1");
    struct peer_log log;

    peer_log_init(&log);
    ck_assert(peer_log_misses(&log, a, 1, 0)); /* unknown: what was before is, too */
    peer_log_take(&log, a, 1, 0, 0);
    ck_assert(!peer_log_misses(&log, a, 1, 0));
    ck_assert(peer_log_misses(&log, a, 1, 1));
    peer_log_take(&log, a, 1, 5, 0);
    ck_assert(!peer_log_misses(&log, a, 1, 5));
    ck_assert(!peer_log_misses(&log, a, 1, 3)); /* told again */
    peer_log_take(&log, a, 1, 4, 0);
    ck_assert(!peer_log_misses(&log, a, 1, 5));
    ck_assert(peer_log_misses(&log, a, 1, 6));
    ck_assert(peer_log_misses(&log, b, 1, 0));
    ck_assert(peer_log_misses(&log, a, 2, 0)); /* it has started again */
    peer_log_take(&log, a, 2, 1, 0);
    ck_assert(!peer_log_misses(&log, a, 2, 1));
    ck_assert(!peer_log_misses(&log, a, 1, 5)); /* the process before goes on for a while */
    peer_log_free(&log);
}
END_TEST

START_TEST(a_process_that_took_its_leave_is_followed_without_a_gap)
{
    const struct span a = span_str("http://a:1");
    struct peer_message_head head;
    struct peer_log log;
    struct span text;

    peer_message_leave(&message, 7);
    text = buf_span(&message.text);
    ck_assert(peer_message_read(&text, &head));
    ck_assert_uint_eq(head.before, 7);
    ck_assert(peer_message_is_leave(text));
    ck_assert(!peer_message_is_leave(span_str("")));
    peer_log_init(&log);
    peer_log_take(&log, a, 1, 7, 0);
    ck_assert(peer_log_misses(&log, a, 2, 0));
    peer_log_leave(&log, a, 1);
    ck_assert(!peer_log_misses(&log, a, 2, 0));
    ck_assert(peer_log_misses(&log, a, 2, 1)); /* it has told something since */
    ck_assert(peer_log_misses(&log, span_str("http://b:1"), 2, 0));
    peer_log_take(&log, a, 2, 0, 0);
    ck_assert(peer_log_misses(&log, a, 3, 0)); /* the second one did not take its leave */
    peer_log_free(&log);
}
END_TEST

/* Its processes are told apart by when they have started, by a clock that may be set back. */
START_TEST(a_clock_that_was_set_back_hides_no_gap)
{
    const struct span a = span_str("http://a:1");
    struct peer_log log;

    peer_log_init(&log);
    peer_log_take(&log, a, 100, 7, 0);
    peer_log_leave(&log, a, 100);
    ck_assert(!peer_log_misses(&log, a, 50, 0));
    peer_log_take(&log, a, 50, 3, 0);
    /* This one was killed. */
    ck_assert(peer_log_misses(&log, a, 60, 0));
    peer_log_free(&log);
}
END_TEST

/* Two processes of a sender, one of which replaces the other. */
START_TEST(a_process_that_was_replaced_counts_as_long_as_it_is_heard_of)
{
    const int64_t silence = PEER_LOG_SILENCE_US;
    const struct span a = span_str("http://a:1");
    struct peer_log log;

    peer_log_init(&log);
    peer_log_take(&log, a, 1, 7, 0);
    ck_assert(peer_log_misses(&log, a, 2, 0));
    peer_log_take(&log, a, 2, 0, silence);
    ck_assert(!peer_log_misses(&log, a, 1, 7));
    peer_log_take(&log, a, 1, 7, silence);
    /* The new one ends, but not the old one; then both have. */
    peer_log_leave(&log, a, 2);
    ck_assert(peer_log_misses(&log, a, 3, 0));
    peer_log_leave(&log, a, 1);
    ck_assert(!peer_log_misses(&log, a, 3, 0));
    peer_log_take(&log, a, 3, 0, silence);
    /* One that was killed is missed once, and not again after the end of its successor. */
    ck_assert(peer_log_misses(&log, a, 4, 0));
    peer_log_take(&log, a, 4, 0, 3 * silence);
    peer_log_leave(&log, a, 4);
    ck_assert(!peer_log_misses(&log, a, 5, 0));
    peer_log_free(&log);
}
END_TEST

START_TEST(the_oldest_senders_are_forgotten)
{
    struct peer_log log;
    char name[32];

    peer_log_init(&log);
    for (unsigned i = 0; i <= PEER_LOG_ENTRIES; i++) {
        snprintf(name, sizeof(name), "http://h%u", i);
        peer_log_take(&log, span_str(name), 1, 9, 0);
        peer_log_take(&log, span_str("http://h0"), 1, 9, 0);
    }
    ck_assert(!peer_log_misses(&log, span_str("http://h0"), 1, 9));
    ck_assert(peer_log_misses(&log, span_str("http://h1"), 1, 9));
    ck_assert(!peer_log_misses(&log, span_str(name), 1, 9));
    peer_log_free(&log);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("peer_message");
    TCase *tests = tcase_create("text");

    tcase_add_checked_fixture(tests, begin, end);
    tcase_add_test(tests, a_message_without_news);
    tcase_add_test(tests, many_news_are_divided);
    tcase_add_test(tests, malformed_messages_are_refused);
    tcase_add_test(tests, a_gap_is_missed);
    tcase_add_test(tests, a_process_that_took_its_leave_is_followed_without_a_gap);
    tcase_add_test(tests, a_clock_that_was_set_back_hides_no_gap);
    tcase_add_test(tests, a_process_that_was_replaced_counts_as_long_as_it_is_heard_of);
    tcase_add_test(tests, the_oldest_senders_are_forgotten);
    suite_add_tcase(suite, tests);
    return suite;
}
