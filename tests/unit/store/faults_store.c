/*
 * A store on a disk that fails, hangs and loses what was not synced (disk_model.h): no wrong byte, no
 * purged object, and requests that go on.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/clock.h"
#include "tests/unit/store/disk_model.h"
#include "tests/unit/store/shelf.h"

#define URL "http://origin.test/page"

static const struct source_marked some = {.marked = true};
static _Atomic bool synced;

static void
note_sync(struct source_waiter *waiter)
{
    (void)waiter;
    synced = true;
}

/* Purges, and waits for the answer. */
static void
purge(const char *url)
{
    struct source_waiter waiter = {.notify = note_sync};

    (void)store_mark(shelf.store, CACHE_BY_URL, false, span_str(url), span_of(NULL, 0), NULL);
    (void)store_mark(shelf.store, CACHE_BY_URL, false, span_str(url), span_of(NULL, 0), &some);
    synced = store_is_synced(shelf.store, &waiter);
    while (!synced)
        sched_yield();
}

static void
tear_down(void)
{
    disk_model_fail(0, 0, false);
    disk_model_hang(false);
    disk_model_keep(NULL, NULL);
    shelf_end();
}

/* As shelf_put(), where it may be refused. */
static void
put(const char *url, size_t len)
{
    struct object *object = shelf_object(url, "", "", len, INT64_MAX);

    (void)store_offer(shelf.store, object, span_of(NULL, 0), store_begin_offer(shelf.store));
    object_release(&object);
    store_settle(shelf.store);
}

/* What a store does, with one call failing, or all from one on. shelf_has() finds wrong bytes. */
static void
work(unsigned n, int error, bool all)
{
    shelf_begin();
    shelf.reads_later = true;
    ck_assert(shelf_open());
    put(URL "1", 3000);
    put(URL "2", 400000);
    shelf_close();
    disk_model_fail(n, error, all);
    if (shelf_open()) {
        put(URL "3", 3000);
        (void)shelf_has(URL "1", 3000);
        purge(URL "1");
        ck_assert(!shelf_has(URL "1", 3000));
        (void)shelf_has(URL "2", 400000);
        (void)shelf_has(URL "3", 3000);
        put(URL "4", 300000);
        shelf_close();
    }
}

static void
look_after(bool purged)
{
    disk_model_fail(0, 0, false);
    ck_assert(shelf_open());
    if (purged)
        ck_assert(!shelf_has(URL "1", 3000));
    (void)shelf_has(URL "2", 400000);
    (void)shelf_has(URL "3", 3000);
    (void)shelf_has(URL "4", 300000);
    put(URL "5", 3000);
    ck_assert(shelf_has(URL "5", 3000));
    shelf_end();
}

START_TEST(each_call_fails_once)
{
    static const int errors[] = {EIO, ENOSPC, EROFS};

    for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
        for (unsigned n = 1;; n++) {
            bool failed, opened;

            work(n, errors[i], false);
            failed = disk_model_failed() != NULL;
            opened = shelf.said[0] == '\0' || strstr(shelf.said, "store ") == shelf.said;
            look_after(opened);
            if (!failed)
                break;
            ck_assert_uint_lt(n, 200);
        }
}
END_TEST

START_TEST(all_calls_fail_from_one_on)
{
    for (unsigned n = 1; n < 60; n += 3) {
        work(n, n % 2 ? EIO : ENOSPC, true);
        disk_model_fail(0, 0, false);
        ck_assert(shelf_open());
        (void)shelf_has(URL "2", 400000);
        (void)shelf_has(URL "3", 3000);
        shelf_end();
    }
}
END_TEST

START_TEST(a_full_disk_loses_the_oldest_pages_at_the_start)
{
    shelf_begin();
    ck_assert(shelf_open());
    put(URL "1", 3000);
    shelf_close();
    ck_assert(shelf_open());
    put(URL "2", 3000);
    shelf_close();
    ck_assert_uint_eq(shelf_files("segment"), 2);
    disk_model_full(shelf.folder, 1);
    ck_assert(shelf_open());
    disk_model_full(NULL, 0);
    ck_assert(!shelf_has(URL "1", 3000));
    ck_assert(shelf_has(URL "2", 3000));
}
END_TEST

/* ---- a successor ----------------------------------------------------------------------------- */

/* Opens a store that another process has, with a purge that waits for it; returns that's lock. */
static int
open_behind(int64_t waits_us, struct source_waiter *waiter)
{
    char path[100];
    int lock;

    shelf_begin();
    ck_assert(shelf_open());
    put(URL, 3000);
    shelf_close();
    snprintf(path, sizeof(path), "%s/lock", shelf.folder);
    lock = open(path, O_RDWR | O_CLOEXEC);
    ck_assert_int_eq(flock(lock, LOCK_EX), 0);
    shelf.waits_us = waits_us;
    ck_assert(shelf_open());
    (void)store_mark(shelf.store, CACHE_BY_URL, false, span_str(URL), span_of(NULL, 0), &some);
    synced = store_is_synced(shelf.store, waiter);
    return lock;
}

static void
expect_left(int lock)
{
    struct source_waiter waiter = {.notify = note_sync};

    while (!synced)
        sched_yield();
    store_settle(shelf.store);
    put(URL "2", 3000);
    ck_assert(!store_mark(shelf.store, CACHE_BY_URL, false, span_str(URL "2"),
                          span_of(NULL, 0), &some)
                   .marked);
    ck_assert(store_is_synced(shelf.store, &waiter));
    shelf_close();
    close(lock);
}

