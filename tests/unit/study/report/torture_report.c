/* Every allocation of the report failing in its turn: each is answered, and nothing is lost. */
#include "study/report/report.h"

#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "tests/unit/torture.h"
#include "tests/unit/unit.h"

#define TRACE_PATH "/tmp/sunproxy-trace.XXXXXX"

static char trace_path[sizeof(TRACE_PATH)];
static struct simulate_options options;
static struct simulate_subject subject;

static void
write_file(char *path, const char *content)
{
    int fd = mkstemp(path);

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, content, strlen(content)), (ssize_t)strlen(content));
    close(fd);
}

static void
load(void)
{
    memcpy(trace_path, TRACE_PATH, sizeof(TRACE_PATH));
    write_file(trace_path, "http://h/a\t5\nhttp://h/b\t7\nhttp://h/a\t5\nhttp://h/c\t9\n");
    simulate_options_init(&options);
    options.jobs = 1;
    ck_assert(simulate_settle_policies(&options));
    ck_assert_int_eq(simulate_subject_load((char *[]){trace_path}, 1, &options, &subject), EX_OK);
}

static void
unload(void)
{
    simulate_subject_free(&subject);
    simulate_options_free(&options);
    unlink(trace_path);
}

static void
tables(void *context)
{
    struct buf out;
    struct json j;
    bool whole;

    (void)context;
    buf_init(&out, 1u << 20);
    json_init(&j, &out);
    json_open_object(&j, NULL);
    report_trace_facts(&j, &subject);
    whole = report_trace_tables(&j, &subject);
    json_close_object(&j);
    ck_assert((whole && !buf_failed(&out)) == !torture_failed());
    buf_free(&out);
}

static void
runs(void *context)
{
    const struct capacity_list defaults = {0};
    struct buf out;
    struct json j;
    int status;

    (void)context;
    buf_init(&out, 1u << 22);
    json_init(&j, &out);
    json_open_object(&j, NULL);
    status = report_runs(&j, &subject, &options, &defaults, 3);
    json_close_object(&j);
    /* Of allocations in other threads nothing is known here: they do not fail. */
    ck_assert((status == EX_OK && !buf_failed(&out)) == !torture_failed());
    buf_free(&out);
}

static void
live(void *path)
{
    struct report_live read;
    int status = report_live_read(path, &read);

    if (status == EX_OK)
        report_live_free(&read);
    ck_assert((status == EX_OK) == !torture_failed());
}

static void
library(void *folder)
{
    struct report_library read;
    int status = report_library_read(folder, &read);

    if (status == EX_OK)
        report_library_free(&read);
    ck_assert((status == EX_OK) == !torture_failed());
}

START_TEST(tables_under_torture)
{
    load();
    ck_assert_uint_ge(torture_walk(tables, NULL), 2);
    unload();
}
END_TEST

START_TEST(runs_under_torture)
{
    load();
    ck_assert_uint_ge(torture_walk(runs, NULL), 6);
    unload();
}
END_TEST

START_TEST(live_under_torture)
{
    char path[] = "/tmp/sunproxy-live.XXXXXX";

    write_file(path, "{\"trace\":\"t\",\"policy\":\"lru\",\"mean\":{\"mean_us\":5}}");
    ck_assert_uint_ge(torture_walk(live, path), 4);
    unlink(path);
}
END_TEST

START_TEST(library_under_torture)
{
    char folder[] = "/tmp/sunproxy-plot.XXXXXX";
    const char *const names[] = {"d3.min.js", "plot.umd.min.js"};
    char path[100];

    ck_assert_ptr_nonnull(mkdtemp(folder));
    for (size_t i = 0; i < 2; i++) {
        FILE *file;

        snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
        file = fopen(path, "w");
        ck_assert_ptr_nonnull(file);
        ck_assert_int_ge(fputs("text", file), 0);
        ck_assert_int_eq(fclose(file), 0);
    }
    ck_assert_uint_ge(torture_walk(library, folder), 3);
    for (size_t i = 0; i < 2; i++) {
        snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
        ck_assert_int_eq(unlink(path), 0);
    }
    ck_assert_int_eq(rmdir(folder), 0);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("report under torture");
    TCase *tcase = tcase_create("torture");

    tcase_add_test(tcase, tables_under_torture);
    tcase_add_test(tcase, runs_under_torture);
    tcase_add_test(tcase, live_under_torture);
    tcase_add_test(tcase, library_under_torture);
    suite_add_tcase(suite, tcase);
    return suite;
}
