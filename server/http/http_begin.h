/*
 * The beginning of a request: it is answered by an exchange of the proxy, by a page of the proxy's
 * own, by a purge, or by a tunnel.
 *
 * Everything here is for the connection's worker.
 */
#ifndef SUNPROXY_SERVER_HTTP_HTTP_BEGIN_H
#define SUNPROXY_SERVER_HTTP_HTTP_BEGIN_H

#include "http/request_head.h"

struct http_connection;
struct http_exchange;
struct http_worker;

/*
 * A request has come: answers it, now or later. `head` are the bytes of its head. False without
 * memory: the connection ends.
 */
bool http_exchange_begin(struct http_connection *connection, struct http_worker *worker,
                         const struct http_request *request, struct span head);

/* Answers a request that cannot be read with a page, after which the connection ends. */
void http_exchange_refuse(struct http_connection *connection, struct http_worker *worker,
                          const struct http_request *request, const struct http_refusal *refusal);

#endif
