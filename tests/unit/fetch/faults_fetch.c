/*
 * Starting the fetcher and the resolver with each call of the system failing in turn: all runs, or
 * nothing does, with a sentence; no thread and no descriptor is lost.
 */
#include <dirent.h>
#include <errno.h>

#include "tests/unit/faults.h"
#include "tests/unit/fetch/fixture.h"

static unsigned
count_entries(const char *folder)
{
    DIR *dir = opendir(folder);
    unsigned count = 0;

    ck_assert_ptr_nonnull(dir);
    while (readdir(dir))
        count++;
    closedir(dir);
    return count;
}

static void
create(void *context)
{
    unsigned *descriptors = context;
    char why[512] = "";
    struct fetcher *fetcher = fetcher_create(&config, why, sizeof(why));
    const char *failed = faults_failed();

    faults_fail_at(0, 0);
    ck_assert_msg(failed || fetcher, "%s", why);
    if (!fetcher)
        ck_assert_msg(why[0], "%s", failed);
    fetcher_destroy(fetcher);
    ck_assert_msg(count_entries("/proc/self/fd") == *descriptors, "%s", failed ? failed : "none");
}

START_TEST(creating)
{
    unsigned descriptors;

    fetcher_destroy(start_fetcher(&config)); /* what libraries open once stays open */
    descriptors = count_entries("/proc/self/fd");
    ck_assert_uint_ge(faults_walk(create, &descriptors, EMFILE), 4);
}
END_TEST

Suite *
unit_suite(void)
{
    TCase *tcase;
    Suite *suite = fixture_suite("fetch faults", &tcase);

    tcase_add_test(tcase, creating);
    return suite;
}
