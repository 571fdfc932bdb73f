/*
 * What the metrics have of the responses over HTTP.
 *
 * Everything here is for the connection's worker.
 */
#ifndef SUNPROXY_SERVER_HTTP_HTTP_COUNT_H
#define SUNPROXY_SERVER_HTTP_HTTP_COUNT_H

#include <stdint.h>

struct http_exchange;

/* The head of the response is made: counts it by its status, and the time of a hit. */
void http_count_response(const struct http_exchange *x);

/* Counts bytes of the body that are queued. */
void http_count_bytes(const struct http_exchange *x, uint64_t bytes);

#endif
