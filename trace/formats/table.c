/*
 * Tables with named columns: CSV (RFC 4180) and its relatives with tabs, semicolons or bars. The
 * first line names the columns, in any order and case; see columns.c for the names:
 *     URL        a path gets the site's column, or the site of the options
 *     id         a whole number where the trace has no URLs; if the first request has another text
 *                there, ids become paths below the site
 *     time       seconds or an ISO date; a count that would be of a year beyond 5138 is one of
 *                milli-, micro- or nanoseconds (fields_epoch()); time_us and time_ms in their units
 *     size       a whole number; "5.0" is 5, as spreadsheets and data frames write it
 *     method
 *     status     empty where it is unknown, and "-" or 0 where there was no answer
 * With the option `columns` the list names the columns, and the first line may be a request; fields
 * may then also be separated by blanks. A quoted field ends with its line. A line with another
 * number of fields than the first one is malformed, unless what is too much is empty.
 */
#include <inttypes.h>

#include "trace/formats/columns.h"
#include "trace/formats/fields.h"
#include "trace/formats/formats.h"
#include "trace/formats/lines.h"

struct table {
    char separator; /* 0: the first line was not read yet */
    struct columns columns;
    bool numbers; /* of ids, as the first request had it */
    bool begun;
    enum fields_unit unit; /* of a time by its magnitude; no unit: seconds, dates or none so far */
    uint64_t longer, shorter; /* lines with more or fewer fields than columns */
    struct buf text;          /* a field with quotes inside */
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
    /* Several blanks separate like one. */
    while (separator == ' ' && rest->len != 0 && rest->ptr[0] == ' ')
        *rest = span_of(rest->ptr + 1, rest->len - 1);
    return true;
}

/* ---- the first line -------------------------------------------------------------------------- */

static char
find_separator(struct span line)
{
    static const char separators[] = "\t,;|";

    for (const char *s = separators; *s; s++) {
        if (line.len && memchr(line.ptr, *s, line.len))
            return *s;
    }
    return ',';
}

/* A line of names, among them one that identifies the page; "# " may stand in front. */
static bool
take_header(struct table *t, struct span line, struct span names[COLUMNS_MOST])
{
    enum quotes quotes = NO_QUOTES;
    struct span name;

    if (span_has_zero(line))
        return false;
    line = fields_trim_spaces(line);
    if (span_starts_with(line, span_str("#")))
        line = fields_trim_spaces(span_of(line.ptr + 1, line.len - 1));
    t->separator = find_separator(line);
    columns_init(&t->columns);
    while (next_field(&line, t->separator, &name, &quotes)) {
        name = fields_trim(name);
        if (names && t->columns.count < COLUMNS_MOST)
            names[t->columns.count] = name;
        if (!columns_add(&t->columns, name))
            return false;
    }
    columns_decide_host(&t->columns);
    return quotes != BROKEN && columns_identify(&t->columns);
}

static unsigned
count_fields(struct span line, char separator)
{
    enum quotes quotes = NO_QUOTES;
    struct span field;
    unsigned count = 0;

    while (count < COLUMNS_MOST && next_field(&line, separator, &field, &quotes))
        count++;
    return quotes == BROKEN ? 0 : count;
}

/* The separator with which a line has as many fields as the list, or else more. False: none has. */
static bool
take_list(struct table *t, struct span line)
{
    static const char separators[] = "\t,;| ";
    unsigned wanted = t->columns.count;

    t->separator = '\0';
    for (const char *s = separators; *s && wanted > 1; s++) {
        unsigned count = count_fields(line, *s);

        if (count == wanted || (count > wanted && t->separator == '\0')) {
            t->separator = *s;
            t->columns.count = count;
        }
        if (count == wanted)
            break;
    }
    if (wanted == 1) /* a separator might be part of the only field that counts */
        t->separator = '\t';
    if (wanted == 1)
        t->columns.count = count_fields(line, '\t');
    return t->separator != '\0';
}

/* ---- lines ----------------------------------------------------------------------------------- */

