/*
 * Requests with the method EXPLAIN: what would be done with a request, and why, for administrators
 * (server/explain/).
 *
 * Everything here is for the connection's worker.
 */
#ifndef SUNPROXY_SERVER_HTTP_HTTP_EXPLAIN_H
#define SUNPROXY_SERVER_HTTP_HTTP_EXPLAIN_H

#include <stdbool.h>

struct http_exchange;

bool http_explain_is_asked(const struct http_exchange *x);

/* True: the response is made. False: what is on disk is read first, and then it is sent. */
bool http_explain(struct http_exchange *x);

#endif
