/*
 * The access log of Traefik as JSON (https://doc.traefik.io/traefik/observability/access-logs/): an
 * object a line, with
 *     StartUTC or time, RequestMethod, RequestScheme, RequestHost, RequestPort, RequestPath,
 *     DownstreamStatus, DownstreamContentSize
 * "Downstream" is the response to the client. The default log of Traefik is in Common form and read
 * as such.
 */
#include "trace/formats/fields.h"
#include "trace/formats/formats.h"
#include "trace/formats/json_line.h"
#include "trace/formats/lines.h"

_Static_assert(sizeof(struct json_line) <= LINE_STATE_BYTES, "the state fits");

/* A port is often "-". */
static bool
take_port(struct span text, unsigned *port)
{
    uint64_t number;

    *port = 0;
    if (text.len == 0 || span_equal(text, span_str("-")))
        return true;
    if (!fields_uint(text, &number) || number > UINT16_MAX)
        return false;
    *port = (unsigned)number;
    return true;
}

static enum line_kind
parse(struct line_reader *reader, struct span line, struct trace_request *request)
{
    static const char *const times[] = {"StartUTC", "time", "StartLocal", NULL};
    struct json_line *json = (void *)reader->state;
    struct line_site site = LINE_SITE_UNKNOWN;
    struct span path;

    if (fields_trim(line).len == 0)
        return LINE_OTHER;
    if (!json_line_parse(json, line))
        return LINE_BAD;
    path = json_line_text(json, "RequestPath");
    if (path.len == 0) {
        if (json_line_has(json, "RequestMethod"))
            return LINE_ORPHAN;
        return json_line_has(json, "level") ? LINE_OTHER : LINE_BAD;
    }
    if (!fields_any_time(json_line_first(json, times), &request->time_us) ||
        !fields_size(json_line_text(json, "DownstreamContentSize"), &request->size) ||
        !fields_status(json_line_text(json, "DownstreamStatus"), &request->status) ||
        !take_port(json_line_text(json, "RequestPort"), &site.port))
        return LINE_BAD;
    request->method = json_line_text(json, "RequestMethod");
    site.host = json_line_text(json, "RequestHost");
    site.https = span_equal(json_line_text(json, "RequestScheme"), span_str("https"));
    return lines_make_url(reader, request->method, site, path, &request->url);
}

static const struct line_format lines = {.parse = parse, .end = json_line_end};

const struct trace_format trace_format_traefik = {
    .name = "traefik",
    .summary = "Traefik's access log as JSON",
    .is_text = true,
    .lines = &lines,
    .sample = "{\"DownstreamContentSize\":2,\"DownstreamStatus\":200,\"RequestHost\":\"a.test\","
              "\"RequestMethod\":\"GET\",\"RequestPath\":\"/x\",\"RequestScheme\":\"http\","
              "\"StartUTC\":\"2021-08-03T15:09:40.9453Z\"}",
};
