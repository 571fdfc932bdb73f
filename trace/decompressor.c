#include "trace/decompressor.h"

#include <bzlib.h>
#include <limits.h>
#include <lzma.h>
#include <stdint.h>
#include <stdlib.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

struct method {
    const char *name;
    const char *magic;
    size_t magic_len;
    bool (*is_one)(struct span head); /* NULL: the magic is enough */
    bool (*open)(struct decompressor *d);
    enum decompressor_result (*run)(struct decompressor *d, struct span *in, char **out,
                                    size_t *out_len);
    void (*close)(struct decompressor *d);
};

struct decompressor {
    const struct method *method;
    bool inside; /* of a member or frame */
    union {
        z_stream gzip;
        bz_stream bzip2;
        lzma_stream xz;
        ZSTD_DStream *zstd;
    } state;
};

/* Counts of zlib are unsigned int. */
static unsigned
at_most_uint(size_t n)
{
    return n > UINT_MAX ? UINT_MAX : (unsigned)n;
}

static void
advance(struct span *in, size_t taken, char **out, size_t *out_len, size_t given)
{
    in->ptr += taken;
    in->len -= taken;
    *out += given;
    *out_len -= given;
}

/* ---- gzip ---------------------------------------------------------------------------------- */

static bool
gzip_open(struct decompressor *d)
{
    return inflateInit2(&d->state.gzip, 16 + MAX_WBITS) == Z_OK;
}

static void
gzip_close(struct decompressor *d)
{
    inflateEnd(&d->state.gzip);
}

static enum decompressor_result
gzip_run(struct decompressor *d, struct span *in, char **out, size_t *out_len)
{
    z_stream *z = &d->state.gzip;
    unsigned in_len = at_most_uint(in->len);
    unsigned capacity = at_most_uint(*out_len);
    int rc;

    /* Between members: another one, or padding. */
    if (!d->inside && (unsigned char)in->ptr[0] != 0x1f)
        return DECOMPRESSOR_ENDED;
    z->next_in = (unsigned char *)(uintptr_t)in->ptr;
    z->avail_in = in_len;
    z->next_out = (unsigned char *)*out;
    z->avail_out = capacity;
    rc = inflate(z, Z_NO_FLUSH);
    advance(in, in_len - z->avail_in, out, out_len, capacity - z->avail_out);
    d->inside = rc != Z_STREAM_END;
    if (rc == Z_STREAM_END)
        rc = inflateReset(z);
    if (rc == Z_MEM_ERROR)
        return DECOMPRESSOR_NO_MEMORY;
    return rc == Z_OK || rc == Z_BUF_ERROR ? DECOMPRESSOR_OK : DECOMPRESSOR_BROKEN;
}

/* ---- bzip2 --------------------------------------------------------------------------------- */

/* Behind "BZh" and the size of blocks comes the first block, or the end; else it is some text. */
static bool
is_bzip2(struct span head)
{
    struct span rest = head.len > 4 ? span_of(head.ptr + 4, head.len - 4) : span_of("", 0);

    return span_starts_with(rest, span_str("\x31\x41\x59\x26\x53\x59")) ||
           span_starts_with(rest, span_str("\x17\x72\x45\x38\x50\x90"));
}

static bool
bzip2_open(struct decompressor *d)
{
    return BZ2_bzDecompressInit(&d->state.bzip2, 0, 0) == BZ_OK;
}

static void
bzip2_close(struct decompressor *d)
{
    BZ2_bzDecompressEnd(&d->state.bzip2);
}

/* Needs at most 4 MB of memory, whatever the input says. */
static enum decompressor_result
bzip2_run(struct decompressor *d, struct span *in, char **out, size_t *out_len)
{
    bz_stream *b = &d->state.bzip2;
    unsigned in_len = at_most_uint(in->len);
    unsigned capacity = at_most_uint(*out_len);
    int rc;

    /* Between streams: another one, or something that is ignored, as bzip2 does. */
    if (!d->inside && in->ptr[0] != 'B')
        return DECOMPRESSOR_ENDED;
    b->next_in = (char *)(uintptr_t)in->ptr;
    b->avail_in = in_len;
    b->next_out = *out;
    b->avail_out = capacity;
    rc = BZ2_bzDecompress(b);
    advance(in, in_len - b->avail_in, out, out_len, capacity - b->avail_out);
    d->inside = rc != BZ_STREAM_END;
    if (rc == BZ_STREAM_END) {
        BZ2_bzDecompressEnd(b);
        memset(b, 0, sizeof(*b));
        rc = BZ2_bzDecompressInit(b, 0, 0);
    }
    if (rc == BZ_MEM_ERROR)
        return DECOMPRESSOR_NO_MEMORY;
    return rc == BZ_OK ? DECOMPRESSOR_OK : DECOMPRESSOR_BROKEN;
}

/* ---- xz ------------------------------------------------------------------------------------ */

