#include "server/logs/access_pattern.h"

#include <inttypes.h>
#include <netinet/in.h>
#include <stdio.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include "http/field.h"
#include "server/logs/access_text.h"

/* ---- the URL --------------------------------------------------------------------------------- */

/* What stands where in a URL; of a tunnel, host and port. */
struct url_parts {
    struct span scheme;
    struct span host;
    struct span port; /* empty: that of the scheme */
    struct span path;
    struct span query; /* with its question mark */
};

/* Takes the bytes before the first of these off the front. */
static struct span
take_until(struct span *rest, const char *ends)
{
    size_t len = 0;

    while (len < rest->len && !strchr(ends, rest->ptr[len]))
        len++;
    *rest = span_of(rest->ptr + len, rest->len - len);
    return span_of(rest->ptr - len, len);
}

static void
split_authority(struct span authority, struct url_parts *parts)
{
    const char *at = authority.len ? memrchr(authority.ptr, '@', authority.len) : NULL;
    const char *end = authority.ptr + authority.len, *colon;

    if (at)
        authority = span_of(at + 1, (size_t)(end - at) - 1);
    colon = authority.len ? memrchr(authority.ptr, ':', authority.len) : NULL;
    if (colon && memchr(colon, ']', (size_t)(end - colon)))
        colon = NULL;
    parts->port = colon ? span_of(colon + 1, (size_t)(end - colon) - 1) : span_of("", 0);
    parts->host = span_of(authority.ptr, (size_t)((colon ? colon : end) - authority.ptr));
}

static struct url_parts
split_url(struct span url)
{
    struct url_parts parts = {.scheme = {"", 0}, .host = {"", 0}, .port = {"", 0}};
    struct span rest = url, scheme = take_until(&rest, ":/?#");

    if (span_starts_with(rest, span_str("://"))) {
        parts.scheme = scheme;
        rest = span_of(rest.ptr + 3, rest.len - 3);
        split_authority(take_until(&rest, "/?#"), &parts);
    } else {
        rest = url;
        if (url.len && url.ptr[0] != '/' && url.ptr[0] != '*')
            split_authority(take_until(&rest, "/?#"), &parts);
    }
    parts.path = take_until(&rest, "?#");
    parts.query = take_until(&rest, "#");
    return parts;
}

static const char *
port_of_scheme(struct span scheme)
{
    return span_equal(scheme, span_str("https")) ? "443"
           : span_equal(scheme, span_str("http")) ? "80"
                                                  : "-";
}

/* ---- the request ----------------------------------------------------------------------------- */

const char *
access_pattern_version(const struct access_entry *entry)
{
    if (entry->http)
        return entry->http->minor ? "HTTP/1.1" : "HTTP/1.0";
    return entry->protocol && strcmp(entry->protocol, "rpc1") == 0 ? "RPC/1" : "RPC/2";
}

static struct span
method_of(const struct access_entry *entry)
{
    return entry->http ? entry->http->method : span_str("GET");
}

static void
append_request(struct buf *line, const struct access_entry *entry, char stop)
{
    struct span method = method_of(entry);

    if (method.len == 0) {
        buf_append_char(line, '-');
        return;
    }
    access_text_quote(line, method, stop);
    access_text_quote(line, span_str(" "), stop);
    access_text_quote(line, entry->http ? entry->http->target : entry->url, stop);
    access_text_quote(line, span_str(" "), stop);
    access_text_quote(line, span_str(access_pattern_version(entry)), stop);
}

/* The value of the first field of this name among the lines; empty: there is none. */
static struct span
field_of(struct span lines, const char *name)
{
    struct span value = {0};

    if (lines.len)
        value = http_first_value(lines, name);
    return value.ptr ? value : span_of("", 0);
}

/* What a user or a peer proves himself with is not for logs. */
static struct span
request_field(const struct access_entry *entry, const char *name)
{
    if (strcasecmp(name, "Proxy-Authorization") == 0 || strcasecmp(name, "Proxy-Peer") == 0)
        return span_of("", 0);
    return entry->http ? field_of(entry->http->fields, name) : span_of("", 0);
}

