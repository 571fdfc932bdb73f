#include "base/json.h"

#include <inttypes.h>
#include <math.h>

void
json_init(struct json *j, struct buf *out)
{
    *j = (struct json){.out = out};
}

/* The length of the well-formed UTF-8 sequence at s (RFC 3629), or 0. */
static size_t
utf8_length(const unsigned char *s, size_t left)
{
    unsigned char low = 0x80, high = 0xBF;
    size_t len;

    if (s[0] < 0x80)
        return 1;
    if (s[0] >= 0xC2 && s[0] <= 0xDF)
        len = 2;
    else if (s[0] >= 0xE0 && s[0] <= 0xEF)
        len = 3;
    else if (s[0] >= 0xF0 && s[0] <= 0xF4)
        len = 4;
    else
        return 0;
    if (len > left)
        return 0;
    /* The second byte's range keeps out overlong forms, surrogates and code points past U+10FFFF.
     */
    switch (s[0]) {
    case 0xE0:
        low = 0xA0;
        break;
    case 0xED:
        high = 0x9F;
        break;
    case 0xF0:
        low = 0x90;
        break;
    case 0xF4:
        high = 0x8F;
        break;
    default:
        break;
    }
    if (s[1] < low || s[1] > high)
        return 0;
    for (size_t i = 2; i < len; i++)
        if (s[i] < 0x80 || s[i] > 0xBF)
            return 0;
    return len;
}

bool
json_is_utf8(struct span text)
{
    for (size_t i = 0; i < text.len;) {
        size_t len = utf8_length((const unsigned char *)text.ptr + i, text.len - i);

        if (len == 0)
            return false;
        i += len;
    }
    return true;
}

static void
json_quote(struct json *j, struct span value)
{
    const unsigned char *s = (const unsigned char *)value.ptr;
    size_t i = 0;

    buf_append_char(j->out, '"');
    while (i < value.len) {
        size_t len = utf8_length(s + i, value.len - i);

        if (len == 0) {
            buf_append_str(j->out, "\\ufffd");
            i++;
            continue;
        }
        if (s[i] == '"' || s[i] == '\\') {
            buf_append_char(j->out, '\\');
            buf_append_char(j->out, (char)s[i]);
        } else if (s[i] < 0x20 || s[i] == 0x7F) {
            buf_printf(j->out, "\\u%04x", (unsigned)s[i]);
        } else {
            buf_append(j->out, s + i, len);
        }
        i += len;
    }
    buf_append_char(j->out, '"');
}

static void
json_lead(struct json *j, const char *key)
{
    if (j->comma)
        buf_append_char(j->out, ',');
    if (key) {
        json_quote(j, span_str(key));
        buf_append_char(j->out, ':');
    }
    j->comma = true;
}

void
json_open_object(struct json *j, const char *key)
{
    json_lead(j, key);
    buf_append_char(j->out, '{');
    j->comma = false;
}

void
json_close_object(struct json *j)
{
    buf_append_char(j->out, '}');
    j->comma = true;
}

void
json_open_array(struct json *j, const char *key)
{
    json_lead(j, key);
    buf_append_char(j->out, '[');
    j->comma = false;
}

void
json_close_array(struct json *j)
{
    buf_append_char(j->out, ']');
    j->comma = true;
}

void
json_string(struct json *j, const char *key, struct span value)
{
    json_lead(j, key);
    json_quote(j, value);
}

void
json_cstring(struct json *j, const char *key, const char *value)
{
    json_string(j, key, span_str(value));
}

void
json_int(struct json *j, const char *key, int64_t value)
{
    json_lead(j, key);
    buf_printf(j->out, "%" PRId64, value);
}

void
json_uint(struct json *j, const char *key, uint64_t value)
{
    json_lead(j, key);
    buf_printf(j->out, "%" PRIu64, value);
}

void
json_double(struct json *j, const char *key, double value, int decimals)
{
    json_lead(j, key);
    if (isfinite(value))
        buf_printf(j->out, "%.*f", decimals, value);
    else
        buf_append_str(j->out, "null");
}

void
json_bool(struct json *j, const char *key, bool value)
{
    json_lead(j, key);
    buf_append_str(j->out, value ? "true" : "false");
}

void
json_null(struct json *j, const char *key)
{
    json_lead(j, key);
    buf_append_str(j->out, "null");
}
