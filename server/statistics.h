/*
 * The answer of PROXY_STAT: all metrics as pairs of name and value, encoded as one piece of bytes.
 *
 * The transport would copy its many small pieces into memory that it may be refused when replies
 * have used up their share, which is when statistics are wanted. One piece is sent from where it
 * stands, and it is charged beyond the share. Connections are read no further meanwhile, which
 * bounds the number of such answers.
 */
#ifndef SUNPROXY_SERVER_STATISTICS_H
#define SUNPROXY_SERVER_STATISTICS_H

#include <rpc/rpc.h>

#include "base/memory_account.h"

struct service;

struct statistics_answer {
    struct memory_account *memory;
    u_int len;    /* a multiple of four */
    char bytes[]; /* a proxy_stats in XDR */
};

/* With the service's current numbers, charged as a reply. NULL without memory. [any thread] */
struct statistics_answer *statistics_answer_make(struct service *service);

/* Uncharges and frees; the signature is rpc_request_hold()'s. */
void statistics_answer_free(void *answer);

#endif
