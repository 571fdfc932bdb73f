/* Vary and the keys that requests make for it: RFC 9111 section 4.1. */
#include "http/variant.h"

#include "tests/unit/unit.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

START_TEST(names)
{
    static const struct {
        const char *lines;
        enum http_vary_kind kind;
        const char *names;
    } rows[] = {
        {"", HTTP_VARY_NONE, ""},
        {"X: Vary\r\n", HTTP_VARY_NONE, ""},
        {"Vary:\r\n", HTTP_VARY_NONE, ""},
        {"Vary: , ,\r\n", HTTP_VARY_NONE, ""},
        {"Vary: Foo\r\n", HTTP_VARY_FIELDS, "foo"},
        {"vary : Foo\r\n", HTTP_VARY_FIELDS, "foo"},
        {"Vary: Foo, bar,Baz\r\n", HTTP_VARY_FIELDS, "bar,baz,foo"},
        {"Vary: Foo\r\nX: y\r\nVary: Bar, FOO\r\n", HTTP_VARY_FIELDS, "bar,foo"},
        {"Vary: fo, foo, f\r\n", HTTP_VARY_FIELDS, "f,fo,foo"},
        {"Vary: *\r\n", HTTP_VARY_ANY, ""},
        {"Vary: *, *\r\n", HTTP_VARY_ANY, ""},
        {"Vary: *\r\nVary: *\r\n", HTTP_VARY_ANY, ""},
        {"Vary: , *\r\n", HTTP_VARY_ANY, ""},
        {"Vary:\r\nVary: *\r\n", HTTP_VARY_ANY, ""},
        {"Vary: *, Foo\r\n", HTTP_VARY_ANY, ""},
        {"Vary: Foo, *\r\n", HTTP_VARY_ANY, ""},
        {"Vary: *\r\nVary: Foo\r\n", HTTP_VARY_ANY, ""},
        {"Vary: Foo\r\nVary: *\r\n", HTTP_VARY_ANY, ""},
        {"Vary: Other:\r\n", HTTP_VARY_ANY, ""},
        {"Vary: a b\r\n", HTTP_VARY_ANY, ""},
        {"Vary: \"a\"\r\n", HTTP_VARY_ANY, ""},
        {"Vary: a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,A\r\n", HTTP_VARY_FIELDS,
         "a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p"},
        {"Vary: a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q\r\n", HTTP_VARY_ANY, ""},
    };

    for (size_t i = 0; i < LENGTH(rows); i++) {
        struct http_vary vary, again;
        struct buf text;

        ck_assert_msg(http_vary_read(&vary, span_str(rows[i].lines)) == rows[i].kind, "%s",
                      rows[i].lines);
        ck_assert_msg((vary.count > 0) == (rows[i].kind == HTTP_VARY_FIELDS), "%s", rows[i].lines);
        buf_init(&text, HTTP_VARY_BYTES);
        http_vary_write(&vary, &text);
        ck_assert(!buf_failed(&text));
        ck_assert_str_eq(buf_str(&text), rows[i].names);
        /* What is written is read as the same names. */
        http_vary_parse(&again, buf_span(&text));
        ck_assert_uint_eq(again.count, vary.count);
        for (size_t at = 0; at < vary.count; at++)
            ck_assert_uint_eq(again.names[at].len, vary.names[at].len);
        buf_free(&text);
    }
}
END_TEST

START_TEST(equal_sets)
{
    struct http_vary a, b;

    http_vary_parse(&a, span_str("Foo, bar"));
    http_vary_parse(&b, span_str("BAR, foo, bar"));
    ck_assert(http_vary_equal(&a, &b));
    http_vary_parse(&b, span_str("foo"));
    ck_assert(!http_vary_equal(&a, &b));
    http_vary_parse(&b, span_str("foo, baz"));
    ck_assert(!http_vary_equal(&a, &b));
}
END_TEST

