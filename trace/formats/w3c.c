/*
 * Logs in W3C's Extended Log File Format (https://www.w3.org/TR/WD-logfile.html), as IIS and
 * CloudFront write them: a line "#Fields:" names the columns, which are separated by blanks, or by
 * tabs if a line has any. "-" stands for an unknown value. Known columns are
 *     date and time (UTC), cs-method, cs-uri-stem and cs-uri-query or cs-uri, sc-status,
 *     sc-content-len or sc-bytes, x-host-header or cs-host or cs(Host), s-port, cs-protocol,
 *     x-edge-result-type
 * sc-bytes include headers. cs(Host) comes last, since CloudFront's is its own name.
 */
#include <strings.h>

#include "trace/formats/fields.h"
#include "trace/formats/formats.h"
#include "trace/formats/lines.h"

enum column {
    DATE,
    TIME,
    METHOD,
    URI,
    STEM,
    QUERY,
    STATUS,
    CONTENT,
    BYTES,
    SITE,
    HOST,
    PORT,
    PROTOCOL,
    RESULT,
    COLUMNS
};

static const struct {
    const char *name;
    enum column column;
} known[] = {
    {"date", DATE},
    {"time", TIME},
    {"cs-method", METHOD},
    {"cs-uri", URI},
    {"cs-uri-stem", STEM},
    {"cs-uri-query", QUERY},
    {"sc-status", STATUS},
    {"sc-content-len", CONTENT},
    {"sc-bytes", BYTES},
    {"x-host-header", SITE},
    {"cs-host", SITE},
    {"cs(Host)", HOST},
    {"s-port", PORT},
    {"cs-protocol", PROTOCOL},
    {"x-edge-result-type", RESULT},
};

static const char fields_header[] = "#Fields:";
static const char date_header[] = "#Date:";

struct w3c {
    int column_of[COLUMNS];          /* -1: there is none */
    int column_count;                /* 0: no header was read */
    char date[sizeof("2024-05-31")]; /* of the last "#Date:"; empty: there was none */
    struct buf target;
};
_Static_assert(sizeof(struct w3c) <= LINE_STATE_BYTES, "the state fits");

static bool
is_header(struct span line, const char *header)
{
    return line.len >= strlen(header) && strncasecmp(line.ptr, header, strlen(header)) == 0;
}

static void
take_names(struct w3c *w, struct span rest)
{
    struct span name;

    for (int c = 0; c < COLUMNS; c++)
        w->column_of[c] = -1;
    for (w->column_count = 0; (name = fields_word(&rest)).len != 0; w->column_count++) {
        for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
            if (strlen(known[i].name) == name.len &&
                strncasecmp(known[i].name, name.ptr, name.len) == 0 &&
                w->column_of[known[i].column] < 0)
                w->column_of[known[i].column] = w->column_count;
        }
    }
}

/* "#Date: 2024-05-31 12:30:00" */
static void
take_date(struct w3c *w, struct span rest)
{
    struct span date = fields_word(&rest);
    int64_t us;

    if (date.len == sizeof(w->date) - 1 && fields_iso_date(date, &us))
        memcpy(w->date, date.ptr, date.len);
}

/* Splits a line into the values of the known columns; "-" is empty. False: another number. */
static bool
split(const struct w3c *w, struct span line, struct span values[COLUMNS])
{
    bool tabs = memchr(line.ptr, '\t', line.len) != NULL;
    struct span value;
    int at = 0;

    for (int c = 0; c < COLUMNS; c++)
        values[c] = span_of("", 0);
    for (;; at++) {
        if (tabs ? !fields_next(&line, '\t', &value) : (value = fields_word(&line)).len == 0)
            break;
        for (int c = 0; c < COLUMNS; c++) {
            if (w->column_of[c] == at && !span_equal(value, span_str("-")))
                values[c] = value;
        }
    }
    return at == w->column_count;
}

