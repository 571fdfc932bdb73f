/*
 * Authorities and the URLs under which responses are cached (RFC 9110 section 4.2, RFC 9111 section
 * 2). One URL has one spelling where the RFC makes spellings equal without looking into the path:
 * scheme and host in lower case, no default port. Path and query stay as sent: nothing is decoded,
 * and no dot segment or slash is removed, so that what is keyed is what the origin is asked for.
 * Safe on any thread.
 */
#ifndef SUNPROXY_HTTP_TARGET_H
#define SUNPROXY_HTTP_TARGET_H

#include <stdint.h>

#include "base/span.h"

struct http_authority {
    struct span host; /* "[...]" for IPv6; as sent */
    uint16_t port;    /* 0: none stated */
};

/*
 * Reads "host" or "host:port". The host is letters, digits, "-", "." and "_", or an IPv6 address in
 * brackets without a zone; a port is 1 to 65535 in at most five digits, or empty (RFC 3986 section
 * 6.2.3). Anything else is refused: user information, a comma, escapes, an empty host.
 */
bool http_authority_read(struct span text, struct http_authority *authority);

/* 443 or 80. */
uint16_t http_default_port(bool https);

/*
 * Writes "scheme://host[:port]path" to `out`. `path` is as in struct http_request: empty or with
 * "?" at its front it gets a "/"; "*" is left out, as in the URL of OPTIONS for a whole server.
 * Returns the number of bytes, without a zero byte behind them; 0 if `size` is less than host, path
 * and HTTP_URL_EXTRA bytes together.
 */
#define HTTP_URL_EXTRA 15u /* scheme, colon, port and slash */
size_t http_write_url(char *out, size_t size, bool https, struct span host, uint16_t port,
                      struct span path);

/*
 * The URL as http_write_url() spells it, without a fragment, which is no part of what an origin is
 * asked for (RFC 9110 section 7.1). It is `url` itself, or the beginning of it, if that is spelt
 * so, and otherwise in `out`. Also `url` itself, whatever its spelling, if it is not one of http or
 * https with an authority that http_authority_read() takes, or if `size` is too small.
 */
struct span http_normal_url(struct span url, char *out, size_t size);

/*
 * The same for a text with which URLs begin. Behind a scheme and an authority alone more of the
 * authority may follow, so they are put in lower case and nothing else. With a fragment no URL
 * begins: it is `prefix` itself.
 */
struct span http_normal_prefix(struct span prefix, char *out, size_t size);

#endif
