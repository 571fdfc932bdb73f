/*
 * Zeek's http.log (https://docs.zeek.org/en/master/logs/http.html) in its own text form: lines of
 * columns, which "#fields" names and "#separator" parts. Rotated logs, one behind the other, each
 * bring their own header.
 */
#include "trace/fields.h"
#include "trace/formats.h"
#include "trace/lines.h"

enum column { TS, METHOD, HOST, RESP_H, RESP_P, URI, SIZE, STATUS, COLUMNS };

static const char *const names[COLUMNS] = {
    "ts", "method", "host", "id.resp_h", "id.resp_p", "uri", "response_body_len", "status_code",
};

struct zeek {
    char separator;
    int column_of[COLUMNS]; /* -1: there is none */
    bool named;
};

_Static_assert(sizeof(struct zeek) <= LINE_STATE_BYTES, "the state fits");

/* The next column; false behind the last. */
static bool
next_column(struct span *rest, char separator, struct span *column)
{
    const char *end;

    if (!rest->ptr)
        return false;
    end = rest->len ? memchr(rest->ptr, separator, rest->len) : NULL;
    *column = span_of(rest->ptr, end ? (size_t)(end - rest->ptr) : rest->len);
    *rest = end ? span_of(end + 1, rest->len - column->len - 1) : span_of(NULL, 0);
    return true;
}

static void
take_names(struct zeek *z, struct span rest)
{
    struct span name;

    for (int c = 0; c < COLUMNS; c++)
        z->column_of[c] = -1;
    for (int at = 0; next_column(&rest, z->separator, &name); at++) {
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

/* The value of a column; empty where the log has "-" or no such column. */
static struct span
value_of(const struct zeek *z, const struct span *values, enum column column)
{
    struct span value = z->column_of[column] >= 0 ? values[column] : span_of("", 0);

    return value.len == 1 && value.ptr[0] == '-' ? span_of("", 0) : value;
}

static enum line_kind
parse_values(struct line_reader *reader, const struct span *values, struct trace_entry *entry)
{
    const struct zeek *z = (const void *)reader->state;
    struct span host = value_of(z, values, HOST);
    struct span port_text = value_of(z, values, RESP_P);
    uint64_t port = 0;

    if (!fields_seconds(value_of(z, values, TS), &entry->time_us) ||
        !fields_size(value_of(z, values, SIZE), &entry->size) ||
        (z->column_of[STATUS] >= 0 &&
         !fields_status(value_of(z, values, STATUS), &entry->status)) ||
        (port_text.len != 0 && (!fields_uint(port_text, &port) || port > UINT16_MAX)))
        return LINE_BAD;
    entry->method = value_of(z, values, METHOD);
    if (value_of(z, values, URI).len == 0)
        return LINE_ORPHAN;
    if (host.len == 0)
        host = value_of(z, values, RESP_H);
    /* What Zeek reads is http, on whatever port; the host may bring its port itself. */
    if (port == 443 || memchr(host.ptr, ':', host.len))
        port = 0;
    return lines_make_url(reader, entry->method, host, (unsigned)port, value_of(z, values, URI),
                          &entry->url);
}

static enum line_kind
parse(struct line_reader *reader, struct span line, struct trace_entry *entry)
{
    struct zeek *z = (void *)reader->state;
    struct span values[COLUMNS] = {0};
    struct span value;
    int missing = 0;
    int at;

    if (line.len == 0 || line.ptr[0] == '#') {
        take_header(z, line);
        return LINE_OTHER;
    }
    if (!z->named)
        return LINE_BAD;
    for (int c = 0; c < COLUMNS; c++)
        missing += z->column_of[c] >= 0;
    for (at = 0; next_column(&line, z->separator, &value); at++) {
        for (int c = 0; c < COLUMNS; c++) {
            if (z->column_of[c] == at) {
                values[c] = value;
                missing--;
            }
        }
    }
    return missing == 0 ? parse_values(reader, values, entry) : LINE_BAD;
}

static const struct line_format lines = {.parse = parse, .begin = begin};

const struct trace_format trace_format_zeek = {
    .name = "zeek",
    .summary = "Zeek's http.log with its header",
    .is_text = true,
    .lines = &lines,
};
