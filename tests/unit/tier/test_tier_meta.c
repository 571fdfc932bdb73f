/* Replies of memcached, as they arrive. */
#define UNIT_STARTS_NO_THREAD
#include <stdlib.h>
#include <string.h>

#include "tests/unit/unit.h"
#include "tier/tier_meta.h"

static enum tier_meta_state
read_text(const char *text, struct tier_meta *reply, size_t *used)
{
    return tier_meta_read(span_str(text), reply, used);
}

START_TEST(replies_are_read)
{
    static const struct {
        const char *text;
        enum tier_meta_code code;
        const char *value;
        uint64_t cas, time_s;
        bool wins, waits, is_stale;
    } cases[] = {
        {"HD\r\n", TIER_META_DONE, "", 0, 0, false, false, false},
        {"HD c17\r\n", TIER_META_DONE, "", 17, 0, false, false, false},
        {"EN\r\n", TIER_META_MISS, "", 0, 0, false, false, false},
        {"NS\r\n", TIER_META_NOT_STORED, "", 0, 0, false, false, false},
        {"EX\r\n", TIER_META_EXISTS, "", 0, 0, false, false, false},
        {"NF\r\n", TIER_META_NOT_FOUND, "", 0, 0, false, false, false},
        {"MN\r\n", TIER_META_NOTHING, "", 0, 0, false, false, false},
        {"VA 0 c5 W\r\n\r\n", TIER_META_VALUE_HERE, "", 5, 0, true, false, false},
        {"VA 0 c5 Z\r\n\r\n", TIER_META_VALUE_HERE, "", 5, 0, false, true, false},
        {"VA 3 c9 X W\r\nabc\r\n", TIER_META_VALUE_HERE, "abc", 9, 0, true, false, true},
        {"VA 4 s4 c1\r\n\r\n\r\n\r\n", TIER_META_VALUE_HERE, "\r\n\r\n", 1, 0, false, false, false},
        {"SERVER_ERROR out of memory storing object\r\n", TIER_META_ERROR, "", 0, 0, false, false,
         false},
        {"STAT time 1700000000\r\n", TIER_META_STAT, "", 0, 1700000000, false, false, false},
        {"STAT pid 12\r\n", TIER_META_STAT, "", 0, 0, false, false, false},
        {"END\r\n", TIER_META_END, "", 0, 0, false, false, false},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tier_meta reply;
        size_t used;

        ck_assert_int_eq(read_text(cases[i].text, &reply, &used), TIER_META_READ);
        ck_assert_uint_eq(used, strlen(cases[i].text));
        ck_assert_int_eq(reply.code, cases[i].code);
        ck_assert(span_equal(reply.value, span_str(cases[i].value)));
        ck_assert_uint_eq(reply.cas, cases[i].cas);
        ck_assert_uint_eq(reply.time_s, cases[i].time_s);
        ck_assert_int_eq(reply.wins, cases[i].wins);
        ck_assert_int_eq(reply.waits, cases[i].waits);
        ck_assert_int_eq(reply.is_stale, cases[i].is_stale);
        /* Cut anywhere, it waits for more. */
        for (size_t len = 0; len < strlen(cases[i].text); len++)
            ck_assert_int_eq(tier_meta_read(span_of(cases[i].text, len), &reply, &used),
                             TIER_META_MORE);
    }
}
END_TEST

START_TEST(the_time_that_is_left_is_read)
{
    static const struct {
        const char *text;
        uint64_t left_s;
    } cases[] = {
        {"VA 0 c5 t30 Z\r\n\r\n", 30},
        {"VA 0 t0 c5\r\n\r\n", 0},
        {"VA 0 c5 t-1\r\n\r\n", UINT64_MAX},
        {"HD c5\r\n", UINT64_MAX},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tier_meta reply;
        size_t used;

        ck_assert_int_eq(read_text(cases[i].text, &reply, &used), TIER_META_READ);
        ck_assert_uint_eq(reply.left_s, cases[i].left_s);
    }
}
END_TEST

START_TEST(what_is_no_reply_is_refused)
{
    static const char *const texts[] = {
        "\r\n",
        "VALUE a 0 1\r\nx\r\n",
        "HD c\r\n",
        "HD t\r\n",
        "HD t-2\r\n",
        "HD cx\r\n",
        "VA\r\n\r\n",
        "VA x\r\n\r\n",
        "VA -1\r\n",
        "VA 1048577 c1\r\n",
        "HD\n",
        "hd\r\n",
        "ERROR\r\n",
        "VA 1 c1\r\nabc",
        "STAT time x\r\n",
        "VA 18446744073709551616\r\n",
        "CLIENT_ERROR bad data chunk\r\n",
        "HD c99999999999999999999\r\n",
    };
    char *line = malloc(TIER_META_LINE + 1);
    struct tier_meta reply;
    size_t used;

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        ck_assert_msg(read_text(texts[i], &reply, &used) == TIER_META_BROKEN, "%s", texts[i]);
    /* A line has an end. */
    memset(line, 'a', TIER_META_LINE);
    ck_assert_int_eq(tier_meta_read(span_of(line, TIER_META_LINE), &reply, &used),
                     TIER_META_BROKEN);
    ck_assert_int_eq(tier_meta_read(span_of(line, TIER_META_LINE - 1), &reply, &used),
                     TIER_META_MORE);
    free(line);
}
END_TEST

static Suite *
unit_suite(void)
{
    Suite *suite = suite_create("tier_meta");
    TCase *tests = tcase_create("replies");

    tcase_add_test(tests, replies_are_read);
    tcase_add_test(tests, the_time_that_is_left_is_read);
    tcase_add_test(tests, what_is_no_reply_is_refused);
    suite_add_tcase(suite, tests);
    return suite;
}
