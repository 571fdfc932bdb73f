#include "trace/history.h"

#include <sqlite3.h>
#include <sys/stat.h>

#include "trace/snapshot.h"

/* Of a database that does not lie in a file of its own, and so is written to one. */
#define SAVED_MOST (UINT64_C(1) << 30U)

enum column { COLUMN_TIME, COLUMN_URL_ID, COLUMN_URL, COLUMN_VISIT_ID };

bool
history_is_sqlite(struct span head)
{
    static const char magic[] = "SQLite format 3"; /* with its zero byte: 16 bytes */

    return span_starts_with(head, span_of(magic, sizeof(magic)));
}

static enum trace_error
explain(sqlite3 *db, int rc, const char *path, const char *expected, char *why, size_t why_size)
{
    bool own = !db || sqlite3_errcode(db) == SQLITE_OK; /* a verdict of ours, not of the library */
    const char *said = own ? sqlite3_errstr(rc) : sqlite3_errmsg(db);

    switch (rc & 0xff) {
    case SQLITE_NOMEM:
        return TRACE_NO_MEMORY;
    case SQLITE_NOTADB:
        snprintf(why, why_size, "%s: not an SQLite database (or an encrypted one); %s", path,
                 expected);
        return TRACE_NOT_A_TRACE;
    case SQLITE_CORRUPT:
        snprintf(why, why_size, "%s: damaged or cut short (%s); %s", path, said, expected);
        return TRACE_NOT_A_TRACE;
    case SQLITE_ERROR:
        snprintf(why, why_size, "%s: %s; %s", path, said, expected);
        return TRACE_NOT_A_TRACE;
    default:
        snprintf(why, why_size, "%s: cannot read the database: %s", path, said);
        return TRACE_CANNOT_OPEN;
    }
}

/* Opens the copy so that nothing in it is run and nothing is written beside it. */
static int
open_copy(const char *copy, sqlite3 **db)
{
    int rc = sqlite3_open_v2(copy, db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);

    if (rc != SQLITE_OK)
        return rc;
    sqlite3_extended_result_codes(*db, 1);
    sqlite3_db_config(*db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(*db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    sqlite3_db_config(*db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
    sqlite3_db_config(*db, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
    sqlite3_db_config(*db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    /* Exclusive: a log needs no index file then, and the copy is locked until it is closed. */
    return sqlite3_exec(*db, "PRAGMA locking_mode = EXCLUSIVE; PRAGMA temp_store = MEMORY;", NULL,
                        NULL, NULL);
}

/* SQLite reads the missing end of a last page that was cut as zeros: catch that here. */
static int
check_whole_pages(sqlite3 *db, const char *copy)
{
    sqlite3_stmt *statement;
    struct stat st;
    int rc = sqlite3_prepare_v2(db, "PRAGMA page_size", -1, &statement, NULL);

    if (rc != SQLITE_OK)
        return rc;
    rc = sqlite3_step(statement);
    if (rc == SQLITE_ROW) {
        rc = SQLITE_OK;
        if (stat(copy, &st) != 0)
            rc = SQLITE_IOERR_FSTAT;
        else if (st.st_size % sqlite3_column_int64(statement, 0) != 0)
            rc = SQLITE_CORRUPT;
    }
    sqlite3_finalize(statement);
    return rc;
}

/* One visit; false when the builder wants no more. */
static bool
add_visit(sqlite3_stmt *statement, struct trace_builder *builder, int64_t epoch_us, bool *no_memory)
{
    struct trace_counts *counts = trace_builder_counts(builder);
    struct trace_entry entry = TRACE_ENTRY_EMPTY;
    const unsigned char *text;
    int64_t time_us, visit;

    if (sqlite3_column_type(statement, COLUMN_URL_ID) == SQLITE_NULL) {
        counts->skipped_orphan++;
        return true;
    }
    visit = sqlite3_column_int64(statement, COLUMN_VISIT_ID);
    entry.line = visit > 0 ? (uint64_t)visit : 0;
    if (sqlite3_column_type(statement, COLUMN_URL) != SQLITE_TEXT) {
        trace_add_bad(builder, entry.line, span_str("(its URL is not text)"));
        return true;
    }
    if (sqlite3_column_type(statement, COLUMN_TIME) != SQLITE_INTEGER ||
        __builtin_sub_overflow(sqlite3_column_int64(statement, COLUMN_TIME), epoch_us, &time_us)) {
        trace_add_bad(builder, entry.line, span_str("(it has no time)"));
        return true;
    }
    text = sqlite3_column_text(statement, COLUMN_URL);
    if (!text) {
        *no_memory = true;
        return false;
    }
    entry.time_us = time_us;
    entry.url = span_of(text, (size_t)sqlite3_column_bytes(statement, COLUMN_URL));
    return trace_add(builder, &entry);
}

static int
read_visits(sqlite3_stmt *statement, struct trace_builder *builder, int64_t epoch_us)
{
    bool no_memory = false;
    int rc;

    while ((rc = sqlite3_step(statement)) == SQLITE_ROW) {
        if (!add_visit(statement, builder, epoch_us, &no_memory))
            return no_memory ? SQLITE_NOMEM : SQLITE_OK;
    }
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

enum trace_error
history_read(struct input *in, const struct history *history, const struct trace_options *options,
             struct trace_builder *builder, char *why, size_t why_size)
{
    const char *path = input_name(in);
    const char *query =
        options->redirects == TRACE_REDIRECTS_DROP ? history->without_redirects : history->query;
    struct snapshot snapshot;
    sqlite3 *db = NULL;
    sqlite3_stmt *statement = NULL;
    enum trace_error error = input_is_plain_file(in)
                                 ? snapshot_take(&snapshot, path, why, why_size)
                                 : snapshot_save(&snapshot, in, SAVED_MOST, why, why_size);
    int rc;

    if (error != TRACE_OK)
        return error;
    rc = open_copy(snapshot.path, &db);
    /* Reads the schema, and with that whatever stands in a log or a journal. */
    if (rc == SQLITE_OK)
        rc = sqlite3_prepare_v2(db, query, -1, &statement, NULL);
    if (rc == SQLITE_OK)
        rc = check_whole_pages(db, snapshot.path);
    /* All files are open and locked now: were we killed, no copy would stay behind. */
    snapshot_remove(&snapshot);
    if (rc == SQLITE_OK)
        rc = read_visits(statement, builder, history->epoch_us);
    if (rc != SQLITE_OK)
        error = explain(db, rc, path, history->expected, why, why_size);
    sqlite3_finalize(statement);
    sqlite3_close(db);
    return error;
}
