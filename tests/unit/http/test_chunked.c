/* The chunked transfer coding: what it carries, and all that it refuses. */
#include "http/chunked.h"

#include <stdio.h>

#include "tests/unit/unit.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

/* Reads `wire` in pieces of `step` bytes; what it carried is in `out`. */
static enum chunked_step
read_all(struct span wire, size_t step, char *out, size_t size, const char **reason)
{
    enum chunked_step result = CHUNKED_WANTS;
    struct chunked chunked;
    size_t len = 0;

    chunked_init(&chunked, 64, 4);
    while (wire.len && result == CHUNKED_WANTS) {
        struct span piece = span_of(wire.ptr, wire.len < step ? wire.len : step);
        struct span data;

        wire = span_of(wire.ptr + piece.len, wire.len - piece.len);
        while ((result = chunked_read(&chunked, &piece, &data)) == CHUNKED_DATA) {
            /* Half of it now, half when it is offered again. */
            size_t part = (data.len + 1) / 2;

            ck_assert_uint_gt(data.len, 0);
            ck_assert_uint_lt(len + part, size);
            memcpy(out + len, data.ptr, part);
            len += part;
            chunked_take(&chunked, &piece, part);
        }
        if (result == CHUNKED_END && piece.len + wire.len > 0)
            ck_assert_str_eq(piece.len ? piece.ptr : wire.ptr, "rest");
    }
    out[len] = '\0';
    ck_assert((result == CHUNKED_END) == chunked_ended(&chunked));
    if (result == CHUNKED_BROKEN)
        ck_assert_ptr_nonnull(chunked.reason);
    *reason = chunked.reason;
    ck_assert(!chunked.too_large || result == CHUNKED_BROKEN);
    return result;
}

static void
expect(const char *wire, enum chunked_step wanted, const char *carried)
{
    static const size_t steps[] = {1, 2, 3, 7, 1000000};

    for (size_t i = 0; i < LENGTH(steps); i++) {
        char out[65536];
        const char *reason;
        enum chunked_step result = read_all(span_str(wire), steps[i], out, sizeof(out), &reason);

        ck_assert_msg(result == wanted, "%s by %zu: %d", wire, steps[i], result);
        if (carried)
            ck_assert_msg(strcmp(out, carried) == 0, "%s by %zu: %s", wire, steps[i], out);
    }
}

START_TEST(whole_messages)
{
    expect("0\r\n\r\n", CHUNKED_END, "");
    expect("5\r\nhello\r\n0\r\n\r\n", CHUNKED_END, "hello");
    expect("5\r\nhello\r\n0\r\n\r\nrest", CHUNKED_END, "hello");
    expect("00005\r\nhello\r\n1\r\n!\r\n0000\r\n\r\n", CHUNKED_END, "hello!");
    expect("a\r\n0123456789\r\nA\r\n0123456789\r\n0\r\n\r\n", CHUNKED_END, "01234567890123456789");
    expect("5;a=b;c=\"d;e\"\r\nhello\r\n0;x\r\n\r\n", CHUNKED_END, "hello");
    expect("5;a=\"b\\\";\"\r\nhello\r\n0;a=\"\\\\\"\r\n\r\n", CHUNKED_END, "hello");
    expect("5  \r\nhello\r\n0 ; x\r\n\r\n", CHUNKED_END, "hello");
    expect("5\r\na\r\nb\n\r\n0\r\nA: b\r\nC: d\r\n\r\n", CHUNKED_END, "a\r\nb\n");
}
END_TEST

START_TEST(parts_of_messages)
{
    expect("", CHUNKED_WANTS, "");
    expect("5", CHUNKED_WANTS, "");
    expect("5\r\nhel", CHUNKED_WANTS, "hel");
    expect("5\r\nhello\r\n", CHUNKED_WANTS, "hello");
    expect("5\r\nhello\r\n0\r\n", CHUNKED_WANTS, "hello");
    expect("5\r\nhello\r\n0\r\nA: b\r\n", CHUNKED_WANTS, "hello");
}
END_TEST

