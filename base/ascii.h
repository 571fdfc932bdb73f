/*
 * Classes of characters of ASCII, whatever the locale is.
 */
#ifndef SUNPROXY_BASE_ASCII_H
#define SUNPROXY_BASE_ASCII_H

#include <stdbool.h>

static inline bool
ascii_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* The value of a hexadecimal digit in either case; -1: it is none. */
static inline int
ascii_hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

#endif
