/* A store from its opening to its end: what it keeps over restarts, and what it drops. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "store/disk_journal.h"
#include "store/disk_record.h"
#include "store/disk_ring.h"
#include "store/disk_store.h"
#include "tests/unit/cache/purge.h"
#include "tests/unit/store/shelf.h"

#define URL "http://origin.test/page"

static const struct source_marked some = {.marked = true};

static void
set_up(void)
{
    shelf_begin();
    ck_assert(shelf_open());
}

/* Nothing is read at once, so that the ring reads. */
static void
set_up_ring(void)
{
    shelf_begin();
    shelf.reads_later = true;
    ck_assert(shelf_take_ring());
    ck_assert(shelf_open());
}

static void
reopen(void)
{
    shelf_close();
    ck_assert(shelf_open());
}

START_TEST(an_object_is_there_after_an_end_and_after_a_kill)
{
    ck_assert(!shelf_has(URL, 0));
    shelf_put(URL, 20000);
    ck_assert(shelf_has(URL, 20000));
    reopen();
    ck_assert(shelf_has(URL, 20000));
    shelf_put(URL "2", 30);
    shelf_kill();
    ck_assert(shelf_open());
    ck_assert(shelf_has(URL, 20000));
    ck_assert(shelf_has(URL "2", 30));
    ck_assert(!shelf_has(URL "3", 30));
    ck_assert_uint_eq(shelf_count(STORE_DAMAGED), 0);
    reopen();
    ck_assert_uint_eq(shelf_objects(), 2);
}
END_TEST

START_TEST(bodies_of_all_lengths)
{
    static const size_t lengths[] = {0,     1,      15,     16,     262143,
                                     262144, 262145, 1 << 20, (1 << 20) + 1};
    char url[64];

    shelf_close();
    shelf.max_bytes = 256 << 20;
    ck_assert(shelf_open());
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        snprintf(url, sizeof(url), URL "%zu", lengths[i]);
        shelf_put(url, lengths[i]);
    }
    for (unsigned round = 0; round < 2; round++, reopen())
        for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
            snprintf(url, sizeof(url), URL "%zu", lengths[i]);
            ck_assert(shelf_has(url, lengths[i]));
        }
}
END_TEST

/* A record without a body ends with its head, which has no checksum of a part. */
START_TEST(empty_bodies)
{
    const size_t least = strlen(URL);
    char url[sizeof(URL) + 600] = URL;

    shelf_close();
    shelf.reads_later = true;
    ck_assert(shelf_open());
    for (size_t len = least; len < least + 600; len++) {
        url[len] = 'a';
        shelf_put(url, 0);
    }
    reopen();
    for (size_t len = least + 600; len > least; len--) {
        ck_assert(shelf_has(url, 0));
        url[len - 1] = '\0';
    }
}
END_TEST

START_TEST(the_parts_of_an_object)
{
    struct shelf_found got;

    shelf_put_more(URL, "", "", "one two", 10, 50 * SHELF_SECOND);
    shelf.now_us += 7 * SHELF_SECOND;
    shelf.wall_us += 7 * SHELF_SECOND;
    reopen();
    got = shelf_get(URL, "", "");
    ck_assert_ptr_nonnull(got.object);
    ck_assert_uint_eq(got.object->status, 200);
    ck_assert_uint_eq(got.object->fetch_us, 1234);
    ck_assert(span_equal(object_tags(got.object), span_str("one two")));
    ck_assert(span_equal(object_fields(got.object), span_str("Content-Type: text/plain\r\n")));
    ck_assert_int_eq(object_lifetime(got.object), 50 * SHELF_SECOND);
    ck_assert_int_eq(object_age(got.object, shelf.now_us), 7 * SHELF_SECOND);
    object_release(&got.object);
}
END_TEST

START_TEST(a_response_that_is_not_written_outdates)
{
    shelf_put(URL, 100);
    shelf_put_more(URL "2", "x-a\n1:1", "x-a", "", 100, INT64_MAX);
    store_outdate(shelf.store, span_str(URL), span_of(NULL, 0), false);
    store_outdate(shelf.store, span_str(URL "2"), span_str("x-a\n1:2"), false);
    store_outdate(shelf.store, span_str(URL "3"), span_of(NULL, 0), true);
    ck_assert(!shelf_has(URL, 100));
    ck_assert(store_may_have(shelf.store, span_str(URL "2"), span_str("x-a\n1:1")));
    store_outdate(shelf.store, span_str(URL "2"), span_str("x-a\n1:2"), true);
    reopen();
    ck_assert(!shelf_has(URL, 100));
    ck_assert(!store_may_have(shelf.store, span_str(URL "2"), span_str("x-a\n1:1")) ||
              !shelf_get(URL "2", "x-a\n1:1", "").object);
}
END_TEST

START_TEST(a_later_object_replaces)
{
    shelf_put(URL, 100);
    shelf_put(URL, 200);
    ck_assert(shelf_has(URL, 200));
    reopen();
    ck_assert(shelf_has(URL, 200));
    shelf_put(URL, 50);
    shelf_kill();
    ck_assert(shelf_open());
    ck_assert(shelf_has(URL, 50));
    ck_assert_uint_eq(shelf_objects(), 1);
}
END_TEST

START_TEST(files_are_for_their_user_alone)
{
    struct stat st;

    shelf_put(URL, 100);
    ck_assert_int_eq(stat(shelf_file("segment"), &st), 0);
    ck_assert_uint_eq(st.st_mode & 0777, 0600);
    ck_assert_int_eq(stat(shelf_file("journal"), &st), 0);
    ck_assert_uint_eq(st.st_mode & 0777, 0600);
}
END_TEST

static unsigned lock_refusals;

/* In place of the C library's. */
int
flock(int fd, int operation)
{
    if (lock_refusals) {
        lock_refusals--;
        errno = EWOULDBLOCK;
        return -1;
    }
    return (int)syscall(SYS_flock, fd, operation);
}

START_TEST(one_that_only_looks_has_the_lock_for_a_moment)
{
    shelf_close();
    lock_refusals = 3;
    ck_assert(shelf_open());
    ck_assert_uint_eq(lock_refusals, 0);
}
END_TEST

