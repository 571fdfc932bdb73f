/*
 * A store that is read by a ring, on a disk that hangs, fails, or has less than it should: its files
 * are exchanged under the store's descriptors.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "store/disk_ring.h"
#include "store/store_lane.h"
#include "tests/unit/store/shelf.h"

#define URL "http://origin.test/page"
#define MOST 16

/* Descriptors of segments, and copies of what they were. */
static struct {
    int fd, copy;
} exchanged[MOST];
static unsigned exchanged_count;

/* They lead to this one, until restore(). */
static void
exchange(int other)
{
    DIR *folder = opendir("/proc/self/fd");
    char path[300], wanted[100];
    struct dirent *entry;

    ck_assert_ptr_nonnull(folder);
    snprintf(wanted, sizeof(wanted), "%s/segment-", shelf.folder);
    while ((entry = readdir(folder))) {
        const ssize_t n = readlinkat(dirfd(folder), entry->d_name, path, sizeof(path) - 1);

        path[n > 0 ? n : 0] = '\0';
        if (strncmp(path, wanted, strlen(wanted)) != 0)
            continue;
        ck_assert_uint_lt(exchanged_count, MOST);
        exchanged[exchanged_count].fd = atoi(entry->d_name);
        exchanged[exchanged_count].copy = dup(atoi(entry->d_name));
        exchanged_count++;
    }
    closedir(folder);
    ck_assert_uint_gt(exchanged_count, 0);
    for (unsigned i = 0; i < exchanged_count; i++)
        ck_assert_int_ge(dup2(other, exchanged[i].fd), 0);
}

static void
restore(void)
{
    while (exchanged_count) {
        exchanged_count--;
        dup2(exchanged[exchanged_count].copy, exchanged[exchanged_count].fd);
        close(exchanged[exchanged_count].copy);
    }
}

static void
set_up(void)
{
    shelf_begin();
    shelf.reads_later = true;
    ck_assert(shelf_take_ring());
    ck_assert(shelf_open());
}

static void
tear_down(void)
{
    restore();
    shelf_end();
}

START_TEST(the_ring_reads_what_is_not_longer_than_it_takes)
{
    shelf_close();
    shelf.max_bytes = 256 << 20;
    ck_assert(shelf_open());
    shelf_put(URL "1", 20000);
    shelf_put(URL "2", 1 << 20);
    shelf_put(URL "3", 2 << 20);
    ck_assert(shelf_has(URL "1", 20000));
    ck_assert(shelf_has(URL "2", 1 << 20));
    ck_assert_uint_eq(shelf_count(STORE_READ_BY_RING), 2);
    ck_assert(shelf_has(URL "3", 2 << 20));
    ck_assert_uint_eq(shelf_count(STORE_READ_BY_RING), 2);
    ck_assert_uint_eq(shelf_count(STORE_READ_BY_THREAD), 1);
    ck_assert_uint_eq(shelf_count(STORE_READ_AT_ONCE), 0);
}
END_TEST

/* Where the ring reads it, and a thread. */
START_TEST(a_long_body_stays_where_it_was_read)
{
    for (unsigned by_thread = 0; by_thread < 2; by_thread++) {
        struct object_place place = {0};
        struct shelf_found got;
        struct span run;

        shelf_close();
        shelf.max_bytes = 256 << 20;
        if (by_thread) {
            disk_ring_free(shelf.ring);
            shelf.ring = NULL;
        }
        ck_assert(shelf_open());
        shelf_put(URL, 300000);
        got = shelf_get(URL, "", "");
        ck_assert_ptr_nonnull(got.object);
        run = object_read(got.object, &place);
        ck_assert_uint_eq(run.len, 300000);
        ck_assert_uint_ge(object_size(got.object), 300000);
        ck_assert_uint_le(object_size(got.object), 300000 + 300000 / 8);
        object_release(&got.object);
        shelf_put(URL "2", 300000);
        ck_assert(shelf_has(URL "2", 300000));
        ck_assert_uint_eq(shelf_count(by_thread ? STORE_READ_BY_THREAD : STORE_READ_BY_RING), 2);
    }
}
END_TEST

/* All parts of a body that is read at once are verified first. */
START_TEST(nothing_is_published_before_a_damaged_last_part)
{
    struct shelf_found got;
    char path[200];

    shelf_close();
    shelf.max_bytes = 256 << 20;
    ck_assert(shelf_open());
    shelf_put(URL, 1 << 20);
    snprintf(path, sizeof(path), "%s", shelf_file("segment"));
    shelf_flip(path, shelf_size(path) - 100);
    got = shelf_get(URL, "", "");
    ck_assert(got.begun);
    ck_assert_uint_eq(got.events, WAITER_RETRY);
    ck_assert_uint_eq(shelf_count(STORE_DAMAGED), 1);
    ck_assert(!shelf_get(URL, "", "").begun);
}
END_TEST

