#include "client/request_history.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/request_schema.h"
#include "base/sqlite.h"

#define BUSY_MS 5000

/* ---- the queries ----------------------------------------------------------------------------- */

/*
 * Parameters: from, before, rows. What the proxy answered itself and tunnels are no requests for
 * pages.
 */
#define SELECTED                                           \
    " FROM requests WHERE time_us >= ?1 AND time_us < ?2 " \
    "AND outcome NOT IN ('local', 'tunnel') "
#define IS_FAILED "(outcome NOT IN ('hit', 'miss', 'coalesced', 'bypass', 'revalidated', 'stale'))"
#define HIT_RATIO "100.0 * sum(outcome = 'hit') / count(*)"
#define BOTH_RATIO "100.0 * sum(outcome IN ('hit', 'coalesced')) / count(*)"
#define BYTE_BOTH_RATIO "100.0 * sum(iif(outcome IN ('hit', 'coalesced'), bytes, 0)) / sum(bytes)"
#define BYTE_HIT_RATIO "100.0 * sum(iif(outcome = 'hit', bytes, 0)) / sum(bytes)"

/* Failures that are not the origin's. */
#define REFUSED "('bad_url', 'bad_headers', 'denied', 'overloaded', 'stopping', 'cancelled')"

const struct report request_reports[] = {
    {"total",
     NULL,
     NULL,
     "SELECT count(*), " BOTH_RATIO ", " HIT_RATIO ", " BYTE_BOTH_RATIO ", " BYTE_HIT_RATIO
     ", coalesce(sum" IS_FAILED
     ", 0), coalesce(sum(bytes), 0), min(time_us), max(time_us)" SELECTED,
     1,
     {{"requests", "requests", 16, REPORT_COUNT},
      {"hit_ratio_with_coalesced", "hit ratio, with coalesced", 16, REPORT_PERCENT},
      {"hit_ratio", "hit ratio, hits alone", 16, REPORT_PERCENT},
      {"byte_hit_ratio_with_coalesced", "byte hit ratio, with coalesced", 16, REPORT_PERCENT},
      {"byte_hit_ratio", "byte hit ratio, hits alone", 16, REPORT_PERCENT},
      {"failed", "failed", 16, REPORT_COUNT},
      {"bytes", "bytes", 16, REPORT_BYTES},
      {"first", "first", 16, REPORT_TIME},
      {"last", "last", 16, REPORT_TIME}}},
    {"hours",
     "By hour (UTC)",
     "no requests",
     "SELECT * FROM (SELECT time_us / 3600000000 * 3600000000 AS hour, count(*), " BOTH_RATIO
     ", " HIT_RATIO ", " BYTE_HIT_RATIO ", sum" IS_FAILED ", sum(bytes)" SELECTED
     "GROUP BY hour ORDER BY hour DESC LIMIT ?3) ORDER BY hour",
     168,
     {{"time", "hour", -16, REPORT_TIME},
      {"requests", "requests", 10, REPORT_COUNT},
      {"hit_ratio_with_coalesced", "hit+coal %", 10, REPORT_PERCENT},
      {"hit_ratio", "hit %", 7, REPORT_PERCENT},
      {"byte_hit_ratio", "byte hit %", 10, REPORT_PERCENT},
      {"failed", "failed", 10, REPORT_COUNT},
      {"bytes", "bytes", 11, REPORT_BYTES}}},
    {"urls",
     "Top URLs",
     "no requests",
     "SELECT count(*), " HIT_RATIO ", sum(bytes), url" SELECTED
     "GROUP BY url ORDER BY count(*) DESC, url LIMIT ?3",
     0,
     {{"requests", "requests", 10, REPORT_COUNT},
      {"hit_ratio", "hit %", 7, REPORT_PERCENT},
      {"bytes", "bytes", 11, REPORT_BYTES},
      {"url", "URL", -48, REPORT_URL}}},
    {"origins",
     "Slow origins, by the mean time of a fetch",
     "no fetches",
     "WITH fetches AS (SELECT origin, fetch_us, " IS_FAILED " AS failed, "
     "row_number() OVER (PARTITION BY origin ORDER BY fetch_us) AS place, "
     "count(*) OVER (PARTITION BY origin) AS fetches" SELECTED
     "AND fetch_us IS NOT NULL AND origin IS NOT NULL AND outcome NOT IN " REFUSED ") "
     "SELECT fetches, sum(failed), avg(fetch_us), "
     "max(iif(place <= (fetches * 95 + 99) / 100, fetch_us, 0)), max(fetch_us), origin "
     "FROM fetches GROUP BY origin ORDER BY avg(fetch_us) DESC, origin LIMIT ?3",
     0,
     {{"fetches", "fetches", 9, REPORT_COUNT},
      {"failed", "failed", 7, REPORT_COUNT},
      {"mean_us", "mean", 10, REPORT_DURATION},
      {"within_95_percent_us", "95 % in", 10, REPORT_DURATION},
      {"longest_us", "longest", 10, REPORT_DURATION},
      {"origin", "origin", -28, REPORT_TEXT}}},
    {0},
};

