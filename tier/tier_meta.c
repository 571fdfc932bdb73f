#include "tier/tier_meta.h"

#include <string.h>

/* The next word of the line; empty at its end. */
static struct span
take_word(struct span *line)
{
    const char *end;
    struct span word;

    while (line->len && *line->ptr == ' ')
        *line = span_of(line->ptr + 1, line->len - 1);
    end = line->len ? memchr(line->ptr, ' ', line->len) : NULL;
    word = span_of(line->ptr, end ? (size_t)(end - line->ptr) : line->len);
    *line = span_of(line->ptr + word.len, line->len - word.len);
    return word;
}

static bool
read_number(struct span text, uint64_t *number)
{
    *number = 0;
    for (size_t i = 0; i < text.len; i++) {
        const unsigned digit = (unsigned)(text.ptr[i] - '0');

        if (digit > 9 || *number > (UINT64_MAX - digit) / 10)
            return false;
        *number = *number * 10 + digit;
    }
    return text.len != 0;
}

static bool
read_flags(struct span line, struct tier_meta *reply)
{
    struct span word;

    while ((word = take_word(&line)).len) {
        const struct span rest = span_of(word.ptr + 1, word.len - 1);

        switch (word.ptr[0]) {
        case 'c':
            if (!read_number(rest, &reply->cas))
                return false;
            break;
        case 't':
            if (!span_equal(rest, span_str("-1")) && !read_number(rest, &reply->left_s))
                return false;
            break;
        case 'W':
            reply->wins = true;
            break;
        case 'X':
            reply->is_stale = true;
            break;
        case 'Z':
            reply->waits = true;
            break;
        default:
            break;
        }
    }
    return true;
}

static bool
read_stat(struct span line, struct tier_meta *reply)
{
    const struct span name = take_word(&line);

    reply->code = TIER_META_STAT;
    return !span_equal(name, span_str("time")) || read_number(take_word(&line), &reply->time_s);
}

static const struct {
    char word[16];
    enum tier_meta_code code;
} codes[] = {
    {"HD", TIER_META_DONE},
    {"EN", TIER_META_MISS},
    {"NS", TIER_META_NOT_STORED},
    {"EX", TIER_META_EXISTS},
    {"NF", TIER_META_NOT_FOUND},
    {"MN", TIER_META_NOTHING},
    {"SERVER_ERROR", TIER_META_ERROR},
    {"END", TIER_META_END},
};

/* A line other than VA. */
static bool
read_line(struct span word, struct span line, struct tier_meta *reply)
{
    if (span_equal(word, span_str("STAT")))
        return read_stat(line, reply);
    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
        if (span_equal(word, span_str(codes[i].word))) {
            reply->code = codes[i].code;
            return reply->code == TIER_META_ERROR || read_flags(line, reply);
        }
    return false;
}

enum tier_meta_state
tier_meta_read(struct span input, struct tier_meta *reply, size_t *used)
{
    const size_t most = input.len < TIER_META_LINE ? input.len : TIER_META_LINE;
    const char *end = most ? memchr(input.ptr, '\n', most) : NULL;
    struct span line, word;
    uint64_t len;

    *used = input.len + 1;
    if (!end)
        return input.len < TIER_META_LINE ? TIER_META_MORE : TIER_META_BROKEN;
    line = span_of(input.ptr, (size_t)(end - input.ptr));
    if (!line.len || line.ptr[line.len - 1] != '\r')
        return TIER_META_BROKEN;
    line.len--;
    *reply = (struct tier_meta){.code = TIER_META_VALUE_HERE, .left_s = UINT64_MAX};
    word = take_word(&line);
    *used = (size_t)(end + 1 - input.ptr);
    if (!span_equal(word, span_str("VA")))
        return read_line(word, line, reply) ? TIER_META_READ : TIER_META_BROKEN;
    if (!read_number(take_word(&line), &len) || len > TIER_META_VALUE || !read_flags(line, reply))
        return TIER_META_BROKEN;
    reply->value = span_of(input.ptr + *used, (size_t)len);
    *used += (size_t)len + 2;
    if (*used > input.len)
        return TIER_META_MORE;
    return memcmp(input.ptr + *used - 2, "\r\n", 2) == 0 ? TIER_META_READ : TIER_META_BROKEN;
}
