/*
 * The first line of a request, for request_head.c: method, target and version (RFC 9112 section 3).
 */
#ifndef SUNPROXY_HTTP_REQUEST_LINE_H
#define SUNPROXY_HTTP_REQUEST_LINE_H

#include "http/request_head.h"

/* What came of reading a part of a head. */
enum http_read {
    HTTP_READ_REFUSED, /* the refusal is set */
    HTTP_READ_DONE,
    HTTP_READ_MORE, /* it goes on behind the end of the bytes */
};

/* Sets the refusal. Returns HTTP_READ_REFUSED. */
enum http_read http_refuse(struct http_refusal *refusal, unsigned status, const char *reason);

/*
 * Reads the line at *at, after at most one empty line, and moves *at behind it. Sets method, target
 * and minor version, and in absolute and authority form host, port and path.
 */
enum http_read http_request_line_read(struct http_request *request, const char **at,
                                      const char *end, uint32_t max_line,
                                      struct http_refusal *refusal);

#endif
