#include "fetch/queue.h"

#include <bsd/sys/tree.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/*
 * Flows that are woken at a time when their origin has a place again. More than a few places are
 * rarely free at once, and those that find none have to be parked again.
 */
#define WAKE_MAX 16u

TAILQ_HEAD(item_list, queue_item);
TAILQ_HEAD(origin_list, queue_origin);
TAILQ_HEAD(flow_list, queue_flow);
RB_HEAD(flow_tree, queue_flow);

enum flow_place {
    FLOW_IDLE,  /* nothing queued */
    FLOW_READY, /* in its client's list; the origin may have reached its bound since */
    FLOW_PARKED /* in its origin's list: that was at its bound */
};

/* The items of a client for an origin. Exists while there are any. */
struct queue_flow {
    RB_ENTRY(queue_flow) node; /* in client->flows */
    TAILQ_ENTRY(queue_flow) link;
    enum flow_place place;
    struct queue_client *client;
    struct queue_origin *origin;
    struct item_list queued;
    unsigned active;
};

/* Exists while there is a flow to it. */
struct queue_origin {
    RB_ENTRY(queue_origin) node;
    TAILQ_ENTRY(queue_origin) offer; /* in offering */
    bool is_offering;
    struct flow_list parked;
    unsigned active;
    size_t flows;
    char key[];
};

/* Exists while it has a flow. */
struct queue_client {
    RB_ENTRY(queue_client) node;   /* in clients */
    RB_ENTRY(queue_client) turn;   /* in ready */
    RB_ENTRY(queue_client) length; /* in lengths */
    bool in_ready;
    bool in_lengths;
    struct client_key key;
    struct flow_tree flows;
    struct flow_list ready;
    struct item_list queued; /* of all flows, in order of arrival */
    size_t queued_count;
    unsigned opening;
    unsigned answered;
    uint64_t served;    /* queue->stamp when an item was started last, or the client came */
    uint64_t queued_at; /* queue->stamp when an item was queued last */
};

RB_HEAD(origin_tree, queue_origin);
RB_HEAD(client_tree, queue_client);
RB_HEAD(ready_tree, queue_client);
RB_HEAD(length_tree, queue_client);

struct queue {
    struct queue_limits limits;
    struct origin_tree origins;
    struct origin_list offering; /* origins with parked flows and a place */
    struct client_tree clients;
    struct ready_tree ready;    /* clients with a ready flow that are below their bound */
    struct length_tree lengths; /* clients with items queued */
    uint64_t stamp;
    size_t queued;
    unsigned opening;
    unsigned answered;
};

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
compare_clients(struct queue_client *a, struct queue_client *b)
{
    return client_key_compare(&a->key, &b->key);
}

static int
compare_turns(struct queue_client *a, struct queue_client *b)
{
    int order = compare_numbers(a->opening, b->opening);

    if (order == 0)
        order = compare_numbers(a->served, b->served);
    return order ? order : compare_clients(a, b);
}

static int
compare_lengths(struct queue_client *a, struct queue_client *b)
{
    int order = compare_numbers(a->queued_count, b->queued_count);

    return order ? order : compare_numbers(a->queued_at, b->queued_at);
}

/* RB_GENERATE_STATIC asks for a __unused that libbsd does not define on Linux. */
#define GENERATE(name, type, field, compare) \
    RB_GENERATE_INTERNAL(name, type, field, compare, __attribute__((unused)) static)
GENERATE(origin_tree, queue_origin, node, compare_origins)
GENERATE(flow_tree, queue_flow, node, compare_flows)
GENERATE(client_tree, queue_client, node, compare_clients)
GENERATE(ready_tree, queue_client, turn, compare_turns)
GENERATE(length_tree, queue_client, length, compare_lengths)

/* ---- shares -------------------------------------------------------------------------- */

static bool
has_shares(const struct queue *queue)
{
    return queue->limits.per_client && queue->limits.per_client < queue->limits.active;
}

/* Whether a client that uses `own` of the `used` slots out of `slots` may use one more. */
static bool
may_use_slot(const struct queue *queue, unsigned own, unsigned used, unsigned slots)
{
    uint64_t left_by_others = slots - (used - own);

    if (used >= slots)
        return false;
    return !has_shares(queue) ||
           (uint64_t)own * queue->limits.active < queue->limits.per_client * left_by_others;
}

/* ---- clients, origins and flows ------------------------------------------------------ */

