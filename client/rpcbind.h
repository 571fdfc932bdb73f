/*
 * Lookup of a program's address with rpcbind (RFC 1833, version 3), over rpc/client.h, which has a
 * timeout and supports every address family.
 */
#ifndef SUNPROXY_CLIENT_RPCBIND_H
#define SUNPROXY_CLIENT_RPCBIND_H

#include "rpc/client.h"

#define RPCBIND_SOCKET "/run/rpcbind.sock"
#define RPCBIND_PORT 111

/*
 * The universal address of (program, version) over a transport ("tcp", "tcp6", "local"). False if
 * it is not registered or rpcbind does not answer.
 */
bool rpcbind_find(struct rpc_client *rpcbind, uint32_t program, uint32_t version, const char *netid,
                  int64_t timeout_us, char *address, size_t size);

/* The port of a universal address of tcp or tcp6, "127.0.0.1.4.210"; 0 if it has none. */
unsigned rpcbind_port(const char *address);

#endif
