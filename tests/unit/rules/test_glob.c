/* Patterns with stars. */
#include "rules/glob.h"

#include "tests/unit/unit.h"

START_TEST(matching)
{
    static const struct {
        const char *pattern, *text;
        bool matches;
    } rows[] = {
        {"", "", true},
        {"", "a", false},
        {"*", "", true},
        {"*", "/a/b", true},
        {"/a", "/a", true},
        {"/a", "/ab", false},
        {"/a*", "/a", true},
        {"/a*", "/ab/c", true},
        {"/a*", "/b", false},
        {"*.css", "/x.css", true},
        {"*.css", "/x.css.x", false},
        {"*.css", "/.css.css", true},
        {"/a/*/c", "/a/b/c", true},
        {"/a/*/c", "/a//c", true},
        {"/a/*/c", "/a/c", false},
        {"*a*b*", "xxaxxbxx", true},
        {"*a*b*", "xxbxxaxx", false},
        {"**", "a", true},
        {"a**b", "ab", true},
        {"*aab", "aaaab", true},
        {"/A", "/a", false},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        ck_assert_msg(glob_matches(span_str(rows[i].pattern), span_str(rows[i].text)) ==
                          rows[i].matches,
                      "%s %s", rows[i].pattern, rows[i].text);
    ck_assert(glob_matches_any_case(span_str("*Mobile*"), span_str("a mobile b")));
    ck_assert(!glob_matches_any_case(span_str("*Mobile"), span_str("a mobile b")));
}
END_TEST

START_TEST(literals)
{
    ck_assert(span_equal(glob_prefix(span_str("/a/*.css")), span_str("/a/")));
    ck_assert(span_equal(glob_suffix(span_str("/a/*.css")), span_str(".css")));
    ck_assert(span_equal(glob_prefix(span_str("/a")), span_str("/a")));
    ck_assert(span_equal(glob_suffix(span_str("/a")), span_str("/a")));
    ck_assert_uint_eq(glob_prefix(span_str("*")).len + glob_suffix(span_str("*")).len, 0);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("rules/glob");
    TCase *tests = tcase_create("glob");

    tcase_add_test(tests, matching);
    tcase_add_test(tests, literals);
    suite_add_tcase(suite, tests);
    return suite;
}
