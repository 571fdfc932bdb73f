#define UNIT_STARTS_NO_THREAD

#include "base/nearest.h"

#include <string.h>

#include "tests/unit/unit.h"

START_TEST(distance_between_words)
{
    static const struct {
        const char *a, *b;
        unsigned distance;
    } cases[] = {
        {"", "", 0},      {"lru", "lru", 0},        {"LRU", "lru", 0},        {"", "lru", 3},
        {"lr", "lru", 1}, {"lruu", "lru", 1},       {"lsu", "lru", 1},        {"rlu", "lru", 1},
        {"2q", "q2", 1},  {"kitten", "sitting", 3}, {"s3fifo", "s3-fifo", 1}, {"abc", "xyz", 3},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        ck_assert_uint_eq(nearest_distance(cases[i].a, cases[i].b), cases[i].distance);
        ck_assert_uint_eq(nearest_distance(cases[i].b, cases[i].a), cases[i].distance);
    }
}
END_TEST

START_TEST(long_words)
{
    char word[80];

    memset(word, 'a', sizeof(word));
    word[63] = '\0';
    ck_assert_uint_eq(nearest_distance(word, "b"), 63);
    ck_assert_uint_eq(nearest_distance(word, word), 0);
    word[63] = 'a';
    word[79] = '\0';
    ck_assert_uint_eq(nearest_distance(word, word), 64); /* not looked at */
}
END_TEST

START_TEST(the_first_of_the_nearest_is_kept)
{
    struct nearest nearest = NEAREST_TO("descirbe");

    nearest_offer(&nearest, "convert");
    ck_assert_str_eq(nearest.best, "convert");
    nearest_offer(&nearest, "describe");
    nearest_offer(&nearest, "descirby");
    nearest_offer(&nearest, "generate");
    ck_assert_str_eq(nearest.best, "describe");
    ck_assert_uint_eq(nearest.distance, 1);
}
END_TEST

START_TEST(of_equally_near_ones_that_of_the_letters_written)
{
    struct nearest nearest = NEAREST_TO("MBB");

    nearest_offer(&nearest, "MiB");
    nearest_offer(&nearest, "MB");
    nearest_offer(&nearest, "GB");
    ck_assert_str_eq(nearest.best, "MB");
}
END_TEST

START_TEST(what_has_nothing_in_common_is_not_near)
{
    static const struct {
        const char *word, *right;
        bool near;
    } cases[] = {{"", "2q", false},    {"foo", "bro", false}, {"Q", "B", false},
                 {"lrv", "lru", true}, {"2", "2q", true},     {"TINY", "tinylfu", true},
                 {"xlru", "lru", true}};
    char text[80];

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct nearest nearest = NEAREST_TO(cases[i].word);

        ck_assert(!nearest_is_near(&nearest)); /* nothing was offered */
        nearest_offer(&nearest, cases[i].right);
        ck_assert_msg(nearest_is_near(&nearest) == cases[i].near, "%s", cases[i].word);
        ck_assert_msg((*nearest_ask(&nearest, text, sizeof(text)) != 0) == cases[i].near, "%s",
                      text);
    }
    ck_assert_str_eq(text, "; did you mean lru?");
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("base/nearest");
    TCase *tc = tcase_create("nearest");

    tcase_add_test(tc, distance_between_words);
    tcase_add_test(tc, long_words);
    tcase_add_test(tc, the_first_of_the_nearest_is_kept);
    tcase_add_test(tc, of_equally_near_ones_that_of_the_letters_written);
    tcase_add_test(tc, what_has_nothing_in_common_is_not_near);
    suite_add_tcase(suite, tc);
    return suite;
}
