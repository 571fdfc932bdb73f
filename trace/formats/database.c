#include "trace/formats/database.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/sqlite.h"
#include "trace/formats/formats.h"
#include "trace/input.h"

/* Of all that SQLite allocates. Its pages and statements take about 3 MiB, and the index of a
 * write-ahead log that is read without a file for it 8 bytes a page. */
#define HEAP_MOST ((sqlite3_int64)64 << 20)

/* A look counts the pages that were fetched; the caller is asked to stop less often. */
#define OPS_BETWEEN_LOOKS 100
#define LOOKS_BETWEEN_ASKING 200u
#define PAGES_BETWEEN_ASKING 1000u

/*
 * How often the average page may be fetched. A scan fetches a page of a tree once, and an overflow
 * page about once for each column that lies in it or behind it: a statement reads four columns.
 * With a pointer map there is another fetch for each.
 */
#define FETCHES_PER_PAGE 16u
#define FETCHES_FREE 10000u
#define LEAST_PAGE 512u

/* Text in UTF-16 may grow by half when it becomes UTF-8. */
#define BYTES_OUT_PER_BYTE 2u

static const struct {
    int limit, value;
} limits[] = {
    {SQLITE_LIMIT_LENGTH, 4 * (int)TRACE_URL_MAX},
    {SQLITE_LIMIT_SQL_LENGTH, 100000},
    {SQLITE_LIMIT_COLUMN, 200},
    {SQLITE_LIMIT_EXPR_DEPTH, 100},
    {SQLITE_LIMIT_COMPOUND_SELECT, 50},
    {SQLITE_LIMIT_VDBE_OP, 25000},
    {SQLITE_LIMIT_FUNCTION_ARG, 16},
    {SQLITE_LIMIT_ATTACHED, 0},
    {SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 50},
    {SQLITE_LIMIT_VARIABLE_NUMBER, 10},
    {SQLITE_LIMIT_TRIGGER_DEPTH, 1},
    {SQLITE_LIMIT_WORKER_THREADS, 0},
};

static bool
is_wanted(const struct database *d, const char *table)
{
    for (size_t i = 0; table && i < DATABASE_TABLES; i++) {
        if (strcmp(d->tables[i], table) == 0)
            return true;
    }
    return false;
}

/* Reading the tables that were named, and pragmas, which only our own statements contain. */
static int
authorize(void *context, int action, const char *a, const char *b, const char *database,
          const char *within)
{
    (void)b;
    switch (action) {
    case SQLITE_SELECT:
    case SQLITE_PRAGMA:
        return SQLITE_OK;
    case SQLITE_READ:
        /* Without a database's name if no column is read, but only rows are. */
        return !within && (!database || strcmp(database, "main") == 0) && is_wanted(context, a)
                   ? SQLITE_OK
                   : SQLITE_DENY;
    default:
        return SQLITE_DENY;
    }
}

/* Pages that SQLite has asked its cache for since the database was opened. */
static uint64_t
count_fetches(const struct database *d)
{
    static const int kinds[] = {SQLITE_DBSTATUS_CACHE_HIT, SQLITE_DBSTATUS_CACHE_MISS};
    uint64_t sum = 0;

    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        int count = 0, most;

        if (sqlite3_db_status(d->handle, kinds[i], &count, &most, 0) == SQLITE_OK && count > 0)
            sum += (uint64_t)count;
    }
    return sum;
}

/* Ends a statement that fetches pages again and again, or that the caller stops. */
static int
look(void *context)
{
    struct database *d = context;
    uint64_t fetches = count_fetches(d);

    if (fetches > d->most_fetches) {
        d->is_exhausted = true;
        return 1;
    }
    d->looks++;
    if (d->looks < LOOKS_BETWEEN_ASKING && fetches - d->fetches_asked < PAGES_BETWEEN_ASKING)
        return 0;
    d->looks = 0;
    d->fetches_asked = fetches;
    return d->stop(d->stop_context);
}

/* The bytes of the database and of its log; false with errno set if there is no database. */
static bool
measure_files(const char *path, uint64_t *database, uint64_t *log)
{
    char name[PATH_MAX];
    struct stat st;

    if (stat(path, &st) != 0)
        return false;
    *database = (uint64_t)st.st_size;
    snprintf(name, sizeof(name), "%s-wal", path);
    *log = stat(name, &st) == 0 ? (uint64_t)st.st_size : 0;
    return true;
}

static void
allow_fetches(struct database *d, uint64_t bytes, uint64_t page_bytes)
{
    d->most_fetches = FETCHES_FREE + bytes / page_bytes * FETCHES_PER_PAGE;
}

