/*
 * Chunked messages. The first byte chooses: when it is odd, the rest is a body, whose encoding
 * decodes to it, with every byte behind the message left alone; when it is even, the rest is a
 * stream, which gives the same verdict and the same body whole and in pieces.
 */
#include "http/chunked.h"

#include "base/buf.h"
#include "tests/fuzz/fuzz.h"

#define TRAILER_BYTES 64u
#define TRAILER_LINES 4u
#define MOST ((size_t)1 << 22)

struct result {
    enum chunked_step step;
    bool too_large;
    const char *reason;
    size_t used; /* of the stream, when the message has ended */
    struct buf body;
};

/* Reads a stream in pieces of 1 to `most` bytes, and takes each piece of data in two parts. */
static struct result
decode(struct span stream, size_t most)
{
    struct result result = {.step = CHUNKED_WANTS};
    struct chunked chunked;
    size_t all = stream.len, size = 0;

    buf_init(&result.body, MOST);
    chunked_init(&chunked, TRAILER_BYTES, TRAILER_LINES);
    while (stream.len && result.step == CHUNKED_WANTS) {
        struct span piece = fuzz_take(&stream, size++ % most + 1), data;

        while ((result.step = chunked_read(&chunked, &piece, &data)) == CHUNKED_DATA) {
            size_t taken = (data.len + 1) / 2;

            FUZZ_CHECK(data.len > 0 && data.len <= piece.len && data.ptr == piece.ptr);
            FUZZ_CHECK(buf_append(&result.body, data.ptr, taken));
            chunked_take(&chunked, &piece, taken);
        }
        FUZZ_CHECK(result.step != CHUNKED_WANTS || piece.len == 0);
        FUZZ_CHECK((result.step == CHUNKED_END) == chunked_ended(&chunked));
        result.used = all - stream.len - piece.len;
    }
    result.too_large = chunked.too_large;
    result.reason = chunked.reason;
    FUZZ_CHECK((result.step == CHUNKED_BROKEN) == (result.reason != NULL));
    if (result.step == CHUNKED_BROKEN) {
        struct span more = span_str("0\r\n\r\n"), data;

        FUZZ_CHECK(chunked_read(&chunked, &more, &data) == CHUNKED_BROKEN);
        FUZZ_CHECK(chunked.reason == result.reason);
    }
    return result;
}

static void
check_pieces(struct span stream, size_t most)
{
    struct result whole = decode(stream, MOST);
    struct result pieces = decode(stream, most);

    FUZZ_CHECK(whole.step == pieces.step);
    FUZZ_CHECK(whole.reason == pieces.reason && whole.too_large == pieces.too_large);
    FUZZ_CHECK(span_equal(buf_span(&whole.body), buf_span(&pieces.body)));
    FUZZ_CHECK(whole.body.len <= stream.len);
    FUZZ_CHECK(whole.step != CHUNKED_END || whole.used == pieces.used);
    buf_free(&pieces.body);
    buf_free(&whole.body);
}

/* An encoding in chunks of 1 to `most` bytes, with what a sender may add (section 7.1). */
static void
check_body(struct span body, size_t most, bool extended)
{
    struct span left = body;
    struct result result;
    struct buf stream;
    size_t size = 0, end;

    buf_init(&stream, MOST);
    while (left.len) {
        struct span chunk = fuzz_take(&left, size++ % most + 1);

        buf_printf(&stream, extended ? "0%zX;a=\"b\"\r\n" : "%zx\r\n", chunk.len);
        buf_append(&stream, chunk.ptr, chunk.len);
        buf_printf(&stream, "\r\n");
    }
    buf_printf(&stream, extended ? "000;c\r\nX: y\r\n\r\n" : "0\r\n\r\n");
    end = stream.len;
    buf_append(&stream, body.ptr, body.len); /* the next message */
    if (!buf_failed(&stream) && size * 8 < 16384) {
        result = decode(buf_span(&stream), most);
        FUZZ_CHECK(result.step == CHUNKED_END && result.used == end);
        FUZZ_CHECK(span_equal(buf_span(&result.body), body));
        buf_free(&result.body);
    }
    buf_free(&stream);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct span input = span_of(data, size);
    unsigned choice = fuzz_byte(&input);
    size_t most = fuzz_byte(&input) + 1;

    if (choice % 2)
        check_body(input, most, choice & 2);
    else
        check_pieces(input, most);
    return 0;
}
