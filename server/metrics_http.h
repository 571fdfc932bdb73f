/*
 * The metrics over HTTP, for a monitoring system: `GET /metrics` on the listeners of --metrics, in
 * OpenMetrics or Prometheus' older text format (proxy/openmetrics.h). Connections persist; a
 * request with a body is refused. A listener answers any client: the operator chooses its address.
 */
#ifndef SUNPROXY_SERVER_METRICS_HTTP_H
#define SUNPROXY_SERVER_METRICS_HTTP_H

#include "net/protocol.h"

/* The context of a listener is the struct metrics. */
extern const struct net_protocol metrics_http_protocol;

#endif
