#include "base/json.h"

#include <inttypes.h>
#include <math.h>

#include "base/printable.h"

void
json_init(struct json *j, struct buf *out)
{
    *j = (struct json){.out = out};
}

bool
json_is_utf8(struct span text)
{
    for (size_t i = 0; i < text.len;) {
        uint32_t c;
        size_t len = printable_decode(span_of(text.ptr + i, text.len - i), &c);

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
        uint32_t c;
        size_t len = printable_decode(span_of(s + i, value.len - i), &c);

        if (len == 0) {
            buf_append_str(j->out, "\\ufffd");
            i++;
            continue;
        }
        if (s[i] == '"' || s[i] == '\\') {
            buf_append_char(j->out, '\\');
            buf_append_char(j->out, (char)s[i]);
        } else if (!printable_character(c)) { /* all of them below U+10000 */
            buf_printf(j->out, "\\u%04x", (unsigned)c);
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
