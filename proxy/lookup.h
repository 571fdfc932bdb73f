/*
 * The lookup of an exchange and what follows from the cache's answer: a response at once, a wait
 * for a fetch that is under way, or a fetch; and how a wait ends before the object does. Calls of
 * the front but fields() and limits() are exchange.c's. Private to proxy/. On the exchange's
 * thread.
 */
#ifndef SUNPROXY_PROXY_LOOKUP_H
#define SUNPROXY_PROXY_LOOKUP_H

#include "http/storing.h"
#include "proxy/exchange.h"
#include "proxy/staleness.h"

/* The fields of the request, made where they were left for later. */
static inline struct span
exchange_fields(struct exchange *x)
{
    if (!x->request->fields.ptr && x->front->fields)
        x->front->fields(x);
    return x->request->fields;
}

/* Does the request say which user sends it (proxy/staleness.h)? */
static inline bool
exchange_is_of_user(struct exchange *x)
{
    return x->proxy->config.follows_http &&
           (x->request->lacks & USER_RULES_FIELDS) != USER_RULES_FIELDS &&
           http_credentials_of(exchange_fields(x)) != 0;
}

enum lookup {
    LOOKUP_WAITS,    /* for an object, or for a wake that is due (EXCHANGE_LEFT, EXCHANGE_ENDS) */
    LOOKUP_RESPONDS, /* the response is x->own, complete */
    LOOKUP_FAILS,    /* for the reason x->ending */
};

/* Looks up, joins, begins a fill. */
enum lookup lookup_object(struct exchange *x);

/* Makes the relay to the fetch; false with errno without memory. */
bool lookup_make_relay(struct exchange *x);

/*
 * Leaves object and relay, and will fail for this reason. True: there is no wake() whose
 * exchange_run() is still to come.
 */
bool lookup_leave(struct exchange *x, enum failure why, const char *sentence);

/* It does not wait any more: its memory is not the client's. */
void lookup_uncount(struct exchange *x);

/*
 * Does the response begin in what has come of the object, which grows, or little behind that? True
 * also where the response is not a part of it: its status is another than 200, its length is not
 * known, or the range cannot be satisfied. False for several ranges, which need all of it.
 */
bool lookup_is_near(struct span request_lines, const struct object *object);

/* What has called the front's wake(): bits of exchange->wakes. */
enum { WOKEN_BY_CACHE = 1, WOKEN_BY_RELAY = 2 };

/* The waiter's notify(). */
void lookup_wake_by_cache(struct object_waiter *waiter);

#endif
