/* A server with limits small enough to be reached, which must serve others whatever a test does. */
#ifndef SUNPROXY_TESTS_RPC_SMALL_SERVER_H
#define SUNPROXY_TESTS_RPC_SMALL_SERVER_H

#include "tests/unit/rpc/peer.h"

extern struct tiny tiny;
extern const struct rpc_limits small;

/* Before each test, and after it: the server still serves, and no connection was cut off. */
void small_start(void);
void small_stop(void);

#endif
