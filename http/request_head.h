/*
 * Heads of HTTP/1.x requests (RFC 9112 sections 2 to 7), read strictly: a message has one
 * interpretation, or it is refused and the connection closed (section 11.2). Everything is a span
 * of the bytes given; nothing is copied or allocated. Safe on any thread.
 *
 * Refused although the RFC permits to repair it: a bare LF, a folded line, two equal
 * Content-Lengths, Content-Length beside Transfer-Encoding, Transfer-Encoding in HTTP/1.0, empty
 * members in Transfer-Encoding, more than one space in the request line, a second empty line before
 * it, any control character in a value.
 */
#ifndef SUNPROXY_HTTP_REQUEST_HEAD_H
#define SUNPROXY_HTTP_REQUEST_HEAD_H

#include <stdint.h>

#include "base/span.h"
#include "http/method.h"

/* RFC 9112 section 3.2. */
enum http_target_form {
    HTTP_ORIGIN_FORM,    /* "/path?query" */
    HTTP_ABSOLUTE_FORM,  /* "http://host/path" */
    HTTP_AUTHORITY_FORM, /* "host:port", with CONNECT only */
    HTTP_ASTERISK_FORM,  /* "*", with OPTIONS only */
};

/* Fields that a request has, whatever their value, so that a hit need not search for them. */
enum http_request_field {
    HTTP_HAS_HOST = 1u << 0,
    HTTP_HAS_CONTENT_LENGTH = 1u << 1,
    HTTP_HAS_TRANSFER_ENCODING = 1u << 2,
    HTTP_HAS_CONNECTION = 1u << 3,
    HTTP_HAS_TE = 1u << 4,
    HTTP_HAS_EXPECT = 1u << 5,
    HTTP_HAS_UPGRADE = 1u << 6,
    HTTP_HAS_RANGE = 1u << 7,
    HTTP_HAS_IF_RANGE = 1u << 8,
    HTTP_HAS_IF_MATCH = 1u << 9,
    HTTP_HAS_IF_NONE_MATCH = 1u << 10,
    HTTP_HAS_IF_MODIFIED_SINCE = 1u << 11,
    HTTP_HAS_IF_UNMODIFIED_SINCE = 1u << 12,
    HTTP_HAS_CACHE_CONTROL = 1u << 13,
    HTTP_HAS_PRAGMA = 1u << 14,
    HTTP_HAS_AUTHORIZATION = 1u << 15,
    HTTP_HAS_COOKIE = 1u << 16,
    HTTP_HAS_ACCEPT_ENCODING = 1u << 17,
    HTTP_HAS_MAX_FORWARDS = 1u << 18,
    HTTP_HAS_TRAILER = 1u << 19,
    HTTP_HAS_VIA = 1u << 20,
    HTTP_HAS_PEER = 1u << 21, /* Proxy-Peer, between daemons (origins/peer_auth.h) */
};

#define HTTP_HAS_CONDITION                                                     \
    (HTTP_HAS_IF_MATCH | HTTP_HAS_IF_NONE_MATCH | HTTP_HAS_IF_MODIFIED_SINCE | \
     HTTP_HAS_IF_UNMODIFIED_SINCE | HTTP_HAS_IF_RANGE)

