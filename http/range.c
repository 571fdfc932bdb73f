#include "http/range.h"

#include <stdio.h>
#include <strings.h>

#include "http/field.h"

/* ---- requests ---------------------------------------------------------------------------------
 */

/* Digits, INT64_MAX at most. False: there is none. */
static bool
take_position(struct span *text, int64_t *position)
{
    size_t len = 0;
    int64_t n = 0;

    for (; len < text->len && text->ptr[len] >= '0' && text->ptr[len] <= '9'; len++) {
        int digit = text->ptr[len] - '0';

        n = n > (INT64_MAX - digit) / 10 ? INT64_MAX : n * 10 + digit;
    }
    *position = n;
    *text = span_of(text->ptr + len, text->len - len);
    return len > 0;
}

/* "bytes" and the character behind it. */
static bool
take_unit(struct span *text, char behind)
{
    if (text->len < 5 || strncasecmp(text->ptr, "bytes", 5) != 0)
        return false;
    *text = span_of(text->ptr + 5, text->len - 5);
    return span_take_char(text, behind);
}

/* int-range or suffix-range: section 14.1.1. */
static bool
parse_range(struct span text, struct http_range *range)
{
    if (span_take_char(&text, '-')) {
        range->first = -1;
        return take_position(&text, &range->last) && text.len == 0;
    }
    if (!take_position(&text, &range->first) || !span_take_char(&text, '-'))
        return false;
    range->last = INT64_MAX;
    if (text.len == 0)
        return true;
    return take_position(&text, &range->last) && text.len == 0 && range->last >= range->first;
}

static bool
parse_ranges(struct http_ranges *ranges, struct span value)
{
    struct span member;

    ranges->count = 0;
    if (!take_unit(&value, '='))
        return false;
    while (http_next_member(&value, &member))
        if (ranges->count == HTTP_RANGES_MAX || !parse_range(member, &ranges->of[ranges->count++]))
            return false;
    return ranges->count > 0;
}

bool
http_ranges_read(struct http_ranges *ranges, struct span request_lines)
{
    struct span line, value, range = span_of(NULL, 0);

    while (http_next_line(&request_lines, &line)) {
        if (!http_line_is(line, span_str("Range"), &value))
            continue;
        if (range.ptr)
            return false;
        range = value;
    }
    return range.ptr && parse_ranges(ranges, range);
}

/* False: the range begins behind the end. */
static bool
resolve(struct http_range requested, int64_t length, struct http_range *resolved)
{
    *resolved = requested;
    if (requested.first < 0) {
        resolved->first = requested.last < length ? length - requested.last : 0;
        resolved->last = length - 1;
        return requested.last > 0 && length > 0;
    }
    if (resolved->last >= length)
        resolved->last = length - 1;
    return requested.first < length;
}

static bool
overlaps(const struct http_ranges *ranges, const struct http_range *range)
{
    for (size_t i = 0; i < ranges->count; i++)
        if (range->first <= ranges->of[i].last && ranges->of[i].first <= range->last)
            return true;
    return false;
}

enum http_wanted
http_wanted_read(struct span request_lines, uint64_t near)
{
    struct http_ranges ranges;
    const struct http_range *first = &ranges.of[0];

    if (!http_ranges_read(&ranges, request_lines))
        return HTTP_WANTS_WHOLE;
    if (ranges.count == 1 && first->first >= 0 && (uint64_t)first->first < near &&
        first->last == INT64_MAX)
        return HTTP_WANTS_TO_END;
    return HTTP_WANTS_PART;
}

bool
http_accepts_ranges(struct span response_lines)
{
    struct span line, value;

    while (http_next_line(&response_lines, &line))
        if (http_line_is(line, span_str("Accept-Ranges"), &value) && http_name_is(value, "none"))
            return false;
    return true;
}

enum http_range_result
http_ranges_resolve(const struct http_ranges *requested, int64_t length,
                    struct http_ranges *resolved)
{
    struct http_range range;

    resolved->count = 0;
    for (size_t i = 0; i < requested->count; i++) {
        if (!resolve(requested->of[i], length, &range))
            continue;
        if (overlaps(resolved, &range))
            return HTTP_RANGE_WHOLE;
        resolved->of[resolved->count++] = range;
    }
    return resolved->count ? HTTP_RANGE_PARTIAL : HTTP_RANGE_UNSATISFIABLE;
}

/* ---- Content-Range ----------------------------------------------------------------------------
 */

