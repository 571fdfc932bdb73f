/*
 * Content codings: the first byte chooses one, and the second the size of the pieces. Whatever the
 * input, each step stays inside its buffer and the number of steps is bounded by the bytes that go
 * in and come out. Content that decodes whole decodes in pieces, to the same bytes.
 */
#include "http/coding.h"

#include "base/buf.h"
#include "tests/fuzz/fuzz.h"

#define MOST_MADE ((size_t)1 << 18) /* decoded of an input: more shows nothing new */
#define GUARD 0xA5u

struct result {
    bool broken;
    bool cut; /* there is more than MOST_MADE */
    bool may_end;
    struct buf made;
};

/* Decodes a stream in pieces of `piece` bytes into a buffer of `capacity` bytes. */
static struct result
decode(enum coding coding, struct span stream, size_t piece_len, size_t capacity)
{
    static unsigned char out[4096 + 1];
    struct decoder *decoder = decoder_create(coding);
    struct result result = {0};
    size_t steps = 0, bound = 0;

    FUZZ_CHECK(decoder && capacity < sizeof(out));
    FUZZ_CHECK(decoder_may_end(decoder));
    buf_init(&result.made, MOST_MADE + sizeof(out));
    while (stream.len && !result.broken && !result.cut) {
        struct span piece = fuzz_take(&stream, piece_len);
        enum coding_step step;

        /* Two steps for a piece, and one for each byte that is used or made. */
        bound += 2 + piece.len;
        do {
            size_t before = piece.len, made = 0;
            const char *reason = NULL;

            out[capacity] = GUARD;
            step = decoder_step(decoder, &piece, out, capacity, &made, &reason);
            FUZZ_CHECK(out[capacity] == GUARD);
            FUZZ_CHECK(made <= capacity && piece.len <= before);
            FUZZ_CHECK((step == CODING_BROKEN) == (reason != NULL));
            FUZZ_CHECK(step != CODING_WANTS || piece.len == 0);
            buf_append(&result.made, out, made);
            bound += made;
            FUZZ_CHECK(++steps <= bound);
            result.broken = step == CODING_BROKEN;
            result.cut = result.made.len > MOST_MADE;
        } while (step == CODING_MADE && !result.cut);
    }
    result.may_end = decoder_may_end(decoder);
    decoder_destroy(decoder);
    return result;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const enum coding codings[] = {CODING_GZIP, CODING_DEFLATE, CODING_BROTLI, CODING_ZSTD};
    struct span input = span_of(data, size);
    enum coding coding = codings[fuzz_byte(&input) % 4];
    size_t piece = fuzz_byte(&input) + 1;
    struct result whole = decode(coding, input, input.len, 4096);
    struct result pieces = decode(coding, input, piece, piece);

    if (!whole.cut && !pieces.cut) {
        FUZZ_CHECK(whole.broken || !pieces.broken);
        /* libzstd 1.5.4 finds less content than the frame states only where it has all at once. */
        FUZZ_CHECK(pieces.broken || !whole.broken || coding == CODING_ZSTD);
    }
    if (!whole.broken && !whole.cut) {
        FUZZ_CHECK(whole.may_end == pieces.may_end);
        FUZZ_CHECK(span_equal(buf_span(&whole.made), buf_span(&pieces.made)));
    }
    buf_free(&pieces.made);
    buf_free(&whole.made);
    return 0;
}
