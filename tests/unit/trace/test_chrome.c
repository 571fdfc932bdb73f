/*
 * Chrome's History: databases made here for every way in which one can be odd, in use or broken.
 * After each test nothing in the folder may have changed.
 */
#include "trace/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/wait.h>
#include <time.h>

#include "tests/unit/trace/scratch.h"

#define EPOCH_1601_US 11644473600000000
#define PAGE 4096

static char why[512];

static const char schema[] =
    "CREATE TABLE meta(key LONGVARCHAR NOT NULL UNIQUE PRIMARY KEY, value LONGVARCHAR);"
    "INSERT INTO meta VALUES('version', '59');"
    "CREATE TABLE urls(id INTEGER PRIMARY KEY AUTOINCREMENT, url LONGVARCHAR);"
    "CREATE TABLE visits(id INTEGER PRIMARY KEY AUTOINCREMENT, url INTEGER NOT NULL,"
    " visit_time INTEGER NOT NULL);"
    "CREATE INDEX visits_time_index ON visits (visit_time);";

static void
run(sqlite3 *db, const char *sql)
{
    char *message = NULL;

    ck_assert_msg(sqlite3_exec(db, sql, NULL, NULL, &message) == SQLITE_OK, "%s: %s", sql, message);
}

static sqlite3 *
open_database(const char *name)
{
    sqlite3 *db;

    ck_assert_int_eq(sqlite3_open(scratch_path(name), &db), SQLITE_OK);
    return db;
}

static void
make(const char *name, const char *sql)
{
    sqlite3 *db = open_database(name);

    run(db, schema);
    run(db, sql);
    ck_assert_int_eq(sqlite3_close(db), SQLITE_OK);
}

/* Loads, and shows that this left no mark: not on a file, and not in the temporary folder. */
static enum trace_error
load(const char *name, struct trace_options options, struct trace **trace)
{
    struct buf before;
    struct buf after;
    enum trace_error error;

    scratch_picture(&before);
    why[0] = '\0';
    error = trace_load(scratch_path(name), &options, trace, why, sizeof(why));
    scratch_picture(&after);
    ck_assert_str_eq(buf_str(&before), buf_str(&after));
    buf_free(&before);
    buf_free(&after);
    return error;
}

static struct trace *
load_ok(const char *name)
{
    struct trace *trace;
    enum trace_error error = load(name, TRACE_OPTIONS_DEFAULT, &trace);

    ck_assert_msg(error == TRACE_OK, "%s", why);
    ck_assert_str_eq(trace->format, "chrome");
    return trace;
}

static void
refuse(const char *name, enum trace_error expected, const char *word)
{
    struct trace *trace;
    struct trace_options options = TRACE_OPTIONS_DEFAULT;

    options.format = "chrome";
    ck_assert_int_eq(load(name, options, &trace), expected);
    ck_assert_ptr_null(trace);
    ck_assert_msg(strstr(why, name) != NULL, "%s", why);
    ck_assert_msg(strstr(why, word) != NULL, "'%s' lacks '%s'", why, word);
}

/* TMPDIR is a folder below the scratch folder, and empty after every test. */
static void
setup(void)
{
    scratch_make();
    ck_assert_int_eq(mkdir(scratch_path("tmp"), 0700), 0);
    setenv("TMPDIR", scratch_path("tmp"), 1);
}

static void
teardown(void)
{
    ck_assert_msg(rmdir(scratch_path("tmp")) == 0, "a copy was left behind: %s", strerror(errno));
    unsetenv("TMPDIR");
    scratch_remove();
}

/* ---- what is read -------------------------------------------------------------------------- */

START_TEST(order_times_and_ties)
{
    struct trace *t;

    make("History", "INSERT INTO urls VALUES(1,'http://a.test/'),(2,'https://b.test/'),"
                    "(3,'http://a.test/');"
                    "INSERT INTO visits VALUES(1,1,13000000000000002),(4,3,13000000000000001),"
                    "(3,2,13000000000000001),(2,1,13000000000000001),(9,2,0),(8,2,-5);");
    t = load_ok("History");
    ck_assert_uint_eq(t->request_count, 6);
    ck_assert_uint_eq(t->url_count, 2); /* two rows, one URL */
    ck_assert_str_eq(t->urls[0].ptr, "https://b.test/");
    ck_assert_int_eq(t->times_us[0], -5 - EPOCH_1601_US);
    ck_assert_int_eq(t->times_us[1], -EPOCH_1601_US);
    ck_assert_int_eq(t->times_us[2], 13000000000000001 - EPOCH_1601_US);
    ck_assert_uint_eq(t->ids[2], 1);
    ck_assert_uint_eq(t->ids[3], 0);
    ck_assert_uint_eq(t->ids[4], 1);
    ck_assert_int_eq(t->times_us[5], 13000000000000002 - EPOCH_1601_US);
    ck_assert_ptr_null(t->sizes);
    trace_free(t);
}
END_TEST

