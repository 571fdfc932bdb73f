/* Format strings: what is taken, what is refused, and what a refusal says. */
#define UNIT_STARTS_NO_THREAD
#include "base/log_pattern.h"

#include <stdio.h>
#include <string.h>

#include "tests/unit/unit.h"

static struct log_pattern *
compile(const char *format)
{
    struct log_pattern *pattern;
    struct buf why;

    buf_init(&why, 1024);
    pattern = log_pattern_compile(format, &why);
    ck_assert_msg(pattern != NULL, "%s: %s", format, buf_str(&why));
    ck_assert_uint_eq(why.len, 0);
    buf_free(&why);
    return pattern;
}

START_TEST(parts_and_the_text_between)
{
    struct log_pattern *pattern = compile("a%%b %h [%{User-Agent}i]\t%>s\\t\\\"%{ms}T\\\"ms");
    static const char *const texts[] = {" [", "]\t", "\t\"", "\"ms"};

    ck_assert(span_equal(pattern->begin, span_str("a%b ")));
    ck_assert_uint_eq(pattern->count, 4);
    for (unsigned i = 0; i < 4; i++) {
        ck_assert(span_equal(pattern->parts[i].text, span_str(texts[i])));
        ck_assert_int_eq(pattern->parts[i].stop, texts[i][0]);
    }
    ck_assert_str_eq(pattern->parts[1].argument, "User-Agent");
    ck_assert_int_eq(pattern->parts[2].directive->value, LOG_VALUE_STATUS);
    ck_assert_int_eq(pattern->parts[3].directive->value, LOG_VALUE_MS);
    log_pattern_free(pattern);
}
END_TEST

START_TEST(each_directive_of_the_table_is_taken)
{
    for (const struct log_directive *row = log_directives; row->name; row++) {
        const char *format = row->kind == LOG_KIND_STRFTIME ? "{%FT%T}t" : row->name;
        char text[64];
        struct log_pattern *pattern;

        snprintf(text, sizeof(text), "%%%s", format);
        pattern = compile(text);
        ck_assert_uint_eq(pattern->count, 1);
        ck_assert_ptr_eq(pattern->parts[0].directive, row);
        ck_assert_int_eq(pattern->parts[0].stop, 0);
        log_pattern_free(pattern);
    }
}
END_TEST

START_TEST(names)
{
    for (const struct log_named_pattern *row = log_named_patterns; row->name; row++) {
        struct log_pattern *pattern = compile(row->name), *same = compile(row->text);

        ck_assert_uint_gt(pattern->count, 6);
        ck_assert_uint_eq(pattern->count, same->count);
        log_pattern_free(pattern);
        log_pattern_free(same);
    }
}
END_TEST

START_TEST(times_of_each_kind)
{
    static const struct {
        const char *format;
        enum log_kind kind;
        bool at_end, is_moment;
    } times[] = {
        {"%t", LOG_KIND_DATE, false, false},
        {"%{begin:}t", LOG_KIND_DATE, false, false},
        {"%{end:}t", LOG_KIND_DATE, true, false},
        {"%{sec}t", LOG_KIND_SECONDS, false, false},
        {"%{end:usec}t", LOG_KIND_MICROSECONDS, true, false},
        {"%{msec_frac}t", LOG_KIND_MS_FRACTION, false, false},
        {"%{%Y-%m-%d %H:%M:%S}t", LOG_KIND_STRFTIME, false, true},
        {"%{end:%H:%M}t", LOG_KIND_STRFTIME, true, false},
    };

    for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
        struct log_pattern *pattern = compile(times[i].format);

        ck_assert_int_eq(pattern->parts[0].kind, times[i].kind);
        ck_assert(pattern->parts[0].at_end == times[i].at_end);
        ck_assert(pattern->parts[0].is_moment == times[i].is_moment);
        log_pattern_free(pattern);
    }
}
END_TEST

START_TEST(statuses)
{
    struct log_pattern *pattern = compile("%200,304{Referer}i %!404D %b");

    ck_assert(log_part_applies(&pattern->parts[0], 304));
    ck_assert(!log_part_applies(&pattern->parts[0], 404));
    ck_assert(!log_part_applies(&pattern->parts[1], 404));
    ck_assert(log_part_applies(&pattern->parts[1], 200));
    ck_assert(log_part_applies(&pattern->parts[2], 0));
    log_pattern_free(pattern);
}
END_TEST

