#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "fetch/queue_parts.h"

/*
 * Flows that are woken at a time when their origin has a place again. More than a few places are
 * rarely free at once, and those that find none have to be parked again.
 */
#define WAKE_MAX 16u

/* ---- orders -------------------------------------------------------------------------- */

static int
compare_numbers(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

static int
compare_origins(struct queue_origin *a, struct queue_origin *b)
{
    return strcmp(a->key, b->key);
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

TREE_GENERATE(origin_tree, queue_origin, node, compare_origins)
TREE_GENERATE(flow_tree, queue_flow, node, compare_flows)
TREE_GENERATE(parked_tree, queue_flow, parked, compare_parked)
TREE_GENERATE(ready_tree, client_turns, turn, compare_turns)
TREE_GENERATE(length_tree, client_turns, length, compare_lengths)

/* ---- clients, origins and flows ------------------------------------------------------ */

void
queue_detach_client(struct queue *queue, struct client_turns *client)
{
    if (client->in_ready)
        RB_REMOVE(ready_tree, &queue->ready, client);
    if (client->in_lengths)
        RB_REMOVE(length_tree, &queue->lengths, client);
    client->in_ready = client->in_lengths = false;
}

void
queue_attach_client(struct queue *queue, struct client_turns *client)
{
    bool below_bound = !queue_has_shares(queue) || client->opening < queue->limits.client_opening;

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
    bool offers = first && queue_has_place(queue, first);

    if (offers && !origin->is_offering)
        TAILQ_INSERT_TAIL(&queue->offering, origin, offer);
    else if (!offers && origin->is_offering)
        TAILQ_REMOVE(&queue->offering, origin, offer);
    origin->is_offering = offers;
}

void
queue_count_opening(struct queue *queue, struct queue_flow *flow, int change)
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

void
queue_place_flow(struct queue *queue, struct queue_flow *flow)
{
    if (flow->place == FLOW_READY)
        TAILQ_REMOVE(&flow->client->ready, flow, link);
    else if (flow->place == FLOW_PARKED)
        RB_REMOVE(parked_tree, &flow->origin->parked, flow);
    if (TAILQ_EMPTY(&flow->queued)) {
        flow->place = FLOW_IDLE;
    } else if (queue_has_place(queue, flow)) {
        flow->place = FLOW_READY;
        TAILQ_INSERT_TAIL(&flow->client->ready, flow, link);
    } else {
        flow->place = FLOW_PARKED;
        flow->parked_at = ++queue->stamp;
        RB_INSERT(parked_tree, &flow->origin->parked, flow);
    }
    update_offer(queue, flow->origin);
}

void
queue_wake_parked(struct queue *queue, struct queue_origin *origin)
{
    for (unsigned n = 0; n < WAKE_MAX && origin->is_offering; n++) {
        struct queue_flow *flow = RB_MIN(parked_tree, &origin->parked);

        queue_detach_client(queue, flow->client);
        queue_place_flow(queue, flow);
        queue_attach_client(queue, flow->client);
    }
}

static struct queue_origin *
find_origin(struct queue *queue, const char *key)
{
    struct queue_origin *origin = RB_ROOT(&queue->origins);

    while (origin) {
        int order = strcmp(key, origin->key);

        if (order == 0)
            return origin;
        origin = order < 0 ? RB_LEFT(origin, node) : RB_RIGHT(origin, node);
    }
    return NULL;
}

struct queue_origin *
queue_find_or_add_origin(struct queue *queue, const char *key)
{
    struct queue_origin *origin = find_origin(queue, key);
    size_t size = strlen(key) + 1;

    if (origin)
        return origin;
    origin = calloc(1, sizeof(*origin) + size);
    if (!origin)
        return NULL;
    memcpy(origin->key, key, size);
    RB_INIT(&origin->parked);
    RB_INSERT(origin_tree, &queue->origins, origin);
    return origin;
}

void
queue_release_origin(struct queue *queue, struct queue_origin *origin)
{
    if (origin->flows)
        return;
    RB_REMOVE(origin_tree, &queue->origins, origin);
    free(origin);
}

struct client_turns *
queue_add_client(struct queue *queue, struct client *client)
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

struct queue_flow *
queue_find_or_add_flow(struct client_turns *client, struct queue_origin *origin)
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

void
queue_release_flow(struct queue *queue, struct queue_flow *flow)
{
    if (flow->active || !TAILQ_EMPTY(&flow->queued))
        return;
    RB_REMOVE(flow_tree, &flow->client->flows, flow);
    flow->origin->flows--;
    queue_release_origin(queue, flow->origin);
    free(flow);
}

/* ---- the first of an order ----------------------------------------------------------- */

struct client_turns *
queue_first_ready(struct queue *queue)
{
    return RB_MIN(ready_tree, &queue->ready);
}

struct client_turns *
queue_longest(const struct queue *queue)
{
    return RB_MAX(length_tree, (struct length_tree *)&queue->lengths);
}
