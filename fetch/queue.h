/*
 * Whose turn it is: at most so many at once in all, at most so many per origin, the rest waits,
 * each origin's in order of arrival and the origins in turn, so that a slow one holds up nobody
 * else.
 *
 * For one thread. An entry is the memory of whoever waits.
 */
#ifndef SUNPROXY_FETCH_QUEUE_H
#define SUNPROXY_FETCH_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/queue.h>

struct queue;
struct queue_origin;

struct queue_entry {
    TAILQ_ENTRY(queue_entry) link;
    struct queue_origin *origin; /* NULL: neither waiting nor active */
    bool active;
};

/* NULL without memory. */
struct queue *queue_create(unsigned max_active, unsigned max_active_per_origin);

/* Nobody may wait or be active. NULL is harmless. */
void queue_destroy(struct queue *queue);

/*
 * Takes a place in the queue of an origin ("https://example.com:443"; copied). False without
 * memory. Whether it is its turn already, queue_next() says.
 */
bool queue_enter(struct queue *queue, struct queue_entry *entry, const char *origin);

/* The next one whose turn has come, active from then on; NULL if there is none now. */
struct queue_entry *queue_next(struct queue *queue);

/* Would queue_next() give one? */
bool queue_could_start(const struct queue *queue);

/* Gives up the place or the turn; harmless for one that has neither. */
void queue_leave(struct queue *queue, struct queue_entry *entry);

size_t queue_waiting(const struct queue *queue);
size_t queue_active(const struct queue *queue);

#endif
