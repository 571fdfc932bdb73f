/*
 * A History of Chrome's schema (version 59): see chrome.c. Where the trace has no times, visits are
 * a second apart. A visit that is earlier than the one before it would be read before it, so it
 * gets the time of that one. Sizes and statuses have no place in it.
 */
#include <errno.h>
#include <inttypes.h>
#include <sqlite3.h>
#include <stdlib.h>

#include "trace/base_url.h"
#include "trace/write/writers.h"

#define EPOCH_1601_US 11644473600000000
#define MADE_UP_START_US (EPOCH_1601_US + INT64_C(946684800000000)) /* 2000-01-01 */
#define MICRO INT64_C(1000000)
/* A link that was followed, which is no redirect: PAGE_TRANSITION_LINK with both chain ends. */
#define TRANSITION 0x30000000

static const char schema[] =
    "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; BEGIN;"
    "CREATE TABLE meta(key LONGVARCHAR NOT NULL UNIQUE PRIMARY KEY, value LONGVARCHAR);"
    "INSERT INTO meta VALUES('version', '59'), ('last_compatible_version', '16');"
    "CREATE TABLE urls(id INTEGER PRIMARY KEY AUTOINCREMENT, url LONGVARCHAR, title LONGVARCHAR,"
    " visit_count INTEGER DEFAULT 0 NOT NULL, typed_count INTEGER DEFAULT 0 NOT NULL,"
    " last_visit_time INTEGER NOT NULL, hidden INTEGER DEFAULT 0 NOT NULL);"
    "CREATE TABLE visits(id INTEGER PRIMARY KEY AUTOINCREMENT, url INTEGER NOT NULL,"
    " visit_time INTEGER NOT NULL, from_visit INTEGER, transition INTEGER DEFAULT 0 NOT NULL,"
    " segment_id INTEGER, visit_duration INTEGER DEFAULT 0 NOT NULL,"
    " incremented_omnibox_typed_score BOOLEAN DEFAULT FALSE NOT NULL, opener_visit INTEGER,"
    " originator_cache_guid TEXT, originator_visit_id INTEGER, originator_from_visit INTEGER,"
    " originator_opener_visit INTEGER, is_known_to_sync BOOLEAN DEFAULT FALSE NOT NULL);"
    "CREATE TABLE visit_source(id INTEGER PRIMARY KEY, source INTEGER NOT NULL);"
    "CREATE TABLE keyword_search_terms(keyword_id INTEGER NOT NULL, url_id INTEGER NOT NULL,"
    " term LONGVARCHAR NOT NULL, normalized_term LONGVARCHAR NOT NULL);"
    "CREATE TABLE segments(id INTEGER PRIMARY KEY, name VARCHAR, url_id INTEGER NON NULL);"
    "CREATE TABLE segment_usage(id INTEGER PRIMARY KEY, segment_id INTEGER NOT NULL,"
    " time_slot INTEGER NOT NULL, visit_count INTEGER DEFAULT 0 NOT NULL);";

static const char finish[] =
    "CREATE INDEX visits_url_index ON visits (url);"
    "CREATE INDEX visits_from_index ON visits (from_visit);"
    "CREATE INDEX visits_time_index ON visits (visit_time);"
    "CREATE INDEX urls_url_index ON urls (url);"
    "UPDATE urls SET visit_count = (SELECT count(*) FROM visits WHERE visits.url = urls.id),"
    " last_visit_time = (SELECT max(visit_time) FROM visits WHERE visits.url = urls.id);"
    "DELETE FROM urls WHERE visit_count = 0; COMMIT;";

static int64_t
time_of(const struct trace *t, size_t request)
{
    int64_t us;

    if (!t->times_us)
        return MADE_UP_START_US + (int64_t)request * MICRO;
    return __builtin_add_overflow(t->times_us[request], EPOCH_1601_US, &us) ? INT64_MAX : us;
}

static int
insert_urls(sqlite3 *db, const struct trace *t, const struct trace_write_options *options)
{
    struct span site = base_url_site(options->site ? options->site : TRACE_DEFAULT_SITE);
    sqlite3_stmt *insert;
    int rc = sqlite3_prepare_v2(db,
                                "INSERT INTO urls(id, url, title, last_visit_time) "
                                "VALUES(?1, coalesce(?2 || '/', '') || ?3, '', 0)",
                                -1, &insert, NULL);

    for (uint32_t id = 0; rc == SQLITE_OK && id < t->url_count; id++) {
        char digits[TRACE_URL_TEXT];
        struct span url = trace_url_text(t, id, digits);

        sqlite3_bind_int64(insert, 1, (int64_t)id + 1);
        if (!t->urls)
            sqlite3_bind_text64(insert, 2, site.ptr, site.len, SQLITE_STATIC, SQLITE_UTF8);
        sqlite3_bind_text64(insert, 3, url.ptr, url.len, SQLITE_STATIC, SQLITE_UTF8);
        rc = sqlite3_step(insert);
        rc = rc == SQLITE_DONE ? sqlite3_reset(insert) : rc;
    }
    sqlite3_finalize(insert);
    return rc;
}

static int
insert_visits(sqlite3 *db, const struct trace *t, const struct trace_write_options *options)
{
    sqlite3_stmt *insert;
    int rc =
        sqlite3_prepare_v2(db, "INSERT INTO visits(url, visit_time, transition) VALUES(?1, ?2, ?3)",
                           -1, &insert, NULL);
    int64_t latest = INT64_MIN; /* times before 1601 are negative, and read back as any other */

    for (size_t i = 0; rc == SQLITE_OK && i < t->request_count; i++) {
        if (trace_write_skips(&trace_writer_chrome, options, i))
            continue;
        latest = time_of(t, i) > latest ? time_of(t, i) : latest;
        sqlite3_bind_int64(insert, 1, (int64_t)t->ids[i] + 1);
        sqlite3_bind_int64(insert, 2, latest);
        sqlite3_bind_int64(insert, 3, TRANSITION);
        rc = sqlite3_step(insert);
        rc = rc == SQLITE_DONE ? sqlite3_reset(insert) : rc;
    }
    sqlite3_finalize(insert);
    return rc;
}

static int
errno_of(sqlite3 *db, int rc)
{
    int said = db ? sqlite3_system_errno(db) : 0;

    switch (rc & 0xff) {
    case SQLITE_OK:
        return 0;
    case SQLITE_NOMEM:
        return ENOMEM;
    case SQLITE_FULL:
        return ENOSPC;
    default:
        return said ? said : EIO;
    }
}

static int
write_history(const struct trace *t, const struct trace_write_options *options, const char *path)
{
    sqlite3 *db = NULL;
    int rc = sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
    int error;

    if (rc == SQLITE_OK)
        rc = sqlite3_exec(db, schema, NULL, NULL, NULL);
    if (rc == SQLITE_OK)
        rc = insert_urls(db, t, options);
    if (rc == SQLITE_OK)
        rc = insert_visits(db, t, options);
    if (rc == SQLITE_OK)
        rc = sqlite3_exec(db, finish, NULL, NULL, NULL);
    error = errno_of(db, rc);
    sqlite3_close(db);
    return error;
}

const struct trace_writer trace_writer_chrome = {
    .name = "chrome",
    .summary = "a History of Chrome's schema",
    .files_only = true,
    .reads_only = true,
    .by_time = true,
    .write_file = write_history,
};
