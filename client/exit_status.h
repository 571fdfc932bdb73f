/*
 * The exit status (sysexits.h) for the answer to a call, and the name of the answer in JSON and
 * logs.
 */
#ifndef SUNPROXY_CLIENT_EXIT_STATUS_H
#define SUNPROXY_CLIENT_EXIT_STATUS_H

#include "proxy.h"
#include "rpc/client.h"

/* An HTTP status of 400 or more under --fail; curl's number for it. */
#define EXIT_HTTP_ERROR 22

/* The cache has no response that --only-if-cached allows; the first number after sysexits.h. */
#define EXIT_NOT_CACHED 79

int exit_of_rpc(enum rpc_client_status status);
int exit_of_proxy(proxy_status status);

/*
 * A sentence on why a call of version 2 was not answered by the program. For a server that serves
 * version 1 only, such as the paper's, it names the option that speaks that version.
 */
const char *rpc_status_sentence(enum rpc_client_status status);

/* "resolve_failed"; "unknown" for a status that this program does not know. */
const char *proxy_status_name(proxy_status status);

/* Likewise for a call that got no answer of the program's: "lost", "timed_out", "system_err". */
const char *rpc_status_name(enum rpc_client_status status);

/* "hit", "miss", "coalesced", "bypass", "revalidated", "stale". */
const char *proxy_source_name(proxy_source source);

#endif
