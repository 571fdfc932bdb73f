/*
 * The lookup of an exchange: it is answered from the cache, joins a fetch, or begins one. For the
 * files of an exchange, on its thread.
 */
#ifndef SUNPROXY_PROXY_EXCHANGE_LOOKUP_H
#define SUNPROXY_PROXY_EXCHANGE_LOOKUP_H

#include "proxy/exchange.h"

/* True: the last call of the front has been made. */
bool exchange_look_up(struct exchange *x);

#endif
