/*
 * Tables with named columns: CSV (RFC 4180) and its kin with tabs or semicolons. The first line
 * names the columns; those that are known count, whatever their order and case:
 *     URL        url, uri, request_url; a path gets the column host, or the site of the options
 *     number     id, obj_id, object_id, key: a whole number where the trace has no URLs; where the
 *                first request has another text there, it becomes a path below the site
 *     time       time, timestamp, ts, date, datetime, visit_time: seconds or an ISO date;
 *                time_us and time_ms in their units
 *     size       size, bytes, obj_size, object_size, length, content_length, body_bytes_sent
 *     method     method, verb, request_method
 *     status     status, status_code, http_status: nothing where it is not known, and "-" or 0
 *                where there was no answer
 * A quoted field ends with its line.
 */
#include <strings.h>

#include "trace/fields.h"
#include "trace/formats.h"
#include "trace/lines.h"

#define COLUMNS_MOST 256

enum column { URL, HOST, ID, TIME, TIME_MS, TIME_US, SIZE, METHOD, STATUS, COLUMNS };

static const struct {
    const char *name;
    enum column column;
} known[] = {
    {"url", URL},
    {"uri", URL},
    {"request_url", URL},
    {"host", HOST},
    {"id", ID},
    {"obj_id", ID},
    {"object_id", ID},
    {"key", ID},
    {"time", TIME},
    {"timestamp", TIME},
    {"ts", TIME},
    {"date", TIME},
    {"datetime", TIME},
    {"visit_time", TIME},
    {"time_ms", TIME_MS},
    {"time_us", TIME_US},
    {"size", SIZE},
    {"bytes", SIZE},
    {"obj_size", SIZE},
    {"object_size", SIZE},
    {"length", SIZE},
    {"content_length", SIZE},
    {"body_bytes_sent", SIZE},
    {"method", METHOD},
    {"verb", METHOD},
    {"request_method", METHOD},
    {"status", STATUS},
    {"status_code", STATUS},
    {"http_status", STATUS},
};

struct table {
    char separator; /* 0: the header is not read yet */
    unsigned column_count;
    int column_of[COLUMNS]; /* -1: there is none */
    bool numbers;           /* of ID, as the first request had it */
    bool begun;
    struct buf text; /* a field with quotes inside */
};
_Static_assert(sizeof(struct table) <= LINE_STATE_BYTES, "the state fits");

enum quotes { NO_QUOTES, QUOTES, BROKEN };

/*
 * Takes the next field, without its quotes but with the quotes inside still doubled. False behind
 * the last, or with BROKEN when a quote does not end where a field does.
 */
static bool
next_field(struct span *rest, char separator, struct span *field, enum quotes *quotes)
{
    size_t at = 0;
    bool quoted = rest->ptr && rest->len != 0 && rest->ptr[0] == '"' && separator != '\t';

    if (!rest->ptr)
        return false;
    *quotes = quoted ? QUOTES : NO_QUOTES;
    if (quoted) {
        for (at = 1; at < rest->len; at++) {
            if (rest->ptr[at] == '"' && (at + 1 == rest->len || rest->ptr[at + 1] != '"'))
                break;
            at += rest->ptr[at] == '"';
        }
        *field = span_of(rest->ptr + 1, at - 1);
        at++;
        if (at > rest->len || (at < rest->len && rest->ptr[at] != separator)) {
            *quotes = BROKEN;
            return false;
        }
    } else {
        const char *end = rest->len ? memchr(rest->ptr, separator, rest->len) : NULL;

        at = end ? (size_t)(end - rest->ptr) : rest->len;
        *field = span_of(rest->ptr, at);
    }
    *rest = at < rest->len ? span_of(rest->ptr + at + 1, rest->len - at - 1) : span_of(NULL, 0);
    return true;
}

static bool
take_name(struct table *t, struct span name, int at)
{
    name = fields_trim(name);
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (strlen(known[i].name) == name.len &&
            strncasecmp(known[i].name, name.ptr, name.len) == 0) {
            if (t->column_of[known[i].column] < 0)
                t->column_of[known[i].column] = at;
            return true;
        }
    }
    return false;
}

/* A line of names, among them one of what was asked for. */
static bool
take_header(struct table *t, struct span line)
{
    static const char separators[] = "\t,;";
    struct span name;
    enum quotes quotes = NO_QUOTES;

    if (span_has_zero(line))
        return false;
    t->separator = ',';
    for (const char *s = separators; *s; s++) {
        if (line.len && memchr(line.ptr, *s, line.len)) {
            t->separator = *s;
            break;
        }
    }
    for (int c = 0; c < COLUMNS; c++)
        t->column_of[c] = -1;
    for (t->column_count = 0; next_field(&line, t->separator, &name, &quotes); t->column_count++) {
        if (t->column_count == COLUMNS_MOST)
            return false;
        take_name(t, name, (int)t->column_count);
    }
    return quotes != BROKEN && (t->column_of[URL] >= 0 || t->column_of[ID] >= 0);
}

