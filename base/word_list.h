/*
 * A list of words as a text: words are runs of bytes other than spaces. So the tags of an object are
 * written.
 */
#ifndef SUNPROXY_BASE_WORD_LIST_H
#define SUNPROXY_BASE_WORD_LIST_H

#include "base/span.h"

/* Takes the next word off the front of *rest; false if there is none. */
static inline bool
words_next(struct span *rest, struct span *word)
{
    const char *end;

    while (span_take_char(rest, ' '))
        ;
    if (!rest->len)
        return false;
    end = memchr(rest->ptr, ' ', rest->len);
    *word = span_of(rest->ptr, end ? (size_t)(end - rest->ptr) : rest->len);
    *rest = span_of(rest->ptr + word->len, rest->len - word->len);
    return true;
}

/* The number of words. */
static inline size_t
words_count(struct span words)
{
    struct span word;
    size_t count = 0;

    while (words_next(&words, &word))
        count++;
    return count;
}

/* Is this one of the words? */
static inline bool
words_have(struct span words, struct span word)
{
    struct span one;

    while (words_next(&words, &one))
        if (span_equal(one, word))
            return true;
    return false;
}

#endif
