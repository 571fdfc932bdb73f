/*
 * What the files of an exchange share: its lookups (exchange_lookup.c) end in a response, a failure
 * or a wait; exchange.c has the calls of the front and what comes after a wait. Private.
 */
#ifndef SUNPROXY_PROXY_EXCHANGE_PARTS_H
#define SUNPROXY_PROXY_EXCHANGE_PARTS_H

#include "proxy/exchange.h"

/* Requests look up, join, begin fills. True: the last call of the front has been made. */
bool exchange_look_up(struct exchange *x);

/* `object` has come as far as it has: if `complete`, this is the last call of the front. */
void exchange_respond(struct exchange *x, struct object *object, bool complete);

/* The last call of the front. */
void exchange_fail(struct exchange *x, enum failure why, struct span sentence);

/*
 * Leaves object and relay, and will fail for this reason. True: there is no wake() whose
 * exchange_run() is still to come.
 */
bool exchange_leave(struct exchange *x, enum failure why, const char *sentence);

/* Makes the relay to the fetch; false with errno without memory. */
bool exchange_make_relay(struct exchange *x);

#endif
