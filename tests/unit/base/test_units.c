#define UNIT_STARTS_NO_THREAD

#include "base/units.h"
#include "tests/unit/unit.h"

START_TEST(bytes_with_units)
{
    static const struct {
        const char *text;
        uint64_t bytes;
    } cases[] = {
        {"0", 0},
        {"512", 512},
        {"1K", 1024},
        {"1k", 1024},
        {"1kB", 1000},
        {"1.5M", 1572864},
        {"2GiB", 2147483648u},
        {"64 KiB", 65536},
        {"1TB", 1000000000000u},
        {"18446744073709551615", UINT64_MAX},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uint64_t bytes = 1;

        ck_assert_msg(units_parse_bytes(cases[i].text, &bytes), "%s", cases[i].text);
        ck_assert_uint_eq(bytes, cases[i].bytes);
    }
}
END_TEST

START_TEST(what_is_no_number_of_bytes)
{
    static const char *const cases[] = {"",    "K",     "-1",  "+1",  "1Q",       "0x10",
                                        "nan", "1e400", "inf", "1 2", "99999999T"};
    uint64_t bytes;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        ck_assert_msg(!units_parse_bytes(cases[i], &bytes), "%s", cases[i]);
}
END_TEST

START_TEST(durations)
{
    int64_t us;

    ck_assert(units_parse_duration("300", &us) && us == 300000000);
    ck_assert(units_parse_duration("1.5ms", &us) && us == 1500);
    ck_assert(units_parse_duration("2h", &us) && us == 7200000000);
    ck_assert(units_parse_duration("0", &us) && us == 0);
    ck_assert(!units_parse_duration("5y", &us));
    ck_assert(!units_parse_duration("-5s", &us));
    ck_assert(!units_parse_duration("", &us));
}
END_TEST

START_TEST(whole_numbers_keep_to_their_range)
{
    uint64_t value;

    ck_assert(units_parse_uint("65535", 0, 65535, &value) && value == 65535);
    ck_assert(!units_parse_uint("65536", 0, 65535, &value));
    ck_assert(!units_parse_uint("0", 1, 9, &value));
    ck_assert(!units_parse_uint("1x", 0, 9, &value));
    ck_assert(!units_parse_uint(" 1", 0, 9, &value));
    ck_assert(!units_parse_uint("99999999999999999999", 0, UINT64_MAX, &value));
}
END_TEST

START_TEST(formats_for_people)
{
    char text[32];

    ck_assert_str_eq(units_format_bytes(0, text, sizeof(text)), "0 B");
    ck_assert_str_eq(units_format_bytes(1536, text, sizeof(text)), "1.5 KiB");
    ck_assert_str_eq(units_format_bytes(20971520, text, sizeof(text)), "20.0 MiB");
    ck_assert_str_eq(units_format_duration(12, text, sizeof(text)), "12 us");
    ck_assert_str_eq(units_format_duration(1500, text, sizeof(text)), "1.5 ms");
    ck_assert_str_eq(units_format_duration(150000000, text, sizeof(text)), "2 m 30 s");
    ck_assert_str_eq(units_format_duration(3599999999, text, sizeof(text)), "59 m 59 s");
    ck_assert_str_eq(units_format_duration(3600000000, text, sizeof(text)), "1 h 00 m 00 s");
    ck_assert_str_eq(units_format_duration(86399000000, text, sizeof(text)), "23 h 59 m 59 s");
    ck_assert_str_eq(units_format_duration(6396120000000, text, sizeof(text)), "74 d 0 h 42 m");
    ck_assert_str_eq(units_format_duration(200000000000000000, text, sizeof(text)),
                     "2314814 d 19 h 33 m");
    ck_assert_str_eq(units_format_duration(INT64_MAX, text, sizeof(text)), "106751991 d 4 h 00 m");
    ck_assert_str_eq(units_format_duration(-5000000000, text, sizeof(text)), "-5000000000 us");
}
END_TEST

START_TEST(decimals_are_digits_and_a_point)
{
    static const char *const wrong[] = {"",   ".",  "-1",  "+1",    "1e3", "0x5A",
                                        "1 ", " 1", "inf", "1.2.3", "nan", "1,5"};
    double number;

    ck_assert(units_parse_decimal("0.5%", 3, &number));
    ck_assert_double_eq(number, 0.5);
    ck_assert(units_parse_decimal("12", 2, &number));
    ck_assert_double_eq(number, 12);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        ck_assert_msg(!units_parse_decimal(wrong[i], strlen(wrong[i]), &number), "%s", wrong[i]);
}
END_TEST

START_TEST(shares_are_parts_or_per_cent)
{
    static const char *const wrong[] = {"",     "%",    "0",   "0%",   "101%", "1.01", "0x5A%",
                                        "1e-1", "90%%", "-5%", "nan%", "9 %",  "90%B"};
    static const struct {
        const char *text;
        double share;
    } right[] = {{"90%", 0.9}, {"0.9", 0.9}, {"100%", 1}, {"1", 1}, {"0.5%", 0.005}, {".5", 0.5}};
    double share;

    for (size_t i = 0; i < sizeof(right) / sizeof(right[0]); i++) {
        ck_assert_msg(units_parse_share(right[i].text, &share), "%s", right[i].text);
        ck_assert_double_eq_tol(share, right[i].share, 1e-12);
    }
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        ck_assert_msg(!units_parse_share(wrong[i], &share), "%s", wrong[i]);
}
END_TEST

START_TEST(words_count_from_zero)
{
    uint64_t which = 9;

    ck_assert(units_parse_word("tsv", "tsv|jsonl", &which));
    ck_assert_uint_eq(which, 0);
    ck_assert(units_parse_word("jsonl", "tsv|jsonl", &which));
    ck_assert_uint_eq(which, 1);
    ck_assert(!units_parse_word("json", "tsv|jsonl", &which));
    ck_assert(!units_parse_word("tsv|jsonl", "tsv|jsonl", &which));
    ck_assert(!units_parse_word("", "tsv|jsonl", &which));
    ck_assert_uint_eq(which, 1);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("base/units");
    TCase *tc = tcase_create("units");

    tcase_add_test(tc, bytes_with_units);
    tcase_add_test(tc, what_is_no_number_of_bytes);
    tcase_add_test(tc, durations);
    tcase_add_test(tc, whole_numbers_keep_to_their_range);
    tcase_add_test(tc, formats_for_people);
    tcase_add_test(tc, decimals_are_digits_and_a_point);
    tcase_add_test(tc, shares_are_parts_or_per_cent);
    tcase_add_test(tc, words_count_from_zero);
    suite_add_tcase(suite, tc);
    return suite;
}
