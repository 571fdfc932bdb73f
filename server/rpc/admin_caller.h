/*
 * What the procedures for administrators share: the check of their callers.
 */
#ifndef SUNPROXY_SERVER_RPC_ADMIN_CALLER_H
#define SUNPROXY_SERVER_RPC_ADMIN_CALLER_H

#include <rpc/rpc.h>

#include "server/service.h"

/* The service, for an administrator's call over the AF_UNIX socket; otherwise NULL. [worker] */
struct service *admin_service(struct svc_req *call);

/* What other callers are told. */
extern char admin_refusal[];

#endif
