/*
 * The head of a request as it is served, where that is not as it came: without the fields that its
 * Connection lists (http_remove_listed()), and with the bytes over 127 of its target, which RFC
 * 9112 section 3.2 does not permit and many clients send, percent-encoded as UTF-8 is in a URL (RFC
 * 3986 section 2.5). The head that is written is read again: then everything that looks at the
 * request, the keys of stored responses and the logs included, sees the same one. Safe on any
 * thread.
 */
#ifndef SUNPROXY_HTTP_REQUEST_REWRITE_H
#define SUNPROXY_HTTP_REQUEST_REWRITE_H

#include "http/request_head.h"

static inline bool
http_request_is_rewritten(const struct http_request *request)
{
    return request->listed_fields || request->raw_octets;
}

/* The bytes that a rewritten head has at most. */
size_t http_request_rewritten_size(const struct http_request *request);

/* Writes the head; returns its length. */
size_t http_request_rewrite(const struct http_request *request, char *out);

#endif
