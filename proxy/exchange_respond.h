/*
 * The calls of the front that give it the response or the failure, which are counted here. For the
 * files of an exchange, on its thread.
 */
#ifndef SUNPROXY_PROXY_EXCHANGE_RESPOND_H
#define SUNPROXY_PROXY_EXCHANGE_RESPOND_H

#include "proxy/exchange.h"

/* The object, which has its head: head() or more(). */
void exchange_respond(struct exchange *x, struct object *object, bool complete);

/* fail(), with what clients may be told of the sentence. */
void exchange_fail(struct exchange *x, enum failure why, struct span sentence);

/* Counts the response of an exchange that ends before that is complete. */
void exchange_count_response(const struct exchange *x);

/* Is it a redirect? */
bool exchange_is_redirect(const struct object *object);

/* Is it a redirect that the front follows? */
bool exchange_is_followed(const struct exchange *x, const struct object *object);

#endif
