/*
 * What a worker of the HTTP front keeps for all of its connections. Only that worker uses it; other
 * threads read the counters of tunnels.
 */
#ifndef SUNPROXY_SERVER_HTTP_HTTP_WORKER_H
#define SUNPROXY_SERVER_HTTP_HTTP_WORKER_H

#include <sys/queue.h>

#include "base/buf.h"
#include "base/span.h"
#include "net/counter.h"
#include "net/worker.h"
#include "proxy.h"

struct http_exchange;
struct http_service;

/* Bytes of a request's fields as they go on to the origin: more than any can have. */
enum { HTTP_FIELDS_MAX = 1 << 17 };

/* What a worker counts of its tunnels. */
struct http_tunnel_counts {
    net_counter opened;
    net_counter sent_bytes;     /* to origins */
    net_counter received_bytes; /* from origins */
};

/* On cache lines of its own. */
struct http_worker {
    _Alignas(64) struct http_service *http;
    SLIST_HEAD(, http_exchange) pool;
    struct http_tunnel_counts tunnels;
    struct net_task recheck; /* of http_service_recheck_users(), */
    atomic_bool rechecks;    /* which is posted; any thread */
    unsigned uncharged; /* exchanges there are, pooled or not, that the account does not count */
    char url[PROXY_MAX_URL];  /* of the request that is started */
    char ruled_url[PROXY_MAX_URL]; /* of that request, by http_rules_apply() */
    char path[PROXY_MAX_URL]; /* of that request, by http_path_clean() */
    struct buf fields;        /* end-to-end fields of that request */
    struct span unkept;       /* head of the request that is begun, for the request database; empty
                                 once it has begun */
};

#endif
