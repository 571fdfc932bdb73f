/*
 * The field lines of a request that go on to its origin.
 *
 * Everything here is for the connection's worker.
 */
#ifndef SUNPROXY_SERVER_HTTP_HTTP_FIELDS_H
#define SUNPROXY_SERVER_HTTP_HTTP_FIELDS_H

#include "base/span.h"

struct http_exchange;

/*
 * Writes the field lines that go on to the origin into the worker's memory, if that has not been.
 * What a row's origin is told of scheme, host and port is what this URL has, under which the
 * response is cached.
 */
void http_fields_make(struct http_exchange *x, struct span url);

#endif
