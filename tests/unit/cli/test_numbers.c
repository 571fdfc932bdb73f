#define UNIT_STARTS_NO_THREAD

#include "cli/capacity.h"
#include "cli/progress.h"
#include "cli/statistics.h"
#include "cli/when.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "tests/unit/unit.h"

START_TEST(capacities_are_urls_bytes_or_a_share)
{
    static const struct {
        const char *text;
        uint64_t urls, bytes;
    } cases[] = {
        {"1", 1, 0},
        {"700", 700, 0},
        {"64M", 0, 64u << 20},
        {"64MiB", 0, 64u << 20},
        {"1.5GB", 0, 1500000000},
        {"800B", 0, 800},
        {"5%", 5, 0},
        {"0.5%", 1, 0},
        {"2.5%", 3, 0},
        {"100%", 100, 0},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct capacity capacity;

        ck_assert_msg(capacity_parse(cases[i].text, &capacity), "%s", cases[i].text);
        capacity_resolve(&capacity, 100, 0);
        ck_assert_msg(capacity.urls == cases[i].urls, "%s", cases[i].text);
        ck_assert_msg(capacity.bytes == cases[i].bytes, "%s", cases[i].text);
    }
}
END_TEST

START_TEST(what_is_no_capacity_is_refused)
{
    static const char *const texts[] = {
        "",     "0",    "-5",  "1.5",  "64X", "%",   "0%",  "-5%",
        "1e9%", "nan%", "5%%", "0x10", "0M",  "5 5", "inf", "99999999999999999999",
        "+7"};

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct capacity capacity;

        ck_assert_msg(!capacity_parse(texts[i], &capacity), "%s", texts[i]);
    }
}
END_TEST

START_TEST(a_share_is_at_least_one_url)
{
    struct capacity capacity;

    ck_assert(capacity_parse("0.001%", &capacity));
    capacity_resolve(&capacity, 3, 0);
    ck_assert_uint_eq(capacity.urls, 1);
    ck_assert(capacity_parse("50%", &capacity));
    capacity_resolve(&capacity, 1001, 0);
    ck_assert_uint_eq(capacity.urls, 501); /* halves are rounded up */
}
END_TEST

START_TEST(capacities_read_well)
{
    char text[64];

    ck_assert_str_eq(capacity_format(7, 0, text, sizeof(text)), "7 URLs");
    ck_assert_str_eq(capacity_format(0, 1 << 20, text, sizeof(text)), "1.0 MiB");
    ck_assert_str_eq(capacity_format(7, 1 << 20, text, sizeof(text)), "7 URLs and 1.0 MiB");
    ck_assert_str_eq(capacity_format(0, 0, text, sizeof(text)), "no bound");
}
END_TEST

START_TEST(dates_are_utc)
{
    static const struct {
        const char *text;
        int64_t seconds;
        int64_t us;
    } cases[] = {
        {"1970-01-02", 86400, 0},
        {"2024-02-29", 1709164800, 0},
        {"2024-05-31T12:30", 1717158600, 0},
        {"2024-05-31T12:30Z", 1717158600, 0},
        {"2024-05-31 12:30:15", 1717158615, 0},
        {"2024-05-31T12:30:15Z", 1717158615, 0},
        {"1717158600", 1717158600, 0},
        {"00000", 0, 0},
        {"2024-05-31T12:30:15.25", 1717158615, 250000},
        {"2024-05-31T12:30:15.1234567Z", 1717158615, 123456},
        {"2024-05-31T14:30:15+02:00", 1717158615, 0},
        {"2024-05-31T07:00:15.5-0530", 1717158615, 500000},
        {"2024-05-31 12:30z", 1717158600, 0},
        {"2024-06-01T00:30+12:00", 1717158600, 0},
        {"1970-01-01T00:00:00-01:00", 3600, 0},
        {"1970-01-02+02:00", 79200, 0},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int64_t us;

        ck_assert_msg(when_parse(cases[i].text, &us), "%s", cases[i].text);
        ck_assert_msg(us == cases[i].seconds * 1000000 + cases[i].us, "%s: %lld", cases[i].text,
                      (long long)us);
    }
}
END_TEST

