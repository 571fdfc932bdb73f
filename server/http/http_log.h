/*
 * HTTP requests in the logs.
 *
 * Everything here is for the connection's worker.
 */
#ifndef SUNPROXY_SERVER_HTTP_HTTP_LOG_H
#define SUNPROXY_SERVER_HTTP_HTTP_LOG_H

struct http_exchange;

/* The status in the log if the client has closed the connection before the response. */
#define HTTP_CLIENT_CLOSED 499u

/* Logs a request; without the request itself if its head is not kept. */
void http_log_add(struct http_exchange *x);

#endif
