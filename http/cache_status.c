#include "http/cache_status.h"

#include "http/cache_control.h"
#include "http/field.h"

/* RFC 8941 section 3.3.1: at most 15 digits. */
#define INTEGER_MAX INT64_C(999999999999999)

static const char *
forwarded_text(enum http_forwarded forwarded)
{
    static const char *const texts[] = {
        [HTTP_FORWARDED_NOT] = NULL,
        [HTTP_FORWARDED_BYPASS] = "bypass",
        [HTTP_FORWARDED_METHOD] = "method",
        [HTTP_FORWARDED_URI_MISS] = "uri-miss",
        [HTTP_FORWARDED_VARY_MISS] = "vary-miss",
        [HTTP_FORWARDED_MISS] = "miss",
        [HTTP_FORWARDED_REQUEST] = "request",
        [HTTP_FORWARDED_STALE] = "stale",
        [HTTP_FORWARDED_PARTIAL] = "partial",
    };

    return texts[forwarded];
}

/* A String: RFC 8941 section 4.1.6. */
static size_t
format_string(struct span text, char *out)
{
    size_t len = 0;

    out[len++] = '"';
    for (size_t i = 0; i < text.len && i < HTTP_CACHE_STATUS_DETAIL_MAX; i++) {
        char c = text.ptr[i];

        if (c == '"' || c == '\\')
            out[len++] = '\\';
        out[len++] = c >= ' ' && c <= '~' ? c : '?';
    }
    out[len++] = '"';
    return len;
}

/* A Token where the text is one (RFC 8941 section 3.3.4), a String otherwise. */
static size_t
format_name(struct span text, char *out)
{
    bool token = http_is_token(text) && text.len <= HTTP_CACHE_STATUS_DETAIL_MAX &&
                 ((text.ptr[0] >= 'a' && text.ptr[0] <= 'z') ||
                  (text.ptr[0] >= 'A' && text.ptr[0] <= 'Z') || text.ptr[0] == '*');

    if (!token)
        return format_string(text, out);
    memcpy(out, text.ptr, text.len);
    return text.len;
}

#define STRING_SIZE (2 * HTTP_CACHE_STATUS_DETAIL_MAX + 2)

void
http_write_cache_status_ttl(struct http_writer *value, int64_t ttl_s)
{
    if (ttl_s > INTEGER_MAX)
        ttl_s = INTEGER_MAX;
    http_write_text(value, "; ttl=");
    http_write_integer(value, ttl_s > -INTEGER_MAX ? ttl_s : -INTEGER_MAX);
}

static void
write_parameters(struct http_writer *value, const struct http_cache_status *status)
{
    const char *forwarded = status->hit ? NULL : forwarded_text(status->forwarded);

    if (status->hit)
        http_write_text(value, "; hit");
    if (forwarded) {
        http_write_text(value, "; fwd=");
        http_write_text(value, forwarded);
    }
    if (forwarded && status->origin_status) {
        http_write_text(value, "; fwd-status=");
        http_write_integer(value, status->origin_status);
    }
    if (forwarded && status->stored)
        http_write_text(value, "; stored");
    if (forwarded && status->collapsed)
        http_write_text(value, "; collapsed");
    if (status->has_ttl)
        http_write_cache_status_ttl(value, status->ttl_s);
}

void
http_write_cache_status(struct http_writer *writer, const struct http_cache_status *status)
{
    const size_t before = writer->len;
    char text[STRING_SIZE];

    http_write_text(writer, "Cache-Status: ");
    http_write(writer, span_of(text, format_name(span_str(status->cache), text)));
    write_parameters(writer, status);
    if (status->detail.len) {
        http_write_text(writer, "; detail=");
        http_write(writer, span_of(text, format_name(status->detail, text)));
    }
    http_write_end(writer);
    if (writer->full) /* no part of a line stays */
        writer->len = before;
}

void
http_write_age(struct http_writer *writer, int64_t age_us)
{
    int64_t age_s = age_us > 0 ? age_us / 1000000 : 0;

    if (age_s > HTTP_SECONDS_MAX)
        age_s = HTTP_SECONDS_MAX;
    http_write_number(writer, "Age", (uint64_t)age_s);
}
