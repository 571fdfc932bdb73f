#include "trace/formats/history.h"

#include <math.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/buf.h"
#include "trace/formats/snapshot.h"

/* Of a database that does not lie in a file of its own, and so is written to one. */
#define SAVED_MOST (UINT64_C(1) << 30U)
#define MOST_SECONDS 1e12 /* before or after the epoch: so that microseconds fit */

struct visit {
    int64_t time, url, id;
    bool has_time, has_url;
    bool dropped; /* it led elsewhere */
};

struct place {
    int64_t id; /* of the URL's row */
    size_t at, len;
    enum { PLACE_MISSING, PLACE_NO_TEXT, PLACE_URL } kind;
};

/* What is read of a database, all of it by id. */
struct rows {
    struct visit *visits;
    size_t visit_count, visit_capacity;
    int64_t *redirected; /* ids of visits */
    size_t redirected_count, redirected_capacity;
    struct place *places; /* those that visits name, each once */
    size_t place_count;
    struct buf urls; /* their texts */
};

bool
history_is_sqlite(struct span head)
{
    static const char magic[] = "SQLite format 3"; /* with its zero byte: 16 bytes */

    return span_starts_with(head, span_of(magic, sizeof(magic)));
}

/* ---- rows ------------------------------------------------------------------------------------ */

static bool
read_time(sqlite3_stmt *statement, int column, bool in_seconds, int64_t *time)
{
    int type = sqlite3_column_type(statement, column);
    double us;

    if (!in_seconds) {
        *time = sqlite3_column_int64(statement, column);
        return type == SQLITE_INTEGER;
    }
    us = sqlite3_column_double(statement, column) * 1e6;
    if ((type != SQLITE_INTEGER && type != SQLITE_FLOAT) || !(fabs(us) < MOST_SECONDS * 1e6))
        return false;
    *time = (int64_t)llround(us);
    return true;
}

static int
add_visit(struct rows *rows, sqlite3_stmt *statement, bool in_seconds)
{
    enum { ID, TIME, URL, REDIRECTED, FROM };
    struct visit *visit;

    if (!array_extend(&rows->visits, sizeof(*rows->visits), rows->visit_count,
                      &rows->visit_capacity))
        return SQLITE_NOMEM;
    visit = &rows->visits[rows->visit_count++];
    *visit = (struct visit){
        .id = sqlite3_column_int64(statement, ID),
        .url = sqlite3_column_int64(statement, URL),
        .has_url = sqlite3_column_type(statement, URL) == SQLITE_INTEGER,
        .dropped = sqlite3_column_int(statement, REDIRECTED) != 0,
    };
    visit->has_time = read_time(statement, TIME, in_seconds, &visit->time);
    if (sqlite3_column_type(statement, FROM) == SQLITE_INTEGER) {
        if (!array_extend(&rows->redirected, sizeof(*rows->redirected), rows->redirected_count,
                          &rows->redirected_capacity))
            return SQLITE_NOMEM;
        rows->redirected[rows->redirected_count++] = sqlite3_column_int64(statement, FROM);
    }
    return SQLITE_OK;
}

