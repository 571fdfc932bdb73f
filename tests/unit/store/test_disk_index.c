/* The index of a store beside a plain list, and the memory that it takes. */
#define UNIT_STARTS_NO_THREAD

#include "store/disk_index.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "tests/unit/unit.h"

#define KEYS 4000u

static struct disk_index *ix;

static void
set_up(void)
{
    ix = malloc(sizeof(*ix));
    ck_assert_ptr_nonnull(ix);
    disk_index_init(ix);
}

static void
tear_down(void)
{
    disk_index_free(ix);
    free(ix);
}

static struct disk_key
key_of(uint64_t number)
{
    return (struct disk_key){.url = hash64_uint(number)};
}

static struct disk_place
place_of(uint16_t segment, uint32_t offset, uint32_t length)
{
    return (struct disk_place){.segment = segment, .offset = offset, .length = length};
}

static bool
find(uint64_t number, struct disk_place *place)
{
    const struct disk_key key = key_of(number);

    return disk_index_find(ix, &key, place, NULL, NULL);
}

static void
put(uint64_t number, uint16_t segment, uint32_t offset)
{
    const struct disk_key key = key_of(number);
    const struct disk_place place = place_of(segment, offset, 1000);

    ck_assert(disk_index_put(ix, &key, &place, false));
}

START_TEST(it_finds_what_a_list_has)
{
    static uint32_t at[KEYS]; /* offset + 1; 0: not there */
    uint64_t draws = 7;
    size_t count = 0;

    memset(at, 0, sizeof(at));
    for (unsigned step = 0; step < 60000; step++) {
        /* All in one table: their hashes have the same highest bits. */
        const uint32_t n = unit_draw(&draws, KEYS);
        const struct disk_key key = {.url = hash64_uint(n) >> 10};
        struct disk_place place = place_of(1, unit_draw(&draws, DISK_OFFSETS), 700), found;
        bool was_read;

        if (unit_draw(&draws, 3)) {
            count += !at[n];
            at[n] = place.offset + 1;
            ck_assert(disk_index_put(ix, &key, &place, false));
        } else if (at[n]) {
            place.offset = at[n] - 1;
            ck_assert(disk_index_remove(ix, &key, &place, &was_read));
            at[n] = 0;
            count--;
        }
        ck_assert_int_eq(disk_index_find(ix, &key, &found, NULL, NULL), at[n] != 0);
        if (at[n])
            ck_assert_uint_eq(found.offset, at[n] - 1);
    }
    ck_assert_uint_eq(disk_index_count(ix), count);
    for (unsigned n = 0; n < KEYS; n++) {
        const struct disk_key key = {.url = hash64_uint(n) >> 10};
        struct disk_place found;

        ck_assert_int_eq(disk_index_find(ix, &key, &found, NULL, NULL), at[n] != 0);
    }
}
END_TEST

START_TEST(an_object_takes_less_than_24_bytes)
{
    for (uint64_t n = 0; n < 300000; n++) {
        put(n, 1, (uint32_t)n);
        if (n % 10000 == 9999 && n > 50000)
            ck_assert_uint_le(disk_index_bytes(ix) - sizeof(*ix), (n + 1) * 24);
    }
    ck_assert_uint_eq(disk_index_count(ix), 300000);
}
END_TEST

START_TEST(lengths_are_kept_as_classes)
{
    static const uint32_t lengths[] = {1,     256,   257,   271,     272,      273,
                                       1000,  20480, 20481, 1000000, 16252928, 16252929,
                                       1u << 26, UINT32_MAX};

    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        const struct disk_key key = key_of(i);
        const struct disk_place place = place_of(3, 5, lengths[i]);
        struct disk_place found;

        ck_assert(disk_index_put(ix, &key, &place, false));
        ck_assert(find(i, &found));
        ck_assert_uint_eq(found.segment, 3);
        ck_assert_uint_eq(found.offset, 5);
        ck_assert_uint_ge(found.length, lengths[i]);
        if (lengths[i] >= 256 && found.length != UINT32_MAX)
            ck_assert_uint_le(found.length, lengths[i] + lengths[i] / 16);
    }
}
END_TEST

