#include "base/printable.h"

size_t
printable_decode(struct span text, uint32_t *character)
{
    const unsigned char *s = (const unsigned char *)text.ptr;
    /* The least character of two, three and four bytes: shorter ones are overlong. */
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t len = s[0] < 0x80             ? 1
                 : (s[0] & 0xe0) == 0xc0 ? 2
                 : (s[0] & 0xf0) == 0xe0 ? 3
                 : (s[0] & 0xf8) == 0xf0 ? 4
                                         : 0;
    uint32_t c = len == 1 ? s[0] : len == 0 ? 0 : s[0] & (0x7fU >> len);

    if (len == 0 || len > text.len)
        return 0;
    for (size_t i = 1; i < len; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return 0;
        c = c << 6 | (s[i] & 0x3f);
    }
    if (c < least[len] || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
        return 0;
    *character = c;
    return len;
}

bool
printable_character(uint32_t c)
{
    static const struct {
        uint32_t first, last;
    } hidden[] = {
        {0x00, 0x1f},     /* C0 */
        {0x7f, 0x9f},     /* delete, C1 */
        {0x061c, 0x061c}, /* marks of direction */
        {0x200e, 0x200f},
        {0x2028, 0x202e}, /* separators of lines and paragraphs, embeddings and overrides */
        {0x2066, 0x206f}, /* isolates, and deprecated format characters */
    };

    if (c >= 0x20 && c < 0x7f)
        return true;
    for (size_t i = 0; i < sizeof(hidden) / sizeof(hidden[0]); i++) {
        if (c >= hidden[i].first && c <= hidden[i].last)
            return false;
    }
    return true;
}

size_t
printable_length(struct span text)
{
    uint32_t c;
    size_t len = printable_decode(text, &c);

    return len != 0 && printable_character(c) ? len : 0;
}

/* How many bytes the text begins with that can stay as they are. */
static size_t
printable_run(struct span text)
{
    size_t at = 0, len;

    while (at < text.len && (len = printable_length(span_of(text.ptr + at, text.len - at))) != 0)
        at += len;
    return at;
}

bool
printable_lines(struct span text)
{
    size_t at = 0, len;

    while (at < text.len) {
        char c = text.ptr[at];

        len = c == '\t' || c == '\r' || c == '\n'
                  ? 1
                  : printable_length(span_of(text.ptr + at, text.len - at));
        if (len == 0)
            return false;
        at += len;
    }
    return true;
}

/* Bytes to replace at the beginning of a text that begins with nothing printable. */
static size_t
hidden_length(struct span text)
{
    uint32_t c;
    size_t len = printable_decode(text, &c);

    return len != 0 ? len : 1;
}

void
printable_make(char *text, size_t len)
{
    while (len != 0) {
        size_t run = printable_run(span_of(text, len));
        size_t hidden = run < len ? hidden_length(span_of(text + run, len - run)) : 0;

        memset(text + run, '?', hidden);
        text += run + hidden;
        len -= run + hidden;
    }
}

void
printable_write(FILE *to, struct span text)
{
    while (text.len != 0) {
        size_t run = printable_run(text);

        if (run != 0)
            fwrite(text.ptr, 1, run, to);
        text = span_of(text.ptr + run, text.len - run);
        if (text.len != 0) {
            size_t hidden = hidden_length(text);

            for (size_t i = 0; i < hidden; i++)
                putc('?', to);
            text = span_of(text.ptr + hidden, text.len - hidden);
        }
    }
}
