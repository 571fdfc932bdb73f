/* A look through the files of a store, beside it and after its end. */
#include <stdlib.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "store/disk_file.h"
#include "store/store_visit.h"
#include "tests/unit/store/shelf.h"

#define URL "http://origin.test/page"
#define OTHER "http://origin.test/other"

/* What was seen, in the order of the calls: a letter for the state and the length of the body. */
static char seen[1024];

static void
see(void *context, const struct store_entry *entry)
{
    const size_t len = strlen(seen);

    (void)context;
    if (!entry->record) {
        snprintf(seen + len, sizeof(seen) - len, "no record%s%s;", entry->error ? ": " : "",
                 entry->error ? disk_strerror(entry->error) : "");
        return;
    }
    snprintf(seen + len, sizeof(seen) - len, "%.*s %s%s%s %zu/%u;", (int)entry->record->url.len,
             entry->record->url.ptr, entry->current ? "current" : "outdated",
             entry->expired ? " expired" : "", entry->damaged ? " damaged" : "", entry->body.len,
             (unsigned)entry->record->head.body_len);
}

static struct store_totals
look(struct store_wanted wanted)
{
    struct store_totals totals;
    struct buf why;

    buf_init(&why, 1024);
    seen[0] = '\0';
    ck_assert_msg(store_visit(shelf.folder, &wanted, see, NULL, &totals, &why), "%s",
                  buf_str(&why));
    buf_free(&why);
    return totals;
}

static void
purge(bool soft, const char *url)
{
    const struct source_marked before =
        store_mark(shelf.store, CACHE_BY_URL, soft, span_str(url), span_of(NULL, 0), NULL);

    (void)store_mark(shelf.store, CACHE_BY_URL, soft, span_str(url), span_of(NULL, 0), &before);
}

static void
set_up(void)
{
    shelf_begin();
    ck_assert(shelf_open());
}

START_TEST(the_latest_is_first_and_the_only_one_that_is_current)
{
    struct store_totals totals;

    shelf_put(URL, 100);
    shelf_put(OTHER, 30);
    shelf_put(URL, 200);
    totals = look((struct store_wanted){0});
    ck_assert(totals.in_use);
    ck_assert_str_eq(seen, URL " current 0/200;" OTHER " current 0/30;" URL " outdated 0/100;");
    shelf_close();
    totals = look((struct store_wanted){.bodies = true});
    ck_assert(!totals.in_use);
    ck_assert_uint_eq(totals.objects, 2);
    ck_assert_uint_eq(totals.records, 3);
    ck_assert_str_eq(seen,
                     URL " current 200/200;" OTHER " current 30/30;" URL " outdated 100/100;");
    (void)look((struct store_wanted){.bodies = true, .url = span_str(OTHER)});
    ck_assert_str_eq(seen, OTHER " current 30/30;");
    /* Whatever the footers say. */
    (void)look((struct store_wanted){.scans = true, .url = span_str(OTHER)});
    ck_assert_str_eq(seen, OTHER " current 0/30;");
}
END_TEST

START_TEST(purges_are_told)
{
    shelf_put(URL, 100);
    shelf_put(OTHER, 30);
    purge(false, URL);
    purge(true, OTHER);
    shelf_close();
    (void)look((struct store_wanted){0});
    ck_assert_str_eq(seen, OTHER " current expired 0/30;" URL " outdated 0/100;");
}
END_TEST

static int64_t lifetime_us, age_us;

static void
see_times(void *context, const struct store_entry *entry)
{
    (void)context;
    lifetime_us = entry->lifetime_us;
    age_us = entry->age_us;
}

START_TEST(freshness_is_that_of_a_request)
{
    const int64_t now_us = clock_monotonic_us();
    struct store_totals totals;
    struct buf why;

    buf_init(&why, 1024);
    shelf.now_us = now_us - 100 * SHELF_SECOND;
    shelf_put_more(URL, "", "", "", 10, 600 * SHELF_SECOND);
    ck_assert(store_visit(shelf.folder, &(struct store_wanted){0}, see_times, NULL, &totals, &why));
    ck_assert_int_eq(lifetime_us, 600 * SHELF_SECOND);
    ck_assert_int_ge(age_us, 100 * SHELF_SECOND);
    shelf.now_us += 9 * SHELF_SECOND;
    purge(true, URL);
    shelf_close();
    ck_assert(store_visit(shelf.folder, &(struct store_wanted){0}, see_times, NULL, &totals, &why));
    ck_assert_int_eq(lifetime_us, 9 * SHELF_SECOND);
    buf_free(&why);
}
END_TEST