START_TEST(one_process_at_a_time)
{
    struct store *const first = shelf.store;
    struct cache *const cache = shelf.cache;
    struct object *object;

    ck_assert(!shelf_open());
    ck_assert_str_eq(shelf.said, "another process uses it");
    shelf.store = first;
    shelf.cache = cache;
    shelf_put(URL, 100);
    /* One that waits has it when the other leaves, and what was purged before then holds. */
    shelf.waits_us = 600 * SHELF_SECOND;
    ck_assert(shelf_open());
    ck_assert(!shelf_has(URL, 100));
    store_mark(shelf.store, CACHE_BY_URL, false, span_str(URL "2"), span_of(NULL, 0), &some);
    object = shelf_object(URL, "", "", 1, 1);
    ck_assert(!store_offer(shelf.store, object, span_of(NULL, 0),
                           store_begin_offer(shelf.store)));
    object_release(&object);
    ck_assert(store_leave(first, STORE_FOREVER));
    store_settle(shelf.store);
    ck_assert(shelf_has(URL, 100));
    store_close(first);
    cache_destroy(cache);
}
END_TEST

/* ---- purges ---------------------------------------------------------------------------------- */

static void
purge(enum cache_by kind, bool soft, const char *name, const char *scope)
{
    const struct source_marked before =
        store_mark(shelf.store, kind, soft, span_str(name), span_str(scope), NULL);

    (void)store_mark(shelf.store, kind, soft, span_str(name), span_str(scope), &before);
    shelf_await_sync();
}

START_TEST(purges_hold_at_once_and_after_a_kill)
{
    static const struct {
        enum cache_by kind;
        const char *name, *scope;
        bool purged;
    } rows[] = {
        {CACHE_BY_URL, URL, "", true},
        {CACHE_BY_URL, URL "2", "", false},
        {CACHE_BY_PREFIX, "http://origin.test/", "", true},
        {CACHE_BY_PREFIX, "", "", true},
        {CACHE_BY_PREFIX, "http://other.test/", "", false},
        {CACHE_BY_TAG, "two", "", true},
        {CACHE_BY_TAG, "three", "", false},
        {CACHE_BY_TAG, "two", "http://origin.test/", true},
        {CACHE_BY_TAG, "two", "http://other.test/", false},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        shelf_put_more(URL, "", "", "one two", 100, 100 * SHELF_SECOND);
        purge(rows[i].kind, false, rows[i].name, rows[i].scope);
        ck_assert_int_eq(shelf_has(URL, 100), !rows[i].purged);
        shelf_kill();
        ck_assert(shelf_open());
        ck_assert_int_eq(shelf_has(URL, 100), !rows[i].purged);
        /* What is stored later is not concerned, over a restart either. */
        shelf_put_more(URL, "", "", "one two", 120, 100 * SHELF_SECOND);
        ck_assert(shelf_has(URL, 120));
        reopen();
        ck_assert(shelf_has(URL, 120));
    }
}
END_TEST

START_TEST(a_soft_purge_expires)
{
    struct shelf_found got;

    shelf_put(URL, 100);
    shelf.now_us += 9 * SHELF_SECOND;
    shelf.wall_us += 9 * SHELF_SECOND;
    purge(CACHE_BY_URL, true, URL, "");
    shelf_kill();
    ck_assert(shelf_open());
    got = shelf_get(URL, "", "");
    ck_assert_ptr_nonnull(got.object);
    ck_assert(!object_is_fresh(got.object, shelf.now_us));
    ck_assert_int_eq(object_lifetime(got.object), 9 * SHELF_SECOND);
    object_release(&got.object);
}
END_TEST

/* The wall clock is set before the purge, so that it seems to be later than it is, and behind it. */
START_TEST(a_soft_purge_expires_whatever_the_wall_clock_does)
{
    static const int64_t steps[] = {-100000, 0, 100000};
    struct shelf_found got;

    for (size_t i = 0; i < 9; i++) {
        shelf_put_more(URL, "", "", "", 100, 600 * SHELF_SECOND);
        shelf.now_us += 9 * SHELF_SECOND;
        shelf.wall_us += (9 + steps[i / 3]) * SHELF_SECOND;
        purge(CACHE_BY_PREFIX, true, "", "");
        shelf.wall_us += steps[i % 3] * SHELF_SECOND;
        reopen();
        got = shelf_get(URL, "", "");
        ck_assert_ptr_nonnull(got.object);
        ck_assert_int_eq(object_age(got.object, shelf.now_us), 9 * SHELF_SECOND);
        ck_assert_msg(!object_is_fresh(got.object, shelf.now_us), "%zu", i);
        object_release(&got.object);
    }
}
END_TEST

START_TEST(what_was_offered_before_a_purge_is_not_written_after_it)
{
    struct object *object = shelf_object(URL, "", "tag", 100, INT64_MAX);
    const uint64_t position = store_begin_offer(shelf.store);

    purge(CACHE_BY_TAG, false, "tag", "");
    ck_assert(store_offer(shelf.store, object, span_of(NULL, 0), position));
    store_settle(shelf.store);
    ck_assert(!shelf_has(URL, 100));
    reopen();
    ck_assert(!shelf_has(URL, 100));
    object_release(&object);
}
END_TEST

/* It is written between the two calls, and not put into the index. */
START_TEST(what_the_first_call_has_marked_is_noted_by_the_second)
{
    struct object *object = shelf_object(URL, "", "", 100, INT64_MAX);
    const uint64_t position = store_begin_offer(shelf.store);
    struct source_marked before =
        store_mark(shelf.store, CACHE_BY_URL, false, span_str(URL), span_of(NULL, 0), NULL);

    ck_assert(before.marked);
    ck_assert_uint_eq(before.count, 0);
    ck_assert(store_offer(shelf.store, object, span_of(NULL, 0), position));
    store_settle(shelf.store);
    ck_assert(!shelf_has(URL, 100));
    (void)store_mark(shelf.store, CACHE_BY_URL, false, span_str(URL), span_of(NULL, 0),
                     &before);
    shelf_await_sync();
    ck_assert_uint_eq(shelf_count(STORE_PURGES), 1);
    shelf_kill();
    ck_assert(shelf_open());
    ck_assert(!shelf_has(URL, 100));
    object_release(&object);
}
END_TEST

