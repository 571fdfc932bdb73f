#include "http/request_head.h"

#include "http/field.h"
#include "http/octet.h"
#include "http/request_line.h"
#include "http/target.h"

struct reader {
    const char *at, *end;
    const struct http_head_limits *limits;
    struct http_request *request;
    struct http_refusal *refusal;
    /* What Transfer-Encoding lists so far, over all its lines. */
    unsigned codings;
    bool chunked_last;
    bool host_stated;             /* by a Host that is not empty */
    struct http_authority host;   /* its value */
    bool closes, keeps, upgrades; /* what Connection lists */
};

void
http_head_limits_default(struct http_head_limits *limits)
{
    *limits = (struct http_head_limits){
        .max_bytes = 65536,
        .max_line = 16384,
        .max_fields = 200,
    };
}

/* ---- fields -------------------------------------------------------------------------- */

static enum http_read
read_host(struct reader *r, struct span value)
{
    if (r->request->has & HTTP_HAS_HOST)
        return http_refuse(r->refusal, 400, "there is more than one Host");
    r->host_stated = value.len > 0;
    if (r->host_stated && !http_authority_read(value, &r->host))
        return http_refuse(r->refusal, 400, "Host is not a host, or a host and a port");
    return HTTP_READ_DONE;
}

/* RFC 9110 section 8.6: digits. Repetitions are refused even if they are equal. */
static enum http_read
read_content_length(struct reader *r, struct span value)
{
    int64_t length = 0;

    if (r->request->has & HTTP_HAS_CONTENT_LENGTH)
        return http_refuse(r->refusal, 400, "there is more than one Content-Length");
    if (value.len == 0)
        return http_refuse(r->refusal, 400, "Content-Length is empty");
    for (size_t i = 0; i < value.len; i++) {
        int digit = value.ptr[i] - '0';

        if (!http_octet_is(value.ptr[i], HTTP_OCTET_DIGIT))
            return http_refuse(r->refusal, 400, "Content-Length is not a number");
        if (length > (INT64_MAX - digit) / 10)
            return http_refuse(r->refusal, 400, "Content-Length is too large");
        length = length * 10 + digit;
    }
    r->request->content_length = length;
    return HTTP_READ_DONE;
}

/*
 * RFC 9112 section 6.1. Every member is a token without parameters; what the list as a whole means
 * is decided at the end of the head, since several lines are one list.
 */
static enum http_read
read_transfer_encoding(struct reader *r, struct span value)
{
    for (;;) {
        const char *comma = value.len ? memchr(value.ptr, ',', value.len) : NULL;
        size_t len = comma ? (size_t)(comma - value.ptr) : value.len;
        struct span member = http_trim(span_of(value.ptr, len));

        if (!http_is_token(member))
            return http_refuse(r->refusal, 400,
                               "Transfer-Encoding has a member that is not a token");
        if (r->chunked_last)
            return http_refuse(r->refusal, 400, "a transfer coding follows chunked");
        r->codings++;
        r->chunked_last = http_name_is(member, "chunked");
        if (!comma)
            return HTTP_READ_DONE;
        value = span_of(comma + 1, value.len - len - 1);
    }
}

static enum http_read
read_connection(struct reader *r, struct span value)
{
    static const char *const end_here[] = {"TE", "Trailer", "Transfer-Encoding", "HTTP2-Settings",
                                           "Proxy-Connection", NULL};
    struct span member;

    while (http_next_member(&value, &member)) {
        r->request->connection_options++;
        if (http_name_is(member, "close"))
            r->closes = true;
        else if (http_name_is(member, "keep-alive"))
            r->keeps = true;
        else if (http_name_is(member, "upgrade"))
            r->upgrades = true;
        else if (!http_name_is_one_of(member, end_here))
            r->request->listed_fields++;
    }
    return HTTP_READ_DONE;
}

static enum http_read
read_expect(struct reader *r, struct span value)
{
    struct span member;

    while (http_next_member(&value, &member)) {
        if (!http_name_is(member, "100-continue"))
            return http_refuse(r->refusal, 417, "only 100-continue can be expected");
        r->request->expects_continue = r->request->minor > 0;
    }
    return HTTP_READ_DONE;
}

