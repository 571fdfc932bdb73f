/*
 * Decoding of arguments in place.
 */
#ifndef SUNPROXY_RPC_DECODE_H
#define SUNPROXY_RPC_DECODE_H

#include <rpc/rpc.h>

#include "base/span.h"

/*
 * An XDR stream that decodes bytes where they stand, which must stay. Unlike xdrmem_create()'s it
 * writes nowhere but to its destinations, and so may be used on several threads at once.
 */
void rpc_decode_begin(XDR *xdr, struct span bytes);

#endif