START_TEST(a_purge_behind_the_end_is_not_said_to_be_noted)
{
    struct source_waiter waiter = {.notify = NULL};

    shelf_put(URL, 3000);
    purge(CACHE_BY_TAG, false, "some", "");
    ck_assert(store_leave(shelf.store, STORE_FOREVER));
    waiter.number = SOURCE_ALL_MARKS;
    ck_assert(store_is_synced(shelf.store, &waiter));
    ck_assert(!waiter.lost);
    ck_assert_int_eq(store_await_sync(shelf.store, 0), STORE_SYNCED);
    (void)store_mark(shelf.store, CACHE_BY_URL, false, span_str(URL), span_of("", 0), NULL);
    (void)store_mark(shelf.store, CACHE_BY_URL, false, span_str(URL), span_of("", 0), &some);
    waiter.number = SOURCE_ALL_MARKS;
    ck_assert(store_is_synced(shelf.store, &waiter));
    ck_assert(waiter.lost);
    ck_assert_int_eq(store_await_sync(shelf.store, 0), STORE_SYNC_LOST);
}
END_TEST

START_TEST(a_purge_of_what_is_not_there_is_not_noted)
{
    shelf_put(URL, 100);
    purge(CACHE_BY_URL, false, URL "2", "");
    purge(CACHE_BY_URL, true, URL "2", "");
    ck_assert_uint_eq(shelf_count(STORE_PURGES), 0);
    purge(CACHE_BY_URL, true, URL, "");
    ck_assert_uint_eq(shelf_count(STORE_PURGES), 1);
    purge(CACHE_BY_URL, false, URL, "");
    ck_assert_uint_eq(shelf_count(STORE_PURGES), 2);
    purge(CACHE_BY_URL, false, URL, "");
    ck_assert_uint_eq(shelf_count(STORE_PURGES), 2);
    /* While an object is being offered, what will be written is not known. */
    (void)store_begin_offer(shelf.store);
    purge(CACHE_BY_URL, false, URL, "");
    ck_assert_uint_eq(shelf_count(STORE_PURGES), 3);
    store_drop_offer(shelf.store);
}
END_TEST

/* Has a purge of this URL a mark to be noted? */
static bool
leaves_mark(const char *url)
{
    const struct source_marked before =
        store_mark(shelf.store, CACHE_BY_URL, false, span_str(url), span_of("", 0), NULL);
    const struct source_marked now =
        store_mark(shelf.store, CACHE_BY_URL, false, span_str(url), span_of("", 0), &before);

    ck_assert(now.marked == (now.number != 0));
    return now.number;
}

/* A later start may find the record, while its segment is there: one from before, or a new one. */
START_TEST(after_damage_a_purge_of_that_url_is_noted_and_of_no_other)
{
    char url[64];

    shelf_put(URL, 3000);
    if (_i == 0)
        shelf_close();
    shelf_flip(shelf_file("segment"), 1000);
    if (_i == 0)
        ck_assert(shelf_open());
    shelf_put(URL "2", 3000);
    ck_assert(!shelf_has(URL, 3000));
    ck_assert_uint_eq(shelf_count(STORE_DAMAGED), 1);
    ck_assert(!leaves_mark(URL "3"));
    ck_assert(leaves_mark(URL "2"));
    shelf_await_sync();
    ck_assert(!leaves_mark(URL "2"));
    ck_assert(leaves_mark(URL));
    shelf_await_sync();
    ck_assert(leaves_mark(URL));
    for (unsigned i = 0; i < 90; i++) {
        snprintf(url, sizeof(url), URL "-%u", i);
        shelf_put(url, 200000);
    }
    shelf_await_sync();
    ck_assert(!leaves_mark(URL));
}
END_TEST

START_TEST(a_page_that_is_purged_after_damage_does_not_come_back)
{
    shelf_put(URL, 3000);
    shelf_flip(shelf_file("segment"), 1000);
    ck_assert(!shelf_has(URL, 3000));
    ck_assert(leaves_mark(URL));
    shelf_await_sync();
    shelf_flip(shelf_file("segment"), 1000);
    shelf_kill();
    ck_assert(shelf_open());
    ck_assert(!shelf_has(URL, 3000));
}
END_TEST

START_TEST(many_prefixes_purge_more_than_they_name)
{
    char prefix[64];

    shelf_put(URL, 100);
    for (unsigned i = 0; i < 300; i++) {
        snprintf(prefix, sizeof(prefix), "http://other.test/%u/", i);
        store_mark(shelf.store, CACHE_BY_PREFIX, false, span_str(prefix), span_of(NULL, 0),
                   &some);
    }
    shelf_await_sync();
    ck_assert(!shelf_has(URL, 100));
    shelf_put(URL, 100);
    shelf_kill();
    ck_assert(shelf_open());
    ck_assert(shelf_has(URL, 100));
}
END_TEST

START_TEST(many_tags_are_remembered)
{
    char tag[32];

    shelf_close();
    shelf.max_bytes = 256 << 20;
    ck_assert(shelf_open());
    shelf_put_more(URL, "", "", "t99999", 100, INT64_MAX);
    shelf_put_more(URL "2", "", "", "u", 100, INT64_MAX);
    for (unsigned i = 0; i < 100000; i++) {
        snprintf(tag, sizeof(tag), "t%u", i);
        store_mark(shelf.store, CACHE_BY_TAG, false, span_str(tag), span_of(NULL, 0), &some);
    }
    shelf_await_sync();
    shelf_kill();
    ck_assert(shelf_open());
    ck_assert(!shelf_has(URL, 100));
    ck_assert(shelf_has(URL "2", 100));
}
END_TEST

