#include "client/exit_status.h"

#include <sysexits.h>

/* By status, in the order of enum proxy_status. */
static const struct {
    const char *name;
    int status;
} proxy_statuses[] = {
    [PROXY_OK] = {"ok", EX_OK},
    [PROXY_BAD_URL] = {"bad_url", EX_USAGE},
    [PROXY_BAD_HEADERS] = {"bad_headers", EX_USAGE},
    [PROXY_DENIED] = {"denied", EX_NOPERM},
    [PROXY_RESOLVE_FAILED] = {"resolve_failed", EX_NOHOST},
    [PROXY_CONNECT_FAILED] = {"connect_failed", EX_PROTOCOL},
    [PROXY_TLS_FAILED] = {"tls_failed", EX_PROTOCOL},
    [PROXY_TIMED_OUT] = {"timed_out", EX_TEMPFAIL},
    [PROXY_ORIGIN_BROKE] = {"origin_broke", EX_PROTOCOL},
    [PROXY_TOO_LARGE] = {"too_large", EX_PROTOCOL},
    [PROXY_BAD_REDIRECT] = {"bad_redirect", EX_PROTOCOL},
    [PROXY_OVERLOADED] = {"overloaded", EX_TEMPFAIL},
    [PROXY_STOPPING] = {"stopping", EX_TEMPFAIL},
    [PROXY_INTERNAL] = {"internal", EX_SOFTWARE},
    [PROXY_BAD_VALUE] = {"bad_value", EX_USAGE},
    [PROXY_NO_OBJECT] = {"no_object", EX_TEMPFAIL},
    [PROXY_PURGED_HERE] = {"purged_here", EX_TEMPFAIL},
    [PROXY_PURGED_MORE] = {"purged_more", EX_OK},
};

#define KNOWN(status) ((size_t)(status) < sizeof(proxy_statuses) / sizeof(proxy_statuses[0]))

static const struct {
    const char *name;
    int status;
} rpc_statuses[] = {
    [RPC_CLIENT_OK] = {"ok", EX_OK},
    [RPC_CLIENT_NO_MEMORY] = {"no_memory", EX_SOFTWARE},
    [RPC_CLIENT_UNREACHABLE] = {"unreachable", EX_UNAVAILABLE},
    [RPC_CLIENT_LOST] = {"lost", EX_UNAVAILABLE},
    [RPC_CLIENT_TIMED_OUT] = {"timed_out", EX_TEMPFAIL},
    [RPC_CLIENT_PROG_UNAVAIL] = {"prog_unavail", EX_UNAVAILABLE},
    [RPC_CLIENT_PROG_MISMATCH] = {"prog_mismatch", EX_UNAVAILABLE},
    [RPC_CLIENT_PROC_UNAVAIL] = {"proc_unavail", EX_UNAVAILABLE},
    [RPC_CLIENT_GARBAGE_ARGS] = {"garbage_args", EX_USAGE},
    [RPC_CLIENT_SYSTEM_ERR] = {"system_err", EX_PROTOCOL},
    [RPC_CLIENT_DENIED] = {"denied", EX_NOPERM},
    [RPC_CLIENT_BAD_REPLY] = {"bad_reply", EX_PROTOCOL},
};

int
exit_of_rpc(enum rpc_client_status status)
{
    return rpc_statuses[status].status;
}

const char *
rpc_status_name(enum rpc_client_status status)
{
    return rpc_statuses[status].name;
}

const char *
rpc_status_sentence(enum rpc_client_status status)
{
    if (status == RPC_CLIENT_PROG_MISMATCH)
        return "the server does not serve version 2 of the protocol; 'sunproxy get --api 1' "
               "uses version 1";
    return rpc_client_strstatus(status);
}

int
exit_of_proxy(proxy_status status)
{
    return KNOWN(status) ? proxy_statuses[status].status : EX_PROTOCOL;
}

const char *
proxy_status_name(proxy_status status)
{
    return KNOWN(status) ? proxy_statuses[status].name : "unknown";
}

const char *
proxy_source_name(proxy_source source)
{
    static const char *const names[] = {"hit",    "miss",        "coalesced",
                                        "bypass", "revalidated", "stale"};

    return (size_t)source < sizeof(names) / sizeof(names[0]) ? names[source] : "unknown";
}
