/* Rates as they are typed and printed. */
#define UNIT_STARTS_NO_THREAD

#include "server/limits/rate.h"

#include "tests/unit/unit.h"

START_TEST(rates_are_read)
{
    static const struct {
        const char *text;
        bool bytes;
        uint64_t per_second, burst;
        const char *printed;
    } rows[] = {
        {"0", false, 0, 0, "0"},
        {"10", false, 10, 10, "10:10"},
        {"10:3", false, 10, 3, "10:3"},
        {"1:1000000000000", false, 1, 1000000000000, "1:1000000000000"},
        {"1000000000000", false, 1000000000000, 1000000000000, "1000000000000:1000000000000"},
        {"1M", true, 1 << 20, 1 << 20, "1048576:1048576"},
        {"1.5K:20M", true, 1536, 20 << 20, "1536:20971520"},
        {"0:7", true, 0, 7, "0"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct token_rate rate = {.per_second = 99, .burst = 99}, again;
        char text[RATE_TEXT];

        ck_assert_msg(rate_parse(rows[i].text, rows[i].bytes, &rate), "%s", rows[i].text);
        ck_assert_uint_eq(rate.per_second, rows[i].per_second);
        ck_assert_uint_eq(rate.burst, rows[i].burst);
        ck_assert_str_eq(rate_format(&rate, text, sizeof(text)), rows[i].printed);
        ck_assert(rate_parse(text, rows[i].bytes, &again));
        ck_assert_uint_eq(again.per_second, rate.per_second);
    }
}
END_TEST

START_TEST(others_are_not)
{
    static const char *const numbers[] = {
        "",
        "x",
        ":",
        "10:",
        ":10",
        "10:0",
        "10:x",
        "10:1:1",
        "-1",
        "10:-1",
        "1M",
        "1.5",
        "10 ",
        "1000000000001",
        "1:1000000000001",
        "0000000000000000000000000000000000000000000000000000000000000000000000000000000000000001",
    };
    static const char *const sizes[] = {"", ":", "1M:", "1M:0", "1M:2M:3M", "2T", "1M:2T", "1Q"};
    struct token_rate rate = {.per_second = 99, .burst = 98};

    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        ck_assert_msg(!rate_parse(numbers[i], false, &rate), "%s", numbers[i]);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
        ck_assert_msg(!rate_parse(sizes[i], true, &rate), "%s", sizes[i]);
    ck_assert_uint_eq(rate.per_second, 99);
    ck_assert_uint_eq(rate.burst, 98);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("server/rate");
    TCase *tcase = tcase_create("rate");

    tcase_add_test(tcase, rates_are_read);
    tcase_add_test(tcase, others_are_not);
    suite_add_tcase(suite, tcase);
    return suite;
}