/* More than the journal has space for; it is one of the files that have a bound. */
START_TEST(more_tags_than_there_is_space_for_purge_all)
{
    char name[300];

    for (unsigned i = 0; i < 800; i++) {
        snprintf(name, sizeof(name), URL "%u", i);
        shelf_put(name, 20000);
    }
    for (unsigned i = 0; i < 40000; i++) {
        snprintf(name, sizeof(name), "t%u", i);
        store_mark(shelf.store, CACHE_BY_TAG, false, span_str(name), span_of(NULL, 0), &some);
        if (i % 500 == 0) {
            shelf_await_sync();
            store_settle(shelf.store);
            ck_assert_uint_le(shelf_bytes(), STORE_LEAST);
        }
    }
    ck_assert(!shelf_has(URL "799", 20000));
    shelf_put(URL, 100);
    /* Prefixes are long. */
    for (unsigned i = 0; i < 2000; i++) {
        memset(name, 'a', sizeof(name));
        snprintf(name, sizeof(name), "http://other.test/%u", i % 200);
        name[strlen(name)] = 'b';
        store_mark(shelf.store, CACHE_BY_PREFIX, false, span_of(name, sizeof(name)),
                   span_of(NULL, 0), &some);
        if (i % 100 == 0)
            shelf_await_sync();
    }
    shelf_await_sync();
    ck_assert_uint_le(shelf_bytes(), STORE_LEAST);
    ck_assert(shelf_has(URL, 100));
    shelf_kill();
    ck_assert(shelf_open());
    ck_assert(!shelf_has(URL "799", 20000));
    ck_assert(shelf_has(URL, 100));
}
END_TEST

/* ---- clocks ---------------------------------------------------------------------------------- */

START_TEST(the_age_is_right_whatever_the_wall_clock_does)
{
    struct shelf_found got;

    shelf_put(URL, 100);
    shelf.now_us += 10 * SHELF_SECOND;
    shelf.wall_us -= 5000 * SHELF_SECOND;
    reopen();
    got = shelf_get(URL, "", "");
    ck_assert_ptr_nonnull(got.object);
    ck_assert_int_eq(object_age(got.object, shelf.now_us), 10 * SHELF_SECOND);
    object_release(&got.object);
}
END_TEST

static void
expect_expired(const char *url, int64_t age_us)
{
    struct shelf_found got = shelf_get(url, "", "");

    ck_assert_ptr_nonnull(got.object);
    ck_assert(!object_is_fresh(got.object, shelf.now_us));
    ck_assert_int_eq(object_lifetime(got.object), age_us);
    object_release(&got.object);
    purge_by(shelf.cache, CACHE_BY_URL, span_str(url));
}

START_TEST(a_soft_purge_holds_whatever_the_wall_clock_does)
{
    shelf_put(URL, 100);
    /* It was wrong at the purge, and is right later. */
    shelf.now_us += 10 * SHELF_SECOND;
    shelf.wall_us += 5000 * SHELF_SECOND;
    purge(CACHE_BY_URL, true, URL, "");
    expect_expired(URL, 10 * SHELF_SECOND);
    shelf.wall_us -= 4990 * SHELF_SECOND;
    shelf_kill();
    ck_assert(shelf_open());
    expect_expired(URL, 10 * SHELF_SECOND);
    /* The machine starts again, with a clock that has been set back. */
    shelf_close();
    shelf.boot = 4711;
    shelf.now_us = 5 * SHELF_SECOND;
    shelf.wall_us -= 5 * SHELF_SECOND;
    ck_assert(shelf_open());
    expect_expired(URL, 5 * SHELF_SECOND);
    shelf_close();
    shelf.wall_us += 20 * SHELF_SECOND;
    shelf.now_us += 20 * SHELF_SECOND;
    ck_assert(shelf_open());
    expect_expired(URL, 5 * SHELF_SECOND);
}
END_TEST

/* ---- variants -------------------------------------------------------------------------------- */

START_TEST(a_url_that_varies)
{
    struct shelf_found got;

    shelf_put_more(URL, "x-a\n1:1", "x-a", "", 100, INT64_MAX);
    reopen();
    /* The URL leads to a variant, whose names select another one: requests look up again. */
    got = shelf_get(URL, "", "X-A: 2\r\n");
    ck_assert(got.begun);
    ck_assert_uint_eq(got.events, WAITER_RETRY);
    /* Which is looked up by itself. */
    got = shelf_get(URL, "x-a\n1:1", "");
    ck_assert_uint_eq(got.events, WAITER_END);
    object_release(&got.object);
    got = shelf_get(URL, "other", "");
    ck_assert(!got.begun);
}
END_TEST

/* The index leads from the URL to a variant. */
START_TEST(a_damaged_variant_is_dropped_whichever_was_asked_for)
{
    struct shelf_found got;

    shelf_put_more(URL, "x-a\n1:1", "x-a", "", 100, INT64_MAX);
    shelf_flip(shelf_file("segment"), shelf_size(shelf_file("segment")) - 150);
    got = shelf_get(URL, "", "X-A: 1\r\n");
    ck_assert(got.begun);
    ck_assert_uint_eq(got.events, WAITER_RETRY);
    ck_assert_uint_eq(shelf_count(STORE_DAMAGED), 1);
    ck_assert(!store_may_have(shelf.store, span_str(URL), span_of(NULL, 0)));
    ck_assert(!store_may_have(shelf.store, span_str(URL), span_str("x-a\n1:1")));
}
END_TEST

/* ---- admission ------------------------------------------------------------------------------- */

START_TEST(a_page_is_admitted_at_its_second_request)
{
    ck_assert(!store_admits(shelf.store, 0x123456789abcdef0));
    ck_assert(store_admits(shelf.store, 0x123456789abcdef0));
    ck_assert(!store_admits(shelf.store, 0x223456789abcdef0));
    shelf_close();
    shelf.write_all = true;
    ck_assert(shelf_open());
    ck_assert(store_admits(shelf.store, 0x323456789abcdef0));
}
END_TEST

/* ---- the bound ------------------------------------------------------------------------------- */

/* Ten times what the store holds. */
START_TEST(the_size_is_a_bound_and_what_is_requested_stays)
{
    const unsigned count = 8400;
    const size_t len = 20000;
    struct store_stats stats;
    char url[64];
    unsigned there = 0;

    shelf_put(URL "hot", 5000);
    for (unsigned i = 0; i < count; i++) {
        snprintf(url, sizeof(url), URL "%u", i);
        shelf_offer(url, len);
        if (i % 20 == 19)
            store_settle(shelf.store);
        if (i % 200 == 0)
            ck_assert(shelf_has(URL "hot", 5000));
        store_get_stats(shelf.store, &stats);
        ck_assert_uint_le(stats.bytes, STORE_LEAST);
    }
    ck_assert_uint_gt(stats.bytes, STORE_LEAST / 100 * 95);
    ck_assert_uint_gt(stats.counts[STORE_REINSERTED], 0);
    ck_assert_uint_gt(stats.counts[STORE_EVICTED], 7000);
    /* What was admitted, and what was written again. */
    ck_assert_uint_lt(stats.written_bytes,
                      (count * len + stats.counts[STORE_REINSERTED] * 5000) / 100 * 105);
    reopen();
    ck_assert(shelf_has(URL "hot", 5000));
    for (unsigned i = 0; i < count; i++) {
        snprintf(url, sizeof(url), URL "%u", i);
        there += shelf_has(url, len);
    }
    ck_assert_uint_gt(there, 700);
    ck_assert_uint_eq(shelf_objects(), there + 1);
}
END_TEST

