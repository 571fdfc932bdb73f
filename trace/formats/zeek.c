/*
 * Zeek's http.log (https://docs.zeek.org/en/master/logs/http.html), in either form that Zeek
 * writes:
 *   - its own text, lines of columns, named by "#fields" and separated as "#separator"
 *     says. Concatenated logs each have their own header;
 *   - JSON (LogAscii::use_json), an object a line with the known columns, parsed by cJSON.
 *     Times are seconds, milliseconds or RFC 3339 (LogAscii::json_timestamps).
 */
#include "trace/formats/fields.h"
#include "trace/formats/formats.h"
#include "trace/formats/json_line.h"
#include "trace/formats/lines.h"

enum column { TS, METHOD, HOST, RESP_H, RESP_P, URI, SIZE, STATUS, COLUMNS };

static const char *const names[COLUMNS] = {
    "ts", "method", "host", "id.resp_h", "id.resp_p", "uri", "response_body_len", "status_code",
};

struct zeek {
    char separator;
    int column_of[COLUMNS]; /* -1: there is none */
    bool named;
    bool has_status; /* of JSON, which omits unknown values: a line had a status */
    struct json_line json;
};

_Static_assert(sizeof(struct zeek) <= LINE_STATE_BYTES, "the state fits");

static void
take_names(struct zeek *z, struct span rest)
{
    struct span name;

    for (int c = 0; c < COLUMNS; c++)
        z->column_of[c] = -1;
    for (int at = 0; fields_next(&rest, z->separator, &name); at++) {
        for (int c = 0; c < COLUMNS; c++) {
            if (span_equal(name, span_str(names[c])))
                z->column_of[c] = at;
        }
    }
    z->named = true;
}

/* "#separator \x09", "#fields<tab>ts<tab>..." */
static void
take_header(struct zeek *z, struct span line)
{
    static const char separator[] = "#separator ";
    static const char fields[] = "#fields";
    unsigned byte;

    if (span_starts_with(line, span_str(separator))) {
        char text[8] = "";
        size_t from = sizeof(separator) - 1;
        size_t len = line.len - from;

        memcpy(text, line.ptr + from, len < sizeof(text) - 1 ? len : sizeof(text) - 1);
        if (sscanf(text, "\\x%2x", &byte) == 1 && byte != 0 && byte < 0x80)
            z->separator = (char)byte;
    } else if (span_starts_with(line, span_str(fields)) && line.len > sizeof(fields)) {
        take_names(z, span_of(line.ptr + sizeof(fields), line.len - sizeof(fields)));
    }
}

static void
begin(struct line_reader *reader)
{
    ((struct zeek *)(void *)reader->state)->separator = '\t';
}

static void
end(struct line_reader *reader)
{
    json_line_free(&((struct zeek *)(void *)reader->state)->json);
}

/* Unknown values are empty; `has_status`: the log has statuses. */
static enum line_kind
parse_values(struct line_reader *reader, const struct span *values, bool has_status,
             struct trace_request *request)
{
    struct line_site site = {.host = values[HOST].len != 0 ? values[HOST] : values[RESP_H]};
    uint64_t port = 0;

    if (!fields_any_time(values[TS], &request->time_us) ||
        !fields_size(values[SIZE], &request->size) ||
        (has_status && !fields_status(values[STATUS], &request->status)) ||
        (values[RESP_P].len != 0 && (!fields_uint(values[RESP_P], &port) || port > UINT16_MAX)))
        return LINE_BAD;
    request->method = values[METHOD];
    if (values[URI].len == 0)
        return LINE_ORPHAN;
    /* What Zeek reads is http, on whatever port; 443 would make it https. */
    if (port == 443)
        port = 0;
    site.port = (unsigned)port;
    return lines_make_url(reader, request->method, site, values[URI], &request->url);
}

static enum line_kind
parse_columns(struct line_reader *reader, struct span line, struct trace_request *request)
{
    struct zeek *z = (void *)reader->state;
    struct span values[COLUMNS];
    struct span value;
    int missing = 0;

    for (int c = 0; c < COLUMNS; c++) {
        values[c] = span_of("", 0);
        missing += z->column_of[c] >= 0;
    }
    for (int at = 0; fields_next(&line, z->separator, &value); at++) {
        for (int c = 0; c < COLUMNS; c++) {
            if (z->column_of[c] != at)
                continue;
            if (!span_equal(value, span_str("-")))
                values[c] = value;
            missing--;
        }
    }
    return missing == 0 ? parse_values(reader, values, z->column_of[STATUS] >= 0, request)
                        : LINE_BAD;
}

static enum line_kind
parse_object(struct line_reader *reader, struct span line, struct trace_request *request)
{
    struct zeek *z = (void *)reader->state;
    struct span values[COLUMNS];

    if (!json_line_parse(&z->json, line))
        return LINE_BAD;
    for (int c = 0; c < COLUMNS; c++)
        values[c] = json_line_text(&z->json, names[c]);
    z->has_status = z->has_status || values[STATUS].len != 0;
    return parse_values(reader, values, z->has_status, request);
}

static enum line_kind
parse(struct line_reader *reader, struct span line, struct trace_request *request)
{
    struct zeek *z = (void *)reader->state;

    if (line.len == 0 || line.ptr[0] == '#') {
        take_header(z, line);
        return LINE_OTHER;
    }
    if (line.ptr[0] == '{')
        return parse_object(reader, line, request);
    return z->named ? parse_columns(reader, line, request) : LINE_BAD;
}

static const struct line_format lines = {.parse = parse, .begin = begin, .end = end};

/* A header that names the column uri is enough, since a log may be empty; otherwise the lines. */
static bool
sniff(struct span head)
{
    struct span rest = head;
    bool begun = false;

    while (rest.len != 0 && rest.ptr[0] == '#') {
        struct span line = lines_next(&rest);

        begun = begun || span_starts_with(line, span_str("#separator "));
        if (begun && span_starts_with(line, span_str("#fields")) &&
            memmem(line.ptr, line.len, "uri", 3))
            return true;
    }
    return lines_sniff(head, &lines);
}

const struct trace_format trace_format_zeek = {
    .name = "zeek",
    .summary = "Zeek's http.log, with its header or as JSON",
    .is_text = true,
    .lines = &lines,
    .sniff = sniff,
    .sample =
        "{\"ts\":1517336154.078,\"id.resp_h\":\"192.0.2.1\",\"id.resp_p\":80,\"method\":\"GET\","
        "\"host\":\"a.test\",\"uri\":\"/x\",\"response_body_len\":12,\"status_code\":200}",
};
