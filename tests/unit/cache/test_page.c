#include "cache/page.h"

#include <errno.h>
#include <stdlib.h>

#include "tests/unit/unit.h"

static const struct span no_span = {NULL, 0};

static bool
begin(struct page_builder *builder, size_t hint, size_t ceiling)
{
    return page_begin(builder, NULL, span_str("http://a/"), span_str("http://b/"),
                      span_str("X: y\r\n"), 203, hint, ceiling);
}

static bool
is(struct span span, const char *text)
{
    return span_equal(span, span_str(text));
}

START_TEST(a_page_is_what_went_into_it)
{
    struct page_builder builder;
    struct page *page;

    ck_assert(begin(&builder, 5, 100));
    ck_assert_int_eq(page_append(&builder, "hel", 3), 0);
    ck_assert_int_eq(page_append(&builder, "", 0), 0);
    ck_assert_int_eq(page_append(&builder, NULL, 0), 0);
    ck_assert_int_eq(page_append(&builder, "lo", 2), 0);
    page = page_finish(&builder, 77, 1234567890123456);
    ck_assert_ptr_null(builder.page);
    ck_assert(is(page_url(page), "http://a/"));
    ck_assert(is(page_final_url(page), "http://b/"));
    ck_assert(is(page_headers(page), "X: y\r\n"));
    ck_assert(is(page_body(page), "hello"));
    ck_assert_int_eq(page_body(page).ptr[5], 0);
    ck_assert_uint_eq(page->status, 203);
    ck_assert_uint_eq(page->fetch_us, 77);
    ck_assert_int_eq(page->fetched_us, 1234567890123456);
    ck_assert(!page->has_zero_byte);
    page_release(&page);
    ck_assert_ptr_null(page);
    page_release(&page);
}
END_TEST

START_TEST(an_equal_final_url_is_not_kept_twice)
{
    struct page_builder builder;
    struct page *page;

    ck_assert(page_begin(&builder, NULL, span_str("http://a/"), span_str("http://a/"), no_span, 200,
                         0, 0));
    page = page_finish(&builder, 0, 0);
    ck_assert_uint_eq(page->final_url_len, 0);
    ck_assert(is(page_final_url(page), "http://a/"));
    ck_assert_uint_eq(page_body(page).len, 0);
    ck_assert_int_eq(page_body(page).ptr[0], 0);
    page_release(&page);
}
END_TEST

START_TEST(a_body_of_unknown_length_grows)
{
    enum { LEN = 300000 };
    struct page_builder builder;
    struct page *page;
    struct span body;
    char piece[1000];

    ck_assert(begin(&builder, 0, LEN));
    for (size_t i = 0; i < LEN / sizeof(piece); i++) {
        memset(piece, (int)('a' + i % 26), sizeof(piece));
        ck_assert_int_eq(page_append(&builder, piece, sizeof(piece)), 0);
        ck_assert_uint_le(builder.body_room, LEN);
        /* No copy for each piece. */
        ck_assert_uint_ge(builder.body_room, i * sizeof(piece) < 1000 ? 1000 : i * sizeof(piece));
    }
    page = page_finish(&builder, 0, 0);
    body = page_body(page);
    ck_assert_uint_eq(body.len, LEN);
    for (size_t i = 0; i < LEN / sizeof(piece); i++) {
        memset(piece, (int)('a' + i % 26), sizeof(piece));
        ck_assert_mem_eq(body.ptr + i * sizeof(piece), piece, sizeof(piece));
    }
    ck_assert_int_eq(body.ptr[LEN], 0);
    ck_assert(is(page_headers(page), "X: y\r\n"));
    page_release(&page);
}
END_TEST

START_TEST(growing_doubles)
{
    struct page_builder builder;
    unsigned moves = 0, errors = 0;

    ck_assert(begin(&builder, 0, 1 << 20));
    for (size_t i = 0; i < 1 << 20; i++) {
        size_t room = builder.body_room;

        errors += page_append(&builder, "x", 1) != 0;
        moves += builder.body_room != room;
    }
    ck_assert_uint_eq(errors, 0);
    ck_assert_uint_le(moves, 11);
    page_abandon(&builder);
}
END_TEST

START_TEST(the_ceiling_holds_to_the_byte)
{
    struct page_builder builder;
    struct page *page;

    ck_assert(begin(&builder, 1000, 10));
    ck_assert_uint_eq(builder.body_room, 10);
    ck_assert_int_eq(page_append(&builder, "0123456", 7), 0);
    ck_assert_int_eq(page_append(&builder, "7890", 4), EFBIG);
    ck_assert_int_eq(page_append(&builder, "789", 3), 0);
    ck_assert_int_eq(page_append(&builder, "x", 1), EFBIG);
    ck_assert_int_eq(page_append(&builder, "x", SIZE_MAX), EFBIG);
    page = page_finish(&builder, 0, 0);
    ck_assert(is(page_body(page), "0123456789"));
    page_release(&page);
}
END_TEST

START_TEST(a_hint_is_believed_up_to_a_mebibyte)
{
    struct page_builder builder;

    ck_assert(begin(&builder, 2147483647, 2147483647));
    ck_assert_uint_eq(builder.body_room, 1 << 20);
    page_abandon(&builder);
    ck_assert(begin(&builder, SIZE_MAX, SIZE_MAX));
    ck_assert_uint_eq(builder.body_ceiling, 2147483647);
    page_abandon(&builder);
    page_abandon(&builder);
}
END_TEST

