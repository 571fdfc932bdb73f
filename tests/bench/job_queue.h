/*
 * A bounded queue between threads, first in, first out. A full queue holds up those who add, an
 * empty one those who take. The items are the caller's. All functions but the first and the last
 * may be called by any thread.
 */
#ifndef SUNPROXY_TESTS_BENCH_JOB_QUEUE_H
#define SUNPROXY_TESTS_BENCH_JOB_QUEUE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

struct job_queue {
    pthread_mutex_t lock;
    pthread_cond_t not_empty;
    pthread_cond_t not_full;
    void **items; /* owned: a ring */
    size_t capacity;
    size_t first;
    size_t count;
    bool closed;
};

/* For at most `capacity` items, at least 1. False without memory. */
bool job_queue_init(struct job_queue *queue, size_t capacity);

/* Waits while the queue is full. False if it is closed; the item is then not taken over. */
bool job_queue_add(struct job_queue *queue, void *item);

/* Waits while the queue is empty. NULL if it is closed and empty. */
void *job_queue_take(struct job_queue *queue);

/* Lets nothing more in; what is inside can still be taken. */
void job_queue_close(struct job_queue *queue);

/* No thread may use it any more. */
void job_queue_free(struct job_queue *queue);

#endif
