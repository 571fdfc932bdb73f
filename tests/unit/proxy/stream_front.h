/*
 * A front that streams, over net/, with a protocol that is not RPC: a line in is a URL. Out comes
 * the body as it arrives, by reference, in pieces: the length of each in hexadecimal on a line of
 * its own and then its bytes, and "0" on a line at the end. A failure is "!" and a sentence on a
 * line; after the first piece it closes the connection instead.
 */
#ifndef SUNPROXY_TESTS_PROXY_STREAM_FRONT_H
#define SUNPROXY_TESTS_PROXY_STREAM_FRONT_H

#include <stdatomic.h>

#include "net/server.h"
#include "proxy/proxy.h"

struct stream_front {
    struct net_server *server;
    int port;
    atomic_uint requests;  /* begun, and */
    atomic_uint ended;     /* ended; */
    atomic_uint cancelled; /* of those, exchanges that were cancelled */
};

extern struct stream_front stream_front;

void stream_front_start(struct proxy *proxy, unsigned workers);

/* All requests must have ended. */
void stream_front_stop(void);

#endif
