#include "server/logs/request_connection.h"

#include <string.h>

#include "base/request_schema.h"
#include "base/sqlite.h"

#define LOG_BYTES "16777216" /* of the write-ahead log, once it was written back */

static int
configure(sqlite3 *handle, int busy_ms)
{
    int rc = sqlite3_extended_result_codes(handle, 1);

    if (rc == SQLITE_OK)
        rc = sqlite_distrust_schema(handle);
    if (rc == SQLITE_OK)
        rc = sqlite3_busy_timeout(handle, busy_ms);
    /* NORMAL: a crash of the system may lose the last transactions, but damages nothing. */
    if (rc == SQLITE_OK)
        rc = sqlite_run(handle, "PRAGMA synchronous = NORMAL; PRAGMA temp_store = MEMORY;"
                                "PRAGMA mmap_size = 0; PRAGMA journal_size_limit = " LOG_BYTES);
    return rc;
}

/* What a file has that may be written to. */
enum schema { SCHEMA_NONE, SCHEMA_FIRST, SCHEMA_SECOND, SCHEMA_THIS };

static int
check_schema(sqlite3 *handle, enum schema *schema, struct buf *why)
{
    int64_t application = 0, version = 0, objects = 0;
    int rc = sqlite_read_number(handle, "PRAGMA application_id", &application);

    if (rc == SQLITE_OK)
        rc = sqlite_read_number(handle, "PRAGMA user_version", &version);
    if (rc == SQLITE_OK)
        rc = sqlite_read_number(handle, "SELECT count(*) FROM sqlite_master", &objects);
    if (rc != SQLITE_OK)
        return rc;
    *schema = version == 1 ? SCHEMA_FIRST : version == 2 ? SCHEMA_SECOND : SCHEMA_THIS;
    if (application == 0 && version == 0 && objects == 0) {
        *schema = SCHEMA_NONE;
        return SQLITE_OK;
    }
    if (application != REQUEST_SCHEMA_APPLICATION)
        buf_append_str(why, "it is an SQLite database of something else");
    else if (version > REQUEST_SCHEMA_VERSION)
        buf_printf(why, "its schema is %lld, of a later release; this one writes %d",
                   (long long)version, REQUEST_SCHEMA_VERSION);
    else if (version < 1)
        buf_printf(why, "its schema is %lld; this release writes %d", (long long)version,
                   REQUEST_SCHEMA_VERSION);
    return buf_span(why).len ? SQLITE_ERROR : SQLITE_OK;
}

/* In that order: each setting is one of an empty file. */
static int
use_log(sqlite3 *handle, bool is_new, struct buf *why)
{
    sqlite3_stmt *statement;
    bool is_wal;
    int rc = is_new ? sqlite_run(handle, "PRAGMA auto_vacuum = INCREMENTAL") : SQLITE_OK;

    if (rc == SQLITE_OK)
        rc = sqlite3_prepare_v2(handle, "PRAGMA journal_mode = WAL", -1, &statement, NULL);
    if (rc != SQLITE_OK)
        return rc;
    rc = sqlite3_step(statement);
    is_wal =
        rc == SQLITE_ROW && strcmp((const char *)sqlite3_column_text(statement, 0), "wal") == 0;
    sqlite3_finalize(statement);
    if (rc != SQLITE_ROW)
        return rc == SQLITE_DONE ? SQLITE_ERROR : rc;
    if (!is_wal)
        buf_append_str(why, "its file system cannot hold a write-ahead log of SQLite");
    return is_wal ? SQLITE_OK : SQLITE_ERROR;
}

/* The checkpoint writes the number of the application to the file's header, where readers look. */
static int
make_schema(sqlite3 *handle)
{
    char numbers[160];
    int rc = sqlite_run(handle, "BEGIN IMMEDIATE; " REQUEST_SCHEMA_SQL);

    sqlite3_snprintf(sizeof(numbers), numbers,
                     "PRAGMA application_id = %d; PRAGMA user_version = %d; COMMIT; "
                     "PRAGMA wal_checkpoint",
                     REQUEST_SCHEMA_APPLICATION, REQUEST_SCHEMA_VERSION);
    return rc == SQLITE_OK ? sqlite_run(handle, numbers) : rc;
}

/* Another process may have done it meanwhile: then the statement fails, and the next start finds it.
 */
static int
upgrade_schema(sqlite3 *handle, enum schema from)
{
    char numbers[160];
    int rc = sqlite_run(handle, "BEGIN IMMEDIATE");

    if (rc == SQLITE_OK && from == SCHEMA_FIRST)
        rc = sqlite_run(handle, REQUEST_SCHEMA_UPGRADE_1);
    if (rc == SQLITE_OK)
        rc = sqlite_run(handle, REQUEST_SCHEMA_UPGRADE_2);

    sqlite3_snprintf(sizeof(numbers), numbers, "PRAGMA user_version = %d; COMMIT",
                     REQUEST_SCHEMA_VERSION);
    if (rc == SQLITE_OK)
        rc = sqlite_run(handle, numbers);
    if (rc != SQLITE_OK && !sqlite3_get_autocommit(handle))
        sqlite_run(handle, "ROLLBACK");
    return rc;
}

int
request_connection_set_up(sqlite3 *handle, int busy_ms, struct buf *why)
{
    enum schema schema = SCHEMA_THIS;
    int rc = configure(handle, busy_ms);

    if (rc == SQLITE_OK)
        rc = check_schema(handle, &schema, why);
    if (rc == SQLITE_OK)
        rc = use_log(handle, schema == SCHEMA_NONE, why);
    if (rc == SQLITE_OK && schema == SCHEMA_NONE)
        rc = make_schema(handle);
    if (rc == SQLITE_OK && (schema == SCHEMA_FIRST || schema == SCHEMA_SECOND))
        rc = upgrade_schema(handle, schema);
    return rc;
}