/* Several lines, and HTTP/2 over an upgrade (which no client uses), switch to nothing. */
static enum http_read
read_upgrade(struct reader *r, struct span value)
{
    static const char *const http_2[] = {"h2", "h2c", "HTTP/2", "HTTP/2.0", NULL};
    struct span list = value, member;

    r->request->upgrade = r->request->has & HTTP_HAS_UPGRADE ? span_of(NULL, 0) : value;
    while (http_next_member(&list, &member))
        if (http_name_is_one_of(member, http_2))
            r->request->upgrade = span_of(NULL, 0);
    return HTTP_READ_DONE;
}

typedef enum http_read read_value(struct reader *r, struct span value);

struct known_field {
    const char *name; /* in lower case; NULL ends a row */
    enum http_request_field flag;
    read_value *read; /* NULL: that it is there is enough */
};

#define LONGEST_KNOWN 19u

/* By the length of the name. */
static const struct known_field known[LONGEST_KNOWN + 1][5] = {
    [2] = {{"te", HTTP_HAS_TE, NULL}},
    [3] = {{"via", HTTP_HAS_VIA, NULL}},
    [4] = {{"host", HTTP_HAS_HOST, read_host}},
    [5] = {{"range", HTTP_HAS_RANGE, NULL}},
    [6] = {{"cookie", HTTP_HAS_COOKIE, NULL},
           {"pragma", HTTP_HAS_PRAGMA, NULL},
           {"expect", HTTP_HAS_EXPECT, read_expect}},
    [7] = {{"upgrade", HTTP_HAS_UPGRADE, read_upgrade}, {"trailer", HTTP_HAS_TRAILER, NULL}},
    [8] = {{"if-match", HTTP_HAS_IF_MATCH, NULL}, {"if-range", HTTP_HAS_IF_RANGE, NULL}},
    [10] = {{"connection", HTTP_HAS_CONNECTION, read_connection},
            {"proxy-peer", HTTP_HAS_PEER, NULL}},
    [12] = {{"max-forwards", HTTP_HAS_MAX_FORWARDS, NULL}},
    [13] = {{"cache-control", HTTP_HAS_CACHE_CONTROL, NULL},
            {"if-none-match", HTTP_HAS_IF_NONE_MATCH, NULL},
            {"authorization", HTTP_HAS_AUTHORIZATION, NULL}},
    [14] = {{"content-length", HTTP_HAS_CONTENT_LENGTH, read_content_length}},
    [15] = {{"accept-encoding", HTTP_HAS_ACCEPT_ENCODING, NULL}},
    [17] = {{"transfer-encoding", HTTP_HAS_TRANSFER_ENCODING, read_transfer_encoding},
            {"if-modified-since", HTTP_HAS_IF_MODIFIED_SINCE, NULL}},
    [19] = {{"if-unmodified-since", HTTP_HAS_IF_UNMODIFIED_SINCE, NULL}},
};

/* Without regard to case: no token has a character that this takes for one of a known name. */
static bool
is_known(const char *name, size_t len, const char *known_name)
{
    for (size_t i = 0; i < len; i++)
        if ((name[i] | 0x20) != known_name[i])
            return false;
    return true;
}

uint32_t
http_request_field_of(struct span name)
{
    if (name.len > LONGEST_KNOWN)
        return 0;
    for (const struct known_field *row = known[name.len]; row->name; row++)
        if (is_known(name.ptr, name.len, row->name))
            return row->flag;
    return 0;
}

static enum http_read
interpret_field(struct reader *r, const char *name, size_t len, struct span value)
{
    enum http_read result = HTTP_READ_DONE;

    if (++r->request->field_count > r->limits->max_fields)
        return http_refuse(r->refusal, 431, "the head has too many fields");
    if (len > LONGEST_KNOWN)
        return HTTP_READ_DONE;
    for (const struct known_field *row = known[len]; row->name; row++) {
        if (!is_known(name, len, row->name))
            continue;
        if (row->read)
            result = row->read(r, value);
        r->request->has |= row->flag;
        break;
    }
    return result;
}

/* A line that does not begin with a token and a colon; `p` is where that shows. */
static enum http_read
refuse_name(struct reader *r, const char *start, const char *p)
{
    if (p == start && http_is_blank(*p))
        return http_refuse(r->refusal, 400, "a line begins with a blank");
    if (p == start && *p == ':')
        return http_refuse(r->refusal, 400, "a field has no name");
    if (http_is_blank(*p))
        return http_refuse(r->refusal, 400, "there is a blank in or behind the name of a field");
    if (*p == '\r' || *p == '\n')
        return http_refuse(r->refusal, 400, "a line has no colon, or is not ended by CR LF");
    return http_refuse(r->refusal, 400, "the name of a field is not a token");
}

