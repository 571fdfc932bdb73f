/* What the daemon does when malloc() fails: pages leave the cache, which is logged now and then. */
#define UNIT_STARTS_NO_THREAD

#include "server/limits/memory.h"

#include "cache/cache.h"
#include "server/logs/log.h"
#include "server/service.h"
#include "tests/unit/cache/pages.h"
#include "tests/unit/server/logs/logged.h"
#include "tests/unit/unit.h"

static struct service service;
static struct memory_hooks hooks;

static void
set_up(void)
{
    service = (struct service){.magic = SERVICE_MAGIC};
    service.cache = pages_cache("lru", 0, 256 << 20, 1);
    hooks = memory_hooks_of(&service);
    logged_begin();
    log_setup(LOG_LEVEL_INFO, LOG_FORMAT_PLAIN);
}

static void
tear_down(void)
{
    logged_end();
    cache_destroy(service.cache);
}

/* 8 MiB more than were asked for, so that some of it is adjacent. */
START_TEST(pages_are_evicted_when_an_allocation_fails)
{
    pages_store_many(service.cache, 0, 24, 1 << 20);
    ck_assert(hooks.reclaim(hooks.context, 1 << 20));
    ck_assert_uint_eq(pages_stats(service.cache).pages, 15);
    ck_assert(!pages_hit(service.cache, pages_url(8)));
    ck_assert(pages_hit(service.cache, pages_url(9)));
    ck_assert_uint_eq(service.reclaimed.failures, 1);
    ck_assert_uint_eq(service.reclaimed.pages, 9);
    ck_assert_uint_ge(service.reclaimed.bytes, 9 << 20);
    ck_assert_uint_eq(logged_times("out of memory: 1048576 bytes could not be allocated, so 9 "
                                   "pages ("),
                      1);
}
END_TEST

/* All count; one line in ten seconds says so. */
START_TEST(many_failures_are_logged_once)
{
    pages_store_many(service.cache, 0, 48, 1 << 20);
    for (int i = 0; i < 3; i++)
        ck_assert(hooks.reclaim(hooks.context, 1));
    ck_assert_uint_eq(service.reclaimed.failures, 3);
    ck_assert_uint_eq(logged_times("out of memory"), 1);
    service.reclaimed.logged_us = 1; /* long ago */
    ck_assert(hooks.reclaim(hooks.context, 1));
    ck_assert_uint_eq(logged_times("out of memory"), 2);
    ck_assert_uint_eq(logged_times("since the start 4 failures"), 1);
}
END_TEST

START_TEST(an_empty_cache_has_nothing_to_give)
{
    ck_assert(!hooks.reclaim(hooks.context, 1));
    ck_assert_uint_eq(service.reclaimed.failures, 1);
    ck_assert_uint_eq(service.reclaimed.pages, 0);
}
END_TEST

/* The connection's worker sees to its records; nothing else is asked for. */
START_TEST(records_are_left_to_their_connection)
{
    pages_store_many(service.cache, 0, 2, 1 << 20);
    ck_assert(!hooks.relieve(hooks.context, MEMORY_RECORDS, 1 << 20));
    ck_assert_uint_eq(pages_stats(service.cache).pages, 2);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("server/memory");
    TCase *tc = tcase_create("memory");

    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, pages_are_evicted_when_an_allocation_fails);
    tcase_add_test(tc, many_failures_are_logged_once);
    tcase_add_test(tc, an_empty_cache_has_nothing_to_give);
    tcase_add_test(tc, records_are_left_to_their_connection);
    suite_add_tcase(suite, tc);
    return suite;
}
