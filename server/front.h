/*
 * A front turns the call of one protocol version into the common request of serve.h, and the answer
 * back: front_v1.c, front_v2.c. On the request's worker.
 */
#ifndef SUNPROXY_SERVER_FRONT_H
#define SUNPROXY_SERVER_FRONT_H

#include "proxy.h"
#include "server/serve.h"

/* Bytes for a field of XDR's types, which are not const: encoding does not change them. */
static inline char *
front_bytes(struct span span)
{
    return (char *)(uintptr_t)span.ptr;
}

#endif
