#include "base/base64.h"

#define PIECE 3072 /* bytes coded at once; a multiple of 3 */

static size_t
encode_piece(char *to, const unsigned char *from, size_t len)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char *at = to;

    for (size_t i = 0; i < len; i += 3) {
        size_t left = len - i;
        unsigned b = left > 1 ? from[i + 1] : 0, c = left > 2 ? from[i + 2] : 0;
        unsigned bits = (unsigned)from[i] << 16 | b << 8 | c;

        *at++ = digits[bits >> 18];
        *at++ = digits[bits >> 12 & 63];
        *at++ = left > 1 ? digits[bits >> 6 & 63] : '=';
        *at++ = left > 2 ? digits[bits & 63] : '=';
    }
    return (size_t)(at - to);
}

void
base64_encode(struct buf *out, struct span bytes)
{
    char coded[PIECE / 3 * 4];

    while (bytes.len != 0) {
        size_t take = bytes.len < PIECE ? bytes.len : PIECE;

        buf_append(out, coded, encode_piece(coded, (const unsigned char *)bytes.ptr, take));
        bytes = span_of(bytes.ptr + take, bytes.len - take);
    }
}
