/*
 * Loading with the first, the second, the third ... allocation failing: each is answered with
 * TRACE_NO_MEMORY and a sentence, nothing is lost (the address sanitizer looks), and no copy of a
 * database stays behind.
 */
#include "trace/trace.h"

#include <sqlite3.h>
#include <zlib.h>

#include "base/request_schema.h"
#include "tests/unit/torture.h"
#include "tests/unit/trace/scratch.h"

enum { URLS = 300 };

static char why[512];

struct job {
    const char *path;
    struct trace_options options;
    size_t loaded; /* requests, when nothing failed */
};

/* Check's own allocations would fail too: it is asked only after the failure, or after the walk. */
static void
load(void *context)
{
    struct job *job = context;
    struct trace *trace = NULL;
    enum trace_error error = trace_load(job->path, &job->options, &trace, why, sizeof(why));

    if (torture_failed()) {
        ck_assert_msg(error == TRACE_NO_MEMORY, "%d: %s", (int)error, why);
        ck_assert_ptr_null(trace);
        ck_assert_ptr_nonnull(strstr(why, "not enough memory"));
    } else if (error == TRACE_OK) {
        job->loaded = trace->request_count;
    }
    trace_free(trace);
}

START_TEST(a_list)
{
    struct job job = {.options = TRACE_OPTIONS_DEFAULT};
    struct buf text;

    buf_init(&text, 1U << 20U);
    for (int i = 0; i < URLS; i++)
        ck_assert(buf_printf(&text, "http://host%d.test/%0300d\t%d\n", i, i, i));
    job.path = scratch_write("list", buf_str(&text), text.len);
    job.options.base_urls = _i != 0;
    ck_assert_uint_ge(torture_walk(load, &job), 15);
    ck_assert_msg(job.loaded == URLS, "%s", why);
    buf_free(&text);
}
END_TEST

/* Texts whose readers put URLs together, keep fields, or compress nothing. */
static const char *const texts[] = {
    "h - - [01/Jan/1970:00:00:01 +0000] \"GET /a HTTP/1.0\" 200 7\n",
    "1.5 1 h A/200 1 CONNECT b.test:443 - - -\n",
    "#separator \\x09\n#fields\tts\tmethod\thost\turi\n1\tGET\ta.test\t/\n",
    "{\"ts\":1,\"method\":\"GET\",\"host\":\"a.test\",\"uri\":\"/\",\"status_code\":200}\n",
    "url,time,size,status\n\"http://a.test/\"\"x\",1,2,200\n",
    "key\nuser:1\n",
    "1 2 3\n4 5 6\n",
    "2024-05-31T12:30:00Z\t-\thttp://a.test/\\x20\thit\t200\t1\t1\t-\n",
    "{\"msec\":\"1\",\"remote_addr\":\"::1\",\"http_host\":\"a.test\",\"uri\":\"/\",\"args\":\"b\"}\n",
    "#Fields: date time cs-uri-stem cs-uri-query cs-host\n2024-05-31 12:30:00 /a b=c d.test\n",
    "http 2024-05-31T12:30:00Z app/lb/5 [::1]:1 - 0 0 0 200 - 1 2 \"GET http://a.test:80/ HTTP/1.1\"\n",
    "h:1 [31/May/2024:12:30:00.000] f b/s 0/0/0/0/0 200 1 - - ---- 0/0/0/0/0 0/0 \"GET / HTTP/1\"\n",
    "user:1\nuser:1\n",
    "{\"log\":{\"entries\":[{\"request\":{\"url\":\"http://a.test/\"}}]}}",
};

START_TEST(other_formats)
{
    struct job job = {.options = TRACE_OPTIONS_DEFAULT};

    job.path = scratch_write("trace", texts[_i], strlen(texts[_i]));
    job.options.methods = "all";
    ck_assert_uint_ge(torture_walk(load, &job), 6);
    ck_assert_msg(job.loaded != 0, "%s", why);
}
END_TEST