int
database_open(struct database *d, const char *path, const char *const *tables, database_stop *stop,
              void *context)
{
    uint64_t bytes = 0, log = 0;
    int rc;

    *d = (struct database){.tables = tables, .stop = stop, .stop_context = context};
    d->soft_heap_before = sqlite3_soft_heap_limit64(-1);
    d->hard_heap_before = sqlite3_hard_heap_limit64(HEAP_MOST);
    if (!measure_files(path, &bytes, &log))
        return SQLITE_CANTOPEN;
    /* The schema is read before the size of a page is known. */
    allow_fetches(d, bytes + log, LEAST_PAGE);
    rc = sqlite3_open_v2(path, &d->handle, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
    if (rc != SQLITE_OK)
        return rc;
    sqlite3_extended_result_codes(d->handle, 1);
    rc = sqlite_distrust_schema(d->handle);
    if (rc == SQLITE_OK)
        rc = sqlite3_db_config(d->handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++)
        sqlite3_limit(d->handle, limits[i].limit, limits[i].value);
    if (rc == SQLITE_OK)
        rc = sqlite3_drop_modules(d->handle, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_set_authorizer(d->handle, authorize, d);
    sqlite3_progress_handler(d->handle, OPS_BETWEEN_LOOKS, look, d);
    /* Exclusive: a log needs no index file then, and the copy is locked until it is closed. */
    if (rc == SQLITE_OK)
        rc = sqlite_run(d->handle, "PRAGMA locking_mode = EXCLUSIVE; PRAGMA temp_store = MEMORY;"
                                   "PRAGMA cell_size_check = ON; PRAGMA mmap_size = 0;");
    return rc;
}

/* An expression of the schema's could stand in for a column. */
static int
refuse_generated_columns(struct database *d, const char *table)
{
    enum { COLUMN_HIDDEN = 6 }; /* 2 and 3: generated */
    sqlite3_stmt *statement;
    char sql[80];
    int rc;

    snprintf(sql, sizeof(sql), "PRAGMA main.table_xinfo(%s)", table);
    rc = sqlite3_prepare_v2(d->handle, sql, -1, &statement, NULL);
    if (rc != SQLITE_OK)
        return rc;
    while ((rc = sqlite3_step(statement)) == SQLITE_ROW) {
        if (sqlite3_column_int(statement, COLUMN_HIDDEN) != 0) {
            rc = SQLITE_AUTH;
            break;
        }
    }
    sqlite3_finalize(statement);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* SQLite reads the missing end of a last page that was cut as zeros: catch that here. */
static int
check_files(struct database *d, const char *path)
{
    uint64_t bytes = 0, log = 0;
    int64_t page_bytes = 0;
    int rc = sqlite_read_number(d->handle, "PRAGMA page_size", &page_bytes);

    if (rc != SQLITE_OK)
        return rc;
    if (!measure_files(path, &bytes, &log))
        return SQLITE_IOERR_FSTAT;
    if (bytes % (uint64_t)page_bytes != 0)
        return SQLITE_CORRUPT;
    allow_fetches(d, bytes + log, (uint64_t)page_bytes);
    d->bytes_left = (bytes + log) * BYTES_OUT_PER_BYTE;
    return SQLITE_OK;
}

int
database_check(struct database *d, const char *path)
{
    int rc = check_files(d, path);

    for (size_t i = 0; rc == SQLITE_OK && i < DATABASE_TABLES; i++)
        rc = refuse_generated_columns(d, d->tables[i]);
    return rc;
}

int
database_spend(struct database *d, sqlite3_stmt *statement, int column)
{
    int type = sqlite3_column_type(statement, column);
    uint64_t len = type == SQLITE_TEXT || type == SQLITE_BLOB
                       ? (uint64_t)sqlite3_column_bytes(statement, column)
                       : 0;

    if (len > d->bytes_left)
        return SQLITE_CORRUPT;
    d->bytes_left -= len;
    return SQLITE_OK;
}

int
database_check_row(struct database *d, sqlite3_stmt *statement, size_t row, int64_t *last)
{
    int rc = SQLITE_OK;

    for (int i = 0; rc == SQLITE_OK && i < sqlite3_column_count(statement); i++)
        rc = database_spend(d, statement, i);
    if (rc == SQLITE_OK && (sqlite3_column_type(statement, 0) != SQLITE_INTEGER ||
                            !database_rises(last, row == 0, sqlite3_column_int64(statement, 0))))
        rc = SQLITE_CORRUPT;
    return rc;
}

int
database_stops_with_input(void *input)
{
    return input_should_stop(input);
}

int
database_verdict(const struct database *d, int rc)
{
    return rc != SQLITE_OK && d->is_exhausted ? SQLITE_CORRUPT : rc;
}

bool
database_rises(int64_t *last, bool first, int64_t id)
{
    bool rises = first || id > *last;

    *last = id;
    return rises;
}

const char *
database_explain(const struct database *d, int rc)
{
    if (rc == SQLITE_AUTH)
        return "it computes columns, or reads what no history needs";
    if (d->is_exhausted)
        return "its rows share pages";
    return d->handle && sqlite3_extended_errcode(d->handle) == rc ? sqlite3_errmsg(d->handle)
                                                                  : sqlite3_errstr(rc);
}

enum trace_error
database_error(const struct database *d, int rc, const char *path, const char *expected, char *why,
               size_t why_size)
{
    const char *said;

    rc = database_verdict(d, rc);
    said = database_explain(d, rc);
    switch (rc & 0xff) {
    case SQLITE_NOMEM:
        return TRACE_NO_MEMORY;
    case SQLITE_INTERRUPT:
        return TRACE_STOPPED;
    case SQLITE_NOTADB:
        snprintf(why, why_size, "%s: not an SQLite database (or an encrypted one); %s", path,
                 expected);
        return TRACE_NOT_A_TRACE;
    case SQLITE_CORRUPT:
    case SQLITE_TOOBIG:
        snprintf(why, why_size, "%s: damaged or cut short (%s); %s", path, said, expected);
        return TRACE_NOT_A_TRACE;
    case SQLITE_AUTH:
    case SQLITE_ERROR:
        snprintf(why, why_size, "%s: %s; %s", path, said, expected);
        return TRACE_NOT_A_TRACE;
    default:
        snprintf(why, why_size, "%s: cannot read the database: %s", path, said);
        return TRACE_CANNOT_OPEN;
    }
}

void
database_close(struct database *d)
{
    sqlite3_close(d->handle);
    sqlite3_hard_heap_limit64(d->hard_heap_before);
    sqlite3_soft_heap_limit64(d->soft_heap_before);
    d->handle = NULL;
}