/* ---- damage ---------------------------------------------------------------------------------- */

START_TEST(no_flipped_bit_leads_to_a_wrong_byte)
{
    uint64_t draws = 3;

    for (unsigned round = 0; round < 40; round++) {
        char path[200];
        unsigned there = 0;

        for (unsigned i = 0; i < 10; i++) {
            char url[64];

            snprintf(url, sizeof(url), URL "%u", i);
            shelf_put(url, 3000);
        }
        if (round % 2)
            shelf_kill();
        else
            shelf_close();
        snprintf(path, sizeof(path), "%s", shelf_file("segment"));
        shelf_flip(path, unit_draw(&draws, (uint32_t)shelf_size(path)));
        ck_assert(shelf_open());
        for (unsigned i = 0; i < 10; i++) {
            char url[64];

            snprintf(url, sizeof(url), URL "%u", i);
            there += shelf_has(url, 3000);
        }
        /* One record, or, where it is the segment's own head, the segment. */
        ck_assert(there >= 9 || shelf_count(STORE_DAMAGED) == 1);
        ck_assert(there == 10 || shelf_count(STORE_DAMAGED) >= 1);
        purge(CACHE_BY_PREFIX, false, "", "");
    }
}
END_TEST

START_TEST(a_file_that_is_cut_short)
{
    char path[200];

    for (unsigned i = 0; i < 10; i++) {
        char url[64];

        snprintf(url, sizeof(url), URL "%u", i);
        shelf_put(url, 3000);
    }
    shelf_close();
    snprintf(path, sizeof(path), "%s", shelf_file("segment"));
    shelf_cut(path, shelf_size(path) / 2);
    ck_assert(shelf_open());
    ck_assert_uint_ge(shelf_objects(), 4);
    ck_assert_uint_le(shelf_objects(), 5);
    ck_assert(shelf_has(URL "0", 3000));
    ck_assert(!shelf_has(URL "9", 3000));
    ck_assert_uint_eq(shelf_count(STORE_DAMAGED), 1);
    /* It has got a footer: the next start finds no damage. */
    reopen();
    ck_assert_uint_eq(shelf_count(STORE_DAMAGED), 0);
    ck_assert(shelf_has(URL "0", 3000));
}
END_TEST

/* Its body is one likely head behind the other, which the walk over a damaged record comes to. */
static struct object *
object_of_heads(size_t len)
{
    static char unit[DISK_UNIT * 7];
    const struct object_parts parts = {
        .url = span_str(URL "2"), .status = 200, .segmented = true};
    struct disk_head head = {.magic = DISK_RECORD_MAGIC,
                             .url_len = OBJECT_MAX_META,
                             .fields_len = OBJECT_MAX_META};
    struct object *object = object_make(&parts);

    head.head_len = (uint32_t)disk_head_len(&head);
    memcpy(unit, &head, sizeof(head));
    for (size_t at = 0; at + sizeof(unit) <= len; at += sizeof(unit))
        ck_assert_int_eq(object_append(object, unit, sizeof(unit), UINT64_MAX), 0);
    object_complete(object, 1234, shelf.now_us, object_lifetime_of(INT64_MAX));
    return object;
}

static char unopened[64]; /* the name of a file that cannot be opened; empty: each can be */

/* In place of the C library's. */
int
openat(int folder, const char *name, int flags, ...)
{
    mode_t mode = 0;
    va_list args;

    va_start(args, flags);
    if (flags & O_CREAT)
        mode = va_arg(args, mode_t);
    va_end(args);
    if (*unopened && strcmp(name, unopened) == 0) {
        errno = EMFILE;
        return -1;
    }
    return (int)syscall(SYS_openat, folder, name, flags, mode);
}

/* A later start may find it: marks are remembered meanwhile, until there is no space for it. */
START_TEST(a_segment_that_cannot_be_opened_once_does_not_come_back)
{
    const bool can_be_removed = _i == 0;
    char command[400];

    shelf_put_more(URL, "", "", "some", 3000, 600 * SHELF_SECOND);
    purge(CACHE_BY_TAG, false, "some", "");
    shelf_close();
    snprintf(unopened, sizeof(unopened), "%s", strrchr(shelf_file("segment"), '/') + 1);
    if (!can_be_removed) {
        /* A folder cannot be removed so. */
        snprintf(command, sizeof(command), "cd %s && mv %s aside && mkdir %s", shelf.folder,
                 unopened, unopened);
        ck_assert_int_eq(system(command), 0);
    }
    ck_assert(shelf_open());
    store_settle(shelf.store);
    ck_assert(strstr(shelf.said, "cannot be used, and is left as it is: Too many open files"));
    ck_assert_uint_eq(shelf_files("segment"), 1);
    /* More than the store takes, so that marks are forgotten; and more than the journal does. */
    for (unsigned i = 0; i < 90; i++) {
        char url[64];

        snprintf(url, sizeof(url), URL "-%u", i);
        shelf_put(url, 200000);
    }
    ck_assert_uint_gt(shelf_count(STORE_EVICTED), 0);
    for (unsigned i = 0; i < 3000; i++)
        (void)store_mark(shelf.store, CACHE_BY_TAG, false, span_str("other"), span_of("", 0),
                         &some);
    shelf_await_sync();
    snprintf(command, sizeof(command), "test -%c %s/%s", can_be_removed ? 'e' : 'f', shelf.folder,
             unopened);
    ck_assert_int_ne(system(command), 0);
    if (!can_be_removed) {
        snprintf(command, sizeof(command), "cd %s && rmdir %s && mv aside %s", shelf.folder,
                 unopened, unopened);
        ck_assert_int_eq(system(command), 0);
    }
    unopened[0] = '\0';
    shelf.max_bytes = 4 * STORE_LEAST;
    reopen();
    ck_assert(!shelf_has(URL, 3000));
}
END_TEST

