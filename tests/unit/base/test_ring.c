#include "base/ring.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/thread.h"
#include "tests/unit/unit.h"

static struct ring ring;

/* A record of `len` bytes of this value. */
static bool
put(size_t len, char value)
{
    char *record = ring_reserve(&ring, len);

    if (!record)
        return false;
    ck_assert_uint_eq((uintptr_t)record % _Alignof(max_align_t), 0);
    memset(record, value, len);
    ring_publish(&ring);
    return true;
}

static void
expect(size_t len, char value)
{
    size_t got;
    const char *record = ring_read(&ring, &got);

    ck_assert_ptr_nonnull(record);
    ck_assert_uint_eq(got, len);
    for (size_t i = 0; i < len; i++)
        ck_assert_int_eq(record[i], value);
}

static void
expect_end(void)
{
    size_t len;

    ck_assert_ptr_null(ring_read(&ring, &len));
}

START_TEST(records_come_in_their_order_and_of_any_length)
{
    ck_assert(ring_init(&ring, 4096));
    expect_end();
    for (unsigned round = 0; round < 500; round++) {
        size_t lens[] = {0, 1, 15, 16, 17, 400, round, 1024};

        for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++)
            ck_assert(put(lens[i], (char)(round + i)));
        for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++)
            expect(lens[i], (char)(round + i));
        expect_end();
        ring_release(&ring);
    }
    ck_assert_uint_eq(ring_refused(&ring), 0);
    ring_free(&ring);
}
END_TEST

START_TEST(a_full_ring_refuses_and_counts_until_records_are_released)
{
    unsigned count = 0;

    ck_assert(ring_init(&ring, 1024));
    while (put(40, (char)count))
        count++;
    ck_assert_uint_ge(count, 1024 / (48 + 16 + 16));
    ck_assert(!put(40, 0));
    ck_assert_uint_eq(ring_refused(&ring), 2);
    expect(40, 0);
    /* It was read, and may be read again. */
    ck_assert(!put(40, 0));
    ring_release(&ring);
    ck_assert(put(40, 99));
    for (unsigned i = 1; i < count; i++)
        expect(40, (char)i);
    expect(40, 99);
    expect_end();
    ck_assert_uint_eq(ring_refused(&ring), 3);
    ring_free(&ring);
}
END_TEST

START_TEST(a_record_of_more_than_a_quarter_is_refused)
{
    ck_assert(ring_init(&ring, 1024));
    ck_assert(!put(257, 1));
    ck_assert(!put(SIZE_MAX, 1));
    ck_assert_uint_eq(ring_refused(&ring), 2);
    for (unsigned i = 0; i < 100; i++) {
        ck_assert(put(256, (char)i));
        expect(256, (char)i);
        ring_release(&ring);
    }
    ring_free(&ring);
}
END_TEST

START_TEST(what_is_not_released_is_read_again_after_a_rewind)
{
    ck_assert(ring_init(&ring, 256));
    for (unsigned round = 0; round < 50; round++) {
        ck_assert(put(10, 1));
        ck_assert(put(20, 2));
        expect(10, 1);
        ring_release(&ring);
        ck_assert(put(30, 3));
        for (unsigned again = 0; again < 3; again++) {
            expect(20, 2);
            expect(30, 3);
            expect_end();
            ring_rewind(&ring);
        }
        expect(20, 2);
        expect(30, 3);
        ring_release(&ring);
    }
    ring_free(&ring);
}
END_TEST

START_TEST(it_says_when_a_share_of_it_is_filled)
{
    ck_assert(ring_init(&ring, 1024));
    ck_assert(!ring_is_filled(&ring, 4));
    for (unsigned i = 0; i < 8; i++)
        ck_assert(put(16, 1));
    ck_assert(!ring_is_filled(&ring, 4));
    ck_assert(put(16, 1));
    ck_assert(ring_is_filled(&ring, 4));
    for (unsigned i = 0; i < 9; i++)
        expect(16, 1);
    ring_release(&ring);
    ck_assert(!ring_is_filled(&ring, 4));
    ring_free(&ring);
}
END_TEST

/* ---- two threads ----------------------------------------------------------------------------- */

enum { RECORDS = 200000 };

struct numbered {
    uint32_t number;
    uint32_t sum;
    char text[];
};

static void *
append(void *context)
{
    uint64_t state = 7;

    (void)context;
    for (uint32_t number = 1; number <= RECORDS; number++) {
        size_t len = unit_draw(&state, 200);
        struct numbered *record = ring_reserve(&ring, sizeof(*record) + len);

        if (!record)
            continue;
        record->number = number;
        record->sum = 0;
        for (size_t i = 0; i < len; i++)
            record->sum += (unsigned char)(record->text[i] = (char)unit_draw(&state, 256));
        ring_publish(&ring);
    }
    return NULL;
}

START_TEST(every_record_arrives_whole_or_is_counted)
{
    pthread_t thread;
    uint32_t last = 0;
    uint64_t read = 0;
    unsigned unreleased = 0;
    bool ended = false;

    ck_assert(ring_init(&ring, 16384));
    ck_assert_int_eq(thread_start(&thread, append, NULL), 0);
    while (read + ring_refused(&ring) < RECORDS || !ended) {
        size_t len;
        const struct numbered *record = ring_read(&ring, &len);
        uint32_t sum = 0;

        ended = !record && read + ring_refused(&ring) == RECORDS;
        if (!record)
            continue;
        ck_assert_uint_gt(record->number, last);
        last = record->number;
        for (size_t i = 0; i < len - sizeof(*record); i++)
            sum += (unsigned char)record->text[i];
        ck_assert_uint_eq(sum, record->sum);
        read++;
        if (++unreleased == 5) {
            ring_release(&ring);
            unreleased = 0;
        }
    }
    pthread_join(thread, NULL);
    ck_assert_uint_eq(read + ring_refused(&ring), RECORDS);
    ck_assert_uint_gt(read, 0);
    ring_free(&ring);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("base/ring");
    TCase *tests = tcase_create("all");

    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, records_come_in_their_order_and_of_any_length);
    tcase_add_test(tests, a_full_ring_refuses_and_counts_until_records_are_released);
    tcase_add_test(tests, a_record_of_more_than_a_quarter_is_refused);
    tcase_add_test(tests, what_is_not_released_is_read_again_after_a_rewind);
    tcase_add_test(tests, it_says_when_a_share_of_it_is_filled);
    tcase_add_test(tests, every_record_arrives_whole_or_is_counted);
    suite_add_tcase(suite, tests);
    return suite;
}
