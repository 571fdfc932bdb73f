/* News as text: what is written is read, and nothing else. */
#define UNIT_STARTS_NO_THREAD

#include "server/peers/peer_item.h"

#include <string.h>

#include "tests/unit/unit.h"

static struct buf text, bytes;

static void
begin(void)
{
    buf_init(&text, 1 << 16);
    buf_init(&bytes, 1 << 16);
}

static void
end(void)
{
    buf_free(&text);
    buf_free(&bytes);
}

START_TEST(what_is_written_is_read)
{
    char every[256];
    struct peer_item items[] = {
        {.kind = CONTROL_PURGE_URL, .name = span_str("http://h/a?b=c,d%20e")},
        {.kind = CONTROL_PURGE_PREFIX, .soft = true, .name = span_str("http://h/")},
        {.kind = CONTROL_PURGE_ALL},
        {.kind = CONTROL_PURGE_URL,
         .written = true,
         .name = span_str("http://h/w"),
         .scope = span_str("http://h/")},
        {.kind = CONTROL_PURGE_TAG, .name = span_str("a,b"), .scope = span_str("http://h:8,0/")},
        {.kind = CONTROL_PURGE_TAG, .soft = true, .name = span_of(every, sizeof(every))},
    };
    const size_t count = sizeof(items) / sizeof(items[0]);
    struct peer_item read;
    struct span rest;

    for (unsigned i = 0; i < 256; i++)
        every[i] = (char)i;
    for (size_t i = 0; i < count; i++)
        peer_item_write(&items[i], &text);
    ck_assert(!buf_failed(&text));
    for (size_t i = 0; i < text.len; i++)
        ck_assert(text.data[i] >= ' ' && text.data[i] < 127);
    rest = buf_span(&text);
    for (size_t i = 0; i < count; i++) {
        ck_assert(peer_item_read(&rest, &read, &bytes));
        ck_assert_int_eq(read.kind, items[i].kind);
        ck_assert(read.soft == items[i].soft && read.written == items[i].written);
        ck_assert(span_equal(read.name, items[i].name));
        ck_assert(span_equal(read.scope, items[i].scope));
    }
    ck_assert_uint_eq(rest.len, 0);
    ck_assert(!peer_item_read(&rest, &read, &bytes));
}
END_TEST

START_TEST(malformed_text_is_refused)
{
    static const char *const texts[] = {"",        " ",       "u ",    "uhhttp://h/",
                                        "xhname ", "uxname ", "uh% ",  "uh%2 ",
                                        "uh%2G ",  "uh%2A ",  "th,% ", "u h "};
    struct peer_item item;

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct span rest = span_str(texts[i]);

        ck_assert_msg(!peer_item_read(&rest, &item, &bytes), "\"%s\"", texts[i]);
    }
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("peer_item");
    TCase *tests = tcase_create("text");

    tcase_add_checked_fixture(tests, begin, end);
    tcase_add_test(tests, what_is_written_is_read);
    tcase_add_test(tests, malformed_text_is_refused);
    suite_add_tcase(suite, tests);
    return suite;
}
