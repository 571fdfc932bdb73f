/*
 * Fair turns of clients, for fetches, look-ups of names, and checks of users. What is said here of
 * fetches holds for all of them.
 *
 * A fetch is queued, then active until it is removed. An active one is opening while it waits for
 * its server, and streaming while bytes of a body are under way: once its response has begun, and
 * before that while its client is slow to send the request's body.
 *
 * Order: the client with the fewest opening fetches comes first, and among equals the one that was
 * served least recently; within a client its origins take turns; within an origin the order of
 * arrival holds. An origin that has reached its bound does not hold up others.
 *
 * Bounds: `opening` and `streaming` slots, so that neither kind uses up those of the other, and
 * `per_origin` opening fetches of one origin. Clients have shares of each. A client may use
 * client_opening / opening of the opening slots that other clients leave, as much of the
 * streaming ones by client_streaming, and half of the places at an origin. So it has
 * client_opening slots when it is alone, and less with each client that takes its share. N clients
 * that take all they get leave (1 - client_opening / opening)^N of the slots, so a client that has
 * none starts at once even when many others take all they can get.
 *
 * An origin may have a limit of its own, of opening and streaming fetches together.
 *
 * No fetch waits for a streaming slot: without one it keeps its opening slot while it streams, but
 * no place at its origin.
 *
 * The order of clients is exact as long as few (16) wait for an origin at its bound; of more, those
 * come first that have the fewest opening there, and then those that have waited longest.
 *
 * Memory is proportional to the items inside. Operations take O(log n);
 * queue_next() takes as much for each client that it passes over because it has used up its share,
 * of which there are never more than slots.
 *
 * For one thread at a time. An item is the caller's memory.
 */
#ifndef SUNPROXY_BASE_FAIR_QUEUE_H
#define SUNPROXY_BASE_FAIR_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/queue.h>

#include "base/clients.h"

struct queue;
struct queue_flow;

struct queue_limits {
    unsigned opening;          /* at least 1 */
    unsigned streaming;        /* 0: all fetches keep their opening slots */
    unsigned per_origin;       /* 0: not bounded */
    unsigned client_opening;   /* 0, or `opening` and above: no shares, clients only take turns */
    unsigned client_streaming; /* of `streaming` */
};

/* Zero before the first use. The members are the queue's. */
struct queue_item {
    TAILQ_ENTRY(queue_item) link;    /* of its client and origin */
    TAILQ_ENTRY(queue_item) arrival; /* of its client */
    struct queue_flow *flow;         /* NULL: not inside */
    enum {
        ITEM_QUEUED,
        ITEM_OPENING,
        ITEM_STREAMING,
        ITEM_OVERFLOWING /* it streams, in its opening slot */
    } state;
};

/* What a queued item waits for. */
enum queue_wait {
    QUEUE_TURN,             /* nothing but queue_next() */
    QUEUE_SLOT,             /* the opening slots are used up (max_waiting) */
    QUEUE_CLIENT,           /* its client has used up its share of them (max_active_per_client) */
    QUEUE_ORIGIN,           /* the places at its origin are used up (max_active_per_origin) */
    QUEUE_CLIENT_AT_ORIGIN, /* its client has its half of those */
    QUEUE_LIMIT,            /* the origin has as many active fetches as it takes */
};

/* NULL without memory. One queue at a time for each `which`. */
struct queue *queue_create(const struct queue_limits *limits, enum client_queue which);

/* Items that are over a bound stay. */
void queue_set_limits(struct queue *queue, const struct queue_limits *limits);

/* No item may be inside. NULL is harmless. */
void queue_destroy(struct queue *queue);

/*
 * Queues an item for a client and an origin ("https://example.com:443"; copied). False without
 * memory.
 */
bool queue_add(struct queue *queue, struct queue_item *item, struct client *client,
               const char *origin);

/*
 * The origin of a queued item takes this many active fetches, streaming ones included, from now on;
 * 0: any number.
 */
void queue_limit_origin(struct queue *queue, struct queue_item *item, unsigned limit);

/* The next item that may start, opening from then on; NULL if none may now. */
struct queue_item *queue_next(struct queue *queue);

/* What an item that is queued waits for now. */
enum queue_wait queue_find_wait(const struct queue *queue, const struct queue_item *item);

/* Bytes of a body are under way for an opening item, which streams from now on. Harmless for any
 * other item. */
void queue_stream(struct queue *queue, struct queue_item *item);

/*
 * A streaming item waits for its server again. It is opening if its client's shares have a slot and
 * a place at the origin for it, and otherwise stays as it is. Harmless for any other item.
 */
void queue_reopen(struct queue *queue, struct queue_item *item);

/* Takes an item out, queued or active; harmless for one that is not inside. */
void queue_remove(struct queue *queue, struct queue_item *item);

/* Puts `to`, which is not inside, in the place of an active item. */
void queue_hand_over(struct queue_item *from, struct queue_item *to);

/*
 * The queued item to give up when too many are queued: the last one of the client with the most,
 * among equals of the one that queued an item last. NULL if none is queued.
 */
struct queue_item *queue_last_of_longest(const struct queue *queue);

size_t queue_queued(const struct queue *queue);
size_t queue_active(const struct queue *queue);
size_t queue_opening(const struct queue *queue); /* slots of opening ones that are used */

#endif