START_TEST(a_segment_that_cannot_be_opened_once_keeps_its_pages)
{
    shelf_put(URL, 3000);
    shelf_close();
    snprintf(unopened, sizeof(unopened), "%s", strrchr(shelf_file("segment"), '/') + 1);
    ck_assert(shelf_open());
    store_settle(shelf.store);
    ck_assert(!shelf_has(URL, 3000));
    ck_assert_uint_eq(shelf_count(STORE_DAMAGED), 0);
    ck_assert_uint_eq(shelf_count(STORE_READ_ERRORS), 1);
    unopened[0] = '\0';
    reopen();
    ck_assert(shelf_has(URL, 3000));
}
END_TEST

/* Nothing waits for a writer of a FIFO, and no link is followed. */
START_TEST(what_is_no_regular_file_is_refused)
{
    static const char *const makes[] = {"mkfifo", "mkdir", "ln -s /dev/null"};
    static const struct {
        const char *name;
        bool starts;
    } files[] = {{"segment-0000000000000077", true},
                 {"journal-0000000000000077", false},
                 {"lock", false}};
    char command[200];

    shelf_put(URL, 3000);
    for (size_t i = 0; i < 3; i++)
        for (size_t k = 0; k < 3; k++) {
            shelf_close();
            snprintf(command, sizeof(command), "cd %s && rm -f lock && %s %s", shelf.folder,
                     makes[k], files[i].name);
            ck_assert_int_eq(system(command), 0);
            shelf.said[0] = '\0';
            ck_assert_int_eq(shelf_open(), files[i].starts);
            if (files[i].starts)
                store_settle(shelf.store);
            ck_assert_ptr_nonnull(strstr(shelf.said, files[i].name));
            ck_assert_ptr_nonnull(strstr(shelf.said, "it is no regular file"));
            shelf_close();
            snprintf(command, sizeof(command), "cd %s && (rm -f %s || rmdir %s) 2>/dev/null",
                     shelf.folder, files[i].name, files[i].name);
            ck_assert_int_eq(system(command), 0);
            ck_assert(shelf_open());
            ck_assert(shelf_has(URL, 3000));
        }
}
END_TEST

/* No later one has a higher number. */
START_TEST(a_journal_of_the_last_number_is_lost)
{
    char command[200];

    for (unsigned i = 0; i < 2; i++) {
        shelf_put(URL, 3000);
        shelf_close();
        snprintf(command, sizeof(command), "cd %s && %s journal-* journal-ffffffffffffffff",
                 shelf.folder, i ? "cp" : "mv");
        ck_assert_int_eq(system(command), 0);
        ck_assert(shelf_open());
        ck_assert(!shelf_has(URL, 3000));
        ck_assert_uint_eq(shelf_files("journal"), 1);
        shelf_put(URL, 3000);
        purge(CACHE_BY_URL, false, URL, "");
        reopen();
        ck_assert_uint_eq(shelf_files("journal"), 1);
        ck_assert(!shelf_has(URL, 3000));
    }
}
END_TEST

START_TEST(a_walk_over_a_damaged_segment_is_bounded)
{
    struct object *object;
    char path[200];

    shelf_close();
    shelf.max_bytes = 256 << 20;
    ck_assert(shelf_open());
    shelf_put(URL "1", 3000);
    object = object_of_heads(3 << 20);
    ck_assert(store_offer(shelf.store, object, span_of(NULL, 0), store_begin_offer(shelf.store)));
    store_settle(shelf.store);
    object_release(&object);
    shelf_put(URL "3", 3000);
    shelf_kill();
    snprintf(path, sizeof(path), "%s", shelf_file("segment"));
    shelf_flip(path, shelf_size(path) - 3000 - (3 << 20) - 250);
    ck_assert(shelf_open());
    ck_assert_uint_eq(shelf_count(STORE_DAMAGED), 1);
    ck_assert(shelf_has(URL "1", 3000));
    ck_assert(!shelf_has(URL "3", 3000));
}
END_TEST

START_TEST(starts_in_succession_leave_no_short_segments)
{
    char url[64];

    for (unsigned i = 0; i < 20; i++) {
        snprintf(url, sizeof(url), URL "%u", i);
        shelf_put(url, 1000);
        if (i == 7)
            purge(CACHE_BY_URL, false, URL "3", "");
        if (i % 3)
            shelf_kill();
        else
            shelf_close();
        ck_assert(shelf_open());
    }
    ck_assert_uint_eq(shelf_files("segment"), 1);
    for (unsigned i = 0; i < 20; i++) {
        snprintf(url, sizeof(url), URL "%u", i);
        ck_assert_int_eq(shelf_has(url, 1000), i != 3);
    }
    reopen();
    ck_assert_uint_eq(shelf_files("segment"), 1);
    ck_assert_uint_eq(shelf_count(STORE_DAMAGED), 0);
    /* Nor does it grow without an end. */
    for (unsigned i = 0; i < 20; i++) {
        snprintf(url, sizeof(url), URL "%u", i);
        shelf_put(url, 100000);
        reopen();
    }
    ck_assert_uint_le(shelf_files("segment"), 11);
}
END_TEST

/* A process is killed when it has made the file of a segment. */
START_TEST(a_segment_that_was_only_begun_is_not_damaged)
{
    char path[200];

    for (unsigned i = 0; i < 2; i++) {
        shelf_put(URL, 3000);
        shelf_kill();
        snprintf(path, sizeof(path), "%s/segment-%s", shelf.folder,
                 i ? "0000000000000001" : "0fffffffffffffff");
        close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
        ck_assert(shelf_open());
        ck_assert_uint_eq(shelf_count(STORE_DAMAGED), i);
        ck_assert(shelf_has(URL, 3000));
        ck_assert_int_ne(access(path, F_OK), 0);
    }
}
END_TEST

