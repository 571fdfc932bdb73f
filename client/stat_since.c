#include "client/stat_since.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>
#include <time.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/units.h"
#include "cli/columns.h"
#include "cli/output.h"
#include "cli/when.h"
#include "client/request_history.h"

#define LONGEST_JSON ((size_t)64 << 20)
#define MOST_ROWS 10000u
#define LABEL_WIDTH 22
#define CUT "..."

/* ---- options --------------------------------------------------------------------------------- */

/* A time, or how long ago it was: a number with a unit. */
static int
take_since(const struct option_row *row, void *field, const char *text)
{
    size_t len = strlen(text);
    int64_t *us = field, ago_us;

    if (when_parse(text, us))
        return EX_OK;
    if (len != 0 && isalpha((unsigned char)text[len - 1]) && units_parse_duration(text, &ago_us)) {
        *us = clock_wall_us() - ago_us;
        return EX_OK;
    }
    return options_wrong(
        row, "a date such as 2024-05-31 or 2024-05-31T12:30:00, or a time ago such as 90m or 7d",
        text);
}

#define AT(field) offsetof(struct since_options, field)

const struct option_row since_option_rows[] = {
    {"since", 0, "TIME", take_since, AT(since_us), 0, 0, NULL,
     "print hit ratios by hour, top URLs and slow origins from this time on: 2024-05-31, "
     "2024-05-31T12:30:00 (UTC, or with Z or +02:00 at the end), seconds since 1970, or how long "
     "ago, such as 90m or 7d"},
    {"until", 0, "TIME", take_since, AT(until_us), 0, 0, NULL,
     "with --since: only requests before this time"},
    {"request-db", 0, "FILE", option_text, AT(path), 0, 0, NULL,
     "with --since: database to read (default: that of the server, if it is on this host)"},
    {"top", 0, "N", option_uint, AT(top), 1, MOST_ROWS, "10",
     "with --since: number of URLs and of origins"},
    {0},
};

/* ---- values ---------------------------------------------------------------------------------- */

/* "2026-11-22T13:00:00Z"; for people "2026-11-22 13:00". */
static void
format_time(int64_t us, bool for_people, char *text, size_t size)
{
    time_t seconds = (time_t)(us / 1000000);
    struct tm tm;

    if (!gmtime_r(&seconds, &tm) ||
        strftime(text, size, for_people ? "%Y-%m-%d %H:%M" : "%Y-%m-%dT%H:%M:%SZ", &tm) == 0)
        snprintf(text, size, "%" PRId64, us);
}

/* A ratio of nothing is NULL. */
static void
format_value(sqlite3_stmt *row, int column, enum report_kind kind, char *text, size_t size)
{
    int64_t number = sqlite3_column_int64(row, column);

    if (sqlite3_column_type(row, column) == SQLITE_NULL) {
        snprintf(text, size, "-");
        return;
    }
    switch (kind) {
    case REPORT_TIME:
        format_time(number, true, text, size);
        break;
    case REPORT_COUNT:
        snprintf(text, size, "%" PRId64, number);
        break;
    case REPORT_PERCENT:
        snprintf(text, size, "%.2f", sqlite3_column_double(row, column));
        break;
    case REPORT_BYTES:
        units_format_bytes(number > 0 ? (uint64_t)number : 0, text, size);
        break;
    case REPORT_DURATION:
        units_format_duration(number, text, size);
        break;
    case REPORT_TEXT:
        snprintf(text, size, "%s", (const char *)sqlite3_column_text(row, column));
        break;
    }
}

/* A text that is longer than its column is cut, so that a line has at most 80 characters. */
static void
cut(char *text, int width)
{
    size_t most = (size_t)(width < 0 ? -width : width);

    if (strlen(text) > most)
        strcpy(text + most - (sizeof(CUT) - 1), CUT);
}

/* ---- for people ------------------------------------------------------------------------------ */

static unsigned
count_columns(const struct report *report)
{
    unsigned count = 0;

    while (report->columns[count].key)
        count++;
    return count;
}

/* The text at the end of a line is not padded. */
static int
width_of(const struct report_column *column)
{
    return column->kind == REPORT_TEXT ? 0 : column->width;
}

static void
put_lines(const struct report *report, sqlite3_stmt *row)
{
    static const struct column list[] = {{NULL, -LABEL_WIDTH, false}, {NULL, 16, false}};
    struct columns columns = {.out = stdout, .list = list, .count = 2};

    for (int i = 0; report->columns[i].key; i++) {
        enum report_kind kind = report->columns[i].kind;
        char text[64];

        format_value(row, i, kind, text, sizeof(text));
        columns_pair(&columns, report->columns[i].label,
                     kind == REPORT_PERCENT && strcmp(text, "-") != 0 ? "%s %%" : "%s", text);
    }
}

