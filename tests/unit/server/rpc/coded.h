/* Content codings for tests: each that http/coding.h undoes. */
#ifndef SUNPROXY_TESTS_SERVER_RPC_CODED_H
#define SUNPROXY_TESTS_SERVER_RPC_CODED_H

#include <zlib.h>
#include <zstd.h>

#include "http/coding.h"
#include "tests/unit/unit.h"

static inline const char *
coding_name(enum coding coding)
{
    static const char *const names[] = {
        [CODING_IDENTITY] = "identity", [CODING_GZIP] = "gzip", [CODING_DEFLATE] = "deflate",
        [CODING_BROTLI] = "br",         [CODING_ZSTD] = "zstd", [CODING_UNKNOWN] = "rot13",
    };

    return names[coding];
}

static inline size_t
code_zlib(int window_bits, const char *text, size_t len, char *to, size_t size)
{
    z_stream zlib = {0};

    ck_assert_int_eq(deflateInit2(&zlib, 6, Z_DEFLATED, window_bits, 8, Z_DEFAULT_STRATEGY), Z_OK);
    zlib.next_in = (Bytef *)(uintptr_t)text;
    zlib.avail_in = (unsigned)len;
    zlib.next_out = (Bytef *)to;
    zlib.avail_out = (unsigned)size;
    ck_assert_int_eq(deflate(&zlib, Z_FINISH), Z_STREAM_END);
    deflateEnd(&zlib);
    return zlib.total_out;
}

/* Meta-blocks that are not compressed: RFC 7932 section 9.2. */
static inline size_t
code_brotli(const char *text, size_t len, char *to, size_t size)
{
    const size_t most = 65536;
    unsigned shift = 1; /* behind the window's size, which is the first bit */
    char *at = to;

    ck_assert_uint_le(len + 3 * (len / most + 1) + 1, size);
    while (len) {
        size_t now = len < most ? len : most;
        uint32_t head = ((uint32_t)(now - 1) << 3 | 1u << 19) << shift;

        for (unsigned i = 0; i < 3; i++)
            *at++ = (char)(head >> 8 * i);
        memcpy(at, text, now);
        at += now;
        text += now;
        len -= now;
        shift = 0;
    }
    *at++ = shift ? 6 : 3; /* the last one, empty */
    return (size_t)(at - to);
}

/* A bare deflate with nearly CODING_IDLE_MAX bytes of empty blocks before each byte of the text:
 * RFC 1951 section 3.2.4. */
static inline size_t
code_thinly(const char *text, size_t len, char *to, size_t size)
{
    static const char empty[] = {0, 0, 0, -1, -1}, one[] = {0, 1, 0, -2, -1},
                      last[] = {1, 0, 0, -1, -1};
    const size_t blocks = 12000;
    char *at = to;

    ck_assert_uint_le(len * (blocks * sizeof(empty) + sizeof(one) + 1) + sizeof(last), size);
    for (size_t i = 0; i < len; i++) {
        for (size_t j = 0; j < blocks; j++, at += sizeof(empty))
            memcpy(at, empty, sizeof(empty));
        memcpy(at, one, sizeof(one));
        at += sizeof(one);
        *at++ = text[i];
    }
    memcpy(at, last, sizeof(last));
    return (size_t)(at - to) + sizeof(last);
}

/* Codes a text; returns the number of bytes at `to`. */
static inline size_t
code_text(enum coding coding, const char *text, size_t len, char *to, size_t size)
{
    size_t coded;

    switch (coding) {
    case CODING_GZIP:
        return code_zlib(15 + 16, text, len, to, size);
    case CODING_DEFLATE:
        return code_zlib(15, text, len, to, size);
    case CODING_BROTLI:
        return code_brotli(text, len, to, size);
    case CODING_ZSTD:
        coded = ZSTD_compress(to, size, text, len, 3);
        ck_assert(!ZSTD_isError(coded));
        return coded;
    default:
        ck_assert_uint_le(len, size);
        memcpy(to, text, len);
        return len;
    }
}

#endif
