/*
 * The request database of sunproxyd (base/request_schema.h). Its requests are in order of their
 * arrivals, as a cache sees them; the rows are in order of their ends. What clients are in it is
 * not read.
 *
 * A private copy is read (snapshot.h), also while the daemon writes, and of compressed input and of
 * a FIFO. It is not trusted (database.h): the table is read once, from its beginning to its end,
 * and sorted here.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/array.h"
#include "base/request_schema.h"
#include "trace/formats/database.h"
#include "trace/formats/fields.h"
#include "trace/formats/formats.h"
#include "trace/input.h"
#include "trace/formats/snapshot.h"
#include "trace/formats/sunproxyd.h"
#include "trace/url_table.h"

/* Of a database that does not lie in a file of its own, and so is written to one. */
#define SAVED_MOST (UINT64_C(1) << 30U)

#define EXPECTED "expected the table requests of sunproxyd --request-db"
#define APPLICATION_BYTES 4u

struct row {
    int64_t time_us, id, size;
    uint32_t url, method; /* numbers of texts */
    uint16_t status;
    uint8_t outcome;
    enum { ROW_REQUEST, ROW_BAD, ROW_ORPHAN } kind;
};

struct rows {
    struct row *rows;
    size_t count, capacity;
    struct url_table texts; /* URLs and methods, each once */
    struct buf url;
};

static bool
sniff(struct span head)
{
    static const char magic[] = "SQLite format 3"; /* with its zero byte: 16 bytes */
    const char application[] = {
        (char)(REQUEST_SCHEMA_APPLICATION >> 24 & 0xff),
        (char)(REQUEST_SCHEMA_APPLICATION >> 16 & 0xff),
        (char)(REQUEST_SCHEMA_APPLICATION >> 8 & 0xff),
        (char)(REQUEST_SCHEMA_APPLICATION & 0xff),
    };

    return span_starts_with(head, span_of(magic, sizeof(magic))) &&
           head.len >= REQUEST_SCHEMA_APPLICATION_AT + APPLICATION_BYTES &&
           memcmp(head.ptr + REQUEST_SCHEMA_APPLICATION_AT, application, APPLICATION_BYTES) == 0;
}

/* ---- rows ------------------------------------------------------------------------------------ */

enum { ID, TIME, METHOD, URL, OUTCOME, STATUS, BYTES };

/* Empty for what is not text. False without memory. */
static bool
read_text(sqlite3_stmt *statement, int column, struct span *text)
{
    *text = span_of("", 0);
    if (sqlite3_column_type(statement, column) != SQLITE_TEXT)
        return true;
    text->ptr = (const char *)sqlite3_column_text(statement, column);
    text->len = (size_t)sqlite3_column_bytes(statement, column);
    return text->ptr != NULL;
}

static bool
is_number(sqlite3_stmt *statement, int column)
{
    return sqlite3_column_type(statement, column) == SQLITE_INTEGER;
}

static int
put_text(struct rows *rows, struct span text, uint32_t *number)
{
    bool fresh;

    return url_table_put(&rows->texts, text, number, &fresh) ? SQLITE_OK : SQLITE_NOMEM;
}

/* What is not as the daemon writes it makes the row a bad one. */
static int
fill_row(struct rows *rows, struct row *row, sqlite3_stmt *statement)
{
    int64_t status = sqlite3_column_int64(statement, STATUS);
    struct span url, method, outcome;
    int rc;

    row->kind = ROW_BAD;
    if (!read_text(statement, URL, &url) || !read_text(statement, METHOD, &method) ||
        !read_text(statement, OUTCOME, &outcome))
        return SQLITE_NOMEM;
    buf_reset(&rows->url);
    if (!is_number(statement, TIME) || !is_number(statement, BYTES) || url.len == 0 ||
        url.len > TRACE_URL_MAX || status < 0 || status > UINT16_MAX)
        return SQLITE_OK;
    if (!fields_unescape(url, &rows->url))
        return buf_failed(&rows->url) ? SQLITE_NOMEM : SQLITE_OK;
    row->time_us = sqlite3_column_int64(statement, TIME);
    row->status = is_number(statement, STATUS) ? (uint16_t)status : TRACE_STATUS_NONE;
    /* Of a failure the bytes are not the page's. */
    row->size = row->status == TRACE_STATUS_NONE ? -1 : sqlite3_column_int64(statement, BYTES);
    row->outcome = (uint8_t)sunproxyd_outcome(outcome);
    row->kind = span_equal(url, span_str("-")) ? ROW_ORPHAN : ROW_REQUEST;
    rc = put_text(rows, buf_span(&rows->url), &row->url);
    return rc == SQLITE_OK ? put_text(rows, method, &row->method) : rc;
}

static int
add_row(struct rows *rows, sqlite3_stmt *statement)
{
    struct row *row;

    if (!array_extend(&rows->rows, sizeof(*rows->rows), rows->count, &rows->capacity))
        return SQLITE_NOMEM;
    row = &rows->rows[rows->count++];
    *row = (struct row){.id = sqlite3_column_int64(statement, ID)};
    return fill_row(rows, row, statement);
}

