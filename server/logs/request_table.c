#include "server/logs/request_table.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "base/sqlite.h"
#include "server/logs/request_connection.h"

#define LONGEST_TEXT ((size_t)4 << 20)
#define MOST_REMOVED INT64_C(65536) /* rows in one transaction */
#define SLACK_PARTS 16u             /* of the bound: what is free in the file for a batch */
#define LOG_FRAMES 1000             /* after which it is written back */
#define LOG_PARTS 16                /* of the bound: what the log may have in any case */
#define LEAST_LOG ((int64_t)1 << 20)

struct request_table {
    sqlite3 *handle;
    sqlite3_stmt *insert;
    struct request_file file;
    uint64_t max_bytes;
    int64_t page_bytes, file_bytes; /* when the bound was kept last; 0: unknown */
    int log_frames;                 /* after the last transaction */
    bool log_is_full;               /* and cannot be emptied */
    struct buf client, method, user, url, origin;
};

/* ---- opening --------------------------------------------------------------------------------- */

/* Names of columns that are not there show here. */
static int
prepare(struct request_table *table)
{
    return sqlite3_prepare_v3(
        table->handle,
        "INSERT INTO requests (time_us, duration_us, fetch_us, protocol, client, method, url, "
        "origin, outcome, status, bytes, reason, user) VALUES "
        "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        -1, SQLITE_PREPARE_PERSISTENT, &table->insert, NULL);
}

/* In the place of SQLite's own hook, which does the same and does not say the length. */
static int
note_commit(void *argument, sqlite3 *handle, const char *schema, int frames)
{
    struct request_table *table = argument;

    table->log_frames = frames;
    if (frames >= LOG_FRAMES)
        sqlite3_wal_checkpoint_v2(handle, schema, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
    return SQLITE_OK;
}

static int
set_up(struct request_table *table, const char *path, int busy_ms, struct buf *why)
{
    int64_t objects;
    int rc;

    sqlite3_wal_hook(table->handle, note_commit, table);
    rc = request_connection_set_up(table->handle, busy_ms, why);
    if (rc == SQLITE_OK)
        rc = prepare(table);
    /* The first statement makes log and index. */
    if (rc == SQLITE_OK)
        rc = sqlite_read_number(table->handle, "SELECT count(*) FROM sqlite_master", &objects);
    return rc == SQLITE_OK ? request_file_note(&table->file, path) : rc;
}

static void
free_table(struct request_table *table)
{
    sqlite3_finalize(table->insert);
    sqlite3_close(table->handle);
    request_file_free(&table->file);
    buf_free(&table->client);
    buf_free(&table->method);
    buf_free(&table->user);
    buf_free(&table->url);
    buf_free(&table->origin);
    free(table);
}

struct request_table *
request_table_open(const char *path, uint64_t max_bytes, int busy_ms, struct buf *why)
{
    struct request_table *table;
    int rc;

    if (!request_file_prepare(path, why))
        return NULL;
    table = calloc(1, sizeof(*table));
    if (!table) {
        buf_append_str(why, strerror(ENOMEM));
        return NULL;
    }
    table->file = REQUEST_FILE_NONE;
    table->max_bytes = max_bytes < INT64_MAX ? max_bytes : 0;
    buf_init(&table->client, 128);
    buf_init(&table->method, LONGEST_TEXT);
    buf_init(&table->user, LONGEST_TEXT);
    buf_init(&table->url, LONGEST_TEXT);
    buf_init(&table->origin, LONGEST_TEXT);
    rc = sqlite3_open_v2(path, &table->handle, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
    if (rc == SQLITE_OK)
        rc = set_up(table, path, busy_ms, why);
    if (rc == SQLITE_OK)
        return table;
    if (buf_span(why).len == 0)
        buf_append_str(why, request_table_explain(table, rc));
    free_table(table);
    return NULL;
}

/* ---- moving and closing ---------------------------------------------------------------------- */

enum request_place
request_table_place(const struct request_table *table)
{
    return request_file_place(&table->file);
}

int
request_table_settle(struct request_table *table)
{
    int frames, moved;
    int rc =
        sqlite3_wal_checkpoint_v2(table->handle, NULL, SQLITE_CHECKPOINT_PASSIVE, &frames, &moved);

    return rc == SQLITE_OK && moved < frames ? SQLITE_BUSY : rc;
}

bool
request_table_close(struct request_table *table)
{
    enum request_place place;
    bool settled;

    if (!table)
        return true;
    settled = request_table_settle(table) == SQLITE_OK;
    place = request_table_place(table);
    if (place == REQUEST_REMOVED || (place == REQUEST_MOVED && settled))
        request_file_remove_log(&table->file);
    free_table(table);
    return settled || place != REQUEST_MOVED;
}

/* ---- failures -------------------------------------------------------------------------------- */

bool
request_table_blames_row(int rc)
{
    switch (rc & 0xff) {
    case SQLITE_CONSTRAINT:
    case SQLITE_TOOBIG:
    case SQLITE_MISMATCH:
        return true;
    default:
        return false;
    }
}

bool
request_table_may_recover(int rc)
{
    switch (rc & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_FULL:
    case SQLITE_NOMEM:
    case SQLITE_INTERRUPT:
        return true;
    default:
        return false;
    }
}

const char *
request_table_explain(const struct request_table *table, int rc)
{
    if (rc == SQLITE_BUSY && table->log_is_full)
        return "its write-ahead log has reached the bound, and another process reads from it";
    switch (rc & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return "another process has locked it";
    case SQLITE_FULL:
        return "the disk is full";
    case SQLITE_NOTADB:
        return "it is not an SQLite database";
    case SQLITE_NOMEM:
        return strerror(ENOMEM);
    default:
        return table->handle && sqlite3_extended_errcode(table->handle) == rc
                   ? sqlite3_errmsg(table->handle)
                   : sqlite3_errstr(rc);
    }
}

/* ---- rows ------------------------------------------------------------------------------------ */

static int
bind_text(sqlite3_stmt *statement, int column, struct buf *text)
{
    if (buf_failed(text))
        return SQLITE_TOOBIG;
    if (text->len == 0)
        return sqlite3_bind_null(statement, column);
    return sqlite3_bind_text(statement, column, text->data, (int)text->len, SQLITE_STATIC);
}

static int
bind_word(sqlite3_stmt *statement, int column, const char *word)
{
    return sqlite3_bind_text(statement, column, word, -1, SQLITE_STATIC);
}

static void
make_texts(struct request_table *table, const struct request_row *row)
{
    buf_reset(&table->client);
    buf_reset(&table->method);
    buf_reset(&table->user);
    buf_reset(&table->url);
    buf_reset(&table->origin);
    access_client_append(&table->client, &row->client);
    access_text_escape(&table->method, row->method);
    access_text_escape(&table->user, row->user);
    access_text_escape(&table->url, row->url);
    access_text_origin(&table->origin, buf_span(&table->url));
    if (row->url.len == 0)
        buf_append_char(&table->url, '-');
}

static int
bind_row(struct request_table *table, const struct request_row *row)
{
    enum {
        TIME = 1,
        DURATION,
        FETCH,
        PROTOCOL,
        CLIENT,
        METHOD,
        URL,
        ORIGIN,
        OUTCOME,
        STATUS,
        BYTES,
        REASON,
        USER
    };
    sqlite3_stmt *to = table->insert;
    int rc = sqlite3_bind_int64(to, TIME, row->time_us);

    if (rc == SQLITE_OK)
        rc = sqlite3_bind_int64(to, DURATION, row->duration_us);
    if (rc == SQLITE_OK)
        rc = row->fetch_us < 0 ? sqlite3_bind_null(to, FETCH)
                               : sqlite3_bind_int64(to, FETCH, row->fetch_us);
    if (rc == SQLITE_OK)
        rc = bind_word(to, PROTOCOL, row->protocol);
    if (rc == SQLITE_OK)
        rc = bind_text(to, CLIENT, &table->client);
    if (rc == SQLITE_OK)
        rc = bind_text(to, METHOD, &table->method);
    if (rc == SQLITE_OK)
        rc = bind_text(to, URL, &table->url);
    if (rc == SQLITE_OK)
        rc = bind_text(to, ORIGIN, &table->origin);
    if (rc == SQLITE_OK)
        rc = bind_word(to, OUTCOME, row->outcome);
    if (rc == SQLITE_OK)
        rc = row->status ? sqlite3_bind_int64(to, STATUS, row->status)
                         : sqlite3_bind_null(to, STATUS);
    if (rc == SQLITE_OK)
        rc = sqlite3_bind_int64(to, BYTES, (sqlite3_int64)row->bytes);
    if (rc == SQLITE_OK)
        rc = row->reason && *row->reason ? bind_word(to, REASON, row->reason)
                                         : sqlite3_bind_null(to, REASON);
    if (rc == SQLITE_OK)
        rc = bind_text(to, USER, &table->user);
    return rc;
}

int
request_table_insert(struct request_table *table, const struct request_row *row)
{
    int rc;

    make_texts(table, row);
    rc = bind_row(table, row);
    if (rc != SQLITE_OK)
        return rc;
    rc = sqlite3_step(table->insert);
    sqlite3_reset(table->insert);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* ---- transactions and the bound -------------------------------------------------------------- */

/* The log may have what the bound leaves beside the file, but some in any case. */
static bool
is_log_over(const struct request_table *table)
{
    enum { HEAD = 32, FRAME_HEAD = 24 };
    int64_t bound = (int64_t)table->max_bytes, allowed = bound - table->file_bytes;

    if (allowed < bound / LOG_PARTS)
        allowed = bound / LOG_PARTS;
    if (allowed < LEAST_LOG)
        allowed = LEAST_LOG;
    return bound && HEAD + table->log_frames * (FRAME_HEAD + table->page_bytes) > allowed;
}

/* A process that reads from the log prevents this. */
static int
empty_log(struct request_table *table)
{
    int rc = sqlite3_wal_checkpoint_v2(table->handle, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);

    table->log_is_full = rc == SQLITE_BUSY;
    if (rc == SQLITE_OK)
        table->log_frames = 0;
    return rc;
}

int
request_table_begin(struct request_table *table)
{
    int rc = is_log_over(table) ? empty_log(table) : SQLITE_OK;

    if (rc != SQLITE_OK)
        return rc;
    table->log_is_full = false;
    return sqlite_run(table->handle, "BEGIN IMMEDIATE");
}

void
request_table_rollback(struct request_table *table)
{
    /* After some failures SQLite has done that. */
    if (!sqlite3_get_autocommit(table->handle))
        sqlite_run(table->handle, "ROLLBACK");
}

struct sizes {
    int64_t page_bytes, pages, free_pages;
};

static int
read_sizes(struct request_table *table, struct sizes *sizes)
{
    int rc = sqlite_read_number(table->handle, "PRAGMA page_size", &sizes->page_bytes);

    if (rc == SQLITE_OK)
        rc = sqlite_read_number(table->handle, "PRAGMA page_count", &sizes->pages);
    if (rc == SQLITE_OK)
        rc = sqlite_read_number(table->handle, "PRAGMA freelist_count", &sizes->free_pages);
    return rc;
}

/* Removes the oldest rows: at least those that take `excess` of the `used` bytes on average. */
static int
remove_oldest(struct request_table *table, int64_t excess, int64_t used, uint64_t *removed)
{
    int64_t first = 0, last = 0, rows, wanted;
    char sql[80];
    int rc = sqlite_read_number(table->handle, "SELECT min(id) FROM requests", &first);

    if (rc == SQLITE_OK)
        rc = sqlite_read_number(table->handle, "SELECT max(id) FROM requests", &last);
    if (rc != SQLITE_OK)
        return rc;
    rows = last - first + 1;
    wanted = (int64_t)((double)rows * (double)excess / (double)used) + 1;
    if (wanted > MOST_REMOVED)
        wanted = MOST_REMOVED;
    /* The newest one stays, so that numbers go on rising. */
    if (wanted > rows - 1)
        wanted = rows - 1;
    if (wanted <= 0)
        return SQLITE_OK;
    sqlite3_snprintf(sizeof(sql), sql, "DELETE FROM requests WHERE id < %lld",
                     (long long)(first + wanted));
    rc = sqlite_run(table->handle, sql);
    if (rc == SQLITE_OK)
        *removed = (uint64_t)sqlite3_changes(table->handle);
    return rc;
}

/* Pages of removed rows are used again; a file that was larger is cut off. */
static int
keep_bound(struct request_table *table, uint64_t *removed)
{
    int64_t bound = (int64_t)table->max_bytes, used;
    struct sizes sizes = {.pages = 0};
    char sql[80];
    int rc = read_sizes(table, &sizes);

    if (rc != SQLITE_OK)
        return rc;
    table->page_bytes = sizes.page_bytes;
    table->file_bytes = sizes.pages * sizes.page_bytes;
    used = (sizes.pages - sizes.free_pages) * sizes.page_bytes;
    if (used > bound - bound / SLACK_PARTS) {
        rc = remove_oldest(table, used - (bound - bound / SLACK_PARTS), used, removed);
        if (rc == SQLITE_OK)
            rc = read_sizes(table, &sizes);
    }
    if (rc != SQLITE_OK || sizes.free_pages == 0 || sizes.pages * sizes.page_bytes <= bound)
        return rc;
    sqlite3_snprintf(sizeof(sql), sql, "PRAGMA incremental_vacuum(%lld)",
                     (long long)((sizes.pages * sizes.page_bytes - bound) / sizes.page_bytes + 1));
    return sqlite_run(table->handle, sql);
}

int
request_table_commit(struct request_table *table, uint64_t *removed)
{
    int rc = SQLITE_OK;

    *removed = 0;
    if (table->max_bytes)
        rc = keep_bound(table, removed);
    return rc == SQLITE_OK ? sqlite_run(table->handle, "COMMIT") : rc;
}