START_TEST(long_names_are_no_key)
{
    char lines[HTTP_VARY_BYTES + 16];
    struct http_vary vary;

    memset(lines, 'a', sizeof(lines));
    memcpy(lines, "Vary: ", 6);
    ck_assert_int_eq(http_vary_read(&vary, span_of(lines, 6 + HTTP_VARY_BYTES - 1)),
                     HTTP_VARY_FIELDS);
    ck_assert_int_eq(http_vary_read(&vary, span_of(lines, 6 + HTTP_VARY_BYTES)), HTTP_VARY_ANY);
    ck_assert_uint_eq(vary.count, 0);
}
END_TEST

/* The key of a request; the caller frees the buffer. */
static bool
make_key(const char *vary_names, const char *lines, struct buf *key)
{
    struct http_vary vary;

    http_vary_parse(&vary, span_str(vary_names));
    buf_init(key, 65536);
    return http_variant_key(&vary, span_str(lines), key);
}

START_TEST(keys)
{
    static const struct {
        const char *names, *lines, *key;
    } rows[] = {
        {"foo", "Foo: 1\r\n", "foo:1\n"},
        {"foo", "X: y\r\nFOO:   1 \r\n", "foo:1\n"},
        {"foo", "", "foo\n"},
        {"foo", "Foo:\r\n", "foo:\n"},
        {"Foo,Bar", "Foo: 1\r\nBar: abc\r\n", "bar:abc\nfoo:1\n"},
        {"foo,bar,baz", "Foo: 1\r\nBaz: 789\r\n", "bar\nbaz:789\nfoo:1\n"},
        {"foo", "Foo: 1\r\nFoo: 2\r\n", "foo:1,2\n"},
        {"foo", "Foo: 1, 2\r\n", "foo:1,2\n"},
        {"foo", "Foo:  1,2 \r\n", "foo:1,2\n"},
        {"foo", "Foo: 1\t ,\t2\r\n", "foo:1,2\n"},
        {"foo", "Foo: 1,,2\r\n", "foo:1,,2\n"},
        {"foo", "Foo: a  b\r\n", "foo:a  b\n"},
        {"foo", "Foo: \"a , b\" , c\r\n", "foo:\"a , b\",c\n"},
        {"foo", "Foo: \"a\\\" , b\" , c\r\n", "foo:\"a\\\" , b\",c\n"},
        {"foo", "Foo: \"a , b\r\n", "foo:\"a , b\n"},
        {"foo", "Foo: \"a\r\nFoo: b , c\"\r\n", "foo:\"a,b , c\"\n"},
        {"foo", "Foo: b , c\r\nFoo: \"a\r\n", "foo:b , c,\"a\n"},
        /* Accept-Encoding */
        {"accept-encoding", "", "accept-encoding\n"},
        {"accept-encoding", "Accept-Encoding:\r\n", "accept-encoding:\n"},
        {"accept-encoding", "Accept-Encoding: identity\r\n", "accept-encoding:\n"},
        {"accept-encoding", "Accept-Encoding: gzip, deflate, br\r\n",
         "accept-encoding:br,deflate,gzip\n"},
        {"accept-encoding", "Accept-Encoding: BR;q=1.0, GZIP;q=0.8\r\nAccept-Encoding: deflate\r\n",
         "accept-encoding:br,deflate,gzip\n"},
        {"accept-encoding", "Accept-Encoding: x-gzip, gzip\r\n", "accept-encoding:gzip\n"},
        {"accept-encoding", "Accept-Encoding: gzip, br;q=0\r\n", "accept-encoding:gzip\n"},
        {"accept-encoding", "Accept-Encoding: gzip, br;q=0.000, identity\r\n",
         "accept-encoding:gzip\n"},
        {"accept-encoding", "Accept-Encoding: gzip;q=0.001 , Foo\r\n",
         "accept-encoding:foo,gzip\n"},
        {"accept-encoding", "Accept-Encoding: gzip, *;q=0\r\n",
         "accept-encoding:gzip,identity;q=0\n"},
        {"accept-encoding", "Accept-Encoding: gzip, *;q=0, identity;q=0.5\r\n",
         "accept-encoding:gzip\n"},
        {"accept-encoding", "Accept-Encoding: identity;q=0, gzip\r\n",
         "accept-encoding:gzip,identity;q=0\n"},
        {"accept-encoding", "Accept-Encoding: *, br;q=0\r\n", "accept-encoding:*,br;q=0\n"},
        /* what is no such list is kept as it stands */
        {"accept-encoding", "Accept-Encoding: gzip;q=2, br\r\n", "accept-encoding:gzip;q=2,br\n"},
        {"accept-encoding", "Accept-Encoding: gzip;x=1 , br\r\n", "accept-encoding:gzip;x=1,br\n"},
        {"accept-encoding", "Accept-Encoding: gzip;q=0.5000, br\r\n",
         "accept-encoding:gzip;q=0.5000,br\n"},
        {"accept-encoding", "Accept-Encoding: g zip, br\r\n", "accept-encoding:g zip,br\n"},
        /* Accept-Language */
        {"accept-language", "Accept-Language: en, de\r\n", "accept-language:de,en\n"},
        {"accept-language", "Accept-Language: de, en\r\n", "accept-language:de,en\n"},
        {"accept-language", "Accept-Language: eN, De\r\n", "accept-language:de,en\n"},
        {"accept-language", "Accept-Language:  en ,   de\r\n", "accept-language:de,en\n"},
        {"accept-language", "Accept-Language: en;q=0.5, de;q=1.0\r\n",
         "accept-language:de,en;q=0.5\n"},
        {"accept-language", "Accept-Language: en-US,en;q=0.850, *;q=0.01,fr;q=0\r\n",
         "accept-language:en-us,en;q=0.85,*;q=0.01,fr;q=0\n"},
        {"accept-language", "Accept-Language: en; Q=0.5\r\n", "accept-language:en;q=0.5\n"},
    };

    for (size_t i = 0; i < LENGTH(rows); i++) {
        struct buf key;

        ck_assert_msg(make_key(rows[i].names, rows[i].lines, &key), "%s", rows[i].lines);
        ck_assert_str_eq(buf_str(&key), rows[i].key);
        buf_free(&key);
    }
}
END_TEST