START_TEST(broken_messages)
{
    static const char *const cases[] = {
        "\r\n",
        " 5\r\nhello\r\n",
        "5zzz\r\nhello\r\n",
        "0x5\r\nhello\r\n",
        "+5\r\nhello\r\n",
        "-5\r\nhello\r\n",
        "5_0\r\nhello\r\n",
        "5g\r\nhello\r\n",
        "5 5\r\nhello\r\n",
        ";a\r\nhello\r\n",
        "5\nhello\r\n",
        "5\rhello\r\n",
        "5\r\rhello\r\n",
        "5\r\nhello\n0\r\n\r\n",
        "5\r\nhello0\r\n\r\n",
        "5\r\nhellox\r\n",
        "5;a=\"\r\nhello\r\n0\r\n\r\n",
        "5;a=\"\r\n\";b\r\nhello\r\n0\r\n\r\n",
        "5;a=\"\\\"\r\nhello\r\n0\r\n\r\n",
        "5;a=\"\\\r\nhello\r\n0\r\n\r\n",
        "5;a\nb\r\nhello\r\n",
        "5;a=\"\n\"\r\nhello\r\n",
        "5;a\rb\r\nhello\r\n",
        "5;a\x01\r\nhello\r\n",
        "8000000000000000\r\n",
        "10000000000000005\r\nhello\r\n",
        "fffffffffffffffff\r\n",
        "0\r\nA: b\nC: d\r\n\r\n",
        "0\r\nA: b\rC: d\r\n\r\n",
        "0\r\n\n",
        "0\r\n\rx",
    };

    for (size_t i = 0; i < LENGTH(cases); i++)
        expect(cases[i], CHUNKED_BROKEN, NULL);
}
END_TEST

START_TEST(padding_may_be_refused)
{
    static const char *const cases[] = {"5 \r\n", "5\t\r\n", "5 ;a\r\n"};

    for (size_t i = 0; i < LENGTH(cases); i++) {
        struct span input = span_str(cases[i]), data;
        struct chunked chunked;

        chunked_init(&chunked, 64, 4);
        chunked.no_padding = true;
        ck_assert_int_eq(chunked_read(&chunked, &input, &data), CHUNKED_BROKEN);
        input = span_str("5;a = b\r\n");
        chunked_init(&chunked, 64, 4);
        chunked.no_padding = true;
        ck_assert_int_eq(chunked_read(&chunked, &input, &data), CHUNKED_WANTS);
    }
}
END_TEST

START_TEST(bounds)
{
    static char text[20000] = "5;";
    struct chunked chunked;
    struct span input, data;

    /* Trailers of 64 bytes and of 4 lines. */
    expect("0\r\nA: 9012345678901234567890123456789012345678901234567890123456789\r\n\r\n",
           CHUNKED_END, "");
    expect("0\r\nA: 90123456789012345678901234567890123456789012345678901234567890\r\n\r\n",
           CHUNKED_BROKEN, NULL);
    expect("0\r\nA:\r\nB:\r\nC:\r\nD:\r\n\r\n", CHUNKED_END, "");
    expect("0\r\nA:\r\nB:\r\nC:\r\nD:\r\nE:\r\n\r\n", CHUNKED_BROKEN, NULL);
    chunked_init(&chunked, 2, 1);
    input = span_str("0\r\nA:b");
    ck_assert_int_eq(chunked_read(&chunked, &input, &data), CHUNKED_BROKEN);
    ck_assert(chunked.too_large);
    ck_assert_int_eq(chunked_read(&chunked, &input, &data), CHUNKED_BROKEN);
    memset(text + 2, 'x', sizeof(text) - 3);
    expect(text, CHUNKED_BROKEN, NULL);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("http/chunked");
    TCase *tc = tcase_create("chunked");

    tcase_add_test(tc, whole_messages);
    tcase_add_test(tc, parts_of_messages);
    tcase_add_test(tc, broken_messages);
    tcase_add_test(tc, padding_may_be_refused);
    tcase_add_test(tc, bounds);
    suite_add_tcase(suite, tc);
    return suite;
}
