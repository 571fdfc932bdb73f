#define UNIT_STARTS_NO_THREAD

#include "cache/object.h"

#include <errno.h>
#include <stdlib.h>

#include "tests/unit/unit.h"

static bool
is(struct span span, const char *text)
{
    return span_equal(span, span_str(text));
}

static struct object *
make(bool segmented, uint32_t inline_size)
{
    struct object *object = object_make(&(struct object_parts){
        .url = span_str("http://a/"),
        .fields = span_str("X: y\r\n"),
        .status = 203,
        .notes = 0xfffffffe,
        .segmented = segmented,
        .inline_size = inline_size,
    });

    ck_assert_ptr_nonnull(object);
    return object;
}

/* The published body, run by run. */
static size_t
read_all(const struct object *object, char *to)
{
    struct object_place place = {0};
    struct span run;
    size_t len = 0;

    while (run = object_read(object, &place), run.len) {
        memcpy(to + len, run.ptr, run.len);
        len += run.len;
    }
    ck_assert_uint_eq(place.offset, len);
    ck_assert_uint_eq(object_length(object), len);
    return len;
}

START_TEST(an_object_is_what_it_was_made_of)
{
    struct object *object = make(false, 5);

    ck_assert_int_eq(object_state(object), OBJECT_BUSY);
    ck_assert_int_eq(object_append(object, "hel", 3, 0), 0);
    ck_assert_int_eq(object_append(object, "", 0, 0), 0);
    ck_assert_int_eq(object_append(object, NULL, 0, 0), 0);
    ck_assert(is(object_body(object), "hel"));
    ck_assert_int_eq(object_append(object, "lo!", 3, 0), EFBIG);
    ck_assert(is(object_body(object), "hel"));
    ck_assert_int_eq(object_append(object, "lo", 2, 0), 0);
    object_complete(object, 77, 1234567890123456, 1000);
    ck_assert_int_eq(object_state(object), OBJECT_READY);
    ck_assert(is(object_url(object), "http://a/"));
    ck_assert(is(object_fields(object), "X: y\r\n"));
    ck_assert(is(object_body(object), "hello"));
    ck_assert_int_eq(object_body(object).ptr[5], 0);
    ck_assert_uint_eq(object->status, 203);
    ck_assert_uint_eq(object->notes, 0xfffffffe);
    ck_assert_uint_eq(object->fetch_us, 77);
    ck_assert_int_eq(object->fetched_us, 1234567890123456);
    ck_assert(object_is_fresh(object, 1234567890123456 + 999999));
    ck_assert(!object_is_fresh(object, 1234567890123456 + 1000000));
    ck_assert(!object_has_zero_byte(object));
    object_release(&object);
    ck_assert_ptr_null(object);
    object_release(&object);
}
END_TEST

START_TEST(an_object_may_have_its_url_alone)
{
    struct object *object = object_make(&(struct object_parts){.url = span_str("http://a/")});

    ck_assert(is(object_url(object), "http://a/"));
    ck_assert_uint_eq(object_fields(object).len, 0);
    object_complete(object, 0, 0, OBJECT_UNLIMITED);
    ck_assert_uint_eq(object_body(object).len, 0);
    ck_assert_int_eq(object_body(object).ptr[0], 0);
    ck_assert(object_is_fresh(object, INT64_MAX));
    object_release(&object);
}
END_TEST

START_TEST(a_zero_byte_is_seen_wherever_it_is)
{
    for (unsigned segmented = 0; segmented < 2; segmented++) {
        for (size_t at = 0; at < 6; at++) {
            struct object *object = make(segmented, 6);
            char body[6] = "abcdef";

            body[at] = '\0';
            ck_assert_int_eq(object_append(object, body, 3, 3), 0);
            ck_assert_int_eq(object_append(object, body + 3, 3, 3), 0);
            object_complete(object, 0, 0, 1000);
            ck_assert(object_has_zero_byte(object));
            ck_assert_uint_eq(object_length(object), 6);
            object_release(&object);
        }
    }
}
END_TEST

/* The answer is noted: it stays when the body changes, as happens in this test alone. */
START_TEST(zero_bytes_are_searched_once)
{
    for (unsigned segmented = 0; segmented < 2; segmented++) {
        for (unsigned has_zero = 0; has_zero < 2; has_zero++) {
            struct object *object = make(segmented, 3), *same = NULL;
            struct object_parts parts = {.url = span_str("http://a/")};

            ck_assert_int_eq(object_append(object, has_zero ? "a\0c" : "abc", 3, 100), 0);
            object_complete(object, 0, 0, 1000);
            ck_assert_int_eq(object_has_zero_byte(object), has_zero);
            ((char *)(uintptr_t)object_read(object, &(struct object_place){0}).ptr)[1] =
                has_zero ? 'b' : '\0';
            ck_assert_int_eq(object_has_zero_byte(object), has_zero);
            ck_assert_uint_eq(object_length(object), 3);
            /* It is copied with the body. */
            ck_assert_int_eq(object_remake(object, &parts, &same), 0);
            object_complete(same, 0, 0, 1000);
            ck_assert_int_eq(object_has_zero_byte(same), has_zero);
            ck_assert_uint_eq(object_length(same), 3);
            object_release(&same);
            object_release(&object);
        }
    }
}
END_TEST

enum { LARGE = 900000 };