#define EVERY_BYTE(value) (UINT64_C(0x0101010101010101) * (value))

/* Is one of eight bytes a control character? The tab is taken for one, too. */
static bool
has_control(const char *eight)
{
    uint64_t word, del;

    memcpy(&word, eight, sizeof(word));
    del = word ^ EVERY_BYTE(0x7f);
    return (((word - EVERY_BYTE(0x20)) & ~word) | ((del - EVERY_BYTE(1)) & ~del)) &
           EVERY_BYTE(0x80);
}

static const char *
skip_value(const char *p, const char *end)
{
    while (end - p >= 8 && !has_control(p))
        p += 8;
    while (p < end && http_octet_is(*p, HTTP_OCTET_VALUE))
        p++;
    return p;
}

static enum http_read
read_field(struct reader *r)
{
    const char *start = r->at, *p = start, *colon;
    struct span value;

    while (p < r->end && http_octet_is(*p, HTTP_OCTET_TOKEN))
        p++;
    if (p == r->end)
        return HTTP_READ_MORE;
    if (p == start || *p != ':')
        return refuse_name(r, start, p);
    colon = p++;
    p = skip_value(p, r->end);
    if (p == r->end)
        return HTTP_READ_MORE;
    if (*p != '\r')
        return http_refuse(r->refusal, 400,
                           *p == '\n' ? "a line is ended by LF without CR"
                                      : "there is a control character in a value");
    if (r->end - p < 2)
        return HTTP_READ_MORE;
    if (p[1] != '\n')
        return http_refuse(r->refusal, 400, "there is a CR without LF");
    value = http_trim(span_of(colon + 1, (size_t)(p - colon) - 1));
    r->at = p + 2;
    return interpret_field(r, start, (size_t)(colon - start), value);
}

static enum http_read
read_fields(struct reader *r)
{
    const char *start = r->at;

    for (;;) {
        enum http_read result;

        if (r->at == r->end)
            return HTTP_READ_MORE;
        if (*r->at == '\r') {
            if (r->end - r->at < 2)
                return HTTP_READ_MORE;
            if (r->at[1] != '\n')
                return http_refuse(r->refusal, 400, "there is a CR without LF");
            r->request->fields = span_of(start, (size_t)(r->at - start));
            r->at += 2;
            return HTTP_READ_DONE;
        }
        result = read_field(r);
        if (result != HTTP_READ_DONE)
            return result;
    }
}

/* ---- what the head means as a whole -------------------------------------------------- */

/* RFC 9112 section 6.3. */
static enum http_read
decide_framing(struct reader *r)
{
    struct http_request *request = r->request;
    enum http_method id = request->method_id;

    if (request->has & HTTP_HAS_TRANSFER_ENCODING) {
        if (request->minor == 0)
            return http_refuse(r->refusal, 400, "there is a Transfer-Encoding in HTTP/1.0");
        if (request->has & HTTP_HAS_CONTENT_LENGTH)
            return http_refuse(r->refusal, 400,
                               "there are both Transfer-Encoding and Content-Length");
        if (!r->chunked_last)
            return http_refuse(r->refusal, 400, "the last transfer coding is not chunked");
        if (r->codings > 1)
            return http_refuse(r->refusal, 501, "no transfer coding but chunked is known");
        request->chunked = true;
    }
    /* Some clients state that there is none, as WinINet does. */
    if (id == HTTP_CONNECT && (request->chunked || request->content_length > 0))
        return http_refuse(r->refusal, 400, "CONNECT has no body");
    if (request->minor == 0 && request->content_length < 0 &&
        (id == HTTP_POST || id == HTTP_PUT || id == HTTP_PATCH))
        return http_refuse(r->refusal, 411,
                           "the body of a request in HTTP/1.0 needs a Content-Length");
    return HTTP_READ_DONE;
}