static bool
xz_open(struct decompressor *d)
{
    static const lzma_stream fresh = LZMA_STREAM_INIT;

    d->state.xz = fresh;
    return lzma_stream_decoder(&d->state.xz, DECOMPRESSOR_MOST_MEMORY, 0) == LZMA_OK;
}

static void
xz_close(struct decompressor *d)
{
    lzma_end(&d->state.xz);
}

/* Without LZMA_CONCATENATED, since the end of a stream is a valid end of the input. */
static enum decompressor_result
xz_run(struct decompressor *d, struct span *in, char **out, size_t *out_len)
{
    lzma_stream *x = &d->state.xz;
    size_t in_len = in->len;
    size_t capacity = *out_len;
    lzma_ret rc;

    if (!d->inside && in->ptr[0] == '\0') { /* padding between streams */
        advance(in, 1, out, out_len, 0);
        return DECOMPRESSOR_OK;
    }
    x->next_in = (const uint8_t *)in->ptr;
    x->avail_in = in_len;
    x->next_out = (uint8_t *)*out;
    x->avail_out = capacity;
    rc = lzma_code(x, LZMA_RUN);
    advance(in, in_len - x->avail_in, out, out_len, capacity - x->avail_out);
    d->inside = rc != LZMA_STREAM_END;
    if (rc == LZMA_STREAM_END)
        rc = lzma_stream_decoder(x, DECOMPRESSOR_MOST_MEMORY, 0);
    if (rc == LZMA_MEM_ERROR)
        return DECOMPRESSOR_NO_MEMORY;
    if (rc == LZMA_MEMLIMIT_ERROR)
        return DECOMPRESSOR_TOO_LARGE;
    return rc == LZMA_OK || rc == LZMA_BUF_ERROR ? DECOMPRESSOR_OK : DECOMPRESSOR_BROKEN;
}

/* ---- zstd ---------------------------------------------------------------------------------- */

static bool
zstd_open(struct decompressor *d)
{
    d->state.zstd = ZSTD_createDStream();
    if (!d->state.zstd)
        return false;
    ZSTD_DCtx_setParameter(d->state.zstd, ZSTD_d_windowLogMax, DECOMPRESSOR_MOST_MEMORY_LOG);
    return true;
}

static void
zstd_close(struct decompressor *d)
{
    ZSTD_freeDStream(d->state.zstd);
}

static enum decompressor_result
zstd_run(struct decompressor *d, struct span *in, char **out, size_t *out_len)
{
    ZSTD_inBuffer from = {.src = in->ptr, .size = in->len};
    ZSTD_outBuffer to = {.dst = *out, .size = *out_len};
    size_t left = ZSTD_decompressStream(d->state.zstd, &to, &from);

    advance(in, from.pos, out, out_len, to.pos);
    switch (ZSTD_getErrorCode(left)) {
    case ZSTD_error_no_error:
        break;
    case ZSTD_error_frameParameter_windowTooLarge:
        return DECOMPRESSOR_TOO_LARGE;
    case ZSTD_error_memory_allocation:
        return DECOMPRESSOR_NO_MEMORY;
    default:
        return DECOMPRESSOR_BROKEN;
    }
    d->inside = left != 0;
    return DECOMPRESSOR_OK;
}

/* -------------------------------------------------------------------------------------------- */

static const struct method methods[] = {
    {"gzip", "\x1f\x8b\x08", 3, NULL, gzip_open, gzip_run, gzip_close},
    {"bzip2", "BZh", 3, is_bzip2, bzip2_open, bzip2_run, bzip2_close},
    {"xz", "\xfd\x37zXZ\0", 6, NULL, xz_open, xz_run, xz_close},
    {"zstd", "\x28\xb5\x2f\xfd", 4, NULL, zstd_open, zstd_run, zstd_close},
};

#define METHODS (sizeof(methods) / sizeof(methods[0]))

const char *
decompressor_sniff(struct span head)
{
    for (size_t i = 0; i < METHODS; i++) {
        if (span_starts_with(head, span_of(methods[i].magic, methods[i].magic_len)) &&
            (!methods[i].is_one || methods[i].is_one(head)))
            return methods[i].name;
    }
    return NULL;
}

struct decompressor *
decompressor_create(const char *name)
{
    struct decompressor *d = calloc(1, sizeof(*d));

    for (size_t i = 0; d && i < METHODS; i++) {
        if (strcmp(methods[i].name, name) == 0)
            d->method = &methods[i];
    }
    if (d && !d->method->open(d)) {
        free(d);
        return NULL;
    }
    return d;
}

void
decompressor_destroy(struct decompressor *d)
{
    if (!d)
        return;
    d->method->close(d);
    free(d);
}

enum decompressor_result
decompressor_run(struct decompressor *d, struct span *in, char **out, size_t *out_len)
{
    if (!d->inside && in->len == 0)
        return DECOMPRESSOR_OK;
    return d->method->run(d, in, out, out_len);
}

bool
decompressor_is_whole(const struct decompressor *d)
{
    return !d->inside;
}
