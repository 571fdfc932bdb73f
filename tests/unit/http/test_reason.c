/* The words of the reasons. */
#include "http/field.h"
#include "http/reason.h"
#include "tests/unit/unit.h"

START_TEST(each_reason_has_a_token_of_its_own)
{
    ck_assert_str_eq(http_reason_word(HTTP_REASON_NONE), "");
    for (unsigned i = 1; i < HTTP_REASON_COUNT; i++) {
        const char *word = http_reason_word((enum http_reason)i);

        ck_assert_msg(word && http_is_token(span_str(word)), "%u", i);
        ck_assert_msg(http_reason_sentence((enum http_reason)i), "%s", word);
        ck_assert_msg(strlen(http_reason_sentence((enum http_reason)i)) > 10, "%s", word);
        for (unsigned k = 1; k < i; k++)
            ck_assert_str_ne(word, http_reason_word((enum http_reason)k));
    }
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("http/reason");
    TCase *tests = tcase_create("reason");

    tcase_add_test(tests, each_reason_has_a_token_of_its_own);
    suite_add_tcase(suite, tests);
    return suite;
}
