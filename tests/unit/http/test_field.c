/* Field lines, and lists in them. */
#include "http/field.h"

#include "tests/unit/unit.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

START_TEST(lines_end_with_lf_with_or_without_cr)
{
    struct span rest = span_str("A: 1\r\nB: 2\n\r\nC"), line;
    static const char *const lines[] = {"A: 1", "B: 2", "", "C"};

    for (size_t i = 0; i < LENGTH(lines); i++) {
        ck_assert(http_next_line(&rest, &line));
        ck_assert_msg(span_equal(line, span_str(lines[i])), "line %zu", i);
    }
    ck_assert(!http_next_line(&rest, &line));
    rest = span_of(NULL, 0);
    ck_assert(!http_next_line(&rest, &line));
}
END_TEST

START_TEST(fields_have_a_token_for_a_name)
{
    static const struct {
        const char *line, *name, *value; /* no name: no field */
    } rows[] = {
        /* RFC 9110 section 5.1, 5.5, 5.6.2 */
        {"A: b", "A", "b"},
        {"A:b", "A", "b"},
        {"A: \t b c \t", "A", "b c"},
        {"A:", "A", ""},
        {"A: b:c", "A", "b:c"},
        {"!#$%&'*+-.^_`|~0aZ: b", "!#$%&'*+-.^_`|~0aZ", "b"},
        {"A", NULL, NULL},
        {"", NULL, NULL},
        {": b", NULL, NULL},
        {"A : b", NULL, NULL},
        {" A: b", NULL, NULL},
        {"A\xe4: b", NULL, NULL},
        {"A(: b", NULL, NULL},
    };

    for (size_t i = 0; i < LENGTH(rows); i++) {
        struct span name, value;
        bool split = http_split_field(span_str(rows[i].line), &name, &value);

        ck_assert_msg(split == (rows[i].name != NULL), "\"%s\"", rows[i].line);
        if (!split)
            continue;
        ck_assert_msg(span_equal(name, span_str(rows[i].name)), "\"%s\"", rows[i].line);
        ck_assert_msg(span_equal(value, span_str(rows[i].value)), "\"%s\"", rows[i].line);
    }
}
END_TEST

START_TEST(names_are_compared_without_case)
{
    ck_assert(http_name_is(span_str("cache-CONTROL"), "Cache-Control"));
    ck_assert(!http_name_is(span_str("Cache-Contro"), "Cache-Control"));
    ck_assert(!http_name_is(span_str("Cache-Control2"), "Cache-Control"));
    ck_assert(http_same_name(span_of(NULL, 0), span_str("")));
}
END_TEST

START_TEST(names_in_an_array)
{
    const struct span names[] = {span_str("Vary"), span_str("ETag")};

    ck_assert(http_name_is_among(span_str("etag"), names, 2));
    ck_assert(!http_name_is_among(span_str("etag"), names, 1));
    ck_assert(!http_name_is_among(span_str("Vary: "), names, 2));
    ck_assert(!http_name_is_among(span_of(NULL, 0), names, 0));
}
END_TEST

START_TEST(the_first_value_of_a_field)
{
    const struct span lines = span_str("Ab: 1\r\na:  2 \r\nA: 3\r\nEmpty:\r\n");

    ck_assert(span_equal(http_first_value(lines, "A"), span_str("2")));
    ck_assert(span_equal(http_first_value(lines, "AB"), span_str("1")));
    ck_assert_ptr_nonnull(http_first_value(lines, "Empty").ptr);
    ck_assert_uint_eq(http_first_value(lines, "Empty").len, 0);
    ck_assert_ptr_null(http_first_value(lines, "B").ptr);
    ck_assert_ptr_null(http_first_value(span_of(NULL, 0), "A").ptr);
}
END_TEST

START_TEST(values_have_no_control_characters)
{
    /* RFC 9110 section 5.5 */
    ck_assert(http_is_value(span_str("a b\tc\xff")));
    ck_assert(http_is_value(span_of(NULL, 0)));
    ck_assert(!http_is_value(span_of("a\0b", 3)));
    ck_assert(!http_is_value(span_str("a\rb")));
    ck_assert(!http_is_value(span_str("a\x7f")));
}
END_TEST

START_TEST(members_of_lists)
{
    static const struct {
        const char *list;
        const char *members[4];
    } rows[] = {
        /* RFC 9110 section 5.6.1.2 */
        {"a", {"a"}},
        {"a,b", {"a", "b"}},
        {" a \t, b c ,", {"a", "b c"}},
        {",, ,a,,", {"a"}},
        {"", {NULL}},
        {" , ", {NULL}},
        /* RFC 9110 section 5.6.4 */
        {"a=\"b, c\", d", {"a=\"b, c\"", "d"}},
        {"a=\"b\\\", c\", d", {"a=\"b\\\", c\"", "d"}},
        {"a=\"b, c", {"a=\"b, c"}},
        {"a=\"b\\", {"a=\"b\\"}},
        {"a=\\\"b, c", {"a=\\\"b, c"}},
    };

    for (size_t i = 0; i < LENGTH(rows); i++) {
        struct span list = span_str(rows[i].list), member;
        size_t n = 0;

        for (; http_next_member(&list, &member); n++) {
            ck_assert_msg(n < 4 && rows[i].members[n], "\"%s\": too many", rows[i].list);
            ck_assert_msg(span_equal(member, span_str(rows[i].members[n])), "\"%s\": member %zu",
                          rows[i].list, n);
        }
        ck_assert_msg(n == 4 || !rows[i].members[n], "\"%s\": too few", rows[i].list);
    }
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("http/field");
    TCase *tests = tcase_create("field");

    tcase_add_test(tests, lines_end_with_lf_with_or_without_cr);
    tcase_add_test(tests, fields_have_a_token_for_a_name);
    tcase_add_test(tests, names_are_compared_without_case);
    tcase_add_test(tests, names_in_an_array);
    tcase_add_test(tests, the_first_value_of_a_field);
    tcase_add_test(tests, values_have_no_control_characters);
    tcase_add_test(tests, members_of_lists);
    suite_add_tcase(suite, tests);
    return suite;
}