/* RFC 9112 section 3.2: the target counts more than Host. */
static enum http_read
decide_host(struct reader *r)
{
    struct http_request *request = r->request;

    if (request->minor > 0 && !(request->has & HTTP_HAS_HOST))
        return http_refuse(r->refusal, 400, "there is no Host");
    if (request->form == HTTP_ABSOLUTE_FORM || request->form == HTTP_AUTHORITY_FORM)
        return HTTP_READ_DONE;
    if ((request->has & HTTP_HAS_HOST) && !r->host_stated)
        return http_refuse(r->refusal, 400, "Host is empty");
    request->host = r->host.host;
    request->port = r->host.port;
    return HTTP_READ_DONE;
}

static enum http_read
finish(struct reader *r)
{
    struct http_request *request = r->request;

    if (!decide_framing(r) || !decide_host(r))
        return HTTP_READ_REFUSED;
    request->persistent =
        !r->closes && (request->minor > 0 || (r->keeps && request->form == HTTP_ORIGIN_FORM));
    if (!r->upgrades || request->minor == 0)
        request->upgrade = span_of(NULL, 0);
    return HTTP_READ_DONE;
}

/* ---- steps --------------------------------------------------------------------------- */

/* Does an empty line end in bytes from `from` on? A bare LF counts: that it is refused shows then.
 */
static bool
has_end(struct span input, size_t from)
{
    const char *p = input.ptr + from, *end = input.ptr + input.len;

    while (p < end && (p = memchr(p, '\n', (size_t)(end - p)))) {
        if (p > input.ptr &&
            (p[-1] == '\n' || (p - input.ptr > 1 && p[-1] == '\r' && p[-2] == '\n')))
            return true;
        p++;
    }
    return false;
}

/* Member by member: an assignment of the whole becomes a loop that takes longer than the rest. */
static void
clear(struct http_request *request)
{
    static const struct span empty;

    request->method = request->target = request->host = empty;
    request->path = request->fields = request->upgrade = empty;
    request->method_id = HTTP_OTHER;
    request->form = HTTP_ORIGIN_FORM;
    request->https = request->chunked = request->persistent = request->expects_continue = false;
    request->port = request->minor = 0;
    request->has = request->field_count = request->connection_options = 0;
    request->listed_fields = request->raw_octets = 0;
    request->content_length = -1;
}

static enum http_read
read_head(struct reader *r, struct span input)
{
    enum http_read result;

    r->at = input.ptr;
    r->end = input.ptr + input.len;
    clear(r->request);
    result = http_request_line_read(r->request, &r->at, r->end, r->limits->max_line, r->refusal);
    if (result == HTTP_READ_DONE)
        result = read_fields(r);
    if (result == HTTP_READ_DONE)
        result = finish(r);
    r->request->head_len = (size_t)(r->at - input.ptr);
    return result;
}

enum http_head_step
http_request_head_read(struct http_request *request, struct span input, size_t *searched,
                       const struct http_head_limits *limits, struct http_refusal *refusal)
{
    struct reader r = {.limits = limits, .request = request, .refusal = refusal};
    bool full = input.len >= limits->max_bytes;
    bool read;
    enum http_read result;

    if (full)
        input.len = limits->max_bytes;
    /* A head that was read in vain is read again when it is complete, or when a limit is reached.
     */
    read = *searched == 0 || full ||
           (*searched <= limits->max_line + 2u && input.len > limits->max_line + 2u) ||
           has_end(input, *searched);
    *searched = input.len;
    if (!read)
        return HTTP_HEAD_PARTIAL;
    result = input.len ? read_head(&r, input) : HTTP_READ_MORE;
    if (result == HTTP_READ_MORE && full)
        result = http_refuse(refusal, 431, "the head is too large");
    if (result == HTTP_READ_MORE)
        return HTTP_HEAD_PARTIAL;
    return result == HTTP_READ_DONE ? HTTP_HEAD_COMPLETE : HTTP_HEAD_REFUSED;
}

static void
move(struct span *part, struct span head, const char *to)
{
    uintptr_t at = (uintptr_t)part->ptr - (uintptr_t)head.ptr;

    if (part->len && at < head.len)
        part->ptr = to + at;
}

void
http_request_move(struct http_request *request, struct span head, const char *to)
{
    move(&request->method, head, to);
    move(&request->target, head, to);
    move(&request->host, head, to);
    move(&request->path, head, to);
    move(&request->fields, head, to);
    move(&request->upgrade, head, to);
}
