#include "http/field.h"

#include <strings.h>

#include "http/octet.h"

bool
http_next_line(struct span *rest, struct span *line)
{
    const char *lf;
    size_t len;

    if (rest->len == 0)
        return false;
    lf = memchr(rest->ptr, '\n', rest->len);
    len = lf ? (size_t)(lf - rest->ptr) : rest->len;
    *line = span_of(rest->ptr, len);
    len += lf != NULL;
    *rest = span_of(rest->ptr + len, rest->len - len);
    if (line->len && line->ptr[line->len - 1] == '\r')
        line->len--;
    return true;
}

bool
http_is_blank(char c)
{
    return c == ' ' || c == '\t';
}

struct span
http_trim(struct span s)
{
    while (s.len && http_is_blank(s.ptr[0]))
        s = span_of(s.ptr + 1, s.len - 1);
    while (s.len && http_is_blank(s.ptr[s.len - 1]))
        s.len--;
    return s;
}

bool
http_is_token(struct span s)
{
    for (size_t i = 0; i < s.len; i++)
        if (!http_octet_is(s.ptr[i], HTTP_OCTET_TOKEN))
            return false;
    return s.len > 0;
}

bool
http_is_value(struct span s)
{
    for (size_t i = 0; i < s.len; i++)
        if (!http_octet_is(s.ptr[i], HTTP_OCTET_VALUE))
            return false;
    return true;
}

bool
http_same_name(struct span a, struct span b)
{
    return a.len == b.len && (a.len == 0 || strncasecmp(a.ptr, b.ptr, a.len) == 0);
}

bool
http_name_is(struct span name, const char *text)
{
    return http_same_name(name, span_str(text));
}

int
http_compare_names(struct span a, struct span b)
{
    size_t common = a.len < b.len ? a.len : b.len;
    int order = common ? strncasecmp(a.ptr, b.ptr, common) : 0;

    return order != 0 ? order : (a.len > b.len) - (a.len < b.len);
}

bool
http_name_is_one_of(struct span name, const char *const *list)
{
    for (; *list; list++)
        if (http_name_is(name, *list))
            return true;
    return false;
}

bool
http_name_is_among(struct span name, const struct span *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (http_same_name(name, names[i]))
            return true;
    return false;
}

struct span
http_first_value(struct span lines, const char *name)
{
    struct span line, value;

    while (http_next_line(&lines, &line))
        if (http_line_is(line, span_str(name), &value))
            return value;
    return span_of(NULL, 0);
}

void
http_append_field(struct buf *out, const char *name, struct span value)
{
    buf_append_str(out, name);
    buf_append(out, ": ", 2);
    buf_append(out, value.ptr, value.len);
    buf_append(out, "\r\n", 2);
}

bool
http_split_field(struct span line, struct span *name, struct span *value)
{
    const char *colon = line.len ? memchr(line.ptr, ':', line.len) : NULL;

    if (!colon)
        return false;
    *name = span_of(line.ptr, (size_t)(colon - line.ptr));
    *value = http_trim(span_of(colon + 1, line.len - name->len - 1));
    return http_is_token(*name);
}

size_t
http_member_length(struct span list)
{
    bool quoted = false;

    for (size_t i = 0; i < list.len; i++) {
        char c = list.ptr[i];

        if (quoted && c == '\\')
            i++; /* a quoted pair: RFC 9110 section 5.6.4 */
        else if (c == '"')
            quoted = !quoted;
        else if (c == ',' && !quoted)
            return i;
    }
    return list.len;
}

bool
http_next_member(struct span *list, struct span *member)
{
    while (list->len) {
        size_t len = http_member_length(*list);

        *member = http_trim(span_of(list->ptr, len));
        if (len < list->len)
            len++;
        *list = span_of(list->ptr + len, list->len - len);
        if (member->len)
            return true;
    }
    return false;
}

void
http_append_lower(struct buf *out, struct span text)
{
    size_t at = out->len;

    if (!buf_append(out, text.ptr, text.len))
        return;
    for (; at < out->len; at++)
        if (out->data[at] >= 'A' && out->data[at] <= 'Z')
            out->data[at] = (char)(out->data[at] - 'A' + 'a');
}

bool
http_has_field(struct span lines, const char *const *names)
{
    struct span line, name, value;

    while (http_next_line(&lines, &line))
        if (http_split_field(line, &name, &value) && http_name_is_one_of(name, names))
            return true;
    return false;
}

bool
http_is_proxy_field(struct span name)
{
    return name.len >= 6 && strncasecmp(name.ptr, "Proxy-", 6) == 0;
}
