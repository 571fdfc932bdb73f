/*
 * One flight per URL: the first request that misses leads and fetches, later ones for the same URL
 * join and wait, all are answered when it lands. Knows neither how to fetch nor how to answer. A
 * request whose answer may not be shared has a flight alone.
 *
 * Every function is safe on any thread.
 */
#ifndef SUNPROXY_FETCH_FLIGHT_H
#define SUNPROXY_FETCH_FLIGHT_H

#include "base/span.h"

struct flights; /* all that are in the air */
struct flight;  /* one of them */

/* The first member of whatever waits; the waiter's memory, until it is handed back on landing. */
struct flight_waiter {
    struct flight_waiter *next;
    bool leader; /* this one's request began the flight */
};

enum flight_role {
    FLIGHT_LED,    /* a new flight, in *flight: the caller fetches and lands it */
    FLIGHT_JOINED, /* waiting for one that was in the air already */
    FLIGHT_FOUND,  /* `found` said that there is nothing to wait for */
    FLIGHT_FULL,   /* too many wait for this URL already */
    FLIGHT_NO_MEMORY,
};

/* At most `max_waiters` for a flight, its leader included. NULL without memory. */
struct flights *flights_create(unsigned max_waiters);

/* No flight may be in the air. NULL is harmless. */
void flights_destroy(struct flights *flights);

/*
 * Takes `waiter` aboard the flight to `url`, a new one if there is none. Before a new flight
 * begins, found(context) is asked, under the lock that keeps flights from landing meanwhile: a
 * request that missed just as a flight landed finds the page that way, and fetches nothing. found
 * must not call back in here.
 */
enum flight_role flights_board(struct flights *flights, struct span url,
                               struct flight_waiter *waiter, bool (*found)(void *context),
                               void *context, struct flight **flight);

/*
 * Begins a flight that no other request joins, whatever else is in the air to `url`: for an answer
 * that may not be shared. The caller fetches and lands it as one that it leads. False without
 * memory.
 */
bool flights_board_alone(struct flights *flights, struct span url, struct flight_waiter *waiter,
                         struct flight **flight);

/*
 * Ends a flight and frees it. Unless it was called off, keep(context) puts what it brought where
 * `found` looks, under the lock; keep may be NULL, and must not call back in here. Returns those
 * who waited, leader first, then in order of boarding.
 */
struct flight_waiter *flights_land(struct flights *flights, struct flight *flight,
                                   void (*keep)(void *context), void *context);

/*
 * Calls off the flights to `url`, or to all URLs that begin with it: what they bring is old. They
 * land as ever, for those aboard, but nothing is kept, and whoever asks from now on begins another
 * flight. What was kept before must be thrown away after this, not before.
 */
void flights_call_off(struct flights *flights, struct span url);
void flights_call_off_prefix(struct flights *flights, struct span prefix);

/* How many are in the air, those called off included. */
size_t flights_count(struct flights *flights);

#endif