/* Takes a client out of the orders; to be called before it changes. */
static void
detach(struct queue *queue, struct queue_client *client)
{
    if (client->in_ready)
        RB_REMOVE(ready_tree, &queue->ready, client);
    if (client->in_lengths)
        RB_REMOVE(length_tree, &queue->lengths, client);
    client->in_ready = client->in_lengths = false;
}

/* Puts a changed client back into the orders, or frees one that has nothing inside. */
static void
attach(struct queue *queue, struct queue_client *client)
{
    bool below_bound =
        !has_shares(queue) || client->opening + client->answered < queue->limits.per_client;

    if (RB_EMPTY(&client->flows)) {
        RB_REMOVE(client_tree, &queue->clients, client);
        free(client);
        return;
    }
    client->in_ready = below_bound && !TAILQ_EMPTY(&client->ready);
    client->in_lengths = client->queued_count > 0;
    if (client->in_ready)
        RB_INSERT(ready_tree, &queue->ready, client);
    if (client->in_lengths)
        RB_INSERT(length_tree, &queue->lengths, client);
}

static bool
is_full(const struct queue *queue, const struct queue_origin *origin)
{
    return origin->active >= queue->limits.per_origin;
}

static void
update_offer(struct queue *queue, struct queue_origin *origin)
{
    bool offers = !TAILQ_EMPTY(&origin->parked) && !is_full(queue, origin);

    if (offers && !origin->is_offering)
        TAILQ_INSERT_TAIL(&queue->offering, origin, offer);
    else if (!offers && origin->is_offering)
        TAILQ_REMOVE(&queue->offering, origin, offer);
    origin->is_offering = offers;
}

/* Puts a flow, whose client is detached, at the end of the list where it belongs. */
static void
place_flow(struct queue *queue, struct queue_flow *flow)
{
    if (flow->place == FLOW_READY)
        TAILQ_REMOVE(&flow->client->ready, flow, link);
    else if (flow->place == FLOW_PARKED)
        TAILQ_REMOVE(&flow->origin->parked, flow, link);
    if (TAILQ_EMPTY(&flow->queued)) {
        flow->place = FLOW_IDLE;
    } else if (is_full(queue, flow->origin)) {
        flow->place = FLOW_PARKED;
        TAILQ_INSERT_TAIL(&flow->origin->parked, flow, link);
    } else {
        flow->place = FLOW_READY;
        TAILQ_INSERT_TAIL(&flow->client->ready, flow, link);
    }
    update_offer(queue, flow->origin);
}

