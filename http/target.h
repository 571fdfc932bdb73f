/*
 * Authorities and the URLs under which responses are cached (RFC 9110 section 4.2, RFC 9111 section
 * 2). One URL has one spelling where the RFC makes spellings equal without looking into the path:
 * scheme and host in lower case, no default port, no dot behind the host, IPv6 as RFC 5952 writes
 * it. Path and query stay as sent: nothing is decoded, and no dot segment or slash is removed, so
 * that what is keyed is what the origin is asked for. Safe on any thread.
 */
#ifndef SUNPROXY_HTTP_TARGET_H
#define SUNPROXY_HTTP_TARGET_H

#include <stdint.h>

#include "base/span.h"

struct http_authority {
    struct span host; /* "[...]" for IPv6; as sent, but without a dot at its end */
    uint16_t port;    /* 0: none stated */
};

/*
 * Reads "host" or "host:port". The host is labels of letters, digits, "-" and "_" with dots between
 * them, or an IPv6 address in brackets without a zone; a port is 1 to 65535 in at most five digits,
 * or empty (RFC 3986 section 6.2.3). Anything else is refused: user information, a comma, escapes,
 * an empty host or label. So is a host whose last label is a number, also one in hexadecimal digits
 * behind "0x", unless it is four decimal numbers (RFC 3986 section 7.4: some programs read others
 * as IPv4 addresses).
 */
bool http_authority_read(struct span text, struct http_authority *authority);

/* Are the hosts of two authorities equal: in any case, IPv6 addresses in any spelling? */
bool http_same_host(struct span a, struct span b);

/*
 * The length of the scheme with which a reference begins (RFC 3986 section 3.1), without the ":"
 * behind it; 0: it begins with none.
 */
size_t http_scheme_length(struct span reference);

/* Takes "http://" or "https://" in any case off the front. False, and nothing is taken, if the text
 * begins with neither. */
bool http_take_scheme(struct span *rest, bool *https);

/* 443 or 80. */
uint16_t http_default_port(bool https);

/*
 * Writes "scheme://host[:port]path" to `out`. `path` is as in struct http_request: empty or with
 * "?" at its front it gets a "/"; "*" is left out, as in the URL of OPTIONS for a whole server.
 * Returns the number of bytes, without a zero byte behind them; 0 if `size` is less than host, as
 * it is written, path and HTTP_URL_EXTRA bytes together.
 */
#define HTTP_URL_EXTRA 15u /* scheme, colon, port and slash */
#define HTTP_HOST_EXTRA 6u /* by which RFC 5952 may be longer: "::ffff:192.0.2.1" */
size_t http_write_url(char *out, size_t size, bool https, struct span host, uint16_t port,
                      struct span path);

/*
 * The URL as http_write_url() spells it, without a fragment, which is no part of what an origin is
 * asked for (RFC 9110 section 7.1). It is `url` itself, or the beginning of it, if that is spelt
 * so, and otherwise in `out`. Without a pointer if it is not one of http or https with an authority
 * that http_authority_read() takes, or if `size` is too small.
 */
struct span http_normal_url(struct span url, char *out, size_t size);

/*
 * The same for a text with which URLs begin. Behind a scheme and an authority alone more of the
 * authority may follow, so they are put in lower case and nothing else. With a fragment no URL
 * begins: it is `prefix` itself. Without a pointer as above, if the authority is complete.
 */
struct span http_normal_prefix(struct span prefix, char *out, size_t size);

#endif
