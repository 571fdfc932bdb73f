#include "client/stat_since.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
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
#define LABEL_WIDTH 32
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

/* Where the password of a URL is, before its host. An empty span: there is none. */
static struct span
find_password(const char *url)
{
    const char *authority = url + strcspn(url, ":/?#"), *at = NULL, *colon;

    authority = strncmp(authority, "://", 3) == 0 ? authority + 3 : url;
    for (const char *c = authority; *c && !strchr("/?#", *c); c++)
        if (*c == '@')
            at = c;
    colon = at ? memchr(authority, ':', (size_t)(at - authority)) : NULL;
    return colon ? span_of(colon + 1, (size_t)(at - colon - 1)) : (struct span){0};
}

static void
append_url(struct buf *to, const char *url)
{
    struct span password = find_password(url);

    if (password.len == 0) {
        buf_append_str(to, url);
        return;
    }
    buf_append(to, url, (size_t)(password.ptr - url));
    buf_append_str(to, "***");
    buf_append_str(to, password.ptr + password.len);
}

static void
format_url(const char *url, char *text, size_t size)
{
    struct buf masked;

    buf_init(&masked, LONGEST_JSON);
    append_url(&masked, url);
    snprintf(text, size, "%s", buf_failed(&masked) ? "-" : buf_str(&masked));
    buf_free(&masked);
}

/* A ratio of nothing is NULL, and so is a text without memory for it. */
static void
format_value(sqlite3_stmt *row, int column, enum report_kind kind, char *text, size_t size)
{
    int64_t number = sqlite3_column_int64(row, column);
    const char *value = (const char *)sqlite3_column_text(row, column);

    if (!value) {
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
        snprintf(text, size, "%s", value);
        break;
    case REPORT_URL:
        format_url(value, text, size);
        break;
    }
}

static bool
is_text(enum report_kind kind)
{
    return kind == REPORT_TEXT || kind == REPORT_URL;
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
    return is_text(column->kind) ? 0 : column->width;
}

static void
put_lines(FILE *out, const struct report *report, sqlite3_stmt *row)
{
    static const struct column list[] = {{NULL, -LABEL_WIDTH, false}, {NULL, 16, false}};
    struct columns columns = {.out = out, .list = list, .count = 2};

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
        if (is_text(column->kind))
            cut(text, column->width);
        columns_cell(columns, "%s", text);
    }
    columns_end(columns);
}

/* The result code of the last step. */
static int
put_report(FILE *out, const struct report *report, sqlite3_stmt *rows)
{
    struct column list[REPORT_COLUMNS];
    struct columns columns = {.out = out, .list = list, .count = count_columns(report)};
    uint64_t count = 0;
    int rc;

    for (unsigned i = 0; i < columns.count; i++)
        list[i] = (struct column){report->columns[i].label, width_of(&report->columns[i]), false};
    if (report->title)
        fprintf(out, "\n%s:\n", report->title);
    while ((rc = sqlite3_step(rows)) == SQLITE_ROW) {
        if (!report->title) {
            put_lines(out, report, rows);
            continue;
        }
        if (count++ == 0)
            columns_head(&columns);
        put_row(&columns, report, rows);
    }
    if (rc == SQLITE_DONE && report->title && count == 0)
        fprintf(out, "%s\n", report->none);
    if (report->most > 1 && count == report->most)
        fprintf(out, "Earlier ones are not shown; --until shows them.\n");
    return rc;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void
put_json_url(struct json *j, const char *key, const char *url)
{
    struct buf masked;

    buf_init(&masked, LONGEST_JSON);
    append_url(&masked, url);
    if (buf_failed(&masked))
        json_null(j, key);
    else
        json_cstring(j, key, buf_str(&masked));
    buf_free(&masked);
}

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
    case REPORT_URL:
        put_json_url(j, column->key, text);
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

/* To one of both. */
struct sink {
    struct json *json;
    FILE *text;
};

static int
put_reports(sqlite3 *history, const struct since_options *options, const struct sink *to,
            struct buf *why)
{
    for (const struct report *report = request_reports; report->key; report++) {
        sqlite3_stmt *rows = request_history_ask(history, report, options->since_us,
                                                 options->until_us, options->top, why);
        int rc;

        if (!rows)
            return EX_DATAERR;
        rc =
            to->json ? put_json_report(to->json, report, rows) : put_report(to->text, report, rows);
        if (rc != SQLITE_DONE)
            buf_append_str(why, sqlite3_errmsg(history));
        sqlite3_finalize(rows);
        if (rc != SQLITE_DONE)
            return EX_DATAERR;
    }
    return EX_OK;
}

/* All reports are of one state. It is left before the output, which may have to wait. */
static int
read_reports(sqlite3 *history, const struct since_options *options, const struct sink *to,
             struct buf *why)
{
    int status = EX_DATAERR;

    if (sqlite3_exec(history, "BEGIN", NULL, NULL, NULL) != SQLITE_OK) {
        buf_append_str(why, sqlite3_errmsg(history));
        return status;
    }
    status = put_reports(history, options, to, why);
    sqlite3_exec(history, "ROLLBACK", NULL, NULL, NULL);
    if (request_history_is_sound(history))
        return status;
    buf_reset(why);
    buf_append_str(why, "a server has begun to write it meanwhile; try again");
    return EX_TEMPFAIL;
}

static int
put_json(sqlite3 *history, const struct since_options *options, struct buf *why)
{
    struct buf out;
    struct json j;
    int status;

    buf_init(&out, LONGEST_JSON);
    json_init(&j, &out);
    json_open_object(&j, NULL);
    status = read_reports(history, options, &(struct sink){.json = &j}, why);
    json_close_object(&j);
    if (status == EX_OK)
        status = output_json(&out);
    buf_free(&out);
    return status;
}

static int
put_text(sqlite3 *history, const struct since_options *options, struct buf *why)
{
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    int status = EX_SOFTWARE;

    if (out)
        status = read_reports(history, options, &(struct sink){.text = out}, why);
    if (!out || fclose(out) != 0) {
        buf_append_str(why, "out of memory");
        status = EX_SOFTWARE;
    }
    if (status == EX_OK)
        fwrite(text, 1, len, stdout);
    free(text);
    return status;
}

static int
put_all(sqlite3 *history, const struct since_options *options, const char *path, bool json)
{
    struct buf why;
    int status;

    buf_init(&why, 1024);
    status = json ? put_json(history, options, &why) : put_text(history, options, &why);
    if (buf_span(&why).len)
        output_complain("%s: %s", path, buf_str(&why));
    buf_free(&why);
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
