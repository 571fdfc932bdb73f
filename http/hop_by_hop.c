#include "http/hop_by_hop.h"

#include <stdio.h>

#include "http/field.h"
#include "http/octet.h"

static const char *const hop_by_hop[] = {
    "Connection", "Keep-Alive", "TE", "Trailer", "Transfer-Encoding", "Upgrade", NULL,
};

/* Of a response; kept although Connection may list them. */
static const char *const always_needed[] = {
    "Age",
    "CDN-Cache-Control",
    "Cache-Control",
    "Content-Encoding",
    "Content-Length",
    "Content-Range",
    "Content-Type",
    "Date",
    "ETag",
    "Expires",
    "Last-Modified",
    "Pragma",
    "Set-Cookie",
    "Vary",
    "Via",
    "WWW-Authenticate",
    NULL,
};

/* Of a request; kept although Connection may list them. */
static const char *const needed_in_requests[] = {
    "Content-Encoding", "Content-Length", "Content-Range", "Content-Type", "Expect",
    "Forwarded",        "Host",           "Max-Forwards",  "Via",          NULL,
};

/* Set by the fetcher, or by http_forward_fields(). "Proxy" would be HTTP_PROXY for CGI. */
static const char *const replaced[] = {
    "Host", "Content-Length", "Expect", "HTTP2-Settings", "Forwarded", "X-Real-IP", "Proxy", NULL,
};

/* On which caching depends: in another spelling an origin behind CGI would obey what the proxy has
 * not seen. */
static const char *const spelled_once[] = {
    "Accept-Encoding",
    "Accept-Language",
    "Cache-Control",
    "Content-Encoding",
    "Content-Type",
    "If-Match",
    "If-Range",
    "If-Modified-Since",
    "If-None-Match",
    "User-Agent",
    "X-HTTP-Method",
    "If-Unmodified-Since",
    NULL,
};

static const char *const overrides[] = {
    "X-HTTP-Method",  "X-HTTP-Method-Override", "X-Method-Override",
    "X-Original-URL", "X-Rewrite-URL",          NULL,
};

bool
http_connection_options_add(struct http_connection_options *options, struct span value)
{
    struct span member;

    while (http_next_member(&value, &member)) {
        if (options->count == HTTP_CONNECTION_OPTIONS_MAX)
            return false;
        options->names[options->count++] = member;
    }
    return true;
}

static bool
is_listed(struct span name, const struct http_connection_options *options)
{
    return http_name_is_among(name, options->names, options->count);
}

bool
http_is_hop_by_hop(struct span name, const struct http_connection_options *options)
{
    return http_name_is_one_of(name, hop_by_hop) ||
           (is_listed(name, options) && !http_name_is_one_of(name, always_needed));
}

static bool
has_prefix(struct span name, const char *prefix)
{
    size_t len = strlen(prefix);

    return name.len >= len && http_same_name(span_of(name.ptr, len), span_str(prefix));
}

/* ---- requests ------------------------------------------------------------------------ */

#define LONGEST_NAME 32u /* of those that are left out, by far */

