/* Each call of the operating system fails in turn: no purge that was kept is lost by that. */
#include "server/store/untold.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/unit/faults.h"
#include "tests/unit/server/store/untold_tier.h"
#include "tests/unit/unit.h"

static char folder[64];

static void
count(void *context, const struct source_purge *purge)
{
    (void)purge;
    ++*(unsigned *)context;
}

/* One that starts has at least a purge to tell, and keeps it. */
static void
run_one(bool purges)
{
    struct tier *tier = untold_open_tier();
    struct untold untold;
    unsigned found = 0;

    untold_begin(&untold, folder, tier);
    if (purges)
        untold_purge(tier, CACHE_BY_URL, false, "http://a.test/", "");
    tier_leave(tier);
    tier_visit_untold(tier, count, &found);
    ck_assert_uint_gt(found, 0);
    ck_assert(untold_end(&untold));
    tier_close(tier);
}

static void
walk(void *context)
{
    struct tier *tier = context;
    struct untold untold;

    untold_begin(&untold, folder, tier);
    (void)untold_look(&untold, false);
    tier_leave(tier);
    ck_assert(untold_end(&untold));
}

static void
begin(void)
{
    snprintf(folder, sizeof(folder), "/tmp/untold-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

static void
end(void)
{
    char command[128];

    snprintf(command, sizeof(command), "rm -r %s", folder);
    ck_assert_int_eq(system(command), 0);
}

START_TEST(a_file_stays_until_another_one_is_whole)
{
    static const int errors[] = {EIO, ENOSPC, EACCES};
    unsigned n = 0;

    faults_refuse("pthread_create"); /* what a thread does fails on this one */
    do {
        struct tier *tier = untold_open_tier();

        begin();
        run_one(true);
        faults_fail_at(++n, errors[_i]);
        walk(tier);
        faults_fail_at(0, 0);
        tier_close(tier);
        run_one(false);
        end();
    } while (faults_failed());
    ck_assert_uint_gt(n, 8);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("store: untold, with faults");
    TCase *cases = tcase_create("all");

    tcase_add_loop_test(cases, a_file_stays_until_another_one_is_whole, 0, 3);
    suite_add_tcase(suite, cases);
    return suite;
}
