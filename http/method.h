/*
 * Methods of requests by number (RFC 9110 section 9). Names are case-sensitive (section 9.1). Pure.
 */
#ifndef SUNPROXY_HTTP_METHOD_H
#define SUNPROXY_HTTP_METHOD_H

#include <stdbool.h>

#include "base/span.h"

enum http_method {
    HTTP_GET, /* also where no method is named */
    HTTP_HEAD,
    HTTP_POST,
    HTTP_PUT,
    HTTP_DELETE,
    HTTP_CONNECT,
    HTTP_OPTIONS,
    HTTP_TRACE,
    HTTP_PATCH,
    HTTP_PURGE,
    HTTP_OTHER, /* a token of which only the bytes are known */
};

/* An empty name is GET. */
enum http_method http_method_of(struct span name);

/* RFC 9110 section 9.2.1. A method that is not known may not be safe. */
static inline bool
http_method_is_safe(enum http_method method)
{
    return method == HTTP_GET || method == HTTP_HEAD || method == HTTP_OPTIONS ||
           method == HTTP_TRACE;
}

#endif