static bool
is_punctuation(char c)
{
    return c != '-' && !(c >= '0' && c <= '9') && !((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
}

/*
 * The name with "-" for any other punctuation, as CGI reads it. One that is longer than any that
 * matters stays as it is.
 */
static struct span
as_cgi_reads(struct span name, char *copy)
{
    size_t first = 0;

    while (first < name.len && !is_punctuation(name.ptr[first]))
        first++;
    if (first == name.len || name.len > LONGEST_NAME)
        return name;
    for (size_t i = 0; i < name.len; i++)
        copy[i] = is_punctuation(name.ptr[i]) ? '-' : name.ptr[i];
    return span_of(copy, name.len);
}

static bool
is_removed(struct span name, const struct http_connection_options *options)
{
    char copy[LONGEST_NAME];
    struct span read = as_cgi_reads(name, copy);

    return (is_listed(name, options) || is_listed(read, options)) &&
           !http_name_is_one_of(read, hop_by_hop) &&
           !http_name_is_one_of(read, needed_in_requests) && !has_prefix(read, "X-Forwarded-");
}

size_t
http_remove_listed(struct span fields, char *out)
{
    struct http_connection_options options = {.count = 0};
    struct span rest = fields, before, line, name, value;
    char *at = out;

    while (http_next_line(&rest, &line))
        if (http_split_field(line, &name, &value) && http_name_is(name, "Connection") &&
            !http_connection_options_add(&options, value))
            return (size_t)(span_put(at, fields) - out);
    rest = fields;
    for (before = rest; http_next_line(&rest, &line); before = rest)
        if (!http_split_field(line, &name, &value) || !is_removed(name, &options))
            at = span_put(at, span_of(before.ptr, before.len - rest.len));
    return (size_t)(at - out);
}

static bool
goes_on(struct span name, const struct http_forwarding *forwarding)
{
    bool safe = forwarding->method == HTTP_GET || forwarding->method == HTTP_HEAD;
    char copy[LONGEST_NAME];
    struct span read = as_cgi_reads(name, copy);

    if (http_name_is_one_of(read, hop_by_hop) || http_name_is_one_of(read, replaced) ||
        has_prefix(read, "Proxy-") || has_prefix(read, "X-Forwarded-"))
        return false;
    if (read.ptr != name.ptr && http_name_is_one_of(read, spelled_once))
        return false;
    if (http_name_is(read, "Content-Encoding"))
        return forwarding->has_body;
    if (http_name_is(read, "Max-Forwards"))
        return forwarding->max_forwards < 0;
    return !safe || !http_name_is_one_of(read, overrides);
}

static void
append_field(struct buf *out, const char *name, struct span value)
{
    if (value.len)
        http_append_field(out, name, value);
}

/* Appends the values that the fields have for this name, each with a comma. */
static void
append_values(struct buf *out, struct span fields, const char *wanted)
{
    struct span line, name, value;

    while (http_next_line(&fields, &line)) {
        if (!http_split_field(line, &name, &value) || !http_name_is(name, wanted) || !value.len)
            continue;
        buf_append(out, value.ptr, value.len);
        buf_append_str(out, ", ");
    }
}

/*
 * Appends the members that the fields have for this name, behind the first `skipped` ones, each
 * with a comma. Returns the number of all. NULL: they are counted alone.
 */
static unsigned
append_members(struct buf *out, struct span fields, const char *wanted, unsigned skipped)
{
    struct span line, name, value, member;
    unsigned count = 0;

    while (http_next_line(&fields, &line)) {
        if (!http_split_field(line, &name, &value) || !http_name_is(name, wanted))
            continue;
        while (http_next_member(&value, &member)) {
            if (count++ < skipped || !out)
                continue;
            buf_append(out, member.ptr, member.len);
            buf_append_str(out, ", ");
        }
    }
    return count;
}

static void
append_for(struct buf *out, struct span fields, const struct http_forwarding *forwarding)
{
    if (forwarding->for_.len == 0)
        return;
    buf_append_str(out, "X-Forwarded-For: ");
    if (forwarding->chain == HTTP_WAY_X)
        append_values(out, fields, "X-Forwarded-For");
    buf_append(out, forwarding->for_.ptr, forwarding->for_.len);
    buf_append(out, "\r\n", 2);
}

/* Scheme and host are those that the proxies in front have stated, if they have: origins look for
 * them in the first member or in the last one that has them. */
static void
append_forwarded(struct buf *out, struct span fields, const struct http_forwarding *forwarding)
{
    const struct http_way none = {.members = 0}, *way = &none;

    if (forwarding->sender.len == 0)
        return;
    buf_append_str(out, "Forwarded: ");
    if (forwarding->chain == HTTP_WAY_FORWARDED && forwarding->way) {
        way = forwarding->way;
        (void)append_members(out, fields, "Forwarded",
                             append_members(NULL, fields, "Forwarded", 0) - way->members);
    }
    buf_append_str(out, "for=");
    http_forwarded_append_node(out, forwarding->sender);
    if (way->scheme == HTTP_SCHEME_NOT_STATED) {
        buf_append_str(out, ";proto=");
        buf_append(out, forwarding->proto.ptr, forwarding->proto.len);
    }
    if (way->host.host.len == 0 && forwarding->host.len) {
        buf_append_str(out, ";host=\"");
        buf_append(out, forwarding->host.ptr, forwarding->host.len);
        buf_append_str(out, "\"");
    }
    buf_append(out, "\r\n", 2);
}

bool
http_forward_fields(struct buf *out, struct span fields, const struct http_forwarding *forwarding)
{
    struct span rest = fields, line, name, value;

    while (http_next_line(&rest, &line)) {
        if (!http_split_field(line, &name, &value) || !goes_on(name, forwarding))
            continue;
        buf_append(out, line.ptr, line.len);
        buf_append(out, "\r\n", 2);
    }
    if (forwarding->max_forwards >= 0)
        buf_printf(out, "Max-Forwards: %lld\r\n", (long long)forwarding->max_forwards);
    append_field(out, "Via", forwarding->via);
    append_for(out, fields, forwarding);
    append_field(out, "X-Forwarded-Proto", forwarding->proto);
    append_field(out, "X-Forwarded-Host", forwarding->host);
    append_forwarded(out, fields, forwarding);
    return !buf_failed(out);
}

/* Digits, saturated; -1 if there is anything else. */
static int64_t
read_number(struct span value)
{
    int64_t number = 0;

    for (size_t i = 0; i < value.len; i++) {
        int digit = value.ptr[i] - '0';

        if (!http_octet_is(value.ptr[i], HTTP_OCTET_DIGIT))
            return -1;
        number = number > (INT64_MAX - digit) / 10 ? INT64_MAX : number * 10 + digit;
    }
    return value.len ? number : -1;
}

int64_t
http_max_forwards(struct span fields)
{
    return read_number(http_first_value(fields, "Max-Forwards"));
}

/* The second word of a member of Via: "[protocol/]version received-by [comment]". */
static struct span
received_by(struct span member)
{
    size_t from = 0, len = 0;

    while (from < member.len && !http_is_blank(member.ptr[from]))
        from++;
    member = http_trim(span_of(member.ptr + from, member.len - from));
    while (len < member.len && !http_is_blank(member.ptr[len]))
        len++;
    return span_of(member.ptr, len);
}

bool
http_via_has(struct span fields, struct span pseudonym)
{
    struct span line, name, value, member;

    while (http_next_line(&fields, &line)) {
        if (!http_split_field(line, &name, &value) || !http_name_is(name, "Via"))
            continue;
        while (http_next_member(&value, &member))
            if (http_same_name(received_by(member), pseudonym))
                return true;
    }
    return false;
}
