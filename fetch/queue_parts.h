/*
 * What the queue's files share: the clients, origins and flows, each of which is there while it has
 * an item, with the orders that they stand in (queue_flows.c); and the items, with the slots that
 * they take (queue.c). queue.c calls queue_flows.c.
 *
 * The orders are trees, whose keys are members of a client. So a client is detached from them
 * before any of its members or flows changes (queue_detach_client()), and attached afterwards.
 */
#ifndef SUNPROXY_FETCH_QUEUE_PARTS_H
#define SUNPROXY_FETCH_QUEUE_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/tree.h"
#include "fetch/queue.h"

TAILQ_HEAD(origin_list, queue_origin);
RB_HEAD(parked_tree, queue_flow);

enum flow_place {
    FLOW_IDLE,  /* nothing queued */
    FLOW_READY, /* in its client's list; the origin may have reached its bound since */
    FLOW_PARKED /* in its origin's tree: there was no place for it */
};

/* The items of a client for an origin. Exists while there are any. */
struct queue_flow {
    RB_ENTRY(queue_flow) node;    /* in client->flows */
    TAILQ_ENTRY(queue_flow) link; /* in client->ready */
    RB_ENTRY(queue_flow) parked;  /* in origin->parked */
    uint64_t parked_at;           /* queue->stamp when it was parked last */
    enum flow_place place;
    struct client_turns *client;
    struct queue_origin *origin;
    struct item_list queued;
    unsigned opening; /* changed by queue_count_opening() only */
    unsigned active;
};

/* Exists while there is a flow to it. */
struct queue_origin {
    RB_ENTRY(queue_origin) node;
    TAILQ_ENTRY(queue_origin) offer; /* in offering */
    bool is_offering;
    struct parked_tree parked; /* by their opening items, then in order of arrival */
    unsigned opening;          /* changed by queue_count_opening() only */
    size_t flows;
    char key[];
};

RB_HEAD(origin_tree, queue_origin);
RB_HEAD(client_tree, queue_client);
RB_HEAD(ready_tree, client_turns);
RB_HEAD(length_tree, client_turns);

struct queue {
    struct queue_limits limits;
    enum client_queue which;
    struct origin_tree origins;
    struct origin_list offering; /* origins with a parked flow and a place for it */
    struct ready_tree ready;     /* clients with a ready flow that are below their bound */
    struct length_tree lengths;  /* clients with items queued */
    uint64_t stamp;
    size_t queued;
    unsigned opening;   /* slots of that kind */
    unsigned streaming; /* slots of that kind */
};

/* ---- bounds -------------------------------------------------------------------------- */

/* Is a client bounded to a share of the slots? */
static inline bool
queue_has_shares(const struct queue *queue)
{
    return queue->limits.client_opening && queue->limits.client_opening < queue->limits.opening;
}

/*
 * Is there a place at the origin for one more of the flow? A client may use half of those that the
 * others leave, so it has fewer than are free.
 */
static inline bool
queue_has_place(const struct queue *queue, const struct queue_flow *flow)
{
    unsigned bound = queue->limits.per_origin, used = flow->origin->opening;

    if (bound == 0)
        return true;
    return used < bound && (!queue_has_shares(queue) || flow->opening < bound - used);
}

/* ---- queue_flows.c ------------------------------------------------------------------- */

/* The client in the queue; if it gets no flow, queue_attach_client() takes it out. */
struct client_turns *queue_add_client(struct queue *queue, struct client *client);

/* NULL without memory. An origin that is added and gets no flow is freed by queue_release_origin().
 * Its key is copied. */
struct queue_origin *queue_find_or_add_origin(struct queue *queue, const char *key);
struct queue_flow *queue_find_or_add_flow(struct client_turns *client, struct queue_origin *origin);

/* Takes a client out of the orders; to be called before it changes. */
void queue_detach_client(struct queue *queue, struct client_turns *client);

/* Puts a changed client back into the orders, or releases one that has no flow. */
void queue_attach_client(struct queue *queue, struct client_turns *client);

/* Puts a flow, whose client is detached, at the end of the list where it belongs. */
void queue_place_flow(struct queue *queue, struct queue_flow *flow);

/* Frees a flow without items, and its origin with its last flow. Its client is detached. */
void queue_release_flow(struct queue *queue, struct queue_flow *flow);

/* Frees an origin without flows. */
void queue_release_origin(struct queue *queue, struct queue_origin *origin);

/* An item of the flow begins to be opening (1), or ceases to be (-1). */
void queue_count_opening(struct queue *queue, struct queue_flow *flow, int change);

/* The first flows that are parked at an offering origin compete for its places from here on. No
 * client of a flow to it may be detached. */
void queue_wake_parked(struct queue *queue, struct queue_origin *origin);

/* The client with a ready flow whose turn it is; NULL if there is none. */
struct client_turns *queue_first_ready(struct queue *queue);

/* The client with the most items queued, among equals the one that queued an item last; NULL if no
 * item is queued. */
struct client_turns *queue_longest(const struct queue *queue);

#endif
