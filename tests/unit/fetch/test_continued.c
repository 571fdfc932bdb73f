/* Which responses continue one that has broken off, and what of them is new. */
#define UNIT_STARTS_NO_THREAD

#include "fetch/continued.h"

#include <string.h>

#include "tests/unit/unit.h"

#define LENGTH 1000u

static char body[LENGTH], out[LENGTH];

static struct fetch_head
head(const char *lines, int64_t length)
{
    return (struct fetch_head){.status = 200, .headers = span_str(lines), .content_length = length};
}

/* Has given the consumer this much. */
static struct continued *
begin(const char *lines, size_t given)
{
    const struct fetch_head first = head(lines, LENGTH);
    struct continued *c = continued_create(&first);

    ck_assert_ptr_nonnull(c);
    for (size_t i = 0; i < LENGTH; i++)
        body[i] = (char)(i * i);
    for (size_t at = 0; at < given; at += 7)
        continued_add(c, body + at, given - at < 7 ? given - at : 7);
    return c;
}

/* Feeds the body in pieces of this size, and gives what is new; returns its bytes. */
static size_t
feed(struct continued *c, size_t piece)
{
    size_t got = 0;

    for (size_t at = 0; at < LENGTH; at += piece) {
        size_t len = LENGTH - at < piece ? LENGTH - at : piece;
        const void *bytes = body + at;

        if (!continued_skip(c, &bytes, &len))
            return SIZE_MAX;
        memcpy(out + got, bytes, len);
        got += len;
        if (len)
            continued_add(c, bytes, len);
    }
    return got;
}

START_TEST(the_rest_is_new_and_may_break_off_again)
{
    static const size_t pieces[] = {1, 3, 64, 500, LENGTH};
    const struct fetch_head again = head("ETag: \"a\"\r\n", LENGTH);

    for (unsigned i = 0; i < 5; i++) {
        struct continued *c = begin("ETag: \"a\"\r\n", 500);

        ck_assert(continued_begin(c, &again));
        ck_assert(!continued_is_through(c));
        ck_assert_uint_eq(feed(c, pieces[i]), 500);
        ck_assert(continued_is_through(c));
        ck_assert_mem_eq(out, body + 500, 500);
        ck_assert(continued_begin(c, &again));
        ck_assert_uint_eq(feed(c, pieces[i]), 0);
        ck_assert(continued_is_through(c));
        continued_free(&c);
        ck_assert_ptr_null(c);
    }
}
END_TEST

START_TEST(nothing_was_given)
{
    struct continued *c = begin("ETag: \"a\"\r\n", 0);
    const struct fetch_head again = head("ETag: \"a\"\r\n", LENGTH);

    ck_assert(continued_begin(c, &again));
    ck_assert(continued_is_through(c));
    ck_assert_uint_eq(feed(c, 100), LENGTH);
    continued_free(&c);
}
END_TEST

START_TEST(other_bytes_are_refused)
{
    static const size_t places[] = {0, 250, 499};
    const struct fetch_head again = head("ETag: \"a\"\r\n", LENGTH);

    for (unsigned i = 0; i < 3; i++) {
        struct continued *c = begin("ETag: \"a\"\r\n", 500);

        ck_assert(continued_begin(c, &again));
        body[places[i]] ^= 1;
        ck_assert_uint_eq(feed(c, 64), SIZE_MAX);
        continued_free(&c);
    }
}
END_TEST

START_TEST(another_head_is_refused)
{
    static const struct {
        const char *first, *again;
        int64_t length;
        unsigned status;
        bool continues;
    } rows[] = {
        {"ETag: \"a\"\r\n", "X: y\r\nETag: \"a\"\r\n", LENGTH, 200, true},
        {"ETag: \"a\"\r\n", "ETag: \"b\"\r\n", LENGTH, 200, false},
        {"ETag: \"a\"\r\n", "", LENGTH, 200, false},
        {"ETag: \"a\"\r\n", "ETag: \"a\"\r\n", LENGTH + 1, 200, false},
        {"ETag: \"a\"\r\n", "ETag: \"a\"\r\n", -1, 200, false},
        {"ETag: \"a\"\r\n", "ETag: \"a\"\r\n", LENGTH, 206, false},
        {"Last-Modified: x\r\n", "Last-Modified: x\r\n", LENGTH, 200, true},
        {"Last-Modified: x\r\n", "Last-Modified: z\r\n", LENGTH, 200, false},
        {"Last-Modified: x\r\n", "Last-Modified: x\r\nETag: \"a\"\r\n", LENGTH, 200, false},
    };

    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct continued *c = begin(rows[i].first, 10);
        struct fetch_head again = head(rows[i].again, rows[i].length);

        again.status = rows[i].status;
        ck_assert_msg(continued_begin(c, &again) == rows[i].continues, "row %u", i);
        continued_free(&c);
    }
}
END_TEST

START_TEST(without_a_strong_validator_nothing_is_continued)
{
    static const char *const lines[] = {"", "ETag: W/\"a\"\r\n", "ETag:\r\n",
                                        "Last-Modified: x\r\nETag: W/\"a\"\r\n"};
    struct fetch_head first;

    for (unsigned i = 0; i < 4; i++) {
        first = head(lines[i], LENGTH);
        ck_assert_ptr_null(continued_create(&first));
    }
    first = head("ETag: \"a\"\r\n", LENGTH);
    first.status = 404;
    ck_assert_ptr_null(continued_create(&first));
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("continued");
    TCase *tests = tcase_create("responses");

    tcase_add_test(tests, the_rest_is_new_and_may_break_off_again);
    tcase_add_test(tests, nothing_was_given);
    tcase_add_test(tests, other_bytes_are_refused);
    tcase_add_test(tests, another_head_is_refused);
    tcase_add_test(tests, without_a_strong_validator_nothing_is_continued);
    suite_add_tcase(suite, tests);
    return suite;
}
