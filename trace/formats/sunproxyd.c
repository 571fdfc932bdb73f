/*
 * The access logs of sunproxyd, see server/logs/access_log.h. The plain form has nine fields with tabs
 * between:
 *     time client URL outcome status bytes microseconds victims reason
 * of which earlier releases lack the last, and in which bytes outside of printable ASCII, blanks and the backslash are written as \xNN. With
 * --log-format json, a line is an object with the members time, client, url, outcome, status,
 * bytes, us and victims. A request that failed has no status. Every such request is a GET.
 *
 * Lines of requests over HTTP stand between them: in combined form, or as objects with the member
 * method. A log of which the first lines are all in combined form is taken for the log of a server,
 * which has the same lines.
 */
#include "trace/formats/fields.h"
#include "trace/formats/formats.h"
#include "trace/formats/json_line.h"
#include "trace/formats/lines.h"
#include "trace/formats/sunproxyd.h"

enum field { TIME, CLIENT, URL, OUTCOME, STATUS, BYTES, DURATION, VICTIMS, FIELDS };

static const char *const names[FIELDS] = {"time",   "client", "url", "outcome",
                                          "status", "bytes",  "us",  "victims"};

_Static_assert(sizeof(struct json_line) <= LINE_STATE_BYTES, "the state fits");

/* Undoes "\xNN", into the reader's URL if there is any. */
static enum line_kind
unescape(struct line_reader *reader, struct span text, struct span *url)
{
    struct buf *out = reader->sniffing ? NULL : &reader->url;

    *url = text;
    if (!memchr(text.ptr, '\\', text.len) || text.len > TRACE_URL_MAX)
        return LINE_REQUEST;
    if (out)
        buf_reset(out);
    if (!fields_unescape(text, out)) {
        reader->no_memory = out && buf_failed(out);
        return LINE_BAD;
    }
    if (out)
        *url = buf_span(out);
    return LINE_REQUEST;
}

/* "hit", "resolve_failed": small letters and underscores; hyphens in logs of earlier releases. */
static bool
is_outcome(struct span word)
{
    for (size_t i = 0; i < word.len; i++) {
        if ((word.ptr[i] < 'a' || word.ptr[i] > 'z') && word.ptr[i] != '-' && word.ptr[i] != '_')
            return false;
    }
    return word.len != 0;
}

enum trace_outcome
sunproxyd_outcome(struct span word)
{
    static const char *const hits[] = {"hit", "revalidated", "stale"};

    for (size_t i = 0; i < sizeof(hits) / sizeof(hits[0]); i++) {
        if (span_equal(word, span_str(hits[i])))
            return TRACE_OUTCOME_HIT;
    }
    return TRACE_OUTCOME_MISS;
}

/* A client: an address, "unix:UID" or "-". */
static bool
is_client(struct span word)
{
    uint64_t uid;

    if (span_starts_with(word, span_str("unix:")))
        return fields_uint(span_of(word.ptr + 5, word.len - 5), &uid) && uid <= UINT32_MAX;
    return span_equal(word, span_str("-")) || fields_is_address(word);
}

static enum line_kind
parse_values(const struct span *values, struct trace_request *request)
{
    int64_t us;

    if (!fields_iso_date(values[TIME], &request->time_us) || !is_client(values[CLIENT]) ||
        !is_outcome(values[OUTCOME]) || !fields_status(values[STATUS], &request->status) ||
        !fields_size(values[BYTES], &request->size) || !fields_int(values[DURATION], &us))
        return LINE_BAD;
    request->method = span_str("GET");
    request->outcome = sunproxyd_outcome(values[OUTCOME]);
    /* Of a failure the bytes are not the page's. */
    if (request->status == TRACE_STATUS_NONE)
        request->size = -1;
    return span_equal(values[URL], span_str("-")) || values[URL].len == 0 ? LINE_ORPHAN
                                                                          : LINE_REQUEST;
}

static enum line_kind
parse_plain(struct line_reader *reader, struct span line, struct trace_request *request)
{
    struct span values[FIELDS], value;
    enum line_kind kind;
    size_t count = 0;

    for (; fields_next(&line, '\t', &value); count++) {
        if (count > FIELDS)
            return LINE_BAD;
        if (count < FIELDS)
            values[count] = value;
    }
    kind = count >= FIELDS ? parse_values(values, request) : LINE_BAD;
    return kind == LINE_REQUEST ? unescape(reader, values[URL], &request->url) : kind;
}

static enum line_kind
parse_object(struct line_reader *reader, struct span line, struct trace_request *request)
{
    struct json_line *json = (void *)reader->state;
    struct span values[FIELDS], method;
    enum line_kind kind;

    if (!json_line_parse(json, line) || !json_line_has(json, "victims"))
        return LINE_BAD;
    for (int i = 0; i < VICTIMS; i++)
        values[i] = json_line_text(json, names[i]);
    values[VICTIMS] = span_of("", 0);
    request->url = values[URL];
    kind = parse_values(values, request);
    method = json_line_text(json, "method");
    if (kind != LINE_REQUEST || method.len == 0)
        return kind;
    request->method = method;
    return lines_make_url(reader, method, LINE_SITE_UNKNOWN, values[URL], &request->url);
}

/* A line of a request over HTTP: for sniffing it is no sign of this format. */
static enum line_kind
parse_combined(struct line_reader *reader, struct span line, struct trace_request *request)
{
    enum line_kind kind = trace_format_access.lines->parse(reader, line, request);

    return reader->sniffing && kind != LINE_BAD ? LINE_OTHER : kind;
}

static enum line_kind
parse(struct line_reader *reader, struct span line, struct trace_request *request)
{
    if (line.len == 0)
        return LINE_OTHER;
    if (line.ptr[0] == '{')
        return parse_object(reader, line, request);
    return memchr(line.ptr, '\t', line.len) ? parse_plain(reader, line, request)
                                            : parse_combined(reader, line, request);
}

static const struct line_format lines = {.parse = parse, .end = json_line_end};

const struct trace_format trace_format_sunproxyd = {
    .name = "sunproxyd",
    .summary = "sunproxyd's own access log, plain or JSON",
    .is_text = true,
    .lines = &lines,
    .sample = "2024-05-31T12:30:00.123Z\t192.0.2.1\thttp://a.test/\thit\t200\t1024\t57\t-",
};
