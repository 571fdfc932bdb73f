#include "tests/soak/flat.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/unit.h"

#define MIB ((uint64_t)1 << 20)

/* Ten points of the same descriptors and threads, and these mebibytes. */
static void
set_points(struct flat_point points[10], const unsigned mib[10])
{
    memset(points, 0, 10 * sizeof(points[0]));
    for (unsigned i = 0; i < 10; i++) {
        points[i].resident = mib[i] * MIB;
        points[i].descriptors = 19;
        points[i].threads = 6;
    }
}

static bool
check(const struct flat_point points[10], const char *sentence)
{
    struct buf why;
    bool flat;

    buf_init(&why, 4096);
    flat = flat_check(points, 10, &why);
    ck_assert_msg(sentence ? strstr(buf_str(&why), sentence) != NULL : why.len == 0, "%s",
                  buf_str(&why));
    buf_free(&why);
    return flat;
}

START_TEST(growth_in_the_first_half_is_warming_up)
{
    struct flat_point points[10];

    set_points(points, (unsigned[]){20, 60, 80, 90, 95, 100, 100, 100, 100, 100});
    ck_assert(check(points, NULL));
}
END_TEST

START_TEST(growth_in_the_last_half_is_bounded)
{
    struct flat_point points[10];

    /* 5 % of 100 MiB and 8 MiB. */
    set_points(points, (unsigned[]){100, 100, 100, 100, 100, 100, 103, 106, 110, 112});
    ck_assert(check(points, NULL));
    set_points(points, (unsigned[]){100, 100, 100, 100, 100, 100, 103, 106, 110, 114});
    ck_assert(!check(points, "memory is not flat"));
}
END_TEST

START_TEST(a_descriptor_too_many_is_not_flat)
{
    struct flat_point points[10];

    set_points(points, (unsigned[]){20, 20, 20, 20, 20, 20, 20, 20, 20, 20});
    points[3].descriptors++;
    ck_assert(!check(points, "descriptors are not flat: 19 at point 1, 20 at point 4"));
}
END_TEST

START_TEST(a_thread_too_few_is_not_flat)
{
    struct flat_point points[10];

    set_points(points, (unsigned[]){20, 20, 20, 20, 20, 20, 20, 20, 20, 20});
    points[9].threads--;
    ck_assert(!check(points, "threads are not flat: 6 at point 1, 5 at point 10"));
}
END_TEST

START_TEST(nothing_measured_is_not_flat)
{
    struct buf why;

    buf_init(&why, 4096);
    ck_assert(!flat_check(NULL, 0, &why));
    buf_free(&why);
}
END_TEST

START_TEST(growth_with_rare_rows_is_bounded_to_two_mebibytes)
{
    struct flat_point points[6] = {{.own = 5 * MIB}, {.own = 7 * MIB},  {.own = 8 * MIB},
                                   {.own = 9 * MIB}, {.own = 10 * MIB}, {.own = 20 * MIB}};
    struct buf why;

    buf_init(&why, 4096);
    ck_assert_msg(flat_check_rare(points, 6, &why), "8 to 10 MiB, and a burst at one point");
    ck_assert_uint_eq(why.len, 0);
    points[4].own++;
    ck_assert(!flat_check_rare(points, 6, &why));
    ck_assert_ptr_nonnull(strstr(buf_str(&why), "from 8192 to 10240 KiB of its own"));
    points[4].own = 8 * MIB;
    ck_assert(flat_check_rare(points, 6, &why));
    points[5].descriptors = 1;
    ck_assert(!flat_check_rare(points, 6, &why));
    ck_assert_msg(!flat_check_rare(points, 4, &why), "too few points");
    buf_free(&why);
}
END_TEST

START_TEST(a_process_is_measured)
{
    struct flat_point before = {0}, after = {0};
    int fd;

    ck_assert(flat_measure(getpid(), &before));
    ck_assert_uint_gt(before.resident, 0);
    ck_assert_uint_gt(before.own, 0);
    ck_assert_uint_le(before.own, before.resident);
    ck_assert_uint_gt(before.data, 0);
    ck_assert_uint_ge(before.threads, 1);
    fd = open("/dev/null", O_RDONLY);
    ck_assert(flat_measure(getpid(), &after));
    close(fd);
    ck_assert_uint_eq(after.descriptors, before.descriptors + 1);
    ck_assert_msg(!flat_measure(0, &after), "no such process");
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("soak/flat");
    TCase *tc = tcase_create("flat");

    tcase_add_test(tc, growth_in_the_first_half_is_warming_up);
    tcase_add_test(tc, growth_in_the_last_half_is_bounded);
    tcase_add_test(tc, a_descriptor_too_many_is_not_flat);
    tcase_add_test(tc, a_thread_too_few_is_not_flat);
    tcase_add_test(tc, nothing_measured_is_not_flat);
    tcase_add_test(tc, growth_with_rare_rows_is_bounded_to_two_mebibytes);
    tcase_add_test(tc, a_process_is_measured);
    suite_add_tcase(suite, tc);
    return suite;
}
