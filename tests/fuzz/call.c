/*
 * A call message (RFC 5531 section 9): its header, its credential, and the arguments of every
 * procedure, decoded as rpcgen's dispatchers do. What decodes is encoded again and must decode to
 * the same bytes.
 */
#include "proxy.h"
#include "rpc/call.h"
#include "rpc/decode.h"
#include "tests/fuzz/fuzz.h"

static const struct procedure {
    uint32_t version, procedure;
    xdrproc_t decode;
    size_t size;
} procedures[] = {
    {PROXY_FETCHVERS, PROXY_FETCH, (xdrproc_t)xdr_wrapstring, sizeof(char *)},
    {PROXY_VERS2, PROXY_GET, (xdrproc_t)xdr_proxy_fetch_args, sizeof(proxy_fetch_args)},
    {PROXY_VERS2, PROXY_PURGE, (xdrproc_t)xdr_proxy_purge_args, sizeof(proxy_purge_args)},
    {PROXY_VERS2, PROXY_SET, (xdrproc_t)xdr_proxy_set_args, sizeof(proxy_set_args)},
    {PROXY_VERS2, PROXY_PURGE_PREVIEW, (xdrproc_t)xdr_proxy_purge_args, sizeof(proxy_purge_args)},
    {PROXY_VERS2, PROXY_SET_PREVIEW, (xdrproc_t)xdr_proxy_set_args, sizeof(proxy_set_args)},
    {PROXY_VERS2, PROXY_READ, (xdrproc_t)xdr_proxy_read_args, sizeof(proxy_read_args)},
    {PROXY_VERS2, PROXY_ORIGIN, (xdrproc_t)xdr_proxy_origin_args, sizeof(proxy_origin_args)},
    {PROXY_VERS2, PROXY_EXPLAIN, (xdrproc_t)xdr_proxy_explain_args, sizeof(proxy_explain_args)},
    {PROXY_VERS2, PROXY_RELEASE, (xdrproc_t)xdr_proxy_object, sizeof(proxy_object)},
};

union arguments {
    char *url;
    proxy_fetch_args fetch;
    proxy_purge_args purge;
    proxy_set_args set;
    proxy_read_args read;
    proxy_object object;
    proxy_origin_args origin;
    proxy_explain_args explain;
};

/* Encodes into a fresh copy, to be freed; its length in *len. */
static char *
encode(const struct procedure *p, union arguments *arguments, u_int *len)
{
    u_int capacity = (u_int)xdr_sizeof(p->decode, arguments);
    char *bytes = malloc(capacity ? capacity : 1);
    XDR xdr;

    FUZZ_CHECK(bytes);
    xdrmem_create(&xdr, bytes, capacity, XDR_ENCODE);
    FUZZ_CHECK(p->decode(&xdr, arguments));
    *len = xdr_getpos(&xdr);
    return bytes;
}

static void
check_arguments(const struct procedure *p, struct span bytes)
{
    union arguments arguments = {0}, again = {0};
    char *once, *twice;
    u_int once_len, twice_len;
    XDR xdr;

    rpc_decode_begin(&xdr, bytes);
    if (p->decode(&xdr, &arguments)) {
        once = encode(p, &arguments, &once_len);
        rpc_decode_begin(&xdr, span_of(once, once_len));
        FUZZ_CHECK(p->decode(&xdr, &again));
        twice = encode(p, &again, &twice_len);
        FUZZ_CHECK(once_len == twice_len && memcmp(once, twice, once_len) == 0);
        xdr_free(p->decode, &again);
        free(once);
        free(twice);
    }
    xdr_free(p->decode, &arguments);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct span record = span_of(data, size);
    struct rpc_cooked cooked;
    struct rpc_call call = {0};

    if (rpc_call_parse(record, &call, &cooked) != RPC_CALL_OK)
        return 0;
    FUZZ_CHECK(call.arguments.len <= record.len);
    FUZZ_CHECK(call.credential.oa_length <= MAX_AUTH_BYTES);
    if (call.cooked) {
        FUZZ_CHECK(strlen(cooked.machine) < sizeof(cooked.machine));
        FUZZ_CHECK(cooked.parms.aup_len <= sizeof(cooked.gids) / sizeof(cooked.gids[0]));
    }
    for (size_t i = 0; i < sizeof(procedures) / sizeof(procedures[0]); i++)
        if (procedures[i].version == call.version && procedures[i].procedure == call.procedure)
            check_arguments(&procedures[i], call.arguments);
    return 0;
}
