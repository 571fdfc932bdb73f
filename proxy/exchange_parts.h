/*
 * What the files of an exchange share: exchange.c has the calls of the front and what comes after a
 * wait, exchange_lookup.c the lookups, which end in a response, a failure or a wait, and
 * exchange_answer.c those. Private.
 */
#ifndef SUNPROXY_PROXY_EXCHANGE_PARTS_H
#define SUNPROXY_PROXY_EXCHANGE_PARTS_H

#include "http/storing.h"
#include "proxy/exchange.h"
#include "proxy/range_rules.h"
#include "proxy/user_rules.h"

/* The fields of the request, made where they were left for later. */
static inline struct span
exchange_fields(struct exchange *x)
{
    if (x->fields_later) {
        x->fields_later = false;
        x->front->fields(x);
    }
    return x->fields;
}

/* Does the request say which user sends it (proxy/user_rules.h)? */
static inline bool
exchange_is_of_user(struct exchange *x)
{
    return x->raw && x->proxy->config.follows_http &&
           (x->lacks & USER_RULES_FIELDS) != USER_RULES_FIELDS &&
           http_credentials_of(exchange_fields(x)) != 0;
}

/* ---- exchange_lookup.c ----------------------------------------------------------------------- */

/* Requests look up, join, begin fills. True: the last call of the front has been made. */
bool exchange_look_up(struct exchange *x);

/* ---- exchange_answer.c ----------------------------------------------------------------------- */

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

/* What has called the front's wake(): bits of exchange->wakes. */
enum { WOKEN_BY_CACHE = 1, WOKEN_BY_RELAY = 2 };

/* The waiter's notify(). */
void exchange_wake_by_cache(struct object_waiter *waiter);

/* It does not wait any more: its memory is not the client's. */
void exchange_uncount(struct exchange *x);

/* Counts a response that has a head, when it is complete or its front needs no more of it. */
void exchange_count_response(const struct exchange *x);

#endif