/* A search was for the name of a table of Firefox. */
START_TEST(words_of_another_browser)
{
    struct trace *t;

    make("History", "INSERT INTO urls VALUES"
                    "(1,'https://www.google.com/search?q=moz_historyvisits');"
                    "INSERT INTO visits VALUES(1,1,13000000000000002);");
    t = load_ok("History");
    ck_assert_uint_eq(t->request_count, 1);
    trace_free(t);
}
END_TEST

START_TEST(since_until_and_limit)
{
    struct trace_options options = TRACE_OPTIONS_DEFAULT;
    struct trace *t;

    make("History", "INSERT INTO urls VALUES(1,'http://a.test/'),(2,'http://b.test/');"
                    "INSERT INTO visits VALUES(1,1,11644473600000000),(2,2,11644473600000001),"
                    "(3,1,11644473600000002),(4,2,11644473600000003);");
    options.since_us = 1;
    options.until_us = 3;
    ck_assert_int_eq(load("History", options, &t), TRACE_OK);
    ck_assert_uint_eq(t->request_count, 2);
    ck_assert_int_eq(t->times_us[0], 1);
    ck_assert_int_eq(t->times_us[1], 2);
    ck_assert_uint_eq(t->counts.skipped_time, 2);
    trace_free(t);
    options.limit = 1;
    ck_assert_int_eq(load("History", options, &t), TRACE_OK);
    ck_assert_uint_eq(t->request_count, 1);
    ck_assert_str_eq(t->urls[0].ptr, "http://b.test/");
    trace_free(t);
    options.since_us = 9;
    options.until_us = INT64_MAX;
    ck_assert_int_eq(load("History", options, &t), TRACE_EMPTY);
    ck_assert_ptr_nonnull(strstr(why, "4 outside the chosen times"));
}
END_TEST

START_TEST(what_is_left_out)
{
    struct trace_options options = TRACE_OPTIONS_DEFAULT;
    struct trace *t;

    make("History",
         "INSERT INTO urls VALUES(1,'http://a.test/'),(2,'chrome://newtab/'),(3,NULL),"
         "(4,x'687474703a2f2f622e746573742f'),(5,'file:///x'),(6,''),"
         "(7,CAST(x'687474703a2f2f622e7465737400' AS TEXT));"
         "INSERT INTO visits(url,visit_time) VALUES(1,1),(2,2),(3,3),(4,4),(5,5),(6,6),(7,7),"
         "(8,8),(9,9),(1,'yesterday'),(1,-9223372036854775808),(1,1.5),(1,10);");
    t = load_ok("History");
    ck_assert_uint_eq(t->request_count, 2);
    ck_assert_uint_eq(t->counts.skipped_scheme, 2);
    ck_assert_uint_eq(t->counts.skipped_orphan, 2);
    ck_assert_uint_eq(t->counts.skipped_bad, 7);
    trace_free(t);
    options.all_schemes = true;
    ck_assert_int_eq(load("History", options, &t), TRACE_OK);
    ck_assert_uint_eq(t->request_count, 4);
    ck_assert_uint_eq(t->counts.skipped_scheme, 0);
    trace_free(t);
}
END_TEST

START_TEST(utf16_is_understood)
{
    sqlite3 *db = open_database("History");
    struct trace *t;

    run(db, "PRAGMA encoding = 'UTF-16';");
    run(db, schema);
    run(db, "INSERT INTO urls VALUES(1,'http://a.test/');INSERT INTO visits VALUES(1,1,1);");
    sqlite3_close(db);
    t = load_ok("History");
    ck_assert_str_eq(t->urls[0].ptr, "http://a.test/");
    trace_free(t);
}
END_TEST