/* Has the flows that were parked first at an offering origin compete for its places. */
static void
wake_parked(struct queue *queue, struct queue_origin *origin)
{
    struct queue_flow *flow;

    for (unsigned n = 0; n < WAKE_MAX && (flow = TAILQ_FIRST(&origin->parked)); n++) {
        detach(queue, flow->client);
        place_flow(queue, flow);
        attach(queue, flow->client);
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

static struct queue_origin *
find_or_add_origin(struct queue *queue, const char *key)
{
    struct queue_origin *origin = find_origin(queue, key);
    size_t size = strlen(key) + 1;

    if (origin)
        return origin;
    origin = calloc(1, sizeof(*origin) + size);
    if (!origin)
        return NULL;
    memcpy(origin->key, key, size);
    TAILQ_INIT(&origin->parked);
    RB_INSERT(origin_tree, &queue->origins, origin);
    return origin;
}

static void
release_origin(struct queue *queue, struct queue_origin *origin)
{
    if (origin->flows)
        return;
    RB_REMOVE(origin_tree, &queue->origins, origin);
    free(origin);
}

static struct queue_client *
find_or_add_client(struct queue *queue, const struct client_key *key)
{
    struct queue_client wanted = {.key = *key};
    struct queue_client *client = RB_FIND(client_tree, &queue->clients, &wanted);

    if (client)
        return client;
    client = calloc(1, sizeof(*client));
    if (!client)
        return NULL;
    client->key = *key;
    /* Behind the clients that wait already, however often it comes and goes. */
    client->served = ++queue->stamp;
    RB_INIT(&client->flows);
    TAILQ_INIT(&client->ready);
    TAILQ_INIT(&client->queued);
    RB_INSERT(client_tree, &queue->clients, client);
    return client;
}

static struct queue_flow *
find_or_add_flow(struct queue_client *client, struct queue_origin *origin)
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

/* ---- items ------------------------------------------------------------------------- */

struct queue *
queue_create(const struct queue_limits *limits)
{
    struct queue *queue = calloc(1, sizeof(*queue));

    if (!queue)
        return NULL;
    queue->limits = *limits;
    RB_INIT(&queue->origins);
    TAILQ_INIT(&queue->offering);
    RB_INIT(&queue->clients);
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
queue_add(struct queue *queue, struct queue_item *item, const struct client_key *client_key,
          const char *origin_key)
{
    struct queue_origin *origin = find_or_add_origin(queue, origin_key);
    struct queue_client *client = find_or_add_client(queue, client_key);
    struct queue_flow *flow = origin && client ? find_or_add_flow(client, origin) : NULL;

    if (client)
        detach(queue, client);
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
    if (client)
        attach(queue, client);
    return flow != NULL;
}

static struct queue_item *
start(struct queue *queue, struct queue_client *client, struct queue_flow *flow)
{
    struct queue_item *item = TAILQ_FIRST(&flow->queued);

    remove_queued(queue, item);
    item->state = ITEM_OPENING;
    client->served = ++queue->stamp;
    client->opening++;
    queue->opening++;
    flow->active++;
    flow->origin->active++;
    place_flow(queue, flow);
    return item;
}

static struct queue_item *
start_first(struct queue *queue)
{
    struct queue_item *item = NULL;
    struct queue_client *client;

    /* A client after the first in this order has at least as many opening, so no better claim. */
    while (!item && (client = RB_MIN(ready_tree, &queue->ready)) &&
           may_use_slot(queue, client->opening, queue->opening, queue->limits.opening)) {
        struct queue_flow *flow = TAILQ_FIRST(&client->ready);

        detach(queue, client);
        if (is_full(queue, flow->origin))
            place_flow(queue, flow);
        else
            item = start(queue, client, flow);
        attach(queue, client);
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

void
queue_answered(struct queue *queue, struct queue_item *item)
{
    struct queue_client *client;

    if (!item->flow || item->state != ITEM_OPENING)
        return;
    client = item->flow->client;
    if (!may_use_slot(queue, client->answered, queue->answered,
                      queue->limits.active - queue->limits.opening))
        return;
    detach(queue, client);
    item->state = ITEM_ANSWERED;
    client->opening--;
    client->answered++;
    queue->opening--;
    queue->answered++;
    attach(queue, client);
}

void
queue_pause(struct queue *queue, struct queue_item *item)
{
    struct queue_origin *origin;

    if (!item->flow || item->state == ITEM_QUEUED || item->paused)
        return;
    origin = item->flow->origin;
    item->paused = true;
    origin->active--;
    update_offer(queue, origin);
    if (origin->is_offering)
        wake_parked(queue, origin);
}

void
queue_unpause(struct queue *queue, struct queue_item *item)
{
    if (!item->flow || !item->paused)
        return;
    item->paused = false;
    item->flow->origin->active++;
    update_offer(queue, item->flow->origin);
}

/* An active item gives up its slot. Its client is detached. */
static void
stop(struct queue *queue, struct queue_item *item)
{
    struct queue_flow *flow = item->flow;

    if (item->state == ITEM_OPENING) {
        flow->client->opening--;
        queue->opening--;
    } else {
        flow->client->answered--;
        queue->answered--;
    }
    flow->active--;
    if (!item->paused)
        flow->origin->active--;
    item->paused = false;
    update_offer(queue, flow->origin);
}

void
queue_remove(struct queue *queue, struct queue_item *item)
{
    struct queue_flow *flow = item->flow;
    struct queue_client *client;
    struct queue_origin *origin;

    if (!flow)
        return;
    client = flow->client;
    origin = flow->origin;
    detach(queue, client);
    if (item->state == ITEM_QUEUED) {
        remove_queued(queue, item);
        if (TAILQ_EMPTY(&flow->queued))
            place_flow(queue, flow);
    } else {
        stop(queue, item);
    }
    item->flow = NULL;
    attach(queue, client);
    if (origin->is_offering)
        wake_parked(queue, origin);
    detach(queue, client);
    release_flow(queue, flow);
    attach(queue, client);
}

void
queue_hand_over(struct queue_item *from, struct queue_item *to)
{
    to->flow = from->flow;
    to->state = from->state;
    to->paused = from->paused;
    from->paused = false;
    from->flow = NULL;
}

struct queue_item *
queue_last_of_longest(const struct queue *queue)
{
    struct queue_client *client = RB_MAX(length_tree, (struct length_tree *)&queue->lengths);

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
    return queue->opening + queue->answered;
}

size_t
queue_opening(const struct queue *queue)
{
    return queue->opening;
}
