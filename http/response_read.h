/*
 * Reads the head of a response as an origin sends it: its status line, what its fields say about
 * the framing (RFC 9112 section 6), and which of its lines go on to clients. Safe on any thread.
 *
 * A head whose framing could be read in two ways is refused, or else its response is not to be
 * stored and its connection not to be used again: other readers, libcurl among them, take the last
 * of two Content-Length fields, and "2abc" for 2.
 */
#ifndef SUNPROXY_HTTP_RESPONSE_READ_H
#define SUNPROXY_HTTP_RESPONSE_READ_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

struct http_status_line {
    unsigned version; /* 10 for HTTP/1.0, 11, 20 */
    unsigned status;  /* 100 to 999 */
};

/* "HTTP/1.1 200 OK" or "HTTP/2 200", with or without its end. False if it is something else. */
bool http_status_line_read(struct http_status_line *status, struct span line);

/* Interim responses, 204 and 304 have no body, whatever their fields say (RFC 9112 section 6.3). */
bool http_status_has_body(unsigned status);

struct http_response_head {
    struct buf fields;      /* owned: the lines that go on, each ended by CR LF */
    int64_t content_length; /* -1: not stated, or void beside a Transfer-Encoding */
    bool chunked;           /* the body comes in chunks */
    bool binds;             /* it challenges by a scheme that authenticates a connection */
    bool ambiguous;         /* both a Content-Length and a Transfer-Encoding frame the body */
};

/*
 * Reads the field lines (without the status line) as they came with a message of this status and
 * version, interim ones included: folded lines are unfolded (RFC 9112 section 5.2), blanks before
 * the colon removed (section 5.1), control characters but NUL and CR blanked out (RFC 9110
 * section 5.5), hop-by-hop fields dropped (RFC 9110 section 7.6.1), as are fields for proxies other
 * than the challenge of a 407, and a Content-Length of a response whose status forbids it (RFC 9110
 * section 8.6). One Content-Length goes on, in decimal without zeros in front. Returns NULL, or a
 * static sentence on what is malformed beyond repair, or out of memory (*no_memory set). *head is
 * to be freed in any case.
 */
const char *http_response_head_read(struct http_response_head *head,
                                    const struct http_status_line *status, struct span lines,
                                    bool *no_memory);

void http_response_head_free(struct http_response_head *head);

/*
 * Do these credentials or challenges (RFC 9110 section 11) name NTLM or Negotiate, by which a
 * connection is authenticated and not a request? Commas in quoted strings separate, too: what is
 * taken for such a scheme by mistake costs a connection.
 */
bool http_binds_connection(struct span value);

#endif