START_TEST(long_parts_are_refused)
{
    static char text[PAGE_MAX_META + 1];
    struct span longest = span_of(text, PAGE_MAX_META), longer = span_of(text, PAGE_MAX_META + 1);
    struct page_builder builder;
    struct page *page;

    memset(text, 'x', sizeof(text));
    ck_assert(!page_begin(&builder, NULL, longer, no_span, no_span, 200, 0, 0));
    ck_assert_ptr_null(builder.page);
    ck_assert(!page_begin(&builder, NULL, no_span, longer, no_span, 200, 0, 0));
    ck_assert(!page_begin(&builder, NULL, no_span, no_span, longer, 200, 0, 0));
    ck_assert(page_begin(&builder, NULL, longest, span_str("u"), longest, 200, 0, 0));
    page = page_finish(&builder, 0, 0);
    ck_assert(span_equal(page_headers(page), longest));
    ck_assert(is(page_final_url(page), "u"));
    page_release(&page);
}
END_TEST

START_TEST(a_zero_byte_is_noticed_wherever_it_is)
{
    static const struct {
        const char *pieces[3];
        size_t lengths[3];
        bool has;
    } cases[] = {
        {{"abc", "def", "ghi"}, {3, 3, 3}, false}, {{"abc", "d\0f", "ghi"}, {3, 3, 3}, true},
        {{"\0", "def", "ghi"}, {1, 3, 3}, true},   {{"abc", "def", "gh"}, {3, 3, 3}, true},
        {{"abc", "def", "gh"}, {3, 3, 2}, false},
    };

    for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
        struct page_builder builder;
        struct page *page;

        ck_assert(begin(&builder, 0, 100));
        for (int i = 0; i < 3; i++)
            ck_assert_int_eq(page_append(&builder, cases[c].pieces[i], cases[c].lengths[i]), 0);
        page = page_finish(&builder, 0, 0);
        ck_assert_msg(page->has_zero_byte == cases[c].has, "case %zu", c);
        ck_assert_int_eq(span_has_zero(page_body(page)), cases[c].has);
        page_release(&page);
    }
}
END_TEST

START_TEST(long_fetches_saturate)
{
    struct page_builder builder;
    struct page *page;

    ck_assert(begin(&builder, 0, 0));
    page = page_finish(&builder, 1ull << 40, 0);
    ck_assert_uint_eq(page->fetch_us, UINT32_MAX);
    page_release(&page);
}
END_TEST

START_TEST(a_page_is_fresh_for_as_long_as_it_was_told)
{
    static const struct {
        int64_t fresh_us, last_us; /* of its life; what it is told, the last moment in it */
    } rows[] = {
        {1000, 999},
        {60000000, 59999999},
        {1999, 999}, /* whole milliseconds */
        {(int64_t)4294967294 * 1000, (int64_t)4294967294 * 1000 - 1},
        {(int64_t)4294967295 * 1000, (int64_t)4294967294 * 1000 - 1}, /* not for ever */
        {INT64_MAX, (int64_t)4294967294 * 1000 - 1},
    };
    const int64_t start = 1234567890;
    struct page_builder builder;
    struct page *page;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        ck_assert(begin(&builder, 0, 0));
        page = page_finish(&builder, 0, start);
        ck_assert(page_is_fresh(page, start) && page_is_fresh(page, INT64_MAX));
        page_limit(page, rows[i].fresh_us);
        ck_assert(page_is_fresh(page, start - 1)); /* the request came before the page */
        ck_assert(page_is_fresh(page, start));
        ck_assert_msg(page_is_fresh(page, start + rows[i].last_us), "row %zu", i);
        ck_assert_msg(!page_is_fresh(page, start + rows[i].last_us + 1), "row %zu", i);
        page_release(&page);
    }
    for (int64_t fresh_us = -1000000; fresh_us < 1000; fresh_us += 999) {
        ck_assert(begin(&builder, 0, 0));
        page = page_finish(&builder, 0, start);
        page_limit(page, fresh_us);
        ck_assert(!page_is_fresh(page, start));
        page_release(&page);
    }
}
END_TEST

START_TEST(the_last_reference_frees)
{
    struct page_builder builder;
    struct page *page, *other;

    ck_assert(begin(&builder, 0, 0));
    page = page_finish(&builder, 0, 0);
    ck_assert_uint_eq(page->references, 1);
    other = page_retain(page);
    page_release(&page);
    ck_assert_uint_eq(other->references, 1);
    ck_assert(is(page_url(other), "http://a/"));
    page_release(&other); /* the sanitizer tells if it was one too many, or too few */
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("cache/page");
    TCase *tc = tcase_create("page");

    tcase_add_test(tc, a_page_is_what_went_into_it);
    tcase_add_test(tc, a_page_is_fresh_for_as_long_as_it_was_told);
    tcase_add_test(tc, an_equal_final_url_is_not_kept_twice);
    tcase_add_test(tc, a_body_of_unknown_length_grows);
    tcase_add_test(tc, growing_doubles);
    tcase_add_test(tc, the_ceiling_holds_to_the_byte);
    tcase_add_test(tc, a_hint_is_believed_up_to_a_mebibyte);
    tcase_add_test(tc, long_parts_are_refused);
    tcase_add_test(tc, a_zero_byte_is_noticed_wherever_it_is);
    tcase_add_test(tc, long_fetches_saturate);
    tcase_add_test(tc, the_last_reference_frees);
    suite_add_tcase(suite, tc);
    return suite;
}
