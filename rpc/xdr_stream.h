/*
 * What XDR streams of our own have in common (decode.h, gather.h): the position is x_private, the
 * bytes left to read or to fill are x_handy.
 */
#ifndef SUNPROXY_RPC_XDR_STREAM_H
#define SUNPROXY_RPC_XDR_STREAM_H

#include <rpc/rpc.h>
#include <stdint.h>

static inline void
rpc_stream_advance(XDR *xdr, u_int len)
{
    xdr->x_private = (char *)xdr->x_private + len;
    xdr->x_handy -= len;
}

/* Passes over `len` bytes that are to be read or written in place; NULL where they cannot be. */
static inline int32_t *
rpc_stream_inline(XDR *xdr, u_int len)
{
    void *here = xdr->x_private;

    if (xdr->x_handy < len || (uintptr_t)here % sizeof(int32_t) != 0)
        return NULL;
    rpc_stream_advance(xdr, len);
    return here;
}

#endif
