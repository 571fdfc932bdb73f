/*
 * The sources behind the cache (store/source.h): what an exchange asks them for, and what is
 * offered to them.
 */
#ifndef SUNPROXY_PROXY_STORED_H
#define SUNPROXY_PROXY_STORED_H

#include "proxy/demand.h"
#include "proxy/filling.h"
#include "proxy/purging.h"

/*
 * Has the version filled from the first source that has it, if the request may be answered so.
 * Unless that is over at once the exchange then waits as one that has joined; what comes is as good
 * as stored_suits() says. [the exchange's thread]
 */
enum source_filling stored_begin(struct exchange *x, struct cache_fill *fill,
                                 const struct demand *demand);

/* Is it worth while to look up for that, where nothing else is filled for the request? */
bool stored_may_begin(const struct exchange *x);

/* No source has it, and nothing else fills it: the exchange waits no longer for the fill, which is
 * freed, and requests that have joined look up again. */
void stored_give_up(struct exchange *x, struct cache_fill *fill);

/* Was the object that the exchange waits for read from a source, with these events? */
bool stored_is_source(const struct exchange *x, unsigned events);

/* Is an object from a source fresh enough for the request, as one in the cache has to be? */
bool stored_suits(struct exchange *x);

/*
 * Is the request a write that has been answered, and has what it purges still to be noted? Then
 * exchange_wake_by_source() is called once when it is. [the exchange's thread]
 */
bool stored_awaits(struct exchange *x);

/* It has been called. */
void stored_is_noted(struct exchange *x);

/* The exchange waits no longer for that; and its memory for it is freed. */
void stored_leave(struct exchange *x);
void stored_forget(struct exchange *x);

/* The object, which has HTTP_KNOWN_UNSAVED, is requested again: it is offered. [any thread] */
void stored_seen(struct proxy *proxy, struct object *object);

/* The notes of an object that is being fetched, whether it is to be offered now or later. */
unsigned stored_notes(const struct origin_fill *fill);

/* The URL varies by these names from now on, as a response with this status says (empty: not at
 * all): what varied by others is used no more. Before the cache has them. [the fetcher's thread] */
void stored_vary(const struct origin_fill *fill, unsigned status, struct span names);

/* An offer to all sources: their positions. */
struct stored_offer {
    uint64_t positions[PROXY_SOURCES];
};

/* Before the end of a fill, and instead of it. [the fetcher's thread] */
struct stored_offer stored_begin_offer(const struct origin_fill *fill);
void stored_drop_offer(const struct origin_fill *fill);

/*
 * The fill has ended with its object, whose storing the response permits if `storable`: it is
 * offered, or what it replaces in the sources is outdated. [the fetcher's thread]
 */
void stored_filled(struct origin_fill *fill, bool storable, const struct stored_offer *offer);

/* The fill has its head, with a body of `length` bytes as far as that is known: requests elsewhere
 * that cannot have it wait for it no longer. [the fetcher's thread] */
void stored_begins(const struct origin_fill *fill, int64_t length);

/* The fetch has ended: requests elsewhere wait for it no longer. [the fetcher's thread] */
void stored_ended(const struct origin_fill *fill);

#endif
