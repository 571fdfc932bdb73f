#include "rpc/decode.h"

#include <string.h>

#include "rpc/words.h"
#include "rpc/xdr_stream.h"

/* The bytes begin at x_base. */
static size_t
done(const XDR *xdr)
{
    return (size_t)((const char *)xdr->x_private - (const char *)xdr->x_base);
}

static bool_t
get_long(XDR *xdr, long *value)
{
    if (xdr->x_handy < sizeof(uint32_t))
        return FALSE;
    *value = (long)rpc_load_u32(xdr->x_private);
    rpc_stream_advance(xdr, sizeof(uint32_t));
    return TRUE;
}

/*
 * Everything in XDR takes a multiple of four bytes, but for a run of bytes before its padding. So
 * what is read at an odd position is padding, and libtirpc wants it in a buffer that all threads
 * share (xdr_opaque's): it is skipped.
 */
static bool_t
get_bytes(XDR *xdr, char *bytes, u_int len)
{
    if (xdr->x_handy < len)
        return FALSE;
    if (len && done(xdr) % sizeof(uint32_t) == 0)
        memcpy(bytes, xdr->x_private, len);
    rpc_stream_advance(xdr, len);
    return TRUE;
}

static u_int
get_position(XDR *xdr)
{
    return (u_int)done(xdr);
}

static bool_t
set_position(XDR *xdr, u_int where)
{
    size_t len = done(xdr) + xdr->x_handy;

    if (where > len)
        return FALSE;
    xdr->x_private = (char *)xdr->x_base + where;
    xdr->x_handy = (u_int)(len - where);
    return TRUE;
}

/* libtirpc never calls the operations that are NULL for a stream that decodes. */
static const struct xdr_ops decode_ops = {
    .x_getlong = get_long,
    .x_getbytes = get_bytes,
    .x_getpostn = get_position,
    .x_setpostn = set_position,
    .x_inline = rpc_stream_inline,
};

void
rpc_decode_begin(XDR *xdr, struct span bytes)
{
    char *begin =
        (char *)(uintptr_t)bytes.ptr; /* libtirpc's types are not const; reading only reads */

    *xdr = (XDR){
        .x_op = XDR_DECODE,
        .x_ops = &decode_ops,
        .x_private = begin,
        .x_base = begin,
        .x_handy = (u_int)bytes.len,
    };
}
