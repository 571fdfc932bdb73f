#define UNIT_STARTS_NO_THREAD

#include "base/word_list.h"

#include "tests/unit/unit.h"

START_TEST(words_are_separated_by_spaces)
{
    struct span tags = span_str("  one two  three "), tag;

    ck_assert_uint_eq(words_count(tags), 3);
    ck_assert(words_have(tags, span_str("two")));
    ck_assert(!words_have(tags, span_str("tw")));
    ck_assert(!words_have(tags, span_str("one two")));
    ck_assert(!words_have(tags, span_str("")));
    ck_assert(words_next(&tags, &tag));
    ck_assert(span_equal(tag, span_str("one")));
    ck_assert_uint_eq(words_count(span_str("   ")), 0);
    ck_assert_uint_eq(words_count(span_of(NULL, 0)), 0);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("base/word_list");
    TCase *tc = tcase_create("words");

    tcase_add_test(tc, words_are_separated_by_spaces);
    suite_add_tcase(suite, tc);
    return suite;
}