START_TEST(what_is_wrong_is_said)
{
    static const struct {
        const char *format;
        const char *why;
    } wrong[] = {
        {"xml", "\"xml\" is not one of plain, json, common, combined, vhost_combined and format "
                "strings such as %h %t \"%r\" %>s %b"},
        {"combind", "did you mean combined?"},
        {"jsn", "did you mean json?"},
        {"", "is not one of plain"},
        {"%%", "no directive"},
        {"%", "a percent sign has no letter behind it"},
        {"100% of %h", "a percent sign has no letter behind it"},
        {"%{Referer", "has no name in its braces"},
        {"%{}i", "has no name in its braces"},
        {"%i", "%i needs a name, as in %{FIELD}i"},
        {"%x", "%x needs a name, as in %{"},
        {"%{outcom}x", "%{outcom}x is not a directive; did you mean %{outcome}x?"},
        {"%{Ms}T", "did you mean %{ms}T?"},
        {"%d", "%d is not a directive; did you mean %D?"},
        {"%M", "%M is not a directive; did you mean %m?"},
        {"%f", "%f is a directive of Apache that has no value here"},
        {"%Z", "%Z is not a directive; sunproxyd --list-log-format has them"},
        {"%h%u", "nothing stands between %h and %u"},
        {"%r%U", "nothing stands between %r and %U"},
        {"%h:%p", "\":\" behind %h may occur"},
        {"%uabc", "\"a\" behind %u may occur"},
        {"%D1", "\"1\" behind %D may occur"},
        {"%v-%p", "\"-\" behind %v may occur"},
        {"%h\n", "not printable ASCII"},
        {"%h\xc3\xa9", "not printable ASCII"},
        {"%h \\n", "\"\\n\" is not one of"},
        {"%1{Referer}i", "statuses before a directive"},
        {"%!D", "statuses before a directive"},
        {"%{%s}t", "not a time that can be read back"},
        {"%{%c %j nonsense %}t", "not a time that can be read back"},
    };
    char many[LOG_PATTERN_PARTS * 3 + 8] = "";

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct buf why;

        buf_init(&why, 1024);
        ck_assert_msg(!log_pattern_compile(wrong[i].format, &why), "%s", wrong[i].format);
        ck_assert_msg(strstr(buf_str(&why), wrong[i].why) != NULL, "%s: %s", wrong[i].format,
                      buf_str(&why));
        buf_free(&why);
    }
    for (unsigned i = 0; i < LOG_PATTERN_PARTS; i++)
        memcpy(many + i * 3, "%D ", 4);
    log_pattern_free(compile(many));
    memcpy(many + LOG_PATTERN_PARTS * 3, "%D", 3);
    {
        struct buf why;

        buf_init(&why, 1024);
        ck_assert_ptr_null(log_pattern_compile(many, &why));
        ck_assert_ptr_nonnull(strstr(buf_str(&why), "more than 64 directives"));
        buf_free(&why);
    }
    log_pattern_free(NULL);
}
END_TEST

/* A path that its query follows ends where the query does. */
START_TEST(a_path_with_its_query)
{
    struct log_pattern *pattern = compile("%m %U%q;%H");

    ck_assert(pattern->parts[1].joined);
    ck_assert_int_eq(pattern->parts[1].stop, ';');
    ck_assert_int_eq(pattern->parts[2].stop, ';');
    log_pattern_free(pattern);
}
END_TEST

static Suite *
unit_suite(void)
{
    Suite *suite = suite_create("base/log_pattern");
    TCase *tc = tcase_create("patterns");

    tcase_add_test(tc, parts_and_the_text_between);
    tcase_add_test(tc, each_directive_of_the_table_is_taken);
    tcase_add_test(tc, names);
    tcase_add_test(tc, times_of_each_kind);
    tcase_add_test(tc, statuses);
    tcase_add_test(tc, what_is_wrong_is_said);
    tcase_add_test(tc, a_path_with_its_query);
    suite_add_tcase(suite, tc);
    return suite;
}