START_TEST(damage_is_told_unless_it_is_being_written)
{
    struct store_totals totals;
    char path[200];

    shelf_put(URL, 3000);
    snprintf(path, sizeof(path), "%s", shelf_file("segment"));
    shelf_flip(path, shelf_size(path) - 100);
    totals = look((struct store_wanted){.bodies = true, .scans = true});
    ck_assert_uint_eq(totals.damaged, 0);
    ck_assert_str_eq(seen, "");
    shelf_close();
    totals = look((struct store_wanted){.bodies = true});
    ck_assert_uint_eq(totals.damaged, 1);
    ck_assert_str_eq(seen, URL " outdated damaged 0/3000;");
    /* A head. */
    shelf_flip(path, 100);
    totals = look((struct store_wanted){.scans = true});
    ck_assert_uint_eq(totals.damaged, 1);
    ck_assert_str_eq(seen, "no record;");
    totals = look((struct store_wanted){0});
    ck_assert_uint_eq(totals.damaged, 1);
    ck_assert_str_eq(seen, "no record;");
}
END_TEST

START_TEST(what_cannot_be_read_is_not_damaged)
{
    struct store_totals totals;
    char path[200];

    shelf_put(URL, 3000);
    shelf_close();
    snprintf(path, sizeof(path), "%s/segment-00000000000000ff", shelf.folder);
    ck_assert_int_eq(mkdir(path, 0700), 0);
    totals = look((struct store_wanted){.bodies = true});
    ck_assert_uint_eq(totals.damaged, 0);
    ck_assert_uint_eq(totals.unread, 1);
    ck_assert_uint_eq(totals.objects, 1);
    ck_assert_str_eq(seen, URL " current 3000/3000;no record: it is no regular file;");
    ck_assert_int_eq(rmdir(path), 0);
}
END_TEST

/* The newest one; an older one has lost what it had. */
START_TEST(a_segment_that_was_only_begun_is_not_told)
{
    static const char *const names[] = {"1000000000000000", "0000000000000001"};
    struct store_totals totals;
    char path[200];

    shelf_put(URL, 3000);
    shelf_kill();
    for (unsigned i = 0; i < 2; i++) {
        snprintf(path, sizeof(path), "%s/segment-%s", shelf.folder, names[i]);
        close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
        totals = look((struct store_wanted){.bodies = true});
        ck_assert_uint_eq(totals.damaged, i);
        ck_assert_uint_eq(totals.unread, 0);
        ck_assert_uint_eq(totals.objects, 1);
    }
}
END_TEST

/* A process that starts while files are looked through gets its store. */
static void
see_and_open(void *context, const struct store_entry *entry)
{
    (void)context;
    (void)entry;
    if (!shelf.store)
        ck_assert(shelf_open());
}

START_TEST(a_look_does_not_keep_the_store)
{
    struct store_totals totals;
    struct buf why;

    buf_init(&why, 1024);
    shelf_put(URL, 3000);
    shelf_close();
    ck_assert(
        store_visit(shelf.folder, &(struct store_wanted){0}, see_and_open, NULL, &totals, &why));
    ck_assert(totals.in_use);
    ck_assert_ptr_nonnull(shelf.store);
    buf_free(&why);
}
END_TEST

static Suite *
unit_suite(void)
{
    Suite *suite = suite_create("store_visit");
    TCase *tc = tcase_create("store_visit");

    tcase_add_checked_fixture(tc, set_up, shelf_end);
    tcase_add_test(tc, the_latest_is_first_and_the_only_one_that_is_current);
    tcase_add_test(tc, purges_are_told);
    tcase_add_test(tc, freshness_is_that_of_a_request);
    tcase_add_test(tc, damage_is_told_unless_it_is_being_written);
    tcase_add_test(tc, what_cannot_be_read_is_not_damaged);
    tcase_add_test(tc, a_segment_that_was_only_begun_is_not_told);
    tcase_add_test(tc, a_look_does_not_keep_the_store);
    suite_add_tcase(suite, tc);
    return suite;
}
