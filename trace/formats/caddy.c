/*
 * The access log of Caddy 2 as JSON (https://caddyserver.com/docs/logging): an object a line, with
 *     ts, size, status; request.method, request.host, request.uri, request.tls
 * ts is in seconds, or a date if the log is configured so. A request with an object "tls" came over
 * TLS. "size" is that of the response's body as it was sent.
 */
#include "trace/formats/fields.h"
#include "trace/formats/formats.h"
#include "trace/formats/json_line.h"
#include "trace/formats/lines.h"

_Static_assert(sizeof(struct json_line) <= LINE_STATE_BYTES, "the state fits");

static enum line_kind
parse(struct line_reader *reader, struct span line, struct trace_request *request)
{
    struct json_line *json = (void *)reader->state;
    struct line_site site = LINE_SITE_UNKNOWN;
    struct span uri;

    if (fields_trim(line).len == 0)
        return LINE_OTHER;
    if (!json_line_parse(json, line))
        return LINE_BAD;
    uri = json_line_text(json, "request.uri");
    if (uri.len == 0) /* another message of the server's */
        return json_line_has(json, "logger") ? LINE_OTHER : LINE_BAD;
    if (!fields_any_time(json_line_text(json, "ts"), &request->time_us) ||
        !fields_size(json_line_text(json, "size"), &request->size) ||
        !fields_status(json_line_text(json, "status"), &request->status))
        return LINE_BAD;
    request->method = json_line_text(json, "request.method");
    site.host = json_line_text(json, "request.host");
    site.https = json_line_has(json, "request.tls");
    return lines_make_url(reader, request->method, site, uri, &request->url);
}

static const struct line_format lines = {.parse = parse, .end = json_line_end};

const struct trace_format trace_format_caddy = {
    .name = "caddy",
    .summary = "Caddy's access log as JSON",
    .is_text = true,
    .lines = &lines,
    .sample = "{\"level\":\"info\",\"ts\":1646861401.52,\"logger\":\"http.log.access\","
              "\"request\":{\"method\":\"GET\",\"host\":\"a.test\",\"uri\":\"/\"},"
              "\"size\":10900,\"status\":200}",
};