/* An index of times from which a visit is missing: the table has it all the same. */
START_TEST(a_damaged_index_does_not_matter)
{
    struct trace *t;
    sqlite3 *db;

    make("History", "INSERT INTO urls VALUES(1,'http://a.test/');"
                    "INSERT INTO visits VALUES(1,1,1),(2,1,2);PRAGMA writable_schema=ON;"
                    "CREATE TABLE saved AS SELECT * FROM sqlite_master WHERE type='index' AND "
                    "tbl_name='visits';"
                    "DELETE FROM sqlite_master WHERE name='visits_time_index';");
    db = open_database("History");
    run(db, "INSERT INTO visits VALUES(3,1,3);PRAGMA writable_schema=ON;"
            "INSERT INTO sqlite_master SELECT * FROM saved;");
    sqlite3_close(db);
    t = load_ok("History");
    ck_assert_uint_eq(t->request_count, 3);
    trace_free(t);
}
END_TEST

/* ---- in use by another process --------------------------------------------------------------- */

struct holder {
    pid_t pid;
    int ready;
};

/* Another process that runs this and keeps the database open until it is killed. */
static struct holder
hold(const char *name, const char *const statements[])
{
    struct holder holder;
    int ends[2];
    char byte;

    ck_assert_int_eq(pipe(ends), 0);
    holder.pid = fork();
    ck_assert_int_ge(holder.pid, 0);
    if (holder.pid == 0) {
        sqlite3 *db;
        int rc = sqlite3_open(scratch_path(name), &db);

        for (size_t i = 0; rc == SQLITE_OK && statements[i]; i++)
            rc = sqlite3_exec(db, statements[i], NULL, NULL, NULL);
        if (rc != SQLITE_OK || write(ends[1], "r", 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    close(ends[1]);
    holder.ready = ends[0];
    ck_assert_int_eq(read(holder.ready, &byte, 1), 1);
    return holder;
}

static void
kill_holder(struct holder *holder)
{
    kill(holder->pid, SIGKILL);
    ck_assert_int_eq(waitpid(holder->pid, NULL, 0), holder->pid);
    close(holder->ready);
}

/* Loads while it is held, and once more after the holder died without a word. */
static void
check_held(const char *const statements[], size_t requests)
{
    struct holder holder = hold("History", statements);
    struct trace *t = load_ok("History");

    ck_assert_uint_eq(t->request_count, requests);
    trace_free(t);
    kill_holder(&holder);
    t = load_ok("History");
    ck_assert_uint_eq(t->request_count, requests);
    trace_free(t);
}

#define TWO_VISITS \
    "INSERT INTO urls VALUES(1,'http://a.test/');INSERT INTO visits VALUES(1,1,1),(2,1,2);"

START_TEST(an_exclusive_lock_does_not_matter)
{
    static const char *const statements[] = {"PRAGMA locking_mode=EXCLUSIVE", "BEGIN EXCLUSIVE",
                                             "INSERT INTO visits VALUES(3,1,3)", NULL};

    make("History", TWO_VISITS);
    check_held(statements, 2);
}
END_TEST

START_TEST(rows_in_the_log_are_seen)
{
    static const char *const statements[] = {"PRAGMA journal_mode=WAL",
                                             "PRAGMA wal_autocheckpoint=0",
                                             "INSERT INTO visits VALUES(3,1,3)",
                                             "INSERT INTO visits VALUES(4,1,4)",
                                             "BEGIN",
                                             "INSERT INTO visits VALUES(5,1,5)",
                                             NULL};

    make("History", TWO_VISITS);
    check_held(statements, 4);
    ck_assert_int_eq(access(scratch_path("History-wal"), F_OK), 0);
}
END_TEST

START_TEST(rows_in_the_log_of_a_browser_are_seen)
{
    static const char *const statements[] = {
        "PRAGMA locking_mode=EXCLUSIVE", "PRAGMA journal_mode=WAL", "PRAGMA wal_autocheckpoint=0",
        "INSERT INTO visits VALUES(3,1,3)", NULL};

    make("History", TWO_VISITS);
    check_held(statements, 3);
}
END_TEST

START_TEST(a_link_leads_to_the_log)
{
    static const char *const statements[] = {"PRAGMA journal_mode=WAL",
                                             "PRAGMA wal_autocheckpoint=0",
                                             "INSERT INTO visits VALUES(3,1,3)", NULL};
    struct holder holder;
    struct trace *t;

    make("History", TWO_VISITS);
    holder = hold("History", statements);
    ck_assert_int_eq(symlink("History", scratch_path("link")), 0);
    t = load_ok("link");
    ck_assert_uint_eq(t->request_count, 3);
    trace_free(t);
    kill_holder(&holder);
}
END_TEST

START_TEST(a_log_mode_file_without_its_log)
{
    struct trace *t;

    make("History", TWO_VISITS "PRAGMA journal_mode=WAL;");
    t = load_ok("History");
    ck_assert_uint_eq(t->request_count, 2);
    trace_free(t);
}
END_TEST

/* Pages of an unfinished transaction stand in the file: the journal takes them back. */
START_TEST(half_a_transaction_is_taken_back)
{
    static const char *const statements[] = {
        "PRAGMA cache_size=2",
        "PRAGMA cache_spill=2",
        "BEGIN",
        "UPDATE urls SET url = 'http://changed.test/' || id",
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < 3000) "
        "INSERT INTO visits SELECT NULL, 1, i FROM n",
        NULL};
    struct trace_options options = TRACE_OPTIONS_DEFAULT;
    struct holder holder;
    struct trace *t;
    struct stat st;

    make("History", "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < 1000) "
                    "INSERT INTO urls SELECT i, 'http://host.test/' || i FROM n;"
                    "INSERT INTO visits SELECT id, id, id FROM urls;");
    holder = hold("History", statements);
    ck_assert_int_eq(stat(scratch_path("History-journal"), &st), 0);
    ck_assert_int_gt(st.st_size, PAGE);
    ck_assert_int_eq(load("History", options, &t), TRACE_OK);
    ck_assert_uint_eq(t->request_count, 1000);
    ck_assert_str_eq(t->urls[0].ptr, "http://host.test/1");
    ck_assert_str_eq(t->urls[999].ptr, "http://host.test/1000");
    trace_free(t);
    kill_holder(&holder);
}
END_TEST

START_TEST(a_journal_over_several_databases_is_refused)
{
    static const unsigned char magic[] = {0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7};
    char journal[600] = "";

    make("History", TWO_VISITS);
    memcpy(journal, magic, sizeof(magic));
    memcpy(journal + sizeof(journal) - sizeof(magic), magic, sizeof(magic));
    scratch_write("History-journal", journal, sizeof(journal));
    refuse("History", TRACE_CANNOT_OPEN, "several databases");
}
END_TEST

/* Another process that changes the file's time again and again; for ever, if `times` is 0. */
static pid_t
touch(const char *name, int times)
{
    pid_t pid = fork();

    ck_assert_int_ge(pid, 0);
    if (pid != 0)
        return pid;
    for (int i = 0; times == 0 || i < times; i++) {
        utimensat(AT_FDCWD, scratch_path(name), NULL, 0);
        usleep(1000);
    }
    _exit(0);
}

START_TEST(a_file_that_is_written_to_is_awaited)
{
    struct trace_options options = TRACE_OPTIONS_DEFAULT;
    struct trace *t;
    pid_t pid;

    make("History", TWO_VISITS);
    pid = touch("History", 60);
    ck_assert_int_eq(trace_load(scratch_path("History"), &options, &t, why, sizeof(why)), TRACE_OK);
    ck_assert_uint_eq(t->request_count, 2);
    trace_free(t);
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
}
END_TEST

START_TEST(a_file_that_is_always_written_to_is_given_up)
{
    struct trace_options options = TRACE_OPTIONS_DEFAULT;
    enum trace_error error = TRACE_OK;
    pid_t pid;

    make("History", TWO_VISITS);
    pid = touch("History", 0);
    /* On a busy machine the writer may be kept from writing for long enough. */
    for (int i = 0; i < 10 && error == TRACE_OK; i++) {
        struct trace *t;

        error = trace_load(scratch_path("History"), &options, &t, why, sizeof(why));
        trace_free(t);
    }
    kill(pid, SIGKILL);
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
    ck_assert_int_eq(error, TRACE_CANNOT_OPEN);
    ck_assert_ptr_nonnull(strstr(why, "another process writes to it all the time"));
}
END_TEST

START_TEST(no_space_for_a_copy)
{
    make("History", TWO_VISITS);
    setenv("TMPDIR", scratch_path("nowhere"), 1);
    refuse("History", TRACE_CANNOT_OPEN, "cannot make a folder for a private copy: No such file");
}
END_TEST

/* TMPDIR and the folder of a history may be as long as a path can be. */
START_TEST(paths_too_long_for_a_copys_name)
{
    static char deep[PATH_MAX + 300];
    size_t top = strlen(strcpy(deep, scratch_path("tmp"))), len = top;

    /* A folder in which "/sunproxy-XXXXXX" fits, and "/History" in that does not. */
    while (len < PATH_MAX - 20) {
        size_t more = PATH_MAX - 20 - len < 400 ? PATH_MAX - 20 - len : 200;

        if (more > 250)
            more /= 2;
        deep[len] = '/';
        memset(deep + len + 1, 'd', more - 1);
        deep[len += more] = '\0';
        ck_assert_msg(mkdir(deep, 0700) == 0, "%s", strerror(errno));
    }
    setenv("TMPDIR", deep, 1);
    make("History", TWO_VISITS);
    refuse("History", TRACE_CANNOT_OPEN,
           "cannot make a folder for a private copy: File name too long");
    strcat(deep, "/a-name-that-is-longer");
    setenv("TMPDIR", deep, 1);
    refuse("History", TRACE_CANNOT_OPEN,
           "cannot make a folder for a private copy: File name too long");
    for (*strrchr(deep, '/') = '\0'; strlen(deep) > top; *strrchr(deep, '/') = '\0')
        ck_assert_msg(rmdir(deep) == 0, "a copy was left behind: %s", strerror(errno));
}
END_TEST

/* A time stamp of the future shows nothing about when the file was written. */
START_TEST(a_file_from_the_future)
{
    struct timespec times[2] = {{.tv_sec = time(NULL) + 86400}, {.tv_sec = time(NULL) + 86400}};

    make("History", TWO_VISITS);
    ck_assert_int_eq(utimensat(AT_FDCWD, scratch_path("History"), times, 0), 0);
    trace_free(load_ok("History"));
}
END_TEST

/* ---- broken -------------------------------------------------------------------------------- */

START_TEST(other_tables_and_columns)
{
    sqlite3 *db = open_database("places.sqlite");

    run(db, "CREATE TABLE moz_places(id INTEGER PRIMARY KEY, url TEXT)");
    sqlite3_close(db);
    refuse("places.sqlite", TRACE_NOT_A_TRACE, "no such table: visits; expected Chrome's tables");
    db = open_database("columns");
    run(db, "CREATE TABLE urls(id INTEGER PRIMARY KEY, url TEXT);"
            "CREATE TABLE visits(id INTEGER PRIMARY KEY, url INTEGER, visit_date INTEGER)");
    sqlite3_close(db);
    refuse("columns", TRACE_NOT_A_TRACE, "no such column: v.visit_time");
    db = open_database("urls");
    run(db, "CREATE TABLE visits(id INTEGER PRIMARY KEY, url INTEGER, visit_time INTEGER)");
    sqlite3_close(db);
    refuse("urls", TRACE_NOT_A_TRACE, "no such table: urls");
}
END_TEST

/* A view could run for ever; none is asked. */
START_TEST(views_are_not_run)
{
    sqlite3 *db = open_database("History");

    run(db, "CREATE TABLE urls(id INTEGER PRIMARY KEY, url TEXT);"
            "CREATE VIEW visits AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n) "
            "SELECT i AS id, i AS url, i AS visit_time FROM n;");
    sqlite3_close(db);
    refuse("History", TRACE_NOT_A_TRACE, "expected Chrome's tables");
}
END_TEST

/* Nor is an expression that stands in for a column. */
START_TEST(computed_columns_are_refused)
{
    sqlite3 *db = open_database("History");

    run(db, "CREATE TABLE urls(id INTEGER PRIMARY KEY, url TEXT AS (hex(id)));"
            "CREATE TABLE visits(id INTEGER PRIMARY KEY, url INTEGER, visit_time INTEGER);"
            "INSERT INTO urls VALUES(1); INSERT INTO visits VALUES(1, 1, 1);");
    sqlite3_close(db);
    refuse("History", TRACE_NOT_A_TRACE, "it computes columns");
}
END_TEST

START_TEST(no_database_and_no_visits)
{
    char garbage[3 * PAGE];

    for (size_t i = 0; i < sizeof(garbage); i++)
        garbage[i] = (char)(i * 197 + i / 251);
    scratch_write("encrypted", garbage, sizeof(garbage));
    refuse("encrypted", TRACE_NOT_A_TRACE, "not an SQLite database (or an encrypted one)");
    memcpy(garbage, "SQLite format 3", 16);
    scratch_write("garbage", garbage, sizeof(garbage));
    refuse("garbage", TRACE_NOT_A_TRACE, "not an SQLite database");
    scratch_write("nothing", "", 0);
    refuse("nothing", TRACE_NOT_A_TRACE, "no such table: visits");
    make("fresh", "");
    refuse("fresh", TRACE_EMPTY, "no request in it");
    make("orphans", "INSERT INTO visits VALUES(1,1,1),(2,7,1);");
    refuse("orphans", TRACE_EMPTY, "(left out: 2 without a URL)");
}
END_TEST

/* Cut anywhere, it is said to be damaged, never read in part. */
START_TEST(truncated_at_every_page)
{
    size_t len;
    char *bytes;

    make("whole",
         "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < 600) "
         "INSERT INTO urls SELECT i, 'http://host.test/a/long/enough/path/to/fill/pages/' || i "
         "FROM n; INSERT INTO visits SELECT id, id, id FROM urls;");
    bytes = scratch_read(scratch_path("whole"), &len);
    ck_assert_uint_ge(len, 12 * PAGE);
    for (size_t cut = PAGE; cut < len; cut += PAGE) {
        scratch_write("cut", bytes, cut);
        refuse("cut", TRACE_NOT_A_TRACE, "damaged or cut short");
        scratch_write("cut", bytes, cut + 1000);
        refuse("cut", TRACE_NOT_A_TRACE, "damaged or cut short");
    }
    scratch_write("cut", bytes, 1000);
    refuse("cut", TRACE_NOT_A_TRACE, "cut");
    scratch_write("cut", bytes, 60);
    refuse("cut", TRACE_NOT_A_TRACE, "expected Chrome's tables");
    free(bytes);
}
END_TEST

/* Whatever one page turns into: a trace or a sentence, no crash, and nothing left behind. */
START_TEST(every_page_overwritten)
{
    size_t len;
    char *bytes;
    char saved[PAGE];
    struct trace *t;

    make("whole",
         "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < 300) "
         "INSERT INTO urls SELECT i, 'http://host.test/a/long/enough/path/to/fill/pages/' || i "
         "FROM n; INSERT INTO visits SELECT id, id, id FROM urls;");
    bytes = scratch_read(scratch_path("whole"), &len);
    for (size_t at = 0; at < len; at += PAGE) {
        memcpy(saved, bytes + at, PAGE);
        for (size_t i = at == 0 ? 100 : 0; i < PAGE; i++)
            bytes[at + i] = (char)(bytes[at + i] ^ (char)(i * 31 + at / PAGE));
        scratch_write("bad", bytes, len);
        if (load("bad", TRACE_OPTIONS_DEFAULT, &t) != TRACE_OK)
            ck_assert_ptr_nonnull(strstr(why, "bad"));
        else
            trace_free(t);
        memcpy(bytes + at, saved, PAGE);
    }
    free(bytes);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("chrome");
    TCase *tcase = tcase_create("made");

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, order_times_and_ties);
    tcase_add_test(tcase, words_of_another_browser);
    tcase_add_test(tcase, since_until_and_limit);
    tcase_add_test(tcase, what_is_left_out);
    tcase_add_test(tcase, utf16_is_understood);
    tcase_add_test(tcase, a_damaged_index_does_not_matter);
    tcase_add_test(tcase, an_exclusive_lock_does_not_matter);
    tcase_add_test(tcase, rows_in_the_log_are_seen);
    tcase_add_test(tcase, rows_in_the_log_of_a_browser_are_seen);
    tcase_add_test(tcase, a_link_leads_to_the_log);
    tcase_add_test(tcase, a_log_mode_file_without_its_log);
    tcase_add_test(tcase, half_a_transaction_is_taken_back);
    tcase_add_test(tcase, a_journal_over_several_databases_is_refused);
    tcase_add_test(tcase, a_file_that_is_written_to_is_awaited);
    tcase_add_test(tcase, a_file_that_is_always_written_to_is_given_up);
    tcase_add_test(tcase, no_space_for_a_copy);
    tcase_add_test(tcase, paths_too_long_for_a_copys_name);
    tcase_add_test(tcase, a_file_from_the_future);
    tcase_add_test(tcase, other_tables_and_columns);
    tcase_add_test(tcase, views_are_not_run);
    tcase_add_test(tcase, computed_columns_are_refused);
    tcase_add_test(tcase, no_database_and_no_visits);
    tcase_add_test(tcase, truncated_at_every_page);
    tcase_add_test(tcase, every_page_overwritten);
    suite_add_tcase(suite, tcase);
    return suite;
}