START_TEST(segments_that_are_exchanged_are_dropped)
{
    char first[200], second[200], aside[200];

    shelf_put(URL, 210000); /* most of a segment */
    reopen();
    snprintf(first, sizeof(first), "%s", shelf_file("segment"));
    shelf_put(URL "2", 3000);
    shelf_close();
    snprintf(second, sizeof(second), "%s", shelf_file("segment"));
    ck_assert_str_ne(first, second);
    snprintf(aside, sizeof(aside), "%s/aside", shelf.folder);
    ck_assert_int_eq(rename(first, aside), 0);
    ck_assert_int_eq(rename(second, first), 0);
    ck_assert_int_eq(rename(aside, second), 0);
    ck_assert(shelf_open());
    ck_assert_uint_eq(shelf_objects(), 0);
    ck_assert_uint_eq(shelf_count(STORE_DAMAGED), 2);
    ck_assert(!shelf_has(URL, 210000));
}
END_TEST

START_TEST(a_journal_that_is_damaged_or_gone_purges_all)
{
    for (unsigned round = 0; round < 3; round++) {
        char path[200];

        shelf_put(URL, 3000);
        purge(CACHE_BY_TAG, false, "1", "");
        purge(CACHE_BY_TAG, false, "2", "");
        shelf_close();
        snprintf(path, sizeof(path), "%s", shelf_file("journal"));
        if (round == 0) {
            shelf_flip(path, 9);
        } else if (round == 1) {
            ck_assert_int_eq(remove(path), 0);
        } else {
            /* Both copies of the first of the two marks. */
            shelf_flip(path, shelf_marks_end(path) - 2 * JOURNAL_MARK_BYTES + 20);
            shelf_flip(path, shelf_marks_end(path) - JOURNAL_MARK_BYTES * 3 / 2 + 20);
        }
        ck_assert(shelf_open());
        ck_assert(!shelf_has(URL, 3000));
        ck_assert_uint_eq(shelf_files("segment"), 0);
    }
}
END_TEST

/* Wherever that is: what was purged is not known. */
START_TEST(a_journal_that_is_cut_short_purges_all)
{
    for (unsigned round = 0; round < 6; round++) {
        uint64_t end, size;
        char path[200];

        shelf_put(URL, 3000);
        shelf_put(URL "1", 3000);
        for (unsigned i = 0; i < 200 * round; i++)
            store_mark(shelf.store, CACHE_BY_TAG, false, span_str("some"), span_of(NULL, 0),
                       &some);
        purge(CACHE_BY_URL, false, URL, "");
        if (round % 2)
            shelf_kill();
        else
            shelf_close();
        snprintf(path, sizeof(path), "%s", shelf_file("journal"));
        end = shelf_marks_end(path);
        size = shelf_size(path);
        ck_assert_uint_gt(size, end);
        shelf_cut(path, (uint64_t[]){end - JOURNAL_MARK_BYTES, end, end - 8, size - 40,
                                     end - 3 * JOURNAL_MARK_BYTES, end - 100}[round]);
        ck_assert(shelf_open());
        ck_assert(strstr(shelf.said, "the journal is damaged"));
        ck_assert(!shelf_has(URL, 3000));
        ck_assert(!shelf_has(URL "1", 3000));
        ck_assert_uint_eq(shelf_count(STORE_DAMAGED), 1);
    }
}
END_TEST

/* A number for each is in the index. */
START_TEST(the_number_of_segments_is_a_bound)
{
    char url[64];

    shelf.store->log.most_segments = 7;
    for (unsigned i = 0; i < 30; i++) {
        snprintf(url, sizeof(url), URL "-%u", i);
        shelf_put(url, 200000);
        ck_assert_uint_le(shelf_files("segment"), 7);
    }
    ck_assert_uint_eq(shelf_count(STORE_WRITTEN), 30);
    ck_assert(shelf_has(url, 200000));
    ck_assert_uint_ge(shelf_objects(), 5);
}
END_TEST

START_TEST(what_a_review_refuses_is_removed)
{
    shelf_put(URL, 3000);
    /* Not where it had no memory. */
    shelf.refusal = HTTP_REASON_MEMORY;
    ck_assert(!shelf_has(URL, 3000));
    shelf.refusal = HTTP_REASON_NONE;
    ck_assert(shelf_has(URL, 3000));
    shelf.refusal = HTTP_REASON_SET_COOKIE;
    ck_assert(!shelf_has(URL, 3000));
    shelf.refusal = HTTP_REASON_NONE;
    ck_assert(!shelf_has(URL, 3000));
    ck_assert_uint_eq(shelf_objects(), 0);
}
END_TEST

START_TEST(other_terms_remove_all)
{
    shelf_put(URL, 3000);
    shelf_close();
    shelf.terms = 7;
    ck_assert(shelf_open());
    ck_assert(strstr(shelf.said, "rules about keys"));
    ck_assert(!shelf_has(URL, 3000));
    shelf_put(URL, 3000);
    reopen();
    ck_assert(shelf_has(URL, 3000));
}
END_TEST

START_TEST(terms_that_change_meanwhile)
{
    shelf_put(URL, 3000);
    store_set_terms(shelf.store, 7);
    purge(CACHE_BY_PREFIX, false, "", "");
    shelf_put(URL "2", 3000);
    shelf_kill();
    shelf.terms = 7;
    ck_assert(shelf_open());
    ck_assert(!shelf_has(URL, 3000));
    ck_assert(shelf_has(URL "2", 3000));
    store_set_terms(shelf.store, 8);
    shelf_await_sync();
    shelf_put(URL "2", 3000);
    shelf_kill();
    ck_assert(shelf_open());
    ck_assert(!shelf_has(URL "2", 3000));
}
END_TEST

/* As if the process had been killed in the middle of a reload. */
START_TEST(a_purge_before_other_terms_holds_with_them)
{
    shelf_put(URL, 3000);
    (void)store_mark(shelf.store, CACHE_BY_PREFIX, false, span_of(NULL, 0), span_of(NULL, 0),
                     &(struct source_marked){.marked = true});
    store_set_terms(shelf.store, 7);
    shelf_await_sync();
    shelf_kill();
    shelf.terms = 7;
    ck_assert(shelf_open());
    ck_assert(!shelf_has(URL, 3000));
}
END_TEST

