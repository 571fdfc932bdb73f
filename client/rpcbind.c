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

/* The last two numbers of an address, each a byte of the port; where they begin, or NULL. */
static const char *
split(const char *address, unsigned *port)
{
    const char *dot = strrchr(address, '.'), *host_end;
    unsigned high, low;
    char rest;

    if (!dot || dot == address)
        return NULL;
    for (host_end = dot - 1; host_end > address && *host_end != '.'; host_end--)
        ;
    if (*host_end != '.' || sscanf(host_end, ".%3u.%3u%c", &high, &low, &rest) != 2 || high > 255 ||
        low > 255)
        return NULL;
    *port = high * 256 + low;
    return host_end;
}

unsigned
rpcbind_port(const char *address)
{
    unsigned port;

    return split(address, &port) ? port : 0;
}

bool
rpcbind_host(const char *address, char *host, size_t size)
{
    unsigned port;
    const char *end = split(address, &port);
    size_t len = end ? (size_t)(end - address) : 0;

    if (len == 0 || len >= size)
        return false;
    if ((len == 7 && memcmp(address, "0.0.0.0", 7) == 0) ||
        (len == 2 && memcmp(address, "::", 2) == 0))
        return false;
    memcpy(host, address, len);
    host[len] = '\0';
    return true;
}