static int
read_visits(struct database *database, sqlite3_stmt *statement, bool in_seconds, struct rows *rows)
{
    int64_t last;
    int rc;

    while ((rc = sqlite3_step(statement)) == SQLITE_ROW) {
        rc = database_check_row(database, statement, rows->visit_count, &last);
        if (rc == SQLITE_OK)
            rc = add_visit(rows, statement, in_seconds);
        if (rc != SQLITE_OK)
            return rc;
    }
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static int
add_url(struct rows *rows, struct place *place, sqlite3_stmt *statement)
{
    enum { URL = 1 };
    const unsigned char *text;

    place->kind = PLACE_NO_TEXT;
    if (sqlite3_column_type(statement, URL) != SQLITE_TEXT)
        return SQLITE_OK;
    text = sqlite3_column_text(statement, URL);
    if (!text)
        return SQLITE_NOMEM;
    place->kind = PLACE_URL;
    place->at = rows->urls.len;
    place->len = (size_t)sqlite3_column_bytes(statement, URL);
    return buf_append(&rows->urls, text, place->len) ? SQLITE_OK : SQLITE_NOMEM;
}

/* Rows and places both come in order of id. */
static int
read_urls(struct database *database, sqlite3_stmt *statement, struct rows *rows)
{
    struct place *place = rows->places, *end = rows->places + rows->place_count;
    int64_t last;
    size_t row = 0;
    int rc;

    while ((rc = sqlite3_step(statement)) == SQLITE_ROW) {
        rc = database_check_row(database, statement, row++, &last);
        while (rc == SQLITE_OK && place != end && place->id < last)
            place++;
        if (rc == SQLITE_OK && place != end && place->id == last)
            rc = add_url(rows, place, statement);
        if (rc != SQLITE_OK)
            return rc;
    }
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* ---- order ----------------------------------------------------------------------------------- */

#define ORDER(a, b) (((a) > (b)) - ((a) < (b)))

static int
compare_ids(const void *a, const void *b)
{
    return ORDER(*(const int64_t *)a, *(const int64_t *)b);
}

static int
compare_places(const void *a, const void *b)
{
    return ORDER(((const struct place *)a)->id, ((const struct place *)b)->id);
}

/* A visit without a time stands before all others, as NULL does in SQL. */
static int
compare_visits(const void *first, const void *second)
{
    const struct visit *a = first, *b = second;

    if (a->has_time != b->has_time)
        return a->has_time ? 1 : -1;
    return a->has_time && a->time != b->time ? ORDER(a->time, b->time) : ORDER(a->id, b->id);
}

static void
sort(void *array, size_t count, size_t element, int (*compare)(const void *, const void *))
{
    if (count != 0) /* or there may be no array */
        qsort(array, count, element, compare);
}

/* Omits the visits that led elsewhere; the rest stay in order of id. */
static void
drop_redirected(struct rows *rows)
{
    size_t kept = 0;

    sort(rows->redirected, rows->redirected_count, sizeof(*rows->redirected), compare_ids);
    for (size_t i = 0; i < rows->visit_count; i++) {
        const struct visit *v = &rows->visits[i];

        if (!v->dropped && (rows->redirected_count == 0 ||
                            !bsearch(&v->id, rows->redirected, rows->redirected_count,
                                     sizeof(v->id), compare_ids)))
            rows->visits[kept++] = *v;
    }
    rows->visit_count = kept;
}

/* The places that visits name, in order of id and each once. */
static bool
collect_places(struct rows *rows)
{
    size_t count = 0, distinct = 0;

    rows->places = malloc((rows->visit_count + 1) * sizeof(*rows->places));
    if (!rows->places)
        return false;
    for (size_t i = 0; i < rows->visit_count; i++) {
        if (rows->visits[i].has_url)
            rows->places[count++] = (struct place){.id = rows->visits[i].url};
    }
    sort(rows->places, count, sizeof(*rows->places), compare_places);
    for (size_t i = 0; i < count; i++) {
        if (distinct == 0 || rows->places[distinct - 1].id != rows->places[i].id)
            rows->places[distinct++] = rows->places[i];
    }
    rows->place_count = distinct;
    return true;
}

/* ---- requests -------------------------------------------------------------------------------- */

static const struct place *
find_place(const struct rows *rows, const struct visit *visit)
{
    struct place key = {.id = visit->url};
    const struct place *place =
        visit->has_url && rows->place_count != 0
            ? bsearch(&key, rows->places, rows->place_count, sizeof(key), compare_places)
            : NULL;

    return place && place->kind != PLACE_MISSING ? place : NULL;
}

/* Adds one visit; false when reading is to end. */
static bool
add_request(const struct rows *rows, const struct visit *visit, struct trace_builder *builder,
            int64_t epoch_us)
{
    const struct place *place = find_place(rows, visit);
    struct trace_request request = TRACE_REQUEST_EMPTY;
    int64_t time_us;

    if (!place) {
        trace_builder_counts(builder)->skipped_orphan++;
        return true;
    }
    request.line = visit->id > 0 ? (uint64_t)visit->id : 0;
    if (place->kind != PLACE_URL) {
        trace_add_bad(builder, request.line, span_str("(its URL is not text)"));
        return true;
    }
    if (!visit->has_time || __builtin_sub_overflow(visit->time, epoch_us, &time_us)) {
        trace_add_bad(builder, request.line, span_str("(it has no time)"));
        return true;
    }
    request.time_us = time_us;
    request.url = place->len ? span_of(rows->urls.data + place->at, place->len) : span_str("");
    return trace_add(builder, &request);
}

/* ---- reading --------------------------------------------------------------------------------- */

/* NOT INDEXED: an index may be damaged or missing where the table is not. */
static int
prepare_visits(struct database *database, const struct history *history, const char *id,
               const char *columns, sqlite3_stmt **visits)
{
    char text[512];

    snprintf(text, sizeof(text), "SELECT v.%s, %s FROM %s AS v NOT INDEXED", id, columns,
             history->tables[0]);
    return sqlite3_prepare_v2(database->handle, text, -1, visits, NULL);
}

/* Prepares both statements before anything is read, to know whether all is there. */
static int
prepare(struct database *database, const struct history *history, bool without_redirects,
        sqlite3_stmt **visits, sqlite3_stmt **urls)
{
    const char *columns = without_redirects ? history->visits_and_redirects : history->visits;
    int rc = prepare_visits(database, history, "id", columns, visits);

    if (rc == SQLITE_ERROR) /* perhaps there is no column id */
        rc = prepare_visits(database, history, "rowid", columns, visits);
    return rc == SQLITE_OK ? sqlite3_prepare_v2(database->handle, history->urls, -1, urls, NULL)
                           : rc;
}

static int
read_rows(struct database *database, const struct history *history, sqlite3_stmt *visits,
          sqlite3_stmt *urls, struct rows *rows)
{
    int rc = read_visits(database, visits, history->in_seconds, rows);

    if (rc != SQLITE_OK)
        return rc;
    drop_redirected(rows);
    if (!collect_places(rows))
        return SQLITE_NOMEM;
    rc = read_urls(database, urls, rows);
    sort(rows->visits, rows->visit_count, sizeof(*rows->visits), compare_visits);
    return rc;
}

static void
free_rows(struct rows *rows)
{
    free(rows->visits);
    free(rows->redirected);
    free(rows->places);
    buf_free(&rows->urls);
}

enum trace_error
history_read(struct input *in, const struct history *history, const struct trace_options *options,
             struct trace_builder *builder, char *why, size_t why_size)
{
    const char *path = input_name(in);
    struct snapshot snapshot;
    struct database database;
    struct rows rows = {.visits = NULL};
    sqlite3_stmt *visits = NULL, *urls = NULL;
    enum trace_error error = input_is_plain_file(in)
                                 ? snapshot_take(&snapshot, path, why, why_size)
                                 : snapshot_save(&snapshot, in, SAVED_MOST, why, why_size);
    bool more = true;
    int rc;

    if (error != TRACE_OK)
        return error;
    buf_init(&rows.urls, SIZE_MAX / 2);
    rc = database_open(&database, snapshot.path, history->tables, database_stops_with_input, in);
    /* Reads the schema, and with that whatever stands in a log or a journal. */
    if (rc == SQLITE_OK)
        rc =
            prepare(&database, history, options->redirects == TRACE_REDIRECTS_DROP, &visits, &urls);
    if (rc == SQLITE_OK)
        rc = database_check(&database, snapshot.path);
    /* All files are open and locked now: were we killed, no copy would stay behind. */
    snapshot_remove(&snapshot);
    if (rc == SQLITE_OK)
        rc = read_rows(&database, history, visits, urls, &rows);
    if (rc != SQLITE_OK)
        error = database_error(&database, rc, path, history->expected, why, why_size);
    for (size_t i = 0; error == TRACE_OK && more && i < rows.visit_count; i++)
        more = add_request(&rows, &rows.visits[i], builder, history->epoch_us);
    sqlite3_finalize(visits);
    sqlite3_finalize(urls);
    database_close(&database);
    free_rows(&rows);
    return error;
}