/* Undoubles the quotes inside a field. */
static bool
undouble(struct buf *text, struct span *field)
{
    if (field->len == 0 || !memchr(field->ptr, '"', field->len))
        return true;
    buf_reset(text);
    for (size_t i = 0; i < field->len; i++) {
        if (!buf_append_char(text, field->ptr[i]))
            return false;
        i += field->ptr[i] == '"' && i + 1 < field->len && field->ptr[i + 1] == '"';
    }
    *field = buf_span(text);
    return true;
}

static bool
parse_time(const struct table *t, const struct span *values, int64_t *us)
{
    static const struct {
        enum column column;
        int64_t divisor;
    } units[] = {{TIME, 1}, {TIME_MS, 1000}, {TIME_US, 1000000}};

    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        struct span value = fields_trim(values[units[i].column]);

        if (t->column_of[units[i].column] < 0 || value.len == 0)
            continue;
        if (units[i].divisor == 1)
            return fields_seconds(value, us) || fields_iso_date(value, us);
        if (units[i].divisor == 1000) {
            if (!fields_seconds(value, us))
                return false;
            *us /= 1000;
            return true;
        }
        /* Too many digits for seconds, in microseconds. */
        return fields_int(value, us);
    }
    return true;
}

static enum line_kind
parse_identity(struct line_reader *reader, struct table *t, const struct span *values,
               const enum quotes *quotes, struct trace_request *request)
{
    bool has_url = t->column_of[URL] >= 0;
    struct span value = fields_trim(values[has_url ? URL : ID]);
    struct line_site site = {.host = fields_trim(values[HOST])};
    uint64_t number;

    if (quotes[has_url ? URL : ID] == QUOTES && !undouble(&t->text, &value)) {
        reader->no_memory = true;
        return LINE_BAD;
    }
    if (has_url)
        return lines_make_url(reader, request->method, site, value, &request->url);
    if (!t->begun) {
        t->begun = true;
        t->numbers = fields_uint(value, &number);
    }
    if (t->numbers)
        return fields_uint(value, &request->number) ? LINE_REQUEST : LINE_BAD;
    return lines_make_path(reader, value, &request->url);
}

static enum line_kind
parse(struct line_reader *reader, struct span line, struct trace_request *request)
{
    struct table *t = (void *)reader->state;
    struct span values[COLUMNS];
    struct span value, status;
    enum quotes quotes[COLUMNS] = {NO_QUOTES};
    enum quotes now = NO_QUOTES;
    unsigned at;

    if (line.len == 0)
        return LINE_OTHER;
    if (t->separator == '\0')
        return take_header(t, line) ? LINE_OTHER : LINE_BAD;
    for (int c = 0; c < COLUMNS; c++)
        values[c] = span_of("", 0);
    for (at = 0; next_field(&line, t->separator, &value, &now); at++) {
        for (int c = 0; c < COLUMNS; c++) {
            if (t->column_of[c] == (int)at) {
                values[c] = value;
                quotes[c] = now;
            }
        }
    }
    if (now == BROKEN || at != t->column_count || !parse_time(t, values, &request->time_us) ||
        !fields_size(fields_trim(values[SIZE]), &request->size))
        return LINE_BAD;
    status = fields_trim(values[STATUS]);
    if (status.len != 0 && !fields_status(status, &request->status))
        return LINE_BAD;
    request->method = fields_trim(values[METHOD]);
    return parse_identity(reader, t, values, quotes, request);
}

static void
begin(struct line_reader *reader)
{
    buf_init(&((struct table *)(void *)reader->state)->text, TRACE_URL_MAX);
}

static void
end(struct line_reader *reader)
{
    buf_free(&((struct table *)(void *)reader->state)->text);
}

static const struct line_format lines = {.parse = parse, .begin = begin, .end = end};

static bool
sniff(struct span head)
{
    struct table t = {0};

    return take_header(&t, lines_next(&head));
}

static enum trace_error
read_table(struct input *in, const struct trace_options *options, struct trace_builder *builder,
           char *why, size_t why_size)
{
    if (!sniff(input_peek(in, TRACE_HEAD_BYTES))) {
        snprintf(why, why_size,
                 "%s: the first line names no column url or id; expected names of columns",
                 input_name(in));
        return TRACE_NOT_A_TRACE;
    }
    return lines_read(in, builder, options, &lines);
}

const struct trace_format trace_format_table = {
    .name = "table",
    .summary = "CSV or TSV with named columns, among them url or id",
    .is_text = true,
    .sniff = sniff,
    .read = read_table,
};
