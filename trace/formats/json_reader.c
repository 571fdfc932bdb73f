#include "trace/formats/json_reader.h"

#include <stdlib.h>

#include "base/ascii.h"

#define NUMBER_BYTES 64u
#define REPLACEMENT 0xfffd /* for what is no character */

void
json_reader_init(struct json_reader *r, struct input *in)
{
    *r = (struct json_reader){.in = in, .ahead = span_of("", 0)};
}

uint64_t
json_reader_offset(const struct json_reader *r)
{
    return r->before + r->at;
}

static bool
fail(struct json_reader *r)
{
    r->failed = true;
    return false;
}

/* ---- bytes ----------------------------------------------------------------------------------- */

/* Is there another byte at r->at? */
static bool
refill(struct json_reader *r)
{
    if (r->at < r->ahead.len)
        return true;
    input_take(r->in, r->at);
    r->before += r->at;
    r->at = 0;
    r->ahead = input_peek(r->in, 1);
    return r->ahead.len != 0;
}

/* The next byte without taking it; -1 at the end. */
static int
look(struct json_reader *r)
{
    return !r->failed && refill(r) ? (unsigned char)r->ahead.ptr[r->at] : -1;
}

static int
take(struct json_reader *r)
{
    int c = look(r);

    r->at += c >= 0;
    return c;
}

static int
look_behind_blanks(struct json_reader *r)
{
    int c;

    while ((c = look(r)) == ' ' || c == '\t' || c == '\n' || c == '\r')
        r->at++;
    return c;
}

/* ---- strings --------------------------------------------------------------------------------- */

/* Appends unless the string has become too long: *whole is false then. */
static void
append(struct json_reader *r, struct buf *text, const char *bytes, size_t len, bool *whole)
{
    if (!text || !*whole)
        return;
    if (len > text->ceiling - text->len) {
        *whole = false;
        buf_reset(text);
    } else if (!buf_append(text, bytes, len)) {
        r->no_memory = true;
        fail(r);
    }
}

/* The four digits behind "\u"; -1 if they are none. */
static int32_t
take_code(struct json_reader *r)
{
    int32_t code = 0;

    for (int i = 0; i < 4; i++) {
        int digit = ascii_hex_value((char)take(r));

        if (digit < 0)
            return -1;
        code = code * 16 + digit;
    }
    return code;
}

static bool
is_high(int32_t code)
{
    return code >= 0xd800 && code <= 0xdbff;
}

static bool
is_low(int32_t code)
{
    return code >= 0xdc00 && code <= 0xdfff;
}

/* What stands behind a backslash; of characters beyond U+FFFF a half. -1: no escape. */
static int32_t
take_escape(struct json_reader *r)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    int c = take(r);
    const char *found = c > 0 ? strchr(from, c) : NULL;

    if (c == 'u')
        return take_code(r);
    return found ? to[found - from] : -1;
}

static void
append_character(struct json_reader *r, struct buf *text, int32_t code, bool *whole)
{
    static const unsigned char lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
    size_t len = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    char out[4];

    for (size_t i = len; i-- > 1; code >>= 6)
        out[i] = (char)(0x80 | (code & 0x3f));
    out[0] = (char)(lead[len] | code);
    append(r, text, out, len, whole);
}

/*
 * An escape, and before it what *half of a character is still waiting for the other. A half that
 * stays alone is written by programs that cut texts anywhere, and becomes U+FFFD.
 */
static void
append_escape(struct json_reader *r, struct buf *text, int32_t code, int32_t *half, bool *whole)
{
    int32_t high = *half;

    *half = 0;
    if (is_low(code) && high) {
        append_character(r, text, 0x10000 + ((high - 0xd800) << 10) + (code - 0xdc00), whole);
        return;
    }
    if (high)
        append_character(r, text, REPLACEMENT, whole);
    if (is_high(code))
        *half = code;
    else
        append_character(r, text, is_low(code) ? REPLACEMENT : code, whole);
}

/* A string; `text` may be NULL. */
static bool
take_text(struct json_reader *r, struct buf *text)
{
    bool whole = true;
    int32_t half = 0, code;

    if (text)
        buf_reset(text);
    if (look(r) != '"')
        return fail(r);
    r->at++;
    while (!r->failed && refill(r)) {
        const char *bytes = r->ahead.ptr + r->at;
        size_t left = r->ahead.len - r->at, run = 0;

        while (run < left && bytes[run] != '"' && bytes[run] != '\\')
            run++;
        if (half && (run != 0 || bytes[run] == '"')) {
            append_character(r, text, REPLACEMENT, &whole);
            half = 0;
        }
        append(r, text, bytes, run, &whole);
        r->at += run;
        if (run == left)
            continue;
        r->at++;
        if (bytes[run] == '"')
            return whole && !r->failed;
        code = take_escape(r);
        if (code < 0)
            return fail(r);
        append_escape(r, text, code, &half, &whole);
    }
    return fail(r);
}

