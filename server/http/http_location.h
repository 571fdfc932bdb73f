/*
 * Location and Content-Location of a reverse proxy's origin: a URL that names the origin itself, as
 * it knows itself, would lead clients past the proxy.
 *
 * Everything here is for the connection's worker.
 */
#ifndef SUNPROXY_SERVER_HTTP_HTTP_LOCATION_H
#define SUNPROXY_SERVER_HTTP_HTTP_LOCATION_H

#include <stdbool.h>

#include "base/span.h"

struct http_exchange;

/* Is the request one of a reverse proxy that rewrites Location and Content-Location? */
bool http_location_is_rewritten(const struct http_exchange *x);

/* By how many bytes field lines may grow at most. */
size_t http_location_more(const struct http_exchange *x, struct span lines);

/*
 * Writes the line of such a field, with its line end, to `out`: a URL of the origin, or below it,
 * becomes a path below the prefix of the row, which the client resolves against what it has
 * requested. Returns the number of bytes.
 */
size_t http_location_write(const struct http_exchange *x, struct span line, struct span value,
                           char *out);

#endif
