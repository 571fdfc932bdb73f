/*
 * What is queued of a response at once: its head, and the part of the body that has come, by
 * reference; with chunks around it, or as parts of a multipart/byteranges.
 *
 * Everything here is for the connection's worker.
 */
#ifndef SUNPROXY_SERVER_HTTP_HTTP_OUTPUT_H
#define SUNPROXY_SERVER_HTTP_HTTP_OUTPUT_H

#include <stdbool.h>

struct http_exchange;

/* Makes the output of what can be sent; x->stream.output.count is 0 if that is nothing. True if the
 * end of the response is in it. */
bool http_output_fill(struct http_exchange *x);

#endif