/* Date and time of day stand in two columns; without a column of dates that of "#Date:" counts. */
static bool
parse_time(const struct w3c *w, const struct span *values, int64_t *us)
{
    struct span date = w->column_of[DATE] >= 0 ? values[DATE] : span_str(w->date);
    char text[64];
    int len;

    if (date.len == 0 || values[TIME].len == 0)
        return date.len == 0 || fields_iso_date(date, us);
    if (date.len + values[TIME].len > sizeof(text) - 2)
        return false;
    len = snprintf(text, sizeof(text), "%.*sT%.*s", (int)date.len, date.ptr, (int)values[TIME].len,
                   values[TIME].ptr);
    return fields_iso_date(span_of(text, (size_t)len), us);
}

static struct line_site
site_of(const struct span *values)
{
    struct line_site site = {.host = values[SITE].len != 0 ? values[SITE] : values[HOST]};
    uint64_t port;

    if (fields_uint(values[PORT], &port) && port <= UINT16_MAX)
        site.port = (unsigned)port;
    site.https = span_equal(values[PROTOCOL], span_str("https")) ||
                 span_equal(values[PROTOCOL], span_str("wss"));
    return site;
}

/* The target, with its query unless only sniffing. False without memory. */
static bool
make_target(struct w3c *w, bool sniffing, const struct span *values, struct span *target)
{
    *target = values[URI].len != 0 ? values[URI] : values[STEM];
    if (sniffing || values[URI].len != 0 || values[QUERY].len == 0 || target->len == 0)
        return true;
    buf_reset(&w->target);
    if (!buf_append(&w->target, target->ptr, target->len) || !buf_append_char(&w->target, '?') ||
        !buf_append(&w->target, values[QUERY].ptr, values[QUERY].len))
        return false;
    *target = buf_span(&w->target);
    return true;
}

static enum trace_outcome
outcome_of(struct span result)
{
    if (result.len == 0)
        return TRACE_OUTCOME_UNKNOWN;
    return span_equal(result, span_str("Hit")) || span_equal(result, span_str("RefreshHit"))
               ? TRACE_OUTCOME_HIT
               : TRACE_OUTCOME_MISS;
}

static enum line_kind
parse(struct line_reader *reader, struct span line, struct trace_request *request)
{
    struct w3c *w = (void *)reader->state;
    struct span values[COLUMNS], target;

    if (fields_trim(line).len == 0)
        return LINE_OTHER;
    if (line.ptr[0] == '#') {
        if (is_header(line, fields_header))
            take_names(w,
                       span_of(line.ptr + strlen(fields_header), line.len - strlen(fields_header)));
        else if (is_header(line, date_header))
            take_date(w, span_of(line.ptr + strlen(date_header), line.len - strlen(date_header)));
        return LINE_OTHER;
    }
    if (w->column_count == 0 || !split(w, line, values) ||
        !parse_time(w, values, &request->time_us) ||
        !fields_size(values[CONTENT].len != 0 ? values[CONTENT] : values[BYTES], &request->size) ||
        (w->column_of[STATUS] >= 0 && !fields_status(values[STATUS], &request->status)))
        return LINE_BAD;
    request->method = values[METHOD];
    request->outcome = outcome_of(values[RESULT]);
    if (!make_target(w, reader->sniffing, values, &target)) {
        reader->no_memory = true;
        return LINE_BAD;
    }
    if (target.len == 0)
        return LINE_ORPHAN;
    return lines_make_url(reader, request->method, site_of(values), target, &request->url);
}

static void
begin(struct line_reader *reader)
{
    buf_init(&((struct w3c *)(void *)reader->state)->target, TRACE_URL_MAX);
}

static void
end(struct line_reader *reader)
{
    buf_free(&((struct w3c *)(void *)reader->state)->target);
}

static const struct line_format lines = {.parse = parse, .begin = begin, .end = end};

/* A header that names a URI is enough: a log may be empty. */
static bool
sniff(struct span head)
{
    while (head.len != 0 && head.ptr[0] == '#') {
        struct span line = lines_next(&head);

        if (is_header(line, fields_header))
            return memmem(line.ptr, line.len, "cs-uri", 6) != NULL;
    }
    return false;
}

const struct trace_format trace_format_w3c = {
    .name = "w3c",
    .summary = "W3C's extended log format: IIS, CloudFront",
    .is_text = true,
    .lines = &lines,
    .sniff = sniff,
    .sample =
        "2024-05-31 12:30:00 192.0.2.10 GET /a.htm q=1 443 - 192.0.2.1 Mozilla/5.0 - 200 0 0 15",
};
