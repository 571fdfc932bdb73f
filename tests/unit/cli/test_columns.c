/* Headings and lines from one list of columns. */
#define UNIT_STARTS_NO_THREAD

#include "cli/columns.h"

#include <stdlib.h>
#include <string.h>

#include "tests/unit/unit.h"

static char *text;
static size_t len;
static FILE *out;

static void
set_up(void)
{
    out = open_memstream(&text, &len);
    ck_assert_ptr_nonnull(out);
}

static void
expect(const char *wanted)
{
    fclose(out);
    ck_assert_str_eq(text, wanted);
    free(text);
}

START_TEST(a_heading_and_lines_stand_below_each_other)
{
    static const struct column list[] = {
        {"policy", -8, false}, {"hits", 6, false}, {"%", 8, false}};
    struct columns columns = {.out = out, .list = list, .count = 3};

    columns_head(&columns);
    columns_cell(&columns, "%s", "lru");
    columns_cell(&columns, "%d", 42);
    columns_cell(&columns, "%.2f %%", 12.345);
    columns_end(&columns);
    columns_cell(&columns, "%s", "w-tinylfu");
    columns_cell(&columns, "%d", 1234567);
    columns_end(&columns);
    expect("policy     hits        %\n"
           "lru          42  12.35 %\n"
           "w-tinylfu 1234567\n");
}
END_TEST

START_TEST(what_is_hidden_has_no_width)
{
    static const struct column list[] = {{"a", -3, false}, {"b", 9, true}, {"c", 3, false}};
    struct columns columns = {.out = out, .list = list, .count = 3};

    columns_head(&columns);
    columns_cell(&columns, "1");
    columns_cell(&columns, "2");
    columns_cell(&columns, "3");
    columns_end(&columns);
    expect("a     c\n1     3\n");
}
END_TEST

START_TEST(pairs_of_a_label_and_a_value)
{
    static const struct column list[] = {{NULL, -6, false}, {NULL, 4, false}};
    struct columns columns = {.out = out, .list = list, .count = 2};

    columns_pair(&columns, "hits", "%u", 7u);
    columns_pair(&columns, "misses", "%u", 12345u);
    expect("hits      7\nmisses 12345\n");
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("cli/columns");
    TCase *tc = tcase_create("columns");

    tcase_add_checked_fixture(tc, set_up, NULL);
    tcase_add_test(tc, a_heading_and_lines_stand_below_each_other);
    tcase_add_test(tc, what_is_hidden_has_no_width);
    tcase_add_test(tc, pairs_of_a_label_and_a_value);
    suite_add_tcase(suite, tc);
    return suite;
}
