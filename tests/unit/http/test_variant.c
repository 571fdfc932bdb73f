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
        {"Vary: Accept-Encoding;br=0\r\n", HTTP_VARY_ANY, ""},
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

/* ---- codings that are known to be unused ------------------------------------------------------
 */

static void
check_text(const struct http_vary *vary, const char *expected, const char *what)
{
    struct buf text;

    buf_init(&text, HTTP_VARY_TEXT);
    http_vary_write(vary, &text);
    ck_assert(!buf_failed(&text));
    ck_assert_msg(strcmp(buf_str(&text), expected) == 0, "%s: %s and not %s", what, buf_str(&text),
                  expected);
    buf_free(&text);
}

#define AE "accept-encoding"
#define OFFERS(list) "Accept-Encoding: " list "\r\n"
#define CODED(list) "Content-Encoding: " list "\r\n"

START_TEST(responses_show_which_codings_are_used)
{
    static const struct {
        const char *known, *request;
        unsigned status;
        const char *response, *text;
    } rows[] = {
        {AE, OFFERS("gzip"), 200, CODED("gzip"), AE ";gzip=1"},
        {AE, OFFERS("gzip, deflate, br, zstd"), 200, CODED("gzip"),
         AE ";br=0;deflate=0;gzip=1;zstd=0"},
        {AE, OFFERS("GZIP, Br"), 200, CODED("X-GZIP"), AE ";br=0;gzip=1"},
        {AE, OFFERS("x-gzip") OFFERS("br"), 200, CODED("br"), AE ";br=1;gzip=0"},
        {AE, OFFERS("gzip, br"), 200, "", AE ";br=0;gzip=0"},
        {AE, OFFERS("gzip, br"), 200, CODED("identity"), AE ";br=0;gzip=0"},
        {AE, "", 200, "", AE},
        {AE, OFFERS("identity"), 200, "", AE},
        {AE, "", 200, CODED("gzip"), AE ";gzip=1"},
        {AE, OFFERS("gzip, br, zstd"), 200, CODED("gzip, br"), AE ";br=1;gzip=1;zstd=0"},
        {AE, OFFERS("gzip, br, zstd"), 200, CODED("gzip") CODED("br"), AE ";br=1;gzip=1;zstd=0"},
        /* A coding that the client likes less may be the choice for another one. */
        {AE, OFFERS("gzip, br;q=0.9, zstd;q=1.0"), 200, CODED("gzip"), AE ";gzip=1;zstd=0"},
        {AE, OFFERS("gzip;q=0.5, identity"), 200, "", AE},
        {AE, OFFERS("gzip, identity;q=0.5, br;q=0.4"), 200, "", AE ";gzip=0"},
        {AE, OFFERS("gzip, br;q=0"), 200, CODED("gzip"), AE ";gzip=1"},
        {AE, OFFERS("*, br"), 200, CODED("br"), AE ";br=1"},
        /* Nor does one that the client has not offered show what its choice was. */
        {AE, OFFERS("zstd, br"), 200, CODED("gzip"), AE ";gzip=1"},
        {AE, OFFERS("gzip, *"), 200, CODED("br"), AE ";br=1"},
        {AE, OFFERS("gzip, dcb"), 200, CODED("dcb"), AE ";gzip=0"},
        {AE, OFFERS("gzip, dcb"), 200, CODED("gzip"), AE ";gzip=1"},
        /* Error pages are short. */
        {AE, OFFERS("gzip, br"), 404, "", AE},
        {AE, OFFERS("gzip, br"), 404, CODED("br"), AE ";br=1"},
        /* What cannot be read. */
        {AE, OFFERS("gzip;q=2, br"), 200, CODED("br"), AE ";br=1"},
        {AE, OFFERS("gzip, br"), 200, CODED("gzip;x"),
         AE ";br=1;compress=1;deflate=1;gzip=1;zstd=1"},
        /* What was used stays so. */
        {AE ";br=0;gzip=1", OFFERS("gzip, br"), 200, CODED("br"), AE ";br=1;gzip=1"},
        {AE ";br=1", OFFERS("gzip, br"), 200, "", AE ";br=1;gzip=0"},
        {AE ";br=0;zstd=0", OFFERS("identity"), 200, "", AE ";br=0;zstd=0"},
        {AE ";br=0,cookie", OFFERS("gzip"), 200, CODED("gzip"), AE ";br=0;gzip=1,cookie"},
        /* The record may be of another set of names, and the response not vary by codings. */
        {"cookie", OFFERS("gzip, br"), 200, CODED("br"), "cookie"},
    };

    for (size_t i = 0; i < LENGTH(rows); i++) {
        struct http_vary vary, known;

        ck_assert_int_eq(http_vary_parse(&vary, span_str(rows[i].known)), HTTP_VARY_FIELDS);
        check_text(&vary, rows[i].known, "read");
        /* As a response has it: what is known comes from the record. */
        known = vary;
        vary.codings = (struct http_coding_choice){0};
        http_vary_recall(&vary, span_str(rows[i].known));
        ck_assert_uint_eq(vary.codings.used, known.codings.used);
        ck_assert_uint_eq(vary.codings.unused, known.codings.unused);
        http_vary_observe(&vary, span_str(rows[i].request), rows[i].status,
                          span_str(rows[i].response));
        check_text(&vary, rows[i].text, rows[i].request);
    }
}
END_TEST