bool
json_reader_text(struct json_reader *r, struct buf *text)
{
    return json_reader_kind(r) == JSON_READER_TEXT ? take_text(r, text) : fail(r);
}

/* ---- other values ---------------------------------------------------------------------------- */

enum json_reader_kind
json_reader_kind(struct json_reader *r)
{
    int c = look_behind_blanks(r);

    switch (c) {
    case '{':
        return JSON_READER_OBJECT;
    case '[':
        return JSON_READER_ARRAY;
    case '"':
        return JSON_READER_TEXT;
    case 't':
    case 'f':
    case 'n':
        return JSON_READER_WORD;
    default:
        return c == '-' || c == '+' || c == '.' || (c >= '0' && c <= '9') ? JSON_READER_NUMBER
                                                                          : JSON_READER_NONE;
    }
}

/* The next byte without taking it if a number may contain it, otherwise 0. */
static char
look_in_number(struct json_reader *r)
{
    int c = look(r);

    return c > 0 && strchr("0123456789+-.eE", c) ? (char)c : '\0';
}

bool
json_reader_number(struct json_reader *r, double *number)
{
    char text[NUMBER_BYTES];
    size_t len = 0;
    char *end;
    bool whole = true;
    char c;

    if (json_reader_kind(r) != JSON_READER_NUMBER)
        return fail(r);
    for (; (c = look_in_number(r)) != '\0'; r->at++) {
        if (len < sizeof(text) - 1)
            text[len++] = c;
        else
            whole = false;
    }
    text[len] = '\0';
    if (!whole)
        return false;
    *number = strtod(text, &end);
    return *end == '\0' ? !r->failed : fail(r);
}

static bool
take_word(struct json_reader *r)
{
    int c = look(r);
    const char *word = c == 't' ? "true" : c == 'f' ? "false" : "null";

    for (; *word; word++) {
        if (take(r) != *word)
            return fail(r);
    }
    return true;
}

/* ---- containers ------------------------------------------------------------------------------ */

bool
json_reader_enter(struct json_reader *r)
{
    enum json_reader_kind kind = json_reader_kind(r);
    unsigned bit = 1U << r->depth % 8;

    if ((kind != JSON_READER_OBJECT && kind != JSON_READER_ARRAY) || r->depth == JSON_READER_DEPTH)
        return fail(r);
    r->at++;
    if (kind == JSON_READER_OBJECT)
        r->is_object[r->depth / 8] |= (unsigned char)bit;
    else
        r->is_object[r->depth / 8] &= (unsigned char)~bit;
    r->depth++;
    r->fresh = true;
    return true;
}

bool
json_reader_next(struct json_reader *r, struct buf *name)
{
    unsigned top = r->depth - 1;
    bool object = (r->is_object[top / 8] >> top % 8 & 1) != 0;
    bool fresh = r->fresh;
    int c = look_behind_blanks(r);

    r->fresh = false;
    if (c == (object ? '}' : ']')) {
        r->at++;
        r->depth--;
        return false;
    }
    if (!fresh) {
        if (c != ',')
            return fail(r);
        r->at++;
    }
    if (object) {
        look_behind_blanks(r);
        take_text(r, name);
        if (r->failed || look_behind_blanks(r) != ':')
            return fail(r);
        r->at++;
    }
    return json_reader_kind(r) != JSON_READER_NONE ? true : fail(r);
}

void
json_reader_skip(struct json_reader *r)
{
    unsigned depth = r->depth;
    double number;

    do {
        switch (json_reader_kind(r)) {
        case JSON_READER_OBJECT:
        case JSON_READER_ARRAY:
            json_reader_enter(r);
            break;
        case JSON_READER_TEXT:
            take_text(r, NULL);
            break;
        case JSON_READER_NUMBER:
            json_reader_number(r, &number);
            break;
        case JSON_READER_WORD:
            take_word(r);
            break;
        case JSON_READER_NONE:
            fail(r);
            break;
        }
        while (!r->failed && r->depth > depth && !json_reader_next(r, NULL))
            continue;
    } while (!r->failed && r->depth > depth);
}
