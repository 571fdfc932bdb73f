/*
 * Writes heads of responses (RFC 9112 section 4), and short error pages, into memory of the caller.
 * Safe on any thread.
 */
#ifndef SUNPROXY_HTTP_RESPONSE_HEAD_H
#define SUNPROXY_HTTP_RESPONSE_HEAD_H

#include <stdint.h>

#include "base/span.h"

/*
 * Bytes written so far. What does not fit is left out as a whole and sets `full`, so that a run of
 * writes can be checked once at its end.
 */
struct http_writer {
    char *bytes; /* not owned */
    size_t len, size;
    bool full;
};

static inline struct http_writer
http_writer_of(char *bytes, size_t size)
{
    return (struct http_writer){.bytes = bytes, .size = size};
}

static inline void
http_write(struct http_writer *writer, struct span bytes)
{
    if (bytes.len > writer->size - writer->len) {
        writer->full = true;
        return;
    }
    if (bytes.len)
        memcpy(writer->bytes + writer->len, bytes.ptr, bytes.len);
    writer->len += bytes.len;
}

static inline void
http_write_text(struct http_writer *writer, const char *text)
{
    http_write(writer, span_str(text));
}

static inline struct span
http_written(const struct http_writer *writer)
{
    return span_of(writer->bytes, writer->len);
}

/* The reason phrase of a status; "" for one that is not registered. */
const char *http_reason(unsigned status);

/* Does the status lead to the URL in Location (RFC 9110 section 15.4)? */
static inline bool
http_status_is_redirect(unsigned status)
{
    return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

/* "HTTP/1.1 status reason" and CR LF. `status` has three digits. */
void http_write_status(struct http_writer *writer, unsigned status);

/* "name: value" and CR LF. The value is written as it is: it must have no control character. */
void http_write_field(struct http_writer *writer, const char *name, struct span value);
void http_write_number(struct http_writer *writer, const char *name, uint64_t value);

/* Its digits, behind a minus sign where it is negative. */
void http_write_integer(struct http_writer *writer, int64_t value);

/* The empty line. */
static inline void
http_write_end(struct http_writer *writer)
{
    http_write_text(writer, "\r\n");
}

/* A whole response that explains an error. */
struct http_error_page {
    unsigned status;
    struct span detail; /* a sentence for a person; may come from anywhere, is escaped and cut */
    struct span lines; /* further field lines, each ended by CR LF: Date, Allow, Cache-Status ... */
    bool html;         /* the client accepts text/html; otherwise text/plain */
    bool close;        /* the connection closes: Connection: close */
    bool no_body;      /* answers HEAD: the head alone */
};

#define HTTP_ERROR_PAGE_MAX 8192u /* enough for any page without `lines` */

/* Writes it, Content-Length and Cache-Control: no-store included. */
void http_write_error_page(struct http_writer *writer, const struct http_error_page *page);

#endif