static void
put_row(struct columns *columns, const struct report *report, sqlite3_stmt *row)
{
    for (unsigned i = 0; i < columns->count; i++) {
        const struct report_column *column = &report->columns[i];
        char text[128];

        format_value(row, (int)i, column->kind, text, sizeof(text));
        if (column->kind == REPORT_TEXT)
            cut(text, column->width);
        columns_cell(columns, "%s", text);
    }
    columns_end(columns);
}

/* The result code of the last step. */
static int
put_report(const struct report *report, sqlite3_stmt *rows)
{
    struct column list[REPORT_COLUMNS];
    struct columns columns = {.out = stdout, .list = list, .count = count_columns(report)};
    uint64_t count = 0;
    int rc;

    for (unsigned i = 0; i < columns.count; i++)
        list[i] = (struct column){report->columns[i].label, width_of(&report->columns[i]), false};
    if (report->title)
        printf("\n%s:\n", report->title);
    while ((rc = sqlite3_step(rows)) == SQLITE_ROW) {
        if (!report->title) {
            put_lines(report, rows);
            continue;
        }
        if (count++ == 0)
            columns_head(&columns);
        put_row(&columns, report, rows);
    }
    if (rc == SQLITE_DONE && report->title && count == 0)
        printf("%s\n", report->none);
    if (report->most > 1 && count == report->most)
        printf("Earlier ones are not shown; --until shows them.\n");
    return rc;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void
put_json_value(struct json *j, const struct report_column *column, sqlite3_stmt *row, int at)
{
    const char *text = (const char *)sqlite3_column_text(row, at);
    char time[32];

    if (!text) {
        json_null(j, column->key);
        return;
    }
    switch (column->kind) {
    case REPORT_TEXT:
        json_cstring(j, column->key, text);
        break;
    case REPORT_TIME:
        format_time(sqlite3_column_int64(row, at), false, time, sizeof(time));
        json_cstring(j, column->key, time);
        break;
    case REPORT_PERCENT:
        json_double(j, column->key, sqlite3_column_double(row, at) / 100, 6);
        break;
    case REPORT_COUNT:
    case REPORT_BYTES:
    case REPORT_DURATION:
        json_int(j, column->key, sqlite3_column_int64(row, at));
        break;
    }
}

static int
put_json_report(struct json *j, const struct report *report, sqlite3_stmt *rows)
{
    int rc;

    if (report->title)
        json_open_array(j, report->key);
    while ((rc = sqlite3_step(rows)) == SQLITE_ROW) {
        json_open_object(j, report->title ? NULL : report->key);
        for (int i = 0; report->columns[i].key; i++)
            put_json_value(j, &report->columns[i], rows, i);
        json_close_object(j);
    }
    if (report->title)
        json_close_array(j);
    return rc;
}

/* ---- both ------------------------------------------------------------------------------------ */

static int
put_reports(sqlite3 *history, const struct since_options *options, struct json *j, struct buf *why)
{
    for (const struct report *report = request_reports; report->key; report++) {
        sqlite3_stmt *rows = request_history_ask(history, report, options->since_us,
                                                 options->until_us, options->top, why);
        int rc;

        if (!rows)
            return EX_DATAERR;
        rc = j ? put_json_report(j, report, rows) : put_report(report, rows);
        if (rc != SQLITE_DONE)
            buf_append_str(why, sqlite3_errmsg(history));
        sqlite3_finalize(rows);
        if (rc != SQLITE_DONE)
            return EX_DATAERR;
    }
    return EX_OK;
}

static int
put_all(sqlite3 *history, const struct since_options *options, const char *path, bool json)
{
    struct buf out, why;
    struct json j;
    int status;

    buf_init(&out, LONGEST_JSON);
    buf_init(&why, 1024);
    json_init(&j, &out);
    json_open_object(&j, NULL);
    status = put_reports(history, options, json ? &j : NULL, &why);
    json_close_object(&j);
    if (status != EX_OK)
        output_complain("%s: %s", path, buf_str(&why));
    else if (json)
        status = output_json(&out);
    buf_free(&why);
    buf_free(&out);
    return status;
}

int
stat_since(const struct since_options *options, const char *path, bool json)
{
    sqlite3 *history;
    struct buf why;
    int status = EX_NOINPUT;

    buf_init(&why, 1024);
    history = request_history_open(path, &why);
    if (history)
        status = put_all(history, options, path, json);
    else
        output_complain("%s: %s", path, buf_str(&why));
    sqlite3_close(history);
    buf_free(&why);
    return status;
}
