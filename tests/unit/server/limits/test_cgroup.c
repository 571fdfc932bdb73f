/* The limits of control groups, and memory that is lowered to them. */
#define UNIT_STARTS_NO_THREAD

#include "server/limits/cgroup.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "tests/unit/unit.h"

#define MIB ((uint64_t)1 << 20)

static char folder[64];

static void
make_tree(void)
{
    snprintf(folder, sizeof(folder), "/tmp/sunproxy-cgroup.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

static void
remove_tree(void)
{
    char command[128];

    snprintf(command, sizeof(command), "rm -rf %s", folder);
    ck_assert_int_eq(system(command), 0);
}

static void
make_folder(const char *name)
{
    char path[256];

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    ck_assert_int_eq(mkdir(path, 0755), 0);
}

static void
make_file(const char *name, const char *text)
{
    char path[256];
    FILE *file;

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs(text, file), 0);
    ck_assert_int_eq(fclose(file), 0);
}

static struct cgroup_limits
limits_of(const char *membership)
{
    char path[256];

    make_file("membership", membership);
    snprintf(path, sizeof(path), "%s/membership", folder);
    return cgroup_limits_read(path, folder);
}

static void
check(struct cgroup_limits limits, uint64_t memory, unsigned processors)
{
    ck_assert_uint_eq(limits.memory, memory);
    ck_assert_uint_eq(limits.processors, processors);
}

START_TEST(nothing_that_can_be_read_bounds_nothing)
{
    check(cgroup_limits_read("/no/such/file", "/no/such/folder"), UINT64_MAX, 0);
    check(limits_of(""), UINT64_MAX, 0);
    check(limits_of("12:memory:/a\n1:name=systemd:/b\n"), UINT64_MAX, 0);
    check(limits_of("0::/\n"), UINT64_MAX, 0);
    check(limits_of("0::/gone/away\n"), UINT64_MAX, 0);
}
END_TEST

START_TEST(the_root_of_a_container)
{
    make_file("memory.max", "268435456\n");
    make_file("cpu.max", "150000 100000\n");
    check(limits_of("0::/\n"), 256 * MIB, 2);
    check(limits_of("1:name=systemd:/b\n0::/\n"), 256 * MIB, 2);
    /* A process that was moved in sees where it came from. */
    check(limits_of("0::/../../other\n"), 256 * MIB, 2);
}
END_TEST

START_TEST(the_least_of_all_groups_above)
{
    make_folder("a");
    make_folder("a/b");
    make_file("a/memory.max", "1000000\n");
    make_file("a/b/memory.max", "max\n");
    make_file("a/cpu.max", "max 100000\n");
    make_file("a/b/cpu.max", "400000 100000\n");
    check(limits_of("0::/a/b\n"), 1000000, 4);
    make_file("a/cpu.max", "100000 100000\n");
    make_file("a/b/memory.max", "2000000\n");
    check(limits_of("0::/a/b\n"), 1000000, 1);
    make_file("a/b/memory.max", "500000\n");
    check(limits_of("0::/a/b\n"), 500000, 1);
}
END_TEST

START_TEST(files_that_are_none)
{
    make_file("memory.max", "much\n");
    make_file("cpu.max", "0 0\n");
    check(limits_of("0::/\n"), UINT64_MAX, 0);
    make_file("cpu.max", "100000\n");
    check(limits_of("0::/\n"), UINT64_MAX, 0);
}
END_TEST

static void
check_fit(uint64_t memory, uint64_t capacity, uint64_t transit, uint64_t fitted,
          uint64_t fitted_transit)
{
    const bool same = capacity == fitted && transit == fitted_transit;

    ck_assert(cgroup_fit_memory(memory, &capacity, &transit) == !same);
    ck_assert_uint_eq(capacity, fitted);
    ck_assert_uint_eq(transit, fitted_transit);
}

START_TEST(memory_that_is_enough_lowers_nothing)
{
    check_fit(UINT64_MAX, 256 * MIB, 1024 * MIB, 256 * MIB, 1024 * MIB);
    check_fit((256 + 1024 + 64) * MIB, 256 * MIB, 1024 * MIB, 256 * MIB, 1024 * MIB);
}
END_TEST

START_TEST(each_has_half_and_what_the_other_does_not_want)
{
    /* The defaults in 512 MiB. */
    check_fit(512 * MIB, 256 * MIB, 1024 * MIB, 224 * MIB, 224 * MIB);
    check_fit(512 * MIB, 100 * MIB, 1024 * MIB, 100 * MIB, 348 * MIB);
    check_fit(512 * MIB, 4096 * MIB, 64 * MIB, 384 * MIB, 64 * MIB);
    check_fit(512 * MIB, 0, 1024 * MIB, 0, 448 * MIB);
}
END_TEST

START_TEST(what_is_in_transit_has_its_least)
{
    check_fit(100 * MIB, 256 * MIB, 1024 * MIB, 4 * MIB, 32 * MIB);
    check_fit(70 * MIB, 256 * MIB, 1024 * MIB, 1, 32 * MIB);
    check_fit(0, 256 * MIB, 32 * MIB, 1, 32 * MIB);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("server/cgroup");
    TCase *reading = tcase_create("reading"), *fitting = tcase_create("fitting");

    tcase_add_checked_fixture(reading, make_tree, remove_tree);
    tcase_add_test(reading, nothing_that_can_be_read_bounds_nothing);
    tcase_add_test(reading, the_root_of_a_container);
    tcase_add_test(reading, the_least_of_all_groups_above);
    tcase_add_test(reading, files_that_are_none);
    tcase_add_test(fitting, memory_that_is_enough_lowers_nothing);
    tcase_add_test(fitting, each_has_half_and_what_the_other_does_not_want);
    tcase_add_test(fitting, what_is_in_transit_has_its_least);
    suite_add_tcase(suite, reading);
    suite_add_tcase(suite, fitting);
    return suite;
}
