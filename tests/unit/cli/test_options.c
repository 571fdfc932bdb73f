/* Rows of options: what a command line makes of their fields, and how --help prints them. */
#define UNIT_STARTS_NO_THREAD

#include "cli/options.h"

#include <fcntl.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/unit.h"

enum fruit { FRUIT_NONE, FRUIT_ANY, FRUIT_APPLE, FRUIT_PEAR };

struct one {
    bool flag;
    const char *text;
    uint64_t number;
    enum fruit fruit, maybe;
    unsigned value;
};

struct two {
    uint64_t bytes;
    int64_t us;
    double share, decimal;
};

#define ONE(field) offsetof(struct one, field)
#define TWO(field) offsetof(struct two, field)

static const struct option_row first_rows[] = {
    {"flag", 'f', NULL, option_flag, ONE(flag), 0, 0, NULL, "a flag"},
    {"text", 't', "TEXT", option_text, ONE(text), 2, 4, NULL, "a text (default: none at all)"},
    {"number", 'n', "N", option_uint, ONE(number), 1, 9, "5",
     "a number with a help text that is too long for one line of the page"},
    {"fruit", 0, "apple|pear", option_choice, ONE(fruit), FRUIT_APPLE, 0, "pear", "a fruit"},
    {"maybe", 'm', "[=apple|pear]", option_choice, ONE(maybe), FRUIT_APPLE, 0, NULL, "perhaps one"},
    {"json", 0, NULL, option_value, ONE(value), 7, 0, NULL, "a value"},
    {0},
};

static const struct option_row second_rows[] = {
    {"bytes", 0, "SIZE", option_bytes, TWO(bytes), 0, 0, NULL, "bytes"},
    {"timeout", 0, "A-LONG-WORD", option_duration, TWO(us), 0, 0, "2s", "a time"},
    {"share", 0, "S", option_share, TWO(share), 0, 0, NULL, "a share"},
    {"decimal", 0, "X", option_number, TWO(decimal), 0, 10, NULL, "a number"},
    {0},
};

static const struct option_group first = {.rows = first_rows};
static const struct option_group second = {
    .heading = "Second", .rows = second_rows, .after = "After."};
static const struct option_group *const groups[] = {&first, &second, NULL};

static struct one one;
static struct two two;

/* Parses words that are separated by spaces, with standard error silent. */
static int
parse(const char *line)
{
    static char copy[256];
    char *argv[16] = {(char *)(uintptr_t) "test"}, *rest = copy, *word;
    void *const into[] = {&one, &two};
    int argc = 1, before = dup(STDERR_FILENO), nowhere = open("/dev/null", O_WRONLY), status;

    one = (struct one){.flag = false};
    two = (struct two){.bytes = 0};
    snprintf(copy, sizeof(copy), "%s", line);
    while ((word = strsep(&rest, " ")) && *word)
        argv[argc++] = word;
    dup2(nowhere, STDERR_FILENO);
    status = options_read(groups, into, argc, argv);
    dup2(before, STDERR_FILENO);
    close(before);
    close(nowhere);
    return status == EX_OK ? argc - optind : -status;
}

START_TEST(defaults_come_from_the_rows)
{
    ck_assert_int_eq(parse(""), 0);
    ck_assert_uint_eq(one.number, 5);
    ck_assert_int_eq(one.fruit, FRUIT_PEAR);
    ck_assert_int_eq(one.maybe, FRUIT_NONE);
    ck_assert_ptr_null(one.text);
    ck_assert_int_eq(two.us, 2000000);
}
END_TEST

START_TEST(values_get_into_their_fields)
{
    ck_assert_int_eq(parse("word -f --text=abc -n9 --fruit apple --json other --bytes 1K"), 2);
    ck_assert(one.flag);
    ck_assert_str_eq(one.text, "abc");
    ck_assert_uint_eq(one.number, 9);
    ck_assert_int_eq(one.fruit, FRUIT_APPLE);
    ck_assert_uint_eq(one.value, 7);
    ck_assert_uint_eq(two.bytes, 1024);
    ck_assert_int_eq(parse("--timeout 500ms --share 25% --decimal .5"), 0);
    ck_assert_int_eq(two.us, 500000);
    ck_assert_double_eq(two.share, 0.25);
    ck_assert_double_eq(two.decimal, 0.5);
}
END_TEST

