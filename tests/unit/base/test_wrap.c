#define UNIT_STARTS_NO_THREAD

#include "base/wrap.h"

#include <stdlib.h>
#include <string.h>

#include "tests/unit/unit.h"

static void
expect(const char *text, int at, int indent, const char *wanted)
{
    char *got;
    size_t len;
    FILE *out = open_memstream(&got, &len);

    ck_assert_ptr_nonnull(out);
    wrap_print(out, text, at, indent);
    ck_assert_int_eq(fclose(out), 0);
    ck_assert_str_eq(got, wanted);
    free(got);
}

START_TEST(text_begins_at_its_column)
{
    expect("one two", 0, 2, "  one two\n");
    expect("one two", 5, 7, "  one two\n");
    expect("one  two ", 7, 7, "\n       one two\n");
    expect("", 0, 3, "   \n");
}
END_TEST

START_TEST(lines_have_79_columns)
{
    char word[101], wanted[256];

    memset(word, 'x', 100);
    word[100] = '\0';
    snprintf(wanted, sizeof(wanted), "  %.70s 12345\n  6\n", word);
    word[70] = '\0';
    snprintf(word + 70, 31, " 123456");
    word[76] = ' ';
    word[77] = '6';
    word[78] = '\0';
    expect(word, 0, 2, wanted);
}
END_TEST

START_TEST(a_long_word_stays_whole)
{
    char text[128], wanted[256];

    memset(text, 'x', 100);
    strcpy(text + 100, " b");
    snprintf(wanted, sizeof(wanted), "    %.100s\n    b\n", text);
    expect(text, 0, 4, wanted);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("base/wrap");
    TCase *tcase = tcase_create("wrap");

    tcase_add_test(tcase, text_begins_at_its_column);
    tcase_add_test(tcase, lines_have_79_columns);
    tcase_add_test(tcase, a_long_word_stays_whole);
    suite_add_tcase(suite, tcase);
    return suite;
}