/* Replaces doubled quotes inside a field by single ones. */
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

/* A time without a unit. */
static bool
parse_plain_time(struct table *t, struct span value, int64_t *us)
{
    enum fields_unit unit = fields_epoch(value, us);

    if (unit > FIELDS_SECONDS)
        t->unit = unit;
    return unit || fields_seconds(value, us) || fields_iso_date(value, us);
}

/* Without a fraction of zeros. */
static struct span
cut_zeros(struct span value)
{
    size_t len = value.len;

    while (len != 0 && value.ptr[len - 1] == '0')
        len--;
    return len > 1 && len < value.len && value.ptr[len - 1] == '.' ? span_of(value.ptr, len - 1)
                                                                   : value;
}

static bool
parse_time(struct table *t, const struct span *values, int64_t *us)
{
    static const struct {
        enum column column;
        int64_t divisor;
    } units[] = {{COLUMN_TIME, 1}, {COLUMN_TIME_MS, 1000}, {COLUMN_TIME_US, 1000000}};

    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        struct span value = fields_trim(values[units[i].column]);

        if (t->columns.of[units[i].column] < 0 || value.len == 0)
            continue;
        if (units[i].divisor == 1)
            return parse_plain_time(t, value, us);
        if (units[i].divisor == 1000) {
            if (!fields_seconds(value, us))
                return false;
            *us /= 1000;
            return true;
        }
        /* Microseconds have too many digits for fields_seconds(). */
        return fields_int(value, us);
    }
    return true;
}

static enum line_kind
parse_identity(struct line_reader *reader, struct table *t, const struct span *values,
               const enum quotes *quotes, struct trace_request *request)
{
    enum column identity = t->columns.of[COLUMN_URL] >= 0 ? COLUMN_URL : COLUMN_ID;
    struct span value = fields_trim(values[identity]);
    struct line_site site = {.host = fields_trim(values[COLUMN_SITE])};
    uint64_t number;

    if (quotes[identity] == QUOTES && !undouble(&t->text, &value)) {
        reader->no_memory = true;
        return LINE_BAD;
    }
    if (identity == COLUMN_URL)
        return lines_make_url(reader, request->method, site, value, &request->url);
    if (!t->begun) {
        t->begun = true;
        t->numbers = fields_uint(value, &number);
    }
    if (t->numbers)
        return fields_uint(value, &request->number) ? LINE_REQUEST : LINE_BAD;
    return lines_make_path(reader, value, &request->url);
}

/* Splits a line into the values of columns with a meaning. False: not as many fields as columns. */
static bool
split(struct table *t, struct span line, struct span values[COLUMNS], enum quotes quotes[COLUMNS])
{
    enum quotes now = NO_QUOTES;
    struct span value;
    unsigned at = 0, last = 0;

    for (int c = 0; c < COLUMNS; c++) {
        values[c] = span_of("", 0);
        quotes[c] = NO_QUOTES;
    }
    for (; next_field(&line, t->separator, &value, &now); at++) {
        if (value.len != 0)
            last = at + 1;
        for (int c = 0; c < COLUMNS; c++) {
            if (t->columns.of[c] == (int)at) {
                values[c] = value;
                quotes[c] = now;
            }
        }
    }
    if (now == BROKEN)
        return false;
    t->longer += last > t->columns.count;
    t->shorter += at < t->columns.count;
    return at >= t->columns.count && last <= t->columns.count;
}

static enum line_kind
parse_row(struct line_reader *reader, struct table *t, struct span line,
          struct trace_request *request)
{
    struct span values[COLUMNS], status;
    enum quotes quotes[COLUMNS];

    if (!split(t, line, values, quotes) || !parse_time(t, values, &request->time_us) ||
        !fields_size(cut_zeros(fields_trim(values[COLUMN_SIZE])), &request->size))
        return LINE_BAD;
    status = cut_zeros(fields_trim(values[COLUMN_STATUS]));
    if (status.len != 0 && !fields_status(status, &request->status))
        return LINE_BAD;
    request->method = fields_trim(values[COLUMN_METHOD]);
    return parse_identity(reader, t, values, quotes, request);
}

