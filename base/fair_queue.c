#include "base/fair_queue.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/tree.h"

/*
 * Flows that are woken at a time when their origin has a place again. More than a few places are
 * rarely free at once, and those that find none have to be parked again.
 */
#define WAKE_MAX 16u

/*
 * The orders are trees, whose keys are members of a client. So a client is detached from them
 * before any of its members or flows changes (detach_client()), and attached afterwards.
 */
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
    unsigned opening; /* changed by count_opening() only */
    unsigned active;  /* changed by count_active() only */
};

/* Exists while there is a flow to it. */
struct queue_origin {
    RB_ENTRY(queue_origin) node;
    TAILQ_ENTRY(queue_origin) offer; /* in offering */
    bool is_offering;
    struct parked_tree parked; /* by their opening items, then in order of arrival */
    unsigned opening;          /* changed by count_opening() only */
    unsigned active;           /* changed by count_active() only */
    unsigned limit;            /* of those; 0: none */
    size_t flows;
    char key[];
};

RB_HEAD(origin_tree, queue_origin);
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
static bool
has_shares(const struct queue *queue)
{
    return queue->limits.client_opening && queue->limits.client_opening < queue->limits.opening;
}

static bool
is_full(const struct queue_origin *origin)
{
    return origin->limit && origin->active >= origin->limit;
}

/*
 * Is there a place at the origin for one more of the flow? A client may use half of those that the
 * others leave, so it has fewer than are free.
 */
static bool
has_place(const struct queue *queue, const struct queue_flow *flow)
{
    unsigned bound = queue->limits.per_origin, used = flow->origin->opening;

    if (is_full(flow->origin))
        return false;
    if (bound == 0)
        return true;
    return used < bound && (!has_shares(queue) || flow->opening < bound - used);
}

/* ---- orders -------------------------------------------------------------------------- */

