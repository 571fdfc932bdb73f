#include "http/coding.h"

#include <brotli/decode.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <strings.h>
#include <zlib.h>
#include <zstd.h>

#define BROTLI_MAX_WINDOW_BITS 24
#define ZSTD_WINDOW_LOG 23 /* 8 MiB, the most that a content coding may ask for: RFC 9659 */

struct decoder {
    enum coding coding;
    bool begun;  /* some input has come */
    bool ended;  /* the coded data is complete, */
    bool closed; /* and bytes that are no further member have followed it */
    size_t idle; /* bytes of input since the last output */
    union {
        z_stream zlib;
        BrotliDecoderState *brotli;
        ZSTD_DCtx *zstd;
    } state;
    /* deflate: the first two bytes show whether RFC 1950 wraps the data */
    unsigned char start[2];
    unsigned start_len;
};

static const struct {
    const char *name;
    enum coding coding;
} names[] = {
    {"identity", CODING_IDENTITY}, {"gzip", CODING_GZIP}, {"x-gzip", CODING_GZIP},
    {"deflate", CODING_DEFLATE},   {"br", CODING_BROTLI}, {"zstd", CODING_ZSTD},
};

enum coding
coding_parse(struct span name)
{
    if (name.len == 0)
        return CODING_IDENTITY;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (name.len == strlen(names[i].name) &&
            strncasecmp(name.ptr, names[i].name, name.len) == 0)
            return names[i].coding;
    return CODING_UNKNOWN;
}

/* ---- making and freeing -------------------------------------------------------------- */

static bool
init_state(struct decoder *decoder)
{
    switch (decoder->coding) {
    case CODING_GZIP:
        return inflateInit2(&decoder->state.zlib, 15 + 16) == Z_OK;
    case CODING_DEFLATE:
        return inflateInit2(&decoder->state.zlib, 15) == Z_OK;
    case CODING_BROTLI:
        decoder->state.brotli = BrotliDecoderCreateInstance(NULL, NULL, NULL);
        return decoder->state.brotli != NULL;
    case CODING_ZSTD:
        decoder->state.zstd = ZSTD_createDCtx();
        if (!decoder->state.zstd)
            return false;
        ZSTD_DCtx_setParameter(decoder->state.zstd, ZSTD_d_windowLogMax, ZSTD_WINDOW_LOG);
        return true;
    default:
        return false;
    }
}

size_t
coding_window(enum coding coding)
{
    switch (coding) {
    case CODING_BROTLI:
        return (size_t)1 << BROTLI_MAX_WINDOW_BITS;
    case CODING_ZSTD:
        return (size_t)1 << ZSTD_WINDOW_LOG;
    default:
        return 0;
    }
}

struct decoder *
decoder_create(enum coding coding)
{
    struct decoder *decoder = calloc(1, sizeof(*decoder));

    if (!decoder)
        return NULL;
    decoder->coding = coding;
    if (!init_state(decoder)) {
        free(decoder);
        return NULL;
    }
    return decoder;
}

void
decoder_destroy(struct decoder *decoder)
{
    if (!decoder)
        return;
    switch (decoder->coding) {
    case CODING_GZIP:
    case CODING_DEFLATE:
        inflateEnd(&decoder->state.zlib);
        break;
    case CODING_BROTLI:
        BrotliDecoderDestroyInstance(decoder->state.brotli);
        break;
    default:
        ZSTD_freeDCtx(decoder->state.zstd);
        break;
    }
    free(decoder);
}

bool
decoder_may_end(const struct decoder *decoder)
{
    return decoder->ended || !decoder->begun;
}

/* ---- one step of each library -------------------------------------------------------- */

static enum coding_step
broken(const char **reason, const char *text)
{
    *reason = text;
    return CODING_BROKEN;
}

static void
advance(struct span *input, size_t used)
{
    *input = span_of(input->ptr + used, input->len - used);
}

static enum coding_step
run_zlib(struct decoder *decoder, struct span *input, void *out, size_t size, size_t *made,
         const char **reason)
{
    z_stream *zlib = &decoder->state.zlib;
    unsigned len = input->len < UINT_MAX ? (unsigned)input->len : UINT_MAX;
    int code;

    zlib->next_in = (z_const Bytef *)(uintptr_t)input->ptr;
    zlib->avail_in = len;
    zlib->next_out = out;
    zlib->avail_out = size < UINT_MAX ? (unsigned)size : UINT_MAX;
    code = inflate(zlib, Z_NO_FLUSH);
    advance(input, len - zlib->avail_in);
    *made = (size_t)((char *)zlib->next_out - (char *)out);
    switch (code) {
    case Z_STREAM_END:
        decoder->ended = true;
        return input->len ? CODING_MADE : CODING_WANTS;
    case Z_OK:
    case Z_BUF_ERROR: /* nothing could be done: not an error */
        return zlib->avail_out == 0 || input->len ? CODING_MADE : CODING_WANTS;
    case Z_MEM_ERROR:
        return broken(reason, "there is no memory to decode it");
    default:
        return broken(reason, "its content is not in its content coding");
    }
}