/* Spans point into the head, unless stated otherwise. */
struct http_request {
    struct span method;
    enum http_method method_id;
    enum http_target_form form;
    bool https;         /* the scheme of the absolute form; otherwise false */
    uint16_t port;      /* stated by the target or Host; 0: none */
    uint16_t minor;     /* of the version: 0 or 1. Higher ones are treated as 1 */
    struct span target; /* as sent */
    uint32_t raw_octets; /* bytes over 127 in it, which http_request_rewrite() encodes */
    /*
     * Without the port, as sent (compare without regard to case); "[...]" for IPv6. From the target
     * in absolute and authority form, else from Host; empty only in HTTP/1.0 without Host.
     */
    struct span host;
    /*
     * Path and query as sent. It begins with "/", or with "?" where the absolute form has a query
     * and no path ("/" comes first then, see http_write_url()). "*" in asterisk form and for
     * OPTIONS in absolute form without path and query (RFC 9112 section 3.2.4). Empty in authority
     * form.
     * "/" in static memory where the absolute form has neither.
     */
    struct span path;
    struct span fields; /* field lines as sent, each ended by CR LF; not the empty line */
    size_t head_len;    /* bytes of the head: what follows is body, or the next request */
    uint32_t has;       /* of enum http_request_field */
    uint32_t field_count;
    uint32_t connection_options; /* members that its Connection fields list */
    uint32_t listed_fields;      /* of those, names of fields that do not end here in any case */
    /* RFC 9112 section 6.3: without either of these two there is no body. */
    int64_t content_length; /* -1: none stated */
    bool chunked;
    /*
     * The client expects the connection to persist (RFC 9112 section 9.3). In HTTP/1.0 it does with
     * "keep-alive" and an origin-form target: a forward proxy must not keep such a connection.
     */
    bool persistent;
    bool expects_continue; /* RFC 9110 section 10.1.1; never in HTTP/1.0 */
    /*
     * The value of Upgrade: one line, listed in Connection, in HTTP/1.1, without HTTP/2 (h2c).
     * Empty if there is nothing that could be switched to (RFC 9110 section 7.8).
     */
    struct span upgrade;
};

/* The bit of a field of this name; 0: it has none. */
uint32_t http_request_field_of(struct span name);

/* Bytes include the line ends. A request line longer than its limit is 414, other excess 431. */
struct http_head_limits {
    uint32_t max_bytes; /* of the head; also bounds the search for its end */
    uint32_t max_line;  /* of the request line; at most max_bytes */
    uint32_t max_fields;
};

/* 65,536 bytes, 16,384 for the request line, 200 fields. */
void http_head_limits_default(struct http_head_limits *limits);

/* Why a request is refused. The connection closes after the response, in every case. */
struct http_refusal {
    unsigned status;    /* 400, 411, 414, 417, 431, 501 or 505 */
    const char *reason; /* a static sentence part for a person, "a field name is not a token" */
};

enum http_head_step {
    HTTP_HEAD_PARTIAL,  /* call again with more bytes */
    HTTP_HEAD_COMPLETE, /* *request is set */
    HTTP_HEAD_REFUSED, /* *refusal is set; *request has what could be read, and is for logs alone */
};

/*
 * Reads the head with which `input` begins, after at most one empty line (RFC 9112 section 2.2).
 * *searched is 0 at the first call for a head. The function then keeps in it how far the end has
 * been searched: the next call passes the same bytes (they may have moved) and more behind them, so
 * that the work is proportional to the bytes however they arrive.
 */
enum http_head_step http_request_head_read(struct http_request *request, struct span input,
                                           size_t *searched, const struct http_head_limits *limits,
                                           struct http_refusal *refusal);

/* The head that was read stands at `to` now: the spans that point into it do so there. */
void http_request_move(struct http_request *request, struct span head, const char *to);

/*
 * Is a body framed? One of zero bytes counts, but for GET and HEAD, for which "Content-Length: 0"
 * states that there is none (RFC 9110 sections 8.6 and 9.3.1).
 */
static inline bool
http_request_has_body(const struct http_request *request)
{
    bool needs_bytes = request->method_id == HTTP_GET || request->method_id == HTTP_HEAD;

    return request->chunked || request->content_length >= (needs_bytes ? 1 : 0);
}

/* Is it OPTIONS for the server as a whole and not for a resource (RFC 9110 section 9.3.7)? */
static inline bool
http_request_is_for_server(const struct http_request *request)
{
    return request->method_id == HTTP_OPTIONS && request->path.len == 1 &&
           request->path.ptr[0] == '*';
}

#endif
