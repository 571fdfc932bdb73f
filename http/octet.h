/*
 * Classes of octets in HTTP messages, for one look-up each.
 */
#ifndef SUNPROXY_HTTP_OCTET_H
#define SUNPROXY_HTTP_OCTET_H

#include <stdbool.h>

enum http_octet {
    HTTP_OCTET_TOKEN = 1,  /* RFC 9110 section 5.6.2 */
    HTTP_OCTET_TARGET = 2, /* visible ASCII but "#": what a request target may have */
    HTTP_OCTET_HOST = 4,   /* letters, digits, "-", "." and "_" */
    HTTP_OCTET_VALUE = 8,  /* space, tab, visible, and all over 127: RFC 9110 section 5.5 */
    HTTP_OCTET_DIGIT = 16,
};

extern const unsigned char http_octets[256];

static inline bool
http_octet_is(char c, enum http_octet octet_class)
{
    return http_octets[(unsigned char)c] & octet_class;
}

#endif
