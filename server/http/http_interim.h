/*
 * Interim responses (RFC 9110, section 15.2): those of an origin, and 100 (Continue), which the
 * proxy sends by itself. Each is output of its own in front of the response, and is dropped if
 * there is no memory for it.
 *
 * Everything here is for the connection's worker.
 */
#ifndef SUNPROXY_SERVER_HTTP_HTTP_INTERIM_H
#define SUNPROXY_SERVER_HTTP_HTTP_INTERIM_H

#include "base/span.h"

struct http_stream;

/* Sends an interim response with these field lines, if there is memory for it. */
void http_interim_send(struct http_stream *stream, unsigned status, struct span lines);

#endif
