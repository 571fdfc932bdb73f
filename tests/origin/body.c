/*
 * Bodies. The text of a URL is lines of 32 bytes, "HHHHHHHHHHHHHHHH NNNNNNNNNNNNNN\n": the URL's
 * hash and the line's number in hexadecimal, cut to size. Whoever knows the URL can say what must
 * come, byte for byte, without asking.
 *
 * gzip (RFC 1952) is written here by hand: text goes into stored blocks of deflate (RFC 1951), a
 * bomb into one block of fixed codes that repeats a byte, 258 at a time in 13 bits. Only the
 * checksum is computed by zlib.
 */
#include <stdlib.h>
#include <zlib.h>

#include "tests/origin/origin.h"

#define LINE 32u
#define PIECE 65504u /* a multiple of LINE, below the 65,535 of a stored block */

static void
put_hex(char *out, uint64_t value, unsigned digits)
{
    while (digits--) {
        out[digits] = "0123456789abcdef"[value & 15];
        value >>= 4;
    }
}

void
body_text(uint64_t seed, uint64_t at, char *out, size_t len)
{
    char line[LINE];

    put_hex(line, seed, 16);
    line[16] = ' ';
    line[LINE - 1] = '\n';
    while (len) {
        size_t skip = at % LINE;
        size_t n = LINE - skip < len ? LINE - skip : len;

        put_hex(line + 17, at / LINE, 14);
        memcpy(out, line + skip, n);
        out += n;
        at += n;
        len -= n;
    }
}

void
body_init(struct body *body, const struct plan *plan)
{
    memset(body, 0, sizeof(*body));
    body->plan = plan;
    body->size = plan->size;
}

static void
add_crc(struct body *body, const char *bytes, size_t len)
{
    body->crc = (uint32_t)crc32(body->crc, (const Bytef *)bytes, (uInt)len);
}

static void
put_little(struct evbuffer *out, uint64_t value, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++) {
        char byte = (char)(value >> (8 * i));

        evbuffer_add(out, &byte, 1);
    }
}

static void
put_gzip_end(struct body *body, struct evbuffer *out)
{
    put_little(out, body->crc, 4);
    put_little(out, body->size & 0xffffffffu, 4);
}

/* Deflate packs bits from the least significant one; Huffman codes come reversed. */
static void
put_bits(struct body *body, struct evbuffer *out, uint64_t bits, unsigned count)
{
    body->bits |= bits << body->bit_count;
    body->bit_count += count;
    while (body->bit_count >= 8) {
        put_little(out, body->bits & 255, 1);
        body->bits >>= 8;
        body->bit_count -= 8;
    }
}

static void
next_of_bomb(struct body *body, struct evbuffer *out)
{
    static char run[258];

    memset(run, '0', sizeof(run));
    if (body->at == 0) {
        put_bits(body, out, 1 | 1 << 1, 3); /* last block, fixed codes */
        put_bits(body, out, 0x06, 8);       /* '0' is 0x30 + 0x30 = 0x60, reversed */
        add_crc(body, run, 1);
        body->at = 1;
    }
    /* Length 258 is symbol 285: code 11000101, reversed 10100011; distance 1: code 00000. */
    for (unsigned i = 0; i < 4096 && body->at < body->size; i++) {
        put_bits(body, out, 0xa3, 13);
        add_crc(body, run, sizeof(run));
        body->at += sizeof(run);
    }
    if (body->at >= body->size) {
        put_bits(body, out, 0, 7); /* end of block: symbol 256 */
        if (body->bit_count)
            put_bits(body, out, 0, 8 - body->bit_count);
        body->size = body->at;
        put_gzip_end(body, out);
        body->done = true;
    }
}

static void
next_of_text(struct body *body, struct evbuffer *out)
{
    const struct plan *plan = body->plan;
    uint64_t left = body->size - body->at;
    size_t len = left < PIECE ? (size_t)left : PIECE;
    char piece[PIECE];

    body_text(plan->seed, body->at, piece, len);
    if (plan->zero && body->size / 2 >= body->at && body->size / 2 < body->at + len)
        piece[body->size / 2 - body->at] = '\0';
    if (plan->coding == CODED_GZIP) {
        add_crc(body, piece, len);
        put_little(out, left == len, 1);
        put_little(out, len, 2);
        put_little(out, ~len & 0xffffu, 2);
    }
    evbuffer_add(out, piece, len);
    body->at += len;
    if (body->at == body->size) {
        if (plan->coding == CODED_GZIP)
            put_gzip_end(body, out);
        body->done = true;
    }
}

void
body_next(struct body *body, struct evbuffer *out)
{
    static const char gzip_head[10] = {0x1f, (char)0x8b, 8, 0, 0, 0, 0, 0, 0, 3};
    const struct plan *plan = body->plan;
    bool chunked = plan->framing == FRAMED_BY_CHUNKS;
    struct evbuffer *piece = chunked ? evbuffer_new() : out;

    if (!piece)
        abort();
    if (!body->begun && (plan->coding == CODED_GZIP || plan->coding == CODED_GZIP_BOMB))
        evbuffer_add(piece, gzip_head, sizeof(gzip_head));
    body->begun = true;
    if (plan->coding == CODED_GZIP_BOMB)
        next_of_bomb(body, piece);
    else
        next_of_text(body, piece);
    if (!chunked)
        return;
    if (plan->bad_chunk) {
        evbuffer_add_printf(out, "xyz\r\n");
        body->done = true;
    } else if (evbuffer_get_length(piece)) {
        evbuffer_add_printf(out, "%zx\r\n", evbuffer_get_length(piece));
        evbuffer_add_buffer(out, piece);
        evbuffer_add(out, "\r\n", 2);
    }
    if (body->done)
        evbuffer_add(out, "0\r\n\r\n", 5);
    evbuffer_free(piece);
}