static int
read_rows(struct database *database, sqlite3_stmt *statement, struct rows *rows)
{
    int64_t last;
    int rc;

    while ((rc = sqlite3_step(statement)) == SQLITE_ROW) {
        rc = database_check_row(database, statement, rows->count, &last);
        if (rc == SQLITE_OK)
            rc = add_row(rows, statement);
        if (rc != SQLITE_OK)
            return rc;
    }
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static int
compare_rows(const void *first, const void *second)
{
    const struct row *a = first, *b = second;

    return a->time_us != b->time_us ? (a->time_us > b->time_us) - (a->time_us < b->time_us)
                                    : (a->id > b->id) - (a->id < b->id);
}

/* ---- requests -------------------------------------------------------------------------------- */

/* False when reading is to end. */
static bool
add_request(const struct rows *rows, const struct row *row, struct trace_builder *builder)
{
    const uint64_t line = row->id > 0 ? (uint64_t)row->id : 0;
    struct trace_request request = TRACE_REQUEST_EMPTY;

    if (row->kind == ROW_BAD) {
        trace_add_bad(builder, line, span_str("(it is not as sunproxyd writes it)"));
        return true;
    }
    if (row->kind == ROW_ORPHAN) {
        trace_builder_counts(builder)->skipped_orphan++;
        return true;
    }
    request.line = line;
    request.url = rows->texts.urls[row->url];
    request.method = rows->texts.urls[row->method];
    request.time_us = row->time_us;
    request.size = row->size;
    request.status = row->status;
    request.outcome = (enum trace_outcome)row->outcome;
    return trace_add(builder, &request);
}

/* NOT INDEXED: an index may be damaged where the table is not. */
static int
prepare(struct database *database, sqlite3_stmt **statement)
{
    return sqlite3_prepare_v2(database->handle,
                              "SELECT r.id, r.time_us, r.method, r.url, r.outcome, r.status, "
                              "r.bytes FROM requests AS r NOT INDEXED",
                              -1, statement, NULL);
}

/* Has it a write-ahead log? Then the daemon may write all the time. */
static bool
has_log(const char *path)
{
    char name[PATH_MAX];
    struct stat st;

    return (size_t)snprintf(name, sizeof(name), "%s-wal", path) < sizeof(name) &&
           stat(name, &st) == 0 && st.st_size != 0;
}

/* Where SQLite cannot read the log, as without permission, the files are copied as they are. */
static enum trace_error
take_snapshot(struct snapshot *snapshot, struct input *in, char *why, size_t why_size)
{
    enum trace_error error = TRACE_CANNOT_OPEN;
    char path[PATH_MAX];

    if (!input_is_plain_file(in))
        return snapshot_save(snapshot, in, SAVED_MOST, why, why_size);
    /* The log lies beside the database, not beside a link to it. */
    if (realpath(input_name(in), path) && has_log(path))
        error = snapshot_back_up(snapshot, path, in, why, why_size);
    return error == TRACE_CANNOT_OPEN ? snapshot_take(snapshot, input_name(in), why, why_size)
                                      : error;
}

static enum trace_error
read_requests(struct input *in, const struct trace_options *options, struct trace_builder *builder,
              char *why, size_t why_size)
{
    static const char *const tables[DATABASE_TABLES] = {REQUEST_SCHEMA_TABLE, REQUEST_SCHEMA_TABLE};
    const char *path = input_name(in);
    struct snapshot snapshot;
    struct database database;
    struct rows rows = {.rows = NULL};
    sqlite3_stmt *statement = NULL;
    enum trace_error error = take_snapshot(&snapshot, in, why, why_size);
    bool more = true;
    int rc;

    (void)options;
    if (error != TRACE_OK)
        return error;
    url_table_init(&rows.texts);
    buf_init(&rows.url, TRACE_URL_MAX);
    rc = database_open(&database, snapshot.path, tables, database_stops_with_input, in);
    /* Reads the schema, and with that whatever stands in a log or a journal. */
    if (rc == SQLITE_OK)
        rc = prepare(&database, &statement);
    if (rc == SQLITE_OK)
        rc = database_check(&database, snapshot.path);
    snapshot_remove(&snapshot);
    if (rc == SQLITE_OK)
        rc = read_rows(&database, statement, &rows);
    if (rc != SQLITE_OK)
        error = database_error(&database, rc, path, EXPECTED, why, why_size);
    else if (rows.count != 0)
        qsort(rows.rows, rows.count, sizeof(*rows.rows), compare_rows);
    for (size_t i = 0; error == TRACE_OK && more && i < rows.count; i++)
        more = add_request(&rows, &rows.rows[i], builder);
    sqlite3_finalize(statement);
    database_close(&database);
    url_table_free(&rows.texts);
    buf_free(&rows.url);
    free(rows.rows);
    return error;
}

const struct trace_format trace_format_request_db = {
    .name = "request-db",
    .summary = "the database of sunproxyd --request-db",
    .unit = "row",
    .sniff = sniff,
    .by_path = true,
    .read = read_requests,
};