START_TEST(other_texts_are_no_record)
{
    static const char *const texts[] = {
        AE ";",           AE ";br",      AE ";br=",          AE ";br=2",      AE ";=1",
        AE ";foo=1",      AE ";br=0;",   AE ";br=0;br=0",    AE ";br=0;br=1", "foo;br=1",
        AE ";identity=1", AE ";br=1;=0", AE ";br=1; gzip=0",
    };
    struct http_vary vary;

    for (size_t i = 0; i < LENGTH(texts); i++) {
        ck_assert_msg(http_vary_parse(&vary, span_str(texts[i])) == HTTP_VARY_ANY, "%s", texts[i]);
        ck_assert_uint_eq(vary.count, 0);
        ck_assert_uint_eq(vary.codings.used | vary.codings.unused, 0);
    }
    http_vary_parse(&vary, span_str(AE));
    http_vary_recall(&vary, span_str("cookie"));
    http_vary_recall(&vary, span_str(AE ";br=7"));
    check_text(&vary, AE, "recalled");
}
END_TEST

START_TEST(keys_lack_unused_codings)
{
    static const struct {
        const char *names, *lines, *key;
    } rows[] = {
        {AE ";br=0;gzip=1", OFFERS("gzip"), AE ":gzip\n"},
        {AE ";br=0;gzip=1", OFFERS("gzip, br"), AE ":gzip\n"},
        {AE ";br=0;gzip=1", OFFERS("br"), AE ":\n"},
        {AE ";br=0;gzip=1", OFFERS("gzip, deflate, br"), AE ":deflate,gzip\n"},
        {AE ";br=0;deflate=0;gzip=1", OFFERS("gzip, deflate, br, foo"), AE ":foo,gzip\n"},
        {AE ";gzip=0", OFFERS("x-gzip"), AE ":\n"},
        {AE ";gzip=0", OFFERS("identity"), AE ":\n"},
        {AE ";gzip=0", "", AE "\n"},
        {AE ";gzip=0", OFFERS("gzip, identity;q=0"), AE ":identity;q=0\n"},
        {AE ";gzip=0", OFFERS("gzip, *;q=0"), AE ":identity;q=0\n"},
        /* A request that accepts all may get one that no other has offered. */
        {AE ";gzip=0", OFFERS("*"), AE ":*\n"},
        {AE ";gzip=0", OFFERS("gzip, *"), AE ":*\n"},
        {AE ";gzip=0", OFFERS("*, gzip;q=0"), AE ":*,gzip;q=0\n"},
        {AE ";gzip=0", OFFERS("gzip;q=2"), AE ":gzip;q=2\n"},
        {AE ";gzip=0,foo", OFFERS("gzip") "Foo: gzip\r\n", AE ":\nfoo:gzip\n"},
    };

    for (size_t i = 0; i < LENGTH(rows); i++) {
        struct buf key;

        ck_assert_msg(make_key(rows[i].names, rows[i].lines, &key), "%s", rows[i].lines);
        ck_assert_msg(strcmp(buf_str(&key), rows[i].key) == 0, "%s: %s", rows[i].lines,
                      buf_str(&key));
        buf_free(&key);
    }
}
END_TEST

