/*
 * Access logs of Amazon's load balancers: the Application Load Balancer's
 * (https://docs.aws.amazon.com/elasticloadbalancing/latest/application/load-balancer-access-logs.html)
 *     type time balancer client:port target:port times... status target-status received sent
 *     "request" "agent" ...
 * with three times, and the Classic Load Balancer's, which lacks the type. The request has an
 * absolute URL with its port. Bytes sent are those to the client, headers included.
 */
#include "trace/base_url.h"
#include "trace/formats/fields.h"
#include "trace/formats/formats.h"
#include "trace/formats/lines.h"
#include "trace/formats/request_line.h"

enum field {
    TIME,
    BALANCER,
    CLIENT,
    TARGET,
    REQUEST_TIME,
    TARGET_TIME,
    RESPONSE_TIME,
    STATUS,
    TARGET_STATUS,
    RECEIVED,
    SENT,
    REQUEST,
    FIELDS
};

static bool
is_type(struct span word)
{
    static const char *const types[] = {"http", "https", "h2", "grpcs", "ws", "wss"};

    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        if (span_equal(word, span_str(types[i])))
            return true;
    }
    return false;
}

/* "https://a.test:443/x" without the port, "http://a.test:80/x" likewise: put into the reader. */
static enum line_kind
drop_default_port(struct line_reader *reader, struct span *url)
{
    struct span host = base_url_host_port(*url);
    struct span port = span_str(span_starts_with(*url, span_str("https:")) ? ":443" : ":80");
    struct buf *out = &reader->url;
    const char *end = host.ptr + host.len;

    if (reader->sniffing || host.len <= port.len || url->len > TRACE_URL_MAX ||
        !span_equal(span_of(end - port.len, port.len), port))
        return LINE_REQUEST;
    buf_reset(out);
    reader->no_memory = !buf_append(out, url->ptr, (size_t)(end - url->ptr) - port.len) ||
                        !buf_append(out, end, url->len - (size_t)(end - url->ptr));
    *url = buf_span(out);
    return reader->no_memory ? LINE_BAD : LINE_REQUEST;
}

static enum line_kind
parse(struct line_reader *reader, struct span line, struct trace_request *request)
{
    struct span fields[FIELDS], rest = line, target;
    size_t count = 0;
    int64_t us;

    if (fields_trim(line).len == 0)
        return LINE_OTHER;
    if (is_type(fields_word(&rest)))
        line = rest;
    while (count < FIELDS && fields_quoted(&line, &fields[count]))
        count++;
    if (count < FIELDS || !fields_iso_date(fields[TIME], &request->time_us) ||
        !fields_seconds(fields[REQUEST_TIME], &us) || !fields_seconds(fields[RESPONSE_TIME], &us) ||
        !fields_status(fields[STATUS], &request->status) ||
        !fields_size(fields[SENT], &request->size))
        return LINE_BAD;
    if (!request_line_split(fields[REQUEST], &request->method, &target) ||
        span_equal(request->method, span_str("-")))
        return LINE_ORPHAN;
    if (!base_url_is_web(target))
        return request_line_parse(reader, fields[REQUEST], LINE_SITE_UNKNOWN, request);
    request->url = target;
    return drop_default_port(reader, &request->url);
}

static const struct line_format lines = {.parse = parse};

const struct trace_format trace_format_alb = {
    .name = "alb",
    .summary = "the log of Amazon's Application or Classic Load Balancer",
    .is_text = true,
    .lines = &lines,
    .sample =
        "http 2018-07-02T22:23:00.186641Z app/my-loadbalancer/50dc6c495c0c9188 192.0.2.1:2817 "
        "10.0.0.1:80 0.000 0.001 0.000 200 200 34 366 \"GET http://a.test:80/ HTTP/1.1\" "
        "\"curl/7.46.0\" - -",
};
