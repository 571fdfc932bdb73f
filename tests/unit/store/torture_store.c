/*
 * A store with every allocation of its callers failing in turn: it is opened or refused, and what was
 * purged does not come back.
 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "store/disk_log.h"
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
    ck_assert_uint_ge(torture_walk(open_and_close, &config), 5);
    cache_destroy(shelf.cache);
    ck_assert(shelf_open());
    ck_assert(shelf_has(URL, 3000) || shelf_count(STORE_DAMAGED) == 0);
}
END_TEST

/* As the writer's thread does. A journal whose marks find no memory purges all. */
static void
open_files(void *context)
{
    struct disk_journal journal = JOURNAL_NONE;
    struct disk_identity identity;
    enum journal_found found = JOURNAL_NEW;
    struct disk_marks marks;
    struct disk_log log = {.folder = -1};
    int error;

    journal.folder = *(int *)context;
    disk_marks_init(&marks);
    marks.most = 1000;
    marks.most_text = 10000;
    error = disk_journal_open(&journal, 0, &marks, &identity, &found);
    ck_assert(!error || (error == ENOMEM && torture_failed()));
    ck_assert(found == JOURNAL_READ || torture_failed());
    if (!error) {
        if (!disk_log_init(&log, journal.folder, &identity, STORE_LEAST))
            ck_assert(torture_failed());
        disk_log_free(&log);
    }
    disk_journal_close(&journal);
    disk_marks_free(&marks);
}

START_TEST(opening_its_files)
{
    static const struct source_marked some = {.marked = true};
    int folder;

    ck_assert(shelf_open());
    shelf_put_more(URL, "", "", "tag", 3000, INT64_MAX);
    (void)store_mark(shelf.store, CACHE_BY_TAG, false, span_str("tag"), span_of(NULL, 0), &some);
    shelf_await_sync();
    shelf_close();
    folder = open(shelf.folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ck_assert_int_ge(folder, 0);
    ck_assert_uint_ge(torture_walk(open_files, &folder), 2);
    close(folder);
    ck_assert(shelf_open());
    ck_assert(!shelf_has(URL, 3000));
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
    tcase_add_test(tc, opening_its_files);
    tcase_add_test(tc, offering_and_purging);
    suite_add_tcase(suite, tc);
    return suite;
}