START_TEST(what_is_no_date_is_refused)
{
    static const char *const texts[] = {"",
                                        "2024",
                                        "yesterday",
                                        "2023-02-29",
                                        "2024-13-01",
                                        "2024-05-32",
                                        "2024-05-31T",
                                        "2024-05-31T25:00",
                                        "2024-05-31x",
                                        "1717158600x",
                                        "-1717158600",
                                        "2024-05-31T12:30:15.",
                                        "2024-05-31T12:30:15.x",
                                        "2024-05-31T12:30.5",
                                        "2024-05-31T12:30:15+2",
                                        "2024-05-31T12:30:15+24:00",
                                        "2024-05-31T12:30:15+02:60",
                                        "2024-05-31T12:30:15+02:00Z",
                                        "2024-05-31T12:30:15CET",
                                        "1970-01-01T00:00:00+00:01",
                                        "999999999999999"};

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        int64_t us;

        ck_assert_msg(!when_parse(texts[i], &us), "%s", texts[i]);
    }
}
END_TEST

START_TEST(percentiles_are_nearest_ranks)
{
    static const uint32_t ten[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};

    ck_assert_uint_eq(statistics_percentile(ten, 10, 50), 5);
    ck_assert_uint_eq(statistics_percentile(ten, 10, 90), 9);
    ck_assert_uint_eq(statistics_percentile(ten, 10, 91), 10);
    ck_assert_uint_eq(statistics_percentile(ten, 10, 100), 10);
    ck_assert_uint_eq(statistics_percentile(ten, 10, 0), 1);
    ck_assert_uint_eq(statistics_percentile(ten, 1, 99), 1);
    ck_assert_uint_eq(statistics_percentile(NULL, 0, 50), 0);
}
END_TEST

START_TEST(times_are_summed_up_whatever_their_order)
{
    uint32_t times[100];
    struct response_times of;

    for (uint32_t i = 0; i < 100; i++)
        times[i] = (i * 37) % 100 + 1; /* 1 to 100, mixed */
    statistics_of_times(times, 100, &of);
    ck_assert_uint_eq(of.count, 100);
    ck_assert_double_eq_tol(of.mean, 50.5, 1e-9);
    ck_assert_uint_eq(of.p50, 50);
    ck_assert_uint_eq(of.p90, 90);
    ck_assert_uint_eq(of.p99, 99);
    ck_assert_uint_eq(of.max, 100);
    statistics_of_times(times, 0, &of);
    ck_assert_uint_eq(of.count, 0);
    ck_assert_double_eq(of.mean, 0);
}
END_TEST

START_TEST(deviation_is_of_a_sample)
{
    static const double values[] = {2, 4, 4, 4, 5, 5, 7, 9};

    ck_assert_double_eq_tol(statistics_mean(values, 8), 5, 1e-12);
    ck_assert_double_eq_tol(statistics_deviation(values, 8), 2.13808993529939, 1e-9);
    ck_assert_double_eq(statistics_deviation(values, 1), 0);
    ck_assert_double_eq(statistics_mean(values, 0), 0);
}
END_TEST

/* The length of the line on a terminal of this width, without its escape sequence. */
static size_t
drawn_on_a_terminal(unsigned short columns)
{
    struct winsize window = {.ws_col = columns, .ws_row = 24};
    struct progress progress;
    int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC), slave, saved;
    char seen[512];
    ssize_t len;

    if (master < 0 || grantpt(master) != 0 || unlockpt(master) != 0)
        unit_skip("no terminal can be had here");
    slave = open(ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC);
    ck_assert_int_ge(slave, 0);
    ck_assert_int_eq(ioctl(slave, TIOCSWINSZ, &window), 0);
    setenv("TERM", "xterm", 1);
    unsetenv("NO_COLOR");
    fflush(stderr);
    saved = dup(STDERR_FILENO);
    dup2(slave, STDERR_FILENO);
    progress_begin(&progress, "replay", 100);
    progress.begun_us -= 2000000; /* the rate has as many digits however fast the test runs */
    progress_draw(&progress, 50);
    dup2(saved, STDERR_FILENO);
    close(saved);
    close(slave);
    len = read(master, seen, sizeof(seen));
    close(master);
    ck_assert_int_gt(len, 4);
    ck_assert_int_eq(seen[0], '\r');
    ck_assert_int_eq(memcmp(seen + len - 3, "\033[K", 3), 0);
    return (size_t)len - 4;
}