/* As if the process had been killed before it had removed the segment. */
START_TEST(other_terms_hold_after_a_kill)
{
    char command[800], path[200];

    shelf_put(URL, 3000);
    purge(CACHE_BY_PREFIX, false, URL "/other/", "");
    purge(CACHE_BY_PREFIX, false, "", "");
    shelf_put(URL, 3000);
    for (unsigned i = 0; i < 5; i++)
        reopen();
    shelf_close();
    snprintf(path, sizeof(path), "%s", shelf_file("segment"));
    snprintf(command, sizeof(command), "cp %s %s/aside", path, shelf.folder);
    ck_assert_int_eq(system(command), 0);
    shelf.terms = 7;
    ck_assert(shelf_open());
    shelf_close();
    snprintf(command, sizeof(command), "mv %s/aside %s", shelf.folder, path);
    ck_assert_int_eq(system(command), 0);
    ck_assert(shelf_open());
    ck_assert(!shelf_has(URL, 3000));
    ck_assert_uint_eq(shelf_files("segment"), 0);
    /* Marks from before concern nothing of what is stored now. */
    shelf_put(URL "/other/", 100);
    ck_assert(shelf_has(URL "/other/", 100));
}
END_TEST

START_TEST(one_copy_of_a_mark_is_enough_and_a_torn_one_is_none)
{
    char path[200];

    shelf_put(URL, 3000);
    purge(CACHE_BY_URL, false, URL, "");
    shelf_close();
    snprintf(path, sizeof(path), "%s", shelf_file("journal"));
    shelf_flip(path, shelf_marks_end(path) - 20);
    ck_assert(shelf_open());
    ck_assert(!shelf_has(URL, 3000));
    shelf_put(URL, 3000);
    purge(CACHE_BY_TAG, false, "some", "");
    shelf_close();
    /* A mark that was being written when the process ended was not answered. */
    snprintf(path, sizeof(path), "%s", shelf_file("journal"));
    shelf_clear(path, shelf_marks_end(path) - 60, 60);
    ck_assert(shelf_open());
    ck_assert(shelf_has(URL, 3000));
    ck_assert_uint_eq(shelf_count(STORE_DAMAGED), 0);
}
END_TEST

static void
add_tests(Suite *suite, const char *name, void (*begin)(void))
{
    TCase *tc = tcase_create(name);

    tcase_add_checked_fixture(tc, begin, shelf_end);
    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, an_object_is_there_after_an_end_and_after_a_kill);
    tcase_add_test(tc, bodies_of_all_lengths);
    tcase_add_test(tc, empty_bodies);
    tcase_add_test(tc, the_parts_of_an_object);
    tcase_add_test(tc, a_response_that_is_not_written_outdates);
    tcase_add_test(tc, a_later_object_replaces);
    tcase_add_test(tc, files_are_for_their_user_alone);
    tcase_add_test(tc, one_process_at_a_time);
    tcase_add_test(tc, one_that_only_looks_has_the_lock_for_a_moment);
    tcase_add_test(tc, purges_hold_at_once_and_after_a_kill);
    tcase_add_test(tc, a_soft_purge_expires);
    tcase_add_test(tc, a_soft_purge_expires_whatever_the_wall_clock_does);
    tcase_add_test(tc, what_was_offered_before_a_purge_is_not_written_after_it);
    tcase_add_test(tc, what_the_first_call_has_marked_is_noted_by_the_second);
    tcase_add_test(tc, a_purge_behind_the_end_is_not_said_to_be_noted);
    tcase_add_test(tc, a_purge_of_what_is_not_there_is_not_noted);
    tcase_add_loop_test(tc, after_damage_a_purge_of_that_url_is_noted_and_of_no_other, 0, 2);
    tcase_add_test(tc, a_page_that_is_purged_after_damage_does_not_come_back);
    tcase_add_test(tc, many_prefixes_purge_more_than_they_name);
    tcase_add_test(tc, many_tags_are_remembered);
    tcase_add_test(tc, more_tags_than_there_is_space_for_purge_all);
    tcase_add_test(tc, the_age_is_right_whatever_the_wall_clock_does);
    tcase_add_test(tc, a_soft_purge_holds_whatever_the_wall_clock_does);
    tcase_add_test(tc, a_url_that_varies);
    tcase_add_test(tc, a_damaged_variant_is_dropped_whichever_was_asked_for);
    tcase_add_test(tc, a_page_is_admitted_at_its_second_request);
    tcase_add_test(tc, the_size_is_a_bound_and_what_is_requested_stays);
    tcase_add_test(tc, no_flipped_bit_leads_to_a_wrong_byte);
    tcase_add_test(tc, a_file_that_is_cut_short);
    tcase_add_loop_test(tc, a_segment_that_cannot_be_opened_once_does_not_come_back, 0, 2);
    tcase_add_test(tc, a_segment_that_cannot_be_opened_once_keeps_its_pages);
    tcase_add_test(tc, what_is_no_regular_file_is_refused);
    tcase_add_test(tc, a_journal_of_the_last_number_is_lost);
    tcase_add_test(tc, a_walk_over_a_damaged_segment_is_bounded);
    tcase_add_test(tc, segments_that_are_exchanged_are_dropped);
    tcase_add_test(tc, a_segment_that_was_only_begun_is_not_damaged);
    tcase_add_test(tc, starts_in_succession_leave_no_short_segments);
    tcase_add_test(tc, a_journal_that_is_damaged_or_gone_purges_all);
    tcase_add_test(tc, a_journal_that_is_cut_short_purges_all);
    tcase_add_test(tc, the_number_of_segments_is_a_bound);
    tcase_add_test(tc, what_a_review_refuses_is_removed);
    tcase_add_test(tc, other_terms_remove_all);
    tcase_add_test(tc, terms_that_change_meanwhile);
    tcase_add_test(tc, a_purge_before_other_terms_holds_with_them);
    tcase_add_test(tc, other_terms_hold_after_a_kill);
    tcase_add_test(tc, one_copy_of_a_mark_is_enough_and_a_torn_one_is_none);
    suite_add_tcase(suite, tc);
}

static Suite *
unit_suite(void)
{
    Suite *suite = suite_create("store");
    struct disk_ring *ring = disk_ring_make(16);

    add_tests(suite, "by threads", set_up);
    if (ring)
        add_tests(suite, "by a ring", set_up_ring);
    else
        printf("SKIP: by a ring: the kernel has no io_uring, or refuses it\n");
    disk_ring_free(ring);
    return suite;
}
