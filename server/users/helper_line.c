#include "server/users/helper_line.h"

#include <stdio.h>
#include <string.h>

/* What needs no encoding anywhere: RFC 3986 section 2.3. */
static bool
is_plain(unsigned char c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
           (c && strchr("-._~", c));
}

static char *
put_encoded(char *at, const char *text)
{
    static const char digits[] = "0123456789ABCDEF";

    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;

        if (is_plain(c)) {
            *at++ = *text;
        } else {
            *at++ = '%';
            *at++ = digits[c >> 4];
            *at++ = digits[c & 15];
        }
    }
    return at;
}

size_t
helper_line_write(char *at, unsigned channel, const char *name, const char *password)
{
    char *begin = at;

    if (channel != HELPER_NO_CHANNEL)
        at += snprintf(at, 12, "%u ", channel);
    at = put_encoded(at, name);
    *at++ = ' ';
    at = put_encoded(at, password);
    *at++ = '\n';
    return (size_t)(at - begin);
}

/* Takes the first word off, and the blanks behind it. */
static struct span
take_word(struct span *line)
{
    const char *blank = line->len ? memchr(line->ptr, ' ', line->len) : NULL;
    struct span word = span_of(line->ptr, blank ? (size_t)(blank - line->ptr) : line->len);

    *line = span_of(line->ptr + word.len, line->len - word.len);
    while (span_take_char(line, ' '))
        ;
    return word;
}

static bool
read_channel(struct span word, unsigned *channel)
{
    *channel = 0;
    for (size_t i = 0; i < word.len; i++) {
        if (word.ptr[i] < '0' || word.ptr[i] > '9')
            return false;
        *channel = 10 * *channel + (unsigned)(word.ptr[i] - '0');
    }
    return word.len > 0 && word.len < 6;
}

/* The value of message=, to the next blank, or between quotes; otherwise all. */
static struct span
find_message(struct span rest)
{
    static const char key[] = "message=";
    const char *at = rest.len ? memmem(rest.ptr, rest.len, key, sizeof(key) - 1) : NULL, *end;

    if (!at || (at > rest.ptr && at[-1] != ' '))
        return rest;
    rest = span_of(at + sizeof(key) - 1, (size_t)(rest.ptr + rest.len - at) - (sizeof(key) - 1));
    end = NULL;
    if (span_take_char(&rest, '"'))
        end = rest.len ? memchr(rest.ptr, '"', rest.len) : NULL;
    else if (rest.len)
        end = memchr(rest.ptr, ' ', rest.len);
    return end ? span_of(rest.ptr, (size_t)(end - rest.ptr)) : rest;
}

enum helper_reply
helper_line_read(struct span line, bool has_channel, unsigned *channel, struct span *message)
{
    static const char *const words[] = {"OK", "ERR", "BH"};
    struct span word;

    *message = span_of(NULL, 0);
    *channel = 0;
    if (line.len && line.ptr[line.len - 1] == '\r')
        line.len--;
    if (has_channel && !read_channel(take_word(&line), channel))
        return HELPER_REPLY_NONSENSE;
    word = take_word(&line);
    for (unsigned i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (span_equal(word, span_str(words[i]))) {
            *message = find_message(line);
            return (enum helper_reply)i;
        }
    return HELPER_REPLY_NONSENSE;
}