START_TEST(what_the_kernel_has_is_read_at_once)
{
    shelf_close();
    shelf.reads_later = false;
    ck_assert(shelf_open());
    shelf_put(URL, 20000);
    shelf_put(URL "2", 20000);
    ck_assert(shelf_has(URL, 20000));
    ck_assert_uint_eq(shelf_count(STORE_READ_AT_ONCE), 1);
    ck_assert_uint_eq(shelf_count(STORE_READ_BY_RING), 0);
}
END_TEST

START_TEST(a_disk_that_hangs_is_left_until_it_answers)
{
    struct shelf_found got;
    char bytes[1 << 16] = "";
    int ends[2];

    shelf_put(URL, 3000);
    ck_assert_int_eq(pipe(ends), 0);
    exchange(ends[0]);
    /* So a probe of the disk, which is not read for it, takes too long as well. */
    shelf.tick_us = STORE_LATE_US;
    /* The request is sent back, though the read goes on. */
    got = shelf_get(URL, "", "");
    ck_assert(got.begun);
    ck_assert_uint_eq(got.events, WAITER_RETRY);
    ck_assert_uint_eq(shelf_count(STORE_READ_LATE), 1);
    ck_assert_uint_eq(disk_ring_under_way(shelf.ring), 1);
    ck_assert(shelf_is_sick());
    got = shelf_get(URL, "", "");
    ck_assert(!got.begun);
    restore();
    shelf.tick_us = 0;
    while (shelf_is_sick())
        unit_pause();
    ck_assert(shelf_has(URL, 3000));
    /* It writes to memory that is there still. */
    ck_assert_int_eq(write(ends[1], bytes, 5000), 5000);
    while (disk_ring_under_way(shelf.ring))
        (void)store_lane_turn(shelf.store, 0);
    close(ends[0]);
    close(ends[1]);
}
END_TEST

START_TEST(the_end_waits_for_reads_in_time)
{
    struct requester r = {.answer = CACHE_HIT};
    char bytes[1 << 16] = "";
    int ends[2];

    shelf_put(URL, 3000);
    ck_assert_int_eq(pipe(ends), 0);
    exchange(ends[0]);
    ck_assert(shelf_begin_get(&r, URL));
    (void)store_lane_turn(shelf.store, 0);
    ck_assert(store_leave(shelf.store, STORE_FOREVER));
    ck_assert(!store_end_reads(shelf.store, 1000));
    ck_assert_uint_eq(disk_ring_under_way(shelf.ring), 1);
    ck_assert_int_eq(write(ends[1], bytes, 5000), 5000);
    ck_assert(store_end_reads(shelf.store, STORE_FOREVER));
    ck_assert_uint_eq(shelf_end_get(&r), WAITER_RETRY);
    restore();
    close(ends[0]);
    close(ends[1]);
}
END_TEST

START_TEST(reads_that_fail_have_it_left)
{
    int memory = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
    struct shelf_found got;
    char byte;

    ck_assert_int_lt(pread(memory, &byte, 1, 64), 0);
    ck_assert_int_eq(errno, EIO);
    shelf_put(URL, 3000);
    exchange(memory);
    while (!shelf_is_sick()) {
        got = shelf_get(URL, "", "");
        ck_assert(!got.begun || got.events == WAITER_RETRY);
    }
    ck_assert_uint_ge(shelf_count(STORE_READ_ERRORS), 8);
    ck_assert_uint_eq(shelf_count(STORE_READ_LATE), 0);
    restore();
    while (shelf_is_sick())
        unit_pause();
    ck_assert(shelf_has(URL, 3000));
    close(memory);
}
END_TEST

START_TEST(a_record_that_is_cut_short_is_dropped)
{
    struct shelf_found got;

    shelf_put(URL, 3000);
    shelf_cut(shelf_file("segment"), 1000);
    got = shelf_get(URL, "", "");
    ck_assert(got.begun);
    ck_assert_uint_eq(got.events, WAITER_RETRY);
    ck_assert_uint_eq(shelf_count(STORE_DAMAGED), 1);
    ck_assert(strstr(shelf.said, ": a record is damaged, and was dropped; 1 since the start"));
    ck_assert(!store_may_have(shelf.store, span_str(URL), span_of(NULL, 0)));
}
END_TEST

/* All segments that there are. */
static void
evict(void)
{
    char url[64];

    shelf.later = NULL;
    for (unsigned i = 0; i < 120; i++) {
        snprintf(url, sizeof(url), URL "-%u", i);
        shelf_put(url, 200000);
    }
}

START_TEST(a_segment_that_is_removed_meanwhile_is_read)
{
    shelf_put(URL, 20000);
    /* Found once, it would be written again. */
    shelf.later = evict;
    ck_assert(shelf_has(URL, 20000));
    ck_assert_uint_gt(shelf_count(STORE_EVICTED), 0);
    ck_assert_uint_eq(shelf_count(STORE_DAMAGED), 0);
}
END_TEST

#define READS 40

static void
begin_all(struct requester *requesters)
{
    char url[64];

    for (unsigned i = 0; i < READS; i++) {
        snprintf(url, sizeof(url), URL "%u", i);
        shelf_put(url, 3000 * i);
    }
    for (unsigned i = 0; i < READS; i++) {
        snprintf(url, sizeof(url), URL "%u", i);
        ck_assert(shelf_begin_get(&requesters[i], url));
    }
}

