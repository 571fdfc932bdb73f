/*
 * What is replaced before text reaches a terminal: all of it, and nothing else.
 */
#define UNIT_STARTS_NO_THREAD

#include "base/printable.h"

#include <stdlib.h>

#include "tests/unit/unit.h"

/* In memory of exactly its length, so that a sanitizer sees a read past the end. */
static char *
made(const char *text, size_t len)
{
    char *copy = malloc(len + (len == 0));

    ck_assert_ptr_nonnull(copy);
    memcpy(copy, text, len);
    printable_make(copy, len);
    return copy;
}

/* Both functions agree, in place and in a stream. */
static void
check(const char *text, const char *expected)
{
    size_t len = strlen(text), written;
    char *copy = made(text, len), *stream;
    FILE *file = open_memstream(&stream, &written);

    ck_assert_uint_eq(strlen(expected), len);
    ck_assert_msg(memcmp(copy, expected, len) == 0, "%.*s", (int)len, copy);
    printable_write(file, span_of(text, len));
    ck_assert_int_eq(fclose(file), 0);
    ck_assert_uint_eq(written, len);
    ck_assert_str_eq(stream, expected);
    free(stream);
    free(copy);
}

START_TEST(texts)
{
    check("", "");
    check("http://a.test/?q=1#x ~", "http://a.test/?q=1#x ~");
    check("\xc3\xa9\xc2\xa0\xe2\x82\xac\xf0\x9f\x98\x80\xe2\x80\x8d",
          "\xc3\xa9\xc2\xa0\xe2\x82\xac\xf0\x9f\x98\x80\xe2\x80\x8d");
    check("a\x1b[31mb\n\t\x7f", "a?[31mb???");
    check("\xc2\x9b"
          "31m\xc2\x80\xc2\x9f",
          "??31m????");
    check("\x9b"
          "31m",
          "?31m");
    /* A raw C1 byte behind a character, and inside one that is cut. */
    check("\xc3\xa9\x9b\xe2\x82\x1b", "\xc3\xa9????");
    check("a\xe2\x80\xae"
          "b\xe2\x80\xaa\xe2\x81\xa6\xe2\x81\xa9",
          "a???b?????????");
    check("\xe2\x80\x8e\xe2\x80\x8f\xd8\x9c\xe2\x80\xa8", "???????????");
    /* Overlong, surrogates, beyond U+10FFFF, cut. */
    check("\xc1\xbf\xe0\x82\x9b\xf0\x80\x80\x9b", "?????????");
    check("\xed\xa0\x80\xf4\x90\x80\x80\xff\xfe\xc3", "??????????");
}
END_TEST

/* Every character there is, by the definition of UTF-8 and by the list in the header. */
START_TEST(every_character)
{
    for (uint32_t c = 0; c < 0x110000; c++) {
        char text[4];
        size_t len;
        uint32_t decoded = 0;
        bool hidden = c < 0x20 || (c >= 0x7f && c <= 0x9f) || c == 0x61c || c == 0x200e ||
                      c == 0x200f || (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x206f);

        if (c < 0x80) {
            text[0] = (char)c;
            len = 1;
        } else if (c < 0x800) {
            text[0] = (char)(0xc0 | c >> 6);
            text[1] = (char)(0x80 | (c & 63));
            len = 2;
        } else if (c < 0x10000) {
            text[0] = (char)(0xe0 | c >> 12);
            text[1] = (char)(0x80 | (c >> 6 & 63));
            text[2] = (char)(0x80 | (c & 63));
            len = 3;
        } else {
            text[0] = (char)(0xf0 | c >> 18);
            text[1] = (char)(0x80 | (c >> 12 & 63));
            text[2] = (char)(0x80 | (c >> 6 & 63));
            text[3] = (char)(0x80 | (c & 63));
            len = 4;
        }
        if (c >= 0xd800 && c <= 0xdfff) {
            ck_assert_uint_eq(printable_decode(span_of(text, len), &decoded), 0);
            continue;
        }
        ck_assert_uint_eq(printable_decode(span_of(text, len), &decoded), len);
        ck_assert_uint_eq(decoded, c);
        ck_assert_msg(printable_length(span_of(text, len)) == (hidden ? 0 : len), "U+%04X", c);
    }
}
END_TEST

START_TEST(lines)
{
    static const struct {
        struct span text;
        bool printable;
    } cases[] = {
        {{"", 0}, true},       {{"a\tb\r\n\xc3\xa9\n", 8}, true},
        {{"a\n\0", 3}, false}, {{"\x1b[31m", 5}, false},
        {{"a\b", 2}, false},   {{"a\xc2\x9b", 3}, false},
        {{"a\x9b", 2}, false}, {{"\xe2\x80\xae", 3}, false},
        {{"a\xc3", 2}, false},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        ck_assert_int_eq(printable_lines(cases[i].text), cases[i].printable);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("base/printable");
    TCase *tcase = tcase_create("printable");

    tcase_add_test(tcase, texts);
    tcase_add_test(tcase, every_character);
    tcase_add_test(tcase, lines);
    suite_add_tcase(suite, tcase);
    return suite;
}