/* The value of the cookie of this name; empty: there is none. */
static struct span
cookie_of(const struct access_entry *entry, const char *name)
{
    struct span rest = request_field(entry, "Cookie");

    while (rest.len) {
        struct span cookie = take_until(&rest, ";"), value = cookie;
        struct span found = take_until(&value, "=");

        if (value.len && span_equal(http_trim(found), span_str(name)))
            return http_trim(span_of(value.ptr + 1, value.len - 1));
        if (rest.len)
            rest = span_of(rest.ptr + 1, rest.len - 1);
    }
    return span_of("", 0);
}

static void
append_evicted(struct buf *line, const struct access_entry *entry, char stop)
{
    const size_t count = entry->victims ? entry->victims->count : 0;
    const size_t listed = access_text_listed(entry->victims);
    char more[32];

    for (size_t i = 0; i < listed; i++) {
        if (i)
            access_text_quote(line, span_str(" "), stop);
        access_text_quote(line, object_url(entry->victims->pages[i]), stop);
    }
    snprintf(more, sizeof(more), "%s+%zu", listed ? " " : "", count - listed);
    if (listed < count)
        access_text_quote(line, span_str(more), stop);
    if (count == 0)
        buf_append_char(line, '-');
}

/* ---- values ---------------------------------------------------------------------------------- */

static struct span
text_of(const struct access_entry *entry, const struct log_part *part)
{
    switch (part->directive->value) {
    case LOG_VALUE_METHOD:
        return method_of(entry);
    case LOG_VALUE_PATH:
        return split_url(entry->url).path;
    case LOG_VALUE_QUERY:
        return split_url(entry->url).query;
    case LOG_VALUE_VERSION:
        return span_str(access_pattern_version(entry));
    case LOG_VALUE_FIELD:
        return request_field(entry, part->argument);
    case LOG_VALUE_RESPONSE:
        return field_of(entry->response, part->argument);
    case LOG_VALUE_COOKIE:
        return cookie_of(entry, part->argument);
    case LOG_VALUE_USER:
        return entry->user;
    case LOG_VALUE_URL:
        return entry->url;
    case LOG_VALUE_MEMBER:
        return entry->member;
    case LOG_VALUE_OUTCOME:
        return span_str(entry->outcome);
    case LOG_VALUE_REASON:
        return entry->reason ? span_str(entry->reason) : span_of("", 0);
    case LOG_VALUE_ERROR:
        return entry->error;
    case LOG_VALUE_PROTOCOL:
        return entry->protocol ? span_str(entry->protocol) : span_of("", 0);
    default:
        return span_of("", 0);
    }
}

static void
append_time(struct buf *line, const struct log_part *part, int64_t us)
{
    const time_t seconds = (time_t)(us / 1000000);
    char text[256];
    struct tm tm;

    switch (part->kind) {
    case LOG_KIND_DATE:
        buf_append_char(line, '[');
        access_text_date(line, us);
        buf_append_char(line, ']');
        break;
    case LOG_KIND_SECONDS:
        buf_printf(line, "%" PRId64, us / 1000000);
        break;
    case LOG_KIND_MILLISECONDS:
        buf_printf(line, "%" PRId64, us / 1000);
        break;
    case LOG_KIND_MICROSECONDS:
        buf_printf(line, "%" PRId64, us);
        break;
    case LOG_KIND_MS_FRACTION:
        buf_printf(line, "%03d", (int)(us % 1000000 / 1000));
        break;
    case LOG_KIND_US_FRACTION:
        buf_printf(line, "%06d", (int)(us % 1000000));
        break;
    default:
        gmtime_r(&seconds, &tm);
        buf_append(line, text, strftime(text, sizeof(text), part->argument, &tm));
    }
}

static void
append_port(struct buf *line, const struct access_entry *entry)
{
    const struct url_parts parts = split_url(entry->url);
    uint64_t port = 0;

    for (size_t i = 0; i < parts.port.len && port <= UINT16_MAX; i++)
        port = parts.port.ptr[i] >= '0' && parts.port.ptr[i] <= '9'
                   ? port * 10 + (uint64_t)(parts.port.ptr[i] - '0')
                   : UINT64_MAX / 2;
    if (parts.port.len && port <= UINT16_MAX)
        buf_printf(line, "%u", (unsigned)port);
    else
        buf_append_str(line, port_of_scheme(parts.scheme));
}