static int
compare_numbers(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

static int
compare_flows(struct queue_flow *a, struct queue_flow *b)
{
    return compare_numbers((uintptr_t)a->origin, (uintptr_t)b->origin);
}

static int
compare_parked(struct queue_flow *a, struct queue_flow *b)
{
    int order = compare_numbers(a->opening, b->opening);

    return order ? order : compare_numbers(a->parked_at, b->parked_at);
}

static int
compare_turns(struct client_turns *a, struct client_turns *b)
{
    int order = compare_numbers(a->opening, b->opening);

    return order ? order : compare_numbers(a->served, b->served);
}

static int
compare_lengths(struct client_turns *a, struct client_turns *b)
{
    int order = compare_numbers(a->queued_count, b->queued_count);

    return order ? order : compare_numbers(a->queued_at, b->queued_at);
}

TREE_GENERATE_BY_STRING(origin_tree, queue_origin, node, key)
TREE_GENERATE(flow_tree, queue_flow, node, compare_flows)
TREE_GENERATE(parked_tree, queue_flow, parked, compare_parked)
TREE_GENERATE(ready_tree, client_turns, turn, compare_turns)
TREE_GENERATE(length_tree, client_turns, length, compare_lengths)

/* ---- clients, origins and flows ------------------------------------------------------ */

/* Takes a client out of the orders; to be called before it changes. */
static void
detach_client(struct queue *queue, struct client_turns *client)
{
    if (client->in_ready)
        RB_REMOVE(ready_tree, &queue->ready, client);
    if (client->in_lengths)
        RB_REMOVE(length_tree, &queue->lengths, client);
    client->in_ready = client->in_lengths = false;
}

/* Puts a changed client back into the orders, or releases one that has no flow. */
static void
attach_client(struct queue *queue, struct client_turns *client)
{
    bool below_bound = !has_shares(queue) || client->opening < queue->limits.client_opening;

    if (RB_EMPTY(&client->flows)) {
        client_release(&client->client);
        return;
    }
    client->in_ready = below_bound && !TAILQ_EMPTY(&client->ready);
    client->in_lengths = client->queued_count > 0;
    if (client->in_ready)
        RB_INSERT(ready_tree, &queue->ready, client);
    if (client->in_lengths)
        RB_INSERT(length_tree, &queue->lengths, client);
}

/* After a change of the origin's places, or of its parked flows. */
static void
update_offer(struct queue *queue, struct queue_origin *origin)
{
    const struct queue_flow *first = RB_MIN(parked_tree, &origin->parked);
    bool offers = first && has_place(queue, first);

    if (offers && !origin->is_offering)
        TAILQ_INSERT_TAIL(&queue->offering, origin, offer);
    else if (!offers && origin->is_offering)
        TAILQ_REMOVE(&queue->offering, origin, offer);
    origin->is_offering = offers;
}

/* An item of the flow begins to be opening (1), or ceases to be (-1). */
static void
count_opening(struct queue *queue, struct queue_flow *flow, int change)
{
    struct queue_origin *origin = flow->origin;

    if (flow->place == FLOW_PARKED)
        RB_REMOVE(parked_tree, &origin->parked, flow);
    flow->opening += (unsigned)change;
    origin->opening += (unsigned)change;
    if (flow->place == FLOW_PARKED)
        RB_INSERT(parked_tree, &origin->parked, flow);
    update_offer(queue, origin);
}

/* An item of the flow begins to be active (1), or ceases to be (-1). */
static void
count_active(struct queue *queue, struct queue_flow *flow, int change)
{
    flow->active += (unsigned)change;
    flow->origin->active += (unsigned)change;
    update_offer(queue, flow->origin);
}

/* Puts a flow, whose client is detached, at the end of the list where it belongs. */
static void
place_flow(struct queue *queue, struct queue_flow *flow)
{
    if (flow->place == FLOW_READY)
        TAILQ_REMOVE(&flow->client->ready, flow, link);
    else if (flow->place == FLOW_PARKED)
        RB_REMOVE(parked_tree, &flow->origin->parked, flow);
    if (TAILQ_EMPTY(&flow->queued)) {
        flow->place = FLOW_IDLE;
    } else if (has_place(queue, flow)) {
        flow->place = FLOW_READY;
        TAILQ_INSERT_TAIL(&flow->client->ready, flow, link);
    } else {
        flow->place = FLOW_PARKED;
        flow->parked_at = ++queue->stamp;
        RB_INSERT(parked_tree, &flow->origin->parked, flow);
    }
    update_offer(queue, flow->origin);
}

/* If the origin offers places, the first flows that are parked at it compete for them from here on.
 * No client of a flow to it may be detached. */
static void
wake_parked(struct queue *queue, struct queue_origin *origin)
{
    for (unsigned n = 0; n < WAKE_MAX && origin->is_offering; n++) {
        struct queue_flow *flow = RB_MIN(parked_tree, &origin->parked);

        detach_client(queue, flow->client);
        place_flow(queue, flow);
        attach_client(queue, flow->client);
    }
}

/* Frees an origin without flows. */
static void
release_origin(struct queue *queue, struct queue_origin *origin)
{
    if (origin->flows)
        return;
    RB_REMOVE(origin_tree, &queue->origins, origin);
    free(origin);
}

/* The client in the queue; if it gets no flow, attach_client() takes it out. */
static struct client_turns *
add_client(struct queue *queue, struct client *client)
{
    struct client_turns *turns = &client->turns[queue->which];

    if (turns->client)
        return turns;
    turns->client = client_retain(client);
    /* Behind the clients that wait already, however often it comes and goes. */
    turns->served = ++queue->stamp;
    RB_INIT(&turns->flows);
    TAILQ_INIT(&turns->ready);
    TAILQ_INIT(&turns->queued);
    return turns;
}

static struct queue_flow *
find_or_add_flow(struct client_turns *client, struct queue_origin *origin)
{
    struct queue_flow wanted = {.origin = origin};
    struct queue_flow *flow = RB_FIND(flow_tree, &client->flows, &wanted);

    if (flow)
        return flow;
    flow = calloc(1, sizeof(*flow));
    if (!flow)
        return NULL;
    flow->client = client;
    flow->origin = origin;
    TAILQ_INIT(&flow->queued);
    RB_INSERT(flow_tree, &client->flows, flow);
    origin->flows++;
    return flow;
}

/* Frees a flow without items, and its origin with its last flow. Its client is detached. */
static void
release_flow(struct queue *queue, struct queue_flow *flow)
{
    if (flow->active || !TAILQ_EMPTY(&flow->queued))
        return;
    RB_REMOVE(flow_tree, &flow->client->flows, flow);
    flow->origin->flows--;
    release_origin(queue, flow->origin);
    free(flow);
}

/* ---- shares -------------------------------------------------------------------------- */

/* May a client that uses `own` of these slots, and alone may use `share`, use one more? */
static bool
may_use_slot(const struct queue *queue, unsigned all, unsigned used, unsigned share, unsigned own)
{
    uint64_t left_by_others = all - (used - own);

    if (used >= all)
        return false;
    return !has_shares(queue) || (uint64_t)own * all < share * left_by_others;
}

static bool
may_open(const struct queue *queue, const struct client_turns *client)
{
    return may_use_slot(queue, queue->limits.opening, queue->opening,
                        queue->limits.client_opening, client->opening);
}

/* Puts clients and origins where the new limits have them. */
void
queue_set_limits(struct queue *queue, const struct queue_limits *limits)
{
    struct client_turns *client, *next;
    struct queue_origin *origin;

    queue->limits = *limits;
    RB_FOREACH_SAFE(client, length_tree, &queue->lengths, next)
    {
        detach_client(queue, client);
        attach_client(queue, client);
    }
    RB_FOREACH(origin, origin_tree, &queue->origins)
    update_offer(queue, origin);
}

/* ---- items ------------------------------------------------------------------------- */

struct queue *
queue_create(const struct queue_limits *limits, enum client_queue which)
{
    struct queue *queue = calloc(1, sizeof(*queue));

    if (!queue)
        return NULL;
    queue->limits = *limits;
    queue->which = which;
    RB_INIT(&queue->origins);
    TAILQ_INIT(&queue->offering);
    RB_INIT(&queue->ready);
    RB_INIT(&queue->lengths);
    return queue;
}

void
queue_destroy(struct queue *queue)
{
    free(queue);
}

static void
remove_queued(struct queue *queue, struct queue_item *item)
{
    TAILQ_REMOVE(&item->flow->queued, item, link);
    TAILQ_REMOVE(&item->flow->client->queued, item, arrival);
    item->flow->client->queued_count--;
    queue->queued--;
}

bool
queue_add(struct queue *queue, struct queue_item *item, struct client *of, const char *origin_key)
{
    struct queue_origin *origin = origin_tree_search(&queue->origins, origin_key);
    struct client_turns *client = add_client(queue, of);
    struct queue_flow *flow;

    if (!origin)
        origin = origin_tree_add(&queue->origins, origin_key);
    flow = origin ? find_or_add_flow(client, origin) : NULL;
    detach_client(queue, client);
    if (flow) {
        item->flow = flow;
        item->state = ITEM_QUEUED;
        TAILQ_INSERT_TAIL(&flow->queued, item, link);
        TAILQ_INSERT_TAIL(&client->queued, item, arrival);
        client->queued_count++;
        client->queued_at = ++queue->stamp;
        queue->queued++;
        if (flow->place == FLOW_IDLE)
            place_flow(queue, flow);
    } else if (origin) {
        release_origin(queue, origin);
    }
    attach_client(queue, client);
    return flow != NULL;
}

void
queue_limit_origin(struct queue *queue, struct queue_item *item, unsigned limit)
{
    item->flow->origin->limit = limit;
    update_offer(queue, item->flow->origin);
}

static struct queue_item *
start(struct queue *queue, struct client_turns *client, struct queue_flow *flow)
{
    struct queue_item *item = TAILQ_FIRST(&flow->queued);

    remove_queued(queue, item);
    item->state = ITEM_OPENING;
    client->served = ++queue->stamp;
    client->opening++;
    queue->opening++;
    count_active(queue, flow, 1);
    count_opening(queue, flow, 1);
    place_flow(queue, flow);
    return item;
}

static struct queue_item *
start_first(struct queue *queue)
{
    struct queue_item *item = NULL;
    struct client_turns *client;

    /* A client after the first in this order has at least as many opening, so no better claim. */
    while (!item && (client = RB_MIN(ready_tree, &queue->ready)) && may_open(queue, client)) {
        struct queue_flow *flow = TAILQ_FIRST(&client->ready);

        detach_client(queue, client);
        if (has_place(queue, flow))
            item = start(queue, client, flow);
        else
            place_flow(queue, flow);
        attach_client(queue, client);
    }
    return item;
}

struct queue_item *
queue_next(struct queue *queue)
{
    struct queue_item *item = start_first(queue);
    struct queue_origin *origin;

    /* The flows that were woken may be those of clients that have used up their shares. */
    while (!item && queue->opening < queue->limits.opening &&
           (origin = TAILQ_FIRST(&queue->offering))) {
        wake_parked(queue, origin);
        item = start_first(queue);
    }
    return item;
}

enum queue_wait
queue_find_wait(const struct queue *queue, const struct queue_item *item)
{
    if (is_full(item->flow->origin))
        return QUEUE_LIMIT;
    if (!has_place(queue, item->flow))
        return item->flow->origin->opening < queue->limits.per_origin ? QUEUE_CLIENT_AT_ORIGIN
                                                                      : QUEUE_ORIGIN;
    if (queue->opening >= queue->limits.opening)
        return QUEUE_SLOT;
    return may_open(queue, item->flow->client) ? QUEUE_TURN : QUEUE_CLIENT;
}

void
queue_stream(struct queue *queue, struct queue_item *item)
{
    struct client_turns *client;

    if (!item->flow || item->state != ITEM_OPENING)
        return;
    client = item->flow->client;
    detach_client(queue, client);
    count_opening(queue, item->flow, -1);
    item->state = ITEM_OVERFLOWING;
    if (may_use_slot(queue, queue->limits.streaming, queue->streaming,
                     queue->limits.client_streaming, client->streaming)) {
        item->state = ITEM_STREAMING;
        client->opening--;
        client->streaming++;
        queue->opening--;
        queue->streaming++;
    }
    attach_client(queue, client);
    wake_parked(queue, item->flow->origin);
}

void
queue_reopen(struct queue *queue, struct queue_item *item)
{
    struct client_turns *client;

    if (!item->flow || (item->state != ITEM_STREAMING && item->state != ITEM_OVERFLOWING))
        return;
    client = item->flow->client;
    if (!has_place(queue, item->flow) ||
        (item->state == ITEM_STREAMING && !may_open(queue, client)))
        return;
    detach_client(queue, client);
    if (item->state == ITEM_STREAMING) {
        client->opening++;
        client->streaming--;
        queue->opening++;
        queue->streaming--;
    }
    item->state = ITEM_OPENING;
    count_opening(queue, item->flow, 1);
    attach_client(queue, client);
}

/* An active item gives up its slot. Its client is detached. */
static void
stop(struct queue *queue, struct queue_item *item)
{
    struct queue_flow *flow = item->flow;

    if (item->state == ITEM_STREAMING) {
        flow->client->streaming--;
        queue->streaming--;
    } else {
        flow->client->opening--;
        queue->opening--;
    }
    count_active(queue, flow, -1);
    if (item->state == ITEM_OPENING)
        count_opening(queue, flow, -1);
}

void
queue_remove(struct queue *queue, struct queue_item *item)
{
    struct queue_flow *flow = item->flow;
    struct client_turns *client;
    struct queue_origin *origin;

    if (!flow)
        return;
    client = flow->client;
    origin = flow->origin;
    detach_client(queue, client);
    if (item->state == ITEM_QUEUED) {
        remove_queued(queue, item);
        if (TAILQ_EMPTY(&flow->queued))
            place_flow(queue, flow);
    } else {
        stop(queue, item);
    }
    item->flow = NULL;
    attach_client(queue, client);
    wake_parked(queue, origin);
    detach_client(queue, client);
    release_flow(queue, flow);
    attach_client(queue, client);
}

void
queue_hand_over(struct queue_item *from, struct queue_item *to)
{
    to->flow = from->flow;
    to->state = from->state;
    from->flow = NULL;
}

struct queue_item *
queue_last_of_longest(const struct queue *queue)
{
    struct client_turns *client = RB_MAX(length_tree, (struct length_tree *)&queue->lengths);

    return client ? TAILQ_LAST(&client->queued, item_list) : NULL;
}

size_t
queue_queued(const struct queue *queue)
{
    return queue->queued;
}

size_t
queue_active(const struct queue *queue)
{
    return queue->opening + queue->streaming;
}

size_t
queue_opening(const struct queue *queue)
{
    return queue->opening;
}
