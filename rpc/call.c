#include "rpc/call.h"

#include "rpc/words.h"

#define RPC_VERSION 2

/* RFC 5531, section 8.2 and appendix A. */
enum { MAX_AUTH = 400, MAX_MACHINE = 255, MAX_GIDS = 16 };

/* Takes a word off the front; false when there is none. */
static bool
take_u32(struct span *s, uint32_t *value)
{
    if (s->len < sizeof(*value))
        return false;
    *value = rpc_load_u32(s->ptr);
    s->ptr += sizeof(*value);
    s->len -= sizeof(*value);
    return true;
}

/* Takes `len` bytes and their padding. */
static bool
take_opaque(struct span *s, uint32_t len, const char **bytes)
{
    size_t padded = ((size_t)len + 3) & ~(size_t)3;

    if (s->len < padded)
        return false;
    *bytes = s->ptr;
    s->ptr += padded;
    s->len -= padded;
    return true;
}

static bool
take_auth(struct span *s, struct opaque_auth *auth)
{
    uint32_t flavour, len;
    const char *bytes;

    if (!take_u32(s, &flavour) || !take_u32(s, &len) || len > MAX_AUTH ||
        !take_opaque(s, len, &bytes))
        return false;
    auth->oa_flavor = (enum_t)flavour;
    auth->oa_base = (caddr_t)(uintptr_t)bytes;
    auth->oa_length = len;
    return true;
}

/* authsys_parms, the whole of the credential (RFC 5531, appendix A). */
static bool
parse_auth_sys(const struct opaque_auth *auth, struct rpc_cooked *cooked)
{
    struct span s = span_of(auth->oa_base, auth->oa_length);
    uint32_t stamp, name_len, uid, gid, gid_count;
    const char *name;

    if (!take_u32(&s, &stamp) || !take_u32(&s, &name_len) || name_len > MAX_MACHINE ||
        !take_opaque(&s, name_len, &name) || !take_u32(&s, &uid) || !take_u32(&s, &gid) ||
        !take_u32(&s, &gid_count) || gid_count > MAX_GIDS || s.len != gid_count * sizeof(uint32_t))
        return false;
    memcpy(cooked->machine, name, name_len);
    cooked->machine[name_len] = '\0';
    for (uint32_t i = 0; i < gid_count; i++)
        cooked->gids[i] = rpc_load_u32(s.ptr + i * sizeof(uint32_t));
    cooked->parms = (struct authunix_parms){
        .aup_time = stamp,
        .aup_machname = cooked->machine,
        .aup_uid = uid,
        .aup_gid = gid,
        .aup_len = gid_count,
        .aup_gids = cooked->gids,
    };
    return true;
}

enum rpc_call_status
rpc_call_parse(struct span record, struct rpc_call *call, struct rpc_cooked *cooked)
{
    struct span s = record;
    struct opaque_auth verifier;
    uint32_t direction, rpcvers;

    call->cooked = false;
    if (!take_u32(&s, &call->xid) || !take_u32(&s, &direction) || direction != CALL ||
        !take_u32(&s, &rpcvers))
        return RPC_CALL_NONE;
    if (rpcvers != RPC_VERSION)
        return RPC_CALL_RPCVERS;
    if (!take_u32(&s, &call->program) || !take_u32(&s, &call->version) ||
        !take_u32(&s, &call->procedure))
        return RPC_CALL_NONE;
    if (!take_auth(&s, &call->credential))
        return RPC_CALL_BAD_CRED;
    if (!take_auth(&s, &verifier))
        return RPC_CALL_BAD_VERF;
    switch (call->credential.oa_flavor) {
    case AUTH_NONE:
        break;
    case AUTH_SYS:
        if (!parse_auth_sys(&call->credential, cooked))
            return RPC_CALL_BAD_CRED;
        call->cooked = true;
        break;
    default:
        return RPC_CALL_REJECTED_CRED;
    }
    call->arguments = s;
    return RPC_CALL_OK;
}
