/*
 * How an exchange waits: what wakes it, what of it outlives the front's memory, and how it leaves.
 * For the files of an exchange. On its thread except where marked.
 */
#ifndef SUNPROXY_PROXY_EXCHANGE_WAIT_H
#define SUNPROXY_PROXY_EXCHANGE_WAIT_H

#include "proxy/exchange.h"

/* What has called the front's wake(): bits of x->wakes. */
enum { WOKEN_BY_CACHE = 1, WOKEN_BY_RELAY = 2, WOKEN_BY_SOURCE = 4 };

/* The notify of an exchange's waiter. [any thread] */
void exchange_notify(struct object_waiter *waiter);

/* What the exchange has asked a source for has come. [any thread] */
void exchange_wake_by_source(struct exchange *x);

/* Makes the relay to the fetch; false with errno without memory. */
bool exchange_make_relay(struct exchange *x);

/*
 * The request outlives the front's memory for it, with this URL, or without one while the exchange
 * waits for an object that has it; and counts for its client, with as many bytes beside. False with
 * errno if it may not, or without memory.
 */
bool exchange_keep(struct exchange *x, struct span url, size_t beside);

/* It does not wait any more: its memory is not the client's. */
void exchange_uncount(struct exchange *x);

/*
 * Leaves object and relay, and will fail for this reason. True: there is no wake() whose
 * exchange_run() is still to come.
 */
bool exchange_leave(struct exchange *x, enum failure why, const char *sentence);

#endif
