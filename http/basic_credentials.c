#include "http/basic_credentials.h"

#include "base/base64.h"
#include "base/json.h"
#include "http/field.h"

enum http_credentials_found
http_credentials_find(struct span lines, struct span name, struct span *value)
{
    enum http_credentials_found found = HTTP_CREDENTIALS_NONE;
    struct span line, other;

    while (http_next_line(&lines, &line)) {
        if (!http_line_is(line, name, &other))
            continue;
        if (found != HTTP_CREDENTIALS_NONE)
            return HTTP_CREDENTIALS_SEVERAL;
        *value = other;
        found = HTTP_CREDENTIALS_ONE;
    }
    return found;
}

/* U+0000 to U+001F, and U+007F. Those from U+0080 to U+009F are two bytes of UTF-8. */
static bool
has_controls(struct span text)
{
    for (size_t i = 0; i < text.len; i++) {
        const unsigned char c = (unsigned char)text.ptr[i];

        if (c < 0x20 || c == 0x7f)
            return true;
        if (c == 0xc2 && i + 1 < text.len && (unsigned char)text.ptr[i + 1] < 0xa0)
            return true;
    }
    return false;
}

static bool
is_text(struct span text)
{
    return json_is_utf8(text) && !has_controls(text);
}

bool
http_basic_is_name(struct span name)
{
    return name.len > 0 && name.len <= HTTP_BASIC_NAME_MAX && is_text(name) &&
           !memchr(name.ptr, ':', name.len);
}

bool
http_basic_is_password(struct span password)
{
    return password.len > 0 && password.len <= HTTP_BASIC_PASSWORD_MAX && is_text(password);
}

bool
http_basic_read(struct span value, char bytes[HTTP_BASIC_BYTES], struct http_basic *basic)
{
    static const struct span scheme = {"Basic", sizeof("Basic") - 1};
    struct span text;
    const char *colon;
    size_t len;

    if (value.len <= scheme.len || !http_same_name(span_of(value.ptr, scheme.len), scheme) ||
        value.ptr[scheme.len] != ' ')
        return false;
    text = http_trim(span_of(value.ptr + scheme.len, value.len - scheme.len));
    if (!base64_decode(text, bytes, HTTP_BASIC_BYTES, &len))
        return false;
    text = span_of(bytes, len);
    colon = len ? memchr(bytes, ':', len) : NULL;
    if (!colon || colon == bytes || !is_text(text))
        return false;
    basic->name = span_of(bytes, (size_t)(colon - bytes));
    basic->password = span_of(colon + 1, len - basic->name.len - 1);
    return true;
}
