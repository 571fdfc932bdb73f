/*
 * What a server counts of its connections.
 */
#ifndef SUNPROXY_NET_STATS_H
#define SUNPROXY_NET_STATS_H

#include <stdint.h>

#include "base/clients.h"

/* Why a connection was refused, or that it was not. */
enum net_refusal {
    NET_REFUSED_FULL,        /* over max_connections, or its reserve */
    NET_REFUSED_CLIENT,      /* over max_connections_per_client */
    NET_REFUSED_DESCRIPTORS, /* none left but those in reserve */
    NET_REFUSED_MEMORY,
    NET_REFUSALS, /* the number of reasons */
    NET_ADMITTED = NET_REFUSALS
};

/* Each counter is the sum over workers: read at any time, exact once the server has stopped. */
struct net_stats {
    uint64_t connections;       /* open now */
    uint64_t connections_total; /* ever accepted */
    uint64_t connections_refused[NET_REFUSALS];
    uint64_t connections_timed_out; /* and those closed for want of memory */
    uint64_t bytes_in;
    uint64_t bytes_out;
    struct clients_stats clients;
};

#endif
