/* Chrome's History while other processes use it, and the private copy that is read. */
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include "tests/unit/trace/chrome.h"

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
    struct trace *t = chrome_load_ok("History");

    ck_assert_uint_eq(t->request_count, requests);
    trace_free(t);
    kill_holder(&holder);
    t = chrome_load_ok("History");
    ck_assert_uint_eq(t->request_count, requests);
    trace_free(t);
}

#define TWO_VISITS \
    "INSERT INTO urls VALUES(1,'http://a.test/');INSERT INTO visits VALUES(1,1,1),(2,1,2);"

START_TEST(an_exclusive_lock_does_not_matter)
{
    static const char *const statements[] = {"PRAGMA locking_mode=EXCLUSIVE", "BEGIN EXCLUSIVE",
                                             "INSERT INTO visits VALUES(3,1,3)", NULL};

    chrome_make("History", TWO_VISITS);
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

    chrome_make("History", TWO_VISITS);
    check_held(statements, 4);
    ck_assert_int_eq(access(scratch_path("History-wal"), F_OK), 0);
}
END_TEST

START_TEST(rows_in_the_log_of_a_browser_are_seen)
{
    static const char *const statements[] = {
        "PRAGMA locking_mode=EXCLUSIVE", "PRAGMA journal_mode=WAL", "PRAGMA wal_autocheckpoint=0",
        "INSERT INTO visits VALUES(3,1,3)", NULL};

    chrome_make("History", TWO_VISITS);
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

    chrome_make("History", TWO_VISITS);
    holder = hold("History", statements);
    ck_assert_int_eq(symlink("History", scratch_path("link")), 0);
    t = chrome_load_ok("link");
    ck_assert_uint_eq(t->request_count, 3);
    trace_free(t);
    kill_holder(&holder);
}
END_TEST

START_TEST(a_log_mode_file_without_its_log)
{
    struct trace *t;

    chrome_make("History", TWO_VISITS "PRAGMA journal_mode=WAL;");
    t = chrome_load_ok("History");
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

    chrome_make("History",
                "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < 1000) "
                "INSERT INTO urls SELECT i, 'http://host.test/' || i FROM n;"
                "INSERT INTO visits SELECT id, id, id FROM urls;");
    holder = hold("History", statements);
    ck_assert_int_eq(stat(scratch_path("History-journal"), &st), 0);
    ck_assert_int_gt(st.st_size, PAGE);
    ck_assert_int_eq(chrome_load("History", options, &t), TRACE_OK);
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

    chrome_make("History", TWO_VISITS);
    memcpy(journal, magic, sizeof(magic));
    memcpy(journal + sizeof(journal) - sizeof(magic), magic, sizeof(magic));
    scratch_write("History-journal", journal, sizeof(journal));
    chrome_refuse("History", TRACE_CANNOT_OPEN, "several databases");
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

    chrome_make("History", TWO_VISITS);
    pid = touch("History", 60);
    ck_assert_int_eq(
        trace_load(scratch_path("History"), &options, &t, chrome_why, sizeof(chrome_why)),
        TRACE_OK);
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

    chrome_make("History", TWO_VISITS);
    pid = touch("History", 0);
    /* On a busy machine the writer is often kept from writing for long enough. */
    for (int i = 0; i < 10000 && error == TRACE_OK; i++) {
        struct trace *t;

        error = trace_load(scratch_path("History"), &options, &t, chrome_why, sizeof(chrome_why));
        trace_free(t);
    }
    kill(pid, SIGKILL);
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
    ck_assert_int_eq(error, TRACE_CANNOT_OPEN);
    ck_assert_ptr_nonnull(strstr(chrome_why, "another process writes to it all the time"));
}
END_TEST

START_TEST(no_space_for_a_copy)
{
    chrome_make("History", TWO_VISITS);
    setenv("TMPDIR", scratch_path("nowhere"), 1);
    chrome_refuse("History", TRACE_CANNOT_OPEN,
                  "cannot make a folder for a private copy: No such file");
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
    chrome_make("History", TWO_VISITS);
    chrome_refuse("History", TRACE_CANNOT_OPEN,
                  "cannot make a folder for a private copy: File name too long");
    strcat(deep, "/a-name-that-is-longer");
    setenv("TMPDIR", deep, 1);
    chrome_refuse("History", TRACE_CANNOT_OPEN,
                  "cannot make a folder for a private copy: File name too long");
    for (*strrchr(deep, '/') = '\0'; strlen(deep) > top; *strrchr(deep, '/') = '\0')
        ck_assert_msg(rmdir(deep) == 0, "a copy was left behind: %s", strerror(errno));
}
END_TEST

/* A time stamp of the future shows nothing about when the file was written. */
START_TEST(a_file_from_the_future)
{
    struct timespec times[2] = {{.tv_sec = time(NULL) + 86400}, {.tv_sec = time(NULL) + 86400}};

    chrome_make("History", TWO_VISITS);
    ck_assert_int_eq(utimensat(AT_FDCWD, scratch_path("History"), times, 0), 0);
    trace_free(chrome_load_ok("History"));
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("chrome: in use");
    TCase *tcase = tcase_create("made");

    tcase_add_checked_fixture(tcase, chrome_setup, chrome_teardown);
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
    suite_add_tcase(suite, tcase);
    return suite;
}