bool
http_content_range_parse(struct http_content_range *range, struct span value)
{
    if (!take_unit(&value, ' '))
        return false;
    *range = (struct http_content_range){.first = -1, .last = -1, .length = -1};
    if (span_take_char(&value, '*'))
        return span_take_char(&value, '/') && take_position(&value, &range->length) &&
               value.len == 0 && range->length < INT64_MAX;
    if (!take_position(&value, &range->first) || !span_take_char(&value, '-') ||
        !take_position(&value, &range->last) || !span_take_char(&value, '/') ||
        range->last < range->first || range->last == INT64_MAX)
        return false;
    if (span_take_char(&value, '*'))
        return value.len == 0;
    return take_position(&value, &range->length) && value.len == 0 && range->length < INT64_MAX &&
           range->last < range->length;
}

/* "bytes " and at most 19 digits three times. */
#define CONTENT_RANGE_SIZE 80

static struct span
format_content_range(const struct http_content_range *range, char text[CONTENT_RANGE_SIZE])
{
    char length[24] = "*", positions[48] = "*";

    if (range->length >= 0)
        snprintf(length, sizeof(length), "%lld", (long long)range->length);
    if (range->first >= 0)
        snprintf(positions, sizeof(positions), "%lld-%lld", (long long)range->first,
                 (long long)range->last);
    snprintf(text, CONTENT_RANGE_SIZE, "bytes %s/%s", positions, length);
    return span_str(text);
}

void
http_write_content_range(struct http_writer *writer, const struct http_content_range *range)
{
    char text[CONTENT_RANGE_SIZE];

    http_write_field(writer, "Content-Range", format_content_range(range, text));
}

/* ---- multipart/byteranges ---------------------------------------------------------------------
 */

void
http_boundary_make(char boundary[HTTP_BOUNDARY_SIZE], uint64_t random_bits)
{
    snprintf(boundary, HTTP_BOUNDARY_SIZE, "sunproxy%016llx", (unsigned long long)random_bits);
}

void
http_write_multipart_type(struct http_writer *writer, const struct http_multipart *multipart)
{
    char text[128];

    snprintf(text, sizeof(text), "multipart/byteranges; boundary=%s", multipart->boundary);
    http_write_field(writer, "Content-Type", span_str(text));
}

/* The texts of a part's head, in order. */
#define PART_TEXTS 8

static void
part_texts(const struct http_multipart *multipart, const struct http_range *range, bool first_part,
           char content_range[CONTENT_RANGE_SIZE], struct span texts[PART_TEXTS])
{
    const struct http_content_range numbers = {range->first, range->last, multipart->length};
    bool typed = multipart->content_type.len > 0;

    texts[0] = span_str(first_part ? "--" : "\r\n--");
    texts[1] = span_str(multipart->boundary);
    texts[2] = span_str(typed ? "\r\nContent-Type: " : "");
    texts[3] = typed ? multipart->content_type : span_str("");
    texts[4] = span_str("\r\nContent-Range: ");
    texts[5] = format_content_range(&numbers, content_range);
    texts[6] = span_str("\r\n");
    texts[7] = span_str("\r\n");
}

void
http_write_part_head(struct http_writer *writer, const struct http_multipart *multipart,
                     const struct http_range *range, bool first_part)
{
    char content_range[CONTENT_RANGE_SIZE];
    struct span texts[PART_TEXTS];

    part_texts(multipart, range, first_part, content_range, texts);
    for (size_t i = 0; i < PART_TEXTS; i++)
        http_write(writer, texts[i]);
}

void
http_write_multipart_end(struct http_writer *writer, const struct http_multipart *multipart)
{
    http_write_text(writer, "\r\n--");
    http_write_text(writer, multipart->boundary);
    http_write_text(writer, "--\r\n");
}

int64_t
http_multipart_length(const struct http_multipart *multipart, const struct http_ranges *resolved)
{
    int64_t total = (int64_t)(strlen(multipart->boundary) + strlen("\r\n----\r\n"));

    for (size_t i = 0; i < resolved->count; i++) {
        char content_range[CONTENT_RANGE_SIZE];
        struct span texts[PART_TEXTS];

        part_texts(multipart, &resolved->of[i], i == 0, content_range, texts);
        for (size_t text = 0; text < PART_TEXTS; text++)
            total += (int64_t)texts[text].len;
        total += resolved->of[i].last - resolved->of[i].first + 1;
    }
    return total;
}
