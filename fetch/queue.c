#include <stdlib.h>

#include "fetch/queue_parts.h"

/* ---- shares -------------------------------------------------------------------------- */

/* Slots of a kind. */
struct slots {
    unsigned all;
    unsigned used;
    unsigned share; /* of a client that is alone */
};

static struct slots
opening_slots(const struct queue *queue)
{
    return (struct slots){queue->limits.opening, queue->opening, queue->limits.client_opening};
}

static struct slots
streaming_slots(const struct queue *queue)
{
    return (struct slots){queue->limits.streaming, queue->streaming,
                          queue->limits.client_streaming};
}

/* May a client that uses `own` of the slots use one more? */
static bool
may_use_slot(const struct queue *queue, struct slots slots, unsigned own)
{
    uint64_t left_by_others = slots.all - (slots.used - own);

    if (slots.used >= slots.all)
        return false;
    return !queue_has_shares(queue) || (uint64_t)own * slots.all < slots.share * left_by_others;
}

static bool
may_open(const struct queue *queue, const struct client_turns *client)
{
    return may_use_slot(queue, opening_slots(queue), client->opening);
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
    struct queue_origin *origin = queue_find_or_add_origin(queue, origin_key);
    struct client_turns *client = queue_add_client(queue, of);
    struct queue_flow *flow = origin ? queue_find_or_add_flow(client, origin) : NULL;

    queue_detach_client(queue, client);
    if (flow) {
        item->flow = flow;
        item->state = ITEM_QUEUED;
        TAILQ_INSERT_TAIL(&flow->queued, item, link);
        TAILQ_INSERT_TAIL(&client->queued, item, arrival);
        client->queued_count++;
        client->queued_at = ++queue->stamp;
        queue->queued++;
        if (flow->place == FLOW_IDLE)
            queue_place_flow(queue, flow);
    } else if (origin) {
        queue_release_origin(queue, origin);
    }
    queue_attach_client(queue, client);
    return flow != NULL;
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
    flow->active++;
    queue_count_opening(queue, flow, 1);
    queue_place_flow(queue, flow);
    return item;
}

static struct queue_item *
start_first(struct queue *queue)
{
    struct queue_item *item = NULL;
    struct client_turns *client;

    /* A client after the first in this order has at least as many opening, so no better claim. */
    while (!item && (client = queue_first_ready(queue)) && may_open(queue, client)) {
        struct queue_flow *flow = TAILQ_FIRST(&client->ready);

        queue_detach_client(queue, client);
        if (queue_has_place(queue, flow))
            item = start(queue, client, flow);
        else
            queue_place_flow(queue, flow);
        queue_attach_client(queue, client);
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
        queue_wake_parked(queue, origin);
        item = start_first(queue);
    }
    return item;
}

enum queue_wait
queue_find_wait(const struct queue *queue, const struct queue_item *item)
{
    if (!queue_has_place(queue, item->flow))
        return item->flow->origin->opening < queue->limits.per_origin ? QUEUE_CLIENT_AT_ORIGIN
                                                                      : QUEUE_ORIGIN;
    if (queue->opening >= queue->limits.opening)
        return QUEUE_SLOT;
    return may_open(queue, item->flow->client) ? QUEUE_TURN : QUEUE_CLIENT;
}

/* Flows that were parked have a place now. */
static void
offer_places(struct queue *queue, struct queue_origin *origin)
{
    if (origin->is_offering)
        queue_wake_parked(queue, origin);
}

void
queue_stream(struct queue *queue, struct queue_item *item)
{
    struct client_turns *client;

    if (!item->flow || item->state != ITEM_OPENING)
        return;
    client = item->flow->client;
    queue_detach_client(queue, client);
    queue_count_opening(queue, item->flow, -1);
    item->state = ITEM_OVERFLOWING;
    if (may_use_slot(queue, streaming_slots(queue), client->streaming)) {
        item->state = ITEM_STREAMING;
        client->opening--;
        client->streaming++;
        queue->opening--;
        queue->streaming++;
    }
    queue_attach_client(queue, client);
    offer_places(queue, item->flow->origin);
}

void
queue_reopen(struct queue *queue, struct queue_item *item)
{
    struct client_turns *client;

    if (!item->flow || (item->state != ITEM_STREAMING && item->state != ITEM_OVERFLOWING))
        return;
    client = item->flow->client;
    if (!queue_has_place(queue, item->flow) ||
        (item->state == ITEM_STREAMING && !may_open(queue, client)))
        return;
    queue_detach_client(queue, client);
    if (item->state == ITEM_STREAMING) {
        client->opening++;
        client->streaming--;
        queue->opening++;
        queue->streaming--;
    }
    item->state = ITEM_OPENING;
    queue_count_opening(queue, item->flow, 1);
    queue_attach_client(queue, client);
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
    flow->active--;
    if (item->state == ITEM_OPENING)
        queue_count_opening(queue, flow, -1);
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
    queue_detach_client(queue, client);
    if (item->state == ITEM_QUEUED) {
        remove_queued(queue, item);
        if (TAILQ_EMPTY(&flow->queued))
            queue_place_flow(queue, flow);
    } else {
        stop(queue, item);
    }
    item->flow = NULL;
    queue_attach_client(queue, client);
    offer_places(queue, origin);
    queue_detach_client(queue, client);
    queue_release_flow(queue, flow);
    queue_attach_client(queue, client);
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
    struct client_turns *client = queue_longest(queue);

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
