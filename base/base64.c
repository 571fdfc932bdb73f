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

/* Below 0: it is none. */
static int
digit_of(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

bool
base64_decode(struct span text, char *bytes, size_t size, size_t *len)
{
    unsigned bits = 0, count = 0;

    *len = 0;
    if (text.len % 4)
        return false;
    for (unsigned pads = 0; pads < 2 && text.len && text.ptr[text.len - 1] == '='; pads++)
        text.len--;
    for (size_t i = 0; i < text.len; i++) {
        int digit = digit_of(text.ptr[i]);

        if (digit < 0)
            return false;
        bits = (bits << 6 | (unsigned)digit) & 0xfff;
        count += 6;
        if (count < 8)
            continue;
        if (*len == size)
            return false;
        count -= 8;
        bytes[(*len)++] = (char)(bits >> count & 0xff);
    }
    return count < 6 && (bits & ((1u << count) - 1)) == 0;
}
