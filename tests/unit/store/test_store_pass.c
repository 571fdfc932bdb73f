/* Two stores of one folder, in place of two processes of which one is replaced by the other. */
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include "store/disk_store.h"
#include "tests/unit/store/shelf.h"

#define URL "http://origin.test/page"

static const struct source_marked some = {.marked = true};
static struct store *first, *second;
static struct cache *first_cache;
static int ends[2];
static char seen[4096];
static _Atomic bool syncs_wait, sync_waits; /* those of the next journal */
static int in_force; /* the descriptor of the journal until then */

/* Is it a journal, other than the one in force? */
static bool
is_next_journal(int fd)
{
    char link[64], path[300];
    ssize_t n;

    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    n = readlink(link, path, sizeof(path) - 1);
    path[n > 0 ? n : 0] = '\0';
    return strstr(path, "/journal-") && fd != in_force;
}

/*
 * In place of the C library's, for all tests of this program: the real disk is not waited for, since
 * no test cuts its power.
 */
int
fsync(int fd)
{
    (void)fd;
    return 0;
}

int
fdatasync(int fd)
{
    while (atomic_load(&syncs_wait) && is_next_journal(fd)) {
        atomic_store(&sync_waits, true);
        unit_pause();
    }
    return 0;
}

/* [the second store's thread] */
static void
see(void *context, const struct source *from, const struct source_purge *purge)
{
    const size_t len = strlen(seen);

    (void)context;
    ck_assert_ptr_null(from);
    snprintf(seen + len, sizeof(seen) - len, "%u%s %.*s %.*s;", purge->by,
             purge->soft ? " softly" : "", (int)purge->name.len, purge->name.ptr,
             (int)purge->scope.len, purge->scope.ptr);
    (void)store_mark(second, purge->by, purge->soft, purge->name, purge->scope, &some);
}

static void
mark(struct store *store, enum cache_by by, bool soft, const char *name, const char *scope)
{
    (void)store_mark(store, by, soft, span_str(name), span_str(scope), NULL);
    (void)store_mark(store, by, soft, span_str(name), span_str(scope), &some);
}

static bool
await(struct store *store)
{
    return store_await_sync(store, 600 * SHELF_SECOND);
}

static void
set_up(void)
{
    shelf_begin();
    ck_assert(shelf_open());
    first = shelf.store;
    first_cache = shelf.cache;
    second = NULL;
    seen[0] = '\0';
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
}

static void
tear_down(void)
{
    store_close(first);
    cache_destroy(first_cache);
    if (!second)
        shelf.store = NULL;
    shelf_end();
}

static void
open_second(void)
{
    struct store_config config;
    struct buf why;

    shelf_make_cache();
    shelf.waits_us = 600 * SHELF_SECOND;
    config = shelf_config();
    config.purged = see;
    config.log = NULL;
    buf_init(&why, 1000);
    second = shelf.store = store_open(&config, &why);
    ck_assert_ptr_nonnull(second);
    buf_free(&why);
    ck_assert_int_eq(store_take_purges(second, ends[1]), 0);
}

START_TEST(what_is_purged_is_passed_to_the_process_that_has_the_store)
{
    struct source_waiter waiter = {.number = SOURCE_ALL_MARKS};

    shelf_put(URL "1", 100);
    shelf_put(URL "2", 100);
    shelf_put(URL "3", 100);
    store_prepare_hand_over(first);
    /* Noted here, and answered when it is there as well. */
    mark(first, CACHE_BY_URL, false, URL "1", "");
    ck_assert(!store_await_sync(first, 20000));
    open_second();
    ck_assert(store_hand_over(first, ends[0], 600 * SHELF_SECOND));
    ck_assert(await(first));
    ck_assert_str_eq(seen, "0 " URL "1 ;");
    seen[0] = '\0';
    mark(first, CACHE_BY_URL, true, URL "2", "");
    mark(first, CACHE_BY_TAG, false, "tag", "http://origin.test/");
    mark(first, CACHE_BY_PREFIX, false, URL "3", "");
    ck_assert(await(first));
    ck_assert(store_is_synced(first, &waiter));
    ck_assert_str_eq(seen, "0 softly " URL "2 ;2 tag http://origin.test/;1 " URL "3 ;");
    store_settle(second);
    ck_assert(!shelf_has(URL "1", 100));
    ck_assert(shelf_has(URL "2", 100));
    ck_assert(!shelf_has(URL "3", 100));
    /* Nothing is found or written here. */
    ck_assert(!store_may_have(first, span_str(URL "2"), span_of(NULL, 0)));
    store_outdate(first, span_str(URL "2"), span_of(NULL, 0), true);
    ck_assert(store_takes_purges(second));
}
END_TEST

START_TEST(many_at_once)
{
    char name[32];

    store_prepare_hand_over(first);
    open_second();
    for (unsigned i = 0; i < 5000; i++) {
        snprintf(name, sizeof(name), "%u", i);
        mark(first, CACHE_BY_TAG, false, name, "");
        if (i == 2000)
            ck_assert(store_hand_over(first, ends[0], 600 * SHELF_SECOND));
    }
    ck_assert(await(first));
    ck_assert_uint_eq(strlen(seen), sizeof(seen) - 1);
}
END_TEST

