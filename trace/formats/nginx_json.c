/*
 * Access logs of nginx with a log_format that writes JSON (escape=json): an object a line. The
 * members' names are the administrator's choice; the names of nginx's variables and those of common
 * recipes are known:
 *     time       time_iso8601, msec, time_local, @timestamp, timestamp, time, ts, date
 *     request    "GET /x HTTP/1.1"; or method and URI apart:
 *     method     request_method, method, verb
 *     URI        request_uri, url, uri, path; of a uri, args or query_string are the query
 *     site       http_host, host, server_name, vhost, domain; scheme, server_port
 *     status     status, status_code, response
 *     size       body_bytes_sent, bytes_sent, bytes, size, response_size
 *     outcome    upstream_cache_status: HIT, MISS, ...
 */
#include "trace/formats/fields.h"
#include "trace/formats/formats.h"
#include "trace/formats/json_line.h"
#include "trace/formats/lines.h"
#include "trace/formats/request_line.h"

struct nginx {
    struct json_line json;
    struct buf uri; /* with its query */
};
_Static_assert(sizeof(struct nginx) <= LINE_STATE_BYTES, "the state fits");

static const char *const times[] = {"time_iso8601", "msec", "time_local", "@timestamp", "timestamp",
                                    "time",         "ts",   "date",       NULL};
static const char *const methods[] = {"request_method", "method", "verb", NULL};
static const char *const whole_uris[] = {"request_uri", "url", NULL};
static const char *const bare_uris[] = {"uri", "path", NULL};
static const char *const queries[] = {"args", "query_string", NULL};
static const char *const hosts[] = {"http_host", "host", "server_name", "vhost", "domain", NULL};
static const char *const schemes[] = {"scheme", "request_scheme", NULL};
static const char *const statuses[] = {"status", "status_code", "response", NULL};
static const char *const sizes[] = {"body_bytes_sent", "bytes_sent", "bytes", "size",
                                    "response_size",   NULL};

/* Of names that other programs do not use, one is enough to recognise the log. */
static const char *const marks[] = {"remote_addr",     "request_uri",  "request_method",
                                    "body_bytes_sent", "time_iso8601", "time_local",
                                    "http_host",       "request_time", "query_string",
                                    "server_name",     "http_referer", NULL};

static bool
is_nginx(const struct json_line *json)
{
    for (size_t i = 0; marks[i]; i++) {
        if (json_line_has(json, marks[i]))
            return true;
    }
    return false;
}

static bool
is_known(struct span text)
{
    return text.len != 0 && !span_equal(text, span_str("-"));
}

/* The URI, with its query unless only sniffing; empty if there is none. False without memory. */
static bool
find_uri(struct nginx *n, bool sniffing, struct span *uri)
{
    struct span query = json_line_first(&n->json, queries);

    *uri = json_line_first(&n->json, whole_uris);
    if (uri->len != 0)
        return true;
    *uri = json_line_first(&n->json, bare_uris);
    if (sniffing || uri->len == 0 || !is_known(query) || memchr(uri->ptr, '?', uri->len))
        return true;
    buf_reset(&n->uri);
    if (!buf_append(&n->uri, uri->ptr, uri->len) || !buf_append_char(&n->uri, '?') ||
        !buf_append(&n->uri, query.ptr, query.len))
        return false;
    *uri = buf_span(&n->uri);
    return true;
}

static enum trace_outcome
outcome_of(struct span status)
{
    static const char *const hits[] = {"HIT", "STALE", "UPDATING", "REVALIDATED"};

    for (size_t i = 0; i < sizeof(hits) / sizeof(hits[0]); i++) {
        if (span_equal(status, span_str(hits[i])))
            return TRACE_OUTCOME_HIT;
    }
    return is_known(status) ? TRACE_OUTCOME_MISS : TRACE_OUTCOME_UNKNOWN;
}

static enum line_kind
parse(struct line_reader *reader, struct span line, struct trace_request *request)
{
    struct nginx *n = (void *)reader->state;
    struct json_line *json = &n->json;
    struct line_site site = LINE_SITE_UNKNOWN;
    struct span when, status, text;
    uint64_t port;

    if (fields_trim(line).len == 0)
        return LINE_OTHER;
    if (!json_line_parse(json, line) || (reader->sniffing && !is_nginx(json)))
        return LINE_BAD;
    when = json_line_first(json, times);
    status = json_line_first(json, statuses);
    if ((when.len != 0 && !fields_any_time(when, &request->time_us)) ||
        (status.len != 0 && !fields_status(status, &request->status)) ||
        !fields_size(json_line_first(json, sizes), &request->size))
        return LINE_BAD;
    request->outcome = outcome_of(json_line_text(json, "upstream_cache_status"));
    site.host = json_line_first(json, hosts);
    if (!is_known(site.host) || span_equal(site.host, span_str("_")))
        site.host = span_of("", 0);
    site.https = span_equal(json_line_first(json, schemes), span_str("https"));
    if (fields_uint(json_line_text(json, "server_port"), &port) && port <= UINT16_MAX)
        site.port = (unsigned)port;
    text = json_line_text(json, "request");
    if (text.len != 0)
        return request_line_parse(reader, text, site, request);
    request->method = json_line_first(json, methods);
    if (!find_uri(n, reader->sniffing, &text)) {
        reader->no_memory = true;
        return LINE_BAD;
    }
    if (!is_known(text))
        return json_line_has(json, "request") || json_line_has(json, "request_uri") ? LINE_ORPHAN
                                                                                    : LINE_BAD;
    return lines_make_url(reader, request->method, site, text, &request->url);
}

static void
begin(struct line_reader *reader)
{
    buf_init(&((struct nginx *)(void *)reader->state)->uri, TRACE_URL_MAX);
}

static void
end(struct line_reader *reader)
{
    struct nginx *n = (void *)reader->state;

    json_line_free(&n->json);
    buf_free(&n->uri);
}

static const struct line_format lines = {.parse = parse, .begin = begin, .end = end};

const struct trace_format trace_format_nginx_json = {
    .name = "nginx-json",
    .summary = "an access log of nginx whose log_format writes JSON",
    .is_text = true,
    .lines = &lines,
    .sample = "{\"time_iso8601\":\"2024-05-31T12:30:00+00:00\",\"remote_addr\":\"192.0.2.1\","
              "\"request\":\"GET / HTTP/1.1\",\"status\":\"200\",\"body_bytes_sent\":\"612\"}",
};
