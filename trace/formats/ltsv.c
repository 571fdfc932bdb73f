/*
 * LTSV, labelled tab-separated values (http://ltsv.org/): fields "label:value" with tabs between,
 * in any order. The labels that ltsv.org recommends are known: time, req or method and uri, status,
 * size, vhost, cache; and the names of nginx's variables for them. `host` is the client there. "-"
 * stands for an unknown value.
 */
#include "trace/formats/fields.h"
#include "trace/formats/formats.h"
#include "trace/formats/lines.h"
#include "trace/formats/request_line.h"

enum label { TIME, REQUEST, METHOD, URI, STATUS, SIZE, SITE, SCHEME, PORT, CACHE, LABELS };

static const struct {
    const char *name;
    enum label label;
} known[] = {
    {"time", TIME},
    {"time_local", TIME},
    {"time_iso8601", TIME},
    {"msec", TIME},
    {"req", REQUEST},
    {"request", REQUEST},
    {"method", METHOD},
    {"request_method", METHOD},
    {"uri", URI},
    {"request_uri", URI},
    {"url", URI},
    {"status", STATUS},
    {"size", SIZE},
    {"body_bytes_sent", SIZE},
    {"vhost", SITE},
    {"http_host", SITE},
    {"server_name", SITE},
    {"scheme", SCHEME},
    {"server_port", PORT},
    {"cache", CACHE},
    {"upstream_cache_status", CACHE},
};

/* Stores the value of a label that is known and has none yet. */
static void
take_field(struct span field, struct span values[LABELS])
{
    const char *colon = field.len ? memchr(field.ptr, ':', field.len) : NULL;
    size_t len = colon ? (size_t)(colon - field.ptr) : 0;
    struct span value;

    if (len == 0)
        return;
    value = fields_trim(span_of(colon + 1, field.len - len - 1));
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (span_equal(span_of(field.ptr, len), span_str(known[i].name)) &&
            values[known[i].label].len == 0 && !span_equal(value, span_str("-")))
            values[known[i].label] = value;
    }
}

static enum trace_outcome
outcome_of(struct span cache)
{
    if (cache.len == 0)
        return TRACE_OUTCOME_UNKNOWN;
    return memmem(cache.ptr, cache.len, "HIT", 3) ? TRACE_OUTCOME_HIT : TRACE_OUTCOME_MISS;
}

static enum line_kind
parse(struct line_reader *reader, struct span line, struct trace_request *request)
{
    struct line_site site = LINE_SITE_UNKNOWN;
    struct span values[LABELS], field;
    size_t labelled = 0;
    uint64_t port;

    if (fields_trim(line).len == 0 || line.ptr[0] == '#')
        return LINE_OTHER;
    for (int i = 0; i < LABELS; i++)
        values[i] = span_of("", 0);
    while (fields_next(&line, '\t', &field)) {
        labelled += field.len != 0 && memchr(field.ptr, ':', field.len) != NULL;
        take_field(field, values);
    }
    if (labelled < 2 ||
        (values[TIME].len != 0 && !fields_any_time(values[TIME], &request->time_us)) ||
        !fields_size(values[SIZE], &request->size) ||
        (values[STATUS].len != 0 && !fields_status(values[STATUS], &request->status)))
        return LINE_BAD;
    request->outcome = outcome_of(values[CACHE]);
    site.host = values[SITE];
    site.https = span_equal(values[SCHEME], span_str("https"));
    if (fields_uint(values[PORT], &port) && port <= UINT16_MAX)
        site.port = (unsigned)port;
    if (values[REQUEST].len != 0)
        return request_line_parse(reader, values[REQUEST], site, request);
    request->method = values[METHOD];
    if (values[URI].len != 0)
        return lines_make_url(reader, request->method, site, values[URI], &request->url);
    return values[STATUS].len != 0 ? LINE_ORPHAN : LINE_BAD;
}

static const struct line_format lines = {.parse = parse};

const struct trace_format trace_format_ltsv = {
    .name = "ltsv",
    .summary = "LTSV, with the labels that ltsv.org recommends",
    .is_text = true,
    .lines = &lines,
    .sample = "time:[28/Feb/2013:12:00:00 +0900]\thost:192.0.2.1\treq:GET /list HTTP/1.1\t"
              "status:200\tsize:5316\tvhost:a.test",
};