/*
 * The two bytes of RFC 1950 are recognisable: section 2.2, CMF and FLG. Bytes that begin otherwise
 * are a bare RFC 1951. They are held back until there are two, and go first then.
 */
static enum coding_step
run_deflate(struct decoder *decoder, struct span *input, void *out, size_t size, size_t *made,
            const char **reason)
{
    struct span start = span_of(decoder->start, sizeof(decoder->start));
    const unsigned char *b = decoder->start;
    enum coding_step step;

    if (decoder->start_len == sizeof(decoder->start))
        return run_zlib(decoder, input, out, size, made, reason);
    while (decoder->start_len < sizeof(decoder->start) && input->len) {
        decoder->start[decoder->start_len++] = (unsigned char)input->ptr[0];
        advance(input, 1);
    }
    if (decoder->start_len < sizeof(decoder->start))
        return CODING_WANTS;
    if (((b[0] & 15) != 8 || b[0] >> 4 > 7 || (b[0] * 256u + b[1]) % 31 != 0) &&
        inflateReset2(&decoder->state.zlib, -15) != Z_OK)
        return broken(reason, "there is no memory to decode it");
    /* Two bytes yield at most as many as the end of a stored block: they are always used up. */
    step = run_zlib(decoder, &start, out, size, made, reason);
    return step == CODING_WANTS && input->len ? CODING_MADE : step;
}

static enum coding_step
run_brotli(struct decoder *decoder, struct span *input, void *out, size_t size, size_t *made,
           const char **reason)
{
    const uint8_t *next_in = (const uint8_t *)input->ptr;
    size_t left_in = input->len, left_out = size;
    uint8_t *next_out = out;
    BrotliDecoderResult result = BrotliDecoderDecompressStream(
        decoder->state.brotli, &left_in, &next_in, &left_out, &next_out, NULL);

    advance(input, input->len - left_in);
    *made = size - left_out;
    switch (result) {
    case BROTLI_DECODER_RESULT_SUCCESS:
        decoder->ended = true;
        return input->len ? CODING_MADE : CODING_WANTS;
    case BROTLI_DECODER_RESULT_NEEDS_MORE_INPUT:
        return BrotliDecoderHasMoreOutput(decoder->state.brotli) ? CODING_MADE : CODING_WANTS;
    case BROTLI_DECODER_RESULT_NEEDS_MORE_OUTPUT:
        return CODING_MADE;
    default:
        return broken(reason, "its content is not in its content coding");
    }
}

/* Frames may follow one another; the end of each may be the end of all. */
static enum coding_step
run_zstd(struct decoder *decoder, struct span *input, void *out, size_t size, size_t *made,
         const char **reason)
{
    ZSTD_inBuffer in = {.src = input->ptr, .size = input->len};
    ZSTD_outBuffer to = {.dst = out, .size = size};
    size_t code = ZSTD_decompressStream(decoder->state.zstd, &to, &in);

    advance(input, in.pos);
    *made = to.pos;
    if (ZSTD_isError(code))
        return broken(reason, "its content is not in its content coding");
    decoder->ended = code == 0;
    return to.pos == size || input->len ? CODING_MADE : CODING_WANTS;
}

static enum coding_step
run(struct decoder *decoder, struct span *input, void *out, size_t size, size_t *made,
    const char **reason)
{
    switch (decoder->coding) {
    case CODING_GZIP:
        return run_zlib(decoder, input, out, size, made, reason);
    case CODING_DEFLATE:
        return run_deflate(decoder, input, out, size, made, reason);
    case CODING_BROTLI:
        return run_brotli(decoder, input, out, size, made, reason);
    default:
        return run_zstd(decoder, input, out, size, made, reason);
    }
}

/* ---- a step -------------------------------------------------------------------------- */

/*
 * Behind the end: does a further member (RFC 1952 section 2.2) or frame (RFC 8878 sections 3.1.1
 * and 3.1.2) begin here? The first byte of their magic numbers decides.
 */
static bool
begin_member(struct decoder *decoder, const struct span *input)
{
    unsigned char first = (unsigned char)input->ptr[0];

    if (decoder->coding == CODING_GZIP && first == 0x1f)
        return inflateReset(&decoder->state.zlib) == Z_OK;
    return decoder->coding == CODING_ZSTD && (first == 0x28 || first >> 4 == 5);
}

enum coding_step
decoder_step(struct decoder *decoder, struct span *input, void *out, size_t size, size_t *made,
             const char **reason)
{
    size_t before = input->len;
    enum coding_step step = CODING_WANTS;

    *made = 0;
    if (decoder->ended && before > 0) {
        if (!decoder->closed && begin_member(decoder, input)) {
            decoder->ended = false;
        } else {
            decoder->closed = true;
            advance(input, before);
        }
    }
    if (!decoder->ended) {
        decoder->begun = decoder->begun || before > 0;
        step = run(decoder, input, out, size, made, reason);
    }
    decoder->idle = *made ? 0 : decoder->idle + (before - input->len);
    if (step != CODING_BROKEN && decoder->idle > CODING_IDLE_MAX)
        return broken(reason, "more than 64 KiB of its content decode to nothing");
    return step;
}
