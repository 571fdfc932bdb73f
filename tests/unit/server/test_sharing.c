/* What may be shared of an answer that several responses led to. */
#include "server/sharing.h"

#include "base/clock.h"
#include "tests/unit/cache/pages.h"
#include "tests/unit/unit.h"

#define SECOND ((int64_t)1000000)

static void
take(struct sharing *sharing, const char *lines, bool has_user)
{
    sharing_take(sharing, &(struct fetch_hop){
                              .status = 200,
                              .lines = span_str(lines),
                              .has_user = has_user,
                          });
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

        sharing_init(&sharing, false);
        sharing_init(&any, true);
        for (size_t hop = 0; hop < 2; hop++) {
            take(&sharing, rows[i][hop], false);
            take(&any, rows[i][hop], true);
        }
        ck_assert_msg(sharing.unshared, "row %zu", i);
        ck_assert_ptr_null(any.unshared);
        ck_assert_int_eq(any.fresh_until_us, INT64_MAX);
    }
}
END_TEST

START_TEST(user_information_on_the_way_forbids_it)
{
    for (unsigned which = 0; which < 2; which++) {
        struct sharing sharing;

        sharing_init(&sharing, false);
        take(&sharing, "Cache-Control: public\r\n", which == 0);
        take(&sharing, "Cache-Control: public\r\n", which == 1);
        ck_assert_str_eq(sharing.unshared, "user information in the URL");
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
        struct page *page = pages_make("http://a/", 10);
        int64_t before = clock_monotonic_us();
        struct sharing sharing;

        sharing_init(&sharing, false);
        take(&sharing, rows[i][0], false);
        take(&sharing, rows[i][1], false);
        page->fetched_us = clock_monotonic_us();
        sharing_limit(&sharing, page);
        ck_assert_ptr_null(sharing.unshared);
        ck_assert(page_is_fresh(page, before + 59 * SECOND));
        ck_assert(!page_is_fresh(page, clock_monotonic_us() + 60 * SECOND));
        page_release(&page);
    }
}
END_TEST

START_TEST(without_a_lifetime_a_page_has_no_bound)
{
    struct page *page = pages_make("http://a/", 10);
    struct sharing sharing;

    sharing_init(&sharing, false);
    take(&sharing, "X: y\r\n", false);
    sharing_limit(&sharing, page);
    ck_assert_ptr_null(sharing.unshared);
    ck_assert_uint_eq(page->lifetime_ms, PAGE_UNLIMITED);
    page_release(&page);
}
END_TEST

START_TEST(a_page_that_expires_while_it_comes_is_not_shared)
{
    struct page *page = pages_make("http://a/", 10);
    struct sharing sharing;

    sharing_init(&sharing, false);
    take(&sharing, "Cache-Control: max-age=60\r\n", false);
    page->fetched_us = clock_monotonic_us() + 61 * SECOND;
    sharing_limit(&sharing, page);
    ck_assert_str_eq(sharing.unshared, "stale");
    page_release(&page);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("server/sharing");
    TCase *tests = tcase_create("sharing");

    tcase_add_test(tests, one_response_that_forbids_it_is_enough);
    tcase_add_test(tests, user_information_on_the_way_forbids_it);
    tcase_add_test(tests, the_shortest_lifetime_counts);
    tcase_add_test(tests, without_a_lifetime_a_page_has_no_bound);
    tcase_add_test(tests, a_page_that_expires_while_it_comes_is_not_shared);
    suite_add_tcase(suite, tests);
    return suite;
}