/* What clients accept of these, by RFC 9110 section 12.5.3. */
enum { IDENTITY = 1, GZIP = 2, BR = 4 };

static const struct {
    const char *lines;
    unsigned accepts;
} clients[] = {
    {"", IDENTITY | GZIP | BR},
    {OFFERS(""), IDENTITY},
    {OFFERS("identity"), IDENTITY},
    {OFFERS("gzip"), IDENTITY | GZIP},
    {OFFERS("br"), IDENTITY | BR},
    {OFFERS("gzip, br"), IDENTITY | GZIP | BR},
    {OFFERS("gzip, deflate, br, zstd"), IDENTITY | GZIP | BR},
    {OFFERS("br;q=0.5, gzip;q=0.1"), IDENTITY | GZIP | BR},
    {OFFERS("gzip, br;q=0"), IDENTITY | GZIP},
    {OFFERS("gzip;q=0, br;q=0"), IDENTITY},
    {OFFERS("gzip, identity;q=0"), GZIP},
    {OFFERS("br, identity;q=0"), BR},
    {OFFERS("gzip, *;q=0"), GZIP},
    {OFFERS("*"), IDENTITY | GZIP | BR},
    {OFFERS("*, gzip;q=0"), IDENTITY | BR},
    {OFFERS("*, br;q=0"), IDENTITY | GZIP},
    {OFFERS("*, identity;q=0"), GZIP | BR},
    {OFFERS("*;q=0, identity"), IDENTITY},
    {OFFERS("x-gzip"), IDENTITY | GZIP},
};

static const struct {
    const char *lines;
    unsigned coding;
} answers[] = {{"", IDENTITY}, {CODED("gzip"), GZIP}, {CODED("br"), BR}};

static const char *const choices[] = {
    AE,
    AE ";br=0",
    AE ";br=1",
    AE ";gzip=0",
    AE ";gzip=1",
    AE ";br=0;gzip=0",
    AE ";br=0;gzip=1",
    AE ";br=1;gzip=0",
    AE ";br=1;gzip=1",
    AE ";br=0;deflate=0;gzip=0;zstd=0",
};

/* Would the client, whose request is made with this knowledge, find the response by its key? */
static bool
finds(size_t client, const char *choice, const struct buf *stored)
{
    struct buf key;
    bool found;

    ck_assert(make_key(choice, clients[client].lines, &key));
    found = span_equal(buf_span(&key), buf_span(stored));
    buf_free(&key);
    return found;
}

/* A response is stored for one client. Another one looks it up with any knowledge, older or newer.
 */
static void
check_readers(size_t writer, size_t answer, const char *choice)
{
    struct http_vary vary;
    struct buf key;

    http_vary_parse(&vary, span_str(choice));
    http_vary_observe(&vary, span_str(clients[writer].lines), 200, span_str(answers[answer].lines));
    buf_init(&key, 65536);
    ck_assert(http_variant_key(&vary, span_str(clients[writer].lines), &key));
    for (size_t i = 0; i < LENGTH(clients); i++)
        for (size_t at = 0; at < LENGTH(choices); at++)
            ck_assert_msg((clients[i].accepts & answers[answer].coding) ||
                              !finds(i, choices[at], &key),
                          "%s gets for %s: %s", clients[i].lines, clients[writer].lines,
                          answers[answer].lines);
    buf_free(&key);
}

START_TEST(no_client_gets_what_it_does_not_accept)
{
    for (size_t writer = 0; writer < LENGTH(clients); writer++)
        for (size_t answer = 0; answer < LENGTH(answers); answer++)
            for (size_t at = 0; at < LENGTH(choices); at++)
                if (clients[writer].accepts & answers[answer].coding)
                    check_readers(writer, answer, choices[at]);
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
    tcase_add_test(tests, responses_show_which_codings_are_used);
    tcase_add_test(tests, other_texts_are_no_record);
    tcase_add_test(tests, keys_lack_unused_codings);
    tcase_add_test(tests, no_client_gets_what_it_does_not_accept);
    suite_add_tcase(suite, tests);
    return suite;
}
