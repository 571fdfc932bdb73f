/*
 * Histories that were made to do harm: each is small, and loading it neither runs what stands in
 * its schema nor takes more memory than one of its size may.
 */
#include <sqlite3.h>

#include "tests/unit/trace/child.h"
#include "trace/formats/database.h"

#define PAGE 4096u
#define MIB ((size_t)1 << 20)
/* SQLite's own limit is 64 MiB; the sanitizers add some. */
#define MEMORY_MOST (120 * MIB)

#define URLS "CREATE TABLE urls(id INTEGER PRIMARY KEY, url TEXT);"
#define VISITS "CREATE TABLE visits(id INTEGER PRIMARY KEY, url INTEGER, visit_time INTEGER);"
#define NUMBERS(n) "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < " #n ") "
#define ROWS                                                            \
    "INSERT INTO urls VALUES(1,'http://a.test/'),(2,'http://b.test/');" \
    "INSERT INTO visits VALUES(1,1,13000000000000001),(2,2,13000000000000002);"

static void
make(const char *sql)
{
    sqlite3 *db;
    char *message = NULL;

    unlink(scratch_path("History"));
    ck_assert_int_eq(sqlite3_open(scratch_path("History"), &db), SQLITE_OK);
    ck_assert_msg(sqlite3_exec(db, sql, NULL, NULL, &message) == SQLITE_OK, "%s: %s", sql, message);
    ck_assert_int_eq(sqlite3_close(db), SQLITE_OK);
}

static struct child_result
load(void)
{
    struct trace_options options = TRACE_OPTIONS_DEFAULT;
    struct child_result result;

    options.format = "chrome";
    result = child_load(scratch_path("History"), &options);
    ck_assert_msg(result.peak_bytes < MEMORY_MOST, "%zu MiB", result.peak_bytes / MIB);
    return result;
}

/* Writes the bytes, which it frees, to the file: it is refused as damaged. */
static void
expect_damaged(unsigned char *bytes, size_t len)
{
    struct child_result result;

    scratch_write("History", bytes, len);
    free(bytes);
    result = load();
    ck_assert_int_eq(result.error, TRACE_NOT_A_TRACE);
    ck_assert_msg(strstr(result.why, "damaged") != NULL, "%s", result.why);
}

/* ---- schemas --------------------------------------------------------------------------------- */

#define HUGE_TEXT "hex(zeroblob(150000000))"

static const struct {
    const char *sql;
    const char *word; /* of the sentence that refuses it; NULL: it is loaded, with both requests */
} schemas[] = {
    {"CREATE TABLE urls(id INTEGER PRIMARY KEY, url TEXT AS (" HUGE_TEXT "));" VISITS
     "INSERT INTO urls(id) VALUES(1);INSERT INTO visits VALUES(1,1,1);",
     "it computes columns"},
    {URLS "CREATE TABLE visits(id INTEGER PRIMARY KEY, url INTEGER, visit_time INTEGER AS "
          "(length(" HUGE_TEXT ")));INSERT INTO urls VALUES(1,'http://a.test/');"
          "INSERT INTO visits(id, url) VALUES(1,1);",
     "it computes columns"},
    {VISITS "CREATE VIEW urls AS SELECT 1 AS id, " HUGE_TEXT " AS url;"
            "INSERT INTO visits VALUES(1,1,1);",
     "view"},
    {URLS "CREATE VIEW visits AS SELECT id, id AS url, length(" HUGE_TEXT ") AS visit_time "
          "FROM urls;INSERT INTO urls VALUES(1,'http://a.test/');",
     "view"},
    {URLS "CREATE VIRTUAL TABLE visits USING rtree(id, url, visit_time);", "no such module"},
    {VISITS "CREATE VIRTUAL TABLE urls USING fts4(id, url);"
            "INSERT INTO visits VALUES(1,1,1);",
     "no such module"},
    /* A text of 90 KB in the schema is the URL of every row that has none. */
    {"CREATE TABLE urls(id INTEGER PRIMARY KEY);" VISITS NUMBERS(
         4000) "INSERT INTO urls SELECT i FROM n;INSERT INTO visits SELECT id, id, id FROM urls;",
     "damaged"},
    {"CREATE TABLE urls(id INTEGER, url TEXT);" VISITS
     "INSERT INTO urls VALUES(1,'http://a.test/'),(1,'http://b.test/');"
     "INSERT INTO visits VALUES(1,1,1);",
     "damaged"},
    /* What is only evaluated when something is written does no harm. */
    {URLS VISITS ROWS "CREATE TRIGGER t AFTER INSERT ON visits BEGIN "
                      "SELECT " HUGE_TEXT "; END;",
     NULL},
    {URLS VISITS ROWS "CREATE INDEX i ON visits(visit_time) WHERE length(url) > 0;"
                      "CREATE INDEX e ON urls(length(hex(url)));",
     NULL},
    {"CREATE TABLE urls(id INTEGER PRIMARY KEY, url TEXT, x CHECK (length(" HUGE_TEXT
     ") > 0 OR 1));" VISITS "INSERT INTO visits VALUES(1,1,1),(2,1,2);"
     "INSERT INTO urls VALUES(1,'http://a.test/',NULL);",
     NULL},
    /* Computed columns of other tables, too. */
    {URLS VISITS ROWS "CREATE TABLE other(a, b AS (" HUGE_TEXT "));INSERT INTO other VALUES(1);",
     NULL},
};

