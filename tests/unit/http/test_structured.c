/* Dictionaries of Structured Fields: RFC 8941 section 4.2. */
#include "http/structured.h"

#include "tests/unit/unit.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

/* How many members a value has; -1: it is invalid. */
static int
count(struct span value)
{
    struct http_dictionary_member member;
    int members = 0;

    for (;; members++) {
        switch (http_dictionary_next(&value, &member)) {
        case HTTP_DICTIONARY_MEMBER:
            break;
        case HTTP_DICTIONARY_END:
            return members;
        case HTTP_DICTIONARY_INVALID:
            return -1;
        }
    }
}

START_TEST(grammar)
{
    static const struct {
        const char *value;
        int members;
    } rows[] = {
        {"", 0},
        {"   ", 0},
        {"a", 1},
        {"  a  ", 1},
        {"a=1, b=2", 2},
        {"a=1\t,\tb=2", 2},
        {"a,b,c", 3},
        {"*a_-.*9=x", 1},
        {"a=?0, b=?1", 2},
        {"a=\"x\\\"y\\\\\"", 1},
        {"a=tok:en/x, b=*", 2},
        {"a=:aGVsbG8=:", 1},
        {"a=::", 1},
        {"a=(1 2 \"x\";p=1 );q", 1},
        {"a=()", 1},
        {"a;b;c=1;  d=?0, e", 2},
        {"a=-999999999999999", 1},
        {"a=123456789012.123", 1},
        /* a comma ends no dictionary */
        {"a,", -1},
        {"a, ", -1},
        {",a", -1},
        {"a,,b", -1},
        {"\ta", -1},
        {"a b", -1},
        /* keys are in lower case */
        {"A", -1},
        {"1a", -1},
        {"a=1, &", -1},
        /* values */
        {"a=", -1},
        {"a= 1", -1},
        {"a =1", -1},
        {"a=1234567890123456", -1},
        {"a=1234567890123.1", -1},
        {"a=1.", -1},
        {"a=1.1234", -1},
        {"a=-", -1},
        {"a=--1", -1},
        {"a=+1", -1},
        {"a=?2", -1},
        {"a=?", -1},
        {"a=\"x", -1},
        {"a=\"x\\", -1},
        {"a=\"\\x\"", -1},
        {"a=\"\xc3\xbc\"", -1},
        {"a=\"\t\"", -1},
        {"a=:a", -1},
        {"a=:a b:", -1},
        {"a=(1", -1},
        {"a=(1\"x\")", -1},
        {"a=(1,2)", -1},
        {"a=((1))", -1},
        {"a=&", -1},
        {"a;", -1},
        {"a;B", -1},
        {"a;b=", -1},
        {"a ;b", -1},
    };

    for (size_t i = 0; i < LENGTH(rows); i++)
        ck_assert_msg(count(span_str(rows[i].value)) == rows[i].members, "%s", rows[i].value);
    ck_assert_int_eq(count(span_of("a\0", 2)), -1);
    ck_assert_int_eq(count(span_of("a=:\0:", 5)), -1);
}
END_TEST

START_TEST(members)
{
    struct span value = span_str("n=-15;x, d=1.5, s=\"a\\\"b\", t=tok, y=:YQ==:, f=?0, l=(1), b;c");
    static const struct {
        const char *key;
        enum http_item_type type;
        int64_t integer;
        const char *text;
    } rows[] = {
        {"n", HTTP_ITEM_INTEGER, -15, ""},    {"d", HTTP_ITEM_DECIMAL, 0, ""},
        {"s", HTTP_ITEM_STRING, 0, "a\\\"b"}, {"t", HTTP_ITEM_TOKEN, 0, ""},
        {"y", HTTP_ITEM_BYTES, 0, ""},        {"f", HTTP_ITEM_BOOLEAN, 0, ""},
        {"l", HTTP_ITEM_INNER_LIST, 0, ""},   {"b", HTTP_ITEM_BOOLEAN, 1, ""},
    };

    for (size_t i = 0; i < LENGTH(rows); i++) {
        struct http_dictionary_member member;

        ck_assert_int_eq(http_dictionary_next(&value, &member), HTTP_DICTIONARY_MEMBER);
        ck_assert(span_equal(member.key, span_str(rows[i].key)));
        ck_assert_int_eq(member.type, rows[i].type);
        if (member.type == HTTP_ITEM_INTEGER || member.type == HTTP_ITEM_BOOLEAN)
            ck_assert_int_eq(member.integer, rows[i].integer);
        ck_assert(span_equal(member.text, span_str(rows[i].text)));
    }
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("http/structured");
    TCase *tests = tcase_create("structured");

    tcase_add_test(tests, grammar);
    tcase_add_test(tests, members);
    suite_add_tcase(suite, tests);
    return suite;
}
