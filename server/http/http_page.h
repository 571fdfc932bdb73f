/*
 * Responses of the proxy's own.
 *
 * Everything here is for the connection's worker.
 */
#ifndef SUNPROXY_SERVER_HTTP_HTTP_PAGE_H
#define SUNPROXY_SERVER_HTTP_HTTP_PAGE_H

#include <stdint.h>

#include "base/span.h"
#include "http/response_head.h"

struct http_exchange;

enum { HTTP_PAGE_LINES = 2304 }; /* of a page, beside those that each one has */

/* A response of the proxy's own. */
struct http_page {
    unsigned status;
    struct span reason; /* a sentence for a person */
    const char *detail; /* for Cache-Status (RFC 9211, section 2.8), a token; NULL: none */
    struct span lines;  /* further field lines */
    bool empty;         /* without a body */
    /* Of a body that is not made: its Content-Type, and the bytes, which stay until the exchange
     * has ended. Without a type it states the reason. */
    const char *type;
    struct span body;
};

/* Writes the field Date. */
void http_write_date(struct http_writer *writer, int64_t seconds);

/* Makes a whole response with a short page that states the reason. */
void http_page_make(struct http_exchange *x, const struct http_page *page);

#endif