/* The first line of a table whose columns the options name: names, or a request already. */
static enum line_kind
parse_first(struct line_reader *reader, struct table *t, struct span line,
            struct trace_request *request)
{
    struct table header = {0};
    enum line_kind kind;

    if (!take_list(t, line))
        return LINE_BAD;
    if (line.ptr[0] == '#' || take_header(&header, line, NULL))
        return LINE_OTHER;
    kind = parse_row(reader, t, line, request);
    if (kind == LINE_REQUEST)
        return kind;
    t->begun = false;
    return LINE_OTHER;
}

static enum line_kind
parse(struct line_reader *reader, struct span line, struct trace_request *request)
{
    struct table *t = (void *)reader->state;

    if (line.len == 0)
        return LINE_OTHER;
    if (t->separator == '\0' && reader->options->columns)
        return parse_first(reader, t, line, request);
    if (t->separator == '\0')
        return take_header(t, line, NULL) ? LINE_OTHER : LINE_BAD;
    return parse_row(reader, t, line, request);
}

static void
begin(struct line_reader *reader)
{
    struct table *t = (void *)reader->state;
    char why[256]; /* there is none: the options were checked */

    buf_init(&t->text, TRACE_URL_MAX);
    if (reader->options->columns)
        columns_parse(&t->columns, reader->options->columns, why, sizeof(why));
}

static void
end(struct line_reader *reader)
{
    static const char *const units[] = {"", "", "milliseconds", "microseconds", "nanoseconds"};
    struct table *t = (void *)reader->state;

    if (reader->builder && t->unit)
        trace_remark(reader->builder, "by their magnitude, times are taken to be in %s",
                     units[t->unit]);
    if (reader->builder && t->longer + t->shorter != 0)
        trace_remark(reader->builder,
                     "of %u columns: %" PRIu64 " line%s with more fields, %" PRIu64
                     " with fewer; left out as malformed",
                     t->columns.count, t->longer, t->longer == 1 ? "" : "s", t->shorter);
    buf_free(&t->text);
}

static const struct line_format lines = {.parse = parse, .begin = begin, .end = end};

static bool
sniff(struct span head)
{
    struct table t = {0};

    return take_header(&t, lines_next(&head), NULL);
}

/* Does the first line have as many fields as the list? */
static bool
check_list(struct input *in, const char *list, char *why, size_t why_size)
{
    struct span head = input_peek(in, TRACE_HEAD_BYTES), line = span_of("", 0);
    struct table t = {0};

    columns_parse(&t.columns, list, why, why_size);
    while (head.len != 0 && line.len == 0)
        line = lines_next(&head);
    if (take_list(&t, line))
        return true;
    snprintf(why, why_size, "%s: the first line has fewer than the %u columns of --columns %s",
             input_name(in), t.columns.count, list);
    return false;
}

static enum trace_error
read_table(struct input *in, const struct trace_options *options, struct trace_builder *builder,
           char *why, size_t why_size)
{
    struct span head = input_peek(in, TRACE_HEAD_BYTES);
    struct span names[COLUMNS_MOST];
    struct table t = {0};

    if (options->columns)
        return check_list(in, options->columns, why, why_size)
                   ? lines_read(in, builder, options, &lines)
                   : TRACE_NOT_A_TRACE;
    if (!take_header(&t, lines_next(&head), names)) {
        snprintf(why, why_size,
                 "%s: the first line names no column url or id; name the columns in their order, "
                 "such as --columns time,url,size",
                 input_name(in));
        return TRACE_NOT_A_TRACE;
    }
    columns_remark(&t.columns, names, builder);
    return lines_read(in, builder, options, &lines);
}

const struct trace_format trace_format_table = {
    .name = "table",
    .summary = "CSV or TSV with named columns, among them url or id",
    .is_text = true,
    .sample = "time,url,size",
    .sniff = sniff,
    .read = read_table,
};
