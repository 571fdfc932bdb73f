/*
 * A request that has ended, as fronts describe it to the access log and the request database.
 */
#ifndef SUNPROXY_SERVER_LOGS_ACCESS_ENTRY_H
#define SUNPROXY_SERVER_LOGS_ACCESS_ENTRY_H

#include <stdint.h>

#include "base/span.h"
#include "cache/cache.h"
#include "net/peer.h"

/* Of an HTTP request. */
struct access_http {
    struct span method; /* empty: it could not be read */
    struct span target; /* as sent */
    unsigned minor;     /* of the version 1.x */
    struct span referer;
    struct span agent;
    struct span fields; /* all field lines; empty if they have not been kept */
};

/* Valid during the call that it is passed to. */
struct access_entry {
    const struct net_peer *peer;
    struct span user; /* of the forward proxy; empty: none */
    struct span url;
    const char *outcome;  /* static */
    const char *reason;   /* http_reason_word() of it; NULL or "": none; static */
    const char *protocol; /* "rpc1", "rpc2" or "http"; static */
    unsigned worker;      /* number of the calling thread */
    unsigned status;      /* 0: none */
    uint64_t bytes;
    int64_t us;
    int64_t fetch_us;   /* that a fetch for this request took; -1: it caused none */
    struct span member; /* URL of the row's member that the request was sent to; empty: none */
    struct span response; /* its field lines, as the origin has sent them; empty: none */
    struct span error; /* the reason of a failure, for the operator; empty: none */
    const struct cache_victims *victims; /* NULL: none */
    const struct access_http *http;      /* NULL: it came over RPC */
};

#endif
