/*
 * Ranges of a request for a content, and what is written of them. The input is two bytes, of which
 * the length of the content is made, and the values of Range and Content-Range in turn.
 */
#include "http/range.h"
#include "base/buf.h"
#include "http/field.h"
#include "tests/fuzz/fuzz.h"

static void
check_multipart(const struct http_ranges *resolved, int64_t length)
{
    char bytes[8192], boundary[HTTP_BOUNDARY_SIZE];
    const struct http_multipart multipart = {boundary, span_str("text/html"), length};
    struct http_writer writer = http_writer_of(bytes, sizeof(bytes));
    int64_t content = 0;

    http_boundary_make(boundary, (uint64_t)length * 0x9e3779b97f4a7c15u);
    for (size_t i = 0; i < resolved->count; i++) {
        http_write_part_head(&writer, &multipart, &resolved->of[i], i == 0);
        content += resolved->of[i].last - resolved->of[i].first + 1;
    }
    http_write_multipart_end(&writer, &multipart);
    FUZZ_CHECK(!writer.full && content <= length);
    FUZZ_CHECK(http_multipart_length(&multipart, resolved) == content + (int64_t)writer.len);
}

static void
check_resolved(const struct http_ranges *resolved, int64_t length)
{
    FUZZ_CHECK(resolved->count > 0 && resolved->count <= HTTP_RANGES_MAX);
    for (size_t i = 0; i < resolved->count; i++) {
        const struct http_range *range = &resolved->of[i];

        FUZZ_CHECK(range->first >= 0 && range->first <= range->last && range->last < length);
        for (size_t before = 0; before < i; before++)
            FUZZ_CHECK(range->first > resolved->of[before].last ||
                       range->last < resolved->of[before].first);
    }
    check_multipart(resolved, length);
}

static void
check_request(struct span value, int64_t length)
{
    struct http_ranges requested, resolved;
    struct buf lines;

    buf_init(&lines, value.len + 16);
    buf_append_str(&lines, "Range: ");
    buf_append(&lines, value.ptr, value.len);
    buf_append_str(&lines, "\r\n");
    if (http_ranges_read(&requested, buf_span(&lines))) {
        FUZZ_CHECK(requested.count > 0 && requested.count <= HTTP_RANGES_MAX);
        if (http_ranges_resolve(&requested, length, &resolved) == HTTP_RANGE_PARTIAL)
            check_resolved(&resolved, length);
        FUZZ_CHECK(http_ranges_resolve(&requested, 0, &resolved) == HTTP_RANGE_UNSATISFIABLE);
    }
    buf_free(&lines);
}

static void
check_content_range(struct span value)
{
    struct http_content_range range, again;
    struct span line, name, written;
    char bytes[256];
    struct http_writer writer = http_writer_of(bytes, sizeof(bytes));

    if (!http_content_range_parse(&range, value))
        return;
    FUZZ_CHECK(range.first == -1 ? range.last == -1 && range.length >= 0
                                 : range.first <= range.last);
    FUZZ_CHECK(range.length == -1 || range.last < range.length);
    http_write_content_range(&writer, &range);
    written = http_written(&writer);
    FUZZ_CHECK(http_next_line(&written, &line) && http_split_field(line, &name, &value));
    FUZZ_CHECK(http_content_range_parse(&again, value));
    FUZZ_CHECK(again.first == range.first && again.last == range.last &&
               again.length == range.length);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct span input = span_of(data, size);
    unsigned mantissa = fuzz_byte(&input), shift = fuzz_byte(&input) % 55;
    struct span line;

    while (http_next_line(&input, &line)) {
        check_request(line, (int64_t)mantissa << shift);
        check_content_range(line);
    }
    return 0;
}
