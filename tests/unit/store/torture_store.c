/*
 * A store with every allocation of its callers failing in turn: it is opened or refused, and what was
 * purged does not come back.
 */
#include "tests/unit/store/shelf.h"
#include "tests/unit/torture.h"

#define URL "http://origin.test/page"

static void
set_up(void)
{
    shelf_begin();
    shelf.reads_later = true;
}

static void
tear_down(void)
{
    torture_fail_at(0);
    shelf_end();
}

static void
open_and_close(void *context)
{
    const struct store_config *config = context;
    struct store *store;
    struct buf why;

    buf_init(&why, 1000);
    store = store_open(config, &why);
    if (!store)
        ck_assert(torture_failed());
    buf_free(&why);
    store_close(store);
}

START_TEST(opening)
{
    struct store_config config;

    ck_assert(shelf_open());
    shelf_put(URL, 3000);
    shelf_close();
    shelf_make_cache();
    config = shelf_config();
    ck_assert_uint_ge(torture_walk(open_and_close, &config), 7);
    cache_destroy(shelf.cache);
    ck_assert(shelf_open());
    ck_assert(shelf_has(URL, 3000) || shelf_count(STORE_DAMAGED) == 0);
}
END_TEST

static void
offer_and_purge(void *context)
{
    struct object *object = context;
    struct source_marked before;

    (void)store_offer(shelf.store, object, span_str("names"), store_begin_offer(shelf.store));
    store_settle(shelf.store);
    before = store_mark(shelf.store, CACHE_BY_URL, false, span_str(URL), span_of(NULL, 0), NULL);
    (void)store_mark(shelf.store, CACHE_BY_PREFIX, false, span_str("http://other.test/"),
                     span_of(NULL, 0), &before);
    (void)store_mark(shelf.store, CACHE_BY_URL, false, span_str(URL), span_of(NULL, 0), &before);
}

START_TEST(offering_and_purging)
{
    struct object *object;

    ck_assert(shelf_open());
    object = shelf_object(URL, "", "", 3000, INT64_MAX);
    ck_assert_uint_ge(torture_walk(offer_and_purge, object), 3);
    object_release(&object);
    ck_assert(!shelf_has(URL, 3000));
    shelf_close();
    ck_assert(shelf_open());
    ck_assert(!shelf_has(URL, 3000));
}
END_TEST

static Suite *
unit_suite(void)
{
    Suite *suite = suite_create("torture of a store");
    TCase *tc = tcase_create("torture");

    tcase_set_timeout(tc, 60);
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, opening);
    tcase_add_test(tc, offering_and_purging);
    suite_add_tcase(suite, tc);
    return suite;
}