START_TEST(progress_is_as_wide_as_the_terminal_lets_it)
{
    size_t usual = drawn_on_a_terminal(0); /* the terminal does not tell: 80 columns */

    ck_assert_uint_le(usual, 79);
    ck_assert_uint_eq(drawn_on_a_terminal(80), usual);
    ck_assert_uint_eq(drawn_on_a_terminal(20), 19);
    ck_assert_uint_ge(drawn_on_a_terminal(1000), usual);
    ck_assert_uint_le(drawn_on_a_terminal(1000), 199);
}
END_TEST

#define LINE_SIZE 256u

/* To be written to `text`, of LINE_SIZE bytes. It is overwritten by the next call. */
static const struct progress_line *
line_of(char *text, unsigned width, const char *label)
{
    static struct progress_line line;

    line = (struct progress_line){.text = text, .size = LINE_SIZE, .width = width, .label = label};
    return &line;
}

START_TEST(progress_fits_its_line)
{
    char line[LINE_SIZE];

    ck_assert_str_eq(progress_format(line_of(line, 60, "replay"), 500, 1000, 2000000),
                     "replay [########         ]  50 %  500/1000  250/s  0:02 left");
    ck_assert_str_eq(progress_format(line_of(line, 39, "replay"), 0, 1000, 0),
                     "replay   0 %  0/1000  0/s  ? left");
    ck_assert_str_eq(progress_format(line_of(line, 60, "r"), 1, 36001, 1000000),
                     "r [                     ]   0 %  1/36001  1/s  10:00:00 left");
    for (unsigned width = 1; width < 100; width++)
        ck_assert_uint_le(
            strlen(progress_format(line_of(line, width, "replay"), 12345678, 23456789, 1000000)),
            width);
}
END_TEST

START_TEST(progress_of_an_estimated_work)
{
    char line[LINE_SIZE];

    ck_assert_str_eq(
        progress_format_work(line_of(line, 60, "advise"), 0.5, "2.5 million requests/s", 62),
        "advise [#####     ]  50 %  2.5 million requests/s  1:02 left");
    for (unsigned width = 1; width < 100; width++)
        ck_assert_uint_le(strlen(progress_format_work(line_of(line, width, "advise"), 0.99,
                                                      "123.4 million requests/s", 359999)),
                          width);
}
END_TEST

START_TEST(progress_of_bytes)
{
    const uint64_t mib = 1 << 20;
    char line[LINE_SIZE];

    ck_assert_str_eq(
        progress_format_bytes(line_of(line, 70, "a.mp4"), 75 * mib, 300 * mib, 3000000),
        "a.mp4 [###         ]  25 %  75.0 MiB of 300 MiB  25.0 MiB/s  0:09 left");
    ck_assert_str_eq(progress_format_bytes(line_of(line, 70, "page"), 0, mib, 0),
                     "page [                          ]   0 %  0 B of 1.0 MiB  0 B/s  ? left");
    /* More than was announced is all of it. */
    ck_assert_str_eq(progress_format_bytes(line_of(line, 40, "page"), 2 * mib, mib, 1000000),
                     "page 100 %  2.0 MiB of 1.0 MiB  2.0 MiB/");
    /* Without a total there is no share, and the time is the elapsed one. */
    ck_assert_str_eq(progress_format_bytes(line_of(line, 70, "page"), 10 * mib, 0, 5000000),
                     "page 10.0 MiB  2.0 MiB/s  0:05");
    for (unsigned width = 1; width < 100; width++)
        for (uint64_t total = 0; total < 2; total++)
            ck_assert_uint_le(
                strlen(progress_format_bytes(line_of(line, width, "replay"), UINT64_MAX / 3,
                                             total * UINT64_MAX, 1000000)),
                width);
}
END_TEST

