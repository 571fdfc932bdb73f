#include "http/known_fields.h"

#include "http/field.h"

/* Most lines are excluded by their first character, or by where a colon would have to be. */
unsigned
http_known_field(struct span line)
{
#define FIELD(name, field)              \
    {                                   \
        {name, sizeof(name) - 1}, field \
    }
    static const struct {
        struct span name;
        unsigned field;
    } fields[] = {
        FIELD("Age", HTTP_KNOWN_AGE),
        FIELD("Date", HTTP_KNOWN_DATE),
        FIELD("Location", HTTP_KNOWN_LOCATION),
        FIELD("Content-Type", HTTP_KNOWN_TYPE),
        FIELD("Content-Range", HTTP_KNOWN_RANGE),
        FIELD("Content-Length", HTTP_KNOWN_LENGTH),
        FIELD("Content-Encoding", HTTP_KNOWN_CODING),
        FIELD("Content-Language", HTTP_KNOWN_LANGUAGE),
        FIELD("Content-Location", HTTP_KNOWN_LOCATION),
        FIELD(HTTP_ORIGIN_CONTROL, HTTP_KNOWN_ORIGIN_CONTROL),
    };
#undef FIELD
    const char first = (char)(line.ptr[0] | 0x20);

    if (first != 'a' && first != 'c' && first != 'd' && first != 'l')
        return 0;
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
        size_t len = fields[i].name.len;

        if (len < line.len && line.ptr[len] == ':' &&
            http_same_name(span_of(line.ptr, len), fields[i].name))
            return fields[i].field;
    }
    return 0;
}

bool
http_next_whole_line(struct span *rest, struct span *line)
{
    const char *feed;

    if (rest->len == 0)
        return false;
    feed = memchr(rest->ptr, '\n', rest->len);
    *line = span_of(rest->ptr, feed ? (size_t)(feed + 1 - rest->ptr) : rest->len);
    *rest = span_of(rest->ptr + line->len, rest->len - line->len);
    return true;
}

struct span
http_whole_line_value(struct span line)
{
    const char *colon = memchr(line.ptr, ':', line.len);

    while (line.len && (line.ptr[line.len - 1] == '\n' || line.ptr[line.len - 1] == '\r'))
        line.len--;
    return colon ? http_trim(span_of(colon + 1, (size_t)(line.ptr + line.len - colon - 1)))
                 : span_of(NULL, 0);
}

static bool
parse_length(struct span value, uint64_t *length)
{
    *length = 0;
    for (size_t i = 0; i < value.len; i++) {
        unsigned digit = (unsigned char)value.ptr[i] - '0';

        if (digit > 9 || *length > ((uint64_t)INT64_MAX - digit) / 10)
            return false;
        *length = *length * 10 + digit;
    }
    return value.len != 0;
}

unsigned
http_known_fields(struct span lines)
{
    unsigned known = HTTP_KNOWN;
    struct span line;
    uint64_t length;

    while (http_next_whole_line(&lines, &line)) {
        unsigned field = http_known_field(line);

        if (field != HTTP_KNOWN_LENGTH || parse_length(http_whole_line_value(line), &length))
            known |= field;
    }
    return known;
}

struct span
http_known_value(struct span lines, enum http_known_field field)
{
    struct span value = span_of(NULL, 0), line;

    while (http_next_whole_line(&lines, &line))
        if (http_known_field(line) == field)
            value = http_whole_line_value(line);
    return value;
}

bool
http_known_length(struct span lines, uint64_t *length)
{
    struct span line;
    uint64_t value;
    bool found = false;

    while (http_next_whole_line(&lines, &line)) {
        if (http_known_field(line) == HTTP_KNOWN_LENGTH &&
            parse_length(http_whole_line_value(line), &value)) {
            *length = value;
            found = true;
        }
    }
    return found;
}