START_TEST(a_store_that_another_process_keeps_is_not_used)
{
    struct source_waiter waiter = {.notify = note_sync};

    expect_left(open_behind(1000, &waiter));
}
END_TEST

START_TEST(a_successor_whose_store_cannot_be_opened_serves_without_it)
{
    struct source_waiter waiter = {.notify = note_sync};
    int lock = open_behind(600 * SHELF_SECOND, &waiter);

    ck_assert(!synced);
    /* The folder is listed, and its journal cannot be read. */
    disk_model_fail(2, EMFILE, false);
    ck_assert_int_eq(flock(lock, LOCK_UN), 0);
    expect_left(lock);
    ck_assert_ptr_nonnull(disk_model_failed());
    ck_assert(strstr(shelf.said, "it cannot be opened"));
    /* The purge was answered. */
    shelf.waits_us = 0;
    ck_assert(shelf_open());
    ck_assert(!shelf_has(URL, 3000));
}
END_TEST

/* ---- a disk that hangs ----------------------------------------------------------------------- */

static bool
is_sick(void)
{
    struct store_stats stats;

    store_get_stats(shelf.store, &stats);
    return stats.sick;
}

START_TEST(a_disk_that_hangs_is_left_until_it_answers)
{
    struct shelf_found got;

    shelf_begin();
    shelf.reads_later = true;
    ck_assert(shelf_open());
    put(URL, 3000);
    disk_model_hang(true);
    /* The request is sent back, though the read goes on. */
    got = shelf_get(URL, "", "");
    ck_assert(got.begun);
    ck_assert_uint_eq(got.events, WAITER_RETRY);
    ck_assert_uint_eq(shelf_count(STORE_READ_LATE), 1);
    ck_assert(is_sick());
    /* Later ones do not wait at all, and what is offered is dropped where the queue is full. */
    got = shelf_get(URL, "", "");
    ck_assert(!got.begun);
    ck_assert(!store_may_have(shelf.store, span_str(URL), span_of(NULL, 0)));
    disk_model_hang(false);
    while (is_sick())
        sched_yield();
    ck_assert(shelf_has(URL, 3000));
}
END_TEST

START_TEST(reads_that_fail_have_it_left)
{
    struct shelf_found got;

    shelf_begin();
    shelf.reads_later = true;
    ck_assert(shelf_open());
    put(URL, 3000);
    disk_model_fail(1, EIO, true);
    while (!is_sick()) {
        got = shelf_get(URL, "", "");
        ck_assert(!got.begun || got.events == WAITER_RETRY);
    }
    disk_model_fail(0, 0, false);
    while (is_sick())
        sched_yield();
    ck_assert(shelf_has(URL, 3000));
}
END_TEST

/* ---- a power failure ------------------------------------------------------------------------- */

/* The store as the disk has it. */
static void
lose_power(const char *durable)
{
    char command[300];

    disk_model_keep(NULL, NULL);
    shelf_close();
    snprintf(command, sizeof(command), "rm -rf %s && mv %s %s", shelf.folder, durable,
             shelf.folder);
    ck_assert_int_eq(system(command), 0);
    ck_assert(shelf_open());
}

START_TEST(what_was_synced_survives_a_power_failure)
{
    char durable[100], command[300];

    for (unsigned round = 0; round < 6; round++) {
        uint64_t draws = round;

        shelf_begin();
        snprintf(durable, sizeof(durable), "%s.durable", shelf.folder);
        ck_assert(shelf_open());
        put(URL "old", 3000);
        shelf_close();
        snprintf(command, sizeof(command), "cp -a %s %s", shelf.folder, durable);
        ck_assert_int_eq(system(command), 0);
        disk_model_keep(shelf.folder, durable);
        ck_assert(shelf_open());
        for (unsigned i = 0; i < 30; i++) {
            char url[64];

            snprintf(url, sizeof(url), URL "%u", i);
            put(url, 2000 + unit_draw(&draws, 200000));
        }
        purge(URL "old");
        lose_power(durable);
        /* The purge was answered. Of the rest each is whole, or not there. */
        ck_assert(!shelf_has(URL "old", 3000));
        for (unsigned i = 0; i < 30; i++) {
            struct shelf_found got;
            char url[64];

            snprintf(url, sizeof(url), URL "%u", i);
            got = shelf_get(url, "", "");
            object_release(&got.object);
        }
        shelf_end();
        shelf_begin();
    }
}
END_TEST

static Suite *
unit_suite(void)
{
    Suite *suite = suite_create("store on a bad disk");
    TCase *tc = tcase_create("faults");

    tcase_set_timeout(tc, 300);
    tcase_add_test(tc, each_call_fails_once);
    tcase_add_test(tc, all_calls_fail_from_one_on);
    suite_add_tcase(suite, tc);
    tc = tcase_create("others");
    tcase_set_timeout(tc, 300);
    tcase_add_checked_fixture(tc, NULL, tear_down);
    tcase_add_test(tc, a_full_disk_loses_the_oldest_pages_at_the_start);
    tcase_add_test(tc, a_store_that_another_process_keeps_is_not_used);
    tcase_add_test(tc, a_successor_whose_store_cannot_be_opened_serves_without_it);
    tcase_add_test(tc, a_disk_that_hangs_is_left_until_it_answers);
    tcase_add_test(tc, reads_that_fail_have_it_left);
    tcase_add_test(tc, what_was_synced_survives_a_power_failure);
    suite_add_tcase(suite, tc);
    return suite;
}