START_TEST(the_end_of_either_process_ends_the_waiting)
{
    store_prepare_hand_over(first);
    open_second();
    ck_assert(store_hand_over(first, ends[0], 600 * SHELF_SECOND));
    mark(first, CACHE_BY_URL, false, URL, "");
    ck_assert(await(first));
    ck_assert(store_leave(second, STORE_FOREVER));
    mark(first, CACHE_BY_URL, false, URL, "");
    ck_assert_int_eq(store_await_sync(first, 600 * SHELF_SECOND), STORE_SYNC_LOST);
    mark(first, CACHE_BY_URL, false, URL, "");
    ck_assert_int_eq(store_await_sync(first, 600 * SHELF_SECOND), STORE_SYNC_LOST);
}
END_TEST

/* They are passed on, and hold there. */
START_TEST(purges_are_lost_as_long_as_the_disk_hangs_there)
{
    enum store_synced synced;

    shelf_put(URL "1", 100);
    shelf_put(URL "2", 100);
    store_prepare_hand_over(first);
    open_second();
    ck_assert(store_hand_over(first, ends[0], 600 * SHELF_SECOND));
    store_settle(second);
    in_force = -1;
    atomic_store(&syncs_wait, true);
    mark(first, CACHE_BY_URL, false, URL "1", "");
    while (!atomic_load(&sync_waits))
        unit_pause();
    while (!(synced = store_await_sync(first, 20000)))
        shelf.now_us += SHELF_SECOND;
    ck_assert_int_eq(synced, STORE_SYNC_LOST);
    mark(first, CACHE_BY_TAG, false, "tag", "");
    ck_assert_int_eq(store_await_sync(first, 600 * SHELF_SECOND), STORE_SYNC_LOST);
    ck_assert_str_eq(seen, "0 " URL "1 ;2 tag ;");
    seen[0] = '\0';
    atomic_store(&syncs_wait, false);
    while (store_await_sync(second, 20000) != STORE_SYNCED)
        unit_pause();
    mark(first, CACHE_BY_URL, false, URL "2", "");
    ck_assert_int_eq(store_await_sync(first, 600 * SHELF_SECOND), STORE_SYNCED);
    ck_assert_str_eq(seen, "0 " URL "2 ;");
    ck_assert(!shelf_has(URL "1", 100));
    ck_assert(!shelf_has(URL "2", 100));
}
END_TEST

/* As many marks as make the journal worth being begun anew, behind the last one's answer. */
static void
mark_until_renewal(void)
{
    const struct disk_journal *journal = &first->journal;
    const uint64_t count =
        (journal->renew_size - journal->size + JOURNAL_MARK_BYTES - 1) / JOURNAL_MARK_BYTES;

    for (uint64_t i = 1; i < count; i++)
        (void)store_mark(first, CACHE_BY_TAG, false, span_str("some"), span_of("", 0), &some);
    ck_assert(await(first));
    in_force = journal->fd;
    atomic_store(&syncs_wait, true);
    mark(first, CACHE_BY_TAG, false, "last", "");
    ck_assert(await(first));
    while (!atomic_load(&sync_waits))
        unit_pause();
}

static void *
hand_over(void *context)
{
    ck_assert(store_hand_over(first, ends[0], 600 * SHELF_SECOND));
    return context;
}

START_TEST(a_journal_that_is_being_renewed_is_passed_afterwards)
{
    pthread_t thread;

    shelf_put(URL, 100);
    store_settle(first);
    mark_until_renewal();
    store_prepare_hand_over(first);
    ck_assert_int_eq(pthread_create(&thread, NULL, hand_over, NULL), 0);
    usleep(20000);
    ck_assert_int_eq(store_stage(first), STORE_OPEN);
    atomic_store(&syncs_wait, false);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert_int_eq(store_stage(first), STORE_PASSES);
    ck_assert_int_lt(first->journal.fd, 0);
    ck_assert_uint_eq(shelf_files("journal"), 1);
    open_second();
    store_settle(second);
    ck_assert(shelf_has(URL, 100));
}
END_TEST

START_TEST(one_that_does_not_answer_delays_no_end)
{
    store_prepare_hand_over(first);
    ck_assert(store_hand_over(first, ends[0], 600 * SHELF_SECOND));
    mark(first, CACHE_BY_URL, false, URL, "");
    ck_assert(!store_await_sync(first, 20000));
    ck_assert(store_leave(first, STORE_FOREVER));
    ck_assert_int_eq(store_await_sync(first, 0), STORE_SYNC_LOST);
    close(ends[1]);
}
END_TEST

START_TEST(what_is_no_purge_ends_the_connection)
{
    char bytes[64] = {0};

    open_second();
    ck_assert(store_takes_purges(second));
    ck_assert_int_eq(write(ends[0], bytes, sizeof(bytes)), (ssize_t)sizeof(bytes));
    while (store_takes_purges(second))
        unit_pause();
    ck_assert_str_eq(seen, "");
    ck_assert_int_eq(read(ends[0], bytes, 1), 0);
    close(ends[0]);
    ck_assert(store_leave(first, STORE_FOREVER));
    store_settle(second);
}
END_TEST

static Suite *
unit_suite(void)
{
    Suite *suite = suite_create("store_pass");
    TCase *tc = tcase_create("store_pass");

    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, what_is_purged_is_passed_to_the_process_that_has_the_store);
    tcase_add_test(tc, many_at_once);
    tcase_add_test(tc, the_end_of_either_process_ends_the_waiting);
    tcase_add_test(tc, purges_are_lost_as_long_as_the_disk_hangs_there);
    tcase_add_test(tc, a_journal_that_is_being_renewed_is_passed_afterwards);
    tcase_add_test(tc, one_that_does_not_answer_delays_no_end);
    tcase_add_test(tc, what_is_no_purge_ends_the_connection);
    suite_add_tcase(suite, tc);
    return suite;
}