START_TEST(more_reads_than_the_ring_takes_are_the_threads)
{
    static struct requester requesters[READS];

    begin_all(requesters);
    for (unsigned i = 0; i < READS; i++)
        (void)shelf_end_get(&requesters[i]);
    ck_assert_uint_ge(shelf_count(STORE_READ_BY_RING), 1);
    ck_assert_uint_ge(shelf_count(STORE_READ_BY_THREAD), 1);
}
END_TEST

/* Beyond the memory for them, of which each of many lanes has for two long ones. */
START_TEST(long_reads_of_many_lanes_are_bounded)
{
    static struct requester requesters[5];
    char url[64];

    shelf_close();
    shelf.max_bytes = 256 << 20;
    shelf.lanes = 40;
    ck_assert(shelf_open());
    for (unsigned i = 0; i < 5; i++) {
        snprintf(url, sizeof(url), URL "%u", i);
        shelf_put(url, 1 << 20);
    }
    for (unsigned i = 0; i < 5; i++) {
        snprintf(url, sizeof(url), URL "%u", i);
        ck_assert(shelf_begin_get(&requesters[i], url));
    }
    for (unsigned i = 0; i < 5; i++)
        ck_assert_uint_eq(shelf_end_get(&requesters[i]), WAITER_END);
    ck_assert_uint_eq(shelf_count(STORE_READ_BY_RING), 2);
    ck_assert_uint_eq(shelf_count(STORE_READ_BY_THREAD), 3);
}
END_TEST

/* A ring that begins nothing: it has a descriptor that is no ring. */
START_TEST(what_the_ring_does_not_begin_a_thread_reads)
{
    static struct requester requesters[3];
    const int ring = disk_ring_fd(shelf.ring), copy = dup(ring);
    const int other = open("/dev/null", O_RDONLY | O_CLOEXEC);
    char url[64];

    for (unsigned i = 0; i < 3; i++) {
        snprintf(url, sizeof(url), URL "%u", i);
        shelf_put(url, 3000);
    }
    shelf_close();
    ck_assert(shelf_open());
    ck_assert_int_ge(dup2(other, ring), 0);
    for (unsigned i = 0; i < 3; i++) {
        snprintf(url, sizeof(url), URL "%u", i);
        ck_assert(shelf_begin_get(&requesters[i], url));
    }
    for (unsigned i = 0; i < 3; i++)
        ck_assert_uint_eq(shelf_end_get(&requesters[i]), WAITER_END);
    ck_assert_uint_eq(disk_ring_under_way(shelf.ring), 0);
    ck_assert_uint_eq(shelf_count(STORE_READ_BY_THREAD), 3);
    /* What is asked for at the end is not waited for. */
    shelf_close();
    ck_assert_int_ge(dup2(copy, ring), 0);
    close(copy);
    close(other);
    ck_assert(shelf_open());
    ck_assert(shelf_has(URL "1", 3000));
    ck_assert_uint_eq(shelf_count(STORE_READ_BY_RING), 1);
}
END_TEST

START_TEST(an_end_waits_for_what_is_under_way)
{
    static struct requester requesters[READS];
    struct cache *cache = shelf.cache;

    begin_all(requesters);
    store_close(shelf.store);
    shelf.store = NULL;
    ck_assert_uint_eq(disk_ring_under_way(shelf.ring), 0);
    for (unsigned i = 0; i < READS; i++)
        (void)shelf_end_get(&requesters[i]);
    cache_destroy(cache);
    ck_assert(shelf_open());
}
END_TEST

static Suite *
unit_suite(void)
{
    Suite *suite = suite_create("a store that is read by a ring");
    struct disk_ring *ring = disk_ring_make(16);
    TCase *tc = tcase_create("ring");

    if (!ring)
        unit_skip("the kernel has no io_uring, or refuses it");
    disk_ring_free(ring);
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, the_ring_reads_what_is_not_longer_than_it_takes);
    tcase_add_test(tc, a_long_body_stays_where_it_was_read);
    tcase_add_test(tc, nothing_is_published_before_a_damaged_last_part);
    tcase_add_test(tc, what_the_kernel_has_is_read_at_once);
    tcase_add_test(tc, a_disk_that_hangs_is_left_until_it_answers);
    tcase_add_test(tc, the_end_waits_for_reads_in_time);
    tcase_add_test(tc, reads_that_fail_have_it_left);
    tcase_add_test(tc, a_record_that_is_cut_short_is_dropped);
    tcase_add_test(tc, a_segment_that_is_removed_meanwhile_is_read);
    tcase_add_test(tc, more_reads_than_the_ring_takes_are_the_threads);
    tcase_add_test(tc, long_reads_of_many_lanes_are_bounded);
    tcase_add_test(tc, what_the_ring_does_not_begin_a_thread_reads);
    tcase_add_test(tc, an_end_waits_for_what_is_under_way);
    suite_add_tcase(suite, tc);
    return suite;
}