START_TEST(variants_of_a_url)
{
    const struct disk_key base = key_of(1), a = {base.url, 70000}, b = {base.url, 0x7fff0000u};
    const struct disk_place places[] = {place_of(1, 1, 1), place_of(1, 2, 1), place_of(1, 3, 1)};
    struct disk_place found;

    ck_assert(disk_index_put(ix, &a, &places[1], false));
    ck_assert(disk_index_has_url(ix, base.url));
    /* For the empty variant any other one. */
    ck_assert(disk_index_find(ix, &base, &found, NULL, NULL));
    ck_assert_uint_eq(found.offset, 2);
    ck_assert(!disk_index_find(ix, &b, &found, NULL, NULL));
    ck_assert(disk_index_put(ix, &base, &places[0], false));
    ck_assert(disk_index_put(ix, &b, &places[2], false));
    ck_assert(disk_index_find(ix, &base, &found, NULL, NULL));
    ck_assert_uint_eq(found.offset, 1);
    ck_assert_uint_eq(disk_index_remove_url(ix, base.url), 3);
    ck_assert(!disk_index_has_url(ix, base.url));
    ck_assert_uint_eq(disk_index_remove_url(ix, base.url), 0);
}
END_TEST

static void
hold(void *context, uint16_t segment)
{
    *(unsigned *)context = segment;
}

START_TEST(what_was_read_is_known_until_it_is_moved)
{
    const struct disk_key key = key_of(1);
    const struct disk_place first = place_of(9, 1, 1), second = place_of(8, 2, 1);
    struct disk_place found;
    unsigned held = 0;
    bool was_read;

    put(1, 9, 1);
    ck_assert(disk_index_is_at(ix, &key, &first, &was_read) && !was_read);
    ck_assert(disk_index_find(ix, &key, &found, hold, &held));
    ck_assert_uint_eq(held, 9);
    ck_assert(disk_index_is_at(ix, &key, &first, &was_read) && was_read);
    ck_assert(!disk_index_is_at(ix, &key, &second, &was_read));
    ck_assert(disk_index_move(ix, &key, &first, &second));
    ck_assert(!disk_index_move(ix, &key, &first, &second));
    ck_assert(disk_index_is_at(ix, &key, &second, &was_read) && !was_read);
    ck_assert(!disk_index_put(ix, &key, &first, true));
    ck_assert(!disk_index_remove(ix, &key, &first, &was_read));
    ck_assert(disk_index_remove(ix, &key, &second, &was_read) && !was_read);
}
END_TEST

START_TEST(all_of_a_segment)
{
    struct disk_place found;

    for (uint64_t n = 0; n < 3000; n++)
        put(n, (uint16_t)(1 + n % 3), (uint32_t)n);
    disk_index_remove_segment(ix, 2);
    ck_assert_uint_eq(disk_index_count(ix), 2000);
    for (uint64_t n = 0; n < 3000; n++)
        ck_assert_int_eq(find(n, &found), n % 3 != 1);
    disk_index_remove_segment(ix, 0);
    ck_assert_uint_eq(disk_index_count(ix), 0);
    put(5, 1, 1);
    ck_assert(find(5, &found));
}
END_TEST

static Suite *
unit_suite(void)
{
    Suite *suite = suite_create("disk index");
    TCase *tc = tcase_create("index");

    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, it_finds_what_a_list_has);
    tcase_add_test(tc, an_object_takes_less_than_24_bytes);
    tcase_add_test(tc, lengths_are_kept_as_classes);
    tcase_add_test(tc, variants_of_a_url);
    tcase_add_test(tc, what_was_read_is_known_until_it_is_moved);
    tcase_add_test(tc, all_of_a_segment);
    suite_add_tcase(suite, tc);
    return suite;
}
