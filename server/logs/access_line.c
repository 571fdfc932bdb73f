#include "server/logs/access_line.h"

#include <inttypes.h>
#include <time.h>

#include "base/json.h"
#include "server/logs/access_text.h"
#include "server/logs/timestamp.h"

static const char *const protocols[] = {"HTTP/1.0", "HTTP/1.1"};

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

/* With what would end a quoted text or the line escaped; "-" if it is empty. */
static void
append_inside(struct buf *line, struct span text)
{
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.ptr[i];

        if (c >= 0x20 && c < 0x7F && c != '\\' && c != '"')
            buf_append_char(line, (char)c);
        else
            buf_printf(line, "\\x%02x", (unsigned)c);
    }
    if (text.len == 0)
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
    for (size_t i = 0; entry->victims && i < entry->victims->count; i++) {
        if (i)
            buf_append_char(line, ' ');
        append_escaped(line, object_url(entry->victims->pages[i]));
    }
    buf_append_str(line, entry->victims && entry->victims->count ? "\t" : "-\t");
    if (entry->error.len)
        append_inside(line, entry->error);
    else
        buf_append_str(line, reason_or_dash(entry));
    buf_append_char(line, '\n');
}

static void
append_json(struct buf *line, const struct access_entry *entry, const char *when)
{
    struct json json;
    struct buf peer;

    buf_init(&peer, 128);
    append_peer(&peer, entry->peer);
    json_init(&json, line);
    json_open_object(&json, NULL);
    json_cstring(&json, "time", when);
    json_string(&json, "client", buf_span(&peer));
    json_string(&json, "url", entry->url);
    json_cstring(&json, "outcome", entry->outcome);
    if (entry->reason && *entry->reason)
        json_cstring(&json, "reason", entry->reason);
    else
        json_null(&json, "reason");
    if (entry->error.len)
        json_string(&json, "error", entry->error);
    if (entry->status)
        json_uint(&json, "status", entry->status);
    else
        json_null(&json, "status");
    json_uint(&json, "bytes", entry->bytes);
    json_int(&json, "us", entry->us);
    if (entry->http) {
        json_string(&json, "method", entry->http->method);
        json_string(&json, "protocol", span_str(protocols[entry->http->minor != 0]));
        json_string(&json, "referer", entry->http->referer);
        json_string(&json, "agent", entry->http->agent);
    }
    json_open_array(&json, "victims");
    for (size_t i = 0; entry->victims && i < entry->victims->count; i++)
        json_string(&json, NULL, object_url(entry->victims->pages[i]));
    json_close_array(&json);
    json_close_object(&json);
    buf_append_char(line, '\n');
    buf_free(&peer);
}

/* ---- the combined format of HTTP servers ----------------------------------------------------- */

/* "22/Nov/2026:11:30:00 +0000", without the names of a locale. */
static void
append_date(struct buf *line, int64_t wall_us)
{
    static const char months[][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                     "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    time_t seconds = (time_t)(wall_us / 1000000);
    struct tm tm;

    gmtime_r(&seconds, &tm);
    buf_printf(line, "%02d/%s/%d:%02d:%02d:%02d +0000", tm.tm_mday, months[tm.tm_mon],
               tm.tm_year + 1900, tm.tm_hour, tm.tm_min, tm.tm_sec);
}

static void
append_combined(struct buf *line, const struct access_entry *entry, int64_t wall_us)
{
    const struct access_http *http = entry->http;

    append_peer(line, entry->peer);
    buf_append_str(line, " - - [");
    append_date(line, wall_us);
    buf_append_str(line, "] \"");
    if (http->method.len) {
        append_inside(line, http->method);
        buf_append_char(line, ' ');
        append_inside(line, http->target);
        buf_printf(line, " %s", protocols[http->minor != 0]);
    } else {
        buf_append_char(line, '-');
    }
    buf_printf(line, "\" %u %" PRIu64 " \"", entry->status, entry->bytes);
    append_inside(line, http->referer);
    buf_append_str(line, "\" \"");
    append_inside(line, http->agent);
    buf_append_str(line, "\" ");
    if (entry->error.len) {
        buf_printf(line, "\"%s: ", entry->outcome);
        append_inside(line, entry->error);
        buf_append_char(line, '"');
    } else {
        buf_append_str(line, reason_or_dash(entry));
    }
    buf_append_char(line, '\n');
}

void
access_line_append(struct buf *line, const struct access_entry *entry, enum log_format format,
                   int64_t wall_us)
{
    char when[TIMESTAMP_SIZE];

    if (format != LOG_FORMAT_JSON && entry->http) {
        append_combined(line, entry, wall_us);
        return;
    }
    timestamp_format(wall_us, when);
    if (format == LOG_FORMAT_JSON)
        append_json(line, entry, when);
    else
        append_plain(line, entry, when);
}