#define SCHEMAS ((int)(sizeof(schemas) / sizeof(schemas[0])))
#define OF_THE_SCHEMAS_DEFAULT 6

START_TEST(a_schema)
{
    struct child_result result;

    make(schemas[_i].sql);
    if (_i == OF_THE_SCHEMAS_DEFAULT) {
        static char sql[100000];
        sqlite3 *db;
        int len = sprintf(sql, "ALTER TABLE urls ADD COLUMN url TEXT DEFAULT 'http://a.test/");

        memset(sql + len, 'x', 90000);
        strcpy(sql + len + 90000, "'");
        ck_assert_int_eq(sqlite3_open(scratch_path("History"), &db), SQLITE_OK);
        ck_assert_int_eq(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
        ck_assert_int_eq(sqlite3_close(db), SQLITE_OK);
    }
    result = load();
    if (schemas[_i].word) {
        ck_assert_int_eq(result.error, TRACE_NOT_A_TRACE);
        ck_assert_msg(strstr(result.why, schemas[_i].word) != NULL, "%s", result.why);
    } else {
        ck_assert_msg(result.error == TRACE_OK, "%s", result.why);
        ck_assert_uint_eq(result.requests, 2);
    }
}
END_TEST

/* ---- pages ----------------------------------------------------------------------------------- */

static uint32_t
get32(const unsigned char *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static uint32_t
get16(const unsigned char *at)
{
    return (uint32_t)at[0] << 8 | at[1];
}

static void
put32(unsigned char *at, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        at[i] = (unsigned char)(value >> (24 - 8 * i));
}

static void
put_varint3(unsigned char *at, uint32_t value)
{
    at[0] = (unsigned char)(0x80 | value >> 14);
    at[1] = (unsigned char)(0x80 | (value >> 7 & 0x7f));
    at[2] = (unsigned char)(value & 0x7f);
}

static uint32_t
root_of(const char *table)
{
    sqlite3_stmt *statement;
    sqlite3 *db;
    uint32_t root;

    ck_assert_int_eq(sqlite3_open(scratch_path("History"), &db), SQLITE_OK);
    ck_assert_int_eq(sqlite3_prepare_v2(db, "SELECT rootpage FROM sqlite_schema WHERE name = ?", -1,
                                        &statement, NULL),
                     SQLITE_OK);
    sqlite3_bind_text(statement, 1, table, -1, SQLITE_STATIC);
    ck_assert_int_eq(sqlite3_step(statement), SQLITE_ROW);
    root = (uint32_t)sqlite3_column_int(statement, 0);
    sqlite3_finalize(statement);
    ck_assert_int_eq(sqlite3_close(db), SQLITE_OK);
    return root;
}

#define INTERIOR_TABLE 0x05
#define LEAF_TABLE 0x0d

/* All children of the table's root become its first child: the same rows come again and again. */
START_TEST(a_page_many_times)
{
    unsigned char *bytes, *root;
    uint32_t cells, first;
    size_t len;

    make(URLS VISITS NUMBERS(20000) "INSERT INTO visits SELECT i, 1, i FROM n;"
                                    "INSERT INTO urls VALUES(1,'http://a.test/');");
    bytes = (unsigned char *)scratch_read(scratch_path("History"), &len);
    root = bytes + (root_of("visits") - 1) * PAGE;
    ck_assert_uint_eq(root[0], INTERIOR_TABLE);
    cells = get16(root + 3);
    ck_assert_uint_ge(cells, 20);
    first = get32(root + get16(root + 12));
    for (uint32_t i = 1; i < cells; i++)
        put32(root + get16(root + 12 + 2 * i), first);
    put32(root + 8, first);
    expect_damaged(bytes, len);
}
END_TEST

/*
 * Each of 300 URLs of some 20 KB says that it has 1 MiB, and its overflow pages go round in a
 * circle: 6 MB that claim 300.
 */
START_TEST(overflow_pages_in_a_circle)
{
    enum { USABLE = 4096, LEAST_IN_PAGE = (USABLE - 12) * 32 / 255 - 23, COUNT = 300 };
    /* Row's header: its length, NULL for the id, a varint of 3 bytes for the text. */
    enum { HEADER = 5, BODY = 20000, LARGER = BODY + (USABLE - 4) * 250 };
    unsigned char *bytes;
    uint32_t in_page = LEAST_IN_PAGE + (HEADER + BODY - LEAST_IN_PAGE) % (USABLE - 4);
    size_t len, changed = 0;

    if (in_page > USABLE - 35)
        in_page = LEAST_IN_PAGE;
    make(URLS VISITS NUMBERS(
        300) "INSERT INTO urls SELECT i, substr('http://' || i || '.test/' || hex(zeroblob(10000)), 1, "
             "20000) FROM n;INSERT INTO visits SELECT id, id, id FROM urls;");
    bytes = (unsigned char *)scratch_read(scratch_path("History"), &len);
    ck_assert_uint_lt(len, 8 * MIB);
    for (unsigned char *page = bytes + PAGE; page < bytes + len; page += PAGE) {
        for (uint32_t i = 0; page[0] == LEAF_TABLE && i < get16(page + 3); i++) {
            unsigned char *cell = page + get16(page + 8 + 2 * i);
            unsigned char *payload = cell + 3, *last;
            uint32_t first;

            if (!(cell[0] & 0x80) || !(cell[1] & 0x80))
                continue; /* of visits: short */
            payload += (payload[0] & 0x80) ? 2 : 1;
            ck_assert_uint_eq(payload[0], HEADER);
            put_varint3(cell, HEADER + LARGER);
            put_varint3(payload + 2, 13 + 2 * LARGER);
            first = get32(payload + in_page);
            for (last = bytes + (first - 1) * PAGE; get32(last) != 0;)
                last = bytes + (get32(last) - 1) * PAGE;
            put32(last, first);
            changed++;
        }
    }
    ck_assert_uint_eq(changed, COUNT);
    expect_damaged(bytes, len);
}
END_TEST

/*
 * Visits that each claim 1 MiB in a column that is not read. One of them has it, and the others
 * share its overflow pages: SQLite walks through these for the columns behind.
 */
START_TEST(rows_that_share_overflow_pages)
{
    enum { USABLE = 4096, COUNT = 600, HEADER = 7, TIME = 8 };
    enum { IN_PAGE = (USABLE - 12) * 32 / 255 - 23, BODY = 16400 };
    enum { LARGER = BODY + (USABLE - 4) * 250 };
    struct child_result result;
    unsigned char *bytes, *payloads[COUNT];
    uint32_t shared = 0;
    char sql[600];
    size_t len, count = 0;

    /* The same bytes of both lie in the tree's page, none but IN_PAGE. */
    ck_assert_uint_gt(IN_PAGE + (HEADER + BODY + TIME - IN_PAGE) % (USABLE - 4), USABLE - 35);
    sprintf(sql,
            URLS "CREATE TABLE visits(id INTEGER PRIMARY KEY, padding, url, visit_time);"
                 "INSERT INTO urls VALUES(1,'http://a.test/');" NUMBERS(
                     600) "INSERT INTO visits SELECT i, zeroblob(iif(i = 1, %d, %d)), 1, "
                          "13000000000000001 FROM n;",
            LARGER, BODY);
    make(sql);
    bytes = (unsigned char *)scratch_read(scratch_path("History"), &len);
    ck_assert_uint_lt(len, 16 * MIB);
    for (unsigned char *page = bytes + PAGE; page < bytes + len; page += PAGE) {
        for (uint32_t i = 0; page[0] == LEAF_TABLE && i < get16(page + 3); i++) {
            unsigned char *cell = page + get16(page + 8 + 2 * i);
            unsigned char *payload = cell + 3;

            if (!(cell[0] & 0x80) || !(cell[1] & 0x80))
                continue; /* of urls: short */
            payload += (payload[0] & 0x80) ? 2 : 1;
            ck_assert_uint_eq(payload[0], HEADER);
            if (cell[3] == 1)
                shared = get32(payload + IN_PAGE);
            put_varint3(cell, HEADER + LARGER + TIME);
            put_varint3(payload + 2, 12 + 2 * LARGER);
            ck_assert_uint_lt(count, COUNT);
            payloads[count++] = payload;
        }
    }
    ck_assert_uint_eq(count, COUNT);
    ck_assert_uint_ne(shared, 0);
    for (size_t i = 0; i < count; i++)
        put32(payloads[i] + IN_PAGE, shared);
    scratch_write("History", bytes, len);
    free(bytes);
    result = load();
    ck_assert_int_eq(result.error, TRACE_NOT_A_TRACE);
    ck_assert_msg(strstr(result.why, "its rows share pages") != NULL, "%s", result.why);
}
END_TEST

START_TEST(a_huge_number_of_pages)
{
    struct child_result result;
    unsigned char *bytes;
    size_t len;

    make(URLS VISITS ROWS);
    bytes = (unsigned char *)scratch_read(scratch_path("History"), &len);
    put32(bytes + 28, UINT32_MAX);
    put32(bytes + 92, get32(bytes + 24)); /* by which the number counts as valid */
    scratch_write("History", bytes, len);
    free(bytes);
    result = load();
    ck_assert_msg(result.error == TRACE_NOT_A_TRACE || result.requests == 2, "%s", result.why);
}
END_TEST

/* ---- what is not hostile --------------------------------------------------------------------- */

/* SQLite's limits of the process are those from before. */
START_TEST(limits_are_put_back)
{
    struct trace_options options = TRACE_OPTIONS_DEFAULT;
    struct trace *trace;
    char why[512];

    make(URLS VISITS ROWS);
    sqlite3_soft_heap_limit64((sqlite3_int64)(500 * MIB));
    ck_assert_int_eq(trace_load(scratch_path("History"), &options, &trace, why, sizeof(why)),
                     TRACE_OK);
    ck_assert_int_eq(sqlite3_hard_heap_limit64(-1), 0);
    ck_assert_int_eq(sqlite3_soft_heap_limit64(-1), (sqlite3_int64)(500 * MIB));
    sqlite3_soft_heap_limit64(0);
    trace_free(trace);
}
END_TEST

static int
ask_to_stop(void *context)
{
    ++*(unsigned *)context;
    return 1;
}

/* The first row that is not returned ends the statement, because it was asked to stop, once. */
static void
expect_stop(struct database *database, sqlite3_stmt *statement, const unsigned *asked)
{
    int rc;

    while ((rc = sqlite3_step(statement)) == SQLITE_ROW)
        continue;
    ck_assert_int_eq(rc, SQLITE_INTERRUPT);
    ck_assert_int_eq(database_verdict(database, rc), SQLITE_INTERRUPT);
    ck_assert_uint_eq(*asked, 1);
    sqlite3_finalize(statement);
}

/* Rows of many pages each take long, though they take few steps. */
START_TEST(a_stop_within_few_long_rows)
{
    static const char *const tables[DATABASE_TABLES] = {"urls", "visits"};
    struct database database;
    sqlite3_stmt *statement;
    unsigned asked = 0;

    make("PRAGMA page_size = 512; CREATE TABLE urls(id INTEGER PRIMARY KEY, title, url);" VISITS
             NUMBERS(40) "INSERT INTO urls SELECT i, zeroblob(200000), 'http://a.test/' FROM n;");
    ck_assert_int_eq(database_open(&database, scratch_path("History"), tables, ask_to_stop, &asked),
                     SQLITE_OK);
    ck_assert_int_eq(
        sqlite3_prepare_v2(database.handle, "SELECT id, url FROM urls", -1, &statement, NULL),
        SQLITE_OK);
    ck_assert_int_eq(database_check(&database, scratch_path("History")), SQLITE_OK);
    expect_stop(&database, statement, &asked);
    database_close(&database);
}
END_TEST

/* Texts of many pages before each column that is read, and a pointer map. */
START_TEST(long_texts_before_the_columns)
{
    struct child_result result;

    make(
        "PRAGMA page_size = 512; PRAGMA auto_vacuum = FULL;"
        "CREATE TABLE urls(id INTEGER PRIMARY KEY, title, url);"
        "CREATE TABLE visits(id INTEGER PRIMARY KEY, a, url, b, visit_time, c, transition);" NUMBERS(50) "INSERT INTO urls SELECT i, zeroblob(90000), 'http://a.test/' || i FROM n;" NUMBERS(
            50) "INSERT INTO visits SELECT i, zeroblob(90000), i, zeroblob(90000), "
                "13000000000000000 + i, zeroblob(90000), 0x20000000 FROM n;");
    result = load();
    ck_assert_msg(result.error == TRACE_OK, "%s", result.why);
    ck_assert_uint_eq(result.requests, 50);
}
END_TEST

/* Visits of one long URL are more text than the file has, and no reason to refuse it. */
START_TEST(a_long_url_that_is_visited_often)
{
    struct child_result result;

    make(URLS VISITS
         "INSERT INTO urls VALUES(1,'http://a.test/' || hex(zeroblob(500000)));" NUMBERS(
             2000) "INSERT INTO visits SELECT i, 1, i FROM n;");
    result = load();
    ck_assert_msg(result.error == TRACE_OK, "%s", result.why);
    ck_assert_uint_eq(result.requests, 2000);
}
END_TEST

START_TEST(stopped_while_sqlite_reads)
{
    static const char *const tables[DATABASE_TABLES] = {"urls", "visits"};
    struct database database;
    sqlite3_stmt *statement;
    unsigned asked = 0;

    make(URLS VISITS NUMBERS(20000) "INSERT INTO visits SELECT i, 1, i FROM n;");
    ck_assert_int_eq(database_open(&database, scratch_path("History"), tables, ask_to_stop, &asked),
                     SQLITE_OK);
    ck_assert_int_eq(
        sqlite3_prepare_v2(database.handle, "SELECT id FROM visits", -1, &statement, NULL),
        SQLITE_OK);
    expect_stop(&database, statement, &asked);
    /* Nothing but the tables, and no function. */
    ck_assert_int_eq(
        sqlite3_prepare_v2(database.handle, "SELECT name FROM sqlite_schema", -1, &statement, NULL),
        SQLITE_AUTH);
    ck_assert_int_eq(
        sqlite3_prepare_v2(database.handle, "SELECT hex(id) FROM urls", -1, &statement, NULL),
        SQLITE_ERROR);
    ck_assert_ptr_nonnull(strstr(sqlite3_errmsg(database.handle), "not authorized"));
    database_close(&database);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("hostile_history");
    TCase *tcase = tcase_create("made");

    tcase_set_timeout(tcase, 300);
    tcase_add_checked_fixture(tcase, scratch_make, scratch_remove);
    tcase_add_loop_test(tcase, a_schema, 0, SCHEMAS);
    tcase_add_test(tcase, a_page_many_times);
    tcase_add_test(tcase, overflow_pages_in_a_circle);
    tcase_add_test(tcase, rows_that_share_overflow_pages);
    tcase_add_test(tcase, a_huge_number_of_pages);
    tcase_add_test(tcase, limits_are_put_back);
    tcase_add_test(tcase, long_texts_before_the_columns);
    tcase_add_test(tcase, a_stop_within_few_long_rows);
    tcase_add_test(tcase, a_long_url_that_is_visited_often);
    tcase_add_test(tcase, stopped_while_sqlite_reads);
    suite_add_tcase(suite, tcase);
    return suite;
}
