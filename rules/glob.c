#include "rules/glob.h"

#include <stdint.h>

static char
lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool
same(char a, char b, bool any_case)
{
    return a == b || (any_case && lower(a) == lower(b));
}

/* Only the last star is tried again: what is before it was matched as early as it can be. */
static bool
matches(struct span pattern, struct span text, bool any_case)
{
    size_t at = 0, p = 0, star = SIZE_MAX, from = 0;

    while (at < text.len) {
        if (p < pattern.len && pattern.ptr[p] == '*') {
            star = p++;
            from = at;
        } else if (p < pattern.len && same(pattern.ptr[p], text.ptr[at], any_case)) {
            p++;
            at++;
        } else if (star != SIZE_MAX) {
            p = star + 1;
            at = ++from;
        } else {
            return false;
        }
    }
    while (p < pattern.len && pattern.ptr[p] == '*')
        p++;
    return p == pattern.len;
}

bool
glob_matches(struct span pattern, struct span text)
{
    return matches(pattern, text, false);
}

bool
glob_matches_any_case(struct span pattern, struct span text)
{
    return matches(pattern, text, true);
}

struct span
glob_prefix(struct span pattern)
{
    size_t n = 0;

    while (n < pattern.len && pattern.ptr[n] != '*')
        n++;
    return span_of(pattern.ptr, n);
}

struct span
glob_suffix(struct span pattern)
{
    size_t n = pattern.len;

    while (n > 0 && pattern.ptr[n - 1] != '*')
        n--;
    return span_of(pattern.ptr + n, pattern.len - n);
}