START_TEST(keys_are_bounded)
{
    char lines[HTTP_VARIANT_MAX + 64];
    struct http_vary vary;
    struct buf key;

    ck_assert(!make_key("foo",
                        "Foo: a\x01"
                        "b\r\n",
                        &key));
    buf_free(&key);
    http_vary_parse(&vary, span_str("foo"));
    memset(lines, 'a', sizeof(lines));
    memcpy(lines, "Foo: ", 5);
    /* "foo:" and the line feed belong to the key. */
    buf_init(&key, 65536);
    ck_assert(http_variant_key(&vary, span_of(lines, 5 + HTTP_VARIANT_MAX - 5), &key));
    ck_assert_uint_eq(key.len, HTTP_VARIANT_MAX);
    buf_reset(&key);
    ck_assert(!http_variant_key(&vary, span_of(lines, 5 + HTTP_VARIANT_MAX - 4), &key));
    buf_free(&key);
    /* A buffer that is full fails the key. */
    buf_init(&key, 8);
    ck_assert(!http_variant_key(&vary, span_str("Foo: 123456789\r\n"), &key));
    buf_free(&key);
}
END_TEST

START_TEST(too_many_preferences_are_kept_as_they_stand)
{
    struct buf lines, key;
    struct http_vary vary;

    buf_init(&lines, 4096);
    buf_init(&key, 4096);
    buf_append_str(&lines, "Accept-Language: z0");
    for (int i = 1; i < 40; i++)
        buf_printf(&lines, ", a%d", i);
    http_vary_parse(&vary, span_str("accept-language"));
    ck_assert(http_variant_key(&vary, buf_span(&lines), &key));
    ck_assert(span_starts_with(buf_span(&key), span_str("accept-language:z0,a1,a2,")));
    buf_free(&lines);
    buf_free(&key);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("http/variant");
    TCase *tests = tcase_create("variant");

    tcase_add_test(tests, names);
    tcase_add_test(tests, equal_sets);
    tcase_add_test(tests, long_names_are_no_key);
    tcase_add_test(tests, keys);
    tcase_add_test(tests, keys_are_bounded);
    tcase_add_test(tests, too_many_preferences_are_kept_as_they_stand);
    suite_add_tcase(suite, tests);
    return suite;
}
