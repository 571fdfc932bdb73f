/*
 * Programs (RFC 5531 section 8): what a server dispatches calls to.
 */
#ifndef SUNPROXY_RPC_PROGRAM_H
#define SUNPROXY_RPC_PROGRAM_H

#include <rpc/rpc.h>
#include <stdint.h>

/* A version of a program and the dispatcher that rpcgen made for it. */
struct rpc_program {
    uint32_t program;
    uint32_t version;
    void (*dispatch)(struct svc_req *request, SVCXPRT *transport);
};

#endif