/* ---- opening --------------------------------------------------------------------------------- */

/* Appends the path as a URI of SQLite. */
static void
append_uri(struct buf *uri, const char *path)
{
    buf_append_str(uri, "file:");
    for (; *path; path++)
        if (strchr("%?#", *path))
            buf_printf(uri, "%%%02x", (unsigned)(unsigned char)*path);
        else
            buf_append_char(uri, *path);
}

/* Without a write-ahead log no process writes it. */
static bool
is_at_rest(const char *path)
{
    char name[PATH_MAX];
    struct stat st;

    return (size_t)snprintf(name, sizeof(name), "%s-wal", path) < sizeof(name) &&
           stat(name, &st) != 0 && errno == ENOENT;
}

/* A file at rest is opened so that nothing is made beside it. A result code. */
static int
open_handle(const char *path, sqlite3 **handle)
{
    struct buf uri;
    int rc = SQLITE_NOMEM;

    buf_init(&uri, 4 * PATH_MAX);
    append_uri(&uri, path);
    if (is_at_rest(path))
        buf_append_str(&uri, "?immutable=1");
    if (!buf_failed(&uri))
        rc = sqlite3_open_v2(buf_str(&uri), handle,
                             SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_URI, NULL);
    buf_free(&uri);
    return rc;
}

/* The schema is not trusted: nothing in it runs. */
static int
check(sqlite3 *handle, struct buf *why)
{
    int64_t application = 0, version = 0;
    int rc = sqlite3_busy_timeout(handle, BUSY_MS);

    if (rc == SQLITE_OK)
        rc = sqlite_distrust_schema(handle);
    if (rc == SQLITE_OK)
        rc = sqlite_read_number(handle, "PRAGMA application_id", &application);
    if (rc == SQLITE_OK)
        rc = sqlite_read_number(handle, "PRAGMA user_version", &version);
    if (rc != SQLITE_OK)
        return rc;
    if (application != REQUEST_SCHEMA_APPLICATION)
        buf_append_str(why, "it is not a database of sunproxyd --request-db");
    else if (version < 1 || version > REQUEST_SCHEMA_VERSION)
        buf_printf(why, "its schema is %lld; this release reads those up to %d", (long long)version,
                   REQUEST_SCHEMA_VERSION);
    return why->len ? SQLITE_ERROR : SQLITE_OK;
}

sqlite3 *
request_history_open(const char *path, struct buf *why)
{
    sqlite3 *handle = NULL;
    int rc;

    /* SQLite says of any failure that it cannot open the file. */
    if (access(path, R_OK) != 0) {
        buf_append_str(why, strerror(errno));
        return NULL;
    }
    rc = open_handle(path, &handle);
    if (rc == SQLITE_OK)
        rc = check(handle, why);
    if (rc == SQLITE_OK)
        return handle;
    if (why->len == 0)
        buf_append_str(why, handle ? sqlite3_errmsg(handle) : sqlite3_errstr(rc));
    sqlite3_close(handle);
    return NULL;
}

bool
request_history_is_sound(sqlite3 *history)
{
    const char *path = sqlite3_db_filename(history, "main");

    return !sqlite3_uri_boolean(path, "immutable", 0) || is_at_rest(path);
}

sqlite3_stmt *
request_history_ask(sqlite3 *history, const struct report *report, int64_t since_us,
                    int64_t until_us, uint64_t top, struct buf *why)
{
    enum { SINCE = 1, UNTIL, ROWS };
    sqlite3_stmt *statement;
    uint64_t rows = report->most ? report->most : top;
    int rc = sqlite3_prepare_v2(history, report->sql, -1, &statement, NULL);

    if (rc == SQLITE_OK)
        rc = sqlite3_bind_int64(statement, SINCE, since_us);
    if (rc == SQLITE_OK)
        rc = sqlite3_bind_int64(statement, UNTIL, until_us);
    /* The total has no such parameter: one row is all that there is. */
    if (rc == SQLITE_OK && sqlite3_bind_parameter_count(statement) >= ROWS)
        rc = sqlite3_bind_int64(statement, ROWS, (sqlite3_int64)rows);
    if (rc == SQLITE_OK)
        return statement;
    buf_append_str(why, sqlite3_errmsg(history));
    sqlite3_finalize(statement);
    return NULL;
}
