#include "http/chunked.h"

#include "base/ascii.h"

#define MAX_DIGITS 16u        /* zeros in front included */
#define MAX_EXTENSIONS 16384u /* bytes in a message; RFC 9112 section 7.1.1 asks for a limit */

enum {
    SIZE,          /* in the digits of a chunk's size */
    SIZE_BLANK,    /* blanks after the size, which some origins pad it with */
    EXTENSION,     /* in a chunk extension */
    QUOTED,        /* in a quoted string of it */
    QUOTED_PAIR,   /* behind a backslash there */
    SIZE_LF,       /* the LF of that line */
    DATA,          /* in the data */
    DATA_CR,       /* the CR after the data */
    DATA_LF,       /* its LF */
    TRAILER_START, /* at the start of a trailer line, or of the empty line */
    TRAILER,       /* in a trailer line */
    TRAILER_LF,    /* its LF */
    END_LF,        /* the LF of the empty line */
    ENDED,
    BROKEN
};

void
chunked_init(struct chunked *chunked, uint32_t max_trailer_bytes, uint32_t max_trailer_lines)
{
    *chunked = (struct chunked){
        .state = SIZE,
        .max_trailer_bytes = max_trailer_bytes,
        .max_trailer_lines = max_trailer_lines,
    };
}

bool
chunked_ended(const struct chunked *chunked)
{
    return chunked->state == ENDED;
}

static void
fail(struct chunked *chunked, const char *reason)
{
    chunked->state = BROKEN;
    chunked->reason = reason;
}

static bool
is_blank(unsigned char c)
{
    return c == ' ' || c == '\t';
}

/* What may stand in an extension or in a trailer field: no control character but the tab. */
static bool
is_text(unsigned char c)
{
    return (c >= ' ' && c != 127) || c == '\t';
}

static void
read_size(struct chunked *chunked, unsigned char c)
{
    int value = ascii_hex_value((char)c);

    if (value >= 0) {
        if (chunked->digits == MAX_DIGITS || chunked->left > (uint64_t)INT64_MAX >> 4) {
            fail(chunked, "a chunk's size is too large");
            return;
        }
        chunked->digits++;
        chunked->left = chunked->left << 4 | (unsigned)value;
    } else if (chunked->digits == 0) {
        fail(chunked, "a chunk has no size");
    } else if (c == '\r') {
        chunked->state = SIZE_LF;
    } else if (c == ';') {
        chunked->state = EXTENSION;
    } else if (is_blank(c) && !chunked->no_padding) {
        chunked->state = SIZE_BLANK;
    } else {
        fail(chunked, "a chunk's size is not a hexadecimal number");
    }
}

/* Where an extension goes on behind this byte: RFC 9110 section 5.6.4. */
static unsigned
next_in_extension(unsigned state, unsigned char c)
{
    if (state == QUOTED_PAIR)
        return QUOTED;
    if (c == '"')
        return state == QUOTED ? EXTENSION : QUOTED;
    return state == QUOTED && c == '\\' ? QUOTED_PAIR : state;
}

static void
read_extension(struct chunked *chunked, unsigned char c)
{
    if (c == '\r' && chunked->state != QUOTED && chunked->state != QUOTED_PAIR)
        chunked->state = SIZE_LF;
    else if (++chunked->extensions > MAX_EXTENSIONS)
        fail(chunked, "its chunk extensions are too long");
    else if (chunked->state == SIZE_BLANK && c == ';')
        chunked->state = EXTENSION;
    else if (chunked->state == SIZE_BLANK && !is_blank(c))
        fail(chunked, "a chunk's size is not a hexadecimal number");
    else if (!is_text(c))
        fail(chunked, "there is a control character in a chunk extension");
    else if (chunked->state != SIZE_BLANK)
        chunked->state = next_in_extension(chunked->state, c);
}

static void
read_trailer(struct chunked *chunked, unsigned char c)
{
    if (c == '\r') {
        chunked->state = chunked->state == TRAILER_START ? END_LF : TRAILER_LF;
        return;
    }
    chunked->trailer_lines += chunked->state == TRAILER_START;
    chunked->trailer_bytes++;
    chunked->state = TRAILER;
    chunked->too_large = chunked->trailer_bytes > chunked->max_trailer_bytes ||
                         chunked->trailer_lines > chunked->max_trailer_lines;
    if (chunked->too_large)
        fail(chunked, "its trailers are too long");
    else if (!is_text(c))
        fail(chunked, "there is a control character in a trailer");
}

static void
expect(struct chunked *chunked, unsigned char c, unsigned char wanted, unsigned next)
{
    if (c == wanted)
        chunked->state = next;
    else
        fail(chunked, "a line of its chunks is not ended by CR LF");
}

static void
end_size_line(struct chunked *chunked, unsigned char c)
{
    expect(chunked, c, '\n', chunked->left ? DATA : TRAILER_START);
    chunked->digits = 0;
}

static void
read_byte(struct chunked *chunked, unsigned char c)
{
    switch (chunked->state) {
    case SIZE:
        read_size(chunked, c);
        break;
    case SIZE_BLANK:
    case EXTENSION:
    case QUOTED:
    case QUOTED_PAIR:
        read_extension(chunked, c);
        break;
    case SIZE_LF:
        end_size_line(chunked, c);
        break;
    case DATA_CR:
        expect(chunked, c, '\r', DATA_LF);
        break;
    case DATA_LF:
        expect(chunked, c, '\n', SIZE);
        break;
    case TRAILER_START:
    case TRAILER:
        read_trailer(chunked, c);
        break;
    case TRAILER_LF:
        expect(chunked, c, '\n', TRAILER_START);
        break;
    case END_LF:
        expect(chunked, c, '\n', ENDED);
        break;
    default:
        break;
    }
}

enum chunked_step
chunked_read(struct chunked *chunked, struct span *input, struct span *data)
{
    for (;;) {
        if (chunked->state == BROKEN)
            return CHUNKED_BROKEN;
        if (chunked->state == ENDED)
            return CHUNKED_END;
        if (input->len == 0)
            return CHUNKED_WANTS;
        if (chunked->state == DATA) {
            *data = span_of(input->ptr,
                            chunked->left < input->len ? (size_t)chunked->left : input->len);
            return CHUNKED_DATA;
        }
        read_byte(chunked, (unsigned char)input->ptr[0]);
        *input = span_of(input->ptr + 1, input->len - 1);
    }
}

void
chunked_take(struct chunked *chunked, struct span *input, size_t len)
{
    *input = span_of(input->ptr + len, input->len - len);
    chunked->left -= len;
    if (chunked->left == 0)
        chunked->state = DATA_CR;
}
