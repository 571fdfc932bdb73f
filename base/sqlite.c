#include "base/sqlite.h"

#include <stddef.h>

int
sqlite_distrust_schema(sqlite3 *handle)
{
    static const struct {
        int option, on;
    } options[] = {
        {SQLITE_DBCONFIG_DEFENSIVE, 1},
        {SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0},
        {SQLITE_DBCONFIG_ENABLE_TRIGGER, 0},
        {SQLITE_DBCONFIG_ENABLE_VIEW, 0},
    };
    int rc = SQLITE_OK;

    for (size_t i = 0; rc == SQLITE_OK && i < sizeof(options) / sizeof(options[0]); i++)
        rc = sqlite3_db_config(handle, options[i].option, options[i].on, NULL);
    return rc;
}

int
sqlite_run(sqlite3 *handle, const char *sql)
{
    return sqlite3_exec(handle, sql, NULL, NULL, NULL);
}

int
sqlite_read_number(sqlite3 *handle, const char *sql, int64_t *number)
{
    sqlite3_stmt *statement;
    int rc = sqlite3_prepare_v2(handle, sql, -1, &statement, NULL);

    if (rc != SQLITE_OK)
        return rc;
    rc = sqlite3_step(statement);
    if (rc == SQLITE_ROW)
        *number = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    return rc == SQLITE_ROW ? SQLITE_OK : rc == SQLITE_DONE ? SQLITE_ERROR : rc;
}
