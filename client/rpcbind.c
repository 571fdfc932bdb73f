#include "client/rpcbind.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rpc/rpcb_prot.h>

bool
rpcbind_find(struct rpc_client *rpcbind, uint32_t program, uint32_t version, const char *netid,
             int64_t timeout_us, char *address, size_t size)
{
    char nothing[] = "", transport[32], *found = NULL;
    struct rpcb question = {
        .r_prog = program, .r_vers = version, .r_addr = nothing, .r_owner = nothing};
    enum rpc_client_status status;
    int len = 0;

    snprintf(transport, sizeof(transport), "%s", netid);
    question.r_netid = transport;
    status =
        rpc_client_call_wait(rpcbind, RPCBPROG, RPCBVERS, RPCBPROC_GETADDR, (xdrproc_t)xdr_rpcb,
                             &question, (xdrproc_t)xdr_wrapstring, &found, timeout_us);
    if (status != RPC_CLIENT_OK)
        return false;
    if (found)
        len = snprintf(address, size, "%s", found);
    xdr_free((xdrproc_t)xdr_wrapstring, &found);
    return len > 0 && (size_t)len < size;
}

unsigned
rpcbind_port(const char *address)
{
    const char *dot = strrchr(address, '.'), *from;
    unsigned high, low;
    char rest;

    if (!dot || dot == address)
        return 0;
    /* The last two numbers are the bytes of the port; an address precedes them. */
    for (from = dot - 1; from > address && *from != '.'; from--)
        ;
    if (from == address || sscanf(from, ".%3u.%3u%c", &high, &low, &rest) != 2 || high > 255 ||
        low > 255)
        return 0;
    return high * 256 + low;
}
