/* Purges that no server of the shared tier has learnt of, over an end of the daemon. */
#include "server/store/untold.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "tests/unit/server/store/untold_tier.h"
#include "tests/unit/unit.h"

static char folder[64];
static struct tier *tier;
static struct untold untold;

static void
begin(void)
{
    snprintf(folder, sizeof(folder), "/tmp/untold-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    tier = untold_open_tier();
    untold_begin(&untold, folder, tier);
}

static void
end(void)
{
    char command[128];

    tier_close(tier);
    snprintf(command, sizeof(command), "rm -r %s", folder);
    ck_assert_int_eq(system(command), 0);
}

/* The daemon ends, and another one starts. */
static void
start_again(void)
{
    tier_leave(tier);
    ck_assert(untold_end(&untold));
    tier_close(tier);
    tier = untold_open_tier();
    untold_begin(&untold, folder, tier);
}

static void
write_purge(void *context, const struct source_purge *purge)
{
    buf_printf(context, "%d%d %.*s,%.*s\n", (int)purge->by, purge->soft, (int)purge->name.len,
               purge->name.ptr, (int)purge->scope.len, purge->scope.ptr);
}

static void
expect(const char *expected)
{
    struct buf text;

    buf_init(&text, 1 << 20);
    tier_visit_untold(tier, write_purge, &text);
    ck_assert_str_eq(buf_str(&text), expected);
    buf_free(&text);
}

/* The number of files, which have mode 0600; the name of one of them in `path`. */
static unsigned
files(char *path, size_t size)
{
    DIR *dir = opendir(folder);
    const struct dirent *entry;
    unsigned count = 0;
    struct stat st;

    while ((entry = readdir(dir)))
        if (entry->d_name[0] != '.') {
            snprintf(path, size, "%s/%s", folder, entry->d_name);
            ck_assert_int_eq(stat(path, &st), 0);
            ck_assert_uint_eq(st.st_mode & 0777, 0600);
            count++;
        }
    closedir(dir);
    return count;
}

START_TEST(they_are_told_by_the_next_one)
{
    char path[400];
    char expected[200];

    untold_purge(tier, CACHE_BY_URL, false, "http://a.test/x y%,", "");
    untold_purge(tier, CACHE_BY_PREFIX, true, "http://a.test/", "");
    untold_purge(tier, CACHE_BY_TAG, false, "red", "http://b.test/");
    untold_purge(tier, CACHE_BY_PREFIX, false, "", "");
    snprintf(expected, sizeof(expected),
             "%d0 http://a.test/x y%%,,\n%d1 http://a.test/,\n%d0 red,http://b.test/\n%d0 ,\n",
             (int)CACHE_BY_URL, (int)CACHE_BY_PREFIX, (int)CACHE_BY_TAG, (int)CACHE_BY_PREFIX);
    expect(expected);
    for (unsigned i = 0; i < 3; i++) {
        start_again();
        expect(expected);
        ck_assert_uint_eq(files(path, sizeof(path)), 1);
        ck_assert(untold_look(&untold, false));
    }
    ck_assert(!tier_has_told(tier));
}
END_TEST

START_TEST(nothing_is_kept_without_a_purge_or_a_store)
{
    char path[400];

    start_again();
    expect("");
    ck_assert_uint_eq(files(path, sizeof(path)), 0);
    ck_assert(!untold_look(&untold, false));
    ck_assert(tier_has_told(tier));
    untold.folder = NULL;
    untold_purge(tier, CACHE_BY_URL, false, "http://a.test/", "");
    tier_leave(tier);
    ck_assert(untold_end(&untold));
    ck_assert_uint_eq(files(path, sizeof(path)), 0);
}
END_TEST

/* A file that was not written to its end, or is damaged: it is not known what it had. */
START_TEST(a_damaged_file_purges_all)
{
    static const char *const texts[] = {"", "uhhttp://a.test.", "uhhttp://a.test/ ", "xxx .",
                                        "uh%z1 ."};
    char path[400], all[20];
    int fd;

    untold_purge(tier, CACHE_BY_URL, false, "http://a.test/", "");
    start_again();
    ck_assert_uint_eq(files(path, sizeof(path)), 1);
    fd = open(path, O_WRONLY | O_TRUNC);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, texts[_i], strlen(texts[_i])), (ssize_t)strlen(texts[_i]));
    close(fd);
    tier_close(tier);
    tier = untold_open_tier();
    untold_begin(&untold, folder, tier);
    snprintf(all, sizeof(all), "%d0 ,\n", (int)CACHE_BY_PREFIX);
    expect(all);
}
END_TEST

/* More than the tier keeps is one purge of everything. */
START_TEST(too_many_purge_all)
{
    char name[64], path[400];
    struct buf text;

    for (unsigned i = 0; i < 5000; i++) {
        snprintf(name, sizeof(name), "http://a.test/%u", i);
        untold_purge(tier, CACHE_BY_URL, false, name, "");
    }
    start_again();
    ck_assert_uint_eq(files(path, sizeof(path)), 1);
    buf_init(&text, 1 << 20);
    tier_visit_untold(tier, write_purge, &text);
    snprintf(name, sizeof(name), "%d0 ,\n", (int)CACHE_BY_PREFIX);
    ck_assert_str_eq(buf_str(&text), name);
    buf_free(&text);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("store: untold");
    TCase *cases = tcase_create("all");

    tcase_add_checked_fixture(cases, begin, end);
    tcase_add_test(cases, they_are_told_by_the_next_one);
    tcase_add_test(cases, nothing_is_kept_without_a_purge_or_a_store);
    tcase_add_loop_test(cases, a_damaged_file_purges_all, 0, 5);
    tcase_add_test(cases, too_many_purge_all);
    suite_add_tcase(suite, cases);
    return suite;
}
