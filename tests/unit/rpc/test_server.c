/* The server's ordinary work: calls, answers at once and later, in any order, and its end. */
#include "tests/unit/rpc/harness.h"

static struct tiny tiny;

static void
start(void)
{
    tiny_start(&tiny, &RPC_LIMITS_DEFAULT, 2);
}

static void
stop(void)
{
    ck_assert_uint_eq(tiny_stop(&tiny, 5000000), 0);
}

START_TEST(a_null_call_is_answered)
{
    int tcp = peer_connect(&tiny), local = peer_connect_unix(&tiny);

    expect_alive(tcp);
    expect_alive(local);
    close(tcp);
    close(local);
    AWAIT(tiny_stats(&tiny).connections == 0);
    ck_assert_uint_eq(tiny_stats(&tiny).connections_total, 2);
    ck_assert_uint_eq(tiny_stats(&tiny).calls, 2);
    ck_assert_uint_eq(tiny_stats(&tiny).calls_bad, 0);
}
END_TEST

START_TEST(bodies_of_all_sizes)
{
    static const uint32_t sizes[] = {0,    1,    3,     4,      508,     511,     512,          513,
                                     1000, 4095, 20480, 300001, 1000003, 8388608, TINY_MAX_BODY};
    int fd = peer_connect(&tiny);

    for (uint32_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        ck_assert(peer_call(fd, i, TINY_BODY, sizes[i]));
        expect_body(&tiny, fd, i, sizes[i]);
    }
    close(fd);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("rpc server");
    TCase *tcase = tcase_create("calls");

    tcase_set_timeout(tcase, 120);
    tcase_add_checked_fixture(tcase, start, stop);
    tcase_add_test(tcase, a_null_call_is_answered);
    tcase_add_test(tcase, bodies_of_all_sizes);
    suite_add_tcase(suite, tcase);
    return suite;
}