START_TEST(a_share_of_the_bytes)
{
    struct capacity capacity;

    ck_assert(capacity_parse("10%B", &capacity));
    capacity_resolve(&capacity, 7, 12345);
    ck_assert_uint_eq(capacity.bytes, 1235);
    ck_assert_uint_eq(capacity.urls, 0);
    ck_assert(capacity_parse("0.001%b", &capacity));
    capacity_resolve(&capacity, 7, 100);
    ck_assert_uint_eq(capacity.bytes, 1);
    ck_assert(!capacity_parse("%B", &capacity));
    ck_assert(!capacity_parse("10%%B", &capacity));
    ck_assert(!capacity_parse("1.0.0%B", &capacity));
}
END_TEST

START_TEST(nothing_is_a_capacity_of_its_own)
{
    static const char *const nothing[] = {"0", "00", "0B", "0K", "0.0M", "0%", "0.00%B"};
    static const char *const something[] = {"",   "1",   "B",    "0x", "0.0.0B",
                                            "05", "0.1", "0.5M", "-0", ".0M"};

    for (size_t i = 0; i < sizeof(nothing) / sizeof(nothing[0]); i++)
        ck_assert_msg(capacity_is_nothing(nothing[i]), "%s", nothing[i]);
    for (size_t i = 0; i < sizeof(something) / sizeof(something[0]); i++)
        ck_assert_msg(!capacity_is_nothing(something[i]), "%s", something[i]);
}
END_TEST

START_TEST(what_is_wrong_with_a_capacity)
{
    char why[256];

    ck_assert_ptr_nonnull(strstr(capacity_explain("64MBi", why, sizeof(why)), "64MiB?"));
    ck_assert_ptr_nonnull(strstr(capacity_explain("5%%", why, sizeof(why)), "5%?"));
    ck_assert_ptr_nonnull(strstr(capacity_explain("10MBB", why, sizeof(why)), "10MB?"));
    /* Nothing is near. */
    ck_assert_ptr_nonnull(strstr(capacity_explain("10Q", why, sizeof(why)), "(64M, 1.5GB)"));
    ck_assert_ptr_nonnull(strstr(capacity_explain("1.5", why, sizeof(why)), "not '1.5'"));
    ck_assert_ptr_nonnull(strstr(capacity_explain("1.2.3M", why, sizeof(why)), "not '1.2.3M'"));
    ck_assert_ptr_nonnull(strstr(capacity_explain("0.3B", why, sizeof(why)), "not '0.3B'"));
    ck_assert_str_eq(capacity_explain("99999999999999999999", why, sizeof(why)),
                     "'99999999999999999999' is too large");
    ck_assert_str_eq(capacity_explain("9999999999999T", why, sizeof(why)),
                     "'9999999999999T' is too large");
    ck_assert_ptr_nonnull(strstr(capacity_explain("lots", why, sizeof(why)), "'lots'"));
    ck_assert_ptr_nonnull(strstr(capacity_explain("", why, sizeof(why)), "(64M, 1.5GB)"));
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("client numbers");
    TCase *tcase = tcase_create("numbers");

    tcase_add_test(tcase, capacities_are_urls_bytes_or_a_share);
    tcase_add_test(tcase, what_is_no_capacity_is_refused);
    tcase_add_test(tcase, a_share_of_the_bytes);
    tcase_add_test(tcase, nothing_is_a_capacity_of_its_own);
    tcase_add_test(tcase, what_is_wrong_with_a_capacity);
    tcase_add_test(tcase, a_share_is_at_least_one_url);
    tcase_add_test(tcase, capacities_read_well);
    tcase_add_test(tcase, dates_are_utc);
    tcase_add_test(tcase, what_is_no_date_is_refused);
    tcase_add_test(tcase, percentiles_are_nearest_ranks);
    tcase_add_test(tcase, times_are_summed_up_whatever_their_order);
    tcase_add_test(tcase, deviation_is_of_a_sample);
    tcase_add_test(tcase, progress_fits_its_line);
    tcase_add_test(tcase, progress_of_an_estimated_work);
    tcase_add_test(tcase, progress_of_bytes);
    tcase_add_test(tcase, progress_is_as_wide_as_the_terminal_lets_it);
    suite_add_tcase(suite, tcase);
    return suite;
}
