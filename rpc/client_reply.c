#include "rpc/client_reply.h"

#include <arpa/inet.h>
#include <string.h>

#include "rpc/decode.h"

#define MAX_VERIFIER 400u /* RFC 5531 section 8.2 */

static bool
take_u32(struct span *from, uint32_t *value)
{
    if (from->len < sizeof(*value))
        return false;
    memcpy(value, from->ptr, sizeof(*value));
    *value = ntohl(*value);
    *from = span_of(from->ptr + sizeof(*value), from->len - sizeof(*value));
    return true;
}

/* The verifier is read over: calls are made with AUTH_NONE, so there is nothing to verify. */
static bool
skip_verifier(struct span *from)
{
    uint32_t flavour, len;

    if (!take_u32(from, &flavour) || !take_u32(from, &len) || len > MAX_VERIFIER)
        return false;
    len = (len + 3) & ~3u;
    if (from->len < len)
        return false;
    *from = span_of(from->ptr + len, from->len - len);
    return true;
}

static enum rpc_client_status
decode_result(struct span bytes, xdrproc_t decode, void *result)
{
    XDR xdrs;
    bool decoded;

    if (!decode)
        return RPC_CLIENT_OK;
    rpc_decode_begin(&xdrs, bytes);
    decoded = decode(&xdrs, result);
    xdr_destroy(&xdrs);
    if (decoded)
        return RPC_CLIENT_OK;
    xdr_free(decode, result);
    return RPC_CLIENT_BAD_REPLY;
}

enum rpc_client_status
client_reply_read(struct span reply, xdrproc_t decode, void *result)
{
    uint32_t xid, type, how, status;

    if (!take_u32(&reply, &xid) || !take_u32(&reply, &type) || type != REPLY ||
        !take_u32(&reply, &how))
        return RPC_CLIENT_BAD_REPLY;
    if (how == MSG_DENIED) {
        if (take_u32(&reply, &status) && (status == RPC_MISMATCH || status == AUTH_ERROR))
            return RPC_CLIENT_DENIED;
        return RPC_CLIENT_BAD_REPLY;
    }
    if (how != MSG_ACCEPTED || !skip_verifier(&reply) || !take_u32(&reply, &status))
        return RPC_CLIENT_BAD_REPLY;
    switch (status) {
    case SUCCESS:
        return decode_result(reply, decode, result);
    case PROG_UNAVAIL:
        return RPC_CLIENT_PROG_UNAVAIL;
    case PROG_MISMATCH:
        return RPC_CLIENT_PROG_MISMATCH;
    case PROC_UNAVAIL:
        return RPC_CLIENT_PROC_UNAVAIL;
    case GARBAGE_ARGS:
        return RPC_CLIENT_GARBAGE_ARGS;
    case SYSTEM_ERR:
        return RPC_CLIENT_SYSTEM_ERR;
    default:
        return RPC_CLIENT_BAD_REPLY;
    }
}
