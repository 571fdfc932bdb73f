#include "fetch/queue.h"

#include <bsd/sys/tree.h>
#include <stdlib.h>
#include <string.h>

TAILQ_HEAD(entry_list, queue_entry);

/* There while anybody waits for it or is active on it. */
struct queue_origin {
    RB_ENTRY(queue_origin) node;
    TAILQ_ENTRY(queue_origin) link; /* in ready */
    struct entry_list waiting;
    unsigned active;
    bool ready; /* has somebody waiting and a place free */
    char key[];
};

RB_HEAD(origin_tree, queue_origin);
TAILQ_HEAD(origin_list, queue_origin);

struct queue {
    struct origin_tree origins;
    struct origin_list ready;
    unsigned max_active;
    unsigned max_active_per_origin;
    size_t waiting;
    size_t active;
};

static int
compare_origins(struct queue_origin *a, struct queue_origin *b)
{
    return strcmp(a->key, b->key);
}

/* RB_GENERATE_STATIC asks for a __unused that libbsd does not define on Linux. */
RB_GENERATE_INTERNAL(origin_tree, queue_origin, node, compare_origins,
                     __attribute__((unused)) static)

struct queue *
queue_create(unsigned max_active, unsigned max_active_per_origin)
{
    struct queue *queue = calloc(1, sizeof(*queue));

    if (!queue)
        return NULL;
    RB_INIT(&queue->origins);
    TAILQ_INIT(&queue->ready);
    queue->max_active = max_active;
    queue->max_active_per_origin = max_active_per_origin;
    return queue;
}

void
queue_destroy(struct queue *queue)
{
    free(queue);
}

static struct queue_origin *
find(struct queue *queue, const char *key)
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

/* Brings an origin's place in the list of the ready up to date; frees one that nobody needs. */
static void
settle(struct queue *queue, struct queue_origin *origin)
{
    bool waiting = !TAILQ_EMPTY(&origin->waiting);
    bool ready = waiting && origin->active < queue->max_active_per_origin;

    if (ready && !origin->ready)
        TAILQ_INSERT_TAIL(&queue->ready, origin, link);
    else if (!ready && origin->ready)
        TAILQ_REMOVE(&queue->ready, origin, link);
    origin->ready = ready;
    if (!waiting && origin->active == 0) {
        RB_REMOVE(origin_tree, &queue->origins, origin);
        free(origin);
    }
}

bool
queue_enter(struct queue *queue, struct queue_entry *entry, const char *key)
{
    struct queue_origin *origin = find(queue, key);

    if (!origin) {
        size_t size = strlen(key) + 1;

        origin = calloc(1, sizeof(*origin) + size);
        if (!origin)
            return false;
        memcpy(origin->key, key, size);
        TAILQ_INIT(&origin->waiting);
        RB_INSERT(origin_tree, &queue->origins, origin);
    }
    entry->origin = origin;
    entry->active = false;
    TAILQ_INSERT_TAIL(&origin->waiting, entry, link);
    queue->waiting++;
    settle(queue, origin);
    return true;
}

bool
queue_could_start(const struct queue *queue)
{
    return !TAILQ_EMPTY(&queue->ready) && queue->active < queue->max_active;
}

struct queue_entry *
queue_next(struct queue *queue)
{
    struct queue_origin *origin = TAILQ_FIRST(&queue->ready);
    struct queue_entry *entry;

    if (!queue_could_start(queue))
        return NULL;
    entry = TAILQ_FIRST(&origin->waiting);
    TAILQ_REMOVE(&origin->waiting, entry, link);
    queue->waiting--;
    entry->active = true;
    origin->active++;
    queue->active++;
    /* To the end of the line: the origins take turns. */
    TAILQ_REMOVE(&queue->ready, origin, link);
    origin->ready = false;
    settle(queue, origin);
    return entry;
}

void
queue_leave(struct queue *queue, struct queue_entry *entry)
{
    struct queue_origin *origin = entry->origin;

    if (!origin)
        return;
    if (entry->active) {
        origin->active--;
        queue->active--;
    } else {
        TAILQ_REMOVE(&origin->waiting, entry, link);
        queue->waiting--;
    }
    entry->origin = NULL;
    entry->active = false;
    settle(queue, origin);
}

size_t
queue_waiting(const struct queue *queue)
{
    return queue->waiting;
}

size_t
queue_active(const struct queue *queue)
{
    return queue->active;
}
