/*
 * A store on a disk that fails, hangs and loses what was not synced (disk_model.h): no wrong byte, no
 * purged object, and requests that go on.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <unistd.h>

#include "store/disk_file.h"
#include "store/disk_ring.h"
#include "store/disk_store.h"
#include "store/store_lane.h"
#include "store/store_visit.h"
#include "tests/unit/cache/purge.h"
#include "tests/unit/faults.h"
#include "tests/unit/store/disk_model.h"
#include "tests/unit/store/lost_writes.h"
#include "tests/unit/store/shelf.h"

#define URL "http://origin.test/page"

static const struct source_marked some = {.marked = true};

/* Purges, and waits for the answer. */
static void
purge(const char *url)
{
    (void)store_mark(shelf.store, CACHE_BY_URL, false, span_str(url), span_of(NULL, 0), NULL);
    (void)store_mark(shelf.store, CACHE_BY_URL, false, span_str(url), span_of(NULL, 0), &some);
    shelf_await_sync();
}

static void
tear_down(void)
{
    disk_model_fail(0, 0, false);
    disk_model_hang(false);
    disk_model_read_only(false);
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

/* ---- one call after the other ---------------------------------------------------------------- */

enum way { BY_THREADS, BY_RING, AT_ONCE, WAYS };

/* What becomes of one call, and in which ways of reading. */
static const struct fault {
    int error; /* 0: it does not fail */
    enum disk_model_fault spoils;
    enum way last;
} faults[] = {
    {.error = EIO, .last = AT_ONCE},
    {.error = ENOSPC, .last = BY_THREADS},
    {.error = EROFS, .last = BY_THREADS},
    {.spoils = DISK_MODEL_SHORT, .last = AT_ONCE},
    {.spoils = DISK_MODEL_DAMAGES, .last = AT_ONCE},
};

#define FAULTS (sizeof(faults) / sizeof(faults[0]))
#define LONG_PAGE 1500000u /* more than is read first */

/* In one run, of all stores. */
static struct {
    uint64_t failures; /* of reading and writing, as counted */
    unsigned missing;  /* pages that were offered, and come from the origin */
    unsigned found;
} run;

/*
 * A request for a page that was offered. Its bytes are the right ones; or it comes from the origin,
 * before the response begins, or after that broke off.
 */
static void
request(const char *url, size_t len)
{
    struct shelf_found got = shelf_get(url, "", "");

    if (!got.object) {
        ck_assert(!got.begun || got.events == WAITER_RETRY || len == LONG_PAGE);
        run.missing++;
        return;
    }
    shelf_check(got.object, url, len);
    object_release(&got.object);
    purge_by(shelf.cache, CACHE_BY_URL, span_str(url));
    run.found++;
}

static void
end_store(void)
{
    ck_assert(store_leave(shelf.store, STORE_FOREVER));
    run.failures += shelf_count(STORE_DAMAGED) + shelf_count(STORE_READ_ERRORS) +
                    shelf_count(STORE_WRITE_ERRORS) + shelf_count(STORE_WRITE_REFUSED);
    shelf_close();
}

static void
begin_faults(const struct fault *fault, unsigned n)
{
    if (fault->error)
        disk_model_fail(n, fault->error, false);
    else
        disk_model_spoil(n, fault->spoils);
}

/* What a store does: it reads, writes, purges, and is opened again. False: it is not opened. */
static bool
work(void)
{
    if (!shelf_open())
        return false;
    request(URL "1", 3000);
    request(URL "2", 400000);
    request(URL "3", LONG_PAGE);
    put(URL "4", 300000);
    purge(URL "1");
    ck_assert(!shelf_has(URL "1", 3000));
    request(URL "4", 300000);
    end_store();
    if (!shelf_open())
        return true;
    ck_assert(!shelf_has(URL "1", 3000));
    request(URL "2", 400000);
    request(URL "3", LONG_PAGE);
    request(URL "4", 300000);
    end_store();
    return true;
}

static void
look_after(bool purged)
{
    ck_assert(shelf_open());
    if (purged)
        ck_assert(!shelf_has(URL "1", 3000));
    request(URL "2", 400000);
    request(URL "3", LONG_PAGE);
    put(URL "5", 3000);
    ck_assert(shelf_has(URL "5", 3000));
    end_store();
}

/* Files could not be opened or read once: what is there is not damaged. */
static bool
is_unread(const struct fault *fault, const char *failed)
{
    return failed && (fault->error == EIO || fault->error == EROFS) &&
           (strcmp(failed, "openat") == 0 || strcmp(failed, "pread") == 0);
}

/* Has the n-th call go wrong. Returns its name, or NULL: there are fewer calls. */
static const char *
go_wrong(enum way way, const struct fault *fault, unsigned n)
{
    const char *failed;
    unsigned missing;
    bool worked;

    memset(&run, 0, sizeof(run));
    shelf_begin();
    shelf.max_bytes = 256 << 20;
    shelf.reads_later = way != AT_ONCE;
    ck_assert(way != BY_RING || shelf_take_ring());
    ck_assert(shelf_open());
    put(URL "1", 3000);
    put(URL "2", 400000);
    put(URL "3", LONG_PAGE);
    shelf_close();
    begin_faults(fault, n);
    worked = work();
    failed = disk_model_failed();
    disk_model_fail(0, 0, false);
    missing = run.missing;
    look_after(worked);
    ck_assert_msg(!is_unread(fault, failed) || run.missing == missing, "call %u, %s", n, failed);
    ck_assert_msg(!run.missing || !worked || run.failures, "call %u, %s: %s", n, failed, shelf.said);
    ck_assert_msg(!run.missing || shelf.said[0], "call %u, %s", n, failed);
    ck_assert(failed || (run.missing == 0 && run.failures == 0));
    shelf_end();
    return failed;
}

/* Of how many calls one goes wrong, where not each does. */
#ifdef __SANITIZE_THREAD__
#define STEP 61u
#else
#define STEP 13u
#endif

/* Their number. In the long form each goes wrong, else others with each fault. */
static unsigned
go_wrong_one_by_one(enum way way, size_t fault)
{
    static const char *const names[WAYS] = {"pread", "disk_ring_take", "preadv2"};
    const unsigned step = getenv("SUNPROXY_LONG_TESTS") ? 1 : STEP;
    bool reads = step > 1;
    const char *failed;
    unsigned n = 1 + (unsigned)(17 * fault + 29 * way) % step;

    for (; (failed = go_wrong(way, &faults[fault], n)); n += step) {
        reads = reads || strcmp(failed, names[way]) == 0;
        ck_assert_uint_lt(n, 1000);
    }
    ck_assert(reads);
    return n;
}

START_TEST(each_call_goes_wrong_once)
{
    struct disk_ring *ring = disk_ring_make(16);

    for (enum way way = 0; way < WAYS; way++) {
        if (way == BY_RING && !ring)
            continue;
        for (size_t i = 0; i < FAULTS; i++)
            if (way <= faults[i].last)
                ck_assert_uint_gt(go_wrong_one_by_one(way, i), 20);
    }
    disk_ring_free(ring);
}
END_TEST

/* The disk fails for good, with some call. */
static void
fail_from(unsigned n, int error)
{
    shelf_begin();
    shelf.reads_later = true;
    ck_assert(shelf_open());
    put(URL "2", 400000);
    shelf_close();
    disk_model_fail(n, error, true);
    shelf.fails = true;
    if (!shelf_open())
        return;
    put(URL "3", 3000);
    (void)shelf_has(URL "2", 400000);
    purge(URL "1");
    ck_assert(!shelf_has(URL "1", 3000));
    (void)shelf_has(URL "3", 3000);
    put(URL "4", 300000);
    shelf_close();
}

START_TEST(a_journal_that_cannot_be_read_once_is_not_damaged)
{
    static const int errors[] = {EIO, EACCES, EMFILE, ENOMEM};

    for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
        /* That of the lock, the list of segments, that of journals, and the journal. */
        for (unsigned n = 1; n <= 5; n++) {
            shelf_begin();
            ck_assert(shelf_open());
            put(URL "1", 3000);
            put(URL "2", 3000);
            purge(URL "1");
            shelf_close();
            disk_model_fail(n, errors[i], false);
            ck_assert(!shelf_open());
            ck_assert_ptr_nonnull(strstr(shelf.said, strerror(errors[i])));
            if (n == 4 || n == 5)
                ck_assert_ptr_eq(strstr(shelf.said, "journal-0000000000000001: "), shelf.said);
            ck_assert_str_eq(disk_model_failed(), n == 5 ? "pread" : "openat");
            disk_model_fail(0, 0, false);
            ck_assert(shelf_open());
            ck_assert(!shelf_has(URL "1", 3000));
            ck_assert(shelf_has(URL "2", 3000));
            shelf_end();
        }
}
END_TEST

static void
note_unread(void *context, const struct store_entry *entry)
{
    if (entry->error) {
        ck_assert_int_eq(entry->error, EIO);
        ++*(unsigned *)context;
    }
}

/* By a look through the files, with footers or without. */
START_TEST(a_call_that_fails_finds_no_damage)
{
    const struct store_wanted wanted = {.bodies = true, .scans = _i == 1};
    struct store_totals totals;
    unsigned unread, all = 0;
    bool failed = true, done;
    struct buf why;

    shelf_begin();
    ck_assert(shelf_open());
    put(URL "1", 3000);
    put(URL "2", 100000);
    shelf_close();
    for (unsigned n = 1; failed; n++) {
        buf_init(&why, 1000);
        unread = 0;
        disk_model_fail(n, EIO, false);
        done = store_visit(shelf.folder, &wanted, note_unread, &unread, &totals, &why);
        failed = disk_model_failed() != NULL;
        disk_model_fail(0, 0, false);
        ck_assert(done || strstr(buf_str(&why), strerror(EIO)));
        ck_assert_uint_eq(totals.damaged, 0);
        ck_assert_uint_eq(totals.unread, unread);
        ck_assert(!done || unread || totals.objects == 2);
        all += unread;
        buf_free(&why);
        ck_assert_uint_lt(n, 100);
    }
    ck_assert_uint_gt(all, 1);
    shelf_end();
}
END_TEST

/* One that was not ended is read by the heads of its records, and cut behind the last one. */
START_TEST(a_segment_that_cannot_be_read_once_is_not_cut)
{
    bool failed = true;

    for (unsigned n = 1; failed; n++) {
        shelf_begin();
        ck_assert(shelf_open());
        put(URL "1", 3000);
        put(URL "2", 100000);
        put(URL "3", 3000);
        shelf_kill();
        disk_model_fail(n, EIO, false);
        if (shelf_open())
            store_settle(shelf.store);
        shelf_close();
        failed = disk_model_failed() != NULL;
        disk_model_fail(0, 0, false);
        ck_assert(shelf_open());
        for (unsigned i = 1; i <= 3; i++)
            ck_assert(shelf_has(i == 1 ? URL "1" : i == 2 ? URL "2" : URL "3",
                                i == 2 ? 100000 : 3000));
        shelf_end();
        ck_assert_uint_lt(n, 100);
    }
}
END_TEST

START_TEST(all_calls_fail_from_one_on)
{
    for (unsigned n = 1; n < 60; n += 3) {
        fail_from(n, n % 2 ? EIO : ENOSPC);
        disk_model_fail(0, 0, false);
        shelf.fails = false;
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
    put(URL "1", 210000); /* most of a segment */
    shelf_close();
    ck_assert(shelf_open());
    put(URL "2", 3000);
    shelf_close();
    ck_assert_uint_eq(shelf_files("segment"), 2);
    disk_model_full(shelf.folder, 1);
    ck_assert(shelf_open());
    disk_model_full(NULL, 0);
    ck_assert(!shelf_has(URL "1", 210000));
    ck_assert(shelf_has(URL "2", 3000));
}
END_TEST

/* Until the next start it has as many segments as there is space for. */
START_TEST(a_full_disk_makes_the_store_smaller)
{
    char url[64];

    shelf_begin();
    ck_assert(shelf_open());
    for (unsigned i = 0; i < 10; i++) {
        snprintf(url, sizeof(url), URL "%u", i);
        put(url, 200000);
    }
    disk_model_full(shelf.folder, 6);
    do /* each time that it is tried again */
        put(URL "new", 200000);
    while (!shelf_has(URL "new", 200000));
    ck_assert_uint_le(shelf_files("segment"), 7);
    ck_assert(!shelf_has(URL "0", 200000));
    ck_assert(shelf_has(URL "9", 200000));
    disk_model_full(NULL, 0);
}
END_TEST

START_TEST(a_file_system_that_becomes_read_only)
{
    shelf_begin();
    ck_assert(shelf_open());
    put(URL "1", 3000);
    put(URL "2", 3000);
    disk_model_read_only(true);
    ck_assert(shelf_has(URL "1", 3000));
    put(URL "3", 3000);
    ck_assert(!shelf_has(URL "3", 3000));
    ck_assert(shelf_has(URL "1", 3000));
    /* A purge that cannot be noted concerns all, also later if anything can be written then. */
    purge(URL "1");
    ck_assert(!shelf_has(URL "1", 3000));
    ck_assert(!shelf_has(URL "2", 3000));
    disk_model_read_only(false);
    shelf_close();
    disk_model_read_only(true);
    ck_assert(!shelf_open());
    ck_assert_str_eq(shelf.said, "lock: Read-only file system");
    disk_model_read_only(false);
    ck_assert(shelf_open());
    ck_assert(!shelf_has(URL "1", 3000));
    ck_assert(!shelf_has(URL "2", 3000));
}
END_TEST

/* A start would know nothing of it. */
START_TEST(a_purge_that_no_journal_takes_is_answered_so)
{
    struct source_waiter waiter = {.notify = NULL};

    shelf_begin();
    ck_assert(shelf_open());
    put(URL "1", 3000);
    put(URL "2", 3000);
    disk_model_read_only(true);
    for (unsigned i = 0; i < 2; i++) {
        (void)store_mark(shelf.store, CACHE_BY_URL, false, span_str(URL "1"), span_of(NULL, 0),
                         &some);
        shelf_ask_sync(&waiter);
        while (!shelf_is_synced())
            unit_pause();
        ck_assert(waiter.lost);
        ck_assert(!shelf_has(URL "1", 3000));
    }
    disk_model_read_only(false);
    (void)store_mark(shelf.store, CACHE_BY_URL, false, span_str(URL "2"), span_of(NULL, 0), &some);
    ck_assert_int_eq(store_await_sync(shelf.store, 600 * SHELF_SECOND), STORE_SYNCED);
    put(URL "3", 3000);
    shelf_kill();
    ck_assert(shelf_open());
    ck_assert(!shelf_has(URL "1", 3000));
    ck_assert(!shelf_has(URL "2", 3000));
    ck_assert(shelf_has(URL "3", 3000));
}
END_TEST

static struct disk_journal
journal_there(void)
{
    return (struct disk_journal){
        .folder = open(shelf.folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC),
        .now = {.boot = 1, .monotonic_us = SHELF_SECOND, .wall_us = SHELF_SECOND},
        .slack = 1 << 20,
        .fd = -1,
    };
}

/* Has a start after a power failure the mark of this hash, or purges it all? */
static bool
knows_mark(size_t count, uint64_t hash, uint64_t *draws)
{
    char folder[sizeof(shelf.folder)];
    struct disk_identity identity;
    struct disk_journal journal;
    enum journal_found found;
    struct disk_marks marks;
    bool knows;

    snprintf(folder, sizeof(folder), "%s", shelf.folder);
    snprintf(shelf.folder, sizeof(shelf.folder), "%.50s.lost", folder);
    lost_writes_make(shelf.folder, count, draws);
    disk_marks_init(&marks);
    journal = journal_there();
    ck_assert_int_eq(disk_journal_read(&journal, &marks, &identity, &found), 0);
    knows = found == JOURNAL_LOST;
    for (size_t i = 0; i < marks.size; i++)
        knows = knows || marks.slots[i].hash == hash;
    disk_marks_free(&marks);
    close(journal.folder);
    shelf_end();
    snprintf(shelf.folder, sizeof(shelf.folder), "%s", folder);
    return knows;
}

/* The file that was begun, and is not in force, is not there when a mark is answered. */
START_TEST(a_journal_that_cannot_begin_anew_goes_on)
{
    bool failed = true;

    for (unsigned n = 1; failed; n++) {
        struct disk_mark mark = {.kind = MARK_TAG, .hash = 1, .position = 1};
        struct disk_identity identity;
        struct disk_journal journal;
        enum journal_found found;
        struct disk_marks marks;
        uint64_t draws = n, all;

        shelf_begin();
        disk_marks_init(&marks);
        marks.most = 1000;
        ck_assert(disk_marks_add(&marks, &mark, &all));
        journal = journal_there();
        ck_assert_int_eq(disk_journal_open(&journal, 0, &marks, &identity, &found), 0);
        lost_writes_record(shelf.folder);
        disk_model_fail(n, EIO, false);
        failed = disk_journal_renew(&journal, &marks, &identity) != 0;
        disk_model_fail(0, 0, false);
        mark.hash = mark.position = 2;
        ck_assert_int_eq(disk_journal_append(&journal, &mark), 0);
        ck_assert_int_eq(disk_journal_sync(&journal), 0);
        for (unsigned i = 0; i < 10; i++)
            ck_assert_msg(knows_mark(lost_writes_count(), 2, &draws), "call %u", n);
        lost_writes_record(NULL);
        disk_journal_close(&journal);
        disk_marks_free(&marks);
        close(journal.folder);
        shelf_end();
        ck_assert_uint_lt(n, 100);
    }
    shelf_begin();
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
    shelf_ask_sync(waiter);
    return lock;
}

static void
expect_left(int lock)
{
    struct source_waiter waiter = {.number = SOURCE_ALL_MARKS};

    while (!shelf_is_synced())
        unit_pause();
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
    struct source_waiter waiter = {.notify = NULL};

    expect_left(open_behind(1000, &waiter));
}
END_TEST

START_TEST(a_successor_whose_store_cannot_be_opened_serves_without_it)
{
    struct source_waiter waiter = {.notify = NULL};
    int lock = open_behind(600 * SHELF_SECOND, &waiter);

    ck_assert(!shelf_is_synced());
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

/* Segments without a journal, of which none can be removed: no purge is answered as if it held. */
START_TEST(a_successor_that_cannot_remove_the_segments_answers_so)
{
    struct source_waiter waiter = {.notify = NULL};
    const int lock = open_behind(600 * SHELF_SECOND, &waiter);

    disk_model_fail(2, EIO, true);
    ck_assert_int_eq(flock(lock, LOCK_UN), 0);
    while (!shelf_is_synced())
        unit_pause();
    ck_assert(waiter.lost);
    store_settle(shelf.store);
    ck_assert(strstr(shelf.said, "its segments cannot be removed"));
    disk_model_fail(0, 0, false);
    ck_assert_uint_eq(shelf_files("segment"), 1);
    ck_assert(store_mark(shelf.store, CACHE_BY_URL, false, span_str(URL), span_of(NULL, 0), &some)
                  .marked);
    ck_assert_int_eq(store_await_sync(shelf.store, 600 * SHELF_SECOND), STORE_SYNC_LOST);
    shelf_close();
    close(lock);
}
END_TEST

/* That is tried although the list of them has failed before. */
START_TEST(a_successor_that_could_not_list_the_segments_removes_them)
{
    struct source_waiter waiter = {.notify = NULL};
    const int lock = open_behind(600 * SHELF_SECOND, &waiter);

    disk_model_fail(1, EMFILE, false);
    ck_assert_int_eq(flock(lock, LOCK_UN), 0);
    expect_left(lock);
    ck_assert(!waiter.lost);
    ck_assert(strstr(shelf.said, "its segments are removed"));
    ck_assert_uint_eq(shelf_files("segment"), 0);
}
END_TEST

/* The other process goes on with all that there is. */
START_TEST(a_successor_that_cannot_read_the_journal_is_not_opened)
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
    shelf.waits_us = 600 * SHELF_SECOND;
    /* That of the lock, the list of journals, and the journal. */
    for (unsigned n = 2; n <= 4; n++) {
        disk_model_fail(n, EIO, false);
        ck_assert(!shelf_open());
        ck_assert_str_eq(disk_model_failed(), n == 4 ? "pread" : "openat");
        ck_assert_ptr_nonnull(strstr(shelf.said, strerror(EIO)));
        ck_assert(n == 2 || strstr(shelf.said, "journal-0000000000000001: ") == shelf.said);
    }
    disk_model_fail(0, 0, false);
    ck_assert_int_eq(flock(lock, LOCK_UN), 0);
    ck_assert(shelf_open());
    store_settle(shelf.store);
    ck_assert(shelf_has(URL, 3000));
    shelf_close();
    close(lock);
}
END_TEST

START_TEST(a_daemon_that_ends_before_it_has_the_store_has_noted_nothing)
{
    struct source_waiter waiter = {.notify = NULL};
    const int lock = open_behind(600 * SHELF_SECOND, &waiter);

    ck_assert(store_leave(shelf.store, STORE_FOREVER));
    ck_assert(shelf_is_synced());
    ck_assert(waiter.lost);
    shelf_close();
    close(lock);
}
END_TEST

/* ---- a disk that hangs ----------------------------------------------------------------------- */

START_TEST(a_disk_that_hangs_is_left_until_it_answers)
{
    struct shelf_found got;

    shelf_begin();
    shelf.reads_later = true;
    ck_assert(shelf_open());
    put(URL, 3000);
    disk_model_hang(true);
    shelf.tick_us = STORE_LATE_US;
    /* The request is sent back, though the read goes on. */
    got = shelf_get(URL, "", "");
    ck_assert(got.begun);
    ck_assert_uint_eq(got.events, WAITER_RETRY);
    ck_assert_uint_eq(shelf_count(STORE_READ_LATE), 1);
    ck_assert(shelf_is_sick());
    /* Later ones do not wait at all, and what is offered is dropped where the queue is full. */
    got = shelf_get(URL, "", "");
    ck_assert(!got.begun);
    ck_assert(!store_may_have(shelf.store, span_str(URL), span_of(NULL, 0)));
    shelf.tick_us = 0;
    disk_model_hang(false);
    while (shelf_is_sick())
        unit_pause();
    ck_assert(shelf_has(URL, 3000));
}
END_TEST

/* Purges, and waits for the answer. */
static void
purge_tag_or_prefix(enum cache_by by, const char *name)
{
    (void)store_mark(shelf.store, by, false, span_str(name), span_of(NULL, 0), &some);
    ck_assert_int_eq(store_await_sync(shelf.store, 600 * SHELF_SECOND), STORE_SYNCED);
}

#define TOGETHER 8u

static const char *
name_of(unsigned i)
{
    static char url[64];

    snprintf(url, sizeof(url), URL "%u", i);
    return url;
}

/* The store has looked how long reads have taken. */
static void
await_slow(bool slow)
{
    while ((atomic_load(&shelf.store->slow) != 0) != slow) {
        (void)store_lane_turn(shelf.store, 0);
        unit_pause();
    }
}

/* A write and a mark, which the disk does not end either. */
static void
hang_writes(struct source_waiter *waiter)
{
    disk_model_hang(true);
    shelf_offer(URL "written", 3000);
    (void)store_mark(shelf.store, CACHE_BY_URL, false, span_str(URL "none"), span_of(NULL, 0),
                     &some);
    shelf_ask_sync(waiter);
    while (disk_model_hung() < 2)
        unit_pause();
}

/* Those that ask before a read takes long wait as long as the first one does, and no later one at
 * all. Read by threads, and by a ring. */
START_TEST(a_disk_that_hangs_has_no_request_wait_for_longer_than_the_first)
{
    struct requester requesters[TOGETHER] = {{.answer = CACHE_HIT}}, other = {.answer = CACHE_HIT};
    struct source_waiter waiter = {.notify = NULL};

    shelf_begin();
    shelf.reads_later = true;
    if (_i == 1 && !shelf_take_ring())
        return;
    ck_assert(shelf_open());
    for (unsigned i = 0; i <= TOGETHER; i++)
        put(name_of(i), 3000);
    hang_writes(&waiter);
    for (unsigned i = 0; i < TOGETHER; i++) {
        ck_assert(shelf_begin_get(&requesters[i], name_of(i)));
        (void)store_lane_turn(shelf.store, 0);
        if (i == 0)
            shelf.now_us += STORE_LATE_US / 2 - 1;
    }
    ck_assert_uint_eq(atomic_load(&shelf.store->slow), 0);
    shelf.now_us += 1;
    await_slow(true);
    ck_assert(!shelf_begin_get(&other, name_of(TOGETHER)));
    ck_assert_uint_eq(shelf_count(STORE_READ_REFUSED), 1);
    ck_assert_uint_eq(shelf_count(STORE_READ_LATE), 0);
    shelf.now_us += STORE_LATE_US / 2;
    shelf.tick_us = STORE_LATE_US; /* a probe takes as long */
    for (unsigned i = 0; i < TOGETHER; i++)
        ck_assert_uint_eq(shelf_end_get(&requesters[i]), WAITER_RETRY);
    ck_assert_uint_eq(shelf_count(STORE_READ_LATE), TOGETHER);
    ck_assert(shelf_is_sick());
    ck_assert(!shelf_begin_get(&other, name_of(TOGETHER)));
    ck_assert(!shelf_is_synced());
    shelf.tick_us = 0;
    disk_model_hang(false);
    await_slow(false);
    ck_assert(shelf_has(name_of(TOGETHER), 3000));
    ck_assert(shelf_has(name_of(0), 3000));
    store_settle(shelf.store);
    ck_assert(shelf_has(URL "written", 3000));
    ck_assert(store_await_sync(shelf.store, 600 * SHELF_SECOND));
}
END_TEST

/* Marks are read, and left, while the disk hangs with a journal that begins anew. */
START_TEST(a_journal_that_begins_anew_on_a_disk_that_hangs_delays_no_request)
{
    struct source_waiter waiter = {.notify = NULL};
    struct shelf_found got;
    char tag[32];

    shelf_begin();
    shelf.max_bytes = 256 << 20;
    ck_assert(shelf_open());
    put(URL "1", 3000);
    put(URL "2", 3000);
    (void)shelf_has(URL "1", 3000);
    disk_model_hang_from("journal-");
    for (unsigned i = 0; !disk_model_hangs(); i++) {
        if (i % 1000 == 0)
            (void)store_await_sync(shelf.store, 10000);
        snprintf(tag, sizeof(tag), "tag-%u", i);
        (void)store_mark(shelf.store, CACHE_BY_TAG, false, span_str(tag), span_of(NULL, 0),
                         &some);
    }
    (void)store_mark(shelf.store, CACHE_BY_URL, false, span_str(URL "1"), span_of(NULL, 0),
                     &some);
    shelf.tick_us = STORE_LATE_US;
    got = shelf_get(URL "1", "", "");
    ck_assert_ptr_null(got.object);
    got = shelf_get(URL "2", "", "");
    ck_assert_ptr_null(got.object);
    shelf.tick_us = 0;
    shelf_ask_sync(&waiter);
    ck_assert(!shelf_is_synced());
    ck_assert(!store_await_sync(shelf.store, 1000));
    disk_model_hang(false);
    ck_assert(store_await_sync(shelf.store, 600 * SHELF_SECOND));
    while (!shelf_is_synced())
        unit_pause();
    shelf_kill();
    ck_assert(shelf_open());
    ck_assert(!shelf_has(URL "1", 3000));
    ck_assert(shelf_has(URL "2", 3000));
}
END_TEST

static void
ignore(struct source_waiter *waiter)
{
    (void)waiter;
}

/* Is the mark that a purge of this URL leaves noted, or is there none? */
static bool
is_purged_at_once(const char *url, struct source_waiter *waiter)
{
    const struct source_marked before =
        store_mark(shelf.store, CACHE_BY_URL, false, span_str(url), span_of(NULL, 0), NULL);

    *waiter = (struct source_waiter){
        .notify = ignore,
        .number = store_mark(shelf.store, CACHE_BY_URL, false, span_str(url), span_of(NULL, 0),
                             &before)
                      .number,
    };
    return store_is_synced(shelf.store, waiter);
}

/* What is asked for and purged meanwhile is answered. */
START_TEST(a_disk_that_hangs_at_the_start_delays_that_for_a_while)
{
    struct source_waiter waiter = {.notify = NULL}, later;
    const bool fails = _i == 1;

    shelf_begin();
    ck_assert(shelf_open());
    put(URL "1", 3000);
    put(URL "2", 3000);
    put(URL "3", 3000);
    shelf_close();
    shelf.opens_us = 1000;
    disk_model_hang_from("."); /* the folder is listed twice */
    ck_assert(shelf_open());
    ck_assert(strstr(shelf.said, "the disk does not answer"));
    while (!disk_model_hangs())
        unit_pause();
    ck_assert(!shelf_get(URL "1", "", "").begun);
    (void)store_mark(shelf.store, CACHE_BY_URL, false, span_str(URL "1"), span_of(NULL, 0), &some);
    /* The second call of a purge may come after the start. */
    (void)store_mark(shelf.store, CACHE_BY_URL, false, span_str(URL "3"), span_of(NULL, 0), NULL);
    shelf_ask_sync(&waiter);
    shelf.now_us += STORE_NOTE_US - 1;
    ck_assert(!shelf_is_synced());
    shelf.now_us += 1;
    while (!shelf_is_synced())
        unit_pause();
    ck_assert(waiter.lost);
    ck_assert(is_purged_at_once(URL "4", &later));
    ck_assert(later.lost);
    ck_assert(!shelf_is_sick());
    if (fails)
        disk_model_fail(1, EMFILE, false);
    disk_model_hang(false);
    store_settle(shelf.store);
    while (store_await_sync(shelf.store, 1000) != STORE_SYNCED)
        unit_pause();
    ck_assert(is_purged_at_once(URL "4", &later));
    ck_assert(!later.lost);
    ck_assert(!shelf_has(URL "1", 3000));
    ck_assert_int_eq(shelf_has(URL "2", 3000), !fails);
    ck_assert(!shelf_has(URL "3", 3000));
    ck_assert(!fails || strstr(shelf.said, "it cannot be opened"));
    disk_model_fail(0, 0, false);
    shelf_close();
    shelf.opens_us = 0;
    ck_assert(shelf_open());
    ck_assert_int_eq(shelf_has(URL "2", 3000), !fails);
}
END_TEST

START_TEST(a_disk_that_hangs_delays_purges_of_what_it_has_alone)
{
    struct source_waiter first, offered, later;

    shelf_begin();
    ck_assert(shelf_open());
    put(URL "1", 3000);
    put(URL "2", 3000);
    disk_model_hang(true);
    shelf_offer(URL "3", 3000);
    ck_assert(!is_purged_at_once(URL "1", &first));
    ck_assert(is_purged_at_once(URL "4", &later));
    /* It is in the index no longer, but a start would find it until the first mark is noted. */
    ck_assert(!is_purged_at_once(URL "1", &later));
    ck_assert(!is_purged_at_once(URL "3", &offered));
    (void)store_forget_waiter(shelf.store, &first);
    (void)store_forget_waiter(shelf.store, &offered);
    (void)store_forget_waiter(shelf.store, &later);
    ck_assert(is_purged_at_once(URL "5", &later));
    disk_model_hang(false);
    shelf_await_sync();
    store_settle(shelf.store);
    shelf_kill();
    ck_assert(shelf_open());
    ck_assert(!shelf_has(URL "1", 3000));
    ck_assert(shelf_has(URL "2", 3000));
    ck_assert(!shelf_has(URL "3", 3000));
}
END_TEST

/* By a response that takes its place, or by a purge of which the other call is to come yet. */
START_TEST(a_purge_of_what_is_gone_already_waits_for_its_mark)
{
    struct source_waiter waiter;

    shelf_begin();
    ck_assert(shelf_open());
    put(URL "1", 3000);
    put(URL "2", 3000);
    disk_model_hang(true);
    store_outdate(shelf.store, span_str(URL "1"), span_of(NULL, 0), true);
    (void)store_mark(shelf.store, CACHE_BY_URL, false, span_str(URL "2"), span_of(NULL, 0), NULL);
    for (unsigned i = 1; i <= 2; i++) {
        ck_assert(!is_purged_at_once(i == 1 ? URL "1" : URL "2", &waiter));
        (void)store_forget_waiter(shelf.store, &waiter);
    }
    disk_model_hang(false);
    shelf_await_sync();
    /* From then on it leaves no other mark. */
    ck_assert(is_purged_at_once(URL "1", &waiter));
    ck_assert_uint_eq(waiter.number, 0);
    shelf_kill();
    ck_assert(shelf_open());
    ck_assert(!shelf_has(URL "1", 3000));
    ck_assert(!shelf_has(URL "2", 3000));
}
END_TEST

/* A later start finds what has left the index alone: options in force may be others then, and a
 * mark that is not noted is lost. */
START_TEST(what_is_dropped_when_it_is_read_is_purged_all_the_same)
{
    struct source_waiter waiter;

    shelf_begin();
    ck_assert(shelf_open());
    for (unsigned i = 1; i <= 4; i++)
        put(name_of(i), 3000);
    shelf.refusal = HTTP_REASON_SET_COOKIE;
    ck_assert(!shelf_has(URL "1", 3000));
    ck_assert(!shelf_has(URL "2", 3000));
    shelf.refusal = HTTP_REASON_NONE;
    (void)is_purged_at_once(URL "1", &waiter);
    ck_assert_uint_ne(waiter.number, 0);
    shelf_await_sync();
    store_outdate(shelf.store, span_str(URL "2"), span_of(NULL, 0), false);
    store_outdate(shelf.store, span_str(URL "2"), span_of(NULL, 0), false); /* once is enough */
    shelf_await_sync();
    ck_assert_uint_eq(shelf_count(STORE_PURGES), 2);
    /* The call that has it noted is to come yet. */
    (void)store_mark(shelf.store, CACHE_BY_PREFIX, false, span_str(URL "3"), span_of(NULL, 0),
                     NULL);
    ck_assert(!shelf_has(URL "3", 3000));
    (void)is_purged_at_once(URL "3", &waiter);
    ck_assert_uint_ne(waiter.number, 0);
    shelf_await_sync();
    shelf_kill();
    ck_assert(shelf_open());
    for (unsigned i = 1; i <= 3; i++)
        ck_assert(!shelf_has(name_of(i), 3000));
    ck_assert(shelf_has(name_of(4), 3000));
    /* A mark that is noted is known to a later start, too. */
    purge_tag_or_prefix(CACHE_BY_PREFIX, URL "4");
    ck_assert(!shelf_has(URL "4", 3000));
    ck_assert(is_purged_at_once(URL "4", &waiter));
    ck_assert_uint_eq(waiter.number, 0);
}
END_TEST

/* The call that is not noted by itself has found no place for its mark. */
START_TEST(what_too_many_marks_purge_is_noted)
{
    const struct span tag = span_str("tag"), none = span_of(NULL, 0);
    struct source_waiter waiter;
    struct source_marked before;

    shelf_begin();
    ck_assert(shelf_open());
    put(URL "1", 3000);
    shelf.store->marks.most = 1;
    purge_tag_or_prefix(CACHE_BY_TAG, "other");
    before = store_mark(shelf.store, CACHE_BY_TAG, false, tag, none, NULL);
    (void)store_mark(shelf.store, CACHE_BY_TAG, false, tag, none, &before);
    shelf_await_sync();
    ck_assert(!shelf_has(URL "1", 3000));
    ck_assert(is_purged_at_once(URL "1", &waiter));
    shelf_kill();
    ck_assert(shelf_open());
    ck_assert(!shelf_has(URL "1", 3000));
}
END_TEST

/* Of a segment that has left the index, and not the disk, a start after a kill has the pages. */
START_TEST(a_purge_while_a_segment_is_removed_is_noted)
{
    struct source_waiter waiter;
    unsigned i = 0;

    shelf_begin();
    ck_assert(shelf_open());
    disk_model_hang_from("unlinkat");
    for (; !disk_model_hangs(); i++) {
        shelf_offer(name_of(i), 200000);
        while (shelf_count(STORE_WRITTEN) <= i && !disk_model_hangs())
            unit_pause();
    }
    ck_assert_uint_eq(shelf_count(STORE_EVICTED), 1);
    ck_assert(!is_purged_at_once(name_of(0), &waiter));
    ck_assert_uint_ne(waiter.number, 0);
    (void)store_forget_waiter(shelf.store, &waiter);
    store_outdate(shelf.store, span_str(name_of(0)), span_of(NULL, 0), true);
    store_outdate(shelf.store, span_str(URL "none"), span_of(NULL, 0), true);
    disk_model_hang(false);
    shelf_await_sync();
    ck_assert_uint_eq(shelf_count(STORE_PURGES), 2);
    store_settle(shelf.store);
    ck_assert(is_purged_at_once(name_of(0), &waiter));
    ck_assert_uint_eq(waiter.number, 0);
}
END_TEST

/* The folder is synced before a purge of what is gone is answered without a mark. */
START_TEST(a_purge_of_a_removed_segment_holds_after_a_power_failure)
{
    char folder[sizeof(shelf.folder)];
    struct source_waiter waiter;
    uint64_t draws = 7;
    size_t count;

    shelf_begin();
    ck_assert(shelf_open());
    shelf_close();
    lost_writes_record(shelf.folder);
    ck_assert(shelf_open());
    for (unsigned i = 0; shelf_count(STORE_EVICTED) == 0; i++)
        put(name_of(i), 200000);
    ck_assert(!shelf_has(name_of(0), 200000));
    ck_assert(is_purged_at_once(name_of(0), &waiter));
    count = lost_writes_count();
    snprintf(folder, sizeof(folder), "%s", shelf.folder);
    shelf_close();
    for (unsigned i = 0; i < 10; i++) {
        snprintf(shelf.folder, sizeof(shelf.folder), "%.50s.lost", folder);
        lost_writes_make(shelf.folder, count, &draws);
        ck_assert(shelf_open());
        ck_assert(!shelf_has(name_of(0), 200000));
        shelf_end();
    }
    lost_writes_record(NULL);
    snprintf(shelf.folder, sizeof(shelf.folder), "%s", folder);
}
END_TEST

/* Lets the clock run until the store is not used. */
static void
run_until_sick(void)
{
    while (!shelf_is_sick()) {
        shelf.now_us += SHELF_SECOND;
        unit_pause();
    }
}

START_TEST(a_purge_waits_for_a_disk_that_hangs_for_a_while)
{
    struct source_waiter waiter = {.notify = NULL}, later;

    shelf_begin();
    ck_assert(shelf_open());
    put(URL "1", 3000);
    put(URL "2", 3000);
    put(URL "3", 3000);
    disk_model_hang(true);
    (void)store_mark(shelf.store, CACHE_BY_URL, false, span_str(URL "1"), span_of(NULL, 0), &some);
    shelf_ask_sync(&waiter);
    run_until_sick();
    while (!shelf_is_synced()) {
        shelf.now_us += SHELF_SECOND;
        unit_pause();
    }
    ck_assert(waiter.lost);
    /* From then on each is answered at once, as lost if it has left a mark. */
    ck_assert(is_purged_at_once(URL "2", &later));
    ck_assert(later.number && later.lost);
    ck_assert(is_purged_at_once(URL "4", &later));
    ck_assert(!later.number && !later.lost);
    ck_assert_int_eq(store_await_sync(shelf.store, 600 * SHELF_SECOND), STORE_SYNC_LOST);
    disk_model_hang(false);
    while (store_await_sync(shelf.store, 1000) != STORE_SYNCED)
        unit_pause();
    ck_assert(shelf_has(URL "3", 3000));
    ck_assert(!shelf_has(URL "1", 3000));
    shelf_kill();
    ck_assert(shelf_open());
    ck_assert(!shelf_has(URL "1", 3000));
    ck_assert(!shelf_has(URL "2", 3000));
    ck_assert(shelf_has(URL "3", 3000));
}
END_TEST

/* Of the marks that wait then some are kept, and beyond that all is purged. */
START_TEST(more_marks_than_are_kept_for_a_disk_that_hangs_purge_all)
{
    struct source_waiter waiter = {.notify = NULL};
    char tag[32];

    shelf_begin();
    shelf.max_bytes = (uint64_t)1 << 30;
    ck_assert(shelf_open());
    put(URL "1", 3000);
    disk_model_hang(true);
    (void)store_mark(shelf.store, CACHE_BY_TAG, false, span_str("tag"), span_of(NULL, 0), &some);
    shelf_ask_sync(&waiter);
    while (!shelf_is_synced()) {
        shelf.now_us += SHELF_SECOND;
        unit_pause();
    }
    for (unsigned i = 0; i <= 1 << 16; i++) {
        snprintf(tag, sizeof(tag), "tag-%u", i);
        (void)store_mark(shelf.store, CACHE_BY_TAG, false, span_str(tag), span_of(NULL, 0),
                         &some);
    }
    disk_model_hang(false);
    while (store_await_sync(shelf.store, 1000) != STORE_SYNCED)
        unit_pause();
    ck_assert(!shelf_has(URL "1", 3000));
    shelf_kill();
    ck_assert(shelf_open());
    ck_assert(!shelf_has(URL "1", 3000));
}
END_TEST

/* A purge, a read and a page hang, or the start, at the end or when it is handed over. */
START_TEST(a_store_is_left_in_time_while_its_disk_hangs)
{
    struct source_waiter waiter = {.notify = NULL}, later = {.number = SOURCE_ALL_MARKS};
    struct requester r = {.answer = CACHE_HIT};
    const bool starts = _i % 2, passes = _i >= 2;
    char path[100];
    int lock, ends[2];

    shelf_begin();
    shelf.reads_later = true;
    ck_assert(shelf_open());
    put(URL "1", 3000);
    put(URL "2", 3000);
    put(URL "3", 3000);
    if (starts) {
        shelf_close();
        shelf.opens_us = 1000;
        disk_model_hang_from("journal-");
        ck_assert(shelf_open());
    } else {
        disk_model_hang(true);
        ck_assert(shelf_begin_get(&r, URL "3"));
        shelf_offer(URL "4", 3000);
    }
    (void)store_mark(shelf.store, CACHE_BY_URL, false, span_str(URL "1"), span_of(NULL, 0), &some);
    shelf_ask_sync(&waiter);
    while (disk_model_hung() < (starts ? 1 : 3))
        unit_pause();
    shelf.now_us += STORE_LATE_US;
    if (passes) {
        ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
        store_prepare_hand_over(shelf.store);
        ck_assert(!store_hand_over(shelf.store, ends[0], 1000));
        ck_assert_int_eq(read(ends[1], path, 1), 0);
        close(ends[1]);
    } else {
        ck_assert(!store_leave(shelf.store, 1000));
    }
    ck_assert(shelf_is_synced() && waiter.lost);
    ck_assert(store_is_synced(shelf.store, &later) && later.lost);
    if (!starts)
        ck_assert_uint_eq(shelf_end_get(&r), WAITER_RETRY);
    snprintf(path, sizeof(path), "%s/lock", shelf.folder);
    lock = open(path, O_RDWR | O_CLOEXEC);
    ck_assert_int_ne(flock(lock, LOCK_EX | LOCK_NB), 0);
    close(lock);
    if (starts) { /* It is not used when the disk answers. */
        disk_model_hang(false);
        while (pthread_tryjoin_np(shelf.store->writer, NULL) != 0)
            unit_pause();
        shelf.store->has_writer = false;
        ck_assert_int_eq(store_stage(shelf.store), STORE_LEFT);
        ck_assert(is_purged_at_once(URL "1", &later) && later.lost);
    }
    /* The process ends now. */
    shelf_keep_files();
    disk_model_hang(false);
    shelf_close();
    shelf_take_kept_files();
    shelf.opens_us = 0;
    ck_assert(shelf_open());
    (void)shelf_has(URL "1", 3000);
    ck_assert(shelf_has(URL "2", 3000));
    ck_assert(shelf_has(URL "3", 3000));
    (void)shelf_has(URL "4", 3000);
}
END_TEST

/* At the start each response leaves a mark. */
START_TEST(marks_are_bounded_while_the_disk_hangs_at_the_start)
{
    char url[64];

    shelf_begin();
    ck_assert(shelf_open());
    put(URL "1", 3000);
    shelf_close();
    shelf.opens_us = 1000;
    disk_model_hang_from(".");
    ck_assert(shelf_open());
    while (!disk_model_hangs())
        unit_pause();
    for (unsigned i = 0; i <= 1 << 16; i++) {
        snprintf(url, sizeof(url), URL "-%u", i);
        store_outdate(shelf.store, span_str(url), span_of(NULL, 0), true);
    }
    ck_assert_uint_eq(shelf.store->pending_count, 1);
    ck_assert(!shelf.store->lost);
    disk_model_hang(false);
    shelf_await_sync();
    store_settle(shelf.store);
    ck_assert(!shelf_has(URL "1", 3000));
    put(URL "2", 3000);
    shelf_kill();
    shelf.opens_us = 0;
    ck_assert(shelf_open());
    ck_assert(!shelf_has(URL "1", 3000));
    ck_assert(shelf_has(URL "2", 3000));
}
END_TEST

START_TEST(a_page_that_a_disk_that_hangs_does_not_take_is_told)
{
    shelf_begin();
    ck_assert(shelf_open());
    put(URL "1", 3000);
    disk_model_hang(true);
    shelf_offer(URL "2", 3000);
    run_until_sick();
    ck_assert(strstr(shelf.said, "a page takes too long to be written"));
    disk_model_hang(false);
    store_settle(shelf.store);
    ck_assert(shelf_has(URL "1", 3000));
    ck_assert(shelf_has(URL "2", 3000));
}
END_TEST

/* Records that are not in the index yet are outdated as well. */
START_TEST(a_page_that_begins_to_vary_while_the_index_is_loaded)
{
    struct shelf_found got;
    struct object *object;

    shelf_begin();
    ck_assert(shelf_open());
    put(URL "1", 3000);
    put(URL "2", 3000);
    shelf_close();
    shelf.waits_us = 600 * SHELF_SECOND;
    disk_model_hang_from("segment-");
    ck_assert(shelf_open());
    while (!disk_model_hangs())
        unit_pause();
    object = shelf_object(URL "1", "x-a\n1:1", "", 100, INT64_MAX);
    ck_assert(store_offer(shelf.store, object, span_str("x-a"), store_begin_offer(shelf.store)));
    object_release(&object);
    disk_model_hang(false);
    store_settle(shelf.store);
    ck_assert(shelf_has(URL "2", 3000));
    got = shelf_get(URL "1", "", "X-A: 2\r\n");
    ck_assert_ptr_null(got.object);
    got = shelf_get(URL "1", "x-a\n1:1", "");
    ck_assert(got.begun);
    object_release(&got.object);
}
END_TEST

/* Something else has removed it, between the list of the segments and the look into it. */
START_TEST(a_segment_that_is_gone_has_no_purge_noted)
{
    struct source_waiter waiter;

    shelf_begin();
    ck_assert(shelf_open());
    put(URL "1", 210000);
    shelf_close();
    shelf.opens_us = 1000;
    disk_model_hang_from("journal-");
    ck_assert(shelf_open());
    while (!disk_model_hangs())
        unit_pause();
    ck_assert_int_eq(unlink(shelf_file("segment")), 0);
    disk_model_hang(false);
    store_settle(shelf.store);
    ck_assert(!shelf_has(URL "1", 210000));
    ck_assert_uint_eq(shelf_count(STORE_READ_ERRORS), 1);
    ck_assert(is_purged_at_once(URL "1", &waiter));
    ck_assert_uint_eq(waiter.number, 0);
}
END_TEST

START_TEST(the_error_of_a_look_at_an_open_file_is_told)
{
    const char *path;

    shelf_begin();
    ck_assert(shelf_open());
    shelf_close();
    path = shelf_file("journal");
    for (unsigned n = 1; n <= 2; n++) {
        faults_fail_at(n, EIO);
        errno = 0;
        ck_assert_int_lt(disk_open(AT_FDCWD, path, O_RDONLY), 0);
        ck_assert_int_eq(errno, EIO);
        ck_assert_str_eq(faults_failed(), n == 1 ? "fstat" : "fcntl");
    }
    faults_fail_at(0, 0);
}
END_TEST

START_TEST(terms_are_waited_for)
{
    shelf_begin();
    ck_assert(shelf_open());
    put(URL, 3000);
    disk_model_hang(true);
    store_set_terms(shelf.store, 7);
    ck_assert(!store_await_sync(shelf.store, 1000));
    disk_model_hang(false);
    ck_assert(store_await_sync(shelf.store, 600 * SHELF_SECOND));
    shelf_kill();
    shelf.terms = 7;
    ck_assert(shelf_open());
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
    while (!shelf_is_sick()) {
        got = shelf_get(URL, "", "");
        ck_assert(!got.begun || got.events == WAITER_RETRY);
    }
    disk_model_fail(0, 0, false);
    while (shelf_is_sick())
        unit_pause();
    ck_assert(shelf_has(URL, 3000));
}
END_TEST

/* ---- a power failure ------------------------------------------------------------------------- */

#define PAGES 60u
#define CRASHES 60u

/* What was done, by how much the disk had been given then (lost_writes.h); SIZE_MAX: not. */
static size_t put_by[PAGES], purged_by[PAGES];

static size_t
length_of(unsigned i)
{
    return 500 + (size_t)i * 7919 % 30000;
}

/* Pages are written, some are purged, and the journal begins anew. */
static void
work_on_record(void)
{
    for (unsigned i = 0; i < PAGES; i++) {
        char tag[32];

        snprintf(tag, sizeof(tag), "tag-%u", i);
        shelf_put_more(name_of(i), "", "", tag, length_of(i), INT64_MAX);
        put_by[i] = purged_by[i] = SIZE_MAX;
        if (i % 10 == 9) {
            /* What was written before is on disk after the next sync. */
            const size_t count = lost_writes_count();

            while (lost_writes_synced("segment-") < count)
                unit_pause();
            for (unsigned k = i - 9; k < i; k++)
                put_by[k] = lost_writes_count();
        }
        if (i % 7 == 5) {
            snprintf(tag, sizeof(tag), "tag-%u", i - 3);
            purge_tag_or_prefix(CACHE_BY_TAG, tag);
            purged_by[i - 3] = lost_writes_count();
            purge(name_of(i - 2));
            purged_by[i - 2] = lost_writes_count();
        }
        if (i % 20 == 11)
            for (unsigned k = 0; k < 700; k++) {
                snprintf(tag, sizeof(tag), "other-%u-%u", i, k);
                (void)store_mark(shelf.store, CACHE_BY_TAG, false, span_str(tag),
                                 span_of(NULL, 0), &some);
            }
    }
}

static void
look_after_crash(size_t count)
{
    ck_assert(shelf_open());
    ck_assert_msg(!strstr(shelf.said, "journal is damaged"), "%s after %zu", shelf.said, count);
    for (unsigned i = 0; i < PAGES; i++) {
        const bool there = shelf_has(name_of(i), length_of(i));

        if (purged_by[i] <= count)
            ck_assert_msg(!there, "page %u was purged, and is there after %zu", i, count);
        else if (put_by[i] <= count && purged_by[i] == SIZE_MAX)
            ck_assert_msg(there, "page %u was synced, and is lost after %zu", i, count);
    }
    shelf_put(URL, 3000);
    ck_assert(shelf_has(URL, 3000));
    shelf_close();
}

START_TEST(what_was_synced_survives_a_power_failure)
{
    char folder[sizeof(shelf.folder)];
    uint64_t draws = 7;
    size_t count;

    shelf_begin();
    /* It has a journal, and no segment, of which the last one would be cut. */
    ck_assert(shelf_open());
    shelf_close();
    lost_writes_record(shelf.folder);
    ck_assert(shelf_open());
    work_on_record();
    count = lost_writes_count();
    snprintf(folder, sizeof(folder), "%s", shelf.folder);
    shelf_close();
    for (unsigned i = 0; i < CRASHES; i++) {
        const size_t at = i ? unit_draw(&draws, (uint32_t)count) : count;

        snprintf(shelf.folder, sizeof(shelf.folder), "%.50s.lost", folder);
        shelf.said[0] = '\0';
        lost_writes_make(shelf.folder, at, &draws);
        look_after_crash(at);
        shelf_end();
    }
    lost_writes_record(NULL);
    snprintf(shelf.folder, sizeof(shelf.folder), "%s", folder);
}
END_TEST

static Suite *
unit_suite(void)
{
    Suite *suite = suite_create("store on a bad disk");
    TCase *tc = tcase_create("faults");

    tcase_set_timeout(tc, 300);
    tcase_add_test(tc, each_call_goes_wrong_once);
    tcase_add_test(tc, a_journal_that_cannot_be_read_once_is_not_damaged);
    tcase_add_test(tc, a_segment_that_cannot_be_read_once_is_not_cut);
    tcase_add_loop_test(tc, a_call_that_fails_finds_no_damage, 0, 2);
    tcase_add_test(tc, all_calls_fail_from_one_on);
    suite_add_tcase(suite, tc);
    tc = tcase_create("others");
    tcase_set_timeout(tc, 300);
    tcase_add_checked_fixture(tc, NULL, tear_down);
    tcase_add_test(tc, a_full_disk_loses_the_oldest_pages_at_the_start);
    tcase_add_test(tc, a_full_disk_makes_the_store_smaller);
    tcase_add_test(tc, a_file_system_that_becomes_read_only);
    tcase_add_test(tc, a_purge_that_no_journal_takes_is_answered_so);
    tcase_add_test(tc, a_journal_that_cannot_begin_anew_goes_on);
    tcase_add_test(tc, a_store_that_another_process_keeps_is_not_used);
    tcase_add_test(tc, a_successor_whose_store_cannot_be_opened_serves_without_it);
    tcase_add_test(tc, a_successor_that_cannot_remove_the_segments_answers_so);
    tcase_add_test(tc, a_successor_that_could_not_list_the_segments_removes_them);
    tcase_add_test(tc, a_successor_that_cannot_read_the_journal_is_not_opened);
    tcase_add_test(tc, a_daemon_that_ends_before_it_has_the_store_has_noted_nothing);
    tcase_add_test(tc, a_disk_that_hangs_is_left_until_it_answers);
    tcase_add_loop_test(tc, a_disk_that_hangs_has_no_request_wait_for_longer_than_the_first, 0, 2);
    tcase_add_test(tc, a_journal_that_begins_anew_on_a_disk_that_hangs_delays_no_request);
    tcase_add_loop_test(tc, a_disk_that_hangs_at_the_start_delays_that_for_a_while, 0, 2);
    tcase_add_test(tc, a_disk_that_hangs_delays_purges_of_what_it_has_alone);
    tcase_add_test(tc, a_purge_of_what_is_gone_already_waits_for_its_mark);
    tcase_add_test(tc, what_is_dropped_when_it_is_read_is_purged_all_the_same);
    tcase_add_test(tc, what_too_many_marks_purge_is_noted);
    tcase_add_test(tc, a_purge_while_a_segment_is_removed_is_noted);
    tcase_add_test(tc, a_purge_of_a_removed_segment_holds_after_a_power_failure);
    tcase_add_test(tc, a_purge_waits_for_a_disk_that_hangs_for_a_while);
    tcase_add_test(tc, more_marks_than_are_kept_for_a_disk_that_hangs_purge_all);
    tcase_add_loop_test(tc, a_store_is_left_in_time_while_its_disk_hangs, 0, 4);
    tcase_add_test(tc, marks_are_bounded_while_the_disk_hangs_at_the_start);
    tcase_add_test(tc, a_page_that_a_disk_that_hangs_does_not_take_is_told);
    tcase_add_test(tc, a_page_that_begins_to_vary_while_the_index_is_loaded);
    tcase_add_test(tc, a_segment_that_is_gone_has_no_purge_noted);
    tcase_add_test(tc, the_error_of_a_look_at_an_open_file_is_told);
    tcase_add_test(tc, terms_are_waited_for);
    tcase_add_test(tc, reads_that_fail_have_it_left);
    tcase_add_test(tc, what_was_synced_survives_a_power_failure);
    suite_add_tcase(suite, tc);
    return suite;
}
