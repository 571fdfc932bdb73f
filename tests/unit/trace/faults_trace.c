/*
 * Loading with each call of the system failing in turn: the trace loads whole, or a sentence names
 * the file, and no private copy of a database stays behind. A call that a signal interrupts is made
 * again.
 */
#include "trace/trace.h"

#include <errno.h>
#include <sqlite3.h>
#include <zlib.h>

#include "tests/unit/faults.h"
#include "tests/unit/trace/scratch.h"

enum { URLS = 3000 };

struct job {
    const char *path;
    int stop_fd;
    bool interrupted; /* by a signal, after which these are made again: read, write, poll */
};

static bool
is_made_again(const char *call)
{
    return strcmp(call, "read") == 0 || strcmp(call, "write") == 0 || strcmp(call, "poll") == 0;
}

static void
load(void *context)
{
    struct job *job = context;
    struct trace_options options = TRACE_OPTIONS_DEFAULT;
    struct trace *trace = NULL;
    char why[512] = "";
    enum trace_error error;
    const char *failed;

    options.stop_fd = job->stop_fd;
    error = trace_load(job->path, &options, &trace, why, sizeof(why));
    failed = faults_failed();
    faults_fail_at(0, 0);
    if (error == TRACE_OK) {
        ck_assert_uint_eq(trace->request_count, URLS);
    } else {
        ck_assert_msg(failed && !(job->interrupted && is_made_again(failed)), "%s: %s",
                      failed ? failed : "none", why);
        ck_assert_ptr_null(trace);
        ck_assert_msg(strstr(why, scratch_folder) != NULL, "%s: %s", failed, why);
    }
    trace_free(trace);
}

static void
walk(struct job *job, unsigned least)
{
    ck_assert_uint_ge(faults_walk(load, job, EIO), least);
    ck_assert_uint_ge(faults_walk(load, job, ENOENT), least);
}

START_TEST(a_list)
{
    struct job job = {.path = scratch_path("list.gz")};
    gzFile file = gzopen(job.path, _i ? "wb" : "wbT"); /* T: not compressed */

    for (int i = 0; i < URLS; i++)
        ck_assert_int_gt(gzprintf(file, "http://host%d.test/%0300d\t%d\n", i, i, i), 0);
    ck_assert_int_eq(gzclose(file), Z_OK);
    walk(&job, 4);
}
END_TEST

/* A compressed copy of a file. */
static const char *
pack(const char *from, const char *name)
{
    const char *path = scratch_path(name);
    gzFile file = gzopen(path, "wb");
    size_t len;
    char *bytes = scratch_read(from, &len);

    ck_assert_int_eq(gzwrite(file, bytes, (unsigned)len), (int)len);
    ck_assert_int_eq(gzclose(file), Z_OK);
    free(bytes);
    return path;
}

/* As a file of its own, and compressed. */
START_TEST(a_history)
{
    static const char sql[] =
        "CREATE TABLE urls(id INTEGER PRIMARY KEY, url LONGVARCHAR);"
        "CREATE TABLE visits(id INTEGER PRIMARY KEY, url INTEGER, visit_time INTEGER);"
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < 3000) "
        "INSERT INTO urls SELECT i, 'http://host.test/' || i FROM n;"
        "INSERT INTO visits SELECT id, id, id FROM urls;";
    struct job job = {.path = scratch_path("History")};
    sqlite3 *db;

    ck_assert_int_eq(sqlite3_open(job.path, &db), SQLITE_OK);
    ck_assert_int_eq(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
    ck_assert_int_eq(mkdir(scratch_path("tmp"), 0700), 0);
    setenv("TMPDIR", scratch_path("tmp"), 1);
    if (_i)
        job.path = pack(job.path, "History.gz");
    walk(&job, 8);
    job.interrupted = true;
    ck_assert_uint_ge(faults_walk(load, &job, EINTR), 8);
    unsetenv("TMPDIR");
    ck_assert_msg(rmdir(scratch_path("tmp")) == 0, "a copy was left behind");
}
END_TEST

START_TEST(interrupted)
{
    struct job job = {.path = scratch_path("list"), .interrupted = true};
    FILE *file = fopen(job.path, "w");
    int stop[2];

    ck_assert_ptr_nonnull(file);
    for (int i = 0; i < URLS; i++)
        ck_assert_int_gt(fprintf(file, "http://host%d.test/\n", i), 0);
    ck_assert_int_eq(fclose(file), 0);
    ck_assert_int_eq(pipe(stop), 0);
    ck_assert_uint_ge(faults_walk(load, &job, EINTR), 3);
    job.stop_fd = stop[0];
    ck_assert_uint_ge(faults_walk(load, &job, EINTR), 4);
    close(stop[0]);
    close(stop[1]);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("trace faults");
    TCase *tcase = tcase_create("trace faults");

    tcase_add_checked_fixture(tcase, scratch_make, scratch_remove);
    tcase_add_loop_test(tcase, a_list, 0, 2);
    tcase_add_loop_test(tcase, a_history, 0, 2);
    tcase_add_test(tcase, interrupted);
    suite_add_tcase(suite, tcase);
    return suite;
}
