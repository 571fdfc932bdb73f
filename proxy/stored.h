/*
 * The store behind the cache (store/store.h), as a source of versions and as a place for them: what
 * an exchange asks it for, and what is offered to it. Called only where there is one.
 */
#ifndef SUNPROXY_PROXY_STORED_H
#define SUNPROXY_PROXY_STORED_H

#include "proxy/demand.h"
#include "proxy/filling.h"
#include "store/store_fill.h"

/*
 * Has the version filled from the store, if the request may be answered with what that has. Unless
 * that is over at once the exchange then waits as one that has joined; what comes is as good as
 * stored_suits() says. [the exchange's thread]
 */
enum store_filling stored_begin(struct exchange *x, struct cache_fill *fill,
                                const struct demand *demand);

/* Was the object that the exchange waits for read from the store, with these events? */
bool stored_is_source(const struct exchange *x, unsigned events);

/* Is an object from the store fresh enough for the request, as one in the cache has to be? */
bool stored_suits(struct exchange *x);

/*
 * Is the request a write that has been answered, and has what it purges still to be noted on disk?
 * Then exchange_wake_by_store() is called once when it is. [the exchange's thread]
 */
bool stored_awaits(struct exchange *x);
void exchange_wake_by_store(struct exchange *x);

/* The notify of an exchange's waiter. */
void exchange_notify(struct object_waiter *waiter);

/* It has been called. */
void stored_is_noted(struct exchange *x);

/* The exchange waits no longer for that; and its memory for it is freed. */
void stored_leave(struct exchange *x);
void stored_forget(struct exchange *x);

/* The object, which has HTTP_KNOWN_UNSAVED, is requested again: it is offered. [any thread] */
void stored_seen(struct proxy *proxy, struct object *object);

/* The notes of an object that is being fetched, whether it is to be offered now or later. */
unsigned stored_notes(const struct origin_fill *fill);

/*
 * The fill has ended with its object, whose storing the response permits if `storable`: it is
 * offered, or, on disk, what it replaces is outdated. `position` is that of store_begin_offer()
 * from before the end.
 * [the fetcher's thread]
 */
void stored_filled(struct origin_fill *fill, bool storable, uint64_t position);

#endif
