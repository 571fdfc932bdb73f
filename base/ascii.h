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

#endif
