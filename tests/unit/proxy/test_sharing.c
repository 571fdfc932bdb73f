/* What may be shared of a response that several hops led to. */
#define UNIT_STARTS_NO_THREAD

#include "proxy/sharing.h"

#include "tests/unit/unit.h"

#define SECOND ((int64_t)1000000)
#define NOW (1000 * SECOND)
#define WALL (1780000000 * SECOND)

static void
add(struct sharing *sharing, const char *lines, bool has_user)
{
    const struct fetch_hop hop = {.status = 200, .lines = span_str(lines), .has_user = has_user};

    sharing_add_hop(sharing, &hop, NOW, WALL);
}

START_TEST(one_response_that_forbids_it_is_enough)
{
    static const char *const rows[][2] = {
        {"Set-Cookie: a=b\r\n", ""},
        {"", "Set-Cookie: a=b\r\n"},
        {"Cache-Control: private\r\n", "Cache-Control: max-age=60\r\n"},
        {"Cache-Control: max-age=60\r\n", "Cache-Control: max-age=0\r\n"},
        {"Expires: 0\r\n", "Cache-Control: public\r\n"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct sharing sharing, any;

        sharing_init(&sharing, false, 0);
        sharing_init(&any, true, 0);
        for (size_t hop = 0; hop < 2; hop++) {
            add(&sharing, rows[i][hop], false);
            add(&any, rows[i][hop], true);
        }
        ck_assert_msg(sharing.unshared, "row %zu", i);
        ck_assert_int_eq(any.unshared, HTTP_REASON_NONE);
        ck_assert_int_eq(sharing_lifetime(&any, NOW), INT64_MAX);
    }
}
END_TEST

START_TEST(user_information_on_the_way_forbids_it)
{
    for (unsigned which = 0; which < 2; which++) {
        struct sharing sharing;

        sharing_init(&sharing, false, 0);
        add(&sharing, "Cache-Control: public\r\n", which == 0);
        add(&sharing, "Cache-Control: public\r\n", which == 1);
        ck_assert_int_eq(sharing.unshared, HTTP_REASON_USER_INFO);
    }
}
END_TEST

START_TEST(the_shortest_lifetime_counts)
{
    static const char *const rows[][2] = {
        {"Cache-Control: max-age=60\r\n", "Cache-Control: max-age=600\r\n"},
        {"Cache-Control: max-age=600\r\n", "Cache-Control: max-age=60\r\n"},
        {"Cache-Control: max-age=60\r\n", ""},
        {"", "Cache-Control: max-age=60\r\n"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct sharing sharing;

        sharing_init(&sharing, false, 0);
        add(&sharing, rows[i][0], false);
        add(&sharing, rows[i][1], false);
        ck_assert_int_eq(sharing_lifetime(&sharing, NOW + SECOND), 59 * SECOND);
        ck_assert_int_eq(sharing.unshared, HTTP_REASON_NONE);
    }
}
END_TEST

START_TEST(without_a_lifetime_there_is_no_bound)
{
    struct sharing sharing;

    sharing_init(&sharing, false, 0);
    add(&sharing, "X: y\r\n", false);
    ck_assert_int_eq(sharing_lifetime(&sharing, NOW), INT64_MAX);
    ck_assert_int_eq(sharing.unshared, HTTP_REASON_NONE);
}
END_TEST

START_TEST(a_response_that_expires_while_it_arrives_is_not_shared)
{
    static const struct {
        int64_t after_us, lifetime_us;
        bool shared;
    } rows[] = {
        {61 * SECOND, 0, false},
        {60 * SECOND, 0, false},
        /* Lifetimes are kept in whole milliseconds. */
        {60 * SECOND - 999, 999, false},
        {60 * SECOND - 1000, 1000, true},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct sharing sharing;

        sharing_init(&sharing, false, 0);
        add(&sharing, "Cache-Control: max-age=60\r\n", false);
        ck_assert_int_eq(sharing_lifetime(&sharing, NOW + rows[i].after_us), rows[i].lifetime_us);
        if (rows[i].shared)
            ck_assert_int_eq(sharing.unshared, HTTP_REASON_NONE);
        else
            ck_assert_int_eq(sharing.unshared, HTTP_REASON_STALE);
    }
}
END_TEST

START_TEST(dates_are_compared_with_the_wall_clock)
{
    struct sharing sharing;

    sharing_init(&sharing, false, 0);
    /* The second 1780000000 and a minute. */
    add(&sharing, "Expires: Thu, 28 May 2026 20:27:40 GMT\r\n", false);
    ck_assert_int_eq(sharing.unshared, HTTP_REASON_NONE);
    ck_assert_int_eq(sharing_lifetime(&sharing, NOW), 60 * SECOND);
}
END_TEST

START_TEST(the_bound_on_the_age_counts_from_the_first_arrival_on)
{
    static const struct {
        const char *first, *second;
        int64_t lifetime_us;
    } rows[] = {
        {"Cache-Control: max-age=60\r\n", "", 30 * SECOND},
        {"Cache-Control: max-age=20\r\n", "", 20 * SECOND},
        {"", "Cache-Control: max-age=20\r\n", 20 * SECOND},
        {"", "", 30 * SECOND},
        /* The age that a response had on arrival does not count. */
        {"Cache-Control: max-age=600\r\nAge: 100\r\n", "", 30 * SECOND},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct sharing sharing, any;

        sharing_init(&sharing, false, 30 * SECOND);
        sharing_init(&any, true, 30 * SECOND);
        add(&sharing, rows[i].first, false);
        add(&sharing, rows[i].second, false);
        add(&any, rows[i].first, false);
        ck_assert_int_eq(sharing_lifetime(&sharing, NOW), rows[i].lifetime_us);
        ck_assert_int_eq(sharing_lifetime(&any, NOW), 30 * SECOND);
        ck_assert_int_eq(sharing_lifetime(&any, NOW + 31 * SECOND), 0);
        ck_assert_int_eq(any.unshared, HTTP_REASON_NONE);
    }
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("proxy: sharing");
    TCase *tests = tcase_create("sharing");

    tcase_add_test(tests, one_response_that_forbids_it_is_enough);
    tcase_add_test(tests, user_information_on_the_way_forbids_it);
    tcase_add_test(tests, the_shortest_lifetime_counts);
    tcase_add_test(tests, without_a_lifetime_there_is_no_bound);
    tcase_add_test(tests, a_response_that_expires_while_it_arrives_is_not_shared);
    tcase_add_test(tests, dates_are_compared_with_the_wall_clock);
    tcase_add_test(tests, the_bound_on_the_age_counts_from_the_first_arrival_on);
    suite_add_tcase(suite, tests);
    return suite;
}
