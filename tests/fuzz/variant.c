/*
 * Vary and the keys of requests. The input is the field lines of a request, a zero byte, and those
 * of a response with Vary: a key is the key of what it says, and one more value makes another. The
 * same holds when the response has shown which codings are unused.
 */
#include "http/variant.h"
#include "base/buf.h"
#include "http/field.h"
#include "tests/fuzz/fuzz.h"

/* The field lines that a key is made of. */
static void
write_lines(struct span key, struct buf *lines)
{
    while (key.len) {
        const char *end = memchr(key.ptr, '\n', key.len);
        struct span field;

        FUZZ_CHECK(end);
        field = span_of(key.ptr, (size_t)(end - key.ptr));
        key = span_of(end + 1, key.len - field.len - 1);
        if (!memchr(field.ptr, ':', field.len))
            continue;
        buf_append(lines, field.ptr, field.len);
        buf_append_str(lines, "\r\n");
    }
}

static void
check_key(const struct http_vary *vary, struct span request)
{
    bool quoted = request.len && memchr(request.ptr, '"', request.len);
    struct buf key, lines, again;

    buf_init(&key, 4 * request.len + 65536);
    buf_init(&lines, 8 * request.len + 131072);
    buf_init(&again, 4 * request.len + 65536);
    if (http_variant_key(vary, request, &key)) {
        FUZZ_CHECK(key.len <= HTTP_VARIANT_MAX && !buf_failed(&key));
        write_lines(buf_span(&key), &lines);
        FUZZ_CHECK(http_variant_key(vary, buf_span(&lines), &again));
        /* Where quoted strings span lines, blanks are kept the first time only. */
        FUZZ_CHECK(quoted || span_equal(buf_span(&key), buf_span(&again)));
        buf_reset(&lines);
        buf_reset(&again);
        buf_append_str(&lines, "X-Unknown: 1\r\n");
        buf_append(&lines, request.ptr, request.len);
        FUZZ_CHECK(http_variant_key(vary, buf_span(&lines), &again));
        for (size_t i = 0; i < vary->count; i++)
            if (http_name_is(vary->names[i], "X-Unknown"))
                quoted = true;
        FUZZ_CHECK(quoted || span_equal(buf_span(&key), buf_span(&again)));
    }
    buf_free(&key);
    buf_free(&lines);
    buf_free(&again);
}

static void
check_text(const struct http_vary *vary)
{
    struct http_vary again;
    struct buf text;

    buf_init(&text, HTTP_VARY_TEXT);
    http_vary_write(vary, &text);
    FUZZ_CHECK(!buf_failed(&text));
    FUZZ_CHECK(http_vary_parse(&again, buf_span(&text)) == HTTP_VARY_FIELDS);
    FUZZ_CHECK(http_vary_equal(vary, &again));
    FUZZ_CHECK(vary->codings.used == again.codings.used);
    FUZZ_CHECK(vary->codings.unused == again.codings.unused);
    FUZZ_CHECK(!(vary->codings.used & vary->codings.unused));
    buf_free(&text);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *zero = size ? memchr(data, 0, size) : NULL;
    struct span request = span_of(data, zero ? (size_t)(zero - data) : size);
    struct span response =
        zero ? span_of(zero + 1, size - request.len - 1) : span_of(data + size, 0);
    struct http_vary vary;

    if (http_vary_read(&vary, response) != HTTP_VARY_FIELDS) {
        FUZZ_CHECK(vary.count == 0);
        return 0;
    }
    check_text(&vary);
    check_key(&vary, request);
    http_vary_observe(&vary, request, 200, response);
    check_text(&vary);
    check_key(&vary, request);
    return 0;
}
