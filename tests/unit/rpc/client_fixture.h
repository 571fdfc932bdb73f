/*
 * What the tests of the RPC client share: a client, the peer that it is connected to, and calls
 * whose outcomes are kept.
 */
#ifndef SUNPROXY_TESTS_RPC_CLIENT_FIXTURE_H
#define SUNPROXY_TESTS_RPC_CLIENT_FIXTURE_H

#include "rpc/client.h"
#include "tests/unit/rpc/scripted_peer.h"

#define SECOND ((int64_t)1000000)
#define MAX_REPLY 100000u

/* What a call came to, and in which place. */
struct outcome {
    u_int value; /* the result: first, so that its address is the outcome's */
    enum rpc_client_status status;
    unsigned place; /* from 1; 0: not done */
};

extern struct peer peer;
extern struct rpc_client *client;
extern unsigned places; /* how many calls are done */

/* A connection before each test, and as often as a test wants another. */
void client_set_up(void);
void client_tear_down(void);

/* A suite with a case that begins and ends so. */
Suite *client_suite(const char *name, TCase **tc);

/* The call-back of a call, with its outcome as the context. */
void note(void *context, enum rpc_client_status status, void *result);

/* Queues a call of procedure 7 of program 100, version 2. */
void call_within(struct outcome *outcome, u_int argument, int64_t timeout_us);

/* Queues a call, has it written, and returns its xid as the peer saw it. */
uint32_t call(struct outcome *outcome, u_int argument);

void run_until_done(const struct outcome *outcome);

/* The peer answers a call. */
void reply_value(uint32_t xid, uint32_t value);

#endif
