/*
 * Saving a file with each call of the system failing in turn: the old content is there or the new
 * one, whole, and no temporary file stays behind.
 */
#include "base/save.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/faults.h"
#include "tests/unit/unit.h"

static char folder[64], path[128], link_path[128];

static void
put(const char *content)
{
    FILE *file = fopen(path, "w");

    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs(content, file), 0);
    ck_assert_int_eq(fclose(file), 0);
}

static bool
holds(const char *content)
{
    char text[16] = "";
    FILE *file = fopen(path, "r");
    bool same = file && fgets(text, sizeof(text), file) && strcmp(text, content) == 0;

    if (file)
        fclose(file);
    return same;
}

static void
set_up(void)
{
    strcpy(folder, "/tmp/sunproxy-test-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/file", folder);
    snprintf(link_path, sizeof(link_path), "%s/link", folder);
    put("old");
    ck_assert_int_eq(symlink("file", link_path), 0);
}

static void
tear_down(void)
{
    unlink(path);
    unlink(link_path);
    ck_assert_msg(rmdir(folder) == 0, "a temporary file was left behind");
}

static void
save(void *context)
{
    const char *name = context, *failed;
    struct save save;
    int error = save_open(&save, name, false);

    if (error == 0) {
        fputs("new", save.file);
        error = save_close(&save, true);
    }
    failed = faults_failed();
    faults_fail_at(0, 0);
    ck_assert_msg(holds(error ? "old" : "new"), "%s: %s", failed ? failed : "none",
                  strerror(error));
    ck_assert(failed || error == 0);
    put("old");
}

START_TEST(a_file)
{
    ck_assert_uint_ge(faults_walk(save, path, EIO), 4);
}
END_TEST

START_TEST(behind_a_link)
{
    ck_assert_uint_ge(faults_walk(save, link_path, EACCES), 5);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("save faults");
    TCase *tcase = tcase_create("save faults");

    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, a_file);
    tcase_add_test(tcase, behind_a_link);
    suite_add_tcase(suite, tcase);
    return suite;
}
