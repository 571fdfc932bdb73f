#define UNIT_STARTS_NO_THREAD

#include "base/buf.h"
#include "base/djb.h"
#include "base/json.h"
#include "tests/unit/unit.h"

#include <math.h>
#include <stdlib.h>

START_TEST(a_buffer_keeps_to_its_ceiling)
{
    struct buf b;

    buf_init(&b, 10);
    ck_assert_str_eq(buf_str(&b), "");
    ck_assert(buf_append_str(&b, "12345"));
    ck_assert(!buf_append_str(&b, "678901"));
    ck_assert(buf_failed(&b));
    ck_assert_str_eq(buf_str(&b), "12345");
    ck_assert(buf_append_str(&b, "67890"));
    ck_assert_uint_eq(b.len, 10);
    ck_assert(!buf_append_char(&b, 'x'));
    buf_reset(&b);
    ck_assert(!buf_failed(&b));
    ck_assert(buf_printf(&b, "%d-%s", 7, "abc"));
    ck_assert_str_eq(buf_str(&b), "7-abc");
    ck_assert(!buf_printf(&b, "%s", "12345678901"));
    buf_free(&b);
}
END_TEST

START_TEST(lines_of_a_buffer_end_once)
{
    struct buf b;

    buf_init(&b, 10);
    buf_unend_line(&b);
    ck_assert(buf_end_line(&b));
    ck_assert_str_eq(buf_str(&b), "");
    buf_append_str(&b, "a");
    ck_assert(buf_end_line(&b));
    ck_assert(buf_end_line(&b));
    ck_assert_str_eq(buf_str(&b), "a\n");
    buf_unend_line(&b);
    buf_unend_line(&b);
    ck_assert_str_eq(buf_str(&b), "a");
    buf_append_str(&b, "234567890");
    ck_assert(!buf_end_line(&b));
    buf_free(&b);
}
END_TEST

START_TEST(json_nests_and_quotes)
{
    struct buf b;
    struct json j;

    buf_init(&b, 4096);
    json_init(&j, &b);
    json_open_object(&j, NULL);
    json_string(&j, "url", span_of("a\"\\\n\0b", 6));
    json_int(&j, "n", -3);
    json_open_array(&j, "list");
    json_uint(&j, NULL, 1);
    json_bool(&j, NULL, true);
    json_null(&j, NULL);
    json_close_array(&j);
    json_double(&j, "d", 1.0 / 3, 3);
    json_double(&j, "nan", NAN, 3);
    json_close_object(&j);
    ck_assert_str_eq(buf_str(&b), "{\"url\":\"a\\\"\\\\\\u000a\\u0000b\",\"n\":-3,"
                                  "\"list\":[1,true,null],\"d\":0.333,\"nan\":null}");
    buf_free(&b);
}
END_TEST

START_TEST(json_is_utf8_whatever_comes)
{
    static const char *const bad[] = {"\xff", "\xc0\xaf", "\xed\xa0\x80", "\xf5\x80\x80\x80",
                                      "\xe2\x82"};
    struct buf b;
    struct json j;

    buf_init(&b, 4096);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        /* In memory of exactly its length, so that a sanitizer sees a read past the end. */
        size_t len = strlen(bad[i]);
        char *copy = malloc(len);

        ck_assert_ptr_nonnull(copy);
        memcpy(copy, bad[i], len);
        buf_reset(&b);
        json_init(&j, &b);
        json_string(&j, NULL, span_of(copy, len));
        ck_assert_uint_eq(b.len, 2 + 6 * len);
        free(copy);
    }
    buf_reset(&b);
    json_init(&j, &b);
    json_cstring(&j, NULL, "h\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80");
    ck_assert_str_eq(buf_str(&b), "\"h\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80\"");
    /* What a terminal would obey is escaped. */
    buf_reset(&b);
    json_init(&j, &b);
    json_cstring(&j, NULL, "\x1b\x7f\xc2\x9b\xe2\x80\xae\xe2\x81\xa6\xd8\x9c\xc2\xa0");
    ck_assert_str_eq(buf_str(&b), "\"\\u001b\\u007f\\u009b\\u202e\\u2066\\u061c\xc2\xa0\"");
    buf_free(&b);
}
END_TEST

START_TEST(djb_hash_is_the_papers)
{
    static const char text[] = "http://example.com/\xff\x80\0path?query";

    ck_assert_uint_eq(djb_hash(span_str("")), 5381);
    ck_assert_uint_eq(djb_hash(span_str("a")), 5381 * 33 + 'a');
    ck_assert_uint_eq(djb_hash(span_str("xEz")), djb_hash(span_str("xFY")));
    for (size_t len = 0; len <= sizeof(text); len++) {
        uint32_t hash = 5381;

        for (size_t i = 0; i < len; i++)
            hash = hash * 33 + (unsigned char)text[i];
        ck_assert_uint_eq(djb_hash(span_of(text, len)), hash);
    }
}
END_TEST

START_TEST(djb_hash_is_the_same_byte_by_byte)
{
    char bytes[41];
    uint32_t hash = 5381;

    for (size_t len = 0; len < sizeof(bytes); len++) {
        ck_assert_uint_eq(djb_hash(span_of(bytes, len)), hash);
        bytes[len] = (char)(255 - 37 * len);
        hash = hash * 33 + (unsigned char)bytes[len];
    }
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("base/buf, json, djb");
    TCase *tc = tcase_create("base");

    tcase_add_test(tc, a_buffer_keeps_to_its_ceiling);
    tcase_add_test(tc, lines_of_a_buffer_end_once);
    tcase_add_test(tc, json_nests_and_quotes);
    tcase_add_test(tc, json_is_utf8_whatever_comes);
    tcase_add_test(tc, djb_hash_is_the_papers);
    tcase_add_test(tc, djb_hash_is_the_same_byte_by_byte);
    suite_add_tcase(suite, tc);
    return suite;
}
