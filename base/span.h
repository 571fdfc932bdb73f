/*
 * A run of bytes by pointer and length. Everything that comes from the wire travels as a span, so
 * that a zero byte is data and never an end. A span owns nothing: it is valid as long as the bytes
 * that it points at, which each function that takes or returns one states.
 */
#ifndef SUNPROXY_BASE_SPAN_H
#define SUNPROXY_BASE_SPAN_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

struct span {
    const char *ptr;
    size_t len;
};

static inline struct span
span_of(const void *ptr, size_t len)
{
    return (struct span){.ptr = ptr, .len = len};
}

/* The span of a C string, without its terminating zero byte. */
static inline struct span
span_str(const char *text)
{
    return span_of(text, strlen(text));
}

static inline bool
span_equal(struct span a, struct span b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

/* The order of the bytes, and of the lengths if one begins with the other: below, at or above 0. */
static inline int
span_compare(struct span a, struct span b)
{
    size_t common = a.len < b.len ? a.len : b.len;
    int order = common ? memcmp(a.ptr, b.ptr, common) : 0;

    return order != 0 ? order : (a.len > b.len) - (a.len < b.len);
}

static inline bool
span_starts_with(struct span s, struct span prefix)
{
    return s.len >= prefix.len && (prefix.len == 0 || memcmp(s.ptr, prefix.ptr, prefix.len) == 0);
}

/* Without the first n bytes, which it has. */
static inline struct span
span_from(struct span s, size_t n)
{
    return span_of(s.ptr + n, s.len - n);
}

/* What is before the first such byte, or all. */
static inline struct span
span_until(struct span s, char c)
{
    size_t n = 0;

    while (n < s.len && s.ptr[n] != c)
        n++;
    return span_of(s.ptr, n);
}

/* Takes this character off the front; false if another one is there, or none. */
static inline bool
span_take_char(struct span *s, char c)
{
    if (s->len == 0 || s->ptr[0] != c)
        return false;
    *s = span_of(s->ptr + 1, s->len - 1);
    return true;
}

/* Copies the bytes to `at`, where they have space; returns where they end. */
static inline char *
span_put(char *at, struct span s)
{
    if (s.len)
        memcpy(at, s.ptr, s.len);
    return at + s.len;
}

static inline bool
span_is_ascii(struct span s)
{
    for (size_t i = 0; i < s.len; i++)
        if (s.ptr[i] & 0x80)
            return false;
    return true;
}

static inline bool
span_has_zero(struct span s)
{
    return s.len != 0 && memchr(s.ptr, 0, s.len) != NULL;
}

#endif
