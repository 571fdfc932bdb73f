/* Literals that texts begin or end with, found by a search, against a comparison with each. */
#include "rules/affix.h"

#include <stdlib.h>

#include "tests/unit/unit.h"

#define LITERALS 200u
#define WORDS ((LITERALS + 63) / 64)

static bool
has(bool at_end, struct span text, struct span literal)
{
    const char *at = text.ptr + (at_end ? text.len - literal.len : 0);

    return text.len >= literal.len && memcmp(at, literal.ptr, literal.len) == 0;
}

/* A text over few letters, so that literals contain each other. */
static struct span
draw(char *bytes, unsigned *seed)
{
    size_t len = (size_t)rand_r(seed) % 6;

    for (size_t i = 0; i < len; i++)
        bytes[i] = (char)('a' + rand_r(seed) % 3);
    return span_of(bytes, len);
}

static void
check(bool at_end, unsigned seed)
{
    struct affix_table table = {.at_end = at_end};
    char bytes[LITERALS][8], text[8];
    struct span literals[LITERALS];

    for (uint32_t i = 0; i < LITERALS; i++) {
        literals[i] = draw(bytes[i], &seed);
        ck_assert(affix_add(&table, literals[i], i));
    }
    affix_sort(&table);
    for (int turn = 0; turn < 500; turn++) {
        struct span asked = draw(text, &seed);
        uint64_t users[WORDS] = {0};

        affix_find(&table, asked, users);
        for (size_t i = 0; i < LITERALS; i++)
            ck_assert_int_eq(users[i / 64] >> (i % 64) & 1, has(at_end, asked, literals[i]));
    }
    affix_free(&table);
}

START_TEST(finds_what_a_comparison_finds)
{
    for (unsigned seed = 1; seed <= 20; seed++) {
        check(false, seed);
        check(true, seed);
    }
}
END_TEST

START_TEST(none)
{
    struct affix_table table = {.at_end = false};
    uint64_t users = 0;

    affix_sort(&table);
    affix_find(&table, span_str("/a"), &users);
    ck_assert_uint_eq(users, 0);
    affix_free(&table);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("rules/affix");
    TCase *tests = tcase_create("affix");

    tcase_add_test(tests, finds_what_a_comparison_finds);
    tcase_add_test(tests, none);
    suite_add_tcase(suite, tests);
    return suite;
}
