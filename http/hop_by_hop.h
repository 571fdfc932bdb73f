/*
 * Which fields of a message end at the next recipient (RFC 9110 section 7.6.1), and the fields of a
 * client's request as they go on to an origin. Safe on any thread.
 */
#ifndef SUNPROXY_HTTP_HOP_BY_HOP_H
#define SUNPROXY_HTTP_HOP_BY_HOP_H

#include <stdint.h>

#include "base/buf.h"
#include "http/forwarded.h"
#include "http/request_head.h"

#define HTTP_CONNECTION_OPTIONS_MAX 64u /* a bound on the search for each field */

/* What the Connection fields of a message list. The spans point into its fields. */
struct http_connection_options {
    struct span names[HTTP_CONNECTION_OPTIONS_MAX];
    size_t count;
};

/* Adds the members of the value of one Connection field. False if they are too many. */
bool http_connection_options_add(struct http_connection_options *options, struct span value);

/*
 * Does a field of this name of a response end at the next recipient? Those that Connection lists
 * do, unless they are needed beyond it: framing, what describes the body, and what controls caches.
 * Without Cache-Control, Vary or Set-Cookie a response for one client would be stored for all.
 */
bool http_is_hop_by_hop(struct span name, const struct http_connection_options *options);

/*
 * Writes the field lines of a request without those that its Connection fields list (RFC 9110
 * section 7.6.1) to `out`, which has at least as many bytes and is no part of them; returns their
 * length. Nothing that is done with the request may see the others: neither the origin nor what
 * selects a stored response. So a field that the client lists is as good as not sent.
 *
 * Kept are those whose removal would make it another message for the origin than for a proxy that
 * has checked it (framing, Host, what describes the body), the fields of this connection, such as
 * Upgrade, which Connection has to list, Via and Max-Forwards, which end loops, and what trusted
 * proxies state about the client (Forwarded, X-Forwarded-*), which a client could
 * otherwise have removed. Nothing is removed if Connection lists too many.
 */
size_t http_remove_listed(struct span fields, char *out);

/* What a proxy says about the way of a request. Empty spans: not added. */
struct http_forwarding {
    enum http_method method;
    bool has_body;      /* without one Content-Encoding is left out */
    struct span via;    /* a member of Via (RFC 9110 section 7.6.3): "1.1 sunproxy" */
    struct span for_;   /* X-Forwarded-For: an address */
    struct span proto;  /* X-Forwarded-Proto */
    struct span host;   /* X-Forwarded-Host: a host, and a port if it has one */
    struct span sender; /* Forwarded (RFC 7239): the address of a node, with proto and host */
    /*
     * The field whose members in the request go on, in front of what is added to it: all of
     * X-Forwarded-For, and of Forwarded those in `way`, since the others may state any scheme and
     * host, which are not those of the URL.
     */
    enum http_way_field chain;
    const struct http_way *way; /* of the request, if the chain is Forwarded */
    int64_t max_forwards; /* the new value of Max-Forwards (http_max_forwards()); -1: as it is */
};

/*
 * Appends to `out` the lines of a request that go on to the origin, each ended by CR LF; the
 * fetcher accepts all of them, and those that Connection lists have been removed
 * (http_remove_listed()). Left out: hop-by-hop fields; Host, Content-Length and Expect, which the
 * fetcher sets; Proxy and Proxy-*, which libraries of CGI programs obey; what the client says about
 * its way and address (X-Forwarded-*, Forwarded, X-Real-IP), for which `forwarding` has the truth,
 * but for `chain`; and with GET and HEAD, fields that make some origins answer for another method
 * or URL than the one that is cached. A name with other punctuation than "-" is treated as the one
 * with "-", which CGI does not tell apart, and so is left out where caching depends on the field.
 *
 * False if there is no memory.
 */
bool http_forward_fields(struct buf *out, struct span fields,
                         const struct http_forwarding *forwarding);

/*
 * The value of Max-Forwards, which counts with OPTIONS and TRACE (RFC 9110 section 7.6.2): 0 means
 * that the proxy responds itself, otherwise it forwards with one less. -1 if there is none, or none
 * that is a number. A number over INT64_MAX counts as that.
 */
int64_t http_max_forwards(struct span fields);

/*
 * Is `pseudonym` the received-by of a member of Via? Then the request has been here before
 * (RFC 9110 section 7.6.3).
 */
bool http_via_has(struct span fields, struct span pseudonym);

#endif
