/*
 * The answer of PROXY_STAT: all metrics as pairs of name and value, encoded as one piece of bytes.
 *
 * The transport copies many small pieces; without a held answer, it charges the copies to the share
 * of replies and fails when that is used up, which is when statistics are wanted. One piece is sent
 * from where it is, and it is charged beyond the share. A connection whose reply waits is not read
 * while the share is used up, which bounds the number of such answers.
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

/*
 * With the service's current numbers, charged as a reply; `for_admin`: with the name of the request
 * database, too. NULL without memory. [any thread]
 */
struct statistics_answer *statistics_answer_make(struct service *service, bool for_admin);

/* Uncharges and frees; the signature is rpc_request_hold()'s. */
void statistics_answer_free(void *answer);

#endif
