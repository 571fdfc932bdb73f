/*
 * What a monitoring system and a load balancer read over HTTP, on the listeners of --metrics:
 * `GET /metrics`, in OpenMetrics or Prometheus' older text format (metrics/openmetrics.h), and `GET
 * /healthz`, whose status is 200, or 503 once the daemon is being stopped. Connections persist; a
 * request with a body is refused. A listener answers any client: the operator chooses its address.
 */
#ifndef SUNPROXY_SERVER_HTTP_METRICS_HTTP_H
#define SUNPROXY_SERVER_HTTP_METRICS_HTTP_H

#include <stdatomic.h>

#include "net/protocol.h"

struct metrics;

/* The context of a listener. */
struct metrics_http {
    struct metrics *metrics;
    atomic_bool stopping; /* set by any thread */
};

extern const struct net_protocol metrics_http_protocol;

#endif
