/*
 * The header of a call, parsed by hand: libtirpc's xdr_callmsg() and _authenticate() refuse what
 * RFC 5531 wants answered, and read past the end of a malformed AUTH_SYS credential.
 */
#ifndef SUNPROXY_RPC_CALL_H
#define SUNPROXY_RPC_CALL_H

#include <rpc/rpc.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/span.h"

/* AUTH_SYS credentials, cooked (RFC 5531, appendix A), as svc_req's rq_clntcred gives them. */
struct rpc_cooked {
    struct authunix_parms parms;
    char machine[256];
    gid_t gids[16];
};

struct rpc_call {
    uint32_t xid;
    uint32_t program;
    uint32_t version;
    uint32_t procedure;
    struct opaque_auth credential; /* points into the record */
    bool cooked;                   /* AUTH_SYS: the caller's rpc_cooked is filled in */
    struct span arguments;         /* points into the record */
};

enum rpc_call_status {
    RPC_CALL_OK,
    RPC_CALL_NONE,         /* no call, or cut off in its header: no answer is possible */
    RPC_CALL_RPCVERS,      /* answer RPC_MISMATCH */
    RPC_CALL_BAD_CRED,     /* answer AUTH_ERROR: AUTH_BADCRED, */
    RPC_CALL_BAD_VERF,     /* AUTH_BADVERF, */
    RPC_CALL_REJECTED_CRED /* AUTH_REJECTEDCRED */
};

/* Parses the header of a call message. xid is set for every status but RPC_CALL_NONE. */
enum rpc_call_status rpc_call_parse(struct span record, struct rpc_call *call,
                                    struct rpc_cooked *cooked);

#endif
