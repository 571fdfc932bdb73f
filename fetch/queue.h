/*
 * Fair turns for fetches. A fetch is queued, then active until it is removed; an active one is
 * opening until its answer begins (queue_answered()), and answered afterwards.
 *
 * Order: the client with the fewest opening fetches comes first, and among equals the one that was
 * served least recently; within a client its origins take turns; within an origin the order of
 * arrival holds. An origin that has reached its bound does not hold up others.
 *
 * Bounds: `active` in all, of which `opening` may be opening, so that fetches that wait for a name,
 * a connection or the first byte never use up all slots; `per_origin`, over all clients; and a
 * share per client. A client may use per_client / active of the slots of each kind that other
 * clients leave: per_client slots when it is alone, less with each client that takes its share.
 * N clients that take all they get leave (1 - per_client / active)^N of the slots, so a client
 * that has none starts at once even when many others take all they can get.
 *
 * The order of clients is exact as long as few (16) wait for an origin at its bound; of more, those
 * come first that have waited longest.
 *
 * Memory is proportional to the items inside. Operations take O(log n);
 * queue_next() takes as much for each client that it passes over because it has used up its share,
 * of which there are never more than slots.
 *
 * For one thread at a time. An item is the caller's memory.
 */
#ifndef SUNPROXY_FETCH_QUEUE_H
#define SUNPROXY_FETCH_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/queue.h>

#include "base/client_key.h"

struct queue;
struct queue_flow;

struct queue_limits {
    unsigned active;     /* at least 1 */
    unsigned opening;    /* 1 to active */
    unsigned per_origin; /* at least 1 */
    unsigned per_client; /* 0, or active and above: no share, clients only take turns */
};

/* Zero before the first use. The members are the queue's. */
struct queue_item {
    TAILQ_ENTRY(queue_item) link;    /* of its client and origin */
    TAILQ_ENTRY(queue_item) arrival; /* of its client */
    struct queue_flow *flow;         /* NULL: not inside */
    enum { ITEM_QUEUED, ITEM_OPENING, ITEM_ANSWERED } state;
    bool paused;
};

/* NULL without memory. */
struct queue *queue_create(const struct queue_limits *limits);

/* No item may be inside. NULL is harmless. */
void queue_destroy(struct queue *queue);

/*
 * Queues an item for a client and an origin ("https://example.com:443"; copied). False without
 * memory.
 */
bool queue_add(struct queue *queue, struct queue_item *item, const struct client_key *client,
               const char *origin);

/* The next item that may start, opening from then on; NULL if none may now. */
struct queue_item *queue_next(struct queue *queue);

/*
 * The answer of an opening item has begun. It frees its slot of an opening one, unless its client
 * has used up its share of the others. Harmless for any other item.
 */
void queue_answered(struct queue *queue, struct queue_item *item);

/*
 * An active item does not count to the bound of its origin while it is paused. Afterwards it does
 * at once, even if others have used up that bound. Harmless for an item that is not active, or is
 * not paused.
 */
void queue_pause(struct queue *queue, struct queue_item *item);
void queue_unpause(struct queue *queue, struct queue_item *item);

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
size_t queue_opening(const struct queue *queue); /* part of the active ones */

#endif