/* Blanks are escaped in any case: a reader may split by them. */
static void
quote_host(struct buf *line, struct span host, char stop)
{
    for (size_t i = 0; i < host.len; i++)
        access_text_quote(line, span_of(host.ptr + i, 1), host.ptr[i] == ' ' ? ' ' : stop);
}

/* In brackets the byte that ends the value may stand. */
static void
append_host(struct buf *line, struct span host, char stop)
{
    const char *end = host.len && host.ptr[0] == '[' ? memchr(host.ptr, ']', host.len) : NULL;
    const size_t len = end ? (size_t)(end - host.ptr) + 1 : 0;

    quote_host(line, span_of(host.ptr, len), '"');
    quote_host(line, span_of(host.ptr + len, host.len - len), stop);
    if (host.len == 0)
        buf_append_char(line, '-');
}

static void
append_number(struct buf *line, bool known, int64_t number)
{
    if (known)
        buf_printf(line, "%" PRId64, number);
    else
        buf_append_char(line, '-');
}

/* 0: unknown, as that of a client that a proxy has named. */
static uint16_t
port_of_client(const struct access_entry *entry)
{
    const struct sockaddr_storage *address = &entry->peer->address;

    if (address->ss_family == AF_INET)
        return ntohs(((const struct sockaddr_in *)address)->sin_port);
    if (address->ss_family == AF_INET6)
        return ntohs(((const struct sockaddr_in6 *)address)->sin6_port);
    return 0;
}

static void
append_value(struct buf *line, const struct access_entry *entry, const struct log_part *part,
             int64_t wall_us)
{
    const struct access_client client = access_client_of(entry->peer);

    switch (part->directive->value) {
    case LOG_VALUE_CLIENT:
        access_client_append(line, &client);
        break;
    case LOG_VALUE_TIME:
        append_time(line, part, part->at_end ? wall_us : wall_us - entry->us);
        break;
    case LOG_VALUE_REQUEST:
        append_request(line, entry, part->stop);
        break;
    case LOG_VALUE_QUERY:
        if (split_url(entry->url).query.len)
            access_text_quote(line, text_of(entry, part), part->stop);
        break;
    case LOG_VALUE_HOST:
        append_host(line, split_url(entry->url).host, part->stop);
        break;
    case LOG_VALUE_PORT:
        append_port(line, entry);
        break;
    case LOG_VALUE_CLIENT_PORT:
        append_number(line, port_of_client(entry) != 0, port_of_client(entry));
        break;
    case LOG_VALUE_STATUS:
        append_number(line, entry->status != 0, entry->status);
        break;
    case LOG_VALUE_BYTES:
    case LOG_VALUE_BYTES_OR_DASH:
        append_number(line, entry->bytes || part->directive->value == LOG_VALUE_BYTES,
                      (int64_t)entry->bytes);
        break;
    case LOG_VALUE_US:
        append_number(line, true, entry->us);
        break;
    case LOG_VALUE_MS:
        append_number(line, true, entry->us / 1000);
        break;
    case LOG_VALUE_SECONDS:
        append_number(line, true, entry->us / 1000000);
        break;
    case LOG_VALUE_PID:
        append_number(line, true, getpid());
        break;
    case LOG_VALUE_FETCH_US:
        append_number(line, entry->fetch_us >= 0, entry->fetch_us);
        break;
    case LOG_VALUE_EVICTED:
        append_evicted(line, entry, part->stop);
        break;
    case LOG_VALUE_WORKER:
        append_number(line, true, entry->worker);
        break;
    default:
        access_text_quote(line, text_of(entry, part), part->stop);
    }
}

void
access_pattern_append(struct buf *line, const struct access_entry *entry,
                      const struct log_pattern *pattern, int64_t wall_us)
{
    buf_append(line, pattern->begin.ptr, pattern->begin.len);
    for (unsigned i = 0; i < pattern->count; i++) {
        const struct log_part *part = &pattern->parts[i];

        if (log_part_applies(part, entry->status))
            append_value(line, entry, part, wall_us);
        else
            buf_append_char(line, '-');
        buf_append(line, part->text.ptr, part->text.len);
    }
    buf_append_char(line, '\n');
}
