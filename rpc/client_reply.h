/*
 * Reading a reply (RFC 5531 section 9): what the server says of a call, and its result. Part of
 * rpc/client.c.
 */
#ifndef SUNPROXY_RPC_CLIENT_REPLY_H
#define SUNPROXY_RPC_CLIENT_REPLY_H

#include "base/span.h"
#include "rpc/client.h"

/*
 * Reads a whole record, xid included, and decodes the result of a call that went well into `result`
 * (zeroed memory; `decode` may be NULL: nothing is decoded). For every status but RPC_CLIENT_OK
 * there is nothing to free in it.
 */
enum rpc_client_status client_reply_read(struct span reply, xdrproc_t decode, void *result);

#endif
