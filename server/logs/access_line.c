#include "server/logs/access_line.h"

#include <inttypes.h>

#include "base/json.h"
#include "server/logs/access_pattern.h"
#include "server/logs/access_text.h"
#include "base/timestamp.h"

static void
append_escaped(struct buf *line, struct span text)
{
    access_text_escape(line, text);
    if (text.len == 0)
        buf_append_char(line, '-');
}

static void
append_peer(struct buf *line, const struct net_peer *peer)
{
    struct access_client client = access_client_of(peer);

    access_client_append(line, &client);
}

static const char *
reason_or_dash(const struct access_entry *entry)
{
    return entry->reason && *entry->reason ? entry->reason : "-";
}

static void
append_victims(struct buf *line, const struct cache_victims *victims)
{
    const size_t listed = access_text_listed(victims), count = victims ? victims->count : 0;

    for (size_t i = 0; i < listed; i++) {
        if (i)
            buf_append_char(line, ' ');
        append_escaped(line, object_url(victims->pages[i]));
    }
    if (listed < count)
        buf_printf(line, "%s+%zu", listed ? " " : "", count - listed);
    if (count == 0)
        buf_append_char(line, '-');
}

static void
append_plain(struct buf *line, const struct access_entry *entry, const char *when)
{
    buf_append_str(line, when);
    buf_append_char(line, '\t');
    append_peer(line, entry->peer);
    buf_append_char(line, '\t');
    append_escaped(line, entry->url);
    buf_printf(line, "\t%s\t", entry->outcome);
    if (entry->status)
        buf_printf(line, "%u", entry->status);
    else
        buf_append_char(line, '-');
    buf_printf(line, "\t%" PRIu64 "\t%" PRId64 "\t", entry->bytes, entry->us);
    append_victims(line, entry->victims);
    buf_append_char(line, '\t');
    if (entry->error.len)
        access_text_quote(line, entry->error, '\"');
    else
        buf_append_str(line, reason_or_dash(entry));
    buf_append_char(line, '\n');
}

static void
append_json(struct buf *line, const struct access_entry *entry, const char *when)
{
    const size_t listed = access_text_listed(entry->victims);
    struct json json;
    struct buf peer;

    buf_init(&peer, 128);
    append_peer(&peer, entry->peer);
    json_init(&json, line);
    json_open_object(&json, NULL);
    json_cstring(&json, "time", when);
    json_string(&json, "client", buf_span(&peer));
    if (entry->user.len)
        json_string(&json, "user", entry->user);
    json_string(&json, "url", entry->url);
    json_cstring(&json, "outcome", entry->outcome);
    if (entry->reason && *entry->reason)
        json_cstring(&json, "reason", entry->reason);
    else
        json_null(&json, "reason");
    if (entry->error.len)
        json_string(&json, "error", entry->error);
    if (entry->member.len)
        json_string(&json, "member", entry->member);
    if (entry->status)
        json_uint(&json, "status", entry->status);
    else
        json_null(&json, "status");
    json_uint(&json, "bytes", entry->bytes);
    json_int(&json, "us", entry->us);
    if (entry->http) {
        json_string(&json, "method", entry->http->method);
        json_string(&json, "protocol", span_str(access_pattern_version(entry)));
        json_string(&json, "referer", entry->http->referer);
        json_string(&json, "agent", entry->http->agent);
    }
    json_open_array(&json, "victims");
    for (size_t i = 0; i < listed; i++)
        json_string(&json, NULL, object_url(entry->victims->pages[i]));
    json_close_array(&json);
    if (entry->victims && listed < entry->victims->count)
        json_uint(&json, "more_victims", entry->victims->count - listed);
    json_close_object(&json);
    buf_append_char(line, '\n');
    buf_free(&peer);
}

/* ---- the combined format of HTTP servers ----------------------------------------------------- */

static void
append_combined(struct buf *line, const struct access_entry *entry, int64_t wall_us)
{
    const struct access_http *http = entry->http;

    append_peer(line, entry->peer);
    buf_append_str(line, " - ");
    append_escaped(line, entry->user);
    buf_append_str(line, " [");
    access_text_date(line, wall_us);
    buf_append_str(line, "] \"");
    if (http->method.len) {
        access_text_quote(line, http->method, '\"');
        buf_append_char(line, ' ');
        access_text_quote(line, http->target, '\"');
        buf_printf(line, " %s", access_pattern_version(entry));
    } else {
        buf_append_char(line, '-');
    }
    buf_printf(line, "\" %u %" PRIu64 " \"", entry->status, entry->bytes);
    access_text_quote(line, http->referer, '\"');
    buf_append_str(line, "\" \"");
    access_text_quote(line, http->agent, '\"');
    buf_append_str(line, "\" ");
    if (entry->error.len) {
        buf_printf(line, "\"%s: ", entry->outcome);
        access_text_quote(line, entry->error, '\"');
        buf_append_char(line, '"');
    } else {
        buf_append_str(line, reason_or_dash(entry));
    }
    buf_append_char(line, '\n');
}

void
access_line_append(struct buf *line, const struct access_entry *entry,
                   const struct access_format *format, int64_t wall_us)
{
    char when[TIMESTAMP_SIZE];

    if (format->pattern) {
        access_pattern_append(line, entry, format->pattern, wall_us);
        return;
    }
    if (format->words != LOG_FORMAT_JSON && entry->http) {
        append_combined(line, entry, wall_us);
        return;
    }
    timestamp_format(wall_us, when);
    if (format->words == LOG_FORMAT_JSON)
        append_json(line, entry, when);
    else
        append_plain(line, entry, when);
}

bool
access_format_init(struct access_format *format, const char *text, struct buf *why)
{
    *format = (struct access_format){.words = log_format_of(text)};
    if (strcmp(text, "plain") == 0 || strcmp(text, "json") == 0)
        return true;
    format->pattern = log_pattern_compile(text, why);
    return format->pattern != NULL;
}

void
access_format_free(struct access_format *format)
{
    log_pattern_free(format->pattern);
    format->pattern = NULL;
}