START_TEST(an_optional_value_may_be_missing)
{
    ck_assert_int_eq(parse("--maybe"), 0);
    ck_assert_int_eq(one.maybe, FRUIT_ANY);
    ck_assert_int_eq(parse("-mpear"), 0);
    ck_assert_int_eq(one.maybe, FRUIT_PEAR);
    ck_assert_int_eq(parse("--maybe apple"), 1);
    ck_assert_int_eq(one.maybe, FRUIT_ANY);
}
END_TEST

START_TEST(names_are_exact)
{
    static const char *const wrong[] = {"--num 7",     "--num=7", "--fl",     "--f",
                                        "--json=7",    "--jso",   "--mayb",   "--maybe=peach",
                                        "--numbers 7", "--",      "word --fl"};

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        ck_assert_msg(parse(wrong[i]) == (strcmp(wrong[i], "--") == 0 ? 0 : -EX_USAGE), "%s",
                      wrong[i]);
    ck_assert_int_eq(parse("--text --fl --number 7 --flag"), 0); /* a value is no name */
    ck_assert_str_eq(one.text, "--fl");
    ck_assert_uint_eq(one.number, 7);
    ck_assert_int_eq(parse("-- --flag"), 1);
    ck_assert(!one.flag);
}
END_TEST

START_TEST(help_is_an_option_of_all)
{
    ck_assert_int_eq(parse("--help"), -OPTIONS_HELP);
    ck_assert_int_eq(parse("-fh"), -OPTIONS_HELP);
}
END_TEST

START_TEST(what_is_wrong_is_refused)
{
    static const char *const wrong[] = {
        "--flug",         "-x",          "--flag=yes",   "--number",     "-n",
        "--number 0",     "--number 10", "--number x",   "--text a",     "--text abcde",
        "--fruit cherry", "--maybe=fig", "--bytes big",  "--timeout 0",  "--timeout soon",
        "--share 0",      "--share 2",   "--decimal 11", "--decimal -1", "--decimal 1x",
    };

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        ck_assert_msg(parse(wrong[i]) == -EX_USAGE, "%s", wrong[i]);
}
END_TEST

START_TEST(help_is_printed_from_the_rows)
{
    char *text;
    size_t len;
    FILE *out = open_memstream(&text, &len);

    ck_assert_ptr_nonnull(out);
    options_print(out, groups);
    ck_assert_int_eq(fclose(out), 0);
    ck_assert_str_eq(text,
                     "  -f, --flag             a flag\n"
                     "  -t, --text TEXT        a text (default: none at all)\n"
                     "  -n, --number N         a number with a help text that is too long for one\n"
                     "                         line of the page (default: 5)\n"
                     "      --fruit apple|pear\n"
                     "                         a fruit (default: pear)\n"
                     "  -m, --maybe[=apple|pear]\n"
                     "                         perhaps one\n"
                     "      --json             a value\n"
                     "\nSecond:\n"
                     "      --bytes SIZE       bytes\n"
                     "      --timeout A-LONG-WORD\n"
                     "                         a time (default: 2s)\n"
                     "      --share S          a share\n"
                     "      --decimal X        a number\n"
                     "  After.\n"
                     "\n  -h, --help             print this text and exit\n");
    free(text);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("cli/options");
    TCase *tcase = tcase_create("options");

    tcase_add_test(tcase, defaults_come_from_the_rows);
    tcase_add_test(tcase, values_get_into_their_fields);
    tcase_add_test(tcase, an_optional_value_may_be_missing);
    tcase_add_test(tcase, names_are_exact);
    tcase_add_test(tcase, help_is_an_option_of_all);
    tcase_add_test(tcase, what_is_wrong_is_refused);
    tcase_add_test(tcase, help_is_printed_from_the_rows);
    suite_add_tcase(suite, tcase);
    return suite;
}