START_TEST(a_format_string)
{
    struct job job = {.options = TRACE_OPTIONS_DEFAULT};
    static const char text[] = "http://a.test/\\x20|200|x\n/path|200|x\n";

    job.path = scratch_write("trace", text, strlen(text));
    job.options.format = "%{url}x|%s|%{User-Agent}i";
    ck_assert_uint_ge(torture_walk(load, &job), 8);
    ck_assert_msg(job.loaded == 2, "%s", why);
}
END_TEST

START_TEST(records)
{
    enum { RECORD = 24, COUNT = 2000 };
    static unsigned char bytes[COUNT * RECORD];
    struct job job = {.options = TRACE_OPTIONS_DEFAULT};

    for (size_t i = 0; i < COUNT; i++) {
        bytes[i * RECORD + 4] = (unsigned char)i;
        bytes[i * RECORD + 5] = (unsigned char)(i / 256);
        memset(bytes + i * RECORD + 16, 0xff, 8); /* there is no next request */
    }
    job.path = scratch_write("records", bytes, sizeof(bytes));
    job.options.format = "oracle";
    job.options.unique = _i != 0;
    ck_assert_uint_ge(torture_walk(load, &job), 10);
    ck_assert_msg(job.loaded == COUNT, "%s", why);
}
END_TEST

START_TEST(compressed)
{
    struct job job = {.options = TRACE_OPTIONS_DEFAULT};
    gzFile file = gzopen(scratch_path("list.gz"), "wb");

    for (int i = 0; i < URLS; i++)
        ck_assert_int_gt(gzprintf(file, "http://host%d.test/%d\t%d\n", i, i, i), 0);
    ck_assert_int_eq(gzclose(file), Z_OK);
    job.path = scratch_path("list.gz");
    ck_assert_uint_ge(torture_walk(load, &job), 15);
    ck_assert_msg(job.loaded == URLS, "%s", why);
}
END_TEST

static const char *const databases[] = {
    "CREATE TABLE urls(id INTEGER PRIMARY KEY, url LONGVARCHAR);"
    "CREATE TABLE visits(id INTEGER PRIMARY KEY, url INTEGER, visit_time INTEGER);"
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < 300) "
    "INSERT INTO urls SELECT i, 'http://host.test/' || i FROM n;"
    "INSERT INTO visits SELECT id, id, id FROM urls;",
    REQUEST_SCHEMA_SQL
    "PRAGMA application_id = 0x73756e70;"
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < 300) "
    "INSERT INTO requests SELECT i, i, 1, NULL, 'http', '-', 'GET', "
    "'http://host.test/\\x20' || i, NULL, 'hit', 200, i, NULL, NULL FROM n;",
};

START_TEST(a_database)
{
    struct job job = {.options = TRACE_OPTIONS_DEFAULT};
    sqlite3 *db;

    job.path = scratch_path("History");
    ck_assert_int_eq(sqlite3_open(job.path, &db), SQLITE_OK);
    ck_assert_int_eq(sqlite3_exec(db, databases[_i], NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
    ck_assert_int_eq(mkdir(scratch_path("tmp"), 0700), 0);
    setenv("TMPDIR", scratch_path("tmp"), 1);
    ck_assert_uint_ge(torture_walk(load, &job), 10);
    ck_assert_msg(job.loaded == URLS, "%s", why);
    unsetenv("TMPDIR");
    ck_assert_msg(rmdir(scratch_path("tmp")) == 0, "a copy was left behind");
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("torture_trace");
    TCase *tcase = tcase_create("loading");

    tcase_add_checked_fixture(tcase, scratch_make, scratch_remove);
    tcase_add_loop_test(tcase, a_list, 0, 2);
    tcase_add_loop_test(tcase, other_formats, 0, (int)(sizeof(texts) / sizeof(texts[0])));
    tcase_add_test(tcase, a_format_string);
    tcase_add_loop_test(tcase, records, 0, 2);
    tcase_add_test(tcase, compressed);
    tcase_add_loop_test(tcase, a_database, 0, 2);
    suite_add_tcase(suite, tcase);
    return suite;
}
