#include "tests/bench/job_queue.h"

#include <stdlib.h>

bool
job_queue_init(struct job_queue *queue, size_t capacity)
{
    *queue = (struct job_queue){
        .lock = PTHREAD_MUTEX_INITIALIZER,
        .not_empty = PTHREAD_COND_INITIALIZER,
        .not_full = PTHREAD_COND_INITIALIZER,
        .items = calloc(capacity, sizeof(void *)),
        .capacity = capacity,
    };
    return queue->items != NULL;
}

bool
job_queue_add(struct job_queue *queue, void *item)
{
    bool added;

    pthread_mutex_lock(&queue->lock);
    while (!queue->closed && queue->count == queue->capacity)
        pthread_cond_wait(&queue->not_full, &queue->lock);
    added = !queue->closed;
    if (added) {
        queue->items[(queue->first + queue->count++) % queue->capacity] = item;
        pthread_cond_signal(&queue->not_empty);
    }
    pthread_mutex_unlock(&queue->lock);
    return added;
}

void *
job_queue_take(struct job_queue *queue)
{
    void *item = NULL;

    pthread_mutex_lock(&queue->lock);
    while (!queue->closed && queue->count == 0)
        pthread_cond_wait(&queue->not_empty, &queue->lock);
    if (queue->count > 0) {
        item = queue->items[queue->first];
        queue->first = (queue->first + 1) % queue->capacity;
        queue->count--;
        pthread_cond_signal(&queue->not_full);
    }
    pthread_mutex_unlock(&queue->lock);
    return item;
}

void
job_queue_close(struct job_queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    queue->closed = true;
    pthread_cond_broadcast(&queue->not_empty);
    pthread_cond_broadcast(&queue->not_full);
    pthread_mutex_unlock(&queue->lock);
}

void
job_queue_free(struct job_queue *queue)
{
    free(queue->items);
    pthread_mutex_destroy(&queue->lock);
    pthread_cond_destroy(&queue->not_empty);
    pthread_cond_destroy(&queue->not_full);
}