static char large[LARGE], read_back[LARGE];

static void
make_large(void)
{
    for (size_t i = 0; i < LARGE; i++)
        large[i] = (char)('a' + i % 23 + i / 40000 % 3);
}

START_TEST(segments_do_not_move_and_grow_to_256_kib)
{
    static const size_t pieces[] = {1, 100, 5000, 16384, 100000, LARGE};

    for (size_t p = 0; p < sizeof(pieces) / sizeof(pieces[0]); p++) {
        struct object *object = make(true, 0);
        struct object_place first = {0};
        const char *begin = NULL;
        size_t at = 0, runs = 0;
        struct object_place place = {0};
        struct span run;

        for (size_t step = 0; at < LARGE; step++) {
            size_t len = pieces[p] < LARGE - at ? pieces[p] : LARGE - at;

            ck_assert_int_eq(object_append(object, large + at, len, LARGE - at), 0);
            at += len;
            ck_assert_uint_eq(object_length(object), at);
            if (!begin)
                begin = object_read(object, &first).ptr;
            ck_assert_uint_le(object_size(object), 2 * at + 20000);
            if (pieces[p] == 1 && step == 70000)
                break;
        }
        ck_assert_uint_eq(read_all(object, read_back), at);
        ck_assert_mem_eq(read_back, large, at);
        while (run = object_read(object, &place), run.len) {
            if (runs++ == 0)
                ck_assert_ptr_eq(run.ptr, begin);
        }
        ck_assert_uint_le(runs, 9);
        object_release(&object);
    }
}
END_TEST

START_TEST(the_last_segment_is_not_larger_than_what_may_come)
{
    struct object *object = make(true, 0);
    size_t empty = object_size(object);

    ck_assert_int_eq(object_append(object, large, 100, 300), 0);
    ck_assert_uint_le(object_size(object), empty + 300 + 64);
    ck_assert_int_eq(object_append(object, large + 100, 250, 200), 0);
    ck_assert_uint_eq(read_all(object, read_back), 350);
    ck_assert_mem_eq(read_back, large, 350);
    object_release(&object);
}
END_TEST

/* Places at any offset, as a range of the body needs them. */
START_TEST(reading_may_begin_anywhere)
{
    struct object *objects[] = {make(true, 0), make(false, LARGE)};
    uint64_t dice = 5;

    for (size_t o = 0; o < 2; o++) {
        ck_assert_int_eq(object_append(objects[o], large, 30000, LARGE), 0);
        ck_assert_int_eq(object_append(objects[o], large + 30000, LARGE - 30000, LARGE), 0);
        for (unsigned i = 0; i < 200; i++) {
            struct object_place place = {.offset = unit_draw(&dice, LARGE)};
            uint64_t from = place.offset;
            struct span run = object_read(objects[o], &place);

            ck_assert_uint_gt(run.len, 0);
            ck_assert_uint_eq(place.offset, from + run.len);
            ck_assert_mem_eq(run.ptr, large + from, run.len);
        }
        ck_assert_uint_eq(object_read(objects[o], &(struct object_place){.offset = LARGE}).len, 0);
        ck_assert_uint_eq(object_read(objects[o], &(struct object_place){.offset = 2 * LARGE}).len,
                          0);
        object_release(&objects[o]);
    }
}
END_TEST

START_TEST(a_compact_copy_is_equal_and_in_one_run)
{
    struct object *object = make(true, 0), *copy;

    ck_assert_int_eq(object_append(object, large, 50000, LARGE), 0);
    ck_assert_int_eq(object_append(object, "\0", 1, LARGE), 0);
    copy = object_compact(object);
    ck_assert(!copy->segmented);
    ck_assert(span_equal(object_url(copy), object_url(object)));
    ck_assert(span_equal(object_fields(copy), object_fields(object)));
    ck_assert_uint_eq(copy->status, 203);
    ck_assert_uint_eq(copy->notes, 0xfffffffe);
    ck_assert(object_has_zero_byte(copy));
    ck_assert_uint_eq(object_body(copy).len, 50001);
    ck_assert_mem_eq(object_body(copy).ptr, large, 50000);
    ck_assert_uint_lt(object_size(copy), 50001 + 200);
    object_release(&object);
    object_release(&copy);
}
END_TEST

START_TEST(references_are_counted)
{
    struct object *object = make(false, 10), *other = object_retain(object);

    ck_assert_ptr_eq(object, other);
    object_release(&object);
    ck_assert(is(object_url(other), "http://a/")); /* under ASan: it was not freed */
    object_release(&other);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("cache/object");
    TCase *tc = tcase_create("object");

    tcase_add_unchecked_fixture(tc, make_large, NULL);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, an_object_is_what_it_was_made_of);
    tcase_add_test(tc, an_object_may_have_its_url_alone);
    tcase_add_test(tc, a_zero_byte_is_seen_wherever_it_is);
    tcase_add_test(tc, zero_bytes_are_searched_once);
    tcase_add_test(tc, segments_do_not_move_and_grow_to_256_kib);
    tcase_add_test(tc, the_last_segment_is_not_larger_than_what_may_come);
    tcase_add_test(tc, reading_may_begin_anywhere);
    tcase_add_test(tc, a_compact_copy_is_equal_and_in_one_run);
    tcase_add_test(tc, references_are_counted);
    suite_add_tcase(suite, tc);
    return suite;
}
